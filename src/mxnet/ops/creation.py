"""Operators without inputs, which create arrays from attributes alone: constants, the identity matrix, ranges."""
import math
from typing import Any

import torch

from .. import util
from ..base import MXNetError
from . import dtypes
from .axes import normalize_axis
from .registry import op
from .schema import Device, DType, Optional, Shape
from .shapes import unify

_EXACT = 1 << 24  # up to which single precision holds all whole numbers


def stated_shape(shape: tuple[int, ...]) -> Optional[tuple[int, ...]]:
    """Return the shape in an operator's attributes as a partial shape: a size of 0 is unknown unless shapes are NumPy's.

    ``mx.rnn`` cells begin with ``zeros(shape=(0, 200))``; the consumers of the state determine the batch size.
    """
    if util.is_np_shape():
        return shape
    return tuple(n if n > 0 else -1 for n in shape) or None


def stated_shape_rule(in_shapes: list[Any], out_shapes: list[Any], *, shape: tuple[int, ...], **_: Any) -> Any:
    """Infer the shapes of operators whose attributes contain the outputs' shape."""
    stated = stated_shape(shape)
    return in_shapes, [unify(out, stated) for out in out_shapes]


def _stated_dtype_rule(in_types, out_types, *, dtype, **_):
    return in_types, [dtype]


def _constant(name, make, doc, aliases=()):
    def fn(*, shape: Shape = (), dtype: DType = torch.float32, device: Device = None):
        return make(shape, dtype=dtype, device=device)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = doc
    operator = op(name, aliases=aliases)(fn)
    operator.shape_rule(stated_shape_rule)
    operator.dtype_rule(_stated_dtype_rule)
    return operator


zeros = _constant("_zeros", torch.zeros, "Zeros.")
ones = _constant("_ones", torch.ones, "Ones.")


@op("_full", aliases=("_npi_full",))
def full(*, shape: Shape = (), value: float, dtype: DType = torch.float32, device: Device = None):
    """An array filled with one value.

    Example
    -------
    >>> mx.nd.full((2, 2), 7).asnumpy()
    array([[7., 7.],
           [7., 7.]], dtype=float32)
    """
    if not dtype.is_floating_point and dtype is not torch.bool:
        value = int(value)
    return torch.full(shape, value, dtype=dtype, device=device)


full.shape_rule(stated_shape_rule)
full.dtype_rule(_stated_dtype_rule)


@op("_zeros_without_dtype")
def zeros_without_dtype(*, shape: Shape = (), dtype: int = -1, device: Device = None):
    """Return zeros of the type that type inference finds: `dtype` is -1, or the number of a type. float32 if nothing determines it."""
    return torch.zeros(shape, dtype=_flagged(dtype) or torch.float32, device=device)


def _flagged(flag):
    if flag == -1:
        return None
    if flag not in dtypes.FLAG_TO_NAME:
        raise MXNetError(f"_zeros_without_dtype: `dtype` must be -1 or the number of a data type, received {flag}")
    return dtypes.NAME_TO_TORCH[dtypes.FLAG_TO_NAME[flag]]


zeros_without_dtype.shape_rule(stated_shape_rule)


@zeros_without_dtype.dtype_rule
def _(in_types, out_types, *, dtype, **_):
    return in_types, [_flagged(dtype) or out_types[0]]


@op("_eye")
def eye(*, N: int, M: int = 0, k: int = 0, dtype: DType = torch.float32, device: Device = None):
    """A matrix (N, M) with ones on the k-th diagonal, counted upwards from the main one. `M` is `N` if it is not above 0.

    Example
    -------
    >>> mx.nd.eye(2, 3, k=1).asnumpy()
    array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    out = torch.zeros(N, M if M > 0 else N, dtype=dtype, device=device)
    if -out.shape[0] < k < out.shape[1]:
        out.diagonal(k).fill_(1)
    return out


eye.dtype_rule(_stated_dtype_rule)


def _range_length(start, stop, step, repeat):
    """Return the number of elements of `_arange`.

    Raises
    ------
    MXNetError
        If the range is empty.
    """
    if step == 0:
        raise MXNetError(f"_arange: `step` must not be 0, received {step}")
    if repeat < 1:
        raise MXNetError(f"_arange: `repeat` must be at least 1, received {repeat}")
    if (stop - start) * step <= 0:
        raise MXNetError(f"_arange: invalid range (start, stop, step) = ({start:g}, {stop:g}, {step:g}): stop must lie after start "
                         "in the direction of step")
    return math.ceil((stop - start) / step) * repeat


def _ramp(start, step, repeat, length, dtype, device):
    """Return the vector ``start, start + step, ...``, each element `repeat` times, of `length` elements in all.

    Integers are counted in integer steps: MXNet converts `start` and `step` to the type first (range_fwd in init_op.h).
    """
    are_integers = not dtype.is_floating_point or start == int(start) and step == int(step)
    if are_integers and repeat == 1 and int(step):
        first, end = int(start), int(start) + int(step) * length
        # In the type itself where that is exact: eight bytes for each number, written and read again, take most of the time.
        exact = dtype in (torch.float32, torch.float64) and max(abs(first), abs(end)) <= _EXACT
        return torch.arange(first, end, int(step), dtype=dtype if exact else torch.int64, device=device).to(dtype)
    count = torch.arange(length, device=device)
    if repeat > 1:
        count = torch.div(count, repeat, rounding_mode="floor")
    if are_integers:
        return (count * int(step) + int(start)).to(dtype)
    return count.double().mul_(step).add_(start).to(dtype)


@op("_arange", complete_rule="shape", leaves_size_open=lambda a: a["infer_range"] and a["stop"] is None)
def arange(*, start: float, stop: Optional[float] = None, step: float = 1.0, repeat: int = 1, infer_range: bool = False,
           dtype: DType = torch.float32, device: Device = None):
    """Evenly spaced values from `start` up to, not including, `stop`, each repeated.

    Without `stop` the values run from 0 up to `start`. With `infer_range` and no `stop` the consumer's shape determines their number,
    which only a Symbol has.

    Raises
    ------
    MXNetError
        If the range is empty, or its end is to be inferred without a consumer.

    Example
    -------
    >>> mx.nd.arange(2, 4, step=0.5, repeat=2).asnumpy()
    array([2. , 2. , 2.5, 2.5, 3. , 3. , 3.5, 3.5], dtype=float32)
    """
    if stop is None:
        if infer_range:
            raise MXNetError("_arange: with infer_range the length follows from the shape of what consumes it; here nothing tells, "
                             "give `stop`")
        start, stop = 0.0, start
    return _ramp(start, step, repeat, _range_length(start, stop, step, repeat), dtype, device)


@arange.shape_rule
def _(in_shapes, out_shapes, *, start, stop, step, repeat, infer_range, **_):
    if stop is None:
        if infer_range:
            return in_shapes, [unify(out_shapes[0], (-1,))]
        start, stop = 0.0, start
    return in_shapes, [unify(out_shapes[0], (_range_length(start, stop, step, repeat),))]


@arange.sizing
def _(shape, attributes):
    return {"stop": attributes["start"] + attributes["step"] * -(-shape[0] // attributes["repeat"]), "infer_range": False}


arange.dtype_rule(_stated_dtype_rule)


@op("_linspace", complete_rule="shape", aliases=("_npi_linspace",))
def linspace(*, start: float, stop: float, num: int, endpoint: bool = True, dtype: DType = torch.float32, device: Device = None):
    """`num` evenly spaced values from `start` to `stop`, which is the last one unless `endpoint` is False.

    Raises
    ------
    MXNetError
        If `num` is negative.

    Example
    -------
    >>> mx.nd.linspace(0, 1, 5).asnumpy()
    array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    _require_count(num)
    step = (stop - start) / max(num - 1 if endpoint else num, 1)
    return (torch.arange(num, device=device).double() * step + start).to(dtype)


def _require_count(num):
    if num < 0:
        raise MXNetError(f"_linspace: `num` must not be negative, received {num}")


@linspace.shape_rule
def _(in_shapes, out_shapes, *, num, **_):
    _require_count(num)
    return in_shapes, [unify(out_shapes[0], (num,))]


linspace.dtype_rule(_stated_dtype_rule)


@op("_contrib_arange_like", complete_rule="shape", aliases=("_npx_arange_like",), amp=None)
def arange_like(data, *, start: float = 0.0, step: float = 1.0, repeat: int = 1, axis: Optional[int] = None):
    """Evenly spaced values, as many as `data` has elements and in its shape, or with `axis` a vector as long as that axis.

    Each value is repeated `repeat` times; surplus values are left out.

    Raises
    ------
    MXNetError
        If `data` has no such axis.

    Example
    -------
    >>> mx.nd.contrib.arange_like(mx.nd.zeros((2, 3)), axis=1).asnumpy()
    array([0., 1., 2.], dtype=float32)
    """
    length = data.numel() if axis is None else data.shape[normalize_axis("_contrib_arange_like", axis, data.dim())]
    values = _ramp(start, step, repeat, length, data.dtype, data.device)
    return values.reshape(data.shape) if axis is None else values


@arange_like.shape_rule
def _(in_shapes, out_shapes, *, axis, **_):
    data = in_shapes[0]
    if data is None:
        return in_shapes, out_shapes
    return in_shapes, [unify(out_shapes[0], data if axis is None else (data[normalize_axis("_contrib_arange_like", axis, len(data))],))]


@op("_set_value", no_gradient=True)
def set_value(*, src: float, shape: Shape = (1,), device: Device = None):
    """The number `src` everywhere: what ``x[:] = 3`` was once written with, as ``_set_value(src=3, out=x)``."""
    return torch.full(shape, src, device=device)


__all__ = ["stated_shape", "stated_shape_rule"]
