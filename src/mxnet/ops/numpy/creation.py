"""NumPy operators that make arrays out of attributes."""
import math
from typing import Any

import torch

from ...base import MXNetError
from ..creation import stated_shape, stated_shape_rule
from ..docstrings import with_example
from ..registry import op
from ..schema import Device, DType, Optional, Shape
from .common import from_dtype_or_input, shape_of_inputs


def stated_type(in_types: Any, out_types: Any, *, dtype: Any, **_: Any) -> Any:
    return in_types, [dtype]


def _constant(name, make, doc, example):
    def fn(*, shape: Shape = (), dtype: DType = torch.float32, device: Device = None):
        return make(shape, dtype=dtype, device=device)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = with_example(doc, example)
    operator = op(f"_npi_{name}")(fn)
    operator.shape_rule(stated_shape_rule)
    operator.dtype_rule(stated_type)


_constant("zeros", torch.zeros, "An array of zeros, float32 by default.", "mx.np.zeros((2, 2)) -> array([[0., 0.], [0., 0.]])")
_constant("ones", torch.ones, "An array of ones, float32 by default.", "mx.np.ones((2, 2)) -> array([[1., 1.], [1., 1.]])")


@op("_npi_identity", complete_rule="shape")
def identity(*, shape: Shape = (), dtype: DType = torch.float32, device: Device = None):
    """A square matrix with ones on its diagonal and zeros elsewhere.

    Raises
    ------
    MXNetError
        If `shape` does not begin with a size.

    Example
    -------
    >>> mx.np.identity(2)
    array([[1., 0.],
           [0., 1.]])
    """
    return torch.eye(*_square(shape), dtype=dtype, device=device)


def _square(shape):
    if not shape or shape[0] < 0:
        raise MXNetError(f"_npi_identity: `shape` must begin with the number of rows, received {shape}")
    return shape[:1] * 2


identity.shape_rule(shape_of_inputs(lambda *, shape, **_: stated_shape(_square(shape))))


@op("_npi_eye")
def eye(*, N: int, M: Optional[int] = None, k: int = 0, dtype: DType = torch.float32, device: Device = None):
    """A matrix (N, M) with ones on the k-th diagonal, counted upwards from the main one. `M` is `N` by default.

    Example
    -------
    >>> mx.np.eye(2, 3, k=1)
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    out = torch.zeros(N, N if M is None else M, dtype=dtype, device=device)
    if -out.shape[0] < k < out.shape[1]:
        out.diagonal(k).fill_(1)
    return out


@op("_npi_arange", complete_rule="shape")
def arange(*, start: float, stop: Optional[float] = None, step: float = 1.0, repeat: int = 1, infer_range: bool = False,
           dtype: DType = torch.float32, device: Device = None):
    """``start``, ``start + step``, ... up to, not including, `stop`; from 0 to `start` if that is the only limit.

    Raises
    ------
    MXNetError
        If `step` is 0.

    Example
    -------
    >>> mx.np.arange(2, 4, 0.5)
    array([2. , 2.5, 3. , 3.5])
    """
    count = _arange_size(start, stop, step, repeat, infer_range)
    start = 0.0 if stop is None else start
    places = torch.arange(count, device=device)
    # For integers the step is one, too: it is truncated before it is multiplied.
    are_integers = not dtype.is_floating_point or start == int(start) and step == int(step)
    return (places * int(step) + int(start) if are_integers else places.double() * step + start).to(dtype)


def _arange_size(start, stop, step, repeat, infer_range):
    if stop is None:
        if infer_range:
            raise MXNetError("_npi_arange: `stop` must be given, received None; it cannot be inferred")
        start, stop = 0.0, start
    if repeat != 1:
        raise MXNetError(f"_npi_arange: only repeat=1 is supported, received {repeat}; use repeat")
    if step == 0:
        raise MXNetError(f"_npi_arange: `step` must not be 0, received {step}")
    return max(math.ceil((stop - start) / step), 0)


arange.shape_rule(shape_of_inputs(lambda *, dtype, **range_: (_arange_size(**range_),)))


@op("_npi_logspace", complete_rule="shape")
def logspace(*, start: float, stop: float, num: int, endpoint: bool = True, base: float = 10.0, dtype: DType = torch.float32,
             device: Device = None):
    """`num` numbers from ``base**start`` to ``base**stop`` with constant ratios.

    Raises
    ------
    MXNetError
        If `num` is negative.

    Example
    -------
    >>> mx.np.logspace(0, 2, 3)
    array([  1.,  10., 100.])
    """
    steps = max(num - 1 if endpoint else num, 1)
    exponents = torch.arange(*_logspace_shape(num), dtype=torch.float64, device=device) * ((stop - start) / steps) + start
    return torch.pow(base, exponents).to(dtype)


def _logspace_shape(num, **_):
    if num < 0:
        raise MXNetError(f"_npi_logspace: `num` must be at least 0, received {num}")
    return (num,)


logspace.shape_rule(shape_of_inputs(_logspace_shape))


@op("_npi_full_like")
def full_like(a, *, fill_value: float, dtype: Optional[DType] = None, device: Device = None):
    """One number in the shape of `a`.

    Example
    -------
    >>> mx.np.full_like(mx.np.zeros((2, 2)), 7)
    array([[7., 7.],
           [7., 7.]])
    """
    target = dtype or a.dtype
    return torch.full(a.shape, fill_value if target.is_floating_point else bool(fill_value) if target is torch.bool else int(fill_value),
                      dtype=target, device=a.device)


full_like.dtype_rule(from_dtype_or_input)


@op("_npi_indices", complete_rule="shape")
def indices(*, dimensions: Shape, dtype: DType = torch.int32, device: Device = None):
    """The indices of a grid: one array of the shape `dimensions` for each axis, stacked.

    Raises
    ------
    MXNetError
        If a size is negative.

    Example
    -------
    >>> mx.np.indices((2, 3))
    array([[[0, 0, 0],
            [1, 1, 1]],
           [[0, 1, 2],
            [0, 1, 2]]], dtype=int32)
    """
    shape = _grid_shape(dimensions)
    if 0 in shape:  # whatever the other sizes are
        return torch.empty(shape, dtype=dtype, device=device)
    return torch.stack(torch.meshgrid(*(torch.arange(n, dtype=dtype, device=device) for n in dimensions), indexing="ij"))


def _grid_shape(dimensions, **_):
    if min(dimensions, default=0) < 0:
        raise MXNetError(f"_npi_indices: sizes must not be negative, received {dimensions}")
    return (len(dimensions), *dimensions)


indices.shape_rule(shape_of_inputs(_grid_shape))


def _window(name, function, doc, example):
    def fn(*, M: Optional[int] = None, dtype: DType = torch.float32, device: Device = None):
        count = max(M or 0, 0)
        if count == 1:
            return torch.ones(1, dtype=dtype, device=device)
        angle = torch.arange(count, dtype=torch.float64, device=device) * (2 * math.pi / max(count - 1, 1))
        return function(angle).to(dtype)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = with_example(doc, example)
    operator = op(f"_npi_{name}", complete_rule="shape")(fn)
    operator.dtype_rule(stated_type)
    operator.shape_rule(shape_of_inputs(lambda *, M, **_: (max(M or 0, 0),)))


_window("hanning", lambda x: 0.5 - 0.5 * torch.cos(x), "The Hann window of `M` points.", "mx.np.hanning(3) -> array([0., 1., 0.])")
_window("hamming", lambda x: 0.54 - 0.46 * torch.cos(x), "The Hamming window of `M` points.",
        "mx.np.hamming(3) -> array([0.08, 1. , 0.08])")
_window("blackman", lambda x: 0.42 - 0.5 * torch.cos(x) + 0.08 * torch.cos(2 * x), "The Blackman window of `M` points.",
        "mx.np.blackman(4)[1:3] -> array([0.63, 0.63])")

for _operator in (identity, eye, arange, logspace, indices):
    _operator.dtype_rule(stated_type)
