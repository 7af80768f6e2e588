import numpy as np
import pytest
from onnx import TensorProto

from mxnet import MXNetError
from mxnet.contrib.onnx.onnx2mx.import_onnx import GraphProto
from onnx_import_checks import agrees, model_of, node, run

X = np.zeros((1, 1), "float32")
A, B = np.array([[-7, 4], [3, 12]]), np.array([[2, -3]])


@pytest.mark.parametrize("nodes", [
    *[node(name, "a b", "c") for name in ("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Equal", "Less", "Greater")],
    *[node(name, "a", "c") for name in ("Neg", "Abs", "Transpose", "Identity", "Sign")], node("Gather", "a one", "c", axis=1),
    node("Concat", "a b", "c", axis=0), node("Unsqueeze", "a one", "c"), node("Squeeze", "b zero", "c"), node("Reshape", "a flat", "c"),
    node("Slice", "a zero one one", "c"), node("Expand", "b shape", "c"), node("Tile", "b shape", "c"), node("Range", "start end step", "c"),
    node("ConstantOfShape", "shape", "c"), node("Pow", "a two", "c"), node("ReduceProd", "a", "c", keepdims=0), node("ReduceSum", "a one", "c"),
    node("Flatten", "a", "c"), node("Cast", "a", "c", to=TensorProto.FLOAT), node("Where", "truth a b", "c"), node("Mod", "a b", "c", fmod=1)],
    ids=lambda n: n.op_type)
def test_known_values_are_computed_while_importing(nodes):
    constants = {"a": A, "b": B, "one": np.array([1]), "zero": np.array([0]), "flat": np.array([-1]), "shape": np.array([2, 2]), "two": np.array(2),
                 "start": np.array(1), "end": np.array(9), "step": np.array(3), "truth": np.array([[True], [False]])}
    used = {name: array for name, array in constants.items() if name in nodes.input}
    nodes = [nodes, node("Cast", "c", "f", to=TensorProto.FLOAT), node("Add", "x f")]
    agrees(nodes, {"x": X}, used, opset=14)
    out, *_ = GraphProto().from_onnx(model_of(nodes, {"x": X.shape}, used, opset=14).graph, 14)
    assert sum("cast" in name for name in out.get_internals().list_outputs()) == 0


def test_parts_are_computed_too():
    agrees([node("Split", "a", "b c", axis=1), node("Cast", "c", "f", to=1), node("Add", "x f")], {"x": X}, {"a": A}, opset=13)


@pytest.mark.parametrize("nodes, constants, text", [
    (node("Div", "a b", "c"), {"a": A, "b": np.array(0)}, "divisors of integers other than 0 expected, received 0"),
    (node("Range", "a b c", "c2"), {"a": np.array(0), "b": np.array(2 ** 60), "c": np.array(1)}, "expected at most"),
    (node("Range", "a b c", "c2"), {"a": np.array(0), "b": np.array(1), "c": np.array(0)}, "in steps of 0"),
    (node("ConstantOfShape", "a", "c2"), {"a": np.array([-1])}, "sizes are not negative"),
    (node("Gather", "a b", "c2"), {"a": A, "b": np.array([2])}, "the indices reach from 2 to 2 on an axis of size 2"),
    (node("Split", "a b", "c2 d2"), {"a": A, "b": np.array([1, 3])}, r"parts of sizes \[1, 3\] do not make up an axis of size 2"),
    (node("Reshape", "a b", "c2"), {"a": A, "b": np.array([3])}, "not what the operator takes")])
def test_what_cannot_be_computed_names_the_node(nodes, constants, text):
    with pytest.raises(MXNetError, match=rf"node 'the_{nodes.op_type.lower()}'.*{text}"):
        run(model_of([nodes, node("Abs", "x")], {"x": (1,)}, constants))


def test_large_arrays_are_not_made():
    huge = {"s": np.array([2 ** 20, 2 ** 20])}
    nodes = [node("ConstantOfShape", "s", "c"), node("Shape", "c", "t"), node("Cast", "t", "u", to=1), node("Add", "x u")]
    assert run(model_of(nodes, {"x": (2,)}, huge), x=np.float32([0, 1]))[0].tolist() == [2 ** 20, 2 ** 20 + 1]
