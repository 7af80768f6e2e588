"""Operators that change shapes, join, repeat and cut arrays."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..builder import Unsupported
from ..registry import exports

if TYPE_CHECKING:
    from ..builder import Builder, Value

LAST = np.iinfo(np.int64).max


@exports("Reshape")
def reshape(on: Builder, x: Value, *, shape: Any, reverse: Any, target_shape: Any, keep_highest: bool) -> Value:
    if on.out[0].shape is not None and on.shape.count(None) <= 1 and 0 not in on.shape:
        return on.reshape(x, [-1 if s is None else s for s in on.shape])
    if not shape:
        raise Unsupported("target_shape with sizes that may vary; use `shape`")
    dims = on.dims(x)
    return on.reshape(x, reshape_sizes(on, dims[::-1], shape[::-1])[::-1] if reverse else reshape_sizes(on, dims, shape))


def reshape_sizes(on: Builder, dims: Any, codes: Any) -> Any:
    """Return the sizes that the codes of Reshape describe, for an array with these sizes."""
    out, codes, at = [], list(codes), 0
    while codes:
        code = codes.pop(0)
        if code == 0:
            out.append(dims[at])
        elif code == -2:
            out += dims[at:]
            at = len(dims)
        elif code == -3:
            out.append(on.times(dims[at], dims[at + 1]))
            at += 1
        elif code == -4:
            first, second = codes.pop(0), codes.pop(0)
            out += [on.over(dims[at], second) if first == -1 else first, on.over(dims[at], first) if second == -1 else second]
        else:
            out.append(code)
        at += 1
    return out


@exports("reshape_like")
def reshape_like(on: Builder, lhs: Value, rhs: Value, *, lhs_begin: int | None, lhs_end: int | None, rhs_begin: int | None,
                 rhs_end: int | None) -> Value:
    def part(dims, begin, end):
        return slice(begin, end).indices(len(dims))[:2]
    left, right = on.dims(lhs), on.dims(rhs)
    (a, b), (c, d) = part(left, lhs_begin, lhs_end), part(right, rhs_begin, rhs_end)
    return on.reshape(lhs, left[:a] + right[c:d] + left[b:])


@exports("Flatten")
def flatten(on: Builder, x: Value) -> Value:
    return on.Flatten(x, axis=1)


@exports("transpose")
def transpose(on: Builder, x: Value, *, axes: Any) -> Value:
    return on.transpose(x, [a % x.ndim for a in axes] or list(range(x.ndim))[::-1])


@exports("SwapAxis")
def swap_axis(on: Builder, x: Value, *, dim1: int, dim2: int) -> Value:
    order = list(range(x.ndim))
    order[dim1], order[dim2] = order[dim2], order[dim1]
    return on.transpose(x, order)


@exports("expand_dims")
def expand_dims(on: Builder, x: Value, *, axis: int | None) -> Value:
    return on.unsqueeze(x, axis % (x.ndim + 1))


@exports("squeeze")
def squeeze(on: Builder, x: Value, *, axis: Any) -> Value:
    if axis is None:
        axis = [i for i, s in enumerate(x.shape) if s == 1]
    axes = [a % x.ndim for a in ([axis] if isinstance(axis, int) else axis)]
    return on.squeeze(x, *axes) if axes else x


@exports("Concat", "_rnn_param_concat", ignores=("num_args",))
def concat(on: Builder, *values: Value, dim: int) -> Any:
    return on.concat(values, dim % values[0].ndim)


@exports("stack", ignores=("num_args",))
def stack(on: Builder, *values: Value, axis: int | None) -> Value:
    axis %= values[0].ndim + 1
    return on.concat([on.unsqueeze(v, axis) for v in values], axis)


@exports("SliceChannel")
def slice_channel(on: Builder, x: Value, *, num_outputs: int, axis: int | None, squeeze_axis: bool) -> list[Value]:
    axis %= x.ndim
    size = x.shape[axis]
    if size is None:
        raise Unsupported(f"axis {axis}, which is split, has a size that may vary")
    return split_at(on, x, [size // num_outputs] * num_outputs, axis, squeeze_axis)


@exports("_split_v2")
def split_v2(on: Builder, x: Value, *, indices: Any, axis: int | None, squeeze_axis: bool, sections: int) -> list[Value]:
    axis %= x.ndim
    size = x.shape[axis]
    if size is None:
        raise Unsupported(f"axis {axis}, which is split, has a size that may vary")
    sizes = [size // sections] * sections if sections else np.diff([*indices, size]).tolist()
    return split_at(on, x, sizes, axis, squeeze_axis)


def split_at(on: Builder, x: Value, sizes: Sequence[int], axis: int, squeeze_axis: bool) -> list[Value]:
    pieces = on.split(x, sizes, axis)
    return [on.squeeze(p, axis) for p in pieces] if squeeze_axis else pieces


@exports("slice")
def slice_(on: Builder, x: Value, *, begin: Any, end: Any, step: Any) -> Value:
    steps = [s or 1 for s in step or ()] + [1] * (len(begin) - len(step or ()))
    begin = [(0 if s > 0 else LAST) if b is None else b for b, s in zip(begin, steps)]
    # Past the front there is no number but the lowest: -1 is the last position.
    end = [(LAST if s > 0 else -LAST) if e is None else e for e, s in zip(end, steps)]
    return on.Slice(x, begin, end, list(range(len(begin))), steps)


@exports("slice_axis")
def slice_axis(on: Builder, x: Value, *, axis: int, begin: int, end: int | None) -> Value:
    return on.slice(x, begin, LAST if end is None else end, axis % x.ndim)


@exports("slice_like")
def slice_like(on: Builder, x: Value, like: Value, *, axes: Any) -> Value:
    axes = [a % x.ndim for a in axes] or list(range(x.ndim))
    return on.Slice(x, [0] * len(axes), on.sizes([on.dim(like, a) for a in axes]), axes)


@exports("Crop", ignores=("num_args",))
def crop(on: Builder, x: Value, like: Value | None = None, *, offset: Any, h_w: Any, center_crop: bool) -> Value:
    height, width = (on.dim(like, 2), on.dim(like, 3)) if like is not None else h_w
    if center_crop:
        if not all(isinstance(s, int) for s in (height, width, *on.dims(x)[2:])):
            raise Unsupported("center_crop needs sizes that do not vary")
        offset = [(x.shape[2] - height) // 2, (x.shape[3] - width) // 2]
    ends = [o + s if isinstance(s, int) else on.Add(s, on.const([o], np.int64)) for o, s in zip(offset, (height, width))]
    return on.Slice(x, list(offset), on.sizes(ends), [2, 3])


@exports("tile")
def tile(on: Builder, x: Value, *, reps: Any) -> Value:
    ndim = max(x.ndim, len(reps))
    if ndim > x.ndim:
        x = on.unsqueeze(x, *range(ndim - x.ndim))
    return on.Tile(x, [1] * (ndim - len(reps)) + list(reps))


@exports("repeat")
def repeat(on: Builder, x: Value, *, repeats: int, axis: int | None) -> Value:
    if axis is None:
        x, axis, ndim = on.reshape(x, [-1]), 0, 1
        dims = [-1]
    else:
        ndim = x.ndim
        axis %= ndim
        dims = on.dims(x)
        dims[axis] = on.times(dims[axis], repeats)
    each = on.Tile(on.unsqueeze(x, axis + 1), [repeats if i == axis + 1 else 1 for i in range(ndim + 1)])
    return on.reshape(each, dims)


@exports("reverse")
def reverse(on: Builder, x: Value, *, axis: Any) -> Value:
    axes = [a % x.ndim for a in axis]
    return on.Slice(x, [LAST] * len(axes), [-LAST] * len(axes), axes, [-1] * len(axes))


@exports("Pad")
def pad(on: Builder, x: Value, *, mode: str, pad_width: Any, constant_value: float) -> Value:
    value = on.const(constant_value, x.dtype) if mode == "constant" else None
    return on.Pad(x, [*pad_width[::2], *pad_width[1::2]], value, mode=mode)


@exports("broadcast_to")
def broadcast_to(on: Builder, x: Value, *, shape: Any) -> Value:
    dims = [s or on.dim(x, i) for i, s in enumerate(shape)]
    return on.Expand(x, on.sizes(dims))


@exports("broadcast_axis")
def broadcast_axis(on: Builder, x: Value, *, axis: Any, size: Any) -> Value:
    dims = [1] * x.ndim
    for a, s in zip(axis, size):
        dims[a] = s
    return on.Expand(x, dims)


@exports("broadcast_like")
def broadcast_like(on: Builder, x: Value, like: Value, *, lhs_axes: Any, rhs_axes: Any) -> Value:
    if lhs_axes is None:
        return on.Expand(x, on.sizes(on.dims(like)))
    dims = [1] * x.ndim
    for a, b in zip([lhs_axes] if isinstance(lhs_axes, int) else lhs_axes, [rhs_axes] if isinstance(rhs_axes, int) else rhs_axes):
        dims[a] = on.dim(like, b % like.ndim)
    return on.Expand(x, on.sizes(dims))


@exports("depth_to_space", "space_to_depth")
def depth_to_space(on: Builder, x: Value, *, block_size: int, operator: str) -> Value:
    return (on.DepthToSpace if operator == "depth_to_space" else on.SpaceToDepth)(x, blocksize=block_size)


@exports("shape_array")
def shape_array(on: Builder, x: Value) -> Value:
    return on.sizes(on.dims(x)) if x.fixed else on.Shape(x)


@exports("size_array")
def size_array(on: Builder, x: Value) -> Value:
    return on.unsqueeze(on.Size(x), 0)
