"""Operators between real numbers and quantized ones; values are those of MXNet 1.9.1 on the CPU unless a test says otherwise."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import nd, sym
from ops.quantization.values import Q, U, X, check, int8, one, uint8

C = nd.contrib


def test_quantize():
    x = nd.array(X)
    check(C.quantize(x, one(-1.5), one(2), out_type="int8"), [[-95, 16, 19], [127, -1, 49]], "int8", -2, 2)
    check(C.quantize(x, one(-1.5), one(2)), [[0, 32, 38], [255, 0, 98]], "uint8", -1.5, 2)


def test_quantize_v2():
    x = nd.array(X)
    check(C.quantize_v2(x), [[-96, 16, 19], [127, -1, 49]], "int8", -2, 2)
    check(C.quantize_v2(x.abs(), out_type="uint8"), [[192, 32, 38], [255, 1, 98]], "uint8", 0.01, 2)
    check(C.quantize_v2(x, out_type="auto", min_calib_range=-1, max_calib_range=1), [[-128, 32, 38], [127, -1, 98]], "int8", -1, 1)
    check(C.quantize_v2(x.abs(), out_type="auto", min_calib_range=0, max_calib_range=1), [[255, 64, 77], [255, 3, 197]], "uint8", 0, 1)
    check(C.quantize_v2(x.abs(), out_type="auto"), [[96, 16, 19], [127, 1, 49]], "int8", -2, 2)
    check(C.quantize_v2(int8(Q)), Q, "int8", -127.5, 127.5)


def test_quantize_asym():
    """MXNet 1.9.1 crashes here; the values are those of its formula."""
    check(C.quantize_asym(nd.array(X)), [[0, 127, 131], [255, 109, 165]], "uint8", 72.857147, 109.28571)
    check(C.quantize_asym(nd.array(X), min_calib_range=-2, max_calib_range=2), [[32, 143, 147], [255, 127, 177]], "uint8", 63.75, 127.5)
    check(C.quantize_asym(int8(Q)), [[1, 133, 218], [255, 128, 125]], "uint8", 1, 128)


@pytest.mark.parametrize("value, found", [(0, 255), (5, 255), (-5, 0)])
def test_asymmetric_range_of_one_number(value, found):
    """It reaches to 0; MXNet divides by zero."""
    q, scale, shift = C.quantize_asym(nd.array([value, value]))
    assert q.asnumpy().tolist() == [found, found] and ((found - shift) / scale).asscalar() == value


def test_tiny_numbers_have_a_range():
    """128 / 1e-42 is more than a float32 holds."""
    q, low, high = C.quantize_v2(nd.array([1e-42, 0, -1e-42]))
    assert q.asnumpy()[1] == 0 and abs(C.dequantize(q, low, high).asnumpy()).max() <= 1e-42


def test_dequantize():
    check(C.dequantize(int8(Q), one(-1.5), one(2)), [[-1.9921563, 0.07843138, 1.4117647], [1.9921563, 0, -0.04705883]], "float32")
    check(C.dequantize(uint8(U), one(0), one(2)), [[0, 0.03913894, 0.704501], [1.9960861, 1.0019569, 0.02348337]], "float32")


def test_requantize():
    x = nd.array([[-1270000, 500000, 900000], [12700000, 0, -3]], dtype="int32")
    check(C.requantize(x, one(-10), one(10)), [[-13, 5, 9], [127, 0, 0]], "int8", -0.05913898, 0.05913898)
    check(C.requantize(x, one(-10), one(10), min_calib_range=-.03, max_calib_range=.05), [[-15, 6, 11], [127, 0, 0]], "int8", -0.05, 0.05)
    check(C.requantize(x, one(-10), one(10), min_calib_range=0, max_calib_range=.05, out_type="auto"), [[0, 12, 21], [255, 0, 0]], "uint8", 0, 0.05)


def test_symbols():
    x = sym.var("x")
    chain = sym.contrib.dequantize(*sym.contrib.quantize_v2(x))
    np.testing.assert_allclose(chain.eval(x=nd.array(X))[0].asnumpy(), X, atol=2 / 127)
    assert chain.infer_type(x="float32")[1] == [np.float32]


@pytest.mark.parametrize("call, message", [
    (lambda: C.dequantize(nd.array(X), one(-1), one(1)), "_contrib_dequantize: `data` must be int8 or uint8, received float32"),
    (lambda: C.quantize(nd.array(X, dtype="float64"), one(-1), one(1)), "_contrib_quantize: `data` must be float32, received float64"),
    (lambda: C.quantize_v2(nd.array(X, dtype="int32")), "_contrib_quantize_v2: `data` must be float32 or int8 or uint8, received int32"),
    (lambda: C.requantize(int8(Q), one(-1), one(1)), "_contrib_requantize: `data` must be int32, received int8"),
])
def test_inputs_that_do_not_fit(call, message):
    with pytest.raises(mx.base.MXNetError, match=message):
        call()


def test_zeros_alone_have_no_range():
    """They are 0, and come back as such, where MXNet divides by zero. What is no number shows."""
    zeros = nd.zeros((2,))
    for q, low, high in (C.quantize_v2(zeros), C.quantize_v2(zeros, out_type="uint8"), C.quantize(zeros, one(0), one(0), out_type="int8"),
                         C.requantize(nd.zeros((2,), dtype="int32"), one(-1), one(1))):
        assert q.asnumpy().tolist() == [0, 0] and C.dequantize(q, low, high).asnumpy().tolist() == [0, 0]
    assert np.isnan(C.dequantize(*C.quantize_v2(nd.array([1, float("nan")]))).asnumpy()).all()
