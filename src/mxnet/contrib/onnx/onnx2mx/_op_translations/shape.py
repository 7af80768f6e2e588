"""Shapes and the order of axes."""
import math

import numpy as np

from .....base import MXNetError
from .....util import is_np_shape
from ..reading import UnknownValue, UnsupportedFeature
from ..registry import translates
from ..reshaping import broadcast
from ..reshaping import reshape as reshaped
from ..values import Value, as_integers
from .elemwise import cast_to


@translates("Shape")
def shape(g, data, *, start=0, end=None):
    """The sizes of the axes from `start` to `end`: known during the import as far as the file defines them."""
    known = g.known_shapes(data)
    part = slice(start, end)
    if known is not None:
        if data.entry is not None:
            g.note_sizes(data)
        value = Value("", [np.array(sizes[part], "int64") for sizes in known])
        value.recipe = lambda: _cut(g, g.op("shape_array", data), start, end)
        return value
    return _cut(g, g.op("shape_array", data), start, end)


def _cut(g, sizes, start, end):
    return sizes if start == 0 and end is None else g.op("slice_axis", sizes, axis=0, begin=start, end=end)


@translates("Size")
def size(g, data):
    """The number of elements."""
    known = g.known_shapes(data)
    if known is None:
        return g.op("size_array", data, is_scalar=True)
    if data.entry is not None:
        g.note_sizes(data)
    value = Value("", [np.array(math.prod(sizes), "int64") for sizes in known])
    value.recipe = lambda: g.op("size_array", data, is_scalar=True)
    return value


@translates("Reshape")
def reshape(g, data, shape, *, allowzero=0):
    """The same elements in another shape; 0 keeps a size and -1 is inferred."""
    targets = [as_integers(array, "shape") for array in shape.candidates("shape")]
    if len({len(target) for target in targets}) > 1:
        raise UnknownValue("the number of axes follows from sizes that the file leaves open")
    if any(target.count(-1) > 1 or min(target, default=0) < -1 for target in targets):
        raise MXNetError(f"a shape is sizes, 0 and at most one -1, received {targets[0]}")
    g.entry(data)
    if any(0 in target for target in targets):
        known = g.known_shapes(data)
        if allowzero or known is not None and any(0 in sizes for sizes in known):
            return _without_elements(g, data, targets, allowzero)
        if any(len(set(column)) > 1 for column in zip(*targets)) or data.scalar:
            targets = [_remaining(target, sizes) for target, sizes in zip(targets, g.shapes(data))]
    before = None if data.scalar else g.undone(data, "Reshape")
    if before is not None and _is_shape(g.known_shapes(before), targets, g.known_shapes(data)):
        return before
    return reshaped(g, data, [tuple(target) for target in targets])


def _is_shape(shapes, targets, current):
    """Return True if `targets`, of which 0 stands for a size of `current` and -1 for what is left, are the same as `shapes`."""
    if shapes is None or current is None:
        return False
    targets = [_remaining(target, sizes) for target, sizes in zip(targets * (len(shapes) // len(targets)), current)]
    return all(len(shape) == len(target) and all(n in (-1, s) for n, s in zip(target, shape)) for shape, target in zip(shapes, targets))


def _remaining(target, sizes):
    """A shape with sizes in place of zeros."""
    return [s if n == 0 else n for n, s in zip(target, (*sizes, *target))] if 0 in target[:len(sizes)] else target


def _without_elements(g, data, targets, allowzero):
    if not is_np_shape():
        raise UnsupportedFeature("arrays without elements; import the file within mx.np_shape(), where there are such arrays")
    sizes = g.fixed(data, "a reshape without elements")
    target = list(targets[0] if allowzero else _remaining(targets[0], sizes))
    if -1 in target:
        others = math.prod(n for n in target if n != -1)
        target[target.index(-1)] = math.prod(sizes) // others if others else 0
    return g.op("_np_reshape", data, newshape=tuple(target))


@translates("Flatten")
def flatten(g, data, *, axis=1):
    """The elements in two axes: those before `axis` joined, and the others joined."""
    axis = g.axis(data, axis) if axis != g.rank(data) else axis
    if axis == 1:
        return g.op("Flatten", data)
    return reshaped(g, data, [(math.prod(sizes[:axis]), math.prod(sizes[axis:])) for sizes in g.shapes(data)])


@translates("Squeeze")
def squeeze(g, data, axes=None):
    """The value without axes of size 1."""
    sizes = g.sizes(data) if axes is None else None
    chosen = tuple(i for i, n in enumerate(sizes) if n == 1) if axes is None else tuple(g.axis(data, a) for a in axes.integers("axes"))
    if not chosen:
        return g.op("_copy", data, is_scalar=data.scalar)
    if len(set(chosen)) == g.rank(data):
        return g.op("Reshape", data, shape=(1,), is_scalar=True)
    before = g.undone(data, "expand_dims", axis=chosen[0]) if len(chosen) == 1 else None
    return g.op("squeeze", data, axis=chosen) if before is None else before


@translates("Unsqueeze")
def unsqueeze(g, data, axes):
    """The value with new axes of size 1, at these places of the result."""
    g.entry(data)
    chosen = axes.integers("axes")
    if data.scalar:
        return g.op("Reshape", data, shape=(1,) * len(chosen))
    places = sorted(g.axis(data, axis, len(chosen)) for axis in chosen)
    for axis in places:
        data = g.op("expand_dims", data, axis=axis)
    return data


@translates("Transpose")
def transpose(g, data, *, perm=None):
    """The axes in another order, or turned around."""
    g.entry(data)
    if data.scalar:
        return g.op("_copy", data, is_scalar=True)
    axes = tuple(perm or range(g.rank(data))[::-1])
    before = g.undone(data, "transpose", axes=tuple(axes.index(i) for i in range(len(axes)))) if sorted(axes) == list(range(len(axes))) else None
    return g.op("transpose", data, axes=axes) if before is None else before


@translates("Concat")
def concat(g, *data, axis=1):
    """Values joined along an axis."""
    present = [value for value in data if value.arrays is None or value.arrays[0].size]
    if not present:
        present = data
    for value in present:
        g.entry(value)
    kinds = {g.dtype(value) for value in present}
    if len(kinds) > 1 and None not in kinds:
        wanted = max(kinds - {np.dtype("bool")}, key=lambda t: (t.kind == "f", t.itemsize))
        present = [cast_to(g, value, wanted) for value in present]
    return g.op("Concat", *present, dim=g.axis(present[0], axis))


@translates("Expand")
def expand(g, data, shape):
    """The value repeated along axes of size 1."""
    g.entry(data)
    targets = [as_integers(array, "shape") for array in shape.candidates("shape")]
    least = min((n for target in targets for n in target), default=1)
    if least < 0 or not least and not is_np_shape():
        raise UnsupportedFeature(f"Expand to {targets[0]}: expected positive sizes (or 0 within mx.np_shape())")
    if len(targets) == 1:
        sizes = g.known_shapes(data)
        if sizes is not None:
            common = np.broadcast_shapes(sizes[0], targets[0])
            return g.op("_npi_broadcast_to", data, shape=common, is_scalar=not common) if common else g.op("_copy", data, is_scalar=True)
    result = broadcast(g, data, targets)
    return g.op("_copy", data, is_scalar=data.scalar) if result is data else result


@translates("DepthToSpace")
def depth_to_space(g, data, *, blocksize, mode="DCR"):
    """Channels spread over blocks of pixels."""
    if mode == "DCR":
        return g.op("depth_to_space", data, block_size=blocksize)
    apart = g.op("Reshape", data, shape=(0, -4, -1, blocksize ** 2, 0, 0))
    apart = g.op("Reshape", apart, shape=(0, 0, -4, blocksize, blocksize, 0, 0))
    mixed = g.op("transpose", apart, axes=(0, 1, 4, 2, 5, 3))
    return g.op("Reshape", mixed, shape=(0, 0, -3, -3))


@translates("SpaceToDepth")
def space_to_depth(g, data, *, blocksize, mode="DCR"):
    """Blocks of pixels gathered in channels."""
    if mode == "DCR":
        return g.op("space_to_depth", data, block_size=blocksize)
    apart = g.op("Reshape", data, shape=(0, 0, -4, -1, blocksize, 0))
    apart = g.op("Reshape", apart, shape=(0, 0, 0, 0, -4, -1, blocksize))
    mixed = g.op("transpose", apart, axes=(0, 1, 3, 5, 2, 4))
    return g.op("Reshape", g.op("Reshape", mixed, shape=(0, -3, 0, 0, 0)), shape=(0, -3, 0, 0))


@translates("ReverseSequence")
def reverse_sequence(g, data, sequence_lens, *, batch_axis=1, time_axis=0):
    """The first elements of each sequence turned around, as many as it has."""
    if (batch_axis, time_axis) not in ((1, 0), (0, 1)):
        raise MXNetError(f"`batch_axis` and `time_axis` must be 0 and 1 in either order, received {batch_axis} and {time_axis}")
    turned = batch_axis == 0
    order = (1, 0, *range(2, g.rank(data)))
    data = g.op("transpose", data, axes=order) if turned else data
    result = g.op("SequenceReverse", data, sequence_lens, use_sequence_length=True)
    return g.op("transpose", result, axes=order) if turned else result


