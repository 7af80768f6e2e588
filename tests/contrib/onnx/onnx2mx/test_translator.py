import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import mxnet as mx
from mxnet.contrib.onnx.onnx2mx.import_onnx import GraphProto
from mxnet.contrib.onnx.onnx2mx.translator import Translator
from onnx_import_checks import agrees, model_of, node, run

X = np.arange(6, dtype="float32").reshape(2, 3)


@pytest.mark.parametrize("model, text", [
    (model_of([node("Abs", "z")], {"x": (2,)}), r"node 'the_abs' \(Abs\): the input 'z' is no input of the graph"),
    (model_of([node("Abs", "b", "a"), node("Abs", "a", "b")], {"x": (2,)}, outputs=("b",)), "the input 'b' .* made by no node before"),
    (model_of([node("Abs", "x", "x")], {"x": (2,)}), "'x' has been made before"),
    (model_of([node("Abs", "x", "z")], {"x": (2,)}), "the output 'y' is made by no node"),
    (model_of([node("Abs", "x x")], {"x": (2,)}), r"\(Abs\): expected at most 1 inputs, received 2"),
    (model_of([node("MatMul", "x x")], {"x": (2, 3)}), r"\(MatMul\): Error in operator"),
    (model_of([node("Softmax", "x", axis=5)], {"x": (2,)}), "axis 5 of an array of 1 axes; expected -1 to 0"),
    (model_of([node("Softmax", "x", axis="a")], {"x": (2,)}), r"\(Softmax\): its inputs or attributes are not what the operator takes"),
    (model_of([node("Abs", "x")], {"x": (2,)}, {"": X}), "an initializer has no name")])
def test_damaged_graphs_name_the_node(model, text):
    with pytest.raises(mx.MXNetError, match=text):
        run(model)


def test_all_unknown_operators_are_named_at_once():
    model = model_of([node("Wiggle", "x", "a"), node("Abs", "a", "b"), node("Waggle", "b")], {"x": (2,)})
    with pytest.raises(NotImplementedError, match=r"compute these of the file: Wiggle \(node the_wiggle\), Waggle \(node the_waggle\)"):
        run(model)


def test_what_the_file_defines_itself():
    factor = helper.make_node("Constant", [], ["two"])
    factor.attribute.add(name="value_float", type=1, ref_attr_name="by")
    body = [factor, helper.make_node("Mul", ["a", "two"], ["b"])]
    double = helper.make_function("mine", "Double", ["a"], ["b"], body, [helper.make_opsetid("", 17)], ["by"])
    graph = model_of([helper.make_node("Double", ["x"], ["y"], domain="mine", by=3.0)], {"x": X.shape}).graph
    out, args, _ = GraphProto(functions=[double]).from_onnx(graph, 17)
    assert out.eval(x=mx.nd.array(X), **args)[0].asnumpy().tolist() == (X * 3).tolist()
    endless = helper.make_function("mine", "Double", ["a"], ["b"], [helper.make_node("Double", ["a"], ["b"], domain="mine")], [])
    with pytest.raises(mx.MXNetError, match="functions call one another more than 32 deep"):
        GraphProto(functions=[endless]).from_onnx(graph, 17)


def test_names_are_those_of_the_file():
    model = model_of([node("Add", "x w", "s"), node("Relu", "s")], {"x": X.shape}, {"w": X})
    out, args, _ = GraphProto().from_onnx(model.graph, 13)
    assert out.list_arguments() == ["x", "w"] and list(args) == ["w"]
    assert out.get_internals().list_outputs() == ["x", "w", "the_add_output", "the_relu_output"]


def test_types_of_inputs_and_outputs():
    model = model_of([node("Add", "x x")], {"x": (2,)}, types={"x": TensorProto.UINT32, "y": TensorProto.UINT32})
    assert run(model, x=np.uint32([1, 2]))[0].dtype == np.uint32
    with pytest.raises(NotImplementedError, match="the input 'x' has the element type string"):
        run(model_of([node("Identity", "x")], {"x": (2,)}, types={"x": TensorProto.STRING}))


def test_an_input_or_an_array_as_output():
    found = run(model_of([node("Abs", "x", "a")], {"x": X.shape}, {"c": X * 2}, outputs=("x", "c", "a")), x=X)
    assert [a.tolist() for a in found] == [X.tolist(), (X * 2).tolist(), X.tolist()]


def test_sizes_are_known_as_far_as_the_file_says():
    translator = Translator(17)
    value = translator.graph(model_of([node("Transpose", "x")], {"x": ("n", 3, "m")}).graph)[0]
    assert translator.sizes(value) == (None, 3, None) and translator.rank(value) == 3
    with pytest.raises(NotImplementedError, match="needs the size of axis 0"):
        translator.size(value, 0)
    unknown = model_of([node("Relu", "x")], {"x": None})
    assert run(unknown, x=X)[0].tolist() == X.tolist()
    for opset in (11, 13):
        model = model_of([node("Softmax", "x")], {"x": None}, opset=opset)
        assert run(model, x=X)[0].tolist() == run(model_of([node("Softmax", "x")], {"x": X.shape}, opset=opset), x=X)[0].tolist()
    value = translator.array(X)
    value.arrays = None
    with pytest.raises(NotImplementedError, match="`axes` .* must be known when the file is imported"):
        value.constant("axes")


def test_arrays_without_axes_and_without_elements():
    model = model_of([node("Mul", "x x", "a"), node("ReduceSum", "a", "b", keepdims=0), node("Add", "a b")], {"x": ()})
    assert run(model, x=np.float32(3))[0].tolist() == [18.0]
    with mx.np_shape():
        out, args, _ = GraphProto().from_onnx(model.graph, 13)
        found = out.bind(mx.cpu(), {"x": mx.np.array(3.0)}, grad_req="null").forward()[0]
        assert found.shape == () and found.asnumpy() == 18
        nothing = model_of([node("Concat", "x c", axis=0)], {"x": (0, 3)}, {"c": X})
        out, args, _ = GraphProto().from_onnx(nothing.graph, 13)
        executor = out.bind(mx.cpu(), {"x": mx.nd.zeros((0, 3)), **args}, grad_req="null")
        assert executor.forward()[0].asnumpy().tolist() == X.tolist()


def test_an_empty_name_leaves_an_input_out():
    agrees(node("Clip", "x - high"), {"x": X}, {"high": np.float32(2)})


def test_sparse_arrays_are_refused():
    graph = model_of([node("Abs", "x")], {"x": (2,)}).graph
    graph.sparse_initializer.add(values=numpy_helper.from_array(X, "s"))
    with pytest.raises(NotImplementedError, match="sparse initializers"):
        GraphProto().from_onnx(graph, 13)
