"""Shapes: reshaping, transposing, slicing, joining, spreading, looking up."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch

from ... import symbol as sym
from ...symbol import Symbol
from .registry import converts
from .values import Call, Value, is_static, same_shape


@converts("view", "reshape", "_unsafe_view", "flatten", "unflatten", "view_as", "reshape_as")
def reshape(call: Call, data: Value, *rest: Any) -> Value:
    if same_shape(data.shape, call.shape):
        return data
    return call.value(call.reshape(data, call.shape), data.dtype)


@converts("squeeze", "unsqueeze")
def squeeze(call: Call, data: Value, axis: Any = None) -> Value:
    if same_shape(data.shape, call.shape) or not data.shape or not call.shape:
        return Value(call.shape, data.dtype, data.symbol if data.shape else data.symbol)
    if axis is None:
        axis = list(range(len(data.shape)))
    if call.target._schema.name == "aten::unsqueeze":
        return call.value(sym.expand_dims(data.symbol, axis=axis), data.dtype)  # type: ignore[arg-type]  # a number there
    axes = [a % len(data.shape) for a in (axis if isinstance(axis, (list, tuple)) else [axis])]
    axes = [a for a in axes if is_static(data.shape[a]) and int(data.shape[a]) == 1]
    return call.value(sym.squeeze(data.symbol, axis=tuple(axes)), data.dtype)


@converts("mT")
def matrix_transpose(call: Call, data: Value) -> Value:
    return transpose(call, data, -2, -1)


@converts("permute")
def permute(call: Call, data: Value, axes: Sequence[int]) -> Value:
    return call.value(sym.transpose(data.symbol, axes=tuple(a % len(axes) for a in axes)), data.dtype)


@converts("transpose", "swapaxes")
def transpose(call: Call, data: Value, first: int, second: int) -> Value:
    axes = list(range(len(data.shape)))
    axes[first], axes[second] = axes[second], axes[first]
    return call.value(sym.transpose(data.symbol, axes=tuple(axes)), data.dtype)


@converts("t")
def t(call: Call, data: Value) -> Value:
    return data if len(data.shape) < 2 else call.value(sym.transpose(data.symbol, axes=(1, 0)), data.dtype)


@converts("expand", "expand_as", "broadcast_to")
def expand(call: Call, data: Value, *rest: Any) -> Value:
    return call.value(call.broadcast(data, call.shape), data.dtype)


@converts("repeat")
def repeat(call: Call, data: Value, repeats: Sequence[Any]) -> Value:
    counts = call.sizes(repeats)
    symbol = data.symbol
    return call.value(sym.tile(symbol, reps=counts), data.dtype)


@converts("slice")
def slice_(call: Call, data: Value, axis: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Value:
    if same_shape(data.shape, call.shape) and step == 1:
        return data
    size, start, end = data.shape[axis], start or 0, end
    if end is not None and is_static(end) and int(end) >= (1 << 31) or end is not None and not is_static(end):
        if end is not None and not is_static(end) and str(end) != str(size):
            raise call.refuse("a slice ends at a size that varies")
        end = None
    if not is_static(start):
        raise call.refuse("a slice starts at a size that varies")
    if end is not None and is_static(size):
        end = min(int(end), int(size))
    if end is not None and end == 0 or is_static(call.shape[axis]) and int(call.shape[axis]) == 0:
        raise call.refuse("a slice is empty")
    if step == 1:
        return call.value(sym.slice_axis(data.symbol, axis=axis, begin=int(start), end=None if end is None else int(end)), data.dtype)
    axis %= len(data.shape)
    begin, ends, steps = ([None] * axis for _ in range(3))
    return call.value(sym.slice(data.symbol, begin=(*begin, int(start)), end=(*ends, end), step=(*steps, int(step))), data.dtype)


@converts("arange.default", "arange.start")
def arange(call: Call, *bounds: Any) -> Value:
    start = bounds[0] if call.target._overloadname == "start" else 0
    if not is_static(start) and not isinstance(start, float):
        raise call.refuse("it begins at a size that varies")
    return call.value(sym.Cast(call.counted(call.shape[0], float(start)), dtype=str(call.stored).removeprefix("torch.")))


@converts("narrow")
def narrow(call: Call, data: Value, axis: int, start: Any, length: Any) -> Value:
    start, length = call.sizes((start, length))
    return call.value(sym.slice_axis(data.symbol, axis=axis, begin=start, end=start + length), data.dtype)


@converts("select")
def select(call: Call, data: Value, axis: int, index: Any) -> Value:
    if not is_static(index):
        raise call.refuse("the index is a size that varies")
    index = int(index)
    part = sym.slice_axis(data.symbol, axis=axis, begin=index, end=None if index == -1 else index + 1)
    if len(data.shape) == 1:
        return call.value(part, data.dtype)
    return call.value(sym.squeeze(part, axis=(axis % len(data.shape),)), data.dtype)


def _parts(call: Call, data: Value, axis: int, squeeze_axis: bool = False) -> list[Value]:
    """The results of a split, whose shapes torch knows."""
    shapes = [tuple(r.shape) for r in call.results]
    if len(shapes) == 1 and not squeeze_axis:
        return [data]
    sizes = [1 if squeeze_axis else shape[axis] for shape in shapes]
    sizes = list(call.sizes(sizes, "the sizes of the parts vary"))
    if len(set(sizes)) == 1:
        split = sym.split(data.symbol, num_outputs=len(sizes), axis=axis, squeeze_axis=squeeze_axis)
        outputs = list(split) if len(sizes) > 1 else [split]
        return [Value(shape, data.dtype, output) for shape, output in zip(shapes, outputs)]
    ends = [sum(sizes[:i + 1]) for i in range(len(sizes))]
    return [Value(shape, data.dtype, sym.slice_axis(data.symbol, axis=axis, begin=end - size, end=end))
            for shape, size, end in zip(shapes, sizes, ends)]


@converts("split", "split_with_sizes", "chunk", "tensor_split")
def split(call: Call, data: Value, sizes: Any, axis: int = 0) -> list[Value]:
    return _parts(call, data, axis)


@converts("unbind")
def unbind(call: Call, data: Value, axis: int = 0) -> list[Value]:
    return _parts(call, data, axis, True)


def _joined(call: Call, values: Sequence[Value]) -> list[Symbol]:
    return [call.broadcast(Value(v.shape, call.stored, call.cast(v, call.stored), v.constant), v.shape) for v in values]


@converts("cat", "concat", "concatenate")
def cat(call: Call, values: Sequence[Value], axis: int = 0) -> Value:
    values = [v for v in values if not (len(v.shape) == 1 and is_static(v.shape[0]) and int(v.shape[0]) == 0)]
    parts = _joined(call, values)
    return call.value(sym.Concat(*parts, dim=axis % len(call.shape))) if len(parts) > 1 else call.value(parts[0])


@converts("stack")
def stack(call: Call, values: Sequence[Value], axis: int = 0) -> Value:
    return call.value(sym.stack(*_joined(call, values), axis=axis % len(call.shape)))


@converts("flip")
def flip(call: Call, data: Value, axes: Sequence[int]) -> Value:
    return call.value(sym.reverse(data.symbol, axis=tuple(a % len(data.shape) for a in axes)), data.dtype)


@converts("roll")
def roll(call: Call, data: Value, shifts: Sequence[Any], axes: Sequence[int] = ()) -> Value:
    if not axes:
        raise call.refuse("no axes are given")
    symbol = data.symbol
    for shift, axis in zip(call.sizes(shifts), axes):
        size, = call.sizes(data.shape[axis:axis + 1] if axis >= 0 else data.shape[axis:][:1])
        cut = size - shift % size
        if cut != size:
            symbol = sym.Concat(sym.slice_axis(symbol, axis=axis, begin=cut, end=None), sym.slice_axis(symbol, axis=axis, begin=0, end=cut),
                                dim=axis % len(data.shape))
    return call.value(symbol, data.dtype)


_PAD_MODES: dict[str, Literal["constant", "edge", "reflect"]] = {"constant": "constant", "replicate": "edge", "reflect": "reflect"}


@converts("pad", "constant_pad_nd")
def pad(call: Call, data: Value, widths: Sequence[Any], *rest: Any) -> Value:
    if call.target._schema.name == "aten::pad":
        kind, number = rest[0] if rest else "constant", rest[1] if len(rest) > 1 else None
    else:
        kind, number = "constant", rest[0] if rest else 0
    widths, rank = call.sizes(widths), len(data.shape)
    pairs = [(0, 0)] * (rank - len(widths) // 2) + [(widths[i], widths[i + 1]) for i in reversed(range(0, len(widths), 2))]
    padded = [axis for axis, pair in enumerate(pairs) if pair != (0, 0)]
    if not padded:
        return data
    if kind not in _PAD_MODES or min(widths) < 0 or rank > 5 or len(padded) > max(rank, 4) - 2:
        raise call.refuse(f"the mode is {kind} and the widths are {list(widths)} for {rank} axes: `Pad` pads all but two of 4 or 5 axes, with widths "
                          "from 0 on")
    # `Pad` takes 4 or 5 axes, and leaves the first two alone.
    order = [axis for axis in range(rank) if axis not in padded] + padded
    added = max(4 - rank, 0)
    symbol = data.symbol if order == sorted(order) else sym.transpose(data.symbol, axes=tuple(order))
    for _ in range(added):
        symbol = sym.expand_dims(symbol, axis=0)
    flat = tuple(width for pair in [(0, 0)] * added + [pairs[axis] for axis in order] for width in pair)
    symbol = sym.Pad(symbol, mode=_PAD_MODES[kind], pad_width=flat, constant_value=float(number or 0))
    if added:
        symbol = sym.squeeze(symbol, axis=tuple(range(added)))
    return call.value(symbol if order == sorted(order) else sym.transpose(symbol, axes=tuple(map(order.index, range(rank)))), data.dtype)


# -- looking up --------------------------------------------------------------------------------------------------------------------

@converts("embedding")
def embedding(call: Call, weight: Value, indices: Value, padding: int = -1, scale_by_frequency: bool = False, sparse: bool = False) -> Value:
    if scale_by_frequency:
        raise call.refuse("`scale_grad_by_freq` is set")
    if sparse:
        raise call.refuse("`sparse` is set: gradients of its block are dense")
    rows, columns = call.sizes(weight.shape)
    vectors = sym.Embedding(indices.symbol, weight.symbol, input_dim=rows, output_dim=columns)
    if padding >= 0:  # whose row has no gradient
        is_padding = call.broadcast(Value((*indices.shape, 1), indices.dtype, sym.expand_dims(indices.symbol == padding, axis=-1)), call.shape)
        vectors = sym.where(is_padding, sym.BlockGrad(vectors), vectors)
    return call.value(vectors)


@converts("index_select")
def index_select(call: Call, data: Value, axis: int, indices: Value) -> Value:
    return call.value(sym.take(data.symbol, indices.symbol, axis=axis), data.dtype)


@converts("index.Tensor")
def index(call: Call, data: Value, indices: Sequence[Value | None]) -> Value:
    given = [i for i, value in enumerate(indices) if value is not None]
    if len(given) == 1 and not indices[given[0]].truth:  # type: ignore[union-attr]  # it is given
        chosen = indices[given[0]]
        return call.value(sym.take(data.symbol, chosen.symbol, axis=given[0], mode="wrap"), data.dtype)  # type: ignore[union-attr]
    if given != list(range(len(given))) or any(indices[i].truth for i in given):  # type: ignore[union-attr]
        raise call.refuse("other axes than the first ones are indexed by several arrays, or one by a mask")
    shape = call.shape[:len(call.shape) - len(data.shape) + len(given)]
    positions = [call.broadcast(Value(v.shape, torch.int64, call.cast(v, torch.int64), v.constant), shape) for v in indices if v is not None]
    return call.value(sym.gather_nd(data.symbol, sym.stack(*positions, axis=0)), data.dtype)


@converts("gather")
def gather(call: Call, data: Value, axis: int, indices: Value, *rest: Any) -> Value:
    if is_static(indices.shape[axis]) and int(indices.shape[axis]) == 1:
        return call.value(sym.pick(data.symbol, indices.symbol, axis=axis, keepdims=True), data.dtype)
    raise call.refuse("more than one element is picked along the axis")


@converts("pixel_shuffle")
def pixel_shuffle(call: Call, data: Value, factor: int) -> Value:
    channels = call.sizes(data.shape[1:2])[0] // factor ** 2
    symbol = sym.reshape(data.symbol, shape=(0, -4, channels, -1, -2))
    height, width = call.sizes(data.shape[2:])
    symbol = sym.reshape(symbol, shape=(0, channels, factor, factor, height, width))
    return call.value(sym.reshape(sym.transpose(symbol, axes=(0, 1, 4, 2, 5, 3)), shape=(0, channels, height * factor, width * factor)), data.dtype)


@converts("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(call: Call, data: Value, groups: int) -> Value:
    _, channels, height, width = data.shape
    channels, height, width = call.sizes((channels, height, width))
    symbol = sym.reshape(data.symbol, shape=(0, groups, channels // groups, height, width))
    return call.value(sym.reshape(sym.transpose(symbol, axes=(0, 2, 1, 3, 4)), shape=(0, channels, height, width)), data.dtype)
