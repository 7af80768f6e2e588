"""Element-wise functions of one and of two arrays."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as onp

from ... import util
from ...ops.docstrings import with_sample
from ..frontend import NUMBERS, TABLE, function

if TYPE_CHECKING:
    from ..frontend import Array

# name: (operator, NumPy's function for a plain number)
UNARY = {name: (f"_npi_{name}", getattr(onp, name)) for name in
         """abs absolute negative sign rint ceil floor trunc fix square sqrt cbrt reciprocal exp expm1 log log2 log10 log1p sin cos tan arcsin
            arccos arctan sinh cosh tanh arcsinh arccosh arctanh degrees radians logical_not isnan isinf isfinite isposinf isneginf
            bitwise_not""".split()}
UNARY.update(fabs=("_npi_abs", onp.abs), positive=("_np_copy", onp.positive), invert=("_npi_bitwise_not", onp.bitwise_not),
             rad2deg=("_npi_degrees", onp.rad2deg), deg2rad=("_npi_radians", onp.deg2rad))
# Names of the array API standard, which MXNet 2.0 took over.
UNARY.update({name: UNARY[other] for name, other in {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atanh": "arctanh",
    "bitwise_invert": "bitwise_not"}.items()})
# name: (operator for two arrays, for array and number, for number and array (None: the same), NumPy's function for two numbers)
BINARY = {
    "add": ("_npi_add", "_npi_add_scalar", None, onp.add),
    "subtract": ("_npi_subtract", "_npi_subtract_scalar", "_npi_rsubtract_scalar", onp.subtract),
    "multiply": ("_npi_multiply", "_npi_multiply_scalar", None, onp.multiply),
    "divide": ("_npi_true_divide", "_npi_true_divide_scalar", "_npi_rtrue_divide_scalar", onp.divide),
    "true_divide": ("_npi_true_divide", "_npi_true_divide_scalar", "_npi_rtrue_divide_scalar", onp.divide),
    "mod": ("_npi_mod", "_npi_mod_scalar", "_npi_rmod_scalar", onp.mod),
    "remainder": ("_npi_mod", "_npi_mod_scalar", "_npi_rmod_scalar", onp.mod),
    "power": ("_npi_power", "_npi_power_scalar", "_npi_rpower_scalar", onp.power),
    "floor_divide": ("_npi_floor_divide", "_npi_floor_divide_scalar", "_npi_rfloor_divide_scalar", onp.floor_divide),
    "fmod": ("_npi_fmod", "_npi_fmod_scalar", "_npi_rfmod_scalar", onp.fmod),
    "fmax": ("_npi_fmax", "_npi_fmax_scalar", None, onp.fmax),
    "fmin": ("_npi_fmin", "_npi_fmin_scalar", None, onp.fmin),
    "logaddexp": ("_npi_logaddexp", "_npi_logaddexp_scalar", None, onp.logaddexp),
    "logical_and": ("_npi_logical_and", "_npi_logical_and_scalar", None, onp.logical_and),
    "logical_or": ("_npi_logical_or", "_npi_logical_or_scalar", None, onp.logical_or),
    "logical_xor": ("_npi_logical_xor", "_npi_logical_xor_scalar", None, onp.logical_xor),
    "gcd": ("_npi_gcd", "_npi_gcd_scalar", None, onp.gcd),
    "bitwise_left_shift": ("_npi_bitwise_left_shift", "_npi_bitwise_left_shift_scalar", "_npi_rbitwise_left_shift_scalar", onp.left_shift),
    "bitwise_right_shift": ("_npi_bitwise_right_shift", "_npi_bitwise_right_shift_scalar", "_npi_rbitwise_right_shift_scalar", onp.right_shift),
    "lcm": ("_npi_lcm", "_npi_lcm_scalar", None, onp.lcm),
    "maximum": ("_npi_maximum", "_npi_maximum_scalar", None, onp.maximum),
    "minimum": ("_npi_minimum", "_npi_minimum_scalar", None, onp.minimum),
    "copysign": ("_npi_copysign", "_npi_copysign_scalar", "_npi_rcopysign_scalar", onp.copysign),
    "arctan2": ("_npi_arctan2", "_npi_arctan2_scalar", "_npi_rarctan2_scalar", onp.arctan2),
    "hypot": ("_npi_hypot", "_npi_hypot_scalar", None, onp.hypot),
    "ldexp": ("_npi_ldexp", "_npi_ldexp_scalar", "_npi_rldexp_scalar", onp.ldexp),
    "bitwise_and": ("_npi_bitwise_and", "_npi_bitwise_and_scalar", None, onp.bitwise_and),
    "bitwise_or": ("_npi_bitwise_or", "_npi_bitwise_or_scalar", None, onp.bitwise_or),
    "bitwise_xor": ("_npi_bitwise_xor", "_npi_bitwise_xor_scalar", None, onp.bitwise_xor),
    "equal": ("_npi_equal", "_npi_equal_scalar", None, onp.equal),
    "not_equal": ("_npi_not_equal", "_npi_not_equal_scalar", None, onp.not_equal),
    "greater": ("_npi_greater", "_npi_greater_scalar", "_npi_less_scalar", onp.greater),
    "less": ("_npi_less", "_npi_less_scalar", "_npi_greater_scalar", onp.less),
    "greater_equal": ("_npi_greater_equal", "_npi_greater_equal_scalar", "_npi_less_equal_scalar", onp.greater_equal),
    "less_equal": ("_npi_less_equal", "_npi_less_equal_scalar", "_npi_greater_equal_scalar", onp.less_equal),
}

BINARY.update(pow=BINARY["power"], atan2=BINARY["arctan2"])

WITHOUT_OPTIONS = {"true_divide", "equal", "not_equal", "greater", "less", "greater_equal", "less_equal", "bitwise_left_shift", "bitwise_right_shift"}
# Functions whose results for integers and booleans are floating-point numbers after `set_version('2.0')`; of the others, those for booleans alone.
IN_FLOATS = set("""sqrt cbrt exp expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh degrees radians
                rad2deg deg2rad acos acosh asin asinh atan atanh rint fix""".split())
TRUTHS_IN_FLOATS = {"ceil", "floor", "trunc"}
_TESTS = {"logical_not", "isnan", "isinf", "isfinite", "isposinf", "isneginf"}


def unary(F: Any, name: str, x: Any, out: Array | None = None, kwargs: Any = None) -> Any:
    """Return an element-wise function of an array, a Symbol or a number."""
    if kwargs:
        util.check_ufunc_arguments(name, kwargs)
    operator, plain = UNARY[name]
    if F.is_array(x):
        if name in _TESTS and out is not None and out.dtype != onp.bool_:
            raise TypeError(f"{name}: `out` must be a boolean array, received {out.dtype}")
        return F.call(operator, x, out=out)
    if isinstance(x, NUMBERS):
        return plain(x)
    raise TypeError(f"type {type(x)} not supported")


def binary(F: Any, name: str, x1: Any, x2: Any, out: Array | None = None, kwargs: Any = None) -> Any:
    """Return an element-wise function of two arrays, Symbols or numbers."""
    if kwargs:
        util.check_ufunc_arguments(name, kwargs)
    pair, right, left, plain = BINARY[name]
    if isinstance(x1, NUMBERS):
        if isinstance(x2, NUMBERS):
            if not F.is_array(out):
                return plain(x1, x2) if out is None else plain(x1, x2, out=out)
            out[...] = plain(x1, x2)
            return out
        if not F.is_array(x2):
            raise TypeError(f"type {type(x2)} not supported")
        return F.call_scalar(left or right, x2, x1, out)
    if isinstance(x2, NUMBERS):
        if not F.is_array(x1):
            raise TypeError(f"type {type(x1)} not supported")
        return F.call_scalar(right, x1, x2, out)
    if F.is_array(x1) and F.is_array(x2):
        return F.call(pair, x1, x2, out=out)
    raise TypeError(f"type {type(x1 if F.is_array(x2) else x2)} not supported")


def _one(name):
    def fn(F, x, out=None, **kwargs):
        return unary(F, name, x, out, kwargs)

    fn.__name__, fn.operator = name, UNARY[name][0].removeprefix("_npi_").removeprefix("_np_")
    fn.__doc__ = f"NumPy's `{name}` of each element; integers keep their type. `out` receives the result."
    return fn


def _two(name):
    if name in WITHOUT_OPTIONS:
        def fn(F, x1, x2, out=None):
            return binary(F, name, x1, x2, out)
    else:
        def fn(F, x1, x2, out=None, **kwargs):
            return binary(F, name, x1, x2, out, kwargs)
    fn.__name__, fn.operator = name, BINARY[name][0].removeprefix("_npi_")
    fn.__doc__ = f"NumPy's `{name}` of each pair of elements of two arrays or numbers, which broadcast. `out` receives the result."
    return fn


for _name in UNARY:
    TABLE.setdefault("", {})[_name] = _one(_name)
for _name in BINARY:
    TABLE[""][_name] = _two(_name)
for _name, _result in (("maximum", "[[2., 5.], [9., 9.]]"), ("minimum", "[[1., 2.], [1., 5.]]")):  # their operator is that of ``mx.nd``
    TABLE[""][_name].__doc__ = with_sample(TABLE[""][_name].__doc__, f"mx.np.{_name}", f"[1, 5] and [[2], [9]] -> {_result}")


@function("", "around", "round", "round_")
def around(F: Any, x: Any, decimals: int = 0, out: Array | None = None, **kwargs: Any) -> Array:
    """Rounded to `decimals` places after the point."""
    if isinstance(x, NUMBERS):
        return onp.around(x, decimals, **kwargs)
    if not F.is_array(x):
        raise TypeError(f"type {type(x)} not supported")
    return F.call("_npi_around", x, decimals=decimals, out=out)


@function()
def nan_to_num(F: Any, x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None, **kwargs: Any) -> Array:
    """Finite numbers in place of nan and the infinities; in place if `copy` is False."""
    if isinstance(x, NUMBERS):
        return onp.nan_to_num(x, copy, nan, posinf, neginf)
    if not F.is_array(x):
        raise TypeError(f"type {type(x)} not supported")
    if copy is None:
        raise ValueError("nan_to_num: `copy` must be True or False, received None")
    return F.call("_npi_nan_to_num", x, copy=copy, nan=nan, posinf=posinf, neginf=neginf, out=None if copy else x)


@function()
def clip(F: Any, a: Any, a_min: Any, a_max: Any, out: Array | None = None) -> Array:
    """Values limited to the range from `a_min` to `a_max`; one of them may be None.

    Raises
    ------
    ValueError
        If both are None.

    Example
    -------
    >>> mx.np.clip(mx.np.array([-1, 0.5, 3]), 0, 1)
    array([0. , 0.5, 1. ])
    """
    if a_min is None and a_max is None:
        raise ValueError("clip: a_min or a_max expected, received neither")
    if isinstance(a, NUMBERS):
        return onp.clip(a, a_min, a_max)
    return F.call("_npi_clip", a, a_min=float("-inf") if a_min is None else a_min, a_max=float("inf") if a_max is None else a_max, out=out)


@function()
def matmul(F: Any, a: Any, b: Any, out: Array | None = None, **kwargs: Any) -> Array:
    """The matrix products; vectors count as a row or a column, and batches broadcast."""
    if kwargs:
        util.check_ufunc_arguments("matmul", kwargs)
    return F.call("_npi_matmul", a, b, out=out)


@function()
def copy(F: Any, a: Any, out: Array | None = None) -> Array:
    """A copy."""
    return F.call("_np_copy", a, out=out)


