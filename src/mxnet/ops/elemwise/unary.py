"""Operators on one array: mathematical functions, rounding, casts, identities."""
import functools
import math

import torch

from ...base import MXNetError
from ...kernels.elementwise import pointwise
from ..docstrings import with_sample
from ..integers import convert
from ..registry import op
from ..schema import DType
from ..shapes import unify
from .common import half_in_single, refuse_shapes, truth


def _math(name, function, doc, sample, aliases=None, **traits):
    """Register ``function(tensor)`` as the operator `name`, by default with its alias in ``mx.nd.sparse``.

    `sample` is the example of the docstring, see `with_sample`. Integers keep their type, as in MXNet's legacy operators: torch computes
    in floating point, the result is truncated.
    """
    def fn(data):
        out = function(data)
        return out if out.dtype is data.dtype else convert(out, data.dtype)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = with_sample(f"{doc} Element by element, in the shape and type of `data`; integers are truncated.",
                             f"mx.nd.{name}", sample)
    return op(name, aliases=(f"_sparse_{name}",) if aliases is None else aliases, same_shape=True, layout_agnostic=True,
              result_type="data", complete_rule=True, **traits)(fn)


def _round(data):
    # torch.round takes halves to even numbers, C's round away from zero. Adding the largest number below 0.5 rather than
    # 0.5 keeps 0.49999997 from becoming 1.
    if not data.is_floating_point():
        return data.clone()
    result = pointwise.round_away(data)
    if result is not None:
        return result
    below_half = 0.5 - torch.finfo(data.dtype).eps / 4
    return torch.trunc(data + torch.copysign(data.new_full((), below_half), data))


def _rint(data):
    # Halves go down (MXNet's own rule, mshadow_op.h), not to even numbers.
    result = pointwise.round_down(data)
    if result is not None:
        return result
    floor, ceil = torch.floor(data), torch.ceil(data)
    return torch.where(data - floor <= ceil - data, floor, ceil)


def _gamma(data):
    if not data.is_floating_point():
        return _gamma(data.double()).round()  # exact, unlike exp(lgamma)
    if data.dtype is not torch.float64:
        result = pointwise.gamma(data)
        return _gamma(data.double()).to(data.dtype) if result is None else result
    # lgamma gives the magnitude only; between the poles at 0, -1, -2, ... the sign alternates. At -1, -2, ... the result is NaN.
    floor = torch.floor(data)
    size = torch.lgamma(data).exp()
    below = torch.where(floor == data, math.nan, 1 - 2 * torch.remainder(floor, 2)) * size
    return torch.where(data < 0, below, torch.where(data == 0, torch.copysign(size, data), size))


def _logical_not(data):
    return truth(torch.eq, data, 0)


def _softsign(data):
    result = pointwise.softsign(data)
    return torch.nn.functional.softsign(data) if result is None else result


def _cbrt(data):
    result = pointwise.cube_root(data)
    if result is not None:
        return result
    return torch.copysign(data.abs().double().pow(1 / 3), data)


_math("abs", torch.abs, "The absolute value.", "[-1.5, 2] -> [1.5, 2. ]", method=True, amp=("inputs", "inputs"))
_math("negative", torch.neg, "The value with the other sign.", "[-1.5, 2] -> [ 1.5, -2. ]")
_math("sign", torch.sign, "-1, 0 or 1.", "[-1.5, 0, 2] -> [-1., 0., 1.]", method=True)
_math("square", pointwise.square, "x squared.", "[-3, 0.5] -> [9. , 0.25]", method=True, amp=("float32", "inputs"))
_math("sqrt", torch.sqrt, "The square root; nan below 0.", "[4, 9] -> [2., 3.]", method=True, amp=("inputs", "inputs"))
_math("rsqrt", half_in_single(torch.rsqrt), "1 / sqrt(x).", "[4, 16] -> [0.5 , 0.25]", method=True, amp="float32")
_math("reciprocal", torch.reciprocal, "1 / x.", "[2, -4] -> [ 0.5 , -0.25]", (), method=True, amp="float32")
_cbrt_op = _math("cbrt", _cbrt, "The cube root.", "[8, -27] -> [ 2., -3.]", method=True)
_rcbrt_op = _math("rcbrt", lambda data: _cbrt(data).reciprocal(), "1 / cbrt(x).", "[8, -1] -> [ 0.5, -1. ]", (), method=True, amp="float32")

_math("exp", torch.exp, "e to the power of x.", "[0, 1] -> [1. , 2.718...]", method=True, amp="float32")
_math("expm1", torch.expm1, "exp(x) - 1, exact for small x.", "[0, 1e-10] -> [0.e+00, 1.e-10]", method=True, amp="float32")
_math("log", torch.log, "The natural logarithm.", "[1, 10] -> [0. , 2.302...]", method=True, amp="float32")
_math("log2", torch.log2, "The logarithm to base 2.", "[1, 8] -> [0., 3.]", method=True, amp="float32")
_math("log10", half_in_single(torch.log10), "The logarithm to base 10.", "[1, 1000] -> [0., 3.]", method=True, amp="float32")
_math("log1p", torch.log1p, "log(1 + x), exact for small x.", "[0, 1e-10] -> [0.e+00, 1.e-10]", method=True, amp="float32")

_math("sin", torch.sin, "The sine of an angle in radians.", "[0, 0.5] -> [0. , 0.479...]", method=True)
_math("cos", torch.cos, "The cosine of an angle in radians.", "[0, 0.5] -> [1. , 0.877...]", method=True)
_math("tan", torch.tan, "The tangent of an angle in radians.", "[0, 0.5] -> [0. , 0.546...]", method=True, amp="float32")
_math("arcsin", torch.asin, "The angle in [-pi/2, pi/2] that has this sine.", "[0, 0.5] -> [0. , 0.523...]", method=True, amp="float32")
_math("arccos", torch.acos, "The angle in [0, pi] that has this cosine.", "[1, 0.5] -> [0. , 1.047...]", method=True, amp="float32")
_math("arctan", half_in_single(torch.atan), "The angle in (-pi/2, pi/2) that has this tangent.", "[0, 1] -> [0. , 0.785...]", method=True)
_math("sinh", torch.sinh, "The hyperbolic sine.", "[0, 1] -> [0. , 1.175...]", method=True, amp="float32")
_math("cosh", torch.cosh, "The hyperbolic cosine.", "[0, 1] -> [1. , 1.543...]", method=True, amp="float32")
tanh = _math("tanh", torch.tanh, "The hyperbolic tangent.", "[0, 1] -> [0. , 0.761...]", method=True, amp=("inputs", "inputs"))
_math("arcsinh", pointwise.arcsinh, "The inverse of sinh.", "[0, 1] -> [0. , 0.881...]", method=True)
_math("arccosh", half_in_single(pointwise.arccosh), "The inverse of cosh; nan below 1.", "[1, 2] -> [0. , 1.316...]", method=True)
_math("arctanh", torch.atanh, "The inverse of tanh; nan outside of [-1, 1].", "[0, 0.5] -> [0. , 0.549...]", method=True, amp="float32")
_math("degrees", torch.rad2deg, "Radians to degrees.", "[0, 1] -> [ 0. , 57.29...]", method=True)
_math("radians", torch.deg2rad, "Degrees to radians.", "[0, 180] -> [0. , 3.141...]", method=True)

_math("round", functools.partial(pointwise.flat, _round),
      "The nearest integer; halves go away from zero.", "[-1.5, 0.5, 2.4] -> [-2., 1., 2.]", method=True)
_math("rint", functools.partial(pointwise.flat, _rint),
      "The nearest integer; halves go down.", "[-1.5, 0.5, 2.4] -> [-2., 0., 2.]", method=True)
_math("floor", torch.floor, "The largest integer that is not above x.", "[-1.5, 1.5] -> [-2., 1.]", method=True)
_math("ceil", torch.ceil, "The smallest integer that is not below x.", "[-1.5, 1.5] -> [-1., 2.]", method=True)
_math("trunc", torch.trunc, "x without its fraction.", "[-1.5, 1.5] -> [-1., 1.]", method=True)
_math("fix", torch.trunc, "The nearest integer towards zero.", "[-1.5, 1.5] -> [-1., 1.]", method=True)

relu = _math("relu", torch.relu, "max(x, 0).", "[-1, 0, 2] -> [0., 0., 2.]", is_relu=True, method=True,
             amp=("inputs", "inputs"))
sigmoid = _math("sigmoid", torch.sigmoid, "1 / (1 + exp(-x)).", "[0, 2] -> [0.5 , 0.880...]", method=True)
_softsign_op = _math("softsign", _softsign, "x / (1 + |x|).", "[-1, 0, 3] -> [-0.5 , 0. , 0.75]", ())
_math("erf", torch.erf, "The error function.", "[0, 0.5] -> [0. , 0.520...]", ("_npx_erf",))
_math("erfinv", torch.erfinv, "The inverse of erf; nan outside of [-1, 1].", "[0, 0.5] -> [0. , 0.476...]", ("_npx_erfinv",), amp="float32")
_gamma_op = _math("gamma", _gamma, "The gamma function.", "[1, 5] -> [ 1., 24.]", ("_npx_gamma", "_sparse_gamma"), amp="float32")
_gammaln_op = _math("gammaln", torch.lgamma, "The logarithm of the absolute value of the gamma function.",
                    "[1, 5] -> [0. , 3.178...]", ("_npx_gammaln", "_sparse_gammaln"), amp="float32")
_math("digamma", torch.digamma, "The derivative of gammaln.", "[1, 5] -> [-0.577..., 1.506...]", ("_npx_digamma",), amp=None)
_math("logical_not", _logical_not, "1 where x is 0, 0 elsewhere, in the type of x.", "[-1, 0, 2] -> [0., 1., 0.]", ())


@_cbrt_op.gradient
def _(out_grads, inputs, outputs):
    result = pointwise.cube_root_back(outputs[0], out_grads[0])
    return out_grads[0] / (3 * outputs[0] * outputs[0]) if result is None else result


@_rcbrt_op.gradient
def _(out_grads, inputs, outputs):
    return out_grads[0] * outputs[0] / (-3 * inputs[0])


@_softsign_op.gradient
def _(out_grads, inputs, outputs):
    result = pointwise.softsign_back(inputs[0], out_grads[0])
    if result is not None:
        return result
    size = inputs[0].abs() + 1  # half precision may not hold its square
    return out_grads[0] / size / size


def _digamma(x):
    """The derivative of ln(gamma). At its poles, the integers up to 0, MXNet has the largest number there is (special_functions-inl.h)."""
    poles = (x <= 0) & (x == x.floor())
    return torch.digamma(x).masked_fill_(poles, torch.finfo(torch.float64).max if x.dtype is torch.float64 else math.inf)


@_gamma_op.gradient
def _(out_grads, inputs, outputs):
    return out_grads[0] * outputs[0] * _digamma(inputs[0])


@_gammaln_op.gradient
def _(out_grads, inputs, outputs):
    return out_grads[0] * _digamma(inputs[0])


@op("_copy", complete_rule="shape", aliases=("identity", "_copyto", "_npi_copyto"), same_shape=True, by_rows=True, layout_agnostic=True,
    result_type="data")
def identity(data):
    """A copy of `data`, in memory of its own; the gradient passes through it unchanged.

    Example
    -------
    >>> x = mx.nd.array([1, 2])
    >>> y = mx.nd.identity(x)
    >>> y[0] = 5
    >>> x.asnumpy()
    array([1., 2.], dtype=float32)
    """
    return data.clone()


@op("BlockGrad", aliases=("stop_gradient", "_sparse_stop_gradient", "_npx_stop_gradient"), same_shape=True, by_rows=True, layout_agnostic=True,
    result_type="data", complete_rule="shape",
    stops_gradient=True)
def block_grad(data):
    """A copy without a gradient: its inputs are constant for all operators behind it.

    Example
    -------
    >>> x = mx.nd.array([3.])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = x * mx.nd.BlockGrad(x)
    >>> y.backward()
    >>> x.grad.asscalar()
    np.float32(3.0)
    """
    return data.detach().clone()


@op("make_loss", complete_rule="shape", aliases=("_sparse_make_loss",), same_shape=True, loss=True, output_names=("loss",), names_output=True,
    amp="float32")
def make_loss(data):
    """Declare `data` a loss: its gradient is 1, and the incoming gradient is ignored.

    `MakeLoss` can scale this gradient, too.

    Example
    -------
    >>> x = mx.nd.array([2, 3])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     loss = mx.nd.make_loss(x * x)
    >>> loss.backward(mx.nd.array([100, 100]))
    >>> x.grad.asnumpy()
    array([4., 6.], dtype=float32)
    """
    return data.clone()


@make_loss.gradient
def _(out_grads, inputs, outputs):
    return torch.ones_like(inputs[0])


@op("_identity_with_attr_like_rhs", complete_rule="shape", same_shape=True)
def identity_with_attr_like_rhs(lhs, rhs):
    """A copy of `lhs`; `rhs` determines its shape and type only."""
    if lhs.shape != rhs.shape:
        refuse_shapes("_identity_with_attr_like_rhs", lhs, rhs)
    return lhs.clone()


@op("zeros_like", complete_rule="shape", aliases=("_sparse_zeros_like",), same_shape=True, layout_agnostic=True, result_type="data", method=True)
def zeros_like(data):
    """Zeros in the shape and type of `data`.

    Example
    -------
    >>> mx.nd.zeros_like(mx.nd.array([[1, 2, 3]])).asnumpy()
    array([[0., 0., 0.]], dtype=float32)
    """
    return torch.zeros_like(data)


@op("ones_like", complete_rule="shape", same_shape=True, layout_agnostic=True, result_type="data", method=True)
def ones_like(data):
    """Ones in the shape and type of `data`.

    Example
    -------
    >>> mx.nd.ones_like(mx.nd.array([[1, 2, 3]])).asnumpy()
    array([[1., 1., 1.]], dtype=float32)
    """
    return torch.ones_like(data)


@op("Cast", complete_rule="shape", aliases=("cast", "_npi_cast", "_npx_cast"), same_shape=True, by_rows=True, layout_agnostic=True, is_cast=True)
def cast(data, *, dtype: DType):
    """Convert to another type. Floating-point numbers are truncated towards zero when they become integers.

    Example
    -------
    >>> mx.nd.Cast(mx.nd.array([0.9, -1.7]), dtype='int32').asnumpy()
    array([ 0, -1], dtype=int32)
    """
    return convert(data, dtype)


@cast.dtype_rule
def _(in_types, out_types, *, dtype):
    return in_types, [dtype]


MIXED = (torch.float32, torch.float16, torch.bfloat16)  # what mixed precision converts; other types stay as they are


@op("amp_cast", complete_rule="shape", same_shape=True, by_rows=True, layout_agnostic=True, amp="cast")
def amp_cast(data, *, dtype: DType):
    """Convert float32, float16 and bfloat16 to another type, for mixed precision; leave other types as they are.

    Example
    -------
    >>> [mx.nd.amp_cast(x, dtype='float16').dtype.__name__ for x in (mx.nd.ones(2), mx.nd.ones(2, dtype='int32'))]
    ['float16', 'int32']
    """
    return data.to(dtype, copy=True) if data.dtype in MIXED else data.clone()


@amp_cast.dtype_rule
def _(in_types, out_types, *, dtype):
    given = in_types[0]
    return in_types, [dtype if given in MIXED else given or out_types[0]]


@op("amp_multicast", num_outputs=lambda attributes: attributes["num_outputs"], key_var_num_args="num_outputs", amp="cast")
def amp_multicast(*data, num_outputs: int, cast_narrow: bool = False):
    """Convert float32, float16 and bfloat16 to the widest of their types, or the narrowest if `cast_narrow`.

    Other types stay as they are; without any float32, the first array decides.

    Example
    -------
    >>> half, single = mx.nd.ones(2, dtype='float16'), mx.nd.ones(2)
    >>> [x.dtype.__name__ for x in mx.nd.amp_multicast(half, single, num_outputs=2)]
    ['float32', 'float32']
    >>> [x.dtype.__name__ for x in mx.nd.amp_multicast(half, single, num_outputs=2, cast_narrow=True)]
    ['float16', 'float16']
    """
    if len(data) != num_outputs:
        raise MXNetError(f"amp_multicast: `num_outputs` must be the number of inputs, {len(data)}; received {num_outputs}")
    dtype = _common_type([t.dtype for t in data], cast_narrow)
    outputs = [t.to(dtype, copy=True) if t.dtype in MIXED else t.clone() for t in data]
    return outputs if len(outputs) > 1 else outputs[0]


def _common_type(types, narrow):
    """Return the type to convert to; None where it depends on an unknown type."""
    single, *half = MIXED
    if narrow:
        return next((t for t in types if t in half), single)
    # A leading integer does not determine the type: it would truncate the others.
    return single if single in types else next((t for t in types if t is None or t.is_floating_point), None)


@amp_multicast.shape_rule
def _(in_shapes, out_shapes, *, num_outputs, cast_narrow):
    shapes = [unify(a, b) for a, b in zip(in_shapes, out_shapes)]
    return shapes, shapes


@amp_multicast.dtype_rule
def _(in_types, out_types, *, num_outputs, cast_narrow):
    dtype = _common_type(in_types, cast_narrow)
    return in_types, [dtype if t in MIXED else t for t in in_types]


@op("clip", aliases=("_npi_clip", "_sparse_clip"), same_shape=True, layout_agnostic=True, result_type="data", complete_rule="shape", method=True,
    amp=("inputs", "inputs"))
def clip(data, *, a_min: float, a_max: float):
    """Limit values to the range from `a_min` to `a_max`; both borders let the gradient through.

    If `a_min` is above `a_max`, what lies above `a_max` becomes that, and everything else `a_min`.

    Example
    -------
    >>> mx.nd.clip(mx.nd.array([-1, 0.5, 3]), 0, 1).asnumpy()
    array([0. , 0.5, 1. ], dtype=float32)
    """
    if not data.is_floating_point():
        info = torch.iinfo(data.dtype)
        a_min, a_max = int(min(max(a_min, info.min), info.max)), int(min(max(a_max, info.min), info.max))
    if a_min > a_max:  # MXNet applies the upper bound first, torch the lower one
        return torch.where(data > a_max, a_max, torch.where(data < a_min, a_min, data)).to(data.dtype)
    return torch.clamp(data, a_min, a_max)


@clip.gradient
def _(out_grads, inputs, outputs, *, a_min, a_max):
    result = pointwise.clip_back(inputs[0], out_grads[0], a_min, a_max)
    return out_grads[0].masked_fill((inputs[0] > a_max) | (inputs[0] < a_min), 0) if result is None else result  # NaN passes


@op("smooth_l1", complete_rule="shape", aliases=("_npx_smooth_l1",), same_shape=True, amp="float32")
def smooth_l1(data, *, scalar: float = 1.0):
    """The loss of Fast R-CNN: ``(scalar * x)**2 / 2`` where ``|x| < 1 / scalar**2``, ``|x| - 0.5 / scalar**2`` elsewhere.

    Example
    -------
    >>> mx.nd.smooth_l1(mx.nd.array([1, 2, 3, 4]), scalar=1).asnumpy()
    array([0.5, 1.5, 2.5, 3.5], dtype=float32)
    """
    border = 1 / (scalar * scalar) if scalar else math.inf
    values = data if data.is_floating_point() else data.float()
    loss = torch.nn.functional.smooth_l1_loss(values, torch.zeros_like(values), reduction="none", beta=border)
    return loss if loss.dtype is data.dtype else loss.to(data.dtype)
