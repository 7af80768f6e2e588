"""Activations and softmax."""
import math

import numpy as np

from ..registry import translates
from ..reshaping import reshape
from .elemwise import arithmetic, binary, with_number


def _activation(g, name, data, **attributes):
    g.entry(data)
    return g.op(name, data, is_scalar=data.scalar, **attributes)


def constant_like(g, data, number):
    """A known number in the type of a value."""
    g.entry(data)
    return g.array(np.array(number, g.dtype(data) or "float32"))


@translates("Softplus")
def softplus(g, data):
    """``log(1 + exp(x))``."""
    return _activation(g, "Activation", data, act_type="softrelu")


@translates("LeakyRelu")
def leaky_relu(g, data, *, alpha=0.01):
    """`data` above 0, else `alpha` times it."""
    return _activation(g, "LeakyReLU", data, act_type="leaky", slope=alpha)


@translates("Elu")
def elu(g, data, *, alpha=1.0):
    """`data` above 0, else ``alpha * (exp(x) - 1)``."""
    return _activation(g, "LeakyReLU", data, act_type="elu", slope=alpha)


@translates("Celu")
def celu(g, data, *, alpha=1.0):
    """`data` above 0, else ``alpha * (exp(x / alpha) - 1)``."""
    return with_number(g, "_mul_scalar", _activation(g, "LeakyReLU", with_number(g, "_div_scalar", data, alpha), act_type="elu", slope=1.0), alpha)


@translates("Selu")
def selu(g, data, *, alpha=1.6732631921768188, gamma=1.0507010221481323):
    """`data` above 0, else ``alpha * (exp(x) - 1)``; both times `gamma`."""
    if math.isclose(alpha, 1.67326319217, rel_tol=1e-5) and math.isclose(gamma, 1.05070102214, rel_tol=1e-5):
        return _activation(g, "LeakyReLU", data, act_type="selu")
    return with_number(g, "_mul_scalar", _activation(g, "LeakyReLU", data, act_type="elu", slope=alpha), gamma)


@translates("PRelu")
def prelu(g, data, slope):
    """`data` above 0, else `slope` times it; `slope` has one number for each channel, or any shape that can be repeated to that of `data`."""
    shape, rank = g.known_shapes(slope), g.rank(data)
    per_channel = shape is not None and rank > 1 and len(shape[0]) == rank - 1 and all(size == 1 for size in shape[0][1:])
    if per_channel and slope.array is not None and g.sizes(data)[1] == shape[0][0]:
        return g.op("LeakyReLU", data, g.array(slope.array.reshape(-1), slope.name), act_type="prelu")
    if g.opset < 7 and g.rank(slope) == 1 and rank > 1 and shape is not None and shape[0][0] > 1:  # one number for each channel
        slope = reshape(g, slope, [(-1, *[1] * (rank - 2))] * len(shape))
    below = binary(g, "broadcast_mul", g.op("clip", data, a_min=-math.inf, a_max=0.0, is_scalar=data.scalar), slope)
    return binary(g, "broadcast_add", _activation(g, "relu", data), below)


@translates("ThresholdedRelu")
def thresholded_relu(g, data, *, alpha=1.0):
    """`data` where it is above `alpha`, else 0."""
    return binary(g, "broadcast_mul", data, with_number(g, "_greater_scalar", data, alpha))


@translates("HardSigmoid")
def hard_sigmoid(g, data, *, alpha=0.2, beta=0.5):
    """``alpha * x + beta`` between 0 and 1."""
    return _activation(g, "hard_sigmoid", data, alpha=alpha, beta=beta)


@translates("HardSwish")
def hard_swish(g, data):
    """``x`` times ``x / 6 + 0.5`` between 0 and 1."""
    return binary(g, "broadcast_mul", data, _activation(g, "hard_sigmoid", data, alpha=1 / 6, beta=0.5))


@translates("Swish")
def swish(g, data, *, alpha=1.0):
    """``x * sigmoid(alpha * x)``."""
    return binary(g, "broadcast_mul", data, _activation(g, "sigmoid", data if alpha == 1 else with_number(g, "_mul_scalar", data, alpha)))


@translates("Mish")
def mish(g, data):
    """``x * tanh(log(1 + exp(x)))``."""
    return binary(g, "broadcast_mul", data, _activation(g, "tanh", softplus(g, data)))


@translates("Shrink")
def shrink(g, data, *, bias=0.0, lambd=0.5):
    """`data` moved towards 0 by `bias` where it is further than `lambd` from it, else 0."""
    above = binary(g, "broadcast_mul", with_number(g, "_greater_scalar", data, lambd), with_number(g, "_minus_scalar", data, bias))
    below = binary(g, "broadcast_mul", with_number(g, "_lesser_scalar", data, -lambd), with_number(g, "_plus_scalar", data, bias))
    return binary(g, "broadcast_add", above, below)


@translates("Gelu", "com.microsoft.Gelu")
def gelu(g, data, *, approximate="none"):
    """``x`` times the normal cumulative distribution function at ``x``, or with ``tanh`` its approximation."""
    return _activation(g, "LeakyReLU", data, act_type="gelu" if approximate == "none" else "gelu_tanh")


@translates("com.microsoft.FastGelu")
def fast_gelu(g, data, bias=None):
    """`gelu` in its approximation by ``tanh``, of `data` with a bias."""
    return gelu(g, data if bias is None else arithmetic(g, "Add", data, bias), approximate="tanh")


def _along(g, name, data, axis):
    """Softmax or the like: over one axis since version 13, over all from one on before."""
    if g.opset >= 13:
        return _activation(g, name, data, axis=g.axis(data, -1 if axis is None else axis))
    axis = g.axis(data, 1 if axis is None else axis)
    if axis == g.rank(data) - 1:
        return _activation(g, name, data, axis=axis)
    flat = g.op(name, _flat(g, data, axis), axis=-1)
    return reshape(g, flat, g.shapes(data))


def _flat(g, data, axis):
    return reshape(g, data, [(math.prod(shape[:axis]), math.prod(shape[axis:])) for shape in g.shapes(data)])


@translates("Softmax")
def softmax(g, data, *, axis=None):
    """``exp(x)`` divided by its sum over an axis."""
    return _along(g, "softmax", data, axis)


@translates("LogSoftmax")
def log_softmax(g, data, *, axis=None):
    """The logarithm of `softmax`."""
    return _along(g, "log_softmax", data, axis)


@translates("Hardmax")
def hardmax(g, data, *, axis=None):
    """1 where the first of the largest values of an axis is, else 0."""
    before = data
    axis = g.axis(data, (-1 if g.opset >= 13 else 1) if axis is None else axis)
    if g.opset < 13 and axis != g.rank(data) - 1:
        data, axis = _flat(g, data, axis), 1
    depth = g.size(data, axis, "Hardmax")
    result = g.op("one_hot", g.op("argmax", data, axis=axis), depth=depth, dtype=(g.dtype(data) or np.dtype("float32")).name)
    last = g.rank(data) - 1
    if axis != last:
        order = [*range(axis), last, *range(axis, last)]
        result = g.op("transpose", result, axes=tuple(order))
    return result if data is before else reshape(g, result, g.shapes(before))


