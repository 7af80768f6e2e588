"""Bodies of the protocols that carry no types: JSON, CSV, ``.npy`` and images in; JSON, CSV and ``.npy`` out (SageMaker, Multi Model Server)."""
from __future__ import annotations

import ast
import io
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .errors import RequestError, malformed
from .images import Preprocessing, decoded, is_image
from .settings import Limits
from .tensors import NAMES, TensorSpec, from_nested, parsed_json, to_nested

_NPY_MAGIC, _NPY_HEADER = b"\x93NUMPY", 4096  # NumPy's own headers have 118 bytes


def arrays_of(content_type: str, body: bytes, inputs: Sequence[TensorSpec], preprocessing: Preprocessing, limits: Limits) -> list[np.ndarray]:
    """Return the inputs that a body holds, in the network's order; sizes are checked, and rows without a batch get one.

    Parameters
    ----------
    content_type : str
        Without parameters, in lower case; JSON where it is empty and the body no image.
    body : bytes
    inputs : list of TensorSpec
    preprocessing : Preprocessing
    limits : Limits

    Raises
    ------
    RequestError
        If the type is none of these (415), the body is too large (413), or does not fit the network (400).
    """
    if is_image(content_type, body):
        arrays = {_only(inputs).name: decoded(body, _only(inputs), preprocessing, limits.pixels)}
    elif content_type in ("application/json", "application/octet-stream", "text/plain", ""):
        arrays = _from_json(parsed_json(body, limits.json), inputs)
    elif content_type == "text/csv":
        arrays = {_only(inputs).name: _from_csv(body, _only(inputs), limits.json)}
    elif content_type == "application/x-npy":
        arrays = {_only(inputs).name: from_npy(body)}
    else:
        raise RequestError(415, f"taken are application/json, text/csv, application/x-npy and image/*, received {content_type[:80]!r}")
    return [_fitted(arrays[spec.name], spec) for spec in inputs]


def _only(inputs: Sequence[TensorSpec]) -> TensorSpec:
    if len(inputs) != 1:
        raise RequestError(415, f"the model has the inputs {[spec.name for spec in inputs]}: send JSON with all of them")
    return inputs[0]


def _from_json(content: Any, inputs: Sequence[TensorSpec]) -> dict[str, np.ndarray]:
    """Take a list (the only input), ``{"instances": [...]}``, ``{"data": ...}`` for the only input, or a dict of inputs by name."""
    names = [spec.name for spec in inputs]
    if isinstance(content, dict):
        if len(inputs) == 1 and names[0] not in content and len(content) == 1 and next(iter(content)) in ("instances", "data", "inputs"):
            content = next(iter(content.values()))
        elif content.keys() != set(names):
            raise malformed(f"the model has the inputs {names}, received {sorted(content)[:8]}")
        else:
            return {spec.name: from_nested(content[spec.name], None, spec.dtype, spec.name) for spec in inputs}
    return {_only(inputs).name: from_nested(content, None, inputs[0].dtype, names[0])}


def _from_csv(body: bytes, spec: TensorSpec, limit: int) -> np.ndarray:
    if len(body) > limit:
        raise RequestError(413, f"CSV of at most {limit} bytes is taken, received {len(body)}")
    try:
        rows = [[float(cell) for cell in line.split(",")] for line in body.decode("ascii").splitlines() if line.strip()]
    except ValueError:
        raise malformed(f"CSV of numbers, separated by commas, is expected, received {body[:40]!r}") from None
    if not rows:
        raise malformed("CSV of numbers is expected, received nothing")
    if len(set(map(len, rows))) != 1:
        raise malformed(f"the lines of CSV must have equally many cells, received {sorted(set(map(len, rows)))!r:.80}")
    if spec.dtype.kind != "f":
        if not all(math.isfinite(cell) and cell == int(cell) for row in rows for cell in row):
            raise malformed(f"the input {spec.name!r} takes integers ({NAMES[spec.dtype]}), received other numbers")
        return from_nested([[int(cell) for cell in row] for row in rows], None, spec.dtype, spec.name)
    return from_nested(rows, None, spec.dtype, spec.name)


def from_npy(body: bytes) -> np.ndarray:
    """Return the array of an ``.npy`` file's bytes, a view of them; nothing is unpickled, and no size is believed.

    Raises
    ------
    RequestError
        If they are no such file, hold objects or another type than numbers, or fewer or more bytes than the shape says.

    Example
    -------
    >>> import io
    >>> import numpy as np
    >>> from mxnet.serve.payloads import from_npy
    >>> file = io.BytesIO(); np.save(file, np.arange(3)); from_npy(file.getvalue())
    array([0, 1, 2])
    """
    size_bytes = 2 if body[6:7] == b"\x01" else 4
    start = 8 + size_bytes
    length = int.from_bytes(body[8:start], "little")
    if not body.startswith(_NPY_MAGIC) or body[6:7] not in (b"\x01", b"\x02", b"\x03") or length > min(_NPY_HEADER, len(body) - start):
        raise malformed(f"an .npy file is expected, received {len(body)} bytes that begin with {body[:8]!r}")
    try:
        header = ast.literal_eval(body[start:start + length].decode("ascii").strip())
        if header.keys() != {"descr", "fortran_order", "shape"}:
            raise ValueError
        shape, order = header["shape"], header["fortran_order"]
        dtype = np.dtype(header["descr"]) if isinstance(header["descr"], str) else None
    except (ValueError, SyntaxError, TypeError, AttributeError, RecursionError, MemoryError):
        raise malformed(f"the header of the .npy file can't be read, received {body[start:start + 40]!r}") from None
    if dtype is None or dtype.kind not in "biuf" or type(order) is not bool:
        raise malformed(f"the .npy file must hold numbers, received the type {header['descr']!r:.40} and fortran_order={order!r:.40}")
    if type(shape) is not tuple or len(shape) > 32 or any(type(size) is not int or size < 0 for size in shape):
        raise malformed(f"the header of the .npy file must have a shape, received {shape!r:.80}")
    if math.prod(shape) * dtype.itemsize != len(body) - start - length:
        raise malformed(f"the .npy file holds {len(body) - start - length} bytes of values, its header says {math.prod(shape) * dtype.itemsize}")
    return np.frombuffer(body, dtype, offset=start + length).reshape(shape, order="F" if order else "C")


def _fitted(array: np.ndarray, spec: TensorSpec) -> np.ndarray:
    """Return an array with the axes and the type of an input."""
    own = spec.shape[1:]
    if array.ndim == 2 and len(own) > 1 and min(own) > 0 and array.shape[1] == math.prod(own) and array.shape != own:
        array = array.reshape(-1, *own)  # rows of CSV
    elif array.ndim == len(own):
        array = array[None]
    spec.check(array.shape)
    if array.dtype == spec.dtype:
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        values = array.astype(spec.dtype)
    if spec.dtype.kind != "f" and not (values == array).all():
        raise malformed(f"a number does not fit the input {spec.name!r} of type {NAMES[spec.dtype]}")
    return values


def encoded(accept: str, outputs: Sequence[np.ndarray]) -> tuple[bytes, str]:
    """Return a body with the outputs, and its type: the first of ``Accept`` that can be written; JSON by default.

    One output is a nested list, several are a list of these.

    Raises
    ------
    RequestError
        If none of the accepted types can be written (406).
    """
    accepted = [part.partition(";")[0].strip().lower() for part in accept.split(",") if part.strip()] or ["*/*"]
    for kind in accepted:
        if kind in ("*/*", "application/*", "application/json"):
            nested = [to_nested(out) for out in outputs]
            return json.dumps(nested[0] if len(nested) == 1 else nested).encode(), "application/json"
        if kind == "application/x-npy" and len(outputs) == 1:
            file = io.BytesIO()
            np.lib.format.write_array(file, outputs[0], allow_pickle=False)
            return file.getvalue(), kind
        if kind == "text/csv" and len(outputs) == 1:
            rows = outputs[0].reshape(len(outputs[0]), -1) if outputs[0].ndim else outputs[0].reshape(1, 1)
            return "".join(",".join(map(repr, row)) + "\n" for row in rows.tolist()).encode(), kind
    raise RequestError(406, f"written are application/json, and for one output text/csv and application/x-npy; accepted is {accept[:80]!r}")


def top_classes(output: np.ndarray, labels: Sequence[str], count: int = 5) -> list:
    """Return the likeliest classes of each row as Multi Model Server does: ``[{"probability": ..., "class": ...}, ...]``; of one row, that alone.

    Example
    -------
    >>> import numpy as np
    >>> from mxnet.serve.payloads import top_classes
    >>> top_classes(np.array([[0.25, 0.75]]), ["cat", "dog"], 1)
    [{'probability': 0.75, 'class': 'dog'}]
    """
    rows = []
    for row in output:
        order = np.argsort(-row, kind="stable")[:count]
        rows.append([{"probability": value, "class": labels[i]} for i, value in zip(order.tolist(), to_nested(row[order]))])
    return rows[0] if len(rows) == 1 else rows
