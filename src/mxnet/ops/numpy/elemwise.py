"""Element-wise NumPy operators on one and on two arrays."""
from collections.abc import Callable
from typing import Any

import torch

from ...base import MXNetError
from ..docstrings import with_example, with_sample
from ..dtypes import name_of
from ..elemwise.common import broadcast_rule
from ..registry import alias, get, op
from . import unsigned
from .common import InvalidValueError, promoted, result_is
from .promotion import promoted_pair

# -- one array -----------------------------------------------------------------------------------------------------------

# Functions without a torch kernel.
_OF_UNSIGNED: dict[str, Callable[[Any], Any]] = {name: torch.clone for name in ("abs", "rint", "ceil", "floor", "trunc", "fix")}
_OF_UNSIGNED.update(negative=lambda x: unsigned.by_bits(torch.neg, x), square=lambda x: unsigned.by_bits(torch.square, x),
                    sign=lambda x: (x != 0).to(x.dtype))


def _unary(name, of=None, aliases=()):
    """Register ``_npi_<name>`` as the computation of the legacy operator `of`, including its gradient."""
    legacy, of_unsigned = get(of or name).fn, _OF_UNSIGNED.get(name)

    def fn(x):
        if x.dtype is torch.bool:
            raise MXNetError(f"_npi_{name}: not supported for boolean arrays, received {name_of(x.dtype)}; convert with astype")
        try:
            return legacy(x)
        except RuntimeError:
            if x.dtype not in unsigned.WIDER:
                raise
            return of_unsigned(x) if of_unsigned is not None else legacy(x.float())

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = (legacy.__doc__ or "").replace("mx.nd.", "mx.np.")
    return op(f"_npi_{name}", aliases=aliases, same_shape=True, complete_rule=True)(fn)


for _name in """negative sign rint ceil floor trunc fix square sqrt cbrt reciprocal exp expm1 log log2 log10 log1p sin cos tan arcsin arccos
                arctan sinh cosh tanh arcsinh arccosh arctanh degrees radians""".split():
    _unary(_name)
_unary("abs", aliases=("_npi_absolute",))


def _test(name, function, doc, sample):
    """Register a test of each element, whose result is boolean."""
    def fn(x):
        return function(x)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = with_sample(doc, f"mx.np.{name}", sample)
    op(f"_npi_{name}", same_shape=True, no_gradient=True)(fn).dtype_rule(result_is(torch.bool))


_test("logical_not", torch.logical_not, "True where x is 0.", "[-1, 0, 2] -> [False, True, False]")
_test("isnan", torch.isnan, "True where x is not a number.", "[1, float('nan')] -> [False, True]")
_test("isinf", torch.isinf, "True where x is infinite.", "[1, float('inf'), float('nan')] -> [False, True, False]")
_test("isfinite", torch.isfinite, "True where x is neither infinite nor not a number.", "[1, float('inf'), float('nan')] -> [ True, False, False]")
_test("isposinf", torch.isposinf, "True where x is positive infinity.", "[float('-inf'), float('inf')] -> [False, True]")
_test("isneginf", torch.isneginf, "True where x is negative infinity.", "[float('-inf'), float('inf')] -> [ True, False]")


@op("_npi_bitwise_not", same_shape=True, no_gradient=True)
def bitwise_not(x):
    """All bits inverted; of booleans the opposite.

    Raises
    ------
    MXNetError
        For floating-point numbers.

    Example
    -------
    >>> mx.np.bitwise_not(mx.np.array([0, 5], dtype='int32'))
    array([-1, -6], dtype=int32)
    """
    if x.is_meta:
        return torch.empty_like(x)  # shapes are inferred before types are known
    if x.is_floating_point():
        raise MXNetError(f"bitwise_not: this operation only supports integer and boolean types, not {name_of(x.dtype)}")
    return torch.bitwise_not(x) if x.dtype not in unsigned.WIDER else unsigned.by_bits(torch.bitwise_not, x)


@op("_npi_around", same_shape=True)
def around(x, *, decimals: int = 0):
    """Rounded to `decimals` places after the point; halves go to the even neighbour. No gradient flows through it.

    Example
    -------
    >>> mx.np.around(mx.np.array([0.5, 1.5, 2.25]))
    array([0., 2., 2.])
    >>> mx.np.around(mx.np.array([0.5, 1.5, 2.25]), 1)
    array([0.5, 1.5, 2.2])
    """
    if not x.is_floating_point():
        return x.clone() if decimals >= 0 else torch.round(x.double(), decimals=decimals).to(x.dtype)
    return torch.round(x, decimals=decimals)


@op("_npi_nan_to_num", same_shape=True)
def nan_to_num(data, *, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None):
    """Finite numbers in place of nan and the infinities: by default 0 and the largest numbers of the type.

    Example
    -------
    >>> mx.np.nan_to_num(mx.np.array([1, float('nan'), float('inf')]), posinf=9)
    array([1., 0., 9.])
    """
    return torch.nan_to_num(data, nan, posinf, neginf) if data.is_floating_point() else data.clone()


alias("_npi_copyto", of="_copyto")


@op("_np_copy", same_shape=True)
def copy(a):
    """A copy of `a`, in memory of its own; the gradient passes through it unchanged.

    Example
    -------
    >>> x = mx.np.array([1, 2])
    >>> y = mx.np.copy(x)
    >>> y[0] = 5
    >>> x
    array([1., 2.])
    """
    return a.clone()


@op("_npx_relu", same_shape=True, is_relu=True)
def relu(data):
    """max(x, 0), element by element.

    Example
    -------
    >>> mx.npx.relu(mx.np.array([-1, 0, 2]))
    array([0., 0., 2.])
    """
    return torch.relu(data)


_sigmoid = get("sigmoid").fn


@op("_npx_sigmoid", same_shape=True)
def sigmoid(data):
    """1 / (1 + exp(-x)), element by element.

    Example
    -------
    >>> mx.npx.sigmoid(mx.np.array([0, 100]))
    array([0.5, 1. ])
    """
    return _sigmoid(data)


@op("_npx_constraint_check", no_gradient=True)
def constraint_check(input, *, msg: str = "Constraint violated."):
    """True as a boolean scalar if all elements are; otherwise an error with the text `msg`.

    Example
    -------
    >>> mx.npx.constraint_check(mx.np.array([1, 2]) > 0, 'must be positive')
    array(True)
    """
    if input.is_meta:
        return input.new_empty((), dtype=torch.bool)  # shapes are inferred before types are known
    if input.dtype is not torch.bool:
        raise MXNetError(f"constraint_check: `input` must be boolean, received {name_of(input.dtype)}")
    out = input.all()
    if not out.item():
        raise InvalidValueError(msg)
    return out


# -- two arrays ----------------------------------------------------------------------------------------------------------

def _binary(name, function, doc, sample, inputs=("lhs", "rhs"), of_unsigned=None, **traits):
    """Register ``_npi_<name>`` over two arrays that broadcast.

    `sample` is the example of the docstring, see `with_sample`. Unlike types are converted to their common type. `of_unsigned` computes what
    torch has no kernel for.
    """
    full = f"_npi_{name}"

    def compute(a, b):
        if a.dtype is not b.dtype:
            a, b = promoted_pair(full, a, b)
        try:
            return function(a, b)
        except RuntimeError:
            if of_unsigned is None or a.dtype not in unsigned.WIDER:
                raise
            return of_unsigned(a, b)

    if inputs == ("lhs", "rhs"):
        def fn(lhs, rhs):
            return compute(lhs, rhs)
    else:
        def fn(x1, x2):
            return compute(x1, x2)
    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = with_sample(f"{doc} The arrays broadcast.", f"mx.np.{name}", sample)
    operator = op(full, complete_rule=True, **traits)(fn)
    operator.shape_rule(broadcast_rule)
    operator.dtype_rule(promoted)
    return operator


class _Angle(torch.autograd.Function):
    """The angle of points, whose gradient does not square their coordinates."""

    @staticmethod
    def forward(ctx, y, x):
        ctx.save_for_backward(y, x)
        return torch.atan2(y, x)

    @staticmethod
    def backward(ctx, dout):
        y, x = ctx.saved_tensors
        distance = torch.hypot(y, x)
        distance = distance.masked_fill(distance == 0, 1)  # no gradient in the origin
        dout = dout / distance
        return dout * (x / distance), dout * (-y / distance)


def angle(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """``arctan2(y, x)``."""
    if torch.is_grad_enabled() and (y.requires_grad or x.requires_grad) and not torch.compiler.is_compiling():
        return _Angle.apply(*torch.broadcast_tensors(y, x))
    return torch.atan2(y, x)


def _bits(function):
    return lambda a, b: unsigned.by_bits(function, a, b)


def _subtract(a, b):
    if a.dtype is torch.bool:
        raise MXNetError(f"_npi_subtract: not supported for boolean arrays, received {name_of(a.dtype)} and {name_of(b.dtype)}; use bitwise_xor "
                         "or logical_not")
    return torch.sub(a, b)


_legacy_modulo, _legacy_power = get("broadcast_mod").fn, get("broadcast_power").fn


def _modulo(a, b):
    # MXNet's gradient of the remainder of integers is 0.
    return _legacy_modulo(a, b) if a.is_floating_point() else _legacy_modulo(a.detach(), b.detach())


def _power(a, b):
    if a.dtype is torch.bool:
        return torch.logical_or(a, ~b)
    if a.is_complex():
        return torch.pow(a, b)
    return _legacy_power(a, b) if a.dtype not in unsigned.WIDER else unsigned.power(a, b)


_binary("add", torch.add, "The sum; of booleans the logical OR.",
        "[[1], [2]] and [10, 20] -> [[11., 21.], [12., 22.]]", of_unsigned=_bits(torch.add), arithmetic="add")
_binary("subtract", _subtract, "The difference.", "[[1], [2]] and [10, 20] -> [[ -9., -19.], [ -8., -18.]]",
        of_unsigned=_bits(torch.sub))
_binary("multiply", torch.mul, "The product; of booleans the logical AND.", "[[1], [2]] and [10, 20] -> [[10., 20.], [20., 40.]]",
        of_unsigned=_bits(torch.mul))
_binary("mod", _modulo, "The remainder of the division, with the sign of the divisor; 0 for a divisor of 0.",
        "[7, -7, 7] and [3, 3, 0] -> [1., 2., 0.]", of_unsigned=unsigned.remainder)
_binary("power", _power, "The first array to the power of the second.", "[2, 3] and [[1], [2]] -> [[2., 3.], [4., 9.]]")
_binary("copysign", lambda a, b: torch.copysign(a, b).to(a.dtype), "The size of the first array with the sign of the second.",
        "[1, -2] and [-5, 5] -> [-1., 2.]")
_binary("ldexp", lambda a, b: (a * torch.exp2(b)).to(a.dtype), "The first array times 2 to the power of the second.",
        "[3, 5] and [1, 2] -> [ 6., 20.]")
_binary("arctan2", angle, "The angle of the point (x2, x1) with the first axis, in radians.",
        "[1, -1] and [0, -1] -> [ 1.570..., -2.356...]", inputs=("x1", "x2"))
_binary("hypot", get("broadcast_hypot").fn, "sqrt(x1**2 + x2**2).", "[3, 5] and [4, 12] -> [ 5., 13.]", inputs=("x1", "x2"))


@op("_npi_true_divide", complete_rule=True)
def true_divide(lhs, rhs):
    """The quotient; of integers in float32. The arrays broadcast.

    Example
    -------
    >>> mx.np.true_divide(mx.np.array([1, 2], dtype='int32'), mx.np.array([[2], [4]], dtype='int32'))
    array([[0.5 , 1.  ],
           [0.25, 0.5 ]])
    """
    a, b = lhs.dtype, rhs.dtype
    if a is not b:
        lhs, rhs = promoted_pair("_npi_true_divide", lhs, rhs)
    if not lhs.is_floating_point() and not lhs.is_complex():
        return torch.div(lhs.float(), rhs.float())
    return torch.div(lhs, rhs)


true_divide.shape_rule(broadcast_rule)


@true_divide.dtype_rule
def _(in_types, out_types):
    ins, outs = promoted(in_types, out_types)
    return ins, [torch.float32 if outs[0] is not None and not outs[0].is_floating_point else outs[0]]


def _integer_pair(name, function, doc, result):
    def fn(lhs, rhs):
        if lhs.is_meta:  # shapes are inferred before types are known
            return lhs.new_empty(torch.broadcast_shapes(lhs.shape, rhs.shape))
        for x in (lhs, rhs):
            if x.is_floating_point():
                raise MXNetError(f"_npi_{name}: integers or booleans expected, received {name_of(x.dtype)}")
        if lhs.dtype is not rhs.dtype:
            lhs, rhs = promoted_pair(f"_npi_{name}", lhs, rhs)
        return function(lhs, rhs)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = with_example(f"{doc} The arrays broadcast.", f"mx.np.{name}(mx.np.array([12, 10], dtype='int32'), "
                              f"mx.np.array([10, 6], dtype='int32')) -> array({result}, dtype=int32)")
    operator = op(f"_npi_{name}", no_gradient=True, complete_rule="shape")(fn)
    operator.shape_rule(broadcast_rule)
    operator.dtype_rule(promoted)


def lcm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`torch.lcm`, which divides the smallest integer by -1 where that is its greatest common divisor, and so ends the process."""
    if a.dtype is torch.bool:
        return torch.logical_and(a, b)
    if a.dtype in unsigned.WIDER:
        return unsigned.by_bits(torch.mul, unsigned.floor_divide(a, unsigned.gcd(a, b)), b)
    common = torch.gcd(a, b).abs()
    return (torch.div(a, common.masked_fill(common == 0, 1), rounding_mode="trunc") * b).abs()


_integer_pair("lcm", lcm, "The least common multiple.", "[60, 30]")
_integer_pair("bitwise_and", torch.bitwise_and, "The bitwise AND.", "[8, 2]")
_integer_pair("bitwise_or", torch.bitwise_or, "The bitwise OR.", "[14, 14]")
_integer_pair("bitwise_xor", torch.bitwise_xor, "The bitwise XOR.", "[ 6, 12]")


def _comparison(name, function, doc, result):
    def fn(lhs, rhs):
        if lhs.dtype is not rhs.dtype:
            lhs, rhs = promoted_pair(f"_npi_{name}", lhs, rhs)
        try:
            return function(lhs, rhs)
        except RuntimeError:
            if lhs.dtype not in unsigned.WIDER:
                raise
            return unsigned.by_order(function, lhs, rhs, indices=True)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = with_sample(f"{doc} The arrays broadcast.", f"mx.np.{name}", f"[1, 2] and [[1], [2]] -> {result}")
    operator = op(f"_npi_{name}", complete_rule="shape")(fn)
    operator.shape_rule(broadcast_rule)
    operator.dtype_rule(result_is(torch.bool))


_comparison("equal", torch.eq, "True where both are equal.", "[[ True, False], [False, True]]")
_comparison("not_equal", torch.ne, "True where they differ.", "[[False, True], [ True, False]]")
_comparison("greater", torch.gt, "True where the first is larger.", "[[False, True], [False, False]]")
_comparison("greater_equal", torch.ge, "True where the first is not smaller.", "[[ True, True], [False, True]]")
_comparison("less", torch.lt, "True where the first is smaller.", "[[False, False], [ True, False]]")
_comparison("less_equal", torch.le, "True where the first is not larger.", "[[ True, False], [ True, True]]")
