import logging
import sys

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


def test_by_default_a_file_that_computes_something_else_is_a_warning(tmp_path, caplog, monkeypatch):
    path = str(tmp_path / "net.onnx")
    with caplog.at_level(logging.INFO):
        mx.onnx.export_model(NET, PARAMS, [(2, 4)], "float32", path)
    assert "net.onnx: what ONNX Runtime computes differs by at most" in caplog.text
    monkeypatch.setattr(checking, "_by_runtime", lambda path, inputs, narrow: [np.zeros((2, 3), np.float32)])
    caplog.clear()
    mx.onnx.export_model(NET, PARAMS, [(2, 4)], "float32", path)
    assert [record.levelname for record in caplog.records] == ["WARNING"] and "output 0 differs by" in caplog.text
    with pytest.raises(mx.MXNetError, match="output 0 differs by"):
        mx.onnx.export_model(NET, PARAMS, [(2, 4)], "float32", path, check=True)
    mx.onnx.export_model(NET, PARAMS, [(2, 4)], "float32", path, check=False)


def test_without_the_runtime_nothing_is_checked_unless_asked_for(tmp_path, caplog, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    path = str(tmp_path / "net.onnx")
    with caplog.at_level(logging.INFO):
        mx.onnx.export_model(NET, PARAMS, [(2, 4)], "float32", path)
    assert "differs" not in caplog.text and onnx.load(path).graph.node
    with pytest.raises(ImportError, match="check=True takes the package onnxruntime"):
        mx.onnx.export_model(NET, PARAMS, [(2, 4)], "float32", path, check=True)


def test_draws_are_not_compared(tmp_path, caplog):
    sym = mx.sym.random.uniform(shape=(2, 3)) + mx.sym.var("x")
    with caplog.at_level(logging.INFO):
        mx.onnx.export_model(sym, {}, [(2, 3)], "float32", str(tmp_path / "net.onnx"))
    assert "differs" not in caplog.text
