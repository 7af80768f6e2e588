"""Pooling."""
import math

import numpy as np

from .....base import MXNetError
from ..reading import UnknownValue, UnsupportedFeature
from ..registry import translates
from ..reshaping import reshape
from .dense import window
from .elemwise import binary
from .slicing import padded

_LOWEST = -3.4028234663852886e38
_MOST = 1024  # elements of a window that are taken one by one


def _windows(g, data, kernel, strides, widths, ceil):
    """Return the padding at the end of each axis so that whole windows cover it, and the number of windows; None for an open size."""
    behind, counts = [], []
    for axis, (k, s, (before, after)) in enumerate(zip(kernel, strides, widths)):
        size = g.sizes(data)[axis + 2]
        if size is None:
            if ceil:
                raise UnknownValue("ceil_mode over an axis whose size the file leaves open")
            behind.append(after)
            counts.append(None)
            continue
        free = size + before + after - k
        if free < 0:
            raise MXNetError(f"windows of size {tuple(kernel)} are larger than the data, {g.sizes(data)[2:]} with padding {widths}")
        count = (-(-free // s) if ceil else free // s) + 1
        if ceil and (count - 1) * s >= size + before:  # a window that begins behind the data
            count -= 1
        counts.append(count)
        behind.append(max((count - 1) * s + k - size - before, 0) if ceil else after)
    return behind, counts


def _pool(g, data, pool_type, kernel, strides, widths, **attributes):
    """Pooling with padding that is alike on both sides."""
    return g.op("Pooling", data, pool_type=pool_type, kernel=kernel, stride=strides, pad=tuple(w[0] for w in widths), **attributes)


def _plain(widths, kernel, ceil):
    """Return True if the operator Pooling itself supports this padding."""
    return not ceil and all(before == behind < k for (before, behind), k in zip(widths, kernel))


def _full(widths, kernel, strides, ceil):
    """Return True if the padding behind makes as many windows as are counted if their number is rounded up."""
    return not ceil and all(before + stride - 1 == behind < k for (before, behind), k, stride in zip(widths, kernel, strides))


@translates("MaxPool")
def max_pooling(g, data, *, kernel_shape, strides=None, pads=None, dilations=None, auto_pad="NOTSET", ceil_mode=0, storage_order=0):
    """The largest value of each window."""
    g.entry(data)
    kernel = tuple(kernel_shape)
    strides, dilations, widths = window(g, data, kernel, strides, pads, dilations, auto_pad)
    if g.node_outputs > 1:
        return _max_with_places(g, data, kernel, strides, dilations, widths, ceil_mode, storage_order)
    kind = g.dtype(data)
    if kind is not None and kind.kind != "f":
        wide = "float32" if kind.itemsize < 3 else "float64"
        return g.op("Cast", _max(g, g.op("Cast", data, dtype=wide), kernel, strides, dilations, widths, ceil_mode), dtype=kind.name)
    return _max(g, data, kernel, strides, dilations, widths, ceil_mode)


def _max(g, data, kernel, strides, dilations, widths, ceil):
    if set(dilations) == {1} and _plain(widths, kernel, ceil):
        return _pool(g, data, "max", kernel, strides, widths)
    if set(dilations) == {1} and _full(widths, kernel, strides, ceil):
        return _pool(g, data, "max", kernel, strides, widths, pooling_convention="full")
    lowest = -65504.0 if g.dtype(data) == np.float16 else _LOWEST
    if set(dilations) == {1}:
        behind, counts = _windows(g, data, kernel, strides, widths, ceil)
        sizes = [g.sizes(data)[axis + 2] for axis in range(len(kernel))]
        padded_data = ceil and _plain(widths, kernel, False) and None not in sizes
        if padded_data and counts == [-(-(n + 2 * w[0] - k) // s) + 1 for n, w, k, s in zip(sizes, widths, kernel, strides)]:
            return _pool(g, data, "max", kernel, strides, widths, pooling_convention="full")  # as many windows as MXNet counts
        padded_data = padded(g, data, [(0, 0), (0, 0), *((before, b) for (before, _), b in zip(widths, behind))], value=lowest)
        return _pool(g, padded_data, "max", kernel, strides, [(0, 0)] * len(kernel))
    return _by_axes(g, "broadcast_maximum", data, kernel, strides, dilations, widths, ceil, lowest)[0]


def _max_with_places(g, data, kernel, strides, dilations, widths, ceil, columns_first):
    """The largest values, and their positions in the flattened data."""
    sizes, kind = g.fixed(data, "the places of MaxPool"), g.dtype(data) or np.dtype("float32")
    lowest = -65504.0 if kind == np.float16 else _LOWEST if kind.kind == "f" else float(np.iinfo(kind).min)
    parts, counts = _places(g, data, kernel, strides, dilations, widths, ceil, lowest)
    g.small((*sizes[:2], *counts), "the places of MaxPool")
    windows = g.op("stack", *parts, axis=0)
    largest = g.op("max", windows, axis=(0,))
    chosen = g.op("argmax", windows, axis=0)
    # A position in the flattened data is a sum of the offsets of the channel, of the window, and of the position in the window.
    steps = np.cumprod((1, *(sizes[2:-1] if columns_first else sizes[:2:-1])))
    steps = steps if columns_first else steps[::-1]
    offsets = np.array([sum(p * d * step for p, d, step in zip(place, dilations, steps)) for place in np.ndindex(*kernel)])
    base = np.arange(sizes[0] * sizes[1]).reshape(sizes[0], sizes[1], *[1] * len(kernel)) * math.prod(sizes[2:])
    for axis, (count, stride, (before, _), step) in enumerate(zip(counts, strides, widths, steps)):
        base = base + ((np.arange(count) * stride - before) * step).reshape(-1, *[1] * (len(kernel) - 1 - axis))
    offset = g.op("take", g.array(offsets.astype("int64")), chosen, mode="clip")
    return [largest, binary(g, "broadcast_add", offset, g.array(base.astype("int64")))]


@translates("AveragePool")
def avg_pooling(g, data, *, kernel_shape, strides=None, pads=None, dilations=None, auto_pad="NOTSET", ceil_mode=0, count_include_pad=0):
    """The mean of each window, of its padding too if that counts."""
    g.entry(data)
    kernel = tuple(kernel_shape)
    strides, dilations, widths = window(g, data, kernel, strides, pads, dilations, auto_pad)
    if set(dilations) != {1}:
        return _dilated_average(g, data, kernel, strides, dilations, widths, ceil_mode, count_include_pad)
    if _plain(widths, kernel, ceil_mode):
        return _pool(g, data, "avg", kernel, strides, widths, count_include_pad=bool(count_include_pad))
    behind, counts = _windows(g, data, kernel, strides, widths, ceil_mode)
    padded_data = padded(g, data, [(0, 0), (0, 0), *((before, b) for (before, _), b in zip(widths, behind))])
    total = _pool(g, padded_data, "sum", kernel, strides, [(0, 0)] * len(kernel))
    return _divided(g, data, total, kernel, strides, widths, counts, count_include_pad)


def _divided(g, data, total, reach, strides, widths, counts, include, step=None):
    """Divide the sums of windows by their numbers of elements."""
    divisor = np.ones((1, 1, *[1] * len(reach)), g.dtype(data) or "float32")
    for axis, (r, s, (before, after), count) in enumerate(zip(reach, strides, widths, counts)):
        d = 1 if step is None else step[axis]
        if count is None:
            raise UnknownValue("AveragePool with unlike padding over an axis whose size the file leaves open")
        size = g.sizes(data)[axis + 2]
        places = np.arange(count)[:, None] * s - before + np.arange(0, r, d)[None]
        inside = (places >= (-before if include else 0)) & (places < size + (after if include else 0))
        shape = [1] * divisor.ndim
        shape[axis + 2] = count
        divisor = divisor * np.maximum(inside.sum(1), 1).reshape(shape).astype(divisor.dtype)
    return g.op("broadcast_div", total, g.array(divisor, "window_sizes"))


def _dilated_average(g, data, kernel, strides, dilations, widths, ceil, include):
    total, counts = _by_axes(g, "broadcast_add", data, kernel, strides, dilations, widths, ceil, 0.0)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    return _divided(g, data, total, reach, strides, widths, counts, include, dilations)


def _by_axes(g, operator, data, kernel, strides, dilations, widths, ceil, value):
    """Reduce dilated windows by an operator, axis by axis; return the results and the numbers of windows."""
    padded_data, counts = _spread(g, data, kernel, strides, dilations, widths, ceil, value)
    for axis, (k, s, d, count) in enumerate(zip(kernel, strides, dilations, counts)):
        if k > _MOST:
            raise MXNetError(f"windows of size {kernel}; with dilations expected at most {_MOST} along an axis")
        spans = [(place * d, place * d + (count - 1) * s + 1) for place in range(k)]
        parts = [g.op("slice", padded_data, begin=(None,) * (axis + 2) + (begin,), end=(None,) * (axis + 2) + (end,), step=(1,) * (axis + 2) + (s,))
                 for begin, end in spans]
        padded_data = parts[0]
        for part in parts[1:]:
            padded_data = binary(g, operator, padded_data, part)
    return padded_data, counts


def _spread(g, data, kernel, strides, dilations, widths, ceil, value):
    """Return the padded data and the numbers of dilated windows."""
    behind, counts = _windows(g, data, [(k - 1) * d + 1 for k, d in zip(kernel, dilations)], strides, widths, ceil)
    if None in counts:
        raise UnknownValue(f"pooling with dilations {dilations} over an axis whose size the file leaves open")
    return padded(g, data, [(0, 0), (0, 0), *((before, b) for (before, _), b in zip(widths, behind))], value=value), counts


def _places(g, data, kernel, strides, dilations, widths, ceil, value):
    """Return, for each position in a window, the values of all windows there, and the numbers of windows."""
    padded_data, counts = _spread(g, data, kernel, strides, dilations, widths, ceil, value)
    if math.prod(kernel) > _MOST:
        raise UnsupportedFeature(f"the places of the largest values of windows of size {kernel}")
    places = []
    for place in np.ndindex(*kernel):
        begin = [p * d for p, d in zip(place, dilations)]
        end = [b + (n - 1) * s + 1 for b, n, s in zip(begin, counts, strides)]
        places.append(g.op("slice", padded_data, begin=(None, None, *begin), end=(None, None, *end), step=(1, 1, *strides)))
    return places, counts


@translates("LpPool")
def lp_pooling(g, data, *, kernel_shape, strides=None, pads=None, dilations=None, auto_pad="NOTSET", ceil_mode=0, p=2):
    """The p-norm of each window."""
    g.entry(data)
    kernel = tuple(kernel_shape)
    strides, dilations, widths = window(g, data, kernel, strides, pads, dilations, auto_pad)
    powers = g.op("_power_scalar", g.op("abs", data), scalar=float(p))
    if set(dilations) != {1}:
        return g.op("_power_scalar", _by_axes(g, "broadcast_add", powers, kernel, strides, dilations, widths, ceil_mode, 0.0)[0], scalar=1 / p)
    behind, _ = _windows(g, data, kernel, strides, widths, ceil_mode)
    padded_powers = padded(g, powers, [(0, 0), (0, 0), *((before, b) for (before, _), b in zip(widths, behind))])
    return g.op("_power_scalar", _pool(g, padded_powers, "sum", kernel, strides, [(0, 0)] * len(kernel)), scalar=1 / p)


def _global(g, data, pool_type, **attributes):
    g.entry(data)
    axes = g.rank(data) - 2
    if axes > 3 or axes < 1:
        name, along = {"avg": "mean", "max": "max", "sum": "sum"}[pool_type], tuple(range(2, axes + 2))
        return g.op(name, data, axis=along, keepdims=True)
    return g.op("Pooling", data, pool_type=pool_type, global_pool=True, kernel=(1,) * axes, **attributes)


@translates("GlobalAveragePool")
def global_avgpooling(g, data):
    """The mean over all spatial axes."""
    return _global(g, data, "avg")


@translates("GlobalMaxPool")
def global_maxpooling(g, data):
    """The largest value over all spatial axes."""
    return _global(g, data, "max")


@translates("GlobalLpPool")
def global_lppooling(g, data, *, p=2):
    """The p-norm over all spatial axes."""
    powers = g.op("_power_scalar", g.op("abs", data), scalar=float(p))
    return g.op("_power_scalar", _global(g, powers, "sum"), scalar=1 / p)


@translates("MaxRoiPool")
def max_roi_pooling(g, data, rois, *, pooled_shape, spatial_scale=1.0):
    """The largest values of parts of regions."""
    return g.op("ROIPooling", data, rois, pooled_size=tuple(pooled_shape), spatial_scale=spatial_scale)


@translates("RoiAlign")
def roi_align(g, data, rois, batch_indices, *, mode="avg", output_height=1, output_width=1, sampling_ratio=0, spatial_scale=1.0,
              coordinate_transformation_mode=None):
    """The means of parts of regions, between pixels."""
    where = coordinate_transformation_mode or ("half_pixel" if g.opset >= 16 else "output_half_pixel")
    if mode != "avg" or where not in ("half_pixel", "output_half_pixel"):
        raise UnsupportedFeature(f"RoiAlign with mode={mode!r} and coordinate_transformation_mode={where!r}")
    index = reshape(g, g.op("Cast", batch_indices, dtype="float32"), [(-1, 1)] * len(g.known_shapes(batch_indices) or [0]))
    regions = g.op("Concat", index, rois, dim=1)
    return g.op("_contrib_ROIAlign", data, regions, pooled_size=(output_height, output_width), spatial_scale=spatial_scale,
                sample_ratio=sampling_ratio or -1, aligned=where == "half_pixel")
