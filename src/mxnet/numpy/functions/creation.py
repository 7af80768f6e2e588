"""Functions that make arrays."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as onp

from ...suggestions import shortened
from ..frontend import NUMBERS, Array, function

if TYPE_CHECKING:
    from ..argument_types import ContextLike, DTypeLike, Sizes


def _shape(shape):
    return (int(shape),) if isinstance(shape, (int, onp.integer)) else tuple(int(n) for n in shape)


def _require_c(order):
    if order != "C":
        raise NotImplementedError(f"only order='C' is supported, received {shortened(order)}")


@function()
def zeros(F: Any, shape: Sizes, dtype: DTypeLike | None = None, order: str = "C", ctx: ContextLike | None = None) -> Array:
    """An array of zeros, float32 by default."""
    _require_c(order)
    return F.call("_npi_zeros", shape=_shape(shape), ctx=F.context(ctx), dtype="float32" if dtype is None else dtype)


@function()
def ones(F: Any, shape: Sizes, dtype: DTypeLike | None = None, order: str = "C", ctx: ContextLike | None = None) -> Array:
    """An array of ones, float32 by default."""
    _require_c(order)
    return F.call("_npi_ones", shape=_shape(shape), ctx=F.context(ctx), dtype="float32" if dtype is None else dtype)


@function()
def full(F: Any, shape: Sizes, fill_value: Any, dtype: DTypeLike | None = None, order: str = "C", ctx: ContextLike | None = None,
         out: Array | None = None) -> Array:
    """An array filled with one value: float32 by default, or bool for a boolean value.

    Example
    -------
    >>> mx.np.full((2, 2), 7)
    array([[7., 7.],
           [7., 7.]])
    """
    _require_c(order)
    if F.is_array(fill_value):
        filled = F.call("_npi_broadcast_to", fill_value, shape=_shape(shape), out=out)
        return filled if dtype is None else filled.astype(dtype)
    if dtype is None:
        dtype = "bool" if isinstance(fill_value, bool) else "float32"
    return F.call("_npi_full", shape=_shape(shape), value=fill_value, ctx=F.context(ctx), dtype=dtype, out=out)


@function()
def full_like(F: Any, a: Any, fill_value: Any, dtype: DTypeLike | None = None, order: str = "C", ctx: ContextLike | None = None,
              out: Array | None = None) -> Array:
    """One number in the shape, and by default the type, of `a`."""
    _require_c(order)
    return F.call("_npi_full_like", a, fill_value=fill_value, dtype=dtype, ctx=F.context(ctx), out=out)


@function()
def zeros_like(F: Any, a: Any, dtype: DTypeLike | None = None, order: str = "C", ctx: ContextLike | None = None, out: Array | None = None) -> Array:
    """Zeros in the shape, and by default the type, of `a`.

    Example
    -------
    >>> mx.np.zeros_like(mx.np.array([[1, 2, 3]]))
    array([[0., 0., 0.]])
    """
    return full_like(F, a, 0, dtype, order, ctx, out)


@function()
def ones_like(F: Any, a: Any, dtype: DTypeLike | None = None, order: str = "C", ctx: ContextLike | None = None, out: Array | None = None) -> Array:
    """Ones in the shape, and by default the type, of `a`.

    Example
    -------
    >>> mx.np.ones_like(mx.np.array([[1, 2, 3]]))
    array([[1., 1., 1.]])
    """
    return full_like(F, a, 1, dtype, order, ctx, out)


@function()
def empty_like(F: Any, prototype: Any, dtype: DTypeLike | None = None, order: str = "C", subok: bool = False, shape: Any = None,
               ctx: ContextLike | None = None) -> Array:
    """An array in the shape, and by default the type, of `prototype`, uninitialized.

    Example
    -------
    >>> mx.np.empty_like(mx.np.array([[1, 2, 3]])).shape
    (1, 3)
    """
    _require_c(order)
    if subok or shape is not None:
        raise NotImplementedError("empty_like supports neither `subok` nor another `shape`")
    return full_like(F, prototype, 0, dtype, order, ctx)


@function()
def arange(F: Any, start: Any, stop: Any = None, step: Any = 1, dtype: DTypeLike | None = None, ctx: ContextLike | None = None) -> Array:
    """``start``, ``start + step``, ... up to, not including, `stop`; from 0 to `start` if that is the only limit. float32 by default.

    Raises
    ------
    ValueError
        If `step` is 0.
    """
    if step is None:
        step = 1
    if step == 0:
        raise ValueError(f"step cannot be 0, received {step}")
    if stop is None:
        start, stop = 0, start
    return F.call("_npi_arange", start=start, stop=stop, step=step, dtype="float32" if dtype is None else dtype, ctx=F.context(ctx))


def _interval(name, start, stop, axis, kinds):
    if not isinstance(start, NUMBERS) or not isinstance(stop, NUMBERS):
        raise NotImplementedError(f"start and stop only support {kinds}")
    if axis != 0:
        raise NotImplementedError(f"axis must be 0, received {axis}")


@function()
def linspace(F: Any, start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: DTypeLike | None = None,
             axis: Sizes | None = 0, ctx: ContextLike | None = None) -> Array | Any:
    """`num` numbers from `start` to `stop` with constant differences; with `retstep` also the difference.

    Example
    -------
    >>> mx.np.linspace(0, 1, 5)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    _interval("linspace", start, stop, axis, "int")
    out = F.call("_npi_linspace", start=start, stop=stop, num=num, endpoint=endpoint, ctx=F.context(ctx), dtype=dtype)
    if not retstep:
        return out
    steps = num - 1 if endpoint else num
    return out, (stop - start) / steps if steps else math.nan


@function()
def logspace(F: Any, start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: DTypeLike | None = None,
             axis: Sizes | None = 0, ctx: ContextLike | None = None) -> Array:
    """`num` numbers from ``base**start`` to ``base**stop`` with constant ratios."""
    _interval("logspace", start, stop, axis, "int and float")
    return F.call("_npi_logspace", start=start, stop=stop, num=num, endpoint=endpoint, base=base, ctx=F.context(ctx), dtype=dtype)


@function()
def eye(F: Any, N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = "float32", ctx: ContextLike | None = None,
        **kwargs: Any) -> Array:
    """A matrix (N, M) with ones on the k-th diagonal, counted upwards from the main one."""
    if "order" in kwargs:
        raise NotImplementedError("function eye does not support parameter order")
    return F.call("_npi_eye", N=N, M=M, k=k, ctx=F.context(ctx), dtype=dtype)


@function()
def identity(F: Any, n: int, dtype: DTypeLike | None = None, ctx: ContextLike | None = None) -> Array:
    """A square matrix with ones on its diagonal."""
    if not isinstance(n, int):
        raise TypeError(f"Input 'n' should be an integer, received {shortened(n)}")
    if n < 0:
        raise ValueError(f"Input 'n' cannot be negative, received {n}")
    return F.call("_npi_identity", shape=(n, n), ctx=F.context(ctx), dtype="float32" if dtype is None else dtype)


@function()
def indices(F: Any, dimensions: Any, dtype: DTypeLike | None = "int32", ctx: ContextLike | None = None) -> Array:
    """The indices of a grid: one array of the shape `dimensions` for each axis, stacked."""
    if not isinstance(dimensions, (tuple, list)):
        raise ValueError(f"indices: dimensions must be a tuple or list of integers, received {shortened(dimensions)}")
    return F.call("_npi_indices", dimensions=tuple(dimensions), dtype=dtype, ctx=F.context(ctx))


def _window(name):
    def fn(F, M, dtype="float32", ctx=None):
        return F.call(f"_npi_{name}", M=M, dtype=dtype, ctx=F.context(ctx))

    fn.__name__ = name
    fn.__doc__ = f"The {name.capitalize()} window of `M` points."
    function()(fn)


for _name in ("hanning", "hamming", "blackman"):
    _window(_name)


@function()
def tril(F: Any, m: Any, k: int = 0) -> Array:
    """Matrices with zeros above the `k`-th diagonal."""
    return F.call("_npi_tril", m, k=k)


@function()
def triu(F: Any, m: Any, k: int = 0) -> Array:
    """Matrices with zeros below the `k`-th diagonal."""
    return F.call("_npi_triu", m, k=k)


@function()
def tri(F: Any, N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, ctx: ContextLike | None = None) -> Array:
    """A matrix (N, M) with ones on and below the `k`-th diagonal, float32 by default."""
    return F.call("_npi_tri", N=N, M=M, k=k, ctx=F.context(ctx), dtype="float32" if dtype is None else dtype)


@function()
def tril_indices(F: Any, n: int, k: int = 0, m: int | None = None) -> tuple[Array, ...]:
    """The indices of the elements on and below the `k`-th diagonal of a matrix (n, m): a tuple of the rows and the columns.

    Example
    -------
    >>> mx.np.tril_indices(2)
    (array([0, 1, 1], dtype=int64), array([0, 0, 1], dtype=int64))
    """
    rows = F.call("_npi_nonzero", tri(F, n, m, k, "int32"))
    return rows[:, 0], rows[:, 1]


@function()
def triu_indices(F: Any, n: int, k: int = 0, m: int | None = None, ctx: ContextLike | None = None) -> tuple[Array, ...]:
    """The indices of the elements on and above the `k`-th diagonal of a matrix (n, m): a tuple of the rows and the columns.

    Example
    -------
    >>> mx.np.triu_indices(2)
    (array([0, 0, 1], dtype=int64), array([0, 1, 1], dtype=int64))
    """
    rows = F.call("_npi_nonzero", F.call_scalar("_npi_equal_scalar", tri(F, n, m, k - 1, "int32", ctx), 0))
    return rows[:, 0], rows[:, 1]


@function()
def diag(F: Any, array: Any, k: int = 0) -> Array:
    """The `k`-th diagonal of a matrix, or a matrix with a vector as its `k`-th diagonal."""
    return F.call("_np_diag", array, k=k)


@function()
def diagflat(F: Any, array: Any, k: int = 0) -> Array:
    """A matrix with the flattened array as its `k`-th diagonal."""
    return F.call("_np_diagflat", array, k=k)
