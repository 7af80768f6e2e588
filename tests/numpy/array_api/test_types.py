import pytest

import mxnet as mx

xp = mx.np.array_api


def test_limits():
    assert (xp.finfo(xp.float32).eps, xp.finfo(xp.complex128).bits, xp.finfo(xp.complex64).dtype) == (2**-23, 64, xp.float32)
    assert (xp.iinfo(xp.uint64).max, xp.iinfo(xp.ones(1, dtype=xp.int8)).min) == (2**64 - 1, -128)
    with pytest.raises(TypeError, match="finfo: a floating-point type expected, received .*; use iinfo for integers"):
        xp.finfo(xp.int32)
    with pytest.raises(TypeError, match="iinfo: a type of integers expected"):
        xp.iinfo(xp.float32)


def test_kinds():
    assert xp.isdtype(xp.uint8, "integral") and xp.isdtype(xp.float64, ("bool", "real floating")) and xp.isdtype(xp.int8, xp.int8)
    assert not xp.isdtype(xp.bool, "numeric") and not xp.isdtype(xp.complex64, "real floating")
    with pytest.raises(ValueError, match="isdtype: kind must be a type or one of 'bool', .*received 'number'"):
        xp.isdtype(xp.int8, "number")


def test_common_types():
    assert xp.result_type(xp.uint8, xp.int8) == xp.int16 and xp.result_type(xp.ones(1), 1j) == xp.complex64
    assert xp.result_type(xp.float32, xp.complex128, 1) == xp.complex128
    with pytest.raises(mx.MXNetError, match="uint64 and int8 do not mix"):
        xp.result_type(xp.uint64, xp.int8)
    with pytest.raises(TypeError, match="result_type: at least one array or type expected"):
        xp.result_type(1, 2.0)


def test_what_can_be_cast():
    assert xp.can_cast(xp.int8, xp.int16) and xp.can_cast(xp.bool, xp.float32) and xp.can_cast(xp.float32, xp.complex64)
    assert not xp.can_cast(xp.int16, xp.int8) and not xp.can_cast(xp.float32, xp.int64) and not xp.can_cast(xp.int8, xp.uint8)


def test_conversions():
    x = xp.asarray([1.5, -2.5])
    assert xp.astype(x, xp.int32).tolist() == [1, -2] and xp.astype(x, xp.float32, copy=False) is x and xp.astype(x, xp.float32) is not x
    with pytest.raises(TypeError, match=r"astype: complex numbers do not become .*; take real\(x\) or imag\(x\)"):
        xp.astype(xp.asarray([1j]), xp.float32)


def test_the_description():
    info = xp.__array_namespace_info__()
    assert info.default_dtypes() == {"real floating": xp.float32, "complex floating": xp.complex64, "integral": xp.int64, "indexing": xp.int64}
    assert list(info.dtypes(kind="signed integer")) == ["int8", "int16", "int32", "int64"] and len(info.dtypes()) == 13
    assert mx.cpu() in info.devices() and info.default_device() == mx.cpu() and info.capabilities()["boolean indexing"]
