import json

import numpy as np
import pytest

import mxnet as mx
from block_checks import Net
from mxnet.gluon import nn
from mxnet.gluon.structure import load_structure, save_structure


def test_save_and_load_with_structure(net, tmp_path):
    prefix = str(tmp_path / "m")
    net.hybridize()
    x = mx.nd.ones((1, 3))
    expected = net(x).asnumpy()
    net.save(prefix)
    other = Net()
    other.initialize()
    other.load(prefix)
    assert other.name == "n" and other._active
    np.testing.assert_array_equal(other(x).asnumpy(), expected)
    with pytest.raises(mx.MXNetError, match=r"m-model.json tells of another structure than that of Dense"):
        nn.Dense(2).load(prefix)
    (tmp_path / "m-model.json").write_text("{")
    with pytest.raises(mx.MXNetError, match="m-model.json is not the JSON file of a Block"):
        other.load(prefix)


def test_the_file_names_each_block_by_class_and_number(net, tmp_path):
    path = tmp_path / "n.json"
    save_structure(net, str(path))
    saved = json.loads(path.read_text())
    assert list(saved) == ["net0"] and saved["net0"]["orig_name"] == "n" and saved["net0"]["hybridized"] is False
    assert saved["net0"]["children"] == {"n_dense0": "a", "n_dense1": "b", "n_dense2": "c"}
    assert saved["net0"]["dense2"]["orig_name"] == "n_dense1"


def test_a_traced_graph_goes_with_it(tmp_path):
    path = str(tmp_path / "n.json")
    net = nn.Dense(2, in_units=3, prefix="d_")
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((1, 3)))
    save_structure(net, path)
    saved = json.loads((tmp_path / "n.json").read_text())["dense0"]
    assert saved["hybridized"] and mx.sym.load_json(saved["symbol"]).list_arguments() == ["data", "d_weight", "d_bias"]
    other = nn.Dense(2, in_units=3)
    load_structure(other, path)
    assert other.name == "d" and list(other.params) == ["d_weight", "d_bias"] and other._active
    assert other._cached_graph[1].tojson() == saved["symbol"]
