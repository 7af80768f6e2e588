"""Operators that take or replace a block: slice, slice_axis, slice_like, _slice_assign, SliceChannel, _split_v2, Crop."""
from collections.abc import Callable
from typing import Optional

import torch

from ... import util
from ...base import MXNetError
from ..axes import normalize_axis, require_ndim
from ..registry import op
from ..schema import Ends, Shape
from ..shapes import known, unify

# Torch's annotations of these have no return type.
_unbind_copy: Callable = torch.unbind_copy
_split_copy: Callable = torch.split_copy
_split_with_sizes_copy: Callable = torch.split_with_sizes_copy


_MANY = 1 << 15  # numbers from which on it matters that a gradient is written once


def _block(data, starts, sizes):
    """A copy of the block that begins at `starts`."""
    if data.numel() >= _MANY and data.requires_grad and torch.is_grad_enabled() and not torch.compiler.is_compiling():
        return _Block.apply(data, starts, sizes)
    return _narrowed(data, starts, sizes).clone(memory_format=torch.contiguous_format)


def _narrowed(data, starts, sizes):
    return data[tuple(slice(start, start + size) for start, size in zip(starts, sizes))]


class _Block(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, starts, sizes):
        ctx.shape, ctx.starts, ctx.sizes = data.shape, starts, sizes
        return _narrowed(data, starts, sizes).clone(memory_format=torch.contiguous_format)

    @staticmethod
    def backward(ctx, dout):
        ends = [n - start - size for n, start, size in zip(ctx.shape, ctx.starts, ctx.sizes)]
        if torch.is_grad_enabled():  # which can be differentiated again
            borders = [border for pair in zip(ctx.starts, ends) for border in reversed(pair)]
            return torch.nn.functional.pad(dout, borders[::-1]), None, None
        out = inner = dout.new_empty(ctx.shape)
        for axis, (start, size, rest) in enumerate(zip(ctx.starts, ctx.sizes, ends)):
            for first, count in ((0, start), (start + size, rest)):
                if count:
                    inner.narrow(axis, first, count).zero_()
            inner = inner.narrow(axis, start, size)
        inner.copy_(dout)
        return out, None, None


def _ranges(operator, begin, end, step, ndim):
    """(begin, end, step) of each leading axis that is sliced."""
    if len(begin) != len(end):
        raise MXNetError(f"{operator}: `begin` and `end` of equal length expected, received {begin} and {end}")
    if step and len(step) != len(begin):
        raise MXNetError(f"{operator}: `step` and `begin` of equal length expected, received {step} and {begin}")
    if len(begin) > ndim:
        raise MXNetError(f"{operator}: slicing axis exceeds data dimensions: {len(begin)} ranges for {ndim}-D data")
    steps = tuple(1 if s is None else s for s in step) if step else (1,) * len(begin)
    if 0 in steps:
        raise MXNetError(f"{operator}: `step` cannot be 0, received {step}")
    return tuple(zip(begin, end, steps))


def _view(operator, data, begin, end, step):
    """The sliced block as a view, and the axes on which it still must be flipped, since torch only steps forward."""
    if not step and len(begin) == len(end) <= data.dim():
        return data[tuple(map(slice, begin, end))], []
    index, flips = [], []
    for axis, (b, e, s) in enumerate(_ranges(operator, begin, end, step, data.dim())):
        if s < 0:
            picked = range(*slice(b, e, s).indices(data.shape[axis]))
            flips.append(axis)
            index.append(slice(picked[-1], picked[0] + 1, -s) if picked else slice(0, 0))
        else:
            index.append(slice(b, e, s))
    return data[tuple(index)], flips


@op("slice", complete_rule="shape", aliases=("crop", "_sparse_slice", "_npi_slice", "_npx_slice"), result_type="data", method=True)
def slice_(data, *, begin: Ends, end: Ends, step: Optional[Ends] = ()):
    """The block ``begin[i]:end[i]:step[i]`` of each leading axis; None means the default of Python's slices.

    Example
    -------
    >>> mx.nd.slice(mx.nd.arange(12).reshape((3, 4)), begin=(0, None), end=(2, None), step=(1, -2)).asnumpy().tolist()
    [[3.0, 1.0], [7.0, 5.0]]
    """
    if data.requires_grad and not any(s not in (1, None) for s in step or ()):
        ranges = [range(*slice(b, e).indices(n)) for (b, e, _), n in zip(_ranges("slice", begin, end, step, data.dim()), data.shape)]
        unsliced = data.shape[len(ranges):]
        return _block(data, [*[r.start for r in ranges], *[0] * len(unsliced)], [*map(len, ranges), *unsliced])
    view, flips = _view("slice", data, begin, end, step)
    return view.flip(flips) if flips else view.clone(memory_format=torch.contiguous_format)


@slice_.shape_rule
def _(in_shapes, out_shapes, *, begin, end, step):
    data, out = in_shapes[0], out_shapes[0]
    if data is not None:
        out = unify(out, _sliced("slice", data, begin, end, step))
    return [data], [out]


def _sliced(operator, shape, begin, end, step):
    """The partial shape of a block."""
    sizes = list(shape)
    for axis, (b, e, s) in enumerate(_ranges(operator, begin, end, step, len(shape))):
        if sizes[axis] >= 0:
            sizes[axis] = len(range(*slice(b, e, s).indices(sizes[axis])))
    return tuple(sizes)


@op("_slice_assign", complete_rule="shape", aliases=("_crop_assign", "_npi_slice_assign"))
def slice_assign(lhs, rhs, *, begin: Ends, end: Ends, step: Ends = ()):
    """A copy of `lhs` whose block ``begin:end:step`` is `rhs`."""
    out = lhs.clone()
    view, flips = _view("_slice_assign", out, begin, end, step)
    if view.shape != rhs.shape:
        raise MXNetError(f"_slice_assign: the block has shape {tuple(view.shape)}, `rhs` must have the same, received {tuple(rhs.shape)}")
    view.copy_(rhs.flip(flips) if flips else rhs)
    return out


@slice_assign.shape_rule
def _(in_shapes, out_shapes, *, begin, end, step):
    lhs = unify(in_shapes[0], out_shapes[0])
    rhs = in_shapes[1]
    if lhs is not None:
        block = _sliced("_slice_assign", lhs, begin, end, step)
        if known(block) and known(rhs) and block != rhs:
            return in_shapes, out_shapes  # the operator's call raises the error
        rhs = unify(rhs, block)
    return [lhs, rhs], [lhs]


@op("_slice_assign_scalar", complete_rule="shape", aliases=("_crop_assign_scalar", "_npi_slice_assign_scalar"))
def slice_assign_scalar(data, *, scalar: float = 0.0, begin: Ends, end: Ends, step: Ends = ()):
    """A copy of `data` whose block ``begin:end:step`` is filled with `scalar`."""
    out = data.clone()
    _view("_slice_assign_scalar", out, begin, end, step)[0].fill_(scalar)
    return out


@slice_assign_scalar.shape_rule
def _(in_shapes, out_shapes, *, begin, end, step, **_):
    data = unify(in_shapes[0], out_shapes[0])
    if data is not None:
        _ranges("_slice_assign_scalar", begin, end, step, len(data))
    return [data], [data]


def _axis_range(axis, begin, end, shape):
    axis = normalize_axis("slice_axis", axis, len(shape))
    size = shape[axis]
    first = begin + size if begin < 0 else begin
    last = size if end is None else end + size if end < 0 else end
    if last > size or size > 0 and not 0 <= first < last:
        raise MXNetError(f"slice_axis: begin={begin}, end={end} is not a range of axis {axis}, which has size {size}")
    return axis, first, last


@op("slice_axis", complete_rule="shape", result_type="data", method=True)
def slice_axis(data, *, axis: int, begin: int, end: Optional[int]):
    """The block ``begin:end`` of one axis; ``end=None`` means to its end.

    Raises
    ------
    MXNetError
        If the block is empty or reaches beyond the axis.

    Example
    -------
    >>> mx.nd.slice_axis(mx.nd.array([[1, 2, 3], [4, 5, 6]]), axis=1, begin=1, end=None).asnumpy()
    array([[2., 3.],
           [5., 6.]], dtype=float32)
    """
    axis, first, last = _axis_range(axis, begin, end, data.shape)
    if data.requires_grad:
        starts, sizes = [0] * data.dim(), list(data.shape)
        starts[axis], sizes[axis] = first, last - first
        return _block(data, starts, sizes)
    return torch.slice_copy(data, axis, first, last)


@slice_axis.shape_rule
def _(in_shapes, out_shapes, *, axis, begin, end):
    data, out = in_shapes[0], out_shapes[0]
    if data is not None:
        at = normalize_axis("slice_axis", axis, len(data))
        if data[at] >= 0:
            _, first, last = _axis_range(axis, begin, end, data)
            out = unify(out, (*data[:at], last - first, *data[at + 1:]))
        else:
            out = unify(out, (*data[:at], -1, *data[at + 1:]))
    return [data], [out]


def _like_sizes(data, like, axes):
    if not axes and len(data) != len(like):
        raise MXNetError(f"slice_like: without `axes` both inputs need as many axes, received shapes {data} and {like}")
    sizes = list(data)
    for axis in axes or range(len(data)):
        axis = normalize_axis("slice_like", axis, len(data), "axes")
        if axis >= len(like):
            raise MXNetError(f"slice_like: slice axis {axis} exceeds second input, which has shape {like}")
        if sizes[axis] >= 0 and like[axis] > sizes[axis]:
            raise MXNetError(f"slice_like: axis {axis} of shape_like has size {like[axis]}, which exceeds that of data ({sizes[axis]})")
        sizes[axis] = like[axis]
    return tuple(sizes)


@op("slice_like", aliases=("_npx_slice_like",), complete_rule="shape", method=True)
def slice_like(data, shape_like, *, axes: Shape = ()):
    """The first elements of `data` along `axes` (all if empty), as many as `shape_like` has there.

    Raises
    ------
    MXNetError
        If `shape_like` is larger along an axis, or has no such axis.

    Example
    -------
    >>> mx.nd.slice_like(mx.nd.array([[1, 2, 3], [4, 5, 6]]), mx.nd.zeros((1, 2))).asnumpy()
    array([[1., 2.]], dtype=float32)
    >>> mx.nd.slice_like(mx.nd.array([[1, 2, 3], [4, 5, 6]]), mx.nd.zeros((9, 2)), axes=(1,)).asnumpy()
    array([[1., 2.],
           [4., 5.]], dtype=float32)
    """
    sizes = _like_sizes(tuple(data.shape), tuple(shape_like.shape), axes)
    return _block(data, [0] * len(sizes), sizes)


@slice_like.shape_rule
def _(in_shapes, out_shapes, *, axes):
    data, like = in_shapes
    out = out_shapes[0]
    if data is not None and like is not None:
        out = unify(out, _like_sizes(data, like, axes))
    return in_shapes, [out]


@slice_like.dtype_rule
def _(in_types, out_types, *, axes):
    first = in_types[0] or out_types[0]
    return [first, in_types[1] or first], [first]


def _one_or_all(pieces):
    return pieces[0] if len(pieces) == 1 else tuple(pieces)


@op("SliceChannel", aliases=("split", "_npx_slice_channel"), num_outputs=lambda attributes: attributes["num_outputs"], complete_rule="shape",
    method="split",
    names_output=True)
def slice_channel(data, *, num_outputs: int, axis: int = 1, squeeze_axis: bool = False):
    """Cut one axis into `num_outputs` equal pieces; with `squeeze_axis` each has size 1 and loses that axis.

    Raises
    ------
    MXNetError
        If `num_outputs` does not divide the size of the axis.

    Example
    -------
    >>> [piece.asnumpy().tolist() for piece in mx.nd.split(mx.nd.array([[1, 2], [3, 4]]), num_outputs=2)]
    [[[1.0], [3.0]], [[2.0], [4.0]]]
    >>> [piece.asnumpy().tolist() for piece in mx.nd.split(mx.nd.array([[1, 2], [3, 4]]), num_outputs=2, squeeze_axis=True)]
    [[1.0, 3.0], [2.0, 4.0]]
    """
    axis, piece = _piece(data.shape, num_outputs, axis, squeeze_axis)
    return _one_or_all(_unbind_copy(data, axis) if squeeze_axis else _split_copy(data, piece, axis))


def _piece(shape, num_outputs, axis, squeeze_axis):
    axis = normalize_axis("SliceChannel", axis, len(shape))
    size = shape[axis]
    if size >= 0 and (num_outputs <= 0 or size % num_outputs):
        raise MXNetError(f"SliceChannel: num_outputs={num_outputs} does not evenly divide axis {axis} of shape {tuple(shape)}")
    if squeeze_axis and size not in (-1, num_outputs):
        raise MXNetError(f"SliceChannel: with squeeze_axis, axis {axis} of shape {tuple(shape)} must have size num_outputs={num_outputs}")
    return axis, -1 if size < 0 else size // num_outputs


@slice_channel.shape_rule
def _(in_shapes, out_shapes, *, num_outputs, axis, squeeze_axis):
    data, piece = in_shapes[0], None
    for out in out_shapes:
        piece = unify(piece, out)
    if data is None:
        return [data], [piece] * num_outputs
    axis, size = _piece(data, num_outputs, axis, squeeze_axis)
    middle = () if squeeze_axis else (size,)
    piece = unify(piece, (*data[:axis], *middle, *data[axis + 1:]))
    if squeeze_axis:
        back = (*piece[:axis], num_outputs, *piece[axis:])
    else:
        back = (*piece[:axis], piece[axis] * num_outputs if piece[axis] >= 0 else -1, *piece[axis + 1:])
    return [unify(data, back)], [piece] * num_outputs


@op("_split_v2", complete_rule="shape", aliases=("_npi_split",),
    num_outputs=lambda attributes: attributes["sections"] or len(attributes["indices"]))
def split_v2(data, *, indices: Shape, axis: int = 1, squeeze_axis: bool = False, sections: int = 0):
    """Cut one axis into `sections` pieces of (nearly) equal size, or where the pieces start (`indices`, the first is 0).

    Raises
    ------
    MXNetError
        If the starts do not rise from 0, or with `squeeze_axis` a piece has another size than 1.

    Example
    -------
    >>> [piece.asnumpy().tolist() for piece in mx.nd.split_v2(mx.nd.array([1, 2, 3, 4]), 2, axis=0)]
    [[1.0, 2.0], [3.0, 4.0]]
    >>> [piece.asnumpy().tolist() for piece in mx.nd.split_v2(mx.nd.array([1, 2, 3, 4]), (1, 3), axis=0)]
    [[1.0], [2.0, 3.0], [4.0]]
    """
    axis = normalize_axis("_split_v2", axis, data.dim())
    sizes = _piece_sizes(data.shape[axis], indices, sections, squeeze_axis)
    pieces = _unbind_copy(data, axis) if squeeze_axis else _split_with_sizes_copy(data, sizes, axis)
    return _one_or_all(pieces)


def _piece_sizes(size, indices, sections, squeeze_axis):
    if sections > 0:
        small, larger = divmod(size, sections)
        sizes = [small + 1] * larger + [small] * (sections - larger)
    else:
        if util.is_np_shape():  # as in NumPy, pieces behind the end are empty
            indices = tuple(min(i, size) for i in indices)
        starts = (*indices, size)
        sizes = [b - a for a, b in zip(starts, starts[1:])]
        if not indices or indices[0] != 0 or min(sizes) < 0:
            raise MXNetError(f"_split_v2: `indices` must start with 0 and rise up to the size of the axis ({size}), received {indices}")
    if squeeze_axis and any(s != 1 for s in sizes):
        raise MXNetError(f"_split_v2: with squeeze_axis every piece must have size 1, received sizes {tuple(sizes)}")
    return sizes


@split_v2.shape_rule
def _(in_shapes, out_shapes, *, indices, axis, squeeze_axis, sections):
    data = in_shapes[0]
    if data is None:
        return in_shapes, out_shapes
    axis = normalize_axis("_split_v2", axis, len(data))
    if data[axis] < 0:
        return in_shapes, out_shapes
    outs = []
    for size, out in zip(_piece_sizes(data[axis], indices, sections, squeeze_axis), out_shapes):
        outs.append(unify(out, (*data[:axis], *(() if squeeze_axis else (size,)), *data[axis + 1:])))
    for out in outs:
        middle = (data[axis],)
        data = unify(data, (*out[:axis], *middle, *out[axis + (not squeeze_axis):]))
    return [data], outs


@op("Crop", key_var_num_args="num_args", inputs_rule=lambda a: ("data",) if a["num_args"] == 1 else ("data", "crop_like"), names_output=True)
def crop(*data, num_args: int = 1, offset: Shape = (0, 0), h_w: Shape = (0, 0), center_crop: bool = False):
    """A window of images (N, C, H, W): of the height and width of the second input if there is one, else of `h_w`.

    It starts at `offset` (y, x), or lies in the middle with `center_crop`.

    Raises
    ------
    MXNetError
        If the window does not lie inside the images.

    Example
    -------
    >>> x = mx.nd.arange(9).reshape((1, 1, 3, 3))
    >>> mx.nd.Crop(x, h_w=(1, 2), offset=(1, 0)).asnumpy()
    array([[[[3., 4.]]]], dtype=float32)
    >>> mx.nd.Crop(x, mx.nd.zeros((1, 1, 1, 1)), num_args=2, center_crop=True).asnumpy()
    array([[[[4.]]]], dtype=float32)
    """
    images = data[0]
    require_ndim("Crop", images, 4)
    size = tuple(data[1].shape[2:]) if len(data) > 1 else h_w
    room = [images.shape[i + 2] - size[i] for i in (0, 1)]
    start = [r // 2 for r in room] if center_crop else offset
    for name, s, r, length in zip(("height", "width"), start, room, size):
        if length < 1 or r < 0 or not 0 <= s <= r:
            raise MXNetError(f"Crop: a window of {name} {length} at offset {s} does not fit images of shape {tuple(images.shape)}")
    y, x = start
    return _block(images, (0, 0, y, x), (*images.shape[:2], *size))
