"""Operators that repeat, mirror or pad: tile, repeat, reverse, Pad, broadcast_*, diag."""
from typing import Literal, Optional

import torch
import torch.nn.functional as F

from ... import util
from ...base import MXNetError
from ..axes import normalize_axis
from ..registry import op
from ..schema import Axes, Shape
from ..shapes import unify


@op("tile", complete_rule="shape", aliases=("_npi_tile",), method=True)
def tile(data, *, reps: Shape):
    """Repeat `data` as a whole ``reps[i]`` times along axis `i`; missing leading axes count as 1.

    Raises
    ------
    MXNetError
        If an entry of `reps` is not positive.

    Example
    -------
    >>> mx.nd.tile(mx.nd.array([[1, 2]]), reps=(2, 2)).asnumpy()
    array([[1., 2., 1., 2.],
           [1., 2., 1., 2.]], dtype=float32)
    """
    _require_positive(reps)
    return data.repeat((1,) * (data.dim() - len(reps)) + reps)


def _require_positive(reps):
    if reps and min(reps) < (0 if util.is_np_shape() else 1):
        raise MXNetError(f"tile: `reps` must be positive, received {reps}")


@tile.shape_rule
def _(in_shapes, out_shapes, *, reps):
    data = in_shapes[0]
    _require_positive(reps)
    if data is None:
        return in_shapes, out_shapes
    ndim = max(len(data), len(reps))
    sizes, reps = (1,) * (ndim - len(data)) + data, (1,) * (ndim - len(reps)) + reps
    return in_shapes, [unify(out_shapes[0], tuple(n * r if n >= 0 else -1 for n, r in zip(sizes, reps)))]


@op("repeat", aliases=("_np_repeat",), method=True)
def repeat(data, *, repeats: int, axis: Optional[int] = None):
    """Repeat each element (of the flattened array, if `axis` is None) `repeats` times in a row.

    Raises
    ------
    MXNetError
        If `repeats` is negative, or `data` has no such axis.

    Example
    -------
    >>> mx.nd.repeat(mx.nd.array([[1, 2], [3, 4]]), repeats=2, axis=1).asnumpy()
    array([[1., 1., 2., 2.],
           [3., 3., 4., 4.]], dtype=float32)
    """
    if repeats < 0:
        raise MXNetError(f"repeat: repeats cannot be a negative number, received {repeats}")
    if repeats == 0:
        return data.new_empty((0,))
    if axis is None:
        return data.reshape(-1).repeat_interleave(repeats)
    return data.repeat_interleave(repeats, normalize_axis("repeat", axis, data.dim()))


@op("reverse", complete_rule="shape", aliases=("flip",), method="flip")
def reverse(data, *, axis: Shape):
    """Reverse the order of the elements along `axis`, one or several.

    Example
    -------
    >>> mx.nd.reverse(mx.nd.array([[1, 2, 3], [4, 5, 6]]), axis=1).asnumpy()
    array([[3., 2., 1.],
           [6., 5., 4.]], dtype=float32)
    """
    return data.flip(_reversed_axes(axis, data.dim()))


def _reversed_axes(axis, ndim):
    return [normalize_axis("reverse", a, ndim) for a in axis]


@reverse.shape_rule
def _(in_shapes, out_shapes, *, axis):
    data = unify(in_shapes[0], out_shapes[0])
    if data is not None and len(set(_reversed_axes(axis, len(data)))) < len(axis):
        return in_shapes, out_shapes  # an axis named twice: the operator's call raises the error
    return [data], [data]


@op("Pad", complete_rule="shape", aliases=("pad", "_npx_pad"), method="pad", names_output=True)
def pad(data, *, mode: Literal["constant", "edge", "reflect"], pad_width: Shape, constant_value: float = 0.0):
    """Pad the spatial axes of (N, C, H, W) or (N, C, D, H, W) data.

    Parameters
    ----------
    mode : {'constant', 'edge', 'reflect'}
        Fill with `constant_value`, with the border's value, or with the mirrored inside.
    pad_width : tuple of int
        (before, after) of each axis in turn, so 8 or 10 numbers; the first four must be 0.

    Raises
    ------
    MXNetError
        If `data` is neither 4-D nor 5-D, or `pad_width` does not fit it; for 'reflect' also if a width reaches the size of its axis.

    Example
    -------
    >>> x = mx.nd.array([1, 2, 3]).reshape((1, 1, 1, 3))
    >>> mx.nd.pad(x, mode='edge', pad_width=(0, 0, 0, 0, 0, 0, 1, 2)).asnumpy()
    array([[[[1., 1., 2., 3., 3., 3.]]]], dtype=float32)
    >>> mx.nd.pad(x, mode='reflect', pad_width=(0, 0, 0, 0, 0, 0, 2, 0)).asnumpy()
    array([[[[3., 2., 1., 2., 3.]]]], dtype=float32)
    """
    _check_pads(tuple(data.shape), mode, pad_width)
    sizes = [w for i in range(data.dim() - 1, 1, -1) for w in pad_width[2 * i:2 * i + 2]]
    if mode == "constant":
        return F.pad(data, sizes, value=constant_value)
    return F.pad(data, sizes, mode="replicate" if mode == "edge" else "reflect")


def _check_pads(data, mode, pad_width):
    if len(data) not in (4, 5):
        raise MXNetError(f"Pad: `data` must be 4-D or 5-D, received shape {data}")
    if len(pad_width) != 2 * len(data):
        raise MXNetError(f"Pad: `pad_width` must have {2 * len(data)} entries for {len(data)}-D data, received {pad_width}")
    if any(pad_width[:4]):
        raise MXNetError(f"Pad: the first four entries of `pad_width` (batch and channel) must be 0, received {pad_width}")
    if mode == "reflect" and any(w >= data[2 + i // 2] >= 0 for i, w in enumerate(pad_width[4:])):
        raise MXNetError(f"Pad: reflection needs pads below the axis's length, received pad_width={pad_width} for shape {data}")


@pad.shape_rule
def _(in_shapes, out_shapes, *, mode, pad_width, constant_value):
    data, out = in_shapes[0], out_shapes[0]
    if data is None:
        return in_shapes, out_shapes
    _check_pads(data, mode, pad_width)
    if min(pad_width) < 0 or mode != "constant" and 0 in data[1:]:
        return in_shapes, out_shapes  # negative widths and empty arrays are left to torch
    return [data], [unify(out, tuple(s + a + b if s >= 0 else -1 for s, a, b in zip(data, pad_width[::2], pad_width[1::2])))]


def _expand(operator, data, shape):
    for have, want in zip(data.shape, shape):
        if have not in (1, want):
            raise MXNetError(f"{operator}: an array of shape {tuple(data.shape)} cannot be broadcast to {tuple(shape)}")
    return torch.expand_copy(data, shape)


@op("broadcast_to", method=True)
def broadcast_to(data, *, shape: Shape = ()):
    """Repeat `data` along its axes of size 1 to reach `shape`, in which 0 keeps a size.

    Raises
    ------
    MXNetError
        If the number of axes differs, or a size other than 1 would have to change.

    Example
    -------
    >>> mx.nd.broadcast_to(mx.nd.array([[1, 2]]), shape=(3, 0)).asnumpy()
    array([[1., 2.],
           [1., 2.],
           [1., 2.]], dtype=float32)
    """
    if len(shape) != data.dim():
        raise MXNetError(f"broadcast_to: an array of shape {tuple(data.shape)} cannot be broadcast to {shape}: "
                         "the number of axes differs; reshape it first")
    return _expand("broadcast_to", data, [s or have for s, have in zip(shape, data.shape)])


@op("broadcast_axis", aliases=("broadcast_axes",), method="broadcast_axes")
def broadcast_axis(data, *, axis: Shape = (), size: Shape = ()):
    """Repeat `data` along the axes `axis`, which have size 1, to the sizes `size`.

    Raises
    ------
    MXNetError
        If an axis has another size than 1, or `axis` and `size` differ in length.

    Example
    -------
    >>> mx.nd.broadcast_axis(mx.nd.array([[1], [2]]), axis=1, size=3).asnumpy()
    array([[1., 1., 1.],
           [2., 2., 2.]], dtype=float32)
    """
    if len(axis) != len(size):
        raise MXNetError(f"broadcast_axis: `axis` and `size` must have the same length, received {axis} and {size}")
    sizes = list(data.shape)
    for a, s in zip(axis, size):
        a = normalize_axis("broadcast_axis", a, data.dim())
        if sizes[a] != 1:
            raise MXNetError(f"broadcast_axis: axes of size 1 expected, received axis {a} of shape {tuple(data.shape)}")
        sizes[a] = s
    return torch.expand_copy(data, sizes)


def _broadcast_like_sizes(lhs, rhs, lhs_axes, rhs_axes):
    if lhs_axes is None or rhs_axes is None:
        if len(lhs) != len(rhs):
            raise MXNetError(f"broadcast_like: an array of shape {lhs} cannot be broadcast to {rhs}: the number of axes differs; "
                             "say which axes with lhs_axes and rhs_axes")
        return tuple(b if b >= 0 or a == 1 else a for a, b in zip(lhs, rhs))
    lhs_axes, rhs_axes = ((a,) if isinstance(a, int) else a for a in (lhs_axes, rhs_axes))
    if len(lhs_axes) != len(rhs_axes) or not lhs_axes:
        raise MXNetError(f"broadcast_like: lhs_axes and rhs_axes must have the same length above 0, received {lhs_axes} and {rhs_axes}")
    sizes = list(lhs)
    for a, b in zip(lhs_axes, rhs_axes):
        a = normalize_axis("broadcast_like", a, len(lhs), "lhs_axes")
        b = normalize_axis("broadcast_like", b, len(rhs), "rhs_axes")
        if lhs[a] != 1:
            raise MXNetError(f"broadcast_like: axis {a} of lhs (shape {lhs}) must have size 1 to be broadcast")
        sizes[a] = rhs[b]
    return tuple(sizes)


@op("broadcast_like", aliases=("_npx_broadcast_like",), method=True)
def broadcast_like(lhs, rhs, *, lhs_axes: Axes = None, rhs_axes: Axes = None):
    """Repeat `lhs` along its axes of size 1 (or along `lhs_axes`) to the sizes that `rhs` has there (along `rhs_axes`).

    Raises
    ------
    MXNetError
        If a size other than 1 would have to change; without `lhs_axes` and `rhs_axes` also if the numbers of axes differ.

    Example
    -------
    >>> mx.nd.broadcast_like(mx.nd.array([[1, 2]]), mx.nd.zeros((3, 2))).asnumpy()
    array([[1., 2.],
           [1., 2.],
           [1., 2.]], dtype=float32)
    >>> mx.nd.broadcast_like(mx.nd.ones((1, 2)), mx.nd.zeros((4, 5)), lhs_axes=0, rhs_axes=-1).shape
    (5, 2)
    """
    return _expand("broadcast_like", lhs, _broadcast_like_sizes(tuple(lhs.shape), tuple(rhs.shape), lhs_axes, rhs_axes))


@broadcast_like.shape_rule
def _(in_shapes, out_shapes, *, lhs_axes, rhs_axes):
    lhs, rhs = in_shapes
    out = out_shapes[0]
    if lhs is not None and rhs is not None:
        out = unify(out, _broadcast_like_sizes(lhs, rhs, lhs_axes, rhs_axes))
    return in_shapes, [out]


@broadcast_like.dtype_rule
def _(in_types, out_types, **_):
    first = in_types[0] or out_types[0]
    return [first, in_types[1] or first], [first]


@op("diag", complete_rule="shape", method=True)
def diag(data, *, k: int = 0, axis1: int = 0, axis2: int = 1):
    """The `k`-th diagonal of the planes (`axis1`, `axis2`), as the last axis; for 1-D data the matrix that has it there.

    Raises
    ------
    MXNetError
        If the two axes are one, or their planes have no such diagonal.

    Example
    -------
    >>> mx.nd.diag(mx.nd.array([[1, 2, 3], [4, 5, 6]]), k=1).asnumpy()
    array([2., 6.], dtype=float32)
    >>> mx.nd.diag(mx.nd.array([1, 2])).asnumpy()
    array([[1., 0.],
           [0., 2.]], dtype=float32)
    """
    if data.dim() == 1:
        return torch.diag_embed(data, k)
    a, b, _ = _diagonal(tuple(data.shape), k, axis1, axis2)
    return torch.diagonal_copy(data, k, a, b)


def _diagonal(shape, k, axis1, axis2):
    """The axes of the planes, counted from the front, and the length of their diagonal, -1 if it is not known."""
    a, b = normalize_axis("diag", axis1, len(shape), "axis1"), normalize_axis("diag", axis2, len(shape), "axis2")
    if a == b:
        raise MXNetError(f"diag: two different axes expected, received axis1={axis1} and axis2={axis2}")
    height, width = shape[a], shape[b]
    if min(height, width) < 0:
        return a, b, -1
    length = min(height, width - k) if k > 0 else min(height + k, width)
    if length < 0:  # just beside the plane it is empty, as in MXNet
        raise MXNetError(f"diag: there is no diagonal {k} in a plane of {height} x {width}")
    return a, b, length


@diag.shape_rule
def _(in_shapes, out_shapes, *, k, axis1, axis2):
    data = in_shapes[0]
    if not data:
        return in_shapes, out_shapes
    if len(data) == 1:
        size = data[0] + abs(k) if data[0] >= 0 else -1
        out = size, size
    else:
        a, b, length = _diagonal(data, k, axis1, axis2)
        out = (*(n for i, n in enumerate(data) if i not in (a, b)), length)
    return in_shapes, [unify(out_shapes[0], out)]
