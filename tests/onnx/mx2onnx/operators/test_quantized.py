"""Networks on 8-bit integers: their files have QuantizeLinear and DequantizeLinear, and compute the same in ONNX Runtime."""
import collections

import numpy as np
import onnx
import pytest

import mxnet as mx
from mxnet.contrib import quantization
from mxnet.gluon import nn
from onnx_checks import computed, exported, run

RNG = np.random.default_rng(1)
DATA = RNG.uniform(-1, 1, (8, 3, 12, 12)).astype(np.float32)
X = mx.sym.var("x")
A, B = (RNG.uniform(-2, 2, (2, 3)).astype(np.float32) for _ in "ab")


def quantize(x, low, high, kind="int8"):
    return mx.sym.contrib.quantize_v2(x, min_calib_range=low, max_calib_range=high, out_type=kind)


def same(sym, inputs, params=None, steps=0.0, **options):
    """Compare with what is computed here, up to so many times the largest number; the kinds of the nodes."""
    model = exported(sym, inputs, params, **options)
    for found, expected in zip(run(model, inputs, optimized=False), computed(sym, inputs, params), strict=True):
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=0, atol=max(steps, 1e-6) * np.abs(expected.astype(float)).max())
    return collections.Counter(node.op_type for node in model.graph.node)


@pytest.mark.parametrize("kind, low", [("int8", -2), ("auto", 0), ("uint8", 0)])
def test_quantizing_and_back(kind, low):
    q = quantize(X, low, 2, kind)
    kinds = same(mx.sym.Group([q[0], q[1], q[2], mx.sym.contrib.dequantize(q[0], q[1], q[2])]), {"x": A})
    assert kinds["QuantizeLinear"] == kinds["DequantizeLinear"] == 1
    model = exported(q, {"x": np.float32([[0.3, 2, 1]])})
    assert run(model, {"x": np.float32([[0.3, 2, 1]])})[0].tolist() == ([[19, 127, 64]] if kind == "int8" else [[38, 255, 128]])


def test_the_older_quantizing_has_one_level_less():
    q = mx.sym.contrib.quantize(X, mx.sym.var("low"), mx.sym.var("high"), out_type="int8")
    same(mx.sym.Group([q[0], q[1], mx.sym.contrib.dequantize(*q)]), {"x": A * 3}, {"low": np.float32([-4]), "high": np.float32([3])})


def operators():
    """Each operator on two quantized arrays or one."""
    c, p = mx.sym.contrib, quantize(X, -2, 2)
    u = quantize(X, 0, 2, "uint8")
    other = quantize(mx.sym.var("y"), -3, 1)
    for name, q in {"add": c.quantized_elemwise_add(p[0], other[0], p[1], p[2], other[1], other[2], min_calib_range=-3, max_calib_range=4),
                    "add of two types": c.quantized_elemwise_add(u[0], other[0], u[1], u[2], other[1], other[2], min_calib_range=-3,
                                                                 max_calib_range=4),
                    "sums": c.requantize(*c.quantized_elemwise_add(p[0], other[0], p[1], p[2], other[1], other[2]), min_calib_range=-3,
                                         max_calib_range=4),
                    "mul": c.quantized_elemwise_mul(p[0], other[0], p[1], p[2], other[1], other[2], min_calib_range=-3, max_calib_range=4),
                    "concat": c.quantized_concat(p[0], other[0], p[1], p[2], other[1], other[2], num_args=2, dim=1),
                    "act": c.quantized_act(p[0], p[1], p[2], act_type="relu"), "flatten": c.quantized_flatten(u[0], u[1], u[2])}.items():
        yield pytest.param(q, id=name)


@pytest.mark.parametrize("q", list(operators()))
def test_operators_on_integers(q):
    inputs = {"x": A, "y": B} if "y" in q.list_arguments() else {"x": A}
    same(mx.sym.contrib.dequantize(q[0], q[1], q[2]), inputs, steps=0.02)


def test_products_that_end_in_real_numbers():
    p, other = quantize(X, -2, 2), quantize(mx.sym.var("y"), -3, 1)
    out = mx.sym.contrib.quantized_elemwise_mul(p[0], other[0], p[1], p[2], other[1], other[2], enable_float_output=True)
    assert same(out, {"x": A, "y": B}) == {"QuantizeLinear": 2, "DequantizeLinear": 2, "Mul": 1}


def test_rows_of_an_embedding():
    weight = RNG.integers(-127, 127, (5, 4)).astype(np.int8)
    q = mx.sym.contrib.quantized_embedding(X, mx.sym.var("w"), mx.sym.var("low"), mx.sym.var("high"), input_dim=5, output_dim=4)
    same(mx.sym.contrib.dequantize(*q), {"x": np.float32([1, 4, 0])}, {"w": weight, "low": np.float32([-1]), "high": np.float32([2])})


def network(wide=False):
    """Layers with all that is quantized, of Gluon."""
    class Sum(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.left, self.right = nn.Conv2D(8, 3, padding=1), nn.Conv2D(8, 1)

        def hybrid_forward(self, F, x):
            return F.Activation(self.left(x) + self.right(x), act_type="relu")

    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(), Sum(), nn.AvgPool2D(), nn.Dense(10))
    mx.random.seed(2)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    net(mx.nd.array(DATA))
    return net


@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize("how", ["gluon", "gluon by channel", "symbol", "symbol, fused"])
def test_quantized_networks(tmp_path, how, opset):
    net = network()
    net.export(str(tmp_path / "net"))
    sym, args, auxs = mx.model.load_checkpoint(str(tmp_path / "net"), 0)
    expected = net(mx.nd.array(DATA)).asnumpy()
    if how.startswith("gluon"):
        data = mx.gluon.data.DataLoader(mx.nd.array(DATA), batch_size=4)
        more = {"quantize_granularity": "channel-wise"} if how == "gluon by channel" else {}
        quantized = quantization.quantize_net_v2(net, calib_data=data, calib_mode="naive", **more)
        quantized(mx.nd.array(DATA))
        quantized.export(str(tmp_path / "int8"))
        sym, args, auxs = mx.model.load_checkpoint(str(tmp_path / "int8"), 0)
    else:
        call = quantization.quantize_model if how == "symbol" else quantization.quantize_model_mkldnn
        sym, args, auxs = call(sym, args, auxs, data_names=("data",), label_names=None, calib_mode="naive", ctx=mx.cpu(),
                               calib_data=mx.io.NDArrayIter(DATA, batch_size=4, label_name=None),
                               quantized_dtype="int8" if how == "symbol" else "auto")
    params = {name: value.asnumpy() for name, value in {**args, **auxs}.items()}
    model = exported(sym, {"data": DATA}, params, opset_version=opset)
    kinds = collections.Counter(node.op_type for node in model.graph.node)
    assert kinds["Conv"] == 3 and kinds["QuantizeLinear"] >= 4 and kinds["DequantizeLinear"] >= 10
    # Weights stand in the file as integers.
    assert {t.name: t.data_type for t in model.graph.initializer if len(t.dims) == 4} and all(
        t.data_type == onnx.TensorProto.INT8 for t in model.graph.initializer if len(t.dims) == 4)
    (found,), (here,) = run(model, {"data": DATA}, optimized=False), computed(sym, {"data": DATA}, params)
    assert np.abs(found - here).max() < 0.02 * np.abs(here).max()
    assert np.abs(found - expected).max() < 0.1 * np.abs(expected).max()
    # And back: the same numbers, by operators of arrays of integers and real numbers.
    onnx.save(model, tmp_path / "net.onnx")
    back = mx.contrib.onnx.import_to_gluon(str(tmp_path / "net.onnx"))
    assert np.abs(back(mx.nd.array(DATA)).asnumpy() - found).max() < 0.02 * np.abs(here).max()


def test_what_is_not_calibrated_is_refused(tmp_path):
    def export(sym):
        mx.onnx.export_model(sym, {}, [(2, 3)], "float32", str(tmp_path / "a.onnx"))
    with pytest.raises(mx.MXNetError, match="_contrib_quantize_v2 'q' cannot be written to an ONNX file: its range follows from the data"):
        export(mx.sym.contrib.quantize_v2(X, name="q"))
    p = quantize(X, -2, 2)
    sums = mx.sym.contrib.quantized_elemwise_add(p[0], p[0], p[1], p[2], p[1], p[2], name="sums")
    with pytest.raises(mx.MXNetError, match="output 0 of _contrib_quantized_elemwise_add 'sums' is int32 sums of products"):
        export(sums[0])
    with pytest.raises(mx.MXNetError, match="cannot be written to an ONNX file: its input is int32 sums of products"):
        export(mx.sym.cast(sums[0], "float32"))
