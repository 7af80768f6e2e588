"""A short campaign with a fixed seed, and what must not be read."""
import random

import onnx
import pytest

import mxnet as mx
from fuzz import campaign, onnx_files

TARGETS = campaign.targets(["onnx_files"])


def test_mutated_files():
    number, failed = campaign.run(list(TARGETS.values()), seed=11, seconds=60, count=200)
    assert not failed, "\n".join(f"{case!r}\n{text}" for _, case, text in failed)
    assert number == 200


def test_what_is_mutated_is_good():
    good = {name: [campaign.attempt(target, case) for case in target.seeds()] for name, target in TARGETS.items()}
    assert good == {"onnx_files.models": [False] * 3, "onnx_files.parts": [False] * 5, "onnx_files.written": [False] * 2,
                    "onnx_files.node": [False] * 2}


def test_models_that_contradict_themselves():
    """Cycles, external data outside of the folder, and shapes that the data do not have are refused, or read as what is there."""
    target = TARGETS["onnx_files.written"]
    for seed, change in enumerate((onnx_files._external, onnx_files._contradiction, onnx_files._cycle, onnx_files._twice) * 10):
        model = onnx.ModelProto.FromString(target.seeds()[seed % 2])
        change(model.graph, random.Random(seed))
        found = campaign.attempt(target, model.SerializeToString())
        assert not isinstance(found, str), found


@pytest.mark.parametrize("place", ["../outside", "/etc/passwd", "inside/../../outside"])
def test_data_outside_of_the_folder(tmp_path, place):
    (tmp_path / "outside").write_bytes(bytes(16))
    (tmp_path / "models" / "inside").mkdir(parents=True)
    model = onnx.ModelProto.FromString(TARGETS["onnx_files.written"].seeds()[1])
    tensor, = (t for t in model.graph.initializer if t.name == "g")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=place)
    (tmp_path / "models" / "a.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(mx.MXNetError, match="outside of the model's folder"):
        mx.contrib.onnx.import_model(str(tmp_path / "models" / "a.onnx"))


def test_a_cycle_is_named(tmp_path):
    model = onnx.ModelProto.FromString(TARGETS["onnx_files.written"].seeds()[0])
    model.graph.node[0].input[0] = "y"
    (tmp_path / "a.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(mx.MXNetError, match="y"):
        mx.contrib.onnx.import_model(str(tmp_path / "a.onnx"))
