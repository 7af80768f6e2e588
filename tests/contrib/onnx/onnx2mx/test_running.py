import base64

import numpy as np
import pytest
from onnx import TensorProto, helper

import mxnet as mx
from mxnet import MXNetError
from mxnet.contrib.onnx.onnx2mx.import_onnx import GraphProto
from onnx_import_checks import agrees, model_of, node, run

X = np.arange(6, dtype="float32").reshape(2, 3)


def text(model):
    return base64.b64encode(model.SerializeToString()).decode()


def test_gradients_flow_through():
    model = model_of([node("ReduceSum", "x axes", "s"), node("Mul", "s w")], {"x": X.shape, "axes": (1,)}, {"w": np.float32([[2], [3]])},
                     types={"axes": 7})
    out, args, _ = GraphProto().from_onnx(model.graph, 13)
    assert out.list_arguments() == ["x", "axes", "w"]
    arrays = {"x": mx.nd.array(X), "axes": mx.nd.array([1], dtype="int64"), **args}
    grads = {name: mx.nd.zeros(arrays[name].shape) for name in ("x", "w")}
    executor = out.bind(mx.cpu(), arrays, args_grad=grads)
    assert executor.forward(is_train=True)[0].asnumpy().tolist() == [[6], [36]]
    executor.backward(mx.nd.ones((2, 1)))
    assert grads["x"].asnumpy().tolist() == [[2, 2, 2], [3, 3, 3]] and grads["w"].asnumpy().tolist() == [[3], [12]]


def test_a_file_of_the_symbol_runs(tmp_path):
    model = model_of([node("Relu", "x", "r"), node("Tile", "r n")], {"x": X.shape, "n": (2,)}, types={"n": 7})
    out, _, _ = GraphProto().from_onnx(model.graph, 13)
    out.save(str(tmp_path / "a.json"))
    block = mx.gluon.SymbolBlock.imports(str(tmp_path / "a.json"), ["x", "n"])
    assert block(mx.nd.array(X - 3), mx.nd.array([2, 1], dtype="int64")).asnumpy().tolist() == np.tile(np.maximum(X - 3, 0), (2, 1)).tolist()
    block.hybridize()
    for times in (1, 3):
        assert block(mx.nd.array(X), mx.nd.array([times, 2], dtype="int64")).shape == (2 * times, 6)


def test_what_was_imported_before_stays_a_symbol():
    model = model_of([node("Conv", "x w", "c"), node("Relu", "c", "r"), node("Reshape", "r s", "y"), node("Neg", "y", "z")],
                     {"x": (1, 2, 5, 5), "s": (2,)}, {"w": np.ones((3, 2, 3, 3), "f")}, outputs=("r", "z"), types={"s": 7})
    out, _, _ = GraphProto().from_onnx(model.graph, 13)
    *names, last = (n.split("_output")[0] for n in out.get_internals().list_outputs())
    assert names == ["x", "w", "the_conv", "the_relu", "s"] and last.startswith("contrib_onnx_graph")
    found = run(model, x=np.ones((1, 2, 5, 5), "f"), s=np.array([9, 3]))
    assert found[0].shape == (1, 3, 3, 3) and found[1].tolist() == np.full((9, 3), -18.0).tolist()


def test_values_of_all_kinds_go_into_the_part():
    branches = {key: helper.make_graph([node("Add", names, "z")], key, [], [helper.make_tensor_value_info("z", 1, None)])
                for key, names in (("then_branch", "total inner"), ("else_branch", "total x"))}
    nodes = [node("ReduceSum", "x", "total", keepdims=0), node("Greater", "total limit", "c"), node("Constant", [], "inner", value_float=0.5),
             node("SequenceConstruct", "x total", "s"), node("If", "c", "a", **branches), node("SequenceAt", "s i", "b"), node("Add", "a b")]
    for limit, place in ((14, 0), (16, 1)):
        agrees(nodes, {"x": X, "i": np.array(place)}, {"limit": np.float32(limit)})


def test_graphs_within_nodes_take_what_is_there():
    result = helper.make_tensor_value_info("z", 1, None)
    branches = {key: helper.make_graph([node("Neg", name, "z")], key, [], [result]) for key, name in (("then_branch", "x"), ("else_branch", "none"))}
    with pytest.raises(MXNetError, match="a graph within a node uses 'none', which is no input of the graph"):
        run(model_of([node("If", "c", **branches)], {"x": (2,), "c": ()}, types={"c": 9}))


def test_random_numbers_are_drawn():
    nodes = [node("ConstantOfShape", "n", "a"), node("RandomUniformLike", "a")]
    model = model_of(nodes, {"n": (1,)}, types={"n": 7})
    mx.random.seed(3)
    first = run(model, n=np.array([5]))[0]
    assert (first != run(model, n=np.array([5]))[0]).all() and first.shape == (5,)
    mx.random.seed(3)
    assert run(model, n=np.array([5]))[0].tolist() == first.tolist()


def test_types_of_results_are_those_of_the_file():
    model = model_of([node("Tile", "x n")], {"x": (2,), "n": (1,)}, types={"x": TensorProto.UINT32, "n": 7, "y": TensorProto.UINT32})
    (found,) = run(model, x=np.uint32([1, 2]), n=np.array([2]))
    assert found.dtype == np.uint32 and found.tolist() == [1, 2, 1, 2]


@pytest.mark.parametrize("graph, message", [
    ("?", "`graph` must be an ONNX model in base64, received '\\?'"), ("/////w==", "must be an ONNX model in base64"),
    (text(helper.make_model(helper.make_graph([], "g", [], []))), "has 0 inputs and 0 outputs, received 1 arrays and num_outputs=1"),
    (text(model_of([node("Tile", "x n")], {"x": (2,)})), "the input 'n' is no input of the graph"),
    (text(model_of([node("Wiggle", "x")], {"x": (2,)})), "no operator here computes this")])
def test_damaged_graphs(graph, message):
    with pytest.raises(MXNetError, match=message):
        mx.nd.contrib.onnx_graph(mx.nd.ones(2), graph=graph)
