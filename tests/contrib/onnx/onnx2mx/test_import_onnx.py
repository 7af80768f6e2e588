import numpy as np
import pytest
from onnx import helper

import mxnet as mx
from mxnet.contrib.onnx.onnx2mx.import_onnx import GraphProto
from onnx_import_checks import model_of, node

X = np.arange(6, dtype="float32").reshape(2, 3)


def test_what_a_graph_leaves_behind():
    graph = GraphProto()
    model = model_of([node("BatchNormalization", "x w w m v")], {"x": ("n", 3)}, {"w": X[0], "m": X[0], "v": X[1]})
    out, args, auxs = graph.from_onnx(model.graph, 15)
    assert graph.arg_dict is args and graph.aux_dict is auxs and graph.opset_version == 15
    assert graph.model_metadata == {"input_tensor_data": [("x", (0, 3), 1)], "output_tensor_data": [("y", ())]}
    assert type(args["w"]) is mx.nd.NDArray and auxs["v"].asnumpy().tolist() == [3, 4, 5]


def test_a_block_trains_its_parameters_and_leaves_integers_alone():
    model = model_of([node("Gather", "x i", "a"), node("Mul", "a w")], {"x": (2, 3)}, {"w": X, "i": np.array([1, 0])})
    block = GraphProto().graph_to_gluon(model.graph, [mx.cpu(0), mx.cpu(1)], 15)
    data = mx.nd.array(X)
    with mx.autograd.record():
        out = block(data)
    out.backward()
    parameters = block.collect_params()
    assert parameters["w"].grad(mx.cpu(0)).asnumpy().tolist() == [[3, 4, 5], [0, 1, 2]] and parameters["i"].grad_req == "null"
    assert parameters["w"].list_ctx() == [mx.cpu(0), mx.cpu(1)] and parameters["i"].dtype == np.int64


def test_an_input_that_nothing_needs():
    model = model_of([node("Abs", "x")], {"x": (2,), "z": (2,)})
    with pytest.raises(mx.MXNetError, match="nothing is computed from the input 'z'"):
        GraphProto().graph_to_gluon(model.graph, mx.cpu(), 15)
    assert GraphProto().from_onnx(model.graph, 15)[0].list_arguments() == ["x"]


def test_a_graph_without_outputs():
    with pytest.raises(mx.MXNetError, match="a graph with outputs expected, received none"):
        GraphProto().from_onnx(helper.make_graph([], "g", [], []), 15)
