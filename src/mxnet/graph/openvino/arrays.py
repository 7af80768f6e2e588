"""Shapes, slices, joining and indexing in OpenVINO. All shapes are known, so whatever only reshapes becomes a plain Reshape."""
import torch
from openvino import opset15 as ops

from .conversion import constant, converts, ints


@converts("Reshape", "reshape_like", "Flatten", "expand_dims", "squeeze", "_np_reshape", "_npx_reshape", "_np_squeeze")
def reshape(call, data, *others):
    return call.reshape(data, call.out_shape)


@converts("transpose", "_np_transpose")
def transpose(call, data):
    ndim = len(call.shape)
    return call.transpose(data, [a % ndim for a in call.axes] if call.axes else range(ndim - 1, -1, -1))


@converts("SwapAxis")
def swap_axis(call, data):
    axes = list(range(len(call.shape)))
    a, b = call.axis(call.dim1), call.axis(call.dim2)
    axes[a], axes[b] = b, a
    return call.transpose(data, axes)


@converts("Concat")
def concat(call, *inputs):
    return ops.concat(list(inputs), call.axis(call.dim))


@converts("_npi_concatenate")
def numpy_concatenate(call, *inputs):
    if call.attributes.get("axis") is None:
        call.refuse("flattening")
    return ops.concat(list(inputs), call.axis(call.attributes["axis"]))


@converts("stack")
def stack(call, *inputs):
    axis = call.axis(call.attributes["axis"], len(call.out_shape))
    return ops.concat([ops.unsqueeze(x, ints([axis])).output(0) for x in inputs], axis)


def _strided(call, data, starts, stops, steps, axes):
    """The slice [start, stop) of each of `axes`; all in range and from the front."""
    return ops.slice(data, ints(starts), ints(stops), ints(steps), ints(axes)).output(0)


@converts("slice")
def slice_(call, data):
    starts, stops, steps, axes = [], [], [], []
    for axis, (begin, end) in enumerate(zip(call.begin, call.end)):
        step = call.step[axis] if call.step and axis < len(call.step) and call.step[axis] is not None else 1
        if step < 1:
            call.refuse("a negative step")
        start, stop, _ = slice(begin, end, step).indices(call.shape[axis])
        starts.append(start), stops.append(stop), steps.append(step), axes.append(axis)
    return _strided(call, data, starts, stops, steps, axes)


@converts("slice_axis")
def slice_axis(call, data):
    axis = call.axis(call.attributes["axis"])
    start, stop, _ = slice(call.begin, call.end).indices(call.shape[axis])
    return _strided(call, data, [start], [stop], [1], [axis])


@converts("slice_like")
def slice_like(call, data, other):
    axes = range(len(call.shape))
    return _strided(call, data, [0 for _ in axes], call.out_shape, [1 for _ in axes], axes)


@converts("SliceChannel")
def slice_channel(call, data):
    found = ops.split(data, constant(call.axis(call.attributes["axis"]), torch.int64), call.num_outputs).outputs()
    return [call.reshape(f, call.out_shape) for f in found] if call.squeeze_axis else found


@converts("_split_v2")
def split(call, data):
    axis = call.axis(call.attributes["axis"])
    sizes = [1] * len(call.out_shapes) if call.squeeze_axis else [s[axis] for s in call.out_shapes]
    found = ops.variadic_split(data, constant(axis, torch.int64), ints(sizes)).outputs()
    return [call.reshape(f, s) for f, s in zip(found, call.out_shapes)]


@converts("tile")
def tile(call, data):
    return ops.tile(data, ints(call.reps))


@converts("broadcast_to", "broadcast_axis", "broadcast_like", "_npi_broadcast_to")
def broadcast(call, data, *others):
    return ops.broadcast(data, ints(call.out_shape))


@converts("Pad")
def pad(call, data):
    begins, ends = call.pad_width[0::2], call.pad_width[1::2]
    return ops.pad(data, ints(begins), ints(ends), call.mode, call.const(call.constant_value))


def _reversed(call, data, axes):
    return _strided(call, data, [-1 for _ in axes], [-call.shape[a] - 1 for a in axes], [-1 for _ in axes], axes)


@converts("reverse")
def reverse(call, data):
    return _reversed(call, data, [call.axis(a) for a in call.attributes["axis"]])


@converts("zeros_like", "ones_like")
def like(call, data):
    return ops.broadcast(call.const(1 if call.name == "ones_like" else 0), ints(call.out_shape))


def _row_indices(call, indices, dtype, size):
    """Indices cut to the rows that there are."""
    indices = call.cast(indices, torch.int64)
    return ops.minimum(ops.maximum(indices, constant(0, torch.int64)), constant(size - 1, torch.int64))


@converts("Embedding", "_contrib_SparseEmbedding")
def embedding(call, data, weight):
    return ops.gather(weight, _row_indices(call, data, call.in_types[0], call.in_shapes[1][0]), constant(0, torch.int64))


@converts("take")
def take(call, data, indices):
    axis = call.axis(call.attributes["axis"])
    if call.mode != "clip":
        call.refuse(f"mode {call.mode}")
    return ops.gather(data, _row_indices(call, indices, call.in_types[1], call.shape[axis]), constant(axis, torch.int64))


@converts("one_hot")
def one_hot(call, indices):
    values = (constant(v, call.out_types[0]) for v in (call.on_value, call.off_value))
    return ops.one_hot(call.cast(indices, torch.int64), constant(call.depth, torch.int64), *values, -1)


@converts("SequenceMask", "SequenceReverse", "SequenceLast")
def sequence(call, data, *lengths):
    if call.use_sequence_length:
        call.refuse("lengths")
    axis = call.axis(call.attributes.get("axis", 0))
    if call.name == "SequenceMask":
        return data
    if call.name == "SequenceReverse":
        return _reversed(call, data, [axis])
    size = call.shape[axis]
    return call.reshape(_strided(call, data, [size - 1], [size], [1], [axis]), call.out_shape)


@converts("depth_to_space")
def depth_to_space(call, data):
    return ops.depth_to_space(data, "blocks_first", call.block_size)


@converts("space_to_depth")
def space_to_depth(call, data):
    return ops.space_to_depth(data, "blocks_first", call.block_size)
