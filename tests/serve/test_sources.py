import json

import numpy as np
import pytest

import mxnet as mx
from mxnet.base import MXNetError
from mxnet.serve import sources
from serve_checks import save_linear


def found(argument):
    return [(s.name, s.version) for s in sources.discover(str(argument))]


def test_where_models_may_lie(tmp_path):
    save_linear(tmp_path / "a", 1)
    assert found(tmp_path / "a") == found(tmp_path / "a-symbol.json") == [("a", "1")]
    assert found(f"b={tmp_path / 'a'}") == [("b", "1")] and found(tmp_path) == [(tmp_path.name, "1")]
    many = tmp_path / "many"
    for name in ("x/1", "x/2", "y"):
        (many / name).mkdir(parents=True)
        save_linear(many / name / "net", 1)
    (many / "empty").mkdir()
    assert found(many) == [("x", "1"), ("x", "2"), ("y", "1")] and found(f"z={many / 'x'}") == [("z", "1"), ("z", "2")]


@pytest.mark.parametrize("argument, text", [
    ("{}/none", "no model there"), ("{}/empty", "a folder with a model is expected"), ("n={}/many", "leave out 'n='"),
    ("{}/two", "holds several networks"), ("a b={}/two/a", "consists of letters"),
])
def test_what_is_no_model(tmp_path, argument, text):
    for name in ("empty", "many/x", "two"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("many/x/net", "two/a", "two/b"):
        save_linear(tmp_path / name, 1)
    with pytest.raises(MXNetError, match=text):
        sources.discover(argument.format(tmp_path))


def test_shapes_come_from_the_files_beside_the_network(tmp_path):
    save_linear(tmp_path / "net", 1)
    (tmp_path / "net-shapes.json").write_text(json.dumps([{"name": "data", "shape": [1, 4]}]))  # SageMaker's
    source, = sources.discover(str(tmp_path))
    assert sources.load(source, [], mx.cpu()).network.inputs[0].shape == (-1, 4)
    stamp = source.stamp()
    (tmp_path / "signature.json").write_text(json.dumps({"inputs": [{"data_name": "data", "data_shape": [0, 2, 2]}]}))  # Multi Model Server's
    assert sources.load(source, [], mx.cpu()).network.inputs[0].shape == (-1, 2, 2)
    assert source.stamp() != stamp
    (tmp_path / "signature.json").write_text(json.dumps({"inputs": [{"data_name": "data"}]}))
    with pytest.raises(MXNetError, match="signature.json: an input is"):
        sources.load(source, [], mx.cpu())
    (tmp_path / "signature.json").write_text("{")
    with pytest.raises(MXNetError, match="signature.json is no JSON"):
        sources.load(source, [], mx.cpu())


def test_the_newest_parameters_are_taken(tmp_path):
    save_linear(tmp_path / "net", 1)
    mx.nd.save(str(tmp_path / "net-0012.params"), {"arg:fc_weight": mx.nd.ones((2, 4)) * 12, "arg:fc_bias": mx.nd.zeros((2,))})
    spec = sources.TensorSpec("data", np.dtype(np.float32), (-1, 4))
    network = sources.load(sources.discover(str(tmp_path / "net"))[0], [spec], mx.cpu()).network
    network.warm_up()
    assert network.run([np.ones((1, 4), np.float32)])[0].tolist() == [[48, 48]]
    for file in tmp_path.glob("*.params"):
        file.unlink()
    with pytest.raises(MXNetError, match="no parameters: expected is .*net-0000.params"):
        sources.load(sources.discover(str(tmp_path / "net"))[0], [spec], mx.cpu())
