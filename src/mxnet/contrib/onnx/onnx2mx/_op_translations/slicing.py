"""Slicing and padding of arrays."""
import math

import numpy as np

from .....base import MXNetError
from .....util import is_np_shape
from ..reading import UnknownValue, UnsupportedFeature
from ..registry import translates
from ..reshaping import source
from ..values import Value, as_integers

_BEYOND = 1 << 30  # bounds that exporters write for the end of an axis


@translates("Split")
def split(g, data, split=None, *, axis=0, num_outputs=None):
    """Parts of a value along an axis: of the given sizes, or alike (the last one smaller)."""
    g.entry(data)
    axis = g.axis(data, axis)
    count = num_outputs or g.node_outputs
    if count > 1 << 12:
        raise MXNetError(f"{count} parts; expected at most {1 << 12}")
    if split is None:
        total = g.sizes(data)[axis]
        if total is None or total and total % count == 0:
            made = g.op("SliceChannel", data, num_outputs=count, axis=axis)
            return made if count > 1 else [made]
        each = -(-total // count)
        sizes = [max(min(each, total - i * each), 0) for i in range(count)]
    else:
        sizes = split.integers("split")
        total = g.known_shapes(data) and g.sizes(data)[axis]
        if total is not None and sum(sizes) != total:
            raise MXNetError(f"parts of sizes {list(sizes)[:10]} do not make up an axis of size {total}")
    if min(sizes, default=0) < 0:
        raise MXNetError(f"parts of sizes {list(sizes)[:10]}")
    ends = np.cumsum(sizes).tolist()
    if total is not None and len(sizes) > 1 and all(sizes):
        if len(set(sizes)) == 1:
            return g.op("SliceChannel", data, num_outputs=len(sizes), axis=axis)
        return g.op("_split_v2", data, indices=(0, *ends[:-1]), axis=axis)
    return [g.op("slice_axis", data, axis=axis, begin=end - n, end=end) if n else nothing(g, data, axis) for n, end in zip(sizes, ends)]


def nothing(g, data, axis):
    """Return a part without elements, for concatenation."""
    return Value("", [np.zeros([0 if i == axis else n for i, n in enumerate(sizes)], g.dtype(data)) for sizes in g.shapes(data)])


@translates("Slice")
def slice_(g, data, starts, ends, axes=None, steps=None):
    """Parts of some axes: from `starts` to before `ends`, each `steps`-th."""
    g.entry(data)
    begins, stops = ([as_integers(array, name) for array in value.candidates(name)] for value, name in ((starts, "starts"), (ends, "ends")))
    rank = g.rank(data)
    chosen = tuple(range(len(begins[0]))) if axes is None else tuple(g.axis(data, axis) for axis in axes.integers("axes"))
    strides = (1,) * len(chosen) if steps is None else steps.integers("steps")
    if not len(begins[0]) == len(stops[0]) == len(chosen) == len(strides):
        raise MXNetError(f"`starts`, `ends`, `axes` and `steps` must be equally many, received {len(begins[0])}, {len(stops[0])}, {len(chosen)} and "
                         f"{len(strides)}")
    if not all(strides):
        raise MXNetError(f"steps other than 0 expected, received {strides!r:.80}")
    known = g.known_shapes(data)
    parts = {axis: _part(axis, [b[i] for b in begins], [s[i] for s in stops], strides[i], known and [sizes[axis] for sizes in known])
             for i, axis in enumerate(chosen)}
    if any(part == "nothing" for part in parts.values()):
        return _without_elements(g, data, parts, known)
    return _taken(g, data, parts, rank)


def _part(axis, first, last, step, sizes):
    """Return the slice of an axis by the first rule that applies: (begin, end, step), or a count and a start, or ``'nothing'``."""
    if sizes is None:
        if len(set(first)) > 1 or len(set(last)) > 1:
            raise UnknownValue("`starts` and `ends` follow from sizes that the file leaves open, and so does the shape")
        return _as_written(first[0], last[0], step)
    spans = [slice(a, None if step < 0 and b < -n else b, step).indices(n) for a, b, n in zip(first, last, sizes)]
    for rule in (_empty, _as_many, _same_bounds, _same_spans, _from_the_end):
        part = rule(first, last, step, sizes, spans)
        if part is not None:
            return part
    raise UnknownValue(f"the bounds of axis {axis} follow from sizes that the file leaves open in a way that cannot be imported")


def _as_written(first, last, step):
    begin = None if abs(first) > _BEYOND or step > 0 and first == 0 else first
    return begin, None if abs(last) > _BEYOND else last, step


def _empty(first, last, step, sizes, spans):
    return "nothing" if any(not len(range(*span)) for span in spans) else None


def _as_many(first, last, step, sizes, spans):
    """Return the count and the start of a slice whose count is an open size, even if the trial numbers exceed the axis."""
    if len(set(last)) > 1 and len(set(sizes)) == 1 and len(set(first)) == 1 and first[0] >= 0 and step == 1:
        return tuple(b - first[0] for b in last), first[0]
    return None


def _same_bounds(first, last, step, sizes, spans):
    if len(set(first)) == len(set(last)) == 1 and len(set(sizes)) > 1:
        return _as_written(first[0], last[0], step)
    return None


def _same_spans(first, last, step, sizes, spans):
    if len(set(spans)) > 1:
        return None
    begin, end, _ = spans[0]
    return begin, None if end < 0 else end, step


def _from_the_end(first, last, step, sizes, spans):
    """Bounds that are counted from the end of the axis, or as many as another axis has."""
    if step != 1:
        return None
    bounds = []
    for places in ([span[0] for span in spans], [span[1] for span in spans]):
        from_end = {place - size for place, size in zip(places, sizes)}
        bounds.append((places[0],) if len(set(places)) == 1 else (from_end.pop() or None,) if len(from_end) == 1 else None)
    begin, end = bounds
    if begin is not None and end is not None:
        return begin[0], end[0], 1
    if end is None and len({span[0] for span in spans}) == 1:
        return tuple(span[1] - span[0] for span in spans), spans[0][0]
    return None


def _without_elements(g, data, parts, known):
    if not is_np_shape():
        raise UnsupportedFeature(f"nothing is left of axis {next(a for a, p in parts.items() if p == 'nothing')}; import the file within "
                                 "mx.np_shape(), where there are arrays without elements")
    if any(len(part) == 2 for part in parts.values() if part != "nothing"):
        raise UnknownValue("sizes that the file leaves open, beside an axis of which nothing is left")
    for axis, part in parts.items():
        if part == "nothing":
            data = g.op("take", data, g.array(np.zeros(0, "int64")), axis=axis, mode="clip")
    return _taken(g, data, {axis: part for axis, part in parts.items() if part != "nothing"}, len(known[0]))


def _taken(g, data, parts, rank):
    plain = {axis: part for axis, part in parts.items() if len(part) == 3 and part != (None, None, 1)}
    counted = {axis: part for axis, part in parts.items() if len(part) == 2}
    if len(plain) == 1 and (part := next(iter(plain.items())))[1][2] == 1:
        data = g.op("slice_axis", data, axis=part[0], begin=part[1][0] or 0, end=part[1][1])
    elif plain:
        begin, end, step = zip(*(plain.get(axis, (None, None, 1)) for axis in range(rank)))
        data = g.op("slice", data, begin=begin, end=end, step=step)
    elif not counted:
        return g.op("_copy", data, is_scalar=data.scalar)
    for axis, (lengths, offset) in counted.items():
        like, place = source(g, lengths)
        places = g.op("_contrib_arange_like", like, axis=place, start=float(offset))
        data = g.op("take", data, places, axis=axis, mode="clip")
    return data


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
        The padding widths, for each axis; negative numbers cut.
    mode : {'constant', 'edge', 'reflect', 'wrap'}
    value : float
        The padding value, in the first mode.
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


@translates("CenterCropPad")
def center_crop_pad(g, data, shape, *, axes=None):
    """The middle of the value, padded with zeros where it is smaller than requested."""
    sizes = shape.integers("shape")
    rank = g.rank(data)
    chosen = tuple(range(rank)) if axes is None else tuple(g.axis(data, axis) for axis in axes)
    if len(sizes) != len(chosen) or min(sizes, default=1) < 1:
        raise MXNetError(f"`shape` must have {len(chosen)} sizes of 1 or more, received {sizes}")
    widths = [(0, 0)] * rank
    for axis, size in zip(chosen, sizes):
        missing = size - g.size(data, axis, "CenterCropPad")
        before = missing // 2 if missing > 0 else -(-missing // 2)
        widths[axis] = before, missing - before
    return padded(g, data, widths)


@translates("Tile")
def tile(g, data, repeats, axis=None):
    """The value repeated along each axis, with the counts in `repeats`."""
    if axis is not None:  # the first version: how often, and along which axis
        along = g.axis(data, int(axis.number("axis")))
        return g.op("tile", data, reps=tuple(int(repeats.number("tiles")) if i == along else 1 for i in range(g.rank(data))))
    times = repeats.integers("repeats")
    if min(times, default=1) < (0 if is_np_shape() else 1) or math.prod(times) > 1 << 31:
        raise MXNetError(f"Tile by {times}: expected positive numbers")
    g.entry(data)
    return g.op("tile", data, reps=times or (1,), is_scalar=data.scalar)
