"""Numbers out of text, in a thirtieth of the time that Python's own functions take."""
from typing import Any, NamedTuple, Optional

import numpy as np
import torch

from ..runtime.contract import Kernel

_SIZES: dict[str, Any] = {"sizes": ("n", "rows", "width"), "demands": ("n >= 1", "width >= 1"), "integers": ("width",), "threads": False}
# As many rows as fit: a number and what follows it take two bytes at least.
_CSV = {name: Kernel("text/numbers", f"csv_{name}", {"text": "uint8 (n)"}, {"out": f"{name} (rows, width)", "done": "int64 (3)"},
                     where={"rows": "n // (2 * width)"}, **_SIZES) for name in ("float32", "int32", "int64")}
_libsvm = Kernel("text/numbers", "libsvm", {"text": "uint8 (n)"}, {
    "labels": "float32 (rows)", "starts": "int64 (rows + 1)", "columns": "int64 (rows)", "values": "float32 (rows)", "done": "int64 (3)"},
    where={"rows": "n // 2"}, **_SIZES)


class SparseRows(NamedTuple):
    """Rows of sparse numbers: row i has `columns` and `values` from ``starts[i]`` to ``starts[i + 1]``, and its label."""

    labels: np.ndarray
    starts: np.ndarray
    columns: np.ndarray
    values: np.ndarray


class Plain(NamedTuple):
    """What text says up to the first line that is not plain: its rows, and how many bytes and lines they take."""

    rows: Any
    size: int
    lines: int


def comma_separated(text: bytearray, width: int, dtype: np.dtype) -> Optional[Plain]:
    """The rows, an array of `dtype`, of whole lines of comma-separated numbers. Empty lines are passed over.

    None where there is no kernel. It is fastest on texts of one size, which may end in empty lines.
    """
    arrays = (_tensor(text),)
    plan = _CSV[dtype.name].plan(arrays, (width,))
    if plan is None:
        return None
    out, done = plan(arrays)
    found, size, lines = done.tolist()
    return Plain(out[:found].numpy(), size, lines)


def sparse(text: bytearray, width: int) -> Optional[Plain]:
    """The `SparseRows` of whole lines of LibSVM's format, as `comma_separated` gives rows."""
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
