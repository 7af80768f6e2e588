import cmath

import numpy as onp
import pytest

import mxnet as mx

xp = mx.np.array_api
REAL = [-2.5, -0.0, 0.0, 0.3, 1.0, 7.5, onp.inf, -onp.inf, onp.nan]
NAMES = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atanh": "arctanh", "bitwise_invert": "invert",
         "atan2": "arctan2", "pow": "power", "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift", "round": "rint"}


@pytest.mark.parametrize("name", """abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf isnan log log1p log2 log10
                                    negative positive
                                    reciprocal round sign signbit sin sinh sqrt square tan tanh trunc""".split())
def test_functions_of_one_array_as_in_numpy(name):
    x = onp.array(REAL)
    with onp.errstate(all="ignore"):
        expected = getattr(onp, NAMES.get(name, name))(x)
    onp.testing.assert_allclose(getattr(xp, name)(xp.asarray(x)).asnumpy(), expected, rtol=1e-14)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow", "atan2", "copysign", "hypot",
                                  "logaddexp", "nextafter", "maximum", "minimum", "equal", "less", "greater_equal"])
def test_functions_of_two_arrays_as_in_numpy(name):
    a, b = (x.ravel() for x in onp.meshgrid(REAL, REAL))
    with onp.errstate(all="ignore"):
        expected = getattr(onp, NAMES.get(name, name))(a, b)
        if name == "floor_divide":  # of infinite numbers NumPy has none, the standard the quotient
            expected = onp.where(onp.isinf(a) | onp.isinf(b), onp.floor(a / b), expected)
    found = getattr(xp, name)(xp.asarray(a), xp.asarray(b)).asnumpy()
    onp.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("name", """add subtract multiply floor_divide remainder maximum minimum equal not_equal less less_equal greater greater_equal
                                    bitwise_and bitwise_or bitwise_xor""".split())
def test_integers_as_in_numpy(name, dtype):
    info = onp.iinfo(dtype)
    values = onp.array([info.min, info.min + 1, 1, 2, 7, info.max // 2, info.max - 1, info.max], dtype)
    a, b = (x.ravel() for x in onp.meshgrid(values, values))
    a, b = a[b != 0], b[b != 0]
    with onp.errstate(all="ignore"):
        expected = getattr(onp, name)(a, b)
    found = getattr(xp, name)(xp.asarray(a), xp.asarray(b))
    assert found.dtype == expected.dtype and found.tolist() == expected.tolist()


def test_powers_and_shifts_of_integers_are_exact():
    assert xp.pow(xp.asarray(3), 39).item() == 3**39 and xp.pow(xp.asarray([3], dtype=xp.uint64), 40).tolist() == [3**40]
    assert xp.bitwise_left_shift(xp.asarray([1], dtype=xp.uint64), 63).tolist() == [2**63]
    assert xp.bitwise_right_shift(xp.asarray([2**63], dtype=xp.uint64), 62).tolist() == [2]
    assert xp.bitwise_invert(xp.asarray([0], dtype=xp.uint32)).tolist() == [2**32 - 1]
    assert xp.negative(xp.asarray([1], dtype=xp.uint16)).tolist() == [65535]


def test_complex_numbers():
    z = [1 + 2j, -0.5 + 0.25j, 1e-9 - 1e-9j]
    x = xp.asarray(z, dtype=xp.complex128)
    for name in ("exp", "log", "sqrt", "sin", "tanh"):
        onp.testing.assert_allclose(getattr(xp, name)(x).asnumpy(), [getattr(cmath, name)(v) for v in z], rtol=1e-12)
    onp.testing.assert_allclose(xp.expm1(x).asnumpy()[2], 1e-9 - 1e-9j, rtol=1e-8)
    onp.testing.assert_allclose(xp.log1p(x).asnumpy()[2], 1e-9 - 1e-9j, rtol=1e-8)
    assert xp.conj(x).tolist()[0] == 1 - 2j and xp.real(x).tolist()[0] == 1 and xp.imag(x).tolist()[0] == 2 and xp.real(x).dtype == xp.float64
    onp.testing.assert_allclose(xp.sign(x).asnumpy(), onp.array(z) / onp.abs(z))
    assert onp.signbit(xp.acos(xp.asarray(complex(-0.0, 0.0))).asnumpy().imag)
    with pytest.raises(TypeError, match="less: real numbers expected, received complex128"):
        xp.less(x, x)


def test_types_mix():
    assert xp.add(xp.asarray([200], dtype=xp.uint8), xp.asarray([-1], dtype=xp.int8)).tolist() == [199]
    assert xp.less(xp.asarray([1], dtype=xp.int32), xp.asarray([2], dtype=xp.int64)).tolist() == [True]


def test_limits():
    x = xp.asarray([1, 5, 9])
    assert xp.clip(x, 2, 7).tolist() == [2, 5, 7] and xp.clip(x, max=xp.asarray([0, 9, 9])).tolist() == [0, 5, 9] and xp.clip(x).tolist() == [1, 5, 9]
    assert xp.clip(xp.asarray([250], dtype=xp.uint8), 0, 1000).tolist() == [250] and xp.clip(x, 2, 7).dtype == xp.int64


def test_logic():
    a, b = xp.asarray([True, True, False]), xp.asarray([True, False, False])
    assert xp.logical_and(a, b).tolist() == [True, False, False] and xp.logical_xor(a, b).tolist() == [False, True, False]
    assert xp.logical_or(a, False).tolist() == [True, True, False] and xp.logical_not(a).tolist() == [False, False, True]
