"""Operators on an array and a number: arithmetic, comparisons, logic."""
import torch

from ...kernels.elementwise import pointwise
from ..docstrings import with_sample
from ..integers import convert, plain
from ..registry import op
from .common import divide_integers, integer_power, truth, wrap_integer


def _scalar(function, doc, name, *aliases, **traits):
    """Register ``function(tensor, number)``.

    The array's type wins: the number is converted to it, so that half of an integer array is zero. Booleans become int64.
    `is_int` is False where ``mx.np`` passes a number that is not an integer: then integers become float64.
    """
    def fn(data, *, scalar: float = 1.0, is_int: bool = True):
        if data.is_floating_point():
            return function(data, scalar)
        if not is_int:
            return function(data.double(), scalar)
        if data.dtype is torch.bool:
            data = data.long()
        out = function(data, wrap_integer(scalar, data.dtype))
        return out if out.dtype is data.dtype else convert(out, data.dtype)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = doc
    operator = op(name, aliases=aliases, same_shape=True, by_rows=True, layout_agnostic=True, result_type="data", complete_rule=True, **traits)(fn)
    operator.dtype_rule(_result_type)
    return operator


def _result_type(in_types, out_types, *, scalar, is_int):
    given = in_types[0]
    if given is None or given.is_floating_point:
        common = given or out_types[0]
        return [common], [common]
    return [given], [torch.float64 if not is_int else torch.int64 if given is torch.bool else given]


def _like(data, scalar):
    return data.new_full((), scalar)


def _divide(data, scalar):
    return torch.div(data, scalar) if data.is_floating_point() else divide_integers(data, scalar)


def _divided_by(data, scalar):
    return pointwise.inverse(data, scalar) if data.is_floating_point() else divide_integers(_like(data, scalar), data)


def _modulo(data, scalar):
    # The sign is the divisor's, as in Python; the remainder of a division by 0 is 0.
    if not data.is_floating_point():
        data = plain(data)  # MXNet's gradient of the remainder of integers is 0
    if not scalar:
        return (data - data.detach()).nan_to_num(0)  # 0, and the gradient passes as for any divisor
    return torch.remainder(data, scalar)


def _rest_by(data, scalar):
    result = pointwise.rest_by(data, scalar)
    if result is not None:
        return result
    zero = data == 0
    return torch.remainder(_like(data, scalar), data.masked_fill(zero, 1)).masked_fill(zero, 0)


def _power(data, scalar):
    return torch.pow(data, scalar) if data.is_floating_point() else integer_power(data.double(), scalar, data.dtype)


def _power_of(data, scalar):
    return torch.pow(scalar, data) if data.is_floating_point() else integer_power(scalar, data.double(), data.dtype)


def _hypot(data, scalar):
    values = data if data.is_floating_point() else data.double()
    return torch.hypot(values, _like(values, scalar))


def _comparison(function):
    return lambda data, scalar: truth(function, data, scalar)


def _logic(with_false, with_true):
    """Return a function that combines an array with a scalar by its truth value: a comparison of the array with 0, or a constant."""
    def combine(data, scalar):
        result = with_true if torch.full((), scalar, dtype=data.dtype) else with_false
        return torch.full_like(data, result) if isinstance(result, int) else truth(result, data, 0)
    return combine


_scalar(torch.add, "x + scalar.", "_plus_scalar", "_PlusScalar", arithmetic="add")
_scalar(torch.sub, "x - scalar.", "_minus_scalar", "_MinusScalar")
subtract_from = _scalar(torch.rsub, "scalar - x.", "_rminus_scalar", "_RMinusScalar")
multiply = _scalar(torch.mul, "x * scalar.", "_mul_scalar", "_MulScalar", arithmetic="multiply")
_scalar(torch.mul, with_sample("The gradient that `_contrib_gradientmultiplier` passes on for the gradient x: x * scalar.",
                               "mx.nd.contrib.backward_gradientmultiplier", "[1, 2]; scalar=3 -> [3., 6.]"),
        "_contrib_backward_gradientmultiplier", amp=None).no_gradient = True
_scalar(_divide, "x / scalar.", "_div_scalar", "_DivScalar", arithmetic="divide")
_scalar(_divided_by, "scalar / x.", "_rdiv_scalar", "_RDivScalar", amp="float32")
_scalar(_modulo, "The remainder of x / scalar, with the sign of the scalar; 0 for a scalar of 0.", "_mod_scalar", "_ModScalar")
_rest_by_op = _scalar(_rest_by, "The remainder of scalar / x, with the sign of x; 0 where x is 0.", "_rmod_scalar", "_RModScalar")
_scalar(_power, "x to the power of scalar.", "_power_scalar", "_PowerScalar", amp="float32")
_scalar(_power_of, "scalar to the power of x.", "_rpower_scalar", "_RPowerScalar", amp="float32")
_scalar(pointwise.not_below, "max(x, scalar). The gradient of a tie goes to x.", "_maximum_scalar", "_MaximumScalar", "_npi_maximum_scalar")
_scalar(pointwise.not_above, "min(x, scalar). The gradient of a tie goes to x.", "_minimum_scalar", "_MinimumScalar", "_npi_minimum_scalar")
_scalar(_hypot, "sqrt(x**2 + scalar**2).", "_hypot_scalar", "_HypotScalar", "_npi_hypot_scalar", amp="float32")
_scalar(torch.add, "x + scalar; where x is sparse only in the rows that it stores.", "_scatter_plus_scalar")
_scalar(torch.sub, "x - scalar; where x is sparse only in the rows that it stores.", "_scatter_minus_scalar")

_scalar(_comparison(torch.eq), "1 where x == scalar, 0 elsewhere.", "_equal_scalar", "_EqualScalar")
_scalar(_comparison(torch.ne), "1 where x != scalar, 0 elsewhere.", "_not_equal_scalar", "_NotEqualScalar")
_scalar(_comparison(torch.gt), "1 where x > scalar, 0 elsewhere.", "_greater_scalar", "_GreaterScalar")
_scalar(_comparison(torch.ge), "1 where x >= scalar, 0 elsewhere.", "_greater_equal_scalar", "_GreaterEqualScalar")
_scalar(_comparison(torch.lt), "1 where x < scalar, 0 elsewhere.", "_lesser_scalar", "_LesserScalar")
_scalar(_comparison(torch.le), "1 where x <= scalar, 0 elsewhere.", "_lesser_equal_scalar", "_LesserEqualScalar")
_scalar(_logic(0, torch.ne), "1 where x and scalar are other than 0, 0 elsewhere.", "_logical_and_scalar", "_LogicalAndScalar")
_scalar(_logic(torch.ne, 1), "1 where x or scalar is other than 0, 0 elsewhere.", "_logical_or_scalar", "_LogicalOrScalar")
_scalar(_logic(torch.ne, torch.eq), "1 where exactly one of x and scalar is other than 0, 0 elsewhere.", "_logical_xor_scalar",
        "_LogicalXorScalar")


def _rest_by_gradient(out_grads, inputs, outputs, *, scalar=1.0, is_int=True):
    result = pointwise.rest_by_back(inputs[0], out_grads[0], scalar)
    return -torch.floor(scalar / inputs[0]) * out_grads[0] if result is None else result


_rest_by_op.gradient(_rest_by_gradient, of_integers=False)
