import json

import numpy as np
import pytest

from mxnet.contrib.onnx.onnx2mx.import_onnx import GraphProto
from onnx_import_checks import agrees, model_of, node, run

X = np.arange(2 * 6 * 5 * 4, dtype="float32").reshape(2, 6, 5, 4)
CONSTANTS = {"i0": np.array([0]), "i1": np.array([1]), "i2": np.array([2]), "minus": np.array([-1]), "two": np.array([2]), "three": np.array([3]),
             "six": np.array([6]), "one": np.array([1])}


def to(names, *before):
    """Nodes that reshape `x` (batch, 6, length, 4) to sizes that are computed of its own: ``n`` batch, ``l`` length, else constants."""
    sizes = [node("Shape", "x", "shape"), node("Gather", "shape i0", "n"), node("Gather", "shape i2", "l"), *before]
    return [*sizes, node("Concat", names, "t", axis=0), node("Reshape", "x t")]


@pytest.mark.parametrize("nodes, shape", [
    (to("n minus"), (2, 120)), (to("n six minus"), (2, 6, 20)), (to("n two three l minus"), (2, 2, 3, 5, 4)),
    (to("nl minus", node("Mul", "n l", "nl")), (10, 24)), (to("n6 l minus", node("Mul", "n six", "n6")), (12, 5, 4)),
    (to("n one six l minus"), (2, 1, 6, 5, 4)),
    (to("n six l4", node("Mul", "l four", "l4"), ), (2, 6, 20))], ids=range(7))
def test_sizes_that_the_file_leaves_open(nodes, shape):
    constants = {**CONSTANTS, "four": np.array([4])}
    used = {name: array for name, array in constants.items() if any(name in n.input for n in nodes)}
    assert agrees(nodes, {"x": X}, used, shapes={"x": ("batch", 6, "length", 4)})[0].shape == shape
    found = run(model_of(nodes, {"x": ("batch", 6, "length", 4)}, used), x=X[:1, :, :2].copy())[0]
    assert found.size == 48 and found.reshape(-1).tolist() == X[:1, :, :2].reshape(-1).tolist()


def test_repeating_to_open_sizes():
    nodes = [node("Shape", "x", "s"), node("Expand", "c s")]
    agrees(nodes, {"x": X}, {"c": np.arange(4, dtype="float32")}, shapes={"x": ("a", 6, "b", 4)})
    nodes = [node("Shape", "x", "s"), node("Gather", "s i0", "n"), node("Concat", "n three", "t", axis=0), node("Expand", "z t")]
    agrees(nodes, {"x": X, "z": np.float32([[1, 2, 3]])}, {"i0": np.array([0]), "three": np.array([3])}, shapes={"x": ("a", 6, "b", 4)})


def test_as_many_as_another_axis_has():
    table = np.arange(40, dtype="float32").reshape(10, 4)
    nodes = [node("Shape", "x", "s"), node("Gather", "s i2", "l"), node("Slice", "c i0 l i0", "part"), node("Add", "x part")]
    constants = {"c": table, "i0": np.array([0]), "i2": np.array([2])}
    agrees(nodes, {"x": X}, constants, shapes={"x": ("a", 6, "b", 4)})
    nodes = [node("Shape", "x", "s"), node("Gather", "s i2", "l"), node("Sub", "l one", "k"), node("Slice", "x k l i2")]
    agrees(nodes, {"x": X}, {"i2": np.array([2]), "one": np.array([1])}, shapes={"x": ("a", 6, "b", 4)})


def test_what_cannot_be_expressed_is_imported_when_the_network_runs():
    nodes = to("l n minus")
    used = {k: CONSTANTS[k] for k in ("i0", "i2", "minus")}
    assert agrees(nodes, {"x": X}, used, shapes={"x": ("batch", 6, "length", 4)})[0].shape == (5, 2, 24)
    model = model_of(nodes, {"x": ("batch", 6, "length", 4)}, used)
    out, _, _ = GraphProto().from_onnx(model.graph, 17)
    assert json.loads(out.tojson())["nodes"][-1]["op"] == "_contrib_onnx_graph"
