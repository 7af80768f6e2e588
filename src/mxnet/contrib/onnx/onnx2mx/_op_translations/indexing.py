"""Operators that read or write elements by position."""
import math

import numpy as np

from .....base import MXNetError
from ..reading import UnknownValue
from ..registry import translates
from ..reshaping import reshape
from .elemwise import binary, cast_to, with_number


@translates("Gather")
def gather(g, data, indices, *, axis=0):
    """Parts of `data` along an axis, by their places; negative ones count from its end."""
    g.entry(data)
    axis = g.axis(data, axis)
    place = indices.array
    scalar = place.ndim == 0 if place is not None else (g.entry(indices), indices.scalar)[1]
    total = g.rank(data)
    size = g.sizes(data)[axis] if g.known_shapes(data) is not None else None
    if place is not None and size is not None and place.size and not -size <= place.min() <= place.max() < size:
        raise MXNetError(f"the indices reach from {place.min()} to {place.max()} on an axis of size {size}")
    if place is not None and scalar:
        part = g.op("slice_axis", data, axis=axis, begin=int(place), end=int(place) + 1 or None)
        return g.op("Reshape", part, shape=(1,), is_scalar=True) if total == 1 else g.op("squeeze", part, axis=axis)
    if size is not None and not scalar:
        inside = g.undone(indices, "clip", a_min=0.0, a_max=float(size - 1))
        if inside is not None:
            return _looked_up(g, data, inside, axis)
    result = g.op("take", data, indices, axis=axis, mode="wrap", is_scalar=scalar and total == 1)
    return g.op("squeeze", result, axis=axis) if scalar and total > 1 else result


def _looked_up(g, data, indices, axis):
    """Parts of `data` by their places, of which those outside count as the nearest: an embedding, if `data` is a matrix that the file holds."""
    kind = g.dtype(data)
    if data.array is None or data.array.ndim != 2 or axis or kind.kind != "f":
        return g.op("take", data, indices, axis=axis, mode="clip")
    numbers = g.undone(indices, "Cast", dtype="int64")
    rows, width = data.array.shape
    return g.op("Embedding", indices if numbers is None else numbers, data, input_dim=rows, output_dim=width, dtype=kind.name)


@translates("GatherND")
def gather_nd(g, data, indices, *, batch_dims=0):
    """Parts of `data` by the places along its first axes, which the last axis of `indices` holds."""
    if batch_dims:
        indices = _with_batches(g, indices, batch_dims)
    return g.op("gather_nd", data, _first(g, _counted(g, indices, data)))


def _first(g, indices):
    """The last axis before all others, as `gather_nd` here wants it."""
    rank = g.rank(indices)
    return g.op("transpose", indices, axes=(rank - 1, *range(rank - 1))) if rank > 1 else indices


def _counted(g, indices, data):
    """Places counted from the front."""
    g.entry(indices)
    depth = g.size(indices, -1, "the number of axes that are indexed")
    sizes = np.array([g.size(data, axis, "an index from the end") for axis in range(depth)], g.dtype(indices) or "int64")
    return binary(g, "broadcast_mod", indices, g.array(sizes))


def _with_batches(g, indices, batch_dims):
    shape = g.sizes(indices)
    if None in shape:
        raise UnknownValue("GatherND with batch_dims and sizes that the file leaves open")
    g.small(shape, "GatherND with batch_dims")
    grids = [np.broadcast_to(np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))]), (*shape[:-1], 1))
             for axis in range(batch_dims)]
    kind = g.dtype(indices) or np.dtype("int64")
    return g.op("Concat", *(g.array(np.ascontiguousarray(grid).astype(kind)) for grid in grids), indices, dim=len(shape) - 1)


def _grid(g, indices, data, axis):
    """For each element of `indices` its full place in `data`, as (axes, elements...)."""
    g.entry(indices)
    shape = g.sizes(indices)
    if None in shape:
        raise UnknownValue("GatherElements or ScatterElements with sizes that the file leaves open")
    g.small(shape, "a place for each element")
    size = g.size(data, axis, "an index from the end")
    places = []
    for i in range(len(shape)):
        if i == axis:
            place = g.op("_mod_scalar", indices, scalar=float(size))
        else:
            numbers = np.broadcast_to(np.arange(shape[i]).reshape([-1 if j == i else 1 for j in range(len(shape))]), shape)
            place = g.array(np.ascontiguousarray(numbers).astype(g.dtype(indices) or "int64"))
        places.append(place)
    return g.op("stack", *places, axis=0)


@translates("GatherElements")
def gather_elements(g, data, indices, *, axis=0):
    """Single elements of `data`, whose place along one axis is given for each."""
    return g.op("gather_nd", data, _grid(g, indices, data, g.axis(data, axis)))


@translates("ScatterElements", "Scatter")
def scatter_elements(g, data, indices, updates, *, axis=0, reduction="none"):
    """`data` with single elements replaced by those of `updates`."""
    g.entry(data)
    if reduction not in ("none", "add") or None in (g.known_shapes(indices), g.known_shapes(data)) or None in g.sizes(indices) + g.sizes(data):
        return g.op("_contrib_scatter_reduce", data, indices, updates, axis=g.axis(data, axis), reduction=reduction)
    return _scattered(g, data, _grid(g, indices, data, g.axis(data, axis)), updates, reduction)


@translates("ScatterND")
def scatter_nd(g, data, indices, updates, *, reduction="none"):
    """`data` with the parts replaced whose places the last axis of `indices` holds."""
    return _scattered(g, data, _first(g, _counted(g, indices, data)), updates, reduction)


def _scattered(g, data, places, updates, reduction):
    g.entry(data)
    shape = g.sizes(data)
    if None in shape:
        raise UnknownValue("scattering into an array with sizes that the file leaves open")
    if reduction == "none":
        return g.op("_scatter_set_nd", data, updates, places, shape=shape)
    if reduction == "add":
        return binary(g, "broadcast_add", data, g.op("_backward_gather_nd", updates, places, shape=shape))
    depth = g.size(places, 0, "the number of axes that are indexed")
    steps = [math.prod(shape[axis + 1:depth]) for axis in range(depth)]
    rows, inner = math.prod(shape[:depth]), math.prod(shape[depth:])
    flat = g.op("sum", binary(g, "broadcast_mul", places, g.array(np.array(steps, "int64").reshape(-1, *[1] * (g.rank(places) - 1)))), axis=(0,))
    flat = g.op("broadcast_axis", g.op("Reshape", flat, shape=(-1, 1)), axis=(1,), size=(inner,))
    result = g.op("_contrib_scatter_reduce", g.op("Reshape", data, shape=(rows, inner)), flat, g.op("Reshape", updates, shape=(-1, inner)), axis=0,
                  reduction=reduction)
    return g.op("Reshape", result, shape=shape)


@translates("TensorScatter")
def tensor_scatter(g, past_cache, update, write_indices=None, *, axis=-2, mode="linear"):
    """A cache with parts along an axis replaced, from another place on for each sample."""
    sizes, new = g.fixed(past_cache, "TensorScatter"), g.fixed(update, "TensorScatter")
    axis = g.axis(past_cache, axis)
    starts = (0,) * sizes[0] if write_indices is None else write_indices.integers("write_indices")
    if len(starts) != sizes[0] or mode not in ("linear", "circular") or new[:axis] != sizes[:axis] or new[axis + 1:] != sizes[axis + 1:]:
        raise MXNetError(f"an update of shape {new} at {starts} of a cache of shape {sizes} with mode={mode!r:.20}")
    places = np.array(starts).reshape(-1, 1) + np.arange(new[axis])
    if mode == "circular":
        places %= sizes[axis]
    if places.size and not 0 <= places.min() <= places.max() < sizes[axis]:
        raise MXNetError(f"the update reaches to place {places.max()} of an axis of size {sizes[axis]}")
    g.small(new, "TensorScatter")
    target = [sizes[0], *[1] * (len(sizes) - 1)]
    target[axis] = new[axis]
    places = np.ascontiguousarray(np.broadcast_to(places.reshape(target), new)).astype("int64")
    return g.op("_contrib_scatter_reduce", past_cache, g.array(places), update, axis=axis)


@translates("ai.onnx.ml.ArrayFeatureExtractor")
def array_feature_extractor(g, data, places):
    """Some elements of the last axis."""
    g.entry(data)
    result = g.op("take", data, reshape(g, places, [(-1,)] * len(g.known_shapes(places) or [0])), axis=g.rank(data) - 1, mode="clip")
    return g.op("expand_dims", result, axis=0) if g.rank(data) == 1 else result


@translates("OneHot")
def one_hot(g, indices, depth, values, *, axis=-1):
    """An axis of `depth` elements for each index, all of them off but one."""
    g.entry(indices)
    count = int(depth.number("depth"))
    off_value, on_value = (float(number) for number in values.constant("values").reshape(-1))
    kind = values.constant("values").dtype
    rank = g.rank(indices)
    axis = g.axis(indices, axis, 1)
    wrapped = g.op("broadcast_mod", indices, g.array(np.array([count], g.dtype(indices) or "int64")))
    inside = binary(g, "broadcast_logical_and", with_number(g, "_greater_equal_scalar", indices, float(-count)),
                    with_number(g, "_lesser_scalar", indices, float(count)))
    outside = with_number(g, "_mul_scalar", g.op("logical_not", inside), float(count))
    wrapped = binary(g, "broadcast_add", wrapped, cast_to(g, outside, g.dtype(wrapped)))  # beyond the axis, where nothing is on
    result = g.op("one_hot", wrapped, depth=count, on_value=on_value, off_value=off_value, dtype=kind.name)
    if indices.scalar:
        return g.op("Reshape", result, shape=(count,))
    return result if axis == rank else g.op("transpose", result, axes=(*range(axis), rank, *range(axis, rank)))


@translates("Compress")
def compress(g, data, condition, *, axis=None):
    """The parts along an axis at which `condition` holds."""
    places = np.flatnonzero(condition.constant("condition"))
    if axis is None:
        data, axis = reshape(g, data, [(-1,)] * len(g.shapes(data))), 0
    return g.op("take", data, g.array(places), axis=g.axis(data, axis), mode="clip")
