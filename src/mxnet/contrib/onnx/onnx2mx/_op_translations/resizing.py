"""Resizing of images."""
import numpy as np

from .....base import MXNetError
from .....suggestions import shortened
from ..reading import UnknownValue, UnsupportedFeature
from ..registry import translates
from .elemwise import binary, cast_to

_MODES = ("nearest", "linear", "cubic")


@translates("Upsample")
def upsample(g, data, scales, *, mode="nearest", width_scale=None, height_scale=None):
    """The value with more elements along its axes, by repeating them or between them."""
    return _resized(g, data, scales.constant("scales").astype(float), None, range(g.rank(data)), mode, "asymmetric", "floor")


@translates("Resize")
def resize(g, data, roi=None, scales=None, sizes=None, *, mode="nearest", coordinate_transformation_mode="half_pixel",
           nearest_mode="round_prefer_floor", cubic_coeff_a=-0.75, exclude_outside=0, extrapolation_value=0.0, antialias=0, axes=None,
           keep_aspect_ratio_policy="stretch"):
    """The value in other sizes."""
    if g.opset < 11:  # `scales` was the second input then
        roi, scales = None, roi
        coordinate_transformation_mode, nearest_mode = "asymmetric", "floor"
    chosen = range(g.rank(data)) if axes is None else [g.axis(data, axis) for axis in axes]
    factors = None if scales is None else scales.constant("scales").astype(float)
    factors = factors if factors is not None and factors.size else None
    wanted = None
    if factors is None:
        if sizes is None:
            raise MXNetError("`scales` or `sizes` expected, received neither")
        if len(sizes.candidates("sizes")) > 1 and sizes.array is None:
            wanted = _open_sizes(g, data, sizes, chosen)
        else:
            wanted = sizes.integers("sizes")
        if keep_aspect_ratio_policy != "stretch":
            wanted = _same_ratio(g, data, wanted, chosen, keep_aspect_ratio_policy)
    if coordinate_transformation_mode == "tf_crop_and_resize":
        return _cropped(g, data, roi, factors, wanted, chosen, mode, nearest_mode, cubic_coeff_a, exclude_outside, antialias, extrapolation_value)
    return _resized(g, data, factors, wanted, chosen, mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a, exclude_outside, antialias)


def _cropped(g, data, roi, factors, wanted, chosen, mode, rounding, coefficient, exclude, antialias, outside):
    """A part of the value in another size; `roi` holds where it begins along each axis and where it ends, in parts of the axis."""
    if roi is None:
        raise MXNetError("tf_crop_and_resize takes `roi`, received none")
    bounds = roi.constant("roi").astype(float)
    if bounds.shape != (2 * len(chosen),):
        raise MXNetError(f"`roi` has the shape {bounds.shape}; expected {2 * len(chosen)} numbers")
    kind, sizes = g.dtype(data), g.fixed(data, "tf_crop_and_resize")
    data = cast_to(g, data, "float32") if mode != "nearest" and kind is not None and kind.kind != "f" else data
    inside = np.ones((1,) * len(sizes))
    for i, axis in enumerate(chosen):
        before = sizes[axis]
        after = wanted[i] if factors is None else int(np.floor(before * factors[i] * (bounds[i + len(chosen)] - bounds[i])))
        _check(axis, after)
        where = bounds[i], bounds[i + len(chosen)]
        data = _along(g, data, (axis, before, after, after / before), {"bilinear": "linear"}.get(mode, mode), where, rounding, coefficient, exclude,
                      antialias)
        place = _coordinates(before, after, 1.0, where)
        inside = inside * ((place >= 0) & (place <= before - 1)).reshape([-1 if j == axis else 1 for j in range(len(sizes))])
    if not inside.all():
        masked = binary(g, "broadcast_mul", data, g.array(inside.astype(g.dtype(data) or "float32")))
        data = binary(g, "broadcast_add", masked, g.array(((1 - inside) * outside).astype(g.dtype(data) or "float32")))
    return data if kind is None else cast_to(g, data, kind)


def _check(axis, after):
    if not 1 <= after <= 1 << 16:
        raise MXNetError(f"axis {axis} is to have {after} elements; expected 1 to {1 << 16}")


def _open_sizes(g, data, sizes, chosen):
    """Return the requested sizes, with None for axes whose open size is unchanged."""
    known, sizes_found = g.shapes(data), []
    for i, axis in enumerate(chosen):
        wanted = tuple(int(array[i]) for array in sizes.arrays)
        if len(set(wanted)) == 1:
            sizes_found.append(wanted[0])
        elif wanted == tuple(shape[axis] for shape in known):
            sizes_found.append(None)
        else:
            raise UnknownValue("Resize to sizes that follow from ones that the file leaves open")
    return sizes_found


def _same_ratio(g, data, wanted, chosen, policy):
    ratios = [n / g.size(data, axis, "Resize") for n, axis in zip(wanted, chosen)]
    ratio = {"not_larger": min, "not_smaller": max}[policy](ratios)
    return [int(np.floor(ratio * g.size(data, axis, "Resize") + 0.5)) for axis in chosen]


def _resized(g, data, factors, wanted, chosen, mode, where, rounding, coefficient=-0.75, exclude=0, antialias=0):
    g.entry(data)
    kind = g.dtype(data)
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    if mode not in _MODES:
        raise MXNetError(f"`mode` must be one of {', '.join(_MODES)}, received {shortened(mode)}")
    count = len(factors if factors is not None else wanted)
    if count != len(chosen):
        raise MXNetError(f"{count} scales or sizes for {len(chosen)} axes")
    steps = []
    for i, axis in enumerate(chosen):
        before = g.sizes(data)[axis]
        factor = None if factors is None else float(factors[i])
        if factor == 1 or factors is None and (wanted[i] is None or wanted[i] == before):
            continue
        if factor is not None and not 0 < factor < 1 << 16:
            raise MXNetError(f"a scale of {factor}; expected a number above 0")
        if before is None:
            if mode == "nearest" and factor is not None and factor == int(factor) and where == "asymmetric" and rounding == "floor":
                steps.append((axis, None, int(factor)))
                continue
            raise UnknownValue(f"Resize along axis {axis}, whose size the file leaves open")
        after = int(np.floor(before * factor)) if factors is not None else wanted[i]
        _check(axis, after)
        steps.append((axis, before, after, after / before if factor is None else factor))
    if not steps:
        return g.op("_copy", data)
    if all(len(step) == 4 for step in steps) and _twice(g, data, steps, mode, where, rounding):
        return g.op("UpSampling", data, scale=steps[0][2] // steps[0][1], sample_type="nearest")
    bilinear = mode == "linear" and not antialias and g.rank(data) == 4 and {step[0] for step in steps} <= {2, 3} and kind == np.float32
    if bilinear and where in ("align_corners", "half_pixel") and factors is None:
        height, width = ({step[0]: step[2] for step in steps}.get(axis, g.sizes(data)[axis]) for axis in (2, 3))
        if height is not None and width is not None:
            return g.op("_contrib_BilinearResize2D", data, height=height, width=width, align_corners=where == "align_corners")
    if kind is not None and kind.kind != "f" and mode != "nearest":
        data = cast_to(g, data, "float32")
    for step in steps:
        data = _along(g, data, step, mode, where, rounding, coefficient, exclude, antialias)
    return data if kind is None or mode == "nearest" else cast_to(g, data, kind)


def _twice(g, data, steps, mode, where, rounding):
    """Return True if the resizing repeats each pixel in a square of pixels (nearest, one whole factor)."""
    if mode != "nearest" or g.rank(data) != 4 or sorted(step[0] for step in steps) != [2, 3] or g.dtype(data) is None or g.dtype(data).kind != "f":
        return False
    scale = steps[0][2] // steps[0][1]
    exact = all(step[1] * scale == step[2] and step[3] == scale for step in steps)
    # Half pixels, rounded to the nearest, give the same as rounding down without them.
    return exact and (where == "asymmetric" and rounding == "floor" or where == "half_pixel" and rounding == "round_prefer_floor")


def _along(g, data, step, mode, where, rounding, coefficient, exclude, antialias):
    if len(step) == 3:
        return g.op("repeat", data, repeats=step[2], axis=step[0])
    axis, before, after, factor = step
    if mode == "nearest":
        places = nearest(before, after, factor, where, rounding)
        return g.op("take", data, g.array(places), axis=axis, mode="clip")
    g.small((before, after), "Resize")
    matrix = weights(before, after, factor, where, mode, coefficient, exclude, antialias).astype(g.dtype(data) or "float32")
    last = g.rank(data) - 1
    turned = [last if i == axis else axis if i == last else i for i in range(last + 1)]
    data = data if axis == last else g.op("transpose", data, axes=tuple(turned))
    data = g.op("FullyConnected", data, g.array(matrix, "interpolation"), num_hidden=after, no_bias=True, flatten=False)
    return data if axis == last else g.op("transpose", data, axes=tuple(turned))


def _coordinates(before, after, factor, where):
    """Where each element of the result lies among those of the data."""
    place = np.arange(after, dtype=float)
    if isinstance(where, tuple):  # a part, by where it begins and ends
        start, end = (bound * (before - 1) for bound in where)
        return start + place * (end - start) / (after - 1) if after > 1 else (start + end) / 2 + place
    if where == "asymmetric":
        return place / factor
    if where == "align_corners":
        return place * (before - 1) / (before * factor - 1) if before * factor > 1 else place * 0
    if where in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric"):
        if where == "pytorch_half_pixel" and after == 1:
            return place * 0
        coordinates = (place + 0.5) / factor - 0.5
        if where == "half_pixel_symmetric":
            coordinates += before / 2 * (1 - after / (before * factor))
        return coordinates
    raise UnsupportedFeature(f"coordinate_transformation_mode={where!r}")


def nearest(before, after, factor, where, rounding):
    """The place of the nearest element for each element of the result.

    Parameters
    ----------
    before, after : int
        The sizes.
    factor : float
        The scale, of which `after` may be rounded.
    where, rounding : str
        ONNX's ``coordinate_transformation_mode`` and ``nearest_mode``.
    """
    place = _coordinates(before, after, factor, where)
    rounded = {"floor": np.floor, "ceil": np.ceil, "round_prefer_floor": lambda x: np.ceil(x - 0.5),
               "round_prefer_ceil": lambda x: np.floor(x + 0.5)}.get(rounding)
    if rounded is None:
        raise MXNetError(f"nearest_mode={rounding!r} is not known")
    return np.clip(rounded(place), 0, before - 1).astype("int64")


def weights(before, after, factor, where, mode, coefficient=-0.75, exclude=0, antialias=0):
    """The matrix (after, before) that interpolates along an axis; arguments as for `nearest`, and as ONNX's attributes."""
    place = _coordinates(before, after, factor, where)
    reach = 1 if mode == "linear" else 2
    narrow = min(factor, 1.0) if antialias else 1.0
    reach = int(np.ceil(reach / narrow))
    matrix = np.zeros((after, before))
    base = np.floor(place).astype(int)
    kernel = _linear if mode == "linear" else _cubic
    for offset in range(1 - reach, reach + 1):
        taps = base + offset
        share = kernel((place - taps) * narrow, coefficient)
        inside = (taps >= 0) & (taps < before)
        if exclude:
            share = np.where(inside, share, 0)
        np.add.at(matrix, (np.arange(after), np.clip(taps, 0, before - 1)), share)
    total = matrix.sum(1, keepdims=True)
    return matrix / total if exclude or antialias else matrix


def _linear(x, _):
    return np.maximum(1 - abs(x), 0)


def _cubic(x, a):
    x = abs(x)
    near = ((a + 2) * x - (a + 3)) * x ** 2 + 1
    far = a * (((x - 5) * x + 8) * x - 4)
    return np.where(x <= 1, near, np.where(x < 2, far, 0))
