"""Interleaved attention: inference and errors. Values: `test_against_oracle`."""
import numpy as np
import pytest
import torch

from mxnet import MXNetError, autograd, nd
from mxnet.ops import get


def infer(name, *shapes, heads=2):
    return get("_contrib_interleaved_matmul_" + name).shape_inference(list(shapes), [None], heads=heads)


def test_inference():
    assert infer("selfatt_qk", (5, 3, 24)) == ([(5, 3, 24)], [(6, 5, 5)])
    assert infer("selfatt_valatt", (5, 3, 24), None) == ([(5, 3, 24), (6, 5, 5)], [(5, 3, 8)])
    assert infer("encdec_qk", (5, 3, 8), (4, -1, -1)) == ([(5, 3, 8), (4, 3, 16)], [(6, 5, 4)])
    assert infer("encdec_valatt", (4, 3, 16), (-1, 5, -1)) == ([(4, 3, 16), (6, 5, 4)], [(5, 3, 8)])
    assert infer("selfatt_qk", (-1, 3, 24))[1] == [(6, -1, -1)]


def test_errors():
    with pytest.raises(MXNetError, match="25 features cannot be split into 3 projections for each of 2 heads"):
        infer("selfatt_valatt", (5, 3, 25), None)
    with pytest.raises(MXNetError, match="5 features cannot be split into 3 projections for each of 2 heads"):
        infer("selfatt_qk", (5, 3, 5))
    with pytest.raises(MXNetError, match=r"projections must be \(sequence, batch, features\), received shape \(5, 24\)"):
        infer("selfatt_valatt", (5, 24), None)
    with pytest.raises(MXNetError, match=r"attention: expected shape \(6, -1, 4\), received \(5, 5, 4\)"):
        infer("encdec_valatt", (4, 3, 16), (5, 5, 4))


def test_scores_of_features_that_do_not_divide_read_the_first_numbers():
    x = nd.arange(50).reshape((2, 1, 25)) / 10
    x.attach_grad()
    with autograd.record():
        y = nd.contrib.interleaved_matmul_selfatt_qk(x, heads=3)
        total = (y * nd.arange(12).reshape((3, 2, 2))).sum()
    total.backward()
    assert y.shape == (3, 2, 2) and y.asnumpy().ravel()[:6].round(3).tolist() == pytest.approx([0.021, 0.148, 0.658, 5.367, 0.785, 2.44], abs=1e-6)
    assert x.grad.asnumpy().ravel()[:8] == pytest.approx([1.41, 1.48, 2.55, 2.69, 0, 0, 11.46, 12.09], abs=5e-3)


def test_integers_are_divided_by_an_integer_root():
    divide = get("_contrib_div_sqrt_dim")
    assert divide(torch.tensor([[-9, 4, 7]])).tolist() == [[-9, 4, 7]]
    assert divide(torch.tensor([[-9, 4, 7, 1, 5]], dtype=torch.int8)).tolist() == [[-4, 2, 3, 0, 2]]


@pytest.mark.parametrize("name, inputs, message", [
    ("selfatt_qk", [(3, 2, 12, 1)], r"projections must be \(sequence, batch, features\), received shape"),
    ("selfatt_valatt", [(3, 2, 12), (4, 2, 3)], r"`attention` must have shape \(4, 3, 3\), received \(4, 2, 3\)"),
    ("encdec_qk", [(3, 8), (5, 2, 8)], "projections must be"),
    ("encdec_valatt", [(5, 16), (4, 3, 5)], "projections must be"),
])
def test_shapes_that_do_not_fit(name, inputs, message):
    with pytest.raises(MXNetError, match=message):
        get("_contrib_interleaved_matmul_" + name)(*(torch.ones(s) for s in inputs), heads=2)


def test_no_steps():
    assert get("_contrib_interleaved_matmul_selfatt_qk")(torch.ones(0, 2, 12), heads=2).shape == (4, 0, 0)
    assert get("_contrib_interleaved_matmul_selfatt_valatt")(torch.ones(0, 2, 12), torch.ones(4, 0, 0), heads=2).shape == (0, 2, 4)


def test_self_attention():
    """MXNet 1.9.1 runs these in graphs of its oneDNN backend only; they must agree with the operators on real numbers."""
    qkv = nd.random.uniform(-1, 1, (3, 2, 12))
    scores = nd.contrib.interleaved_matmul_selfatt_qk(qkv, heads=2)
    weights = nd.softmax(scores)
    mixed = nd.contrib.interleaved_matmul_selfatt_valatt(qkv, weights, heads=2).asnumpy()
    call = nd._internal
    assert (call._sg_mkldnn_selfatt_qk(qkv, heads=2) == scores).asnumpy().all()
    q, low, high = nd.contrib.quantize_v2(qkv)
    close = dict(atol=0.03)
    real = call._sg_mkldnn_selfatt_qk(q, low, high, heads=2, quantized=True, enable_float_output=True)
    np.testing.assert_allclose(real.asnumpy(), scores.asnumpy(), **close)
    out = call._sg_mkldnn_selfatt_qk(q, low, high, heads=2, quantized=True, min_calib_range=-2, max_calib_range=2)
    assert out[0].dtype == np.int8 and out[2].asscalar() == 2
    np.testing.assert_allclose(nd.contrib.dequantize(*out).asnumpy(), scores.asnumpy(), **close)
    w, w_low, w_high = nd.contrib.quantize_v2(weights, out_type="uint8")
    out = call._sg_mkldnn_selfatt_valatt(q, w, low, high, w_low, w_high, heads=2, quantized=True)
    assert out[0].dtype == np.int32
    np.testing.assert_allclose(out[0].asnumpy() * (out[2].asscalar() / 2 ** 31), mixed, **close)
