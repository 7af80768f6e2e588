"""NumPy operators on an array and a number."""
import torch

from ...base import MXNetError
from ..dtypes import name_of
from ..elemwise.common import wrap_integer
from ..registry import get, op
from .common import result_is
from .elemwise import angle, lcm
from .promotion import number_beside
from .unsigned import WIDER

_legacy = {name: get(name).fn for name in ("_plus_scalar", "_minus_scalar", "_rminus_scalar", "_mul_scalar", "_mod_scalar", "_rmod_scalar",
                                           "_power_scalar", "_rpower_scalar")}


def _as_legacy(name, of, doc, **traits):
    """Register ``_npi_<name>_scalar``, which computes the same as the legacy operator `of`."""
    legacy, pair, reverse = _legacy[of], get(f"_npi_{name.removeprefix('r')}").raw, name[0] == "r"

    def fn(data, *, scalar: float = 1.0, is_int: bool = True):
        try:
            return legacy(data, scalar=scalar, is_int=is_int)
        except (RuntimeError, OverflowError, TypeError):
            if data.dtype not in WIDER and not data.is_complex():
                raise
            both = number_beside(data, scalar)
            return pair(*both[::-1] if reverse else both)

    _register(name, fn, doc, **traits)


def _register(name, fn, doc, **traits):
    fn.__name__ = fn.__qualname__ = f"{name}_scalar"
    fn.__doc__ = doc
    operator = op(f"_npi_{name}_scalar", same_shape=True, complete_rule=True, **traits)(fn)
    operator.dtype_inference = get("_plus_scalar").dtype_inference
    return operator


_as_legacy("add", "_plus_scalar", "x + scalar.")
_as_legacy("subtract", "_minus_scalar", "x - scalar.")
_as_legacy("rsubtract", "_rminus_scalar", "scalar - x.")
_as_legacy("multiply", "_mul_scalar", "x * scalar.", arithmetic="multiply")
_as_legacy("mod", "_mod_scalar", "The remainder of x / scalar, with the sign of the scalar; 0 for a scalar of 0.")
_as_legacy("rmod", "_rmod_scalar", "The remainder of scalar / x, with the sign of x; 0 where x is 0.")
_as_legacy("power", "_power_scalar", "x to the power of scalar.")
_as_legacy("rpower", "_rpower_scalar", "scalar to the power of x.")


def _floating(data):
    return data if data.is_floating_point() or data.is_complex() else data.float()


def _quotient(name, function, doc, **traits):
    def fn(data, *, scalar: float = 1.0, is_int: bool = True):
        return function(_floating(data), scalar)

    operator = _register(name, fn, doc, **traits)

    @operator.dtype_rule
    def _(in_types, out_types, **_):
        given = in_types[0]
        return [given or out_types[0]], [torch.float32 if given is not None and not given.is_floating_point else given or out_types[0]]


_quotient("true_divide", torch.div, "x / scalar; of integers in float32.", arithmetic="divide")
_quotient("rtrue_divide", lambda data, scalar: torch.reciprocal(data) * scalar if scalar != 1 else torch.reciprocal(data),
          "scalar / x; of integers in float32.")


def _pair(name, function, doc):
    """Register a function of two arrays, one of them the number; integers are computed in float64 and truncated."""
    def fn(data, *, scalar: float = 1.0, is_int: bool = True):
        if data.is_floating_point():
            return function(data, data.new_full((), scalar))
        if data.dtype is torch.bool:
            data = data.long()
        values = data.double()
        out = function(values, values.new_full((), wrap_integer(scalar, data.dtype) if is_int else scalar))
        return out.to(data.dtype) if is_int else out

    _register(name, fn, doc)


_pair("arctan2", angle, "The angle whose tangent is x / scalar, in the right quadrant.")
_pair("rarctan2", lambda x, s: angle(s, x), "The angle whose tangent is scalar / x, in the right quadrant.")
_pair("copysign", torch.copysign, "The size of x with the sign of the scalar.")
_pair("rcopysign", lambda x, s: torch.copysign(s.expand_as(x), x), "The size of the scalar with the sign of x.")
_pair("ldexp", lambda x, s: x * torch.exp2(s), "x times 2 to the power of the scalar.")
_pair("rldexp", lambda x, s: s * torch.exp2(x), "The scalar times 2 to the power of x.")


def _integer(name, function, doc):
    def fn(data, *, scalar: float = 1.0, is_int: bool = True):
        if data.is_meta:
            return torch.empty_like(data)  # shapes are inferred before types are known
        if data.is_floating_point():
            raise MXNetError(f"_npi_{name}_scalar: integers or booleans expected, received {name_of(data.dtype)}")
        if data.dtype is torch.bool:
            return function(data, data.new_full((), bool(scalar)))
        return function(data, data.new_full((), wrap_integer(scalar, data.dtype)))

    fn.__name__ = fn.__qualname__ = f"{name}_scalar"
    fn.__doc__ = doc
    op(f"_npi_{name}_scalar", same_shape=True, no_gradient=True)(fn)


_integer("lcm", lcm, "The least common multiple of x and scalar.")
_integer("bitwise_and", torch.bitwise_and, "The bitwise AND of x and scalar.")
_integer("bitwise_or", torch.bitwise_or, "The bitwise OR of x and scalar.")
_integer("bitwise_xor", torch.bitwise_xor, "The bits in which x and scalar differ.")


def _comparison(name, function, doc):
    def fn(data, *, scalar: float = 1.0, is_int: bool = True):
        if is_int and not (data.is_floating_point() or data.dtype is torch.bool or data.is_complex()):
            scalar = wrap_integer(scalar, data.dtype)  # MXNet compares integers in their own type
        if data.dtype in WIDER:
            return get(f"_npi_{name}").raw(*number_beside(data, scalar))
        return function(data, scalar)

    fn.__name__ = fn.__qualname__ = f"{name}_scalar"
    fn.__doc__ = doc
    op(f"_npi_{name}_scalar", same_shape=True)(fn).dtype_rule(result_is(torch.bool))


_comparison("equal", torch.eq, "True where x == scalar.")
_comparison("not_equal", torch.ne, "True where x != scalar.")
_comparison("greater", torch.gt, "True where x > scalar.")
_comparison("greater_equal", torch.ge, "True where x >= scalar.")
_comparison("less", torch.lt, "True where x < scalar.")
_comparison("less_equal", torch.le, "True where x <= scalar.")
