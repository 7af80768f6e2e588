"""Arithmetic, comparisons, reductions and matrix products in OpenVINO."""
import math

import torch
from openvino import opset15 as ops

from .conversion import constant, converts, ints

_UNARY = {
    "abs": ops.abs, "negative": ops.negative, "sign": ops.sign, "sqrt": ops.sqrt, "exp": ops.exp, "log": ops.log, "sin": ops.sin, "cos": ops.cos,
    "tan": ops.tan, "arcsin": ops.asin, "arccos": ops.acos, "arctan": ops.atan, "sinh": ops.sinh, "cosh": ops.cosh, "tanh": ops.tanh,
    "arcsinh": ops.asinh, "arccosh": ops.acosh, "arctanh": ops.atanh, "floor": ops.floor, "ceil": ops.ceiling, "relu": ops.relu,
    "sigmoid": ops.sigmoid, "softsign": ops.softsign, "erf": ops.erf,
}
_NUMPY_NAMES = {"relu": ("_npx_relu",), "sigmoid": ("_npx_sigmoid",), "softsign": (), "erf": ()}
_IDENTITIES = ("_copy", "BlockGrad", "make_loss", "MakeLoss", "_contrib_gradientmultiplier", "_identity_with_attr_like_rhs")
_BINARY = {"add": ops.add, "sub": ops.subtract, "mul": ops.multiply, "div": ops.divide, "maximum": ops.maximum, "minimum": ops.minimum,
           "power": ops.power, "hypot": lambda a, b: ops.sqrt(ops.add(ops.multiply(a, a), ops.multiply(b, b)))}
_COMPARISONS = {"equal": ops.equal, "not_equal": ops.not_equal, "greater": ops.greater, "greater_equal": ops.greater_equal,
                "lesser": ops.less, "lesser_equal": ops.less_equal}
# For each of the scalar operators of `_BINARY`: its name in MXNet, and in mx.np.
_SCALAR = {"_plus_scalar": "add", "_minus_scalar": "sub", "_mul_scalar": "mul", "_div_scalar": "div", "_maximum_scalar": "maximum",
           "_minimum_scalar": "minimum", "_power_scalar": "power", "_hypot_scalar": "hypot", "_npi_add_scalar": "add", "_npi_subtract_scalar": "sub",
           "_npi_multiply_scalar": "mul", "_npi_true_divide_scalar": "div", "_npi_maximum_scalar": "maximum", "_npi_minimum_scalar": "minimum",
           "_npi_power_scalar": "power"}
_REVERSED = {"_rminus_scalar": "sub", "_rdiv_scalar": "div", "_rpower_scalar": "power", "_npi_rsubtract_scalar": "sub",
             "_npi_rtrue_divide_scalar": "div", "_npi_rpower_scalar": "power"}
_NUMPY = {"add": "add", "subtract": "sub", "multiply": "mul", "true_divide": "div", "maximum": "maximum", "minimum": "minimum", "power": "power",
          "hypot": "hypot"}


def _floats(call):
    if any(t is not torch.float32 for t in (*call.in_types, *call.out_types)):
        call.refuse("whole numbers")


def _unary(name, function):
    @converts(name, *_NUMPY_NAMES.get(name, (f"_npi_{name}",)))
    def convert(call, data):
        _floats(call)
        return function(data)
    return convert


for _name, _function in _UNARY.items():
    _unary(_name, _function)


@converts(*_IDENTITIES)
def identity(call, data, *others):
    return data


@converts("square", "_npi_square")
def square(call, data):
    return ops.multiply(data, data)


@converts("rsqrt")
def rsqrt(call, data):
    _floats(call)
    return ops.divide(call.float(1), ops.sqrt(data))


@converts("reciprocal", "_npi_reciprocal")
def reciprocal(call, data):
    _floats(call)
    return ops.divide(call.float(1), data)


@converts("log2", "log10", "_npi_log2", "_npi_log10")
def logarithm(call, data):
    _floats(call)
    return ops.multiply(ops.log(data), call.float(1 / math.log(2 if call.name.endswith("log2") else 10)))


@converts("clip")
def clip(call, data):
    _floats(call)
    return ops.clamp(data, call.a_min, call.a_max)


@converts("_npi_clip")
def numpy_clip(call, data):
    _floats(call)
    return ops.clamp(data, -math.inf if call.a_min is None else call.a_min, math.inf if call.a_max is None else call.a_max)


@converts("Cast", "amp_cast", "_npi_cast")
def cast(call, data):
    return call.cast(data, call.out_types[0])


# -- two inputs ------------------------------------------------------------------------------------------------------------
def _binary(names, function):
    @converts(*names)
    def convert(call, lhs, rhs):
        _floats(call)
        return function(lhs, rhs)
    return convert


def _comparison(kind, function):
    @converts(f"_{kind}", f"broadcast_{kind}")
    def convert(call, lhs, rhs):
        return call.cast(function(lhs, rhs).output(0), call.out_types[0])

    @converts(f"_{kind}_scalar")
    def convert_scalar(call, data):
        _floats(call)
        return call.cast(function(data, call.float(call.scalar)).output(0), call.out_types[0])
    return convert, convert_scalar


for _name, _function in _BINARY.items():
    _elemwise = [f"elemwise_{_name}"] if _name in ("add", "sub", "mul", "div") else [f"_{_name}"]
    _binary([*_elemwise, f"broadcast_{_name}", *(f"_npi_{n}" for n, k in _NUMPY.items() if k == _name)], _function)
for _name, _function in _COMPARISONS.items():
    _comparison(_name, _function)


@converts("_grad_add")
def grad_add(call, lhs, rhs):
    return ops.add(lhs, rhs)


@converts("add_n")
def add_n(call, *inputs):
    out = inputs[0]
    for x in inputs[1:]:
        out = ops.add(out, x)
    return out


@converts(*_SCALAR)
def scalar(call, data):
    _floats(call)
    return _BINARY[_SCALAR[call.name]](data, call.float(call.scalar))


@converts(*_REVERSED)
def reversed_scalar(call, data):
    _floats(call)
    return _BINARY[_REVERSED[call.name]](call.float(call.scalar), data)


@converts("where", "_npi_where")
def where(call, condition, x, y):
    if call.in_shapes[0] != call.in_shapes[1] or call.in_shapes[1] != call.in_shapes[2]:
        call.refuse("broadcasting")
    chosen = condition if call.in_types[0] is torch.bool else ops.not_equal(condition, call.const(0))
    return ops.select(chosen, x, y)


# -- reductions ------------------------------------------------------------------------------------------------------------
_REDUCTIONS = {"sum": ops.reduce_sum, "mean": ops.reduce_mean, "max": ops.reduce_max, "min": ops.reduce_min, "prod": ops.reduce_prod}


def _axes(call):
    ndim = len(call.shape)
    axis = call.attributes.get("axis")
    given = () if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [a % ndim for a in given] or list(range(ndim))
    return [a for a in range(ndim) if a not in axes] if call.attributes.get("exclude") else axes


def _reduce(name, function):
    @converts(name, *((f"_np_{name}",) if name != "mean" else ("_npi_mean",)))
    def convert(call, data):
        _floats(call)
        if call.attributes.get("dtype") is not None or call.attributes.get("initial") is not None:
            call.refuse("dtype or initial")
        return call.reshape(function(data, ints(_axes(call)), True).output(0), call.out_shape)
    return convert


for _name, _function in _REDUCTIONS.items():
    _reduce(_name, _function)


@converts("norm")
def norm(call, data):
    _floats(call)
    if call.out_dtype is not None:
        call.refuse("another type")
    function = ops.reduce_l1 if call.ord == 1 else ops.reduce_l2
    return call.reshape(function(data, ints(_axes(call)), True).output(0), call.out_shape)


@converts("argmax", "argmin")
def arg_extreme(call, data):
    _floats(call)
    axis = call.attributes.get("axis")
    if axis is None:
        data, axis = call.reshape(data, (-1,)), 0
    else:
        axis = call.axis(axis)
    found = ops.topk(data, constant(1, torch.int64), axis, call.name.removeprefix("arg"), "value", "i64", stable=True).output(1)
    return call.reshape(call.cast(found, call.out_types[0]), call.out_shape)


# -- matrices ----------------------------------------------------------------------------------------------------------------
@converts("dot")
def dot(call, lhs, rhs):
    _floats(call)
    if len(call.in_shapes[0]) != 2 or len(call.in_shapes[1]) != 2:
        call.refuse("arrays that are no matrices")
    return ops.matmul(lhs, rhs, call.transpose_a, call.transpose_b)


@converts("batch_dot", "_linalg_gemm2")
def batch_dot(call, lhs, rhs):
    _floats(call)
    if call.attributes.get("axis", -2) != -2:
        call.refuse("axis")
    out = ops.matmul(lhs, rhs, call.transpose_a, call.transpose_b)
    alpha = call.attributes.get("alpha", 1.0)
    return out if alpha == 1.0 else ops.multiply(out, call.float(alpha))


@converts("_np_dot", "_npi_matmul")
def numpy_matmul(call, lhs, rhs):
    _floats(call)
    if call.name == "_np_dot" and max(map(len, call.in_shapes)) > 2:
        call.refuse("arrays with more than two axes")
    if min(map(len, call.in_shapes)) < 2:
        call.refuse("vectors")
    return ops.matmul(lhs, rhs, False, False)
