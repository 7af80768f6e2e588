"""Constants, ranges and random numbers."""
import numpy as np

from .....base import MXNetError
from .....util import is_np_shape
from ..reading import UnsupportedFeature, element_type
from ..registry import translates
from ..reshaping import broadcast, source
from ..values import as_integers

_LONGEST = 1 << 24


@translates("Constant")
def constant(g, *, value=None, value_float=None, value_floats=None, value_int=None, value_ints=None):
    """A known array."""
    given = [np.asarray(v, kind) for v, kind in ((value, None), (value_float, "float32"), (value_floats, "float32"), (value_int, "int64"),
                                                 (value_ints, "int64")) if v is not None]
    if len(given) != 1:
        raise MXNetError(f"expected one attribute with the value, received {len(given)}")
    return g.array(given[0])


@translates("ConstantOfShape")
def constant_of_shape(g, input, *, value=None):
    """An array of one number, of a shape."""
    number = np.zeros((), "float32") if value is None else value.reshape(-1)[0]
    targets = [as_integers(array, "input") for array in input.candidates("input")]
    least = min((n for target in targets for n in target), default=1)
    if least < 0 or not least and not is_np_shape():
        raise UnsupportedFeature(f"an array of shape {targets[0]}: expected positive sizes (or 0 within mx.np_shape())")
    if len(targets) == 1 and not least:
        return g.array(np.zeros(targets[0], number.dtype))
    return broadcast(g, g.array(np.full((1,) * len(targets[0]), number)), targets)


@translates("Range")
def range_(g, start, limit, delta):
    """The numbers from `start` in steps of `delta`; along an axis of a size that the file leaves open, from a known start."""
    first, step = start.number("start"), delta.number("delta")
    limits = limit.candidates("limit")
    if not step:
        raise MXNetError(f"steps other than 0 expected, received {step}")
    lengths = tuple(max(-int(-(float(array.reshape(-1)[0]) - first) // step), 0) for array in limits)
    if len(set(lengths)) == 1:
        if lengths[0] > _LONGEST:
            raise MXNetError(f"a range of {lengths[0]} numbers; expected at most {_LONGEST}")
        return g.array((first + step * np.arange(lengths[0])).astype(limits[0].dtype))
    like, axis = source(g, lengths)
    result = g.op("_contrib_arange_like", like, axis=axis, start=float(first), step=float(step))
    return g.op("Cast", result, dtype=limits[0].dtype.name)


@translates("EyeLike")
def eye_like(g, data, *, dtype=None, k=0):
    """A matrix of the shape of `data` with ones on a diagonal."""
    rows, columns = g.size(data, 0, "EyeLike"), g.size(data, 1, "EyeLike")
    kind = g.dtype(data) if dtype is None else element_type(dtype, "its result")
    return g.op("_eye", N=rows, M=columns, k=k, dtype=(kind or np.dtype("float32")).name)


def _drawn(g, name, shape, dtype, **attributes):
    kind = element_type(dtype, "its result").name
    return g.op(name, shape=tuple(shape), dtype=kind, **attributes)


@translates("RandomUniform")
def random_uniform(g, *, shape, low=0.0, high=1.0, dtype=1, seed=None):
    """Uniform numbers from the generator of the device; a seed in the file is not its."""
    return _drawn(g, "_random_uniform", shape, dtype, low=low, high=high)


@translates("RandomNormal")
def random_normal(g, *, shape, mean=0.0, scale=1.0, dtype=1, seed=None):
    """Normal numbers from the generator of the device; a seed in the file is not its."""
    return _drawn(g, "_random_normal", shape, dtype, loc=mean, scale=scale)


@translates("RandomUniformLike")
def random_uniform_like(g, data, *, low=0.0, high=1.0, dtype=None, seed=None):
    """As `random_uniform`, of the shape of `data`."""
    return _like(g, "_random_uniform_like", data, dtype, low=low, high=high)


@translates("RandomNormalLike")
def random_normal_like(g, data, *, mean=0.0, scale=1.0, dtype=None, seed=None):
    """As `random_normal`, of the shape of `data`."""
    return _like(g, "_random_normal_like", data, dtype, loc=mean, scale=scale)


def _like(g, name, data, dtype, **attributes):
    g.entry(data)
    if dtype is not None:
        data = g.op("Cast", data, dtype=element_type(dtype, "its result").name, is_scalar=data.scalar)
    return g.op(name, data, is_scalar=data.scalar, **attributes)


@translates("Multinomial")
def multinomial(g, data, *, sample_size=1, dtype=6, seed=None):
    """Classes drawn by the logarithms of their weights."""
    kind = element_type(dtype, "its result").name
    return g.op("_sample_multinomial", g.op("softmax", data), shape=(sample_size,), dtype=kind)


@translates("Bernoulli")
def bernoulli(g, data, *, dtype=None, seed=None):
    """1 with the probability that each element is, else 0."""
    kind = g.dtype(data) if dtype is None else element_type(dtype, "its result")
    drawn = g.op("broadcast_lesser", g.op("_random_uniform_like", data), data)
    return g.op("Cast", drawn, dtype=(kind or np.dtype("float32")).name, is_scalar=data.scalar)


