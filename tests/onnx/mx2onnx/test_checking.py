import logging

import numpy as np
import onnx
import pytest

import mxnet as mx
from mxnet.onnx.mx2onnx import checking
from mxnet.onnx.mx2onnx._export_onnx import described

NET = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc"), name="softmax")
PARAMS = {"fc_weight": mx.nd.array(np.arange(12).reshape(3, 4) / 5), "fc_bias": mx.nd.array([1, 2, 3])}


def test_the_file_computes_the_same(tmp_path, caplog):
    path = str(tmp_path / "net.onnx")
    with caplog.at_level(logging.INFO):
        assert mx.onnx.export_model(NET, PARAMS, [(2, 4)], "float32", path, check=True) == path
    assert "net.onnx: what ONNX Runtime computes differs by at most" in caplog.text
    assert checking.largest_difference(described(NET, PARAMS, [(2, 4)], "float32", False, None), path) < 1e-6


def test_a_file_that_computes_something_else(tmp_path):
    path = str(tmp_path / "net.onnx")
    mx.onnx.export_model(NET, {**PARAMS, "fc_bias": mx.nd.array([1, 2, 9])}, [(2, 4)], "float32", path)
    network = described(NET, PARAMS, [(2, 4)], "float32", False, None)
    with pytest.raises(mx.MXNetError, match=r"net.onnx: output 0 differs by 0\.\d+ in ONNX Runtime"):
        checking.largest_difference(network, path)
    model = onnx.load(path)
    model.graph.node[0].op_type = "Wiggle"
    onnx.save(model, path)
    with pytest.raises(mx.MXNetError, match="net.onnx: ONNX Runtime cannot run it: .*Wiggle"):
        checking.largest_difference(network, path)
