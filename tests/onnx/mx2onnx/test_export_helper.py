import pytest

import mxnet as mx
from mxnet.onnx.mx2onnx._export_helper import load_module


def test_reads_both_files_into_one_dict_of_parameters(tmp_path):
    sym = mx.sym.BatchNorm(mx.sym.var("x"), name="b")
    sym.save(str(tmp_path / "net-symbol.json"))
    mx.nd.save(str(tmp_path / "other.params"), {"arg:b_gamma": mx.nd.ones(2), "aux:b_moving_mean": mx.nd.zeros(2)})
    found, params = load_module(str(tmp_path / "net-symbol.json"), str(tmp_path / "other.params"))
    assert found.tojson() == sym.tojson() and {k: v.asnumpy().tolist() for k, v in params.items()} == {"b_gamma": [1, 1], "b_moving_mean": [0, 0]}


def test_says_which_file_is_missing(tmp_path):
    with pytest.raises(ValueError, match=r"no such file: .*net-symbol.json, .*net.params; HybridBlock.export"):
        load_module(str(tmp_path / "net-symbol.json"), str(tmp_path / "net.params"))
