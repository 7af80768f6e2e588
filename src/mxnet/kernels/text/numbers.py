"""Parsers of CSV and LibSVM text, which take a thirtieth of the time of Python's own functions."""
from typing import Any, NamedTuple, Optional

import numpy as np
import torch

from ..runtime.contract import Kernel

_SIZES: dict[str, Any] = {"sizes": ("n", "rows", "width"), "preconditions": ("n >= 1", "width >= 1"), "integers": ("width",), "threads": False}
# The most rows that a text can hold: a number and its separator take at least two bytes.
_CSV = {name: Kernel("text/numbers", f"csv_{name}", {"text": "uint8 (n)"}, {"out": f"{name} (rows, width)", "done": "int64 (3)"},
                     where={"rows": "n // (2 * width)"}, **_SIZES) for name in ("float32", "int32", "int64")}
_libsvm = Kernel("text/numbers", "libsvm", {"text": "uint8 (n)"}, {
    "labels": "float32 (rows)", "starts": "int64 (rows + 1)", "columns": "int64 (rows)", "values": "float32 (rows)", "done": "int64 (3)"},
    where={"rows": "n // 2"}, **_SIZES)


class SparseRows(NamedTuple):
    """Labelled sparse rows in CSR form: row i has `columns` and `values` from ``starts[i]`` to ``starts[i + 1]``."""

    labels: np.ndarray
    starts: np.ndarray
    columns: np.ndarray
    values: np.ndarray


class Plain(NamedTuple):
    """The parsed rows up to the first line that the kernel does not parse, with their size in bytes and lines."""

    rows: Any
    size: int
    lines: int


def comma_separated(text: bytearray, width: int, dtype: np.dtype) -> Optional[Plain]:
    """Parse complete lines of comma-separated numbers into an array (rows, `width`) of `dtype`. Empty lines are skipped.

    Returns None without a kernel. Texts of one size are fastest, as the check is cached by size; they may be padded with empty lines.
    """
    arrays = (_tensor(text),)
    plan = _CSV[dtype.name].plan(arrays, (width,))
    if plan is None:
        return None
    out, done = plan(arrays)
    found, size, lines = done.tolist()
    return Plain(out[:found].numpy(), size, lines)


def sparse(text: bytearray, width: int) -> Optional[Plain]:
    """Parse complete lines of LibSVM's format into `SparseRows`; like `comma_separated` otherwise."""
    arrays = (_tensor(text),)
    plan = _libsvm.plan(arrays, (width,))
    if plan is None:
        return None
    labels, starts, columns, values, done = plan(arrays)
    found, size, lines = done.tolist()
    count = int(starts[found])
    rows = SparseRows(labels[:found].numpy(), starts[:found + 1].numpy(), columns[:count].numpy(), values[:count].numpy())
    return Plain(rows, size, lines)


def _tensor(text: bytearray) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(text, np.uint8))
