"""Arithmetic on two arrays: of one shape (``elemwise_*``, ``_power``, ...) and broadcasting (``broadcast_*``); sums of many."""
from collections.abc import Callable
from typing import Any, Optional, Union

import torch

from ...base import MXNetError
from ...kernels.elementwise import pointwise
from ..docstrings import with_sample
from ..quantization.arithmetic import INT8, Quantized, calibrated, levels, limit_of, product_range, store
from ..quantization.form import EightBits, Int8, quantized_form
from ..registry import get, op
from ..schema import Finite
from ..shapes import known, unify
from .common import broadcast_rule, divide_integers, half_in_single, integer_power, refuse_shapes, refuse_types


def elementwise_pair(function: Callable, doc: Any, elementwise: tuple[Any, ...], broadcast: tuple[str, ...], broadcast_sample: Any,
                     sample: Any = None, same_shape_only: Any = None, **traits: Any) -> Any:
    """Register ``function(lhs, rhs)`` twice: for inputs of one shape and for inputs that broadcast.

    `elementwise` and `broadcast` are the names, the one that JSON files use first; the samples are the examples of the docstrings, see
    `with_sample`. `traits` are those of both, `same_shape_only` further ones of the
    first. Returns both operators.
    """
    name, broadcast_name = elementwise[0], broadcast[0]

    # Both check the types first: torch would convert to a common type, MXNet raises an error.
    def same_shape(lhs, rhs):
        if lhs.dtype is not rhs.dtype:
            refuse_types(name, lhs, rhs)
        if lhs.shape != rhs.shape:
            refuse_shapes(name, lhs, rhs)
        return function(lhs, rhs)

    def broadcasting(lhs, rhs):
        if lhs.dtype is not rhs.dtype:
            refuse_types(broadcast_name, lhs, rhs)
        return function(lhs, rhs)

    same_shape.__name__, broadcasting.__name__ = name, broadcast_name
    same_shape.__doc__ = f"{doc} Both arrays have one shape and type; `{broadcast_name}` takes other shapes, too."
    if sample is not None:
        same_shape.__doc__ = with_sample(same_shape.__doc__, f"mx.nd.{name}", sample)
    broadcasting.__doc__ = with_sample(f"{doc} The arrays have one type and broadcast: a size of 1 is extended to any other.",
                                       f"mx.nd.{broadcast_name}", broadcast_sample)
    traits = {"layout_agnostic": True, "result_type": "inputs", "complete_rule": True, **traits}
    operators = (op(name, aliases=elementwise[1:], same_shape=True, **{**traits, **(same_shape_only or {})})(same_shape),
                 op(broadcast_name, aliases=broadcast[1:], **traits)(broadcasting))
    operators[1].shape_rule(broadcast_rule)
    return operators


def _sum_to(gradient, like):
    """The gradient of an input that was broadcast to the shape of `gradient`."""
    return gradient.sum_to_size(like.shape) if gradient.shape != like.shape else gradient


def _divide(lhs, rhs):
    if lhs.is_floating_point():
        return pointwise.divide(lhs, rhs)
    return divide_integers(lhs, rhs)


def _modulo(lhs, rhs):
    # The sign is the divisor's, as in Python; the remainder of a division by 0 is 0.
    result = pointwise.rest_of(lhs, rhs)
    if result is not None:
        return result
    zero = rhs == 0
    return torch.remainder(lhs, rhs.masked_fill(zero, 1)).masked_fill(zero, 0)


_pow, _distance = half_in_single(torch.pow), half_in_single(torch.hypot)


def _power(lhs, rhs):
    if lhs.is_floating_point():
        return _pow(lhs, rhs)
    return integer_power(lhs.double(), rhs, lhs.dtype)


def _hypot(lhs, rhs):
    if lhs.is_floating_point():
        return _distance(lhs, rhs)
    return torch.hypot(lhs.double(), rhs.double()).to(lhs.dtype)


elemwise_add, broadcast_add = elementwise_pair(
    torch.add, "The sum.", ("elemwise_add", "_Plus", "_plus", "_add", "_sparse_elemwise_add"),
    ("broadcast_add", "broadcast_plus", "_sparse_broadcast_add", "_sparse_broadcast_plus"),
    "[[1], [2]] and [[10, 20]] -> [[11., 21.], [12., 22.]]", "[1, 2] and [10, 20] -> [11., 22.]", arithmetic="add", amp="widest",
    same_shape_only={"inplace_safe": True, "names_output": True})
elemwise_sub, broadcast_sub = elementwise_pair(
    torch.sub, "The difference.", ("elemwise_sub", "_Minus", "_minus", "_sub", "_sparse_elemwise_sub"),
    ("broadcast_sub", "broadcast_minus", "_sparse_broadcast_sub", "_sparse_broadcast_minus"),
    "[[1], [2]] and [[10, 20]] -> [[ -9., -19.], [ -8., -18.]]", "[1, 2] and [10, 20] -> [ -9., -18.]", amp="widest")
elementwise_pair(torch.mul, "The product.", ("elemwise_mul", "_Mul", "_mul", "_sparse_elemwise_mul"),
                 ("broadcast_mul", "_sparse_broadcast_mul"), "[[1], [2]] and [[10, 20]] -> [[10., 20.], [20., 40.]]",
                 "[1, 2] and [10, 20] -> [10., 40.]", arithmetic="multiply", amp=("widest", "float32"), same_shape_only={"amp": "widest"})
elementwise_pair(_divide, "The quotient; of integers truncated towards 0.", ("elemwise_div", "_Div", "_div", "_sparse_elemwise_div"),
                 ("broadcast_div", "_sparse_broadcast_div"), "[[10, 20]] and [[1], [2]] -> [[10., 20.], [ 5., 10.]]",
                 "[1, 2] and [2, 0] -> [0.5, inf]", arithmetic="divide", amp="widest")
_modulos = elementwise_pair(_modulo, "The remainder of the division, with the sign of the divisor; 0 for a divisor of 0.", ("_mod", "_Mod"),
                            ("broadcast_mod",), "[[7, -7]] and [[3], [0]] -> [[1., 2.], [0., 0.]]", amp="widest")
elementwise_pair(_power, "The first array to the power of the second.", ("_power", "_Power"), ("broadcast_power",),
                 "[[2, 3]] and [[1], [2]] -> [[2., 3.], [4., 9.]]", amp="float32")
elementwise_pair(_hypot, "The length of the hypotenuse of a right triangle with these sides.", ("_hypot", "_Hypot"), ("broadcast_hypot",),
                 "[[5, 9]] and [[12], [0]] -> [[13., 15.], [ 5., 9.]]", amp="float32")
_maximum = elementwise_pair(torch.maximum, "The larger of two values. The gradient of a tie goes to the first array.",
                            ("_maximum", "_Maximum"), ("broadcast_maximum", "_npi_maximum"),
                            "[[1, 5]] and [[2], [9]] -> [[2., 5.], [9., 9.]]", amp="widest")
_minimum = elementwise_pair(torch.minimum, "The smaller of two values. The gradient of a tie goes to the first array.",
                            ("_minimum", "_Minimum"), ("broadcast_minimum", "_npi_minimum"),
                            "[[1, 5]] and [[2], [9]] -> [[1., 2.], [1., 5.]]", amp="widest")


def _selection_gradient(kernel, first, second):
    """Return the gradient of a selection between two inputs: `first` and `second` compute their masks; `kernel` computes both gradients."""
    def gradient(out_grads, inputs, outputs):
        gradients = kernel(*inputs, out_grads[0])
        if gradients is None:
            zero = torch.zeros((), dtype=out_grads[0].dtype, device=out_grads[0].device)
            gradients = [torch.where(mine(*inputs), out_grads[0], zero) for mine in (first, second)]
        return tuple(_sum_to(d, i) for d, i in zip(gradients, inputs))
    return gradient


def _modulo_gradient(out_grads, inputs, outputs):
    gradient, (lhs, rhs) = out_grads[0], inputs
    result = pointwise.rest_of_back(lhs, rhs, gradient)
    return _sum_to(gradient, lhs), _sum_to(-gradient * torch.floor(lhs / rhs) if result is None else result, rhs)


for _operator in _modulos:
    _operator.gradient(_modulo_gradient, of_integers=False)
for _operator in _maximum:
    _operator.gradient(_selection_gradient(pointwise.larger_back, torch.ge, torch.lt))
for _operator in _minimum:
    _operator.gradient(_selection_gradient(pointwise.smaller_back, torch.le, torch.gt))


@op("_grad_add", complete_rule="shape", same_shape=True, arithmetic="add", no_gradient=True, layout_agnostic=True, result_type="inputs")
def grad_add(lhs, rhs):
    """The sum of two gradients of one array; graphs of MXNet's own backward passes contain it."""
    if lhs.shape != rhs.shape:
        refuse_shapes("_grad_add", lhs, rhs)
    return torch.add(lhs, rhs)


@op("_scatter_elemwise_div", same_shape=True, amp="widest")
def scatter_elemwise_div(lhs, rhs):
    """The quotient; where `lhs` is sparse only of the rows that it stores."""
    if lhs.shape != rhs.shape:
        refuse_shapes("_scatter_elemwise_div", lhs, rhs)
    return _divide(lhs, rhs)


@op("add_n", aliases=("ElementWiseSum", "_sparse_add_n", "_sparse_ElementWiseSum", "_npx_add_n"), same_shape=True, key_var_num_args="num_args",
    layout_agnostic=True,
    complete_rule="shape", result_type="inputs", amp="widest")
def add_n(*args):
    """The sum of any number of arrays of one shape.

    Raises
    ------
    MXNetError
        If there is none, or shapes or types differ.

    Example
    -------
    >>> x = mx.nd.ones((2,))
    >>> mx.nd.add_n(x, x, x).asnumpy()
    array([3., 3.], dtype=float32)
    """
    if not args:
        raise MXNetError("add_n: at least one array is needed, received none")
    first = args[0]
    for other in args[1:]:
        if other.dtype is not first.dtype:
            refuse_types("add_n", first, other)
        if other.shape != first.shape:
            refuse_shapes("add_n", first, other)
    if len(args) == 1:
        return first.clone()
    total, rest = pointwise.add_three(*args[:3]) if len(args) > 2 else None, args[3:]
    if total is None or rest:
        total, rest = (torch.add(first, args[1]), args[2:]) if total is None else (torch.add(total, rest[0]), rest[1:])
    for other in rest:
        total.add_(other)
    return total


@op("where", complete_rule="shape", aliases=("_sparse_where",), amp="widest")
def where(condition, x, y):
    """Elements of `x` where `condition` is not 0, of `y` elsewhere.

    `condition` has the shape of `x` and `y`, or is a vector that chooses rows: one element for each entry of their first axis.

    Raises
    ------
    MXNetError
        If `x` and `y` differ in shape or type, or `condition` fits neither way.

    Example
    -------
    >>> x, y = mx.nd.array([[1, 2], [3, 4]]), mx.nd.zeros((2, 2))
    >>> mx.nd.where(mx.nd.array([0, 1]), x, y).asnumpy()
    array([[0., 0.],
           [3., 4.]], dtype=float32)
    """
    if x.dtype is not y.dtype:
        refuse_types("where", x, y)
    if x.shape != y.shape:
        refuse_shapes("where", x, y)
    if condition.shape != x.shape:
        if condition.dim() != 1 or x.dim() == 0 or condition.shape[0] != x.shape[0]:
            raise MXNetError(f"where: `condition` must have the shape of `x`, {tuple(x.shape)}, or be a vector as long as its first axis; "
                             f"received shape {tuple(condition.shape)}")
        condition = condition.reshape(-1, *[1] * (x.dim() - 1))
    return pointwise.choose(condition, x, y)


@where.shape_rule
def _(in_shapes, out_shapes):
    condition = in_shapes[0]
    if not known(condition):  # a vector would select rows; MXNet's test_infer_shape.py expects no inference before the shape is known
        return in_shapes, out_shapes
    shape = unify(unify(in_shapes[1], in_shapes[2]), out_shapes[0])
    if shape is not None and len(shape) == len(condition):
        shape = unify(shape, condition)
    elif shape is not None and (len(condition) != 1 or shape[0] not in (-1, *condition)):
        raise MXNetError(f"where: a vector `condition` must be as long as the first axis of `x`, {shape[0]}; received {condition}")
    return [condition, shape, shape], [shape]


@where.dtype_rule
def _(in_types, out_types):
    common = in_types[1] or in_types[2] or out_types[0]
    return [in_types[0] or common, common, common], [common]


@op("_contrib_allclose", complete_rule="shape", no_gradient=True, amp=None)
def allclose(a, b, *, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = True):
    """1 if all elements agree within ``atol + rtol * |b|``, otherwise 0, as one number of type uint8.

    Example
    -------
    >>> x = mx.nd.array([1, 2])
    >>> mx.nd.contrib.allclose(x, x + 1e-3).asnumpy(), mx.nd.contrib.allclose(x, x + 1e-3, atol=0.01).asnumpy()
    (array(0, dtype=uint8), array(1, dtype=uint8))
    """
    if a.shape != b.shape:
        refuse_shapes("_contrib_allclose", a, b)
    return torch.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan).all().to(torch.uint8)


@allclose.shape_rule
def _(in_shapes, out_shapes, **_):
    a, b = in_shapes
    if a is None or b is None or known(a) and known(b) and a != b:
        return in_shapes, out_shapes
    return [unify(a, b)] * 2, [unify(out_shapes[0], ())]


@allclose.dtype_rule
def _(in_types, out_types, **_):
    common = in_types[0] or in_types[1]
    return [in_types[0] or common, in_types[1] or common], [torch.uint8]


def _check_alike(name, lhs, rhs):
    if lhs.values.shape != rhs.values.shape:
        raise MXNetError(f"{name}: `lhs` and `rhs` must have one shape, received {tuple(lhs.values.shape)} and {tuple(rhs.values.shape)}")


def _sum_type(types, attributes):
    if None in (attributes["min_calib_range"], attributes["max_calib_range"]):
        return torch.int32
    return torch.uint8 if types[0] == types[1] == torch.uint8 else torch.int8


@quantized_form(get("elemwise_add"), "_contrib_quantized_elemwise_add", ends=("{}_min", "{}_max"), result=_sum_type)
def quantized_elemwise_add(lhs: EightBits, rhs: EightBits, *, min_calib_range: Optional[Finite] = None,
                           max_calib_range: Optional[Finite] = None) -> Quantized:
    """The sum of two int8 or uint8 arrays: int32, or int8 (uint8 if both are) where a range is calibrated. Returns it and its range.

    Example
    -------
    >>> a, b = mx.nd.array([100], dtype='int8'), mx.nd.array([100], dtype='int8')
    >>> one, two = mx.nd.array([1]), mx.nd.array([2])
    >>> total, *ends = mx.nd.contrib.quantized_elemwise_add(a, b, -one, one, -two, two, min_calib_range=-3, max_calib_range=3)
    >>> total.asnumpy()
    array([100], dtype=int8)
    """
    _check_alike("_contrib_quantized_elemwise_add", lhs, rhs)
    ends = calibrated(min_calib_range, max_calib_range, lhs.values)
    high = lhs.limit + rhs.limit
    low, high = ends or (-high, high)
    dtype = _sum_type([lhs.values.dtype, rhs.values.dtype], {"min_calib_range": min_calib_range, "max_calib_range": max_calib_range})
    scale = levels(dtype) / limit_of(low, high)
    left, right = (a.values.to(torch.float64) * (scale * a.limit / levels(a.values.dtype)) for a in (lhs, rhs))
    return Quantized(store(left + right, dtype), low, high)


def _product_type(types, attributes):
    return torch.float32 if attributes["enable_float_output"] else \
        torch.int32 if None in (attributes["min_calib_range"], attributes["max_calib_range"]) else torch.int8


@quantized_form(get("elemwise_mul"), "_contrib_quantized_elemwise_mul", ends=("{}_min", "{}_max"), result=_product_type,
                real=lambda attributes: attributes["enable_float_output"], amp=None)
def quantized_elemwise_mul(lhs: Int8, rhs: Int8, *, min_calib_range: Optional[Finite] = None, max_calib_range: Optional[Finite] = None,
                           enable_float_output: bool = False) -> Union[torch.Tensor, Quantized]:
    """The product of two int8 arrays: float32 on request, else int32, or int8 for a calibrated range, with its range.

    Example
    -------
    >>> a, b = mx.nd.array([100], dtype='int8'), mx.nd.array([100], dtype='int8')
    >>> one, two = mx.nd.array([1]), mx.nd.array([2])
    >>> mx.nd.contrib.quantized_elemwise_mul(a, b, -one, one, -two, two, enable_float_output=True).asnumpy()
    array([1.2302961], dtype=float32)
    """
    _check_alike("_contrib_quantized_elemwise_mul", lhs, rhs)
    product = lhs.values.to(torch.int32) * rhs.values.to(torch.int32)
    unit = lhs.unit * rhs.unit
    if enable_float_output:
        return product * unit
    ends = calibrated(min_calib_range, max_calib_range, product)
    if ends is None:
        return Quantized(product, *product_range(lhs, rhs))
    return Quantized((product * (unit * (INT8 / limit_of(*ends)))).trunc().clamp_(-128, 127).to(torch.int8), *ends)
