import numpy as np
import pytest

import mxnet as mx
from mxnet.onnx.mx2onnx import _export_onnx
from mxnet.onnx.mx2onnx._export_onnx import MXNetGraph

X = mx.sym.var("x")
SYM = mx.sym.BatchNorm(X, name="b")
PARAMS = {"b_gamma": mx.nd.ones(2), "b_beta": mx.nd.zeros(2), "b_moving_mean": mx.nd.zeros(2), "b_moving_var": mx.nd.ones(2)}


def test_the_graph_holds_its_parameters():
    for types in (np.float32, ["float32"], [1]):  # a type, types, or ONNX's numbers of them
        graph = MXNetGraph().create_onnx_graph_proto(SYM, PARAMS, [(3, 2)], types)
        assert [n.op_type for n in graph.node] == ["BatchNormalization"] and len(graph.initializer) == 4
        assert [d.dim_value for d in graph.input[0].type.tensor_type.shape.dim] == [0, 0]  # all sizes may vary here
    graph = MXNetGraph().create_onnx_graph_proto(SYM, PARAMS, [(3, 2)], np.float32, opset_version=12, dynamic=False)
    assert [d.dim_value for d in graph.output[0].type.tensor_type.shape.dim] == [3, 2]


def test_parameters_as_arrays_and_in_two_kinds():
    assert {k: v.tolist() for k, v in MXNetGraph.convert_weights_to_numpy({"aux:m": mx.nd.ones(1)}).items()} == {"m": [1.0]}
    arguments, states = MXNetGraph.split_params(SYM, PARAMS)
    assert sorted(arguments) == ["b_beta", "b_gamma"] and sorted(states) == ["b_moving_mean", "b_moving_var"]


def test_paths_of_mxnet_lead_to_what_is_here():
    assert mx.onnx.mx2onnx._export_model.MXNetGraph is MXNetGraph and set(MXNetGraph.registry_) >= {12, 13, 28}
    assert "Convolution" in MXNetGraph.registry_[12]
    from mxnet.onnx.mx2onnx._op_translations import _op_translations_opset13
    assert mx.onnx.mx2onnx._op_translations_opset12 is _op_translations_opset13
    assert _op_translations_opset13.layers.convolution is MXNetGraph.registry_[13]["Convolution"].function


def test_labels_count_as_inputs_where_they_have_shapes():
    sym = mx.sym.Group([mx.sym.SoftmaxOutput(X, name="a"), mx.sym.SoftmaxOutput(X, name="b")])
    for shapes, names in (([(2, 3)], ["x"]), ([(2, 3), (2,)], ["x", "a_label"])):
        assert list(_export_onnx.described(sym, {}, shapes, "float32", False, None).inputs) == names
    with pytest.raises(mx.MXNetError, match=r"in_shapes must have 2 shapes, one for each variable that is no parameter \(x, a_label\), received 3"):
        _export_onnx.described(sym, {}, [(1,), (1,), (1,)], "float32", False, None)
