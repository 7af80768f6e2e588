"""Shapes and the order of axes."""
import math

import numpy as np

from .....base import MXNetError
from ..reading import UnsupportedFeature
from ..registry import translates
from ..reshaping import broadcast, source
from ..reshaping import reshape as reshaped
from ..values import Value, as_integers
from .elemwise import cast_to


@translates("Shape")
def shape(g, data, *, start=0, end=None):
    """The sizes of the axes from `start` to `end`: known while importing as far as the file says them."""
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
    """How many elements there are."""
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
    """The same elements in another shape; 0 keeps a size and -1 stands for what is left."""
    if shape.arrays is None:
        raise UnsupportedFeature(f"`shape` (the value '{shape.name}') follows from the values of the network's inputs")
    targets = [as_integers(array, "shape") for array in shape.arrays]
    if len({len(target) for target in targets}) > 1:
        raise UnsupportedFeature("the number of axes follows from sizes that the file leaves open")
    if any(target.count(-1) > 1 or min(target, default=0) < -1 for target in targets):
        raise MXNetError(f"a shape is sizes, 0 and at most one -1, received {targets[0]}")
    if any(0 in target for target in targets):
        if allowzero:
            raise UnsupportedFeature("arrays without elements")
        if any(len(set(column)) > 1 for column in zip(*targets)) or data.scalar:
            targets = [[s if n == 0 else n for n, s in zip(target, (*sizes, *target))] if 0 in target[:len(sizes)] else target
                       for target, sizes in zip(targets, g.shapes(data))]
    g.entry(data)
    return reshaped(g, data, [tuple(target) for target in targets])


@translates("Flatten")
def flatten(g, data, *, axis=1):
    """Two axes: what stands before `axis`, and the rest."""
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
    return g.op("squeeze", data, axis=chosen)


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
    return g.op("transpose", data, axes=tuple(perm or range(g.rank(data))[::-1]))


@translates("Concat")
def concat(g, *data, axis=1):
    """Values joined along an axis."""
    present = [value for value in data if value.arrays is None or value.arrays[0].size]
    if not present:
        raise UnsupportedFeature("arrays without elements")
    for value in present:
        g.entry(value)
    kinds = {g.dtype(value) for value in present}
    if len(kinds) > 1 and None not in kinds:
        wanted = max(kinds - {np.dtype("bool")}, key=lambda t: (t.kind == "f", t.itemsize))
        present = [cast_to(g, value, wanted) for value in present]
    return g.op("Concat", *present, dim=g.axis(present[0], axis))


@translates("Split")
def split(g, data, split=None, *, axis=0, num_outputs=None):
    """Parts of a value along an axis: of the given sizes, or alike (the last one smaller)."""
    g.entry(data)
    axis = g.axis(data, axis)
    count = num_outputs or g.node_outputs
    if split is None:
        total = g.sizes(data)[axis]
        if total is None or total % count == 0:
            made = g.op("SliceChannel", data, num_outputs=count, axis=axis)
            return made if count > 1 else [made]
        each = -(-total // count)
        sizes = [min(each, total - i * each) for i in range(count)]
    else:
        sizes = split.integers("split")
        total = g.known_shapes(data) and g.sizes(data)[axis]
        if total is not None and sum(sizes) != total:
            raise MXNetError(f"parts of sizes {list(sizes)[:10]} do not make up an axis of size {total}")
    if min(sizes, default=0) < 0:
        raise MXNetError(f"parts of sizes {list(sizes)[:10]}")
    ends = np.cumsum(sizes).tolist()
    return [g.op("slice_axis", data, axis=axis, begin=end - n, end=end) if n else _nothing(g, data, axis) for n, end in zip(sizes, ends)]


def _nothing(g, data, axis):
    """A part without elements, which others may be joined with."""
    return Value("", [np.zeros([0 if i == axis else n for i, n in enumerate(sizes)], g.dtype(data)) for sizes in g.shapes(data)])


@translates("Slice")
def slice_(g, data, starts, ends, axes=None, steps=None):
    """Parts of some axes: from `starts` to before `ends`, each `steps`-th."""
    g.entry(data)
    for value, what in ((starts, "starts"), (ends, "ends")):
        if value.arrays is None:
            value.constant(what)
    begins, stops = ([as_integers(array, "starts or ends") for array in value.arrays] for value in (starts, ends))
    rank = g.rank(data)
    chosen = tuple(range(len(begins[0]))) if axes is None else tuple(g.axis(data, axis) for axis in axes.integers("axes"))
    strides = (1,) * len(chosen) if steps is None else steps.integers("steps")
    if not len(begins[0]) == len(stops[0]) == len(chosen) == len(strides):
        raise MXNetError(f"`starts`, `ends`, `axes` and `steps` must be equally many, received {len(begins[0])}, {len(stops[0])}, {len(chosen)} and "
                         f"{len(strides)}")
    known = g.known_shapes(data)
    begin, end, step, counted = [None] * rank, [None] * rank, [1] * rank, []
    for i, axis in enumerate(chosen):
        if not strides[i]:
            raise MXNetError("a step of 0")
        sizes = None if known is None else [s[axis] for s in known]
        spans = None if sizes is None else [_span(b[i], s[i], strides[i], n) for b, s, n in zip(begins, stops, sizes)]
        if spans is not None and any(not len(range(*span)) for span in spans):
            raise UnsupportedFeature(f"nothing is left of axis {axis}; arrays without elements cannot be made")
        step[axis] = strides[i]
        first, last = tuple(b[i] for b in begins), tuple(s[i] for s in stops)
        if spans is not None and len(set(last)) > 1 and len(set(sizes)) == 1 and len(set(first)) == 1 and first[0] >= 0 and strides[i] == 1:
            counted.append((axis, tuple(b - a for a, b in zip(first, last)), first[0]))  # as many as an open size says, be it beyond the trials'
            continue
        if spans is None or len(set(first)) == 1 and len(set(last)) == 1 and len(set(sizes)) > 1:
            begin[axis] = None if abs(first[0]) > 1 << 30 or strides[i] > 0 and first[0] == 0 else first[0]
            end[axis] = None if abs(last[0]) > 1 << 30 else last[0]
            if len(set(first + last)) > 2 or spans is None and (len(set(first)) > 1 or len(set(last)) > 1):
                raise UnsupportedFeature("`starts` and `ends` follow from sizes that the file leaves open, and so does the shape")
        elif len(set(spans)) == 1:
            (b, s, _), = set(spans)
            begin[axis], end[axis] = b, None if s < 0 else s
        else:
            _open_span(axis, spans, sizes, begin, end, step, counted)
    if any(b is not None or e is not None for b, e in zip(begin, end)) or any(s != 1 for s in step):
        data = g.op("slice", data, begin=tuple(begin), end=tuple(end), step=tuple(step))
    elif not counted:
        return g.op("_copy", data, is_scalar=data.scalar)
    for axis, lengths, offset in counted:
        like, place = source(g, lengths)
        places = g.op("_contrib_arange_like", like, axis=place, start=float(offset))
        data = g.op("take", data, places, axis=axis, mode="clip")
    return data


def _span(start, stop, step, size):
    return slice(start, None if step < 0 and stop < -size else stop, step).indices(size)


def _open_span(axis, spans, sizes, begin, end, step, counted):
    """A part whose bounds follow from open sizes: counted from the end of the axis, or as long as another axis."""
    starts, stops = [span[0] for span in spans], [span[1] for span in spans]
    if step[axis] == 1:
        for bounds, where in ((starts, begin), (stops, end)):
            from_end = {bound - size for bound, size in zip(bounds, sizes)}
            if len(set(bounds)) == 1:
                where[axis] = bounds[0]
            elif len(from_end) == 1:
                where[axis] = from_end.pop() or None
            elif where is end and len(set(starts)) == 1:
                begin[axis] = None
                counted.append((axis, tuple(b - a for a, b in zip(starts, stops)), starts[0]))
                return
            else:
                raise UnsupportedFeature(f"the bounds of axis {axis} follow from sizes that the file leaves open in a way that cannot be imported")
        return
    raise UnsupportedFeature(f"axis {axis}: steps of {step[axis]} between bounds that follow from sizes that the file leaves open")


@translates("Pad")
def pad(g, data, pads=None, constant_value=None, axes=None, *, mode="constant", value=0.0, paddings=None):
    """The value with more elements on both sides of its axes; fewer, for a negative number."""
    amounts = pads.integers("pads") if pads is not None else tuple(paddings or ())
    rank = g.rank(data)
    chosen = tuple(range(rank)) if axes is None else tuple(g.axis(data, axis) for axis in axes.integers("axes"))
    if len(amounts) != 2 * len(chosen):
        raise MXNetError(f"`pads` must have {2 * len(chosen)} numbers for these axes, received {len(amounts)}")
    if constant_value is not None:
        value = constant_value.number("constant_value")
    widths = [(0, 0)] * rank
    for i, axis in enumerate(chosen):
        widths[axis] = amounts[i], amounts[i + len(chosen)]
    return padded(g, data, widths, mode, value)


def padded(g, data, widths, mode="constant", value=0.0):
    """`data` with elements before and behind each axis.

    Parameters
    ----------
    g : Translator
    data : Value
    widths : list of (int, int)
        How many, for each axis; negative numbers cut.
    mode : {'constant', 'edge', 'reflect', 'wrap'}
    value : float
        What is put there, in the first mode.
    """
    g.entry(data)
    if any(w < 0 for width in widths for w in width):
        cut = [(max(-a, 0), -max(-b, 0) or None) for a, b in widths]
        data = g.op("slice", data, begin=tuple(a for a, _ in cut), end=tuple(b for _, b in cut))
        widths = [(max(a, 0), max(b, 0)) for a, b in widths]
    if not any(w for width in widths for w in width):
        return g.op("_copy", data, is_scalar=data.scalar)
    if mode == "wrap":
        for axis, (before, behind) in enumerate(widths):
            if before or behind:
                places = np.arange(-before, g.size(data, axis, "Pad") + behind)
                data = g.op("take", data, g.array(places, "wrapped"), axis=axis, mode="wrap")
        return data
    if mode not in ("constant", "edge", "reflect"):
        raise UnsupportedFeature(f"Pad with mode={mode!r}; known are constant, edge, reflect and wrap")
    kind = g.dtype(data)
    if len(widths) in (4, 5) and not any(widths[0] + widths[1]) and (kind is None or kind.kind == "f"):
        return g.op("Pad", data, mode=mode, pad_width=tuple(w for width in widths for w in width), constant_value=float(value))
    return g.op("_npi_pad", data, mode=mode, pad_width=tuple(tuple(width) for width in widths), constant_value=value)


@translates("Tile")
def tile(g, data, repeats, axis=None):
    """The value many times side by side, along each axis as often as `repeats` says."""
    if axis is not None:  # the first version: how often, and along which axis
        along = g.axis(data, int(axis.number("axis")))
        return g.op("tile", data, reps=tuple(int(repeats.number("tiles")) if i == along else 1 for i in range(g.rank(data))))
    times = repeats.integers("repeats")
    if min(times, default=1) < 1:
        raise UnsupportedFeature(f"Tile by {times}; arrays without elements cannot be made")
    g.entry(data)
    return g.op("tile", data, reps=times or (1,), is_scalar=data.scalar)


@translates("Expand")
def expand(g, data, shape):
    """The value repeated along axes of size 1."""
    if shape.arrays is None:
        raise UnsupportedFeature(f"`shape` (the value '{shape.name}') follows from the values of the network's inputs")
    g.entry(data)
    targets = [as_integers(array, "shape") for array in shape.arrays]
    if any(min(target, default=1) < 1 for target in targets):
        raise UnsupportedFeature(f"Expand to {targets[0]}; arrays without elements cannot be made")
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
    found = g.op("SequenceReverse", data, sequence_lens, use_sequence_length=True)
    return g.op("transpose", found, axes=order) if turned else found


