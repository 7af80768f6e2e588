"""Making arrays: ``mx.nd.array``, ``zeros``, ``arange``, ..."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..base import MXNetError
from ..context import current_context, intern_context
from ..ops import dtypes, host_arrays
from ..ops.registry import get
from ..suggestions import shortened, type_names
from . import indexing, mutation_tracking, sparse
from .deferred_errors import throw_all
from .dense import dense_array, filled, not_made, place, sizes
from .dispatch import invoke
from .ndarray import NDArray, context_of, from_torch, index_tensor

if TYPE_CHECKING:
    from ..context import Context
    from .ndarray import DType, Sizes


def array(source_array: Any, ctx: Context | None = None, dtype: DType | None = None) -> NDArray:
    """Return a new array with the values of a list, number, numpy array, torch tensor or NDArray.

    Parameters
    ----------
    source_array : array-like
    ctx : Context, optional
        The current context by default.
    dtype : str or type, optional
        By default that of an NDArray or sparse array; float32 for anything else, numpy arrays included.

    Raises
    ------
    TypeError
        If `source_array` cannot be made an array of `dtype`.

    Example
    -------
    >>> import mxnet as mx
    >>> mx.nd.array([1, 2, 3], dtype='int32').sum().asscalar()
    np.int32(6)
    """
    if not isinstance(source_array, (NDArray, np.ndarray, torch.Tensor)) and hasattr(source_array, "tocsr"):
        return sparse.array(source_array, ctx=ctx, dtype=dtype)
    if isinstance(source_array, NDArray) and source_array._is_sparse:
        return sparse.array(source_array, ctx=ctx, dtype=dtype)
    return dense_array(source_array, ctx, dtype)


def zeros(shape: Sizes, ctx: Context | None = None, dtype: DType | None = None, stype: str | None = None, **kwargs: Any) -> NDArray:
    """Return a new array of zeros; see `full` for the parameters. `stype` may be ``'csr'`` or ``'row_sparse'``.

    Example
    -------
    >>> mx.nd.zeros((1, 2)).asnumpy()
    array([[0., 0.]], dtype=float32)
    """
    if stype not in (None, "default"):
        return sparse.zeros(stype, shape, ctx=ctx, dtype=dtype, **kwargs)
    return filled(shape, 0, ctx, dtype, kwargs)


def ones(shape: Sizes, ctx: Context | None = None, dtype: DType | None = None, **kwargs: Any) -> NDArray:
    """Return a new array of ones; see `full` for the parameters.

    Example
    -------
    >>> mx.nd.ones((1, 2), dtype='int32').asnumpy()
    array([[1, 1]], dtype=int32)
    """
    return filled(shape, 1, ctx, dtype, kwargs)


def full(shape: Sizes, val: float, ctx: Context | None = None, dtype: DType | None = np.float32, out: NDArray | None = None) -> NDArray:
    """Return a new array with the same value everywhere.

    Parameters
    ----------
    shape : int or tuple of int
    val : scalar or array-like
        An array is broadcast to the shape.
    ctx : Context, optional
    dtype : str or type, optional
        float32 by default.
    out : NDArray, optional
        Receives the values.

    Example
    -------
    >>> mx.nd.full((2, 2), 7).asnumpy()
    array([[7., 7.],
           [7., 7.]], dtype=float32)
    """
    if isinstance(val, float) or isinstance(val, int) and abs(val) < 1 << 63:
        return filled(shape, val, ctx, dtype, {"out": out})
    array = empty(shape, ctx, dtype) if out is None else out
    array[:] = val  # as in assignment: arrays are broadcast, texts are parsed, integers wrap around
    return array


def empty(shape: Sizes, ctx: Context | None = None, dtype: DType | None = None, stype: str | None = None) -> NDArray:
    """Return a new array with uninitialized values.

    Example
    -------
    >>> mx.nd.empty((2, 3)).shape
    (2, 3)
    """
    if stype not in (None, "default"):
        return sparse.empty(stype, shape, ctx=ctx, dtype=dtype)
    context, device = place(ctx)
    try:
        tensor = torch.empty(sizes(shape), dtype=dtypes.to_torch(dtype), device=device)
    except RuntimeError as error:
        raise not_made(shape, dtype, error) from error
    return NDArray._new(tensor, context)


def arange(start: float, stop: float | None = None, step: float = 1.0, repeat: int = 1, infer_range: bool | None = None, ctx: Context | None = None,
           dtype: DType | None = np.float32) -> NDArray:
    """Evenly spaced numbers from `start` up to, without, `stop`; each `repeat` times.

    `infer_range` has no meaning outside of a Symbol, where the length can follow from the context; it must be left at None or False.

    Example
    -------
    >>> mx.nd.arange(2, 8, step=2).asnumpy()
    array([2., 4., 6.], dtype=float32)
    >>> mx.nd.arange(2, repeat=3).asnumpy()
    array([0., 0., 0., 1., 1., 1.], dtype=float32)
    """
    if infer_range:
        raise MXNetError(f"arange: infer_range={infer_range!r} needs a Symbol, whose shape inference finds the length")
    return invoke(get("_arange"), (), {"start": start, "stop": stop, "step": step, "repeat": repeat,
                                       "ctx": str(intern_context(ctx)) if ctx is not None else str(current_context()),
                                       "dtype": dtypes.to_torch(dtype)})


def linspace(start: float, stop: float, num: int, endpoint: bool = True, ctx: Context | None = None, dtype: DType | None = np.float32) -> NDArray:
    """`num` evenly spaced numbers from `start` to `stop`, which is left out unless `endpoint`.

    Example
    -------
    >>> mx.nd.linspace(0, 1, 5).asnumpy()
    array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    context, device = place(ctx)
    steps = torch.arange(num, dtype=torch.float64, device=device) * ((stop - start) / max(num - 1 if endpoint else num, 1)) + start
    return NDArray._new(steps.to(dtypes.to_torch(dtype)), context)


def eye(N: int, M: int = 0, k: int = 0, ctx: Context | None = None, dtype: DType | None = None, **kwargs: Any) -> NDArray:
    """Return an N x M array (square if M is 0) with ones on the diagonal number `k`.

    Example
    -------
    >>> mx.nd.eye(2, 3, k=1).asnumpy()
    array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    out = kwargs.pop("out", None)
    if kwargs:
        raise TypeError(f"eye got unexpected arguments {sorted(kwargs)}")
    return invoke(get("_eye"), (), {"N": N, "M": M, "k": k, "dtype": dtypes.to_torch(dtype),
                                    "ctx": str(intern_context(ctx) if ctx is not None else current_context())}, out=out)


def from_numpy(ndarray: np.ndarray, zero_copy: bool = True, array_cls: type[Any] = NDArray) -> Any:
    """Return an NDArray out of a numpy array, sharing its memory if `zero_copy`.

    Raises
    ------
    ValueError
        If memory is to be shared, and the numpy array is not contiguous or of a type that arrays do not hold.

    Example
    -------
    >>> import numpy as np
    >>> values = np.array([1, 2], np.float32)
    >>> x = mx.nd.from_numpy(values)   # they share memory
    >>> x.asnumpy()
    array([1., 2.], dtype=float32)
    """
    if not zero_copy:
        t = host_arrays.as_tensor(ndarray, copy=True)
        return array_cls._new(t, context_of(t))
    if not ndarray.flags["C_CONTIGUOUS"]:
        raise ValueError(f"zero_copy needs a C-contiguous array, received one with strides {ndarray.strides}; pass numpy.ascontiguousarray(x)")
    # As in MXNet the caller's array becomes read-only: two writers of one memory surprise everyone.
    try:
        t = torch.from_numpy(ndarray)
        dtypes.name_of(t.dtype)
    except (TypeError, ValueError, MXNetError):
        raise ValueError(f"zero_copy needs numbers of a native type that MXNet knows, received {shortened(ndarray)}; "
                         "pass zero_copy=False to convert") from None
    ndarray.flags["WRITEABLE"] = False
    mutation_tracking.share(t)
    return array_cls._new(t, context_of(t))


def from_dlpack(dlpack: Any) -> NDArray:
    """Return an NDArray that shares memory with a DLPack capsule, or with any object that offers ``__dlpack__``.

    Example
    -------
    >>> import torch
    >>> mx.nd.from_dlpack(torch.ones(2)).asnumpy()
    array([1., 1.], dtype=float32)
    """
    return from_torch(torch.utils.dlpack.from_dlpack(dlpack))


def to_dlpack_for_read(data: NDArray) -> Any:
    """Return a DLPack capsule that shares the array's memory, for readers.

    Example
    -------
    >>> import torch.utils.dlpack
    >>> x = mx.nd.ones(2)
    >>> torch.utils.dlpack.from_dlpack(mx.nd.to_dlpack_for_read(x))
    tensor([1., 1.])
    """
    return data.to_dlpack_for_read()


def to_dlpack_for_write(data: NDArray) -> Any:
    """Return a DLPack capsule that shares the array's memory, for writers.

    Example
    -------
    >>> import torch.utils.dlpack
    >>> x = mx.nd.ones(2)
    >>> torch.utils.dlpack.from_dlpack(mx.nd.to_dlpack_for_write(x)).mul_(3)
    tensor([3., 3.])
    >>> x.asnumpy()
    array([3., 3.], dtype=float32)
    """
    return data.to_dlpack_for_write()


def waitall() -> None:
    """Return when everything that was asked for is computed.

    Raises
    ------
    MXNetError
        If a computation failed and its error has not been raised before.

    Example
    -------
    >>> x = mx.nd.ones((2, 2)) * 3
    >>> mx.nd.waitall()   # on a GPU: x is computed now
    """
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    throw_all()


def concatenate(arrays: Sequence[NDArray], axis: int = 0, always_copy: bool = True) -> NDArray:
    """Join arrays along an axis. A single array is returned as it is unless `always_copy`.

    Example
    -------
    >>> mx.nd.concatenate([mx.nd.ones((1, 2)), mx.nd.zeros((2, 2))]).asnumpy()
    array([[1., 1.],
           [0., 0.],
           [0., 0.]], dtype=float32)
    """
    if not arrays:
        raise MXNetError(f"concatenate: at least one array is needed, received {arrays!r}")
    if len(arrays) == 1 and not always_copy:
        return arrays[0]
    first = next((a for a in arrays if isinstance(a, NDArray)), None)
    if first is None:
        raise MXNetError(f"concatenate: at least one NDArray among the arrays expected, received only "
                         f"{type_names(arrays)}; call mx.nd.array on one")
    sizes = {a.shape[:axis] + a.shape[axis + 1:] for a in arrays}
    if len(sizes) > 1:
        raise MXNetError(f"concatenate: shapes must agree outside axis {axis}, received {[a.shape for a in arrays]}")
    tensors = [a._raw() if isinstance(a, NDArray) else host_arrays.as_tensor(a) for a in arrays]
    return NDArray._new(torch.cat([t.to(first._data.device) for t in tensors], axis), first._ctx)


def moveaxis(tensor: NDArray, source: Sizes, destination: Sizes) -> NDArray:
    """Return the array with axes moved to new places, the others in order.

    Example
    -------
    >>> mx.nd.moveaxis(mx.nd.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    n = tensor.ndim

    def positions(axes: Sizes, what: str) -> list[int]:
        axes = [axes] if isinstance(axes, int) else list(axes)
        if any(not -n <= a < n for a in axes):
            raise ValueError(f"moveaxis: {what} {axes} names axes that an array of {n} axes does not have")
        axes = [a % n for a in axes]
        if len(set(axes)) < len(axes):
            raise ValueError(f"moveaxis: {what} {axes} names an axis twice")
        return axes

    source, destination = positions(source, "source"), positions(destination, "destination")
    if len(source) != len(destination):
        raise ValueError(f"moveaxis: a destination for each source expected, received {source} and {destination}")
    order = [a for a in range(n) if a not in source]
    for to, a in sorted(zip(destination, source)):
        order.insert(to, a)
    return invoke(get("transpose"), (tensor,), {"axes": tuple(order)})


def histogram(a: NDArray, bins: int | NDArray = 10, range: tuple[float, float] | None = None) -> list[NDArray]:
    """Counts of the values of `a` between bin edges: returns counts and edges.

    `bins` is a number, with `range` the outer edges (of the data by default), or an array of edges.

    Example
    -------
    >>> counts, edges = mx.nd.histogram(mx.nd.array([0, 1, 1, 4]), bins=4, range=(0, 4))
    >>> counts.asnumpy(), edges.asnumpy()
    (array([1, 2, 0, 1]), array([0., 1., 2., 3., 4.], dtype=float32))
    """
    if isinstance(bins, NDArray):
        return invoke(get("_histogram"), (a, bins), {})
    if not isinstance(bins, (int, np.integer)):
        raise ValueError(f"histogram: bins must be a number of bins or an NDArray of edges, received {type(bins).__name__}")
    if range is None:
        range = (a.min().asscalar(), a.max().asscalar())
        if range[0] == range[1]:
            range = (range[0] - 0.5, range[1] + 0.5)
    return invoke(get("_histogram"), (a,), {"bin_cnt": int(bins), "range": range})


def split_v2(ary: NDArray, indices_or_sections: int | Sequence[int], axis: int = 0, squeeze_axis: bool = False) -> Any:
    """Cut an array along an axis into equal sections, or at the given indices. Returns a list.

    Example
    -------
    >>> first, second = mx.nd.split_v2(mx.nd.arange(5), (2,))
    >>> first.asnumpy(), second.asnumpy()
    (array([0., 1.], dtype=float32), array([2., 3., 4.], dtype=float32))
    """
    if isinstance(indices_or_sections, (int, np.integer)):
        if ary.shape[axis] % indices_or_sections:
            raise ValueError(f"split_v2: {ary.shape[axis]} entries of axis {axis} make no {indices_or_sections} equal parts")
        attrs = {"sections": int(indices_or_sections), "indices": ()}
    elif isinstance(indices_or_sections, (tuple, list)):
        attrs = {"indices": (0, *indices_or_sections), "sections": 0}
    else:
        raise ValueError(f"indices_or_sections must be an int or a tuple of ints, received {shortened(indices_or_sections)}")
    return invoke(get("_split_v2"), (ary,), {**attrs, "axis": axis, "squeeze_axis": squeeze_axis})


def onehot_encode(indices: NDArray, out: NDArray) -> NDArray:
    """Write the one-hot rows of `indices` into `out`, whose second axis gives their length.

    Example
    -------
    >>> mx.nd.onehot_encode(mx.nd.array([2, 0]), mx.nd.empty((2, 3))).asnumpy()
    array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)
    """
    return invoke(get("one_hot"), (indices,), {"depth": out.shape[1], "dtype": out._data.dtype}, out=out)


def imdecode(str_img: bytes | NDArray, clip_rect: tuple[int, int, int, int] = (0, 0, 0, 0), out: NDArray | None = None, index: int = 0,
             channels: int = 3, mean: NDArray | None = None) -> NDArray:
    """Decode an image (old interface; new programs use ``mx.image.imdecode``): float32, (channels, height, width).

    `clip_rect` cuts out ``(x0, y0, x1, y1)``; `mean` is subtracted; with `out` of four axes, image number `index` is written.

    Example
    -------
    >>> import cv2, numpy as np
    >>> _, content = cv2.imencode('.png', np.zeros((4, 6, 3), np.uint8))
    >>> mx.nd.imdecode(content.tobytes()).shape
    (1, 3, 4, 6)
    """
    content = str_img if isinstance(str_img, NDArray) else from_torch(torch.frombuffer(bytearray(str_img), dtype=torch.uint8))
    image = invoke(get("_cvimdecode"), (content,), {"flag": 1 if channels == 3 else 0})
    x0, y0, x1, y1 = clip_rect
    if x1 > x0 and y1 > y0:
        image = image[y0:y1, x0:x1]
    values = NDArray._new(image._raw().permute(2, 0, 1).float().contiguous(), image._ctx)
    if mean is not None:
        values = values - mean
    if out is None:
        return values.expand_dims(0)
    if out.ndim == 4:
        out[index] = values
    else:
        out[:] = values
    return out


def get_indexing_dispatch_code(key: Any) -> int:
    """0 for an index of integers and slices, 1 for one that holds arrays, -1 for one that is no index.

    Example
    -------
    >>> code = mx.nd.get_indexing_dispatch_code((slice(0, 2), 1))
    >>> code == mx.nd.get_indexing_dispatch_code((slice(None), 0))
    True
    """
    arrays = [k for k in (key if isinstance(key, tuple) else (key,)) if not indexing.is_basic(k) and not isinstance(k, bool)]
    try:
        for k in arrays:
            index_tensor(k)
    except ValueError:
        return indexing.UNSUPPORTED
    return indexing.ADVANCED if arrays else indexing.BASIC


def indexing_key_expand_implicit_axes(key: Any, shape: Sequence[int]) -> tuple[Any, ...]:
    """Return the index as a tuple with an entry for every axis, Ellipsis written out.

    Example
    -------
    >>> mx.nd.indexing_key_expand_implicit_axes((0, ..., 1), (2, 3, 4, 5))
    (0, slice(None, None, None), slice(None, None, None), 1)
    """
    return indexing.expand(key, len(shape))


def get_oshape_of_gather_nd_op(dshape: Sequence[int], ishape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of ``gather_nd(data, indices)`` from the shapes of both.

    Example
    -------
    >>> mx.nd.get_oshape_of_gather_nd_op((4, 5, 6), (2, 7))
    (7, 6)
    """
    if not ishape or ishape[0] > len(dshape):
        raise ValueError(f"gather_nd: indices of shape {ishape} select up to axis {ishape[0] if ishape else 0}, data has {len(dshape)}")
    return tuple(ishape[1:]) + tuple(dshape[ishape[0]:])
