import numpy as np
import pytest
from onnx import TensorProto, helper

from mxnet import MXNetError
from onnx_import_checks import agrees, model_of, node, run

X = np.arange(12, dtype="float32").reshape(3, 4)


def info(name, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, None)


@pytest.mark.parametrize("nodes, constants", [
    ([node("SequenceConstruct", "x z", "s"), node("SequenceAt", "s i")], {"i": np.array(-1)}),
    ([node("SequenceConstruct", "x z", "s"), node("SequenceInsert", "s x i", "t"), node("ConcatFromSequence", "t", axis=1)], {"i": np.array(1)}),
    ([node("SequenceConstruct", "x z", "s"), node("SequenceErase", "s i", "t"), node("ConcatFromSequence", "t", axis=0, new_axis=1)],
     {"i": np.array(0)}),
    ([node("SequenceEmpty", [], "e"), node("SequenceInsert", "e x", "t"), node("SequenceLength", "t")], {}),
    ([node("SplitToSequence", "x", "s", axis=1, keepdims=0), node("SequenceAt", "s i")], {"i": np.array(2)}),
    ([node("SplitToSequence", "x n", "s", axis=1), node("SequenceAt", "s i")], {"n": np.array(3), "i": np.array(1)}),
    ([node("SplitToSequence", "x n", "s", axis=0), node("ConcatFromSequence", "s", axis=0)], {"n": np.array([1, 2])})], ids=range(7))
def test_sequences(nodes, constants):
    agrees(nodes, {"x": X, "z": X * 2} if "z" in nodes[0].input else {"x": X}, constants)


def test_a_graph_for_each_element():
    body = helper.make_graph([node("Neg", "a", "b")], "body", [info("a")], [info("b")])
    agrees([node("SplitToSequence", "x", "s"), node("SequenceMap", "s", "t", body=body), node("ConcatFromSequence", "t", axis=0)], {"x": X})


def test_optional_values():
    nodes = [node("Optional", "x", "o"), node("OptionalGetElement", "o", "e"), node("Neg", "e", "y"), node("OptionalHasElement", "o", "h")]
    found, has = run(model_of(nodes, {"x": X.shape}, outputs=("y", "h"), types={"h": TensorProto.BOOL}, opset=18), x=X)
    assert found.tolist() == (-X).tolist() and has.tolist() == [True]


def test_positions_and_lengths_that_follow_from_values():
    nodes = [node("SequenceConstruct", "x z", "s"), node("SequenceAt", "s i")]
    agrees(nodes, {"x": X, "z": X * 2, "i": np.array(1)})
    with pytest.raises(MXNetError, match="position 2 of a sequence of 2 elements"):
        run(model_of(nodes, {"x": (2,), "z": (2,), "i": ()}, types={"i": 7}), x=X[0, :2], z=X[0, :2], i=np.array(2))


def test_what_is_no_array():
    with pytest.raises(NotImplementedError, match="the output 'y' is a sequence or an optional value"):
        run(model_of([node("SequenceConstruct", "x")], {"x": (2,)}))
    with pytest.raises(MXNetError, match="'s' is a sequence or an optional value, where an array was expected"):
        run(model_of([node("SequenceConstruct", "x", "s"), node("Neg", "s")], {"x": (2,)}))
    with pytest.raises(MXNetError, match="`input_sequence` .* must be a sequence, received an array"):
        run(model_of([node("SequenceLength", "x")], {"x": (2,)}))
    with pytest.raises(MXNetError, match=r"parts of sizes \[2, 2\] do not make up an axis of size 3"):
        run(model_of([node("SplitToSequence", "x n", "s"), node("SequenceLength", "s")], {"x": X.shape}, {"n": np.array([2, 2])}))
