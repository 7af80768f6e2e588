"""Operators that order elements: sort, argsort, topk."""
from typing import Literal, Optional

import torch

from ..base import MXNetError
from . import integers, packed_sort
from .axes import normalize_axis
from .registry import op
from .schema import DType
from .shapes import product, unify

_PART = 1 << 14  # elements: torch.topk makes pairs of values and positions, which for so many stay in the caches


def _flat(data, axis, operator):
    """(data, axis) with axis=None meaning the flattened array."""
    return (data.reshape(-1), 0) if axis is None else (data, normalize_axis(operator, axis, data.dim()))


def _sorted(data, axis, count, descending, stable=True):
    """Return the first `count` elements along `axis` in order, and their positions."""
    plain = integers.plain(data)
    if packed_sort.suits(plain, axis, count):
        places = packed_sort.first(plain.detach(), axis, count, descending)
    elif plain.is_cpu and count * 8 <= _PART and plain.shape[axis] >= 8 * _PART:
        places = _first_by_parts(plain.detach(), axis, count, descending)
    elif plain is data:
        return _sorted_by_torch(data, axis, count, descending, stable)
    else:
        places = _sorted_by_torch(plain, axis, count, descending, stable)[1]
    return data.gather(axis, places), places


def _first_by_parts(data, axis, count, descending):
    """Return the positions of the first `count` elements along a long axis: the first of each part compete."""
    rows = data.movedim(axis, -1)
    size = rows.shape[-1]
    even = size - size % _PART
    firsts = [torch.topk(rows[..., :even].unflatten(-1, (-1, _PART)), count, -1, largest=descending)[1].add_(
        torch.arange(0, even, _PART).unsqueeze(-1)).flatten(-2)]
    if size > even:
        firsts.append(torch.topk(rows[..., even:], min(count, size - even), -1, largest=descending)[1].add_(even))
    candidates = torch.cat(firsts, -1)
    best = torch.topk(rows.gather(-1, candidates), count, -1, largest=descending)[1]
    return candidates.gather(-1, best).movedim(-1, axis)


def _sorted_by_torch(data, axis, count, descending, stable):
    if count * 8 <= data.shape[axis]:
        return torch.topk(data, count, axis, largest=descending)
    # MXNet orders equal elements by index when it takes a large share of them.
    results = torch.sort(data, dim=axis, descending=descending, stable=stable)
    return results if count == data.shape[axis] else [t.narrow(axis, 0, count) for t in results]


@op("sort", aliases=("_npi_sort",), complete_rule="shape", output_names=("output0",), method=True)
def sort(data, *, axis: Optional[int] = -1, is_ascend: bool = True):
    """Sort along `axis`, or the flattened array if it is None.

    Raises
    ------
    MXNetError
        If `data` has no such axis.

    Example
    -------
    >>> mx.nd.sort(mx.nd.array([[3, 1, 2], [5, 6, 4]])).asnumpy()
    array([[1., 2., 3.],
           [4., 5., 6.]], dtype=float32)
    >>> mx.nd.sort(mx.nd.array([[3, 1, 2]]), is_ascend=False).asnumpy()
    array([[3., 2., 1.]], dtype=float32)
    """
    data, axis = _flat(data, axis, "sort")
    return _sorted(data, axis, data.shape[axis], not is_ascend, stable=False)[0]


@op("argsort", aliases=("_npi_argsort",), complete_rule="shape", method=True, amp="float32")
def argsort(data, *, axis: Optional[int] = -1, is_ascend: bool = True, dtype: DType = torch.float32):
    """The indices that sort along `axis` (the flattened array, if it is None), as `dtype`; equal elements keep their order.

    Raises
    ------
    MXNetError
        If `data` has no such axis.

    Example
    -------
    >>> mx.nd.argsort(mx.nd.array([30, 10, 20]), dtype='int32').asnumpy()
    array([1, 2, 0], dtype=int32)
    """
    data, axis = _flat(data, axis, "argsort")
    return _sorted(integers.plain(data).detach(), axis, data.shape[axis], not is_ascend)[1].to(dtype)


@argsort.dtype_rule
def _(in_types, out_types, *, dtype, **_):
    return in_types, [dtype]


def _flat_rule(in_shapes, out_shapes, *, axis, **_):
    data, out = in_shapes[0], out_shapes[0]
    if data is not None:
        out = unify(out, data if axis is not None else (product(data),))
    return [data], [out]


sort.shape_rule(_flat_rule)
argsort.shape_rule(_flat_rule)


def _num_topk_outputs(attributes):
    return 2 if attributes["ret_typ"] == "both" else 1


@op("topk", complete_rule="shape", aliases=("_npx_topk",), num_outputs=_num_topk_outputs,
    output_names=lambda attributes: {"both": ("output0", "output1"), "value": ("output0",)}.get(attributes["ret_typ"], ("output",)), method=True,
    amp="float32")
def topk(data, *, axis: Optional[int] = -1, k: int = 1, ret_typ: Literal["both", "indices", "mask", "value"] = "indices",
         is_ascend: bool = False, dtype: DType = torch.float32):
    """The `k` largest elements (smallest, with `is_ascend`) along `axis`, or of the whole array if it is None.

    Parameters
    ----------
    k : int
        The number of elements; all, in order, if it is below 1.
    ret_typ : {'indices', 'value', 'both', 'mask'}
        The kind of result: their indices as `dtype`, their values, both, or 1 at their places and 0 elsewhere.

    Raises
    ------
    MXNetError
        If the axis has fewer than `k` elements.

    Example
    -------
    >>> x = mx.nd.array([[3, 1, 2], [5, 6, 4]])
    >>> mx.nd.topk(x, k=2, ret_typ='value').asnumpy()
    array([[3., 2.],
           [6., 5.]], dtype=float32)
    >>> mx.nd.topk(x, k=2, dtype='int32').asnumpy()
    array([[0, 2],
           [1, 0]], dtype=int32)
    >>> mx.nd.topk(x, k=1, ret_typ='mask').asnumpy()
    array([[1., 0., 0.],
           [0., 1., 0.]], dtype=float32)
    """
    shape = data.shape
    data, axis = _flat(data, axis, "topk")
    size = data.shape[axis]
    count = _topk_count(k, size)
    values, indices = _sorted(data, axis, count, not is_ascend)
    if ret_typ == "indices":
        return indices.to(dtype)
    if ret_typ == "value":
        return values.contiguous()
    if ret_typ == "both":
        return values.contiguous(), indices.to(dtype)
    return torch.zeros_like(integers.plain(data)).scatter_(axis, indices, 1).reshape(shape)


def _topk_count(k, size):
    """Return the number of elements that `topk` takes of `size`."""
    if 0 <= size < k:
        raise MXNetError(f"topk: `k` must not exceed the size of the axis, which is {size}, received {k}")
    return k if k > 0 else size


@topk.shape_rule
def _(in_shapes, out_shapes, *, axis, k, ret_typ, **_):
    data = in_shapes[0]
    if data is None:
        return in_shapes, out_shapes
    if axis is None:
        out = _topk_count(k, product(data)),
    else:
        at = normalize_axis("topk", axis, len(data))
        out = (*data[:at], _topk_count(k, data[at]), *data[at + 1:])
    out = data if ret_typ == "mask" else out
    return in_shapes, [unify(o, out) for o in out_shapes]


@topk.dtype_rule
def _(in_types, out_types, *, ret_typ, dtype, **_):
    if ret_typ == "indices":
        return in_types, [dtype]
    first = in_types[0] or out_types[0]
    return [first], [first, dtype][:len(out_types)]
