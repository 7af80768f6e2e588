"""Making arrays from values, files, and the shapes of others: the functions for arrays alone, not Symbols."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as onp
import torch

from ..context import ctx_or_device, current_context, intern_context
from ..ndarray import NDArray
from ..ndarray.creation import array as _nd_array
from ..ndarray.creation import from_dlpack as _nd_from_dlpack
from ..ndarray.dispatch import in_graph, mode
from ..ops import dtypes, host_arrays
from ..suggestions import shortened
from ..util import is_np_array, version
from .frontend import TABLE, arrays
from .multiarray import ndarray

if TYPE_CHECKING:
    from ..context import Context


def array(object: Any, dtype: Any = None, ctx: Context | None = None, *, device: Context | None = None) -> ndarray:
    """Return a new array with the values of nested lists, numbers, NumPy or ``mx.np`` arrays.

    Parameters
    ----------
    dtype : str or type, optional
        By default that of an array; float32 for lists and numbers, and after ``mx.util.set_version('2.0')`` for NumPy's arrays of float64.
    ctx : Context, optional
        The current context by default. `device` is its name in MXNet 2.

    Raises
    ------
    ValueError
        If `object` is an ``mx.nd`` array: ``x.as_np_ndarray()`` shares its memory.
    TypeError
        If it is not made of numbers.
    """
    if isinstance(object, NDArray) and not isinstance(object, ndarray):
        raise ValueError("np.array: received an NDArray of mx.nd; call as_np_ndarray() on it, which copies nothing")
    ctx = ctx_or_device(ctx, device)
    context = intern_context(ctx) if ctx is not None else current_context()
    if isinstance(object, (ndarray, torch.Tensor)):
        values = object._raw() if isinstance(object, ndarray) else object
        if isinstance(object, ndarray) and mode.recording and in_graph(object):
            empty = torch.empty(object.shape, dtype=values.dtype if dtype is None else dtypes.to_torch(dtype), device=context.torch_device)
            copy = ndarray._new(empty, context)
            copy._record_copy(object)
            return copy
        made = _nd_array(values, context, values.dtype if dtype is None else dtype)
        return ndarray._new(made._data, context)
    if isinstance(object, (onp.ndarray, onp.generic)):
        if dtype is None and object.dtype == onp.float64 and version() == "2.0":
            dtype = "float32"
        if dtype is None:
            return of_official(onp.asarray(object), context)
        return ndarray._new(_nd_array(onp.asarray(object), context, dtype)._data, context)
    try:
        dtype = dtypes.to_torch(dtype)
        values = onp.array(_plain(object))
        if values.dtype.kind == "c":
            raise TypeError("some are complex")
        if dtype is not torch.bfloat16:  # numbers that do not fit wrap around
            values = values.astype(dtypes.to_numpy(dtype))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{shortened(object)} is not made of numbers of one depth: {error}") from None
    return ndarray._new(_nd_array(values, context, dtype)._data, context)


def of_official(values: onp.ndarray[Any, Any], ctx: Context) -> ndarray:
    """Return a new array on a device with the values and the type of a NumPy array."""
    return ndarray._new(host_arrays.sent(host_arrays.as_tensor(values, copy=True), ctx.torch_device), ctx)


def asarray(obj: Any, dtype: Any = None, device: Context | None = None, copy: bool | None = None) -> ndarray:
    """Return an array with the values of `obj`: `obj` itself if it is an ``mx.np`` array that needs no conversion and `copy` is not True.

    Parameters
    ----------
    obj : array, number, nested lists of these, or an object with ``__dlpack__``
    dtype : str or type, optional
        By default that of an array; float32 for lists and numbers.
    copy : bool, optional
        True copies in any case, False never; by default only where it must be.

    Raises
    ------
    ValueError
        If `copy` is False and the values must be copied.

    Example
    -------
    >>> x = mx.np.ones(2)
    >>> mx.np.asarray(x) is x, mx.np.asarray([1, 2], dtype='int32')
    (True, array([1, 2], dtype=int32))
    """
    shares = isinstance(obj, ndarray) or hasattr(obj, "__dlpack__") and not isinstance(obj, (NDArray, onp.ndarray, onp.generic))
    if not shares:
        if copy is False:
            raise ValueError(f"asarray: {shortened(obj)} needs a copy, and copy=False forbids it")
        return array(obj, dtype, device)
    source = obj if isinstance(obj, ndarray) else from_dlpack(obj)
    result = source if device is None else source.as_in_ctx(intern_context(device))
    result = result if dtype is None else result.astype(dtype, copy=False)
    if copy is False and result is not source:
        raise ValueError(f"asarray: {result.dtype} on {result.ctx} needs a copy of an array of {source.dtype} on {source.ctx}, and copy=False "
                         "forbids it")
    return result.copy() if copy and result is source else result


def from_dlpack(x: Any) -> ndarray:
    """Return an array that shares memory with a DLPack capsule, or with any object that offers ``__dlpack__``.

    Example
    -------
    >>> mx.np.from_dlpack(mx.np.ones(2))
    array([1., 1.])
    """
    return _nd_from_dlpack(x).as_np_ndarray()


def fill_diagonal(a: ndarray, val: Any, wrap: bool = False) -> None:
    """Write a number, or the elements of an array in turn, to the main diagonal of `a`; with `wrap` begin anew below the end of a tall matrix.

    Raises
    ------
    ValueError
        If `a` has fewer than two axes, or more than two of unlike sizes.

    Example
    -------
    >>> x = mx.np.zeros((2, 2))
    >>> mx.np.fill_diagonal(x, 5)
    >>> x
    array([[5., 0.],
           [0., 5.]])
    """
    if a.ndim < 2 or a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError(f"fill_diagonal: a matrix, or an array whose axes have one size, expected; received shape {a.shape}")
    step = a.shape[1] + 1 if a.ndim == 2 else sum(a.shape[0]**i for i in range(a.ndim))
    end = a.shape[1]**2 if a.ndim == 2 and not wrap else a.size
    places = onp.arange(0, min(end, a.size), step)
    values = onp.resize(_plain(val) if isinstance(val, (NDArray, list, tuple)) else onp.asarray(val), places.shape) if places.size else places
    a[tuple(onp.unravel_index(places, a.shape))] = onp.asarray(values)


def default_array(source_array: Any, device: Context | None = None, dtype: Any = None) -> NDArray:
    """Return a new array of ``mx.np`` if NumPy array semantics is active, else of ``mx.nd``, with the values of an array, numbers or nested lists.

    Example
    -------
    >>> import mxnet as mx
    >>> mx.util.default_array([1, 2]).asnumpy()
    array([1., 2.], dtype=float32)
    """
    return array(source_array, dtype, device) if is_np_array() else _nd_array(source_array, device, dtype)


def _plain(source: Any) -> Any:
    """Nested lists with the arrays in them as NumPy's."""
    if isinstance(source, NDArray):
        return source.asnumpy()
    return [_plain(s) for s in source] if isinstance(source, (list, tuple)) else source


def empty(shape: Any, dtype: Any = None, order: str = "C", ctx: Context | None = None, *, device: Context | None = None) -> ndarray:
    """Return an uninitialized array, float32 by default."""
    return TABLE[""]["zeros"](arrays, shape, dtype, order, ctx_or_device(ctx, device))


def shape(a: Any) -> tuple[int, ...]:
    """Return the sizes of the axes."""
    return a.shape if isinstance(a, NDArray) else onp.shape(a)


def broadcast_arrays(*args: Any) -> list[ndarray]:
    """Return the arrays broadcast against each other, as a list."""
    target = onp.broadcast_shapes(*(a.shape for a in args))
    return [a if a.shape == target else TABLE[""]["broadcast_to"](arrays, a, target) for a in args]


def meshgrid(*xi: Any, **kwargs: Any) -> list[ndarray]:
    """Coordinate arrays of the grid that vectors span, as a list.

    Parameters
    ----------
    indexing : {'xy', 'ij'}
        The direction of the first vector: along columns or rows.
    sparse : bool
        Leave sizes of 1 where a coordinate does not change.
    copy : bool
        Return copies, the default; otherwise arrays share memory where possible.
    """
    unknown = set(kwargs) - {"indexing", "sparse", "copy"}
    if unknown:
        raise TypeError(f"meshgrid takes indexing, sparse and copy by name, received {sorted(unknown)[0]!r}")
    order = kwargs.get("indexing", "xy")
    if order not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', received {shortened(order)}")
    n = len(xi)
    out = [x.reshape((1,) * i + (-1,) + (1,) * (n - i - 1)) for i, x in enumerate(xi)]
    if order == "xy" and n > 1:
        out[0], out[1] = (x.reshape(s) for x, s in ((out[0], (1, -1) + (1,) * (n - 2)), (out[1], (-1, 1) + (1,) * (n - 2))))
    if not kwargs.get("sparse", False):
        out = broadcast_arrays(*out)
    return [x.copy() for x in out] if kwargs.get("copy", True) else out


def genfromtxt(*args: Any, **kwargs: Any) -> ndarray:
    """Read a text file of numbers with ``numpy.genfromtxt``; float32 unless `dtype` is given."""
    ctx = ctx_or_device(kwargs.pop("ctx", None), kwargs.pop("device", None))
    dtype = kwargs.get("dtype", float)
    values = onp.genfromtxt(*args, **kwargs)
    return array(values, dtype="float32" if dtype is float else values.dtype, ctx=ctx)


def set_printoptions(precision: int | None = None, threshold: int | None = None, **kwarg: Any) -> None:
    """Set the options for printing arrays; see ``numpy.set_printoptions``."""
    onp.set_printoptions(precision, threshold, **kwarg)
