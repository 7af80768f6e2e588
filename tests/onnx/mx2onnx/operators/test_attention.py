import numpy as np
import pytest

import mxnet as mx
from onnx_checks import check

X, Y = mx.sym.var("x"), mx.sym.var("y")
RNG = np.random.default_rng(1)


def real(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def test_attention_over_itself_at_any_length_and_batch():
    scores = mx.sym.contrib.interleaved_matmul_selfatt_qk(X, heads=2)
    out = mx.sym.contrib.interleaved_matmul_selfatt_valatt(X, mx.sym.softmax(scores), heads=2)
    check(mx.sym.Group([scores, out]), {"x": real(5, 3, 24)}, varying=[("length", "batch", 24)], others=[{"x": real(7, 2, 24)}], rtol=1e-4, atol=1e-5)


def test_attention_of_a_decoder():
    scores = mx.sym.contrib.interleaved_matmul_encdec_qk(X, Y, heads=2)
    out = mx.sym.contrib.interleaved_matmul_encdec_valatt(Y, mx.sym.softmax(scores), heads=2)
    check(mx.sym.Group([scores, out]), {"x": real(4, 3, 8), "y": real(6, 3, 16)}, rtol=1e-4, atol=1e-5)


def test_division_by_the_root_of_the_width():
    check(mx.sym.contrib.div_sqrt_dim(X), {"x": real(2, 9)})
    with pytest.raises(mx.MXNetError, match="_contrib_div_sqrt_dim 'd' .*: the size of the last axis must not vary"):
        check(mx.sym.contrib.div_sqrt_dim(X, name="d"), {"x": real(2, 9)}, varying=[(None, None)])
