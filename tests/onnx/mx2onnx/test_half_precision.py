"""Networks in float16 and bfloat16."""
import logging

import numpy as np
import onnx
import pytest

import mxnet as mx
from mxnet.gluon import nn
from onnx_checks import run

DATA = np.random.default_rng(1).uniform(-1, 1, (2, 3, 16, 16))


def network(kind):
    """Layers of all kinds, in a type."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, 3, padding=1), nn.BatchNorm(), nn.LeakyReLU(0.1), nn.MaxPool2D(), nn.AvgPool2D(2, 2, padding=1), nn.Flatten(), nn.Dense(16),
            nn.LayerNorm(), nn.GELU(), nn.Dense(5))
    mx.random.seed(3)
    net.initialize(mx.init.Xavier())
    net.cast(kind)
    net.hybridize()
    return net


def written(tmp_path, kind, **options):
    net = network(kind)
    x = mx.nd.array(DATA).astype(kind)
    expected = net(x).astype("float32").asnumpy()
    net.export(str(tmp_path / "net"))
    path = str(tmp_path / "net.onnx")
    mx.onnx.export_model(str(tmp_path / "net-symbol.json"), str(tmp_path / "net-0000.params"), [DATA.shape], kind, path, **options)
    return path, onnx.load(path), expected


@pytest.mark.parametrize("opset", [13, 21])
def test_float16(tmp_path, opset, caplog):
    with caplog.at_level(logging.INFO):
        path, model, expected = written(tmp_path, "float16", opset_version=opset, check=True)
    assert "what ONNX Runtime computes differs by at most" in caplog.text
    onnx.checker.check_model(model, full_check=True)
    assert {t.data_type for t in model.graph.initializer if t.name.endswith("weight")} == {onnx.TensorProto.FLOAT16}
    found, = run(model, {"data": DATA.astype(np.float16)})
    assert found.dtype == np.float16 and np.abs(found - expected).max() < 0.01
    back = mx.contrib.onnx.import_to_gluon(path)(mx.nd.array(DATA, dtype="float16"))
    assert back.dtype == np.float16 and np.abs(back.asnumpy() - expected).max() < 0.01


def test_bfloat16(tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        path, model, expected = written(tmp_path, "bfloat16", check=True)
    assert "what ONNX Runtime computes differs by at most" in caplog.text
    onnx.checker.check_model(model, full_check=True)
    assert [entry.version for entry in model.opset_import] == [22]
    kind = onnx.TensorProto.BFLOAT16
    assert {t.data_type for t in model.graph.initializer if t.name.endswith("weight")} == {kind}
    assert [v.type.tensor_type.elem_type for v in (*model.graph.input, *model.graph.output)] == [kind, kind]
    weights = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    loaded = {name.rpartition(":")[2]: array for name, array in mx.nd.load(str(tmp_path / "net-0000.params")).items()}
    name = next(name for name, array in loaded.items() if name.endswith("weight") and array.ndim == 2)
    assert (weights[name].astype(np.float32) == loaded[name].astype("float32").asnumpy()).all()
    # The importer computes bfloat16 as float32.
    back = mx.contrib.onnx.import_to_gluon(path)(mx.nd.array(DATA)).astype("float32").asnumpy()
    assert np.abs(back - expected).max() < 0.1 * np.abs(expected).max()


def test_inputs_may_be_wider_than_what_computes(tmp_path):
    x = mx.sym.cast(mx.sym.FullyConnected(mx.sym.cast(mx.sym.var("data"), "bfloat16"), num_hidden=2, name="fc"), "float32")
    params = {"fc_weight": mx.nd.array([[1, 2], [0.5, -1]]).astype("bfloat16"), "fc_bias": mx.nd.zeros(2).astype("bfloat16")}
    path = str(tmp_path / "a.onnx")
    mx.onnx.export_model(x, params, [(1, 2)], "float32", path, check=True)
    back = mx.contrib.onnx.import_to_gluon(path)(mx.nd.array([[3, 4]]))
    assert back.astype("float32").asnumpy().tolist() == [[11, -2.5]]
