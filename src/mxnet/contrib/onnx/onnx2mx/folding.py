"""Constant folding during the import: shapes, and the computations on them and on constants in exported graphs."""
import math

import numpy as np

from ....base import MXNetError
from .reading import element_type
from .registry import folds
from .values import as_integers

_LARGEST = 1 << 22  # elements of an array that grows out of numbers in the file


def _divide(g, a, b):
    if a.dtype.kind in "iu":
        if not np.all(b):
            raise MXNetError(f"divisors of integers other than 0 expected, received {b.tolist()!r:.80}")
        return np.sign(a) * np.sign(b) * (abs(a) // abs(b))
    return a / b


for _name, _function in {
        "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Equal": np.equal, "Less": np.less, "Greater": np.greater,
        "LessOrEqual": np.less_equal, "GreaterOrEqual": np.greater_equal, "And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}.items():
    folds(_name)(lambda g, a, b, _function=_function: _small(_function, a, b))
for _name, _function in {
        "Neg": np.negative, "Abs": np.abs, "Sqrt": np.sqrt, "Exp": np.exp, "Log": np.log, "Floor": np.floor, "Ceil": np.ceil, "Round": np.rint,
        "Not": np.logical_not, "Reciprocal": lambda a: (1 / a).astype(a.dtype), "Sign": np.sign}.items():
    folds(_name)(lambda g, a, _function=_function: _function(a).astype(a.dtype))
folds("Div")(lambda g, a, b: None if _too_large(a, b) else _divide(g, a, b))
folds("Identity")(lambda g, a: a)


def _too_large(*arrays):
    return math.prod(np.broadcast_shapes(*(a.shape for a in arrays))) > _LARGEST


def _small(function, *arrays):
    return None if _too_large(*arrays) else function(*arrays)


@folds("Pow")
def _pow(g, a, b):
    if a.dtype.kind in "iu" and np.any(b < 0) or _too_large(a, b):
        return None
    return np.power(a, b).astype(a.dtype)


@folds("Mod")
def _mod(g, a, b, *, fmod=0):
    if a.dtype.kind in "iu" and not np.all(b) or _too_large(a, b):
        return None
    return (np.fmod if fmod else np.mod)(a, b)


@folds("Max")
def _max(g, *arrays):
    return _reduced(np.maximum, arrays)


@folds("Min")
def _min(g, *arrays):
    return _reduced(np.minimum, arrays)


def _reduced(function, arrays):
    if _too_large(*arrays):
        return None
    result = arrays[0]
    for array in arrays[1:]:
        result = function(result, array)
    return result


@folds("Where")
def _where(g, condition, x, y):
    return _small(np.where, condition, x, y)


@folds("Cast")
def _cast(g, a, *, to, saturate=1, round_mode=None):
    return a.astype(element_type(to, "its result"))


@folds("Gather")
def _gather(g, a, indices, *, axis=0):
    if a.ndim and indices.size and not -a.shape[axis] <= indices.min() <= indices.max() < a.shape[axis]:
        raise MXNetError(f"the indices reach from {indices.min()} to {indices.max()} on an axis of size {a.shape[axis]}")
    if indices.size * (a.size // max(a.shape[axis], 1)) > _LARGEST:
        return None
    return np.take(a, indices, axis)


@folds("Concat")
def _concat(g, *arrays, axis=1):
    return np.concatenate(arrays, axis)


@folds("Squeeze")
def _squeeze(g, a, axes=None):
    return np.squeeze(a, None if axes is None else as_integers(axes, "axes"))


@folds("Unsqueeze")
def _unsqueeze(g, a, axes):
    return np.expand_dims(a, as_integers(axes, "axes"))


@folds("Reshape")
def _reshape(g, a, shape, *, allowzero=0):
    sizes = as_integers(shape, "shape")
    return a.reshape([a.shape[i] if size == 0 and not allowzero else size for i, size in enumerate(sizes)])


@folds("Flatten")
def _flatten(g, a, *, axis=1):
    return a.reshape(math.prod(a.shape[:axis]) if axis else 1, -1)


@folds("Transpose")
def _transpose(g, a, *, perm=None):
    return np.ascontiguousarray(a.transpose(perm))


@folds("Slice")
def _slice(g, a, starts, ends, axes=None, steps=None):
    starts, ends = as_integers(starts, "starts"), as_integers(ends, "ends")
    axes = range(len(starts)) if axes is None else as_integers(axes, "axes")
    steps = [1] * len(starts) if steps is None else as_integers(steps, "steps")
    if any(g.open_inputs[1:3]) and any(a.shape[axis] < end < 1 << 30 for axis, end in zip(axes, ends)):
        return None  # cut at the end of the axis, where the open size, which another number stands for, may not be
    index = [slice(None)] * a.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps):
        stop = None if step < 0 and end < -a.shape[axis] else end
        index[axis] = slice(start, stop, step)
    return np.ascontiguousarray(a[tuple(index)])


@folds("Expand")
def _expand(g, a, shape):
    target = np.broadcast_shapes(a.shape, as_integers(shape, "shape"))
    return None if math.prod(target) > _LARGEST else np.broadcast_to(a, target)


@folds("Tile")
def _tile(g, a, repeats):
    repeats = as_integers(repeats, "repeats")
    if min(repeats, default=0) < 0 or a.size * math.prod(repeats) > _LARGEST:
        return None
    return np.tile(a, repeats)


@folds("Range")
def _range(g, start, limit, delta):
    start, limit, delta = (number.reshape(-1)[0] for number in (start, limit, delta))
    if not delta or not abs(float(limit) - float(start)) / abs(float(delta)) < _LARGEST:
        raise MXNetError(f"a range from {start} to {limit} in steps of {delta}: expected at most {_LARGEST} steps")
    return np.arange(start, limit, delta, dtype=start.dtype)


@folds("ConstantOfShape")
def _constant_of_shape(g, shape, *, value=None):
    value = np.zeros(1, "float32") if value is None else value
    sizes = as_integers(shape, "input")
    if min(sizes, default=0) < 0:
        raise MXNetError(f"a shape of {sizes}: sizes are not negative")
    return None if math.prod(sizes) > _LARGEST else np.full(sizes, value.reshape(-1)[0])


@folds("Split")
def _split(g, a, split=None, *, axis=0, num_outputs=None):
    size = a.shape[axis]
    parts = num_outputs or g.node_outputs
    each = -(-size // max(parts, 1))
    sizes = as_integers(split, "split") if split is not None else [min(each, size - i * each) for i in range(parts)]
    if sum(sizes) != size or min(sizes, default=0) < 0:
        raise MXNetError(f"parts of sizes {list(sizes)[:10]} do not make up an axis of size {size}")
    return np.split(a, np.cumsum(sizes)[:-1], axis)


def _reduction(function):
    def fold(g, a, axes=None, *, keepdims=1, noop_with_empty_axes=0):
        chosen = () if axes is None else as_integers(axes, "axes")
        if not chosen and noop_with_empty_axes:
            return a
        return np.asarray(function(a, axis=chosen or None, keepdims=bool(keepdims))).astype(a.dtype)
    return fold


for _name, _function in {"ReduceProd": np.prod, "ReduceSum": np.sum, "ReduceMax": np.max, "ReduceMin": np.min}.items():
    folds(_name)(_reduction(_function))
