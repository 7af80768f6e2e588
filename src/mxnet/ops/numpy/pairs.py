"""Element-wise operators of two arrays that MXNet 2.0 added, each also with a number in the place of an array."""
import torch

from ...base import MXNetError
from .. import integers
from ..docstrings import with_example, with_sample
from ..dtypes import name_of
from ..elemwise.common import broadcast_rule, divide_integers
from ..registry import op
from . import unsigned
from .common import promoted, result_is
from .promotion import number_beside, promoted_pair


def _pair(name, function, doc, sample, *, commutes=True, integers=False, result=None, rule=promoted, **traits):
    """Register ``_npi_<name>``, ``_npi_<name>_scalar`` and, unless it commutes, ``_npi_r<name>_scalar``.

    `function` computes from two tensors of one type. `integers` refuses floating-point numbers. `result` is the result's type where that is not the
    common type of both.
    """
    full = f"_npi_{name}"

    def fn(lhs, rhs):
        if integers:
            _require_integers(full, lhs, rhs)
        if lhs.dtype is not rhs.dtype:
            lhs, rhs = promoted_pair(full, lhs, rhs)
        return function(lhs, rhs)

    fn.__name__ = fn.__qualname__ = name
    doc = f"{doc} The arrays broadcast."
    fn.__doc__ = with_example(doc, sample) if sample.startswith("mx.np") else with_sample(doc, f"mx.np.{name}", sample)
    operator = op(full, complete_rule="shape", no_gradient=integers or result is not None, **traits)(fn)
    operator.shape_rule(broadcast_rule)
    operator.dtype_rule(rule if result is None else result_is(result))
    for reverse in ((False,) if commutes else (False, True)):
        _with_number(name, full, function, reverse, integers, doc, result)


def _with_number(name, full, function, reverse, integers, doc, result):
    def fn(data, *, scalar: float = 1.0, is_int: bool = True):
        if integers:
            _require_integers(full, data)
        if not (is_int or integers or data.is_floating_point() or data.is_complex()):
            data = data.double()
        pair = number_beside(data, scalar)
        return function(*pair[::-1] if reverse else pair)

    fn.__name__ = fn.__qualname__ = f"{'r' if reverse else ''}{name}_scalar"
    fn.__doc__ = f"{doc} The {'first' if reverse else 'second'} is a number."
    operator = op(f"_npi_{fn.__name__}", same_shape=True, no_gradient=integers or result is not None)(fn)
    if result is not None:
        operator.dtype_rule(result_is(result))


def _integers(name, lhs, rhs, result):
    """The example of a function of integers."""
    return f"mx.np.{name}(mx.np.array({lhs}, dtype='int32'), mx.np.array({rhs}, dtype='int32')) -> array({result}, dtype=int32)"


def _require_integers(operator, *tensors):
    for t in tensors:
        if t.is_floating_point() and not t.is_meta:  # shapes are inferred before types are known
            raise MXNetError(f"{operator}: integers or booleans expected, received {name_of(t.dtype)}; convert with astype('int64')")


# -- logic -----------------------------------------------------------------------------------------------------------------

def _logic(name, function, doc, sample):
    def fn(a, b):
        return function(a != 0, b != 0)

    _pair(f"logical_{name}", fn, doc, sample, result=torch.bool)


_logic("and", torch.logical_and, "True where both are other than 0.", "[0, 1, 2] and [[0], [3]] -> [[False, False, False], [False, True, True]]")
_logic("or", torch.logical_or, "True where one is other than 0.", "[0, 1, 2] and [[0], [3]] -> [[False, True, True], [ True, True, True]]")
_logic("xor", torch.logical_xor, "True where exactly one is other than 0.",
       "[0, 1, 2] and [[0], [3]] -> [[False, True, True], [ True, False, False]]")


# -- division --------------------------------------------------------------------------------------------------------------

def floor_quotient(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The quotient rounded down: of integers 0 where `b` is 0, of floating-point numbers infinite or not a number there."""
    if a.is_floating_point():
        floored = torch.floor(a / b)
        # The rounded quotient may have reached the next whole number; torch corrects it, but not where it is infinite or undefined.
        exact = torch.div(a, b, rounding_mode="floor")
        return torch.where(torch.isfinite(floored) & torch.isfinite(exact) & torch.isfinite(b), exact, floored)
    if a.dtype in unsigned.WIDER:
        return unsigned.floor_divide(a, b)
    if a.dtype is torch.bool:
        return a & b
    zero = b == 0
    safe = b.masked_fill(zero, 1)
    quotient = divide_integers(a, safe)
    return (quotient - ((quotient * safe != a) & ((a < 0) != (safe < 0))).to(a.dtype)).masked_fill(zero, 0)


def _remainder_of_truncation(a, b):
    if a.is_floating_point():
        return torch.fmod(a, b)
    a, b = integers.plain(a), integers.plain(b)  # as that of mod, the gradient of integers is 0
    if a.dtype in unsigned.WIDER:
        return unsigned.remainder(a, b)
    if a.dtype is torch.bool:
        return torch.zeros_like(a & b)
    # The remainder of a division by -1 is that by 1, for which a processor has an answer whatever is divided.
    without_answer = (b == 0) | (b == -1) if b.dtype.is_signed else b == 0
    return torch.fmod(a, b.masked_fill(without_answer, 1))


_pair("floor_divide", floor_quotient, "The quotient rounded down; of integers 0 for a divisor of 0.", "[7, -7, 5] and [2] -> [ 3., -4., 2.]",
      commutes=False)
_pair("fmod", _remainder_of_truncation, "The remainder of the division, with the sign of the dividend; of integers 0 for a divisor of 0.",
      "[7, -7] and [3] -> [ 1., -1.]", commutes=False)


# -- extrema ---------------------------------------------------------------------------------------------------------------

def _extremum(name, function, other, doc, sample):
    def fn(a, b):
        if a.is_floating_point():
            return function(a, b)
        return unsigned.by_order(other, a, b)

    _pair(name, fn, doc, sample)


_extremum("fmax", torch.fmax, torch.maximum, "The larger of two values, or the one that is a number.", "[1, float('nan')] and [2, 3] -> [2., 3.]")
_extremum("fmin", torch.fmin, torch.minimum, "The smaller of two values, or the one that is a number.", "[1, float('nan')] and [2, 3] -> [1., 3.]")


def _floating(in_types, out_types, **_):
    ins, outs = promoted(in_types, out_types)
    return ins, [torch.float32 if outs[0] is not None and not outs[0].is_floating_point else outs[0]]


_pair("logaddexp", lambda a, b: torch.logaddexp(*(x if x.is_floating_point() else x.float() for x in (a, b))),
      "log(exp(x1) + exp(x2)); of integers in float32.", "[0, 1000] and [0, 1000] -> [6.93...e-01, 1.0006...e+03]", rule=_floating)


# -- integers --------------------------------------------------------------------------------------------------------------

def _gcd(a, b):
    if a.dtype is torch.bool:
        return a | b
    return unsigned.gcd(a, b) if a.dtype in unsigned.WIDER else torch.gcd(a, b).abs()


def left_shift(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The bits of `a` moved by `b` towards the higher ones; 0 where all are moved out."""
    if a.dtype is torch.bool:
        a, b = a.long(), b.long()
    shifted = unsigned.by_bits(torch.bitwise_left_shift, a, b)
    return torch.where(_beyond(a, b), torch.zeros_like(shifted), shifted)


def right_shift(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The bits of `a` moved by `b` towards the lower ones; negative numbers stay negative."""
    if a.dtype is torch.bool:
        a, b = a.long(), b.long()
    return unsigned.right_shift(a, b) if a.dtype in unsigned.WIDER else torch.bitwise_right_shift(a, b)


def _beyond(a, b):
    """True where all bits are shifted out, for which processors have no common answer."""
    return unsigned.by_order(torch.ge, b, torch.full_like(b, 8 * a.dtype.itemsize), indices=True)


_pair("gcd", _gcd, "The greatest common divisor.", _integers("gcd", "[12, 7]", "[18]", "[6, 1]"), integers=True)
_pair("bitwise_left_shift", left_shift, "The bits moved towards the higher ones: x1 * 2**x2, within the type.",
      _integers("bitwise_left_shift", "[1, 3]", "[2]", "[ 4, 12]"), commutes=False,
      integers=True)
_pair("bitwise_right_shift", right_shift, "The bits moved towards the lower ones: x1 / 2**x2, rounded down.",
      _integers("bitwise_right_shift", "[8, -3]", "[1]", "[ 4, -2]"), commutes=False,
      integers=True)
