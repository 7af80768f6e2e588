import json

import numpy as np
import pytest

import mxnet as mx
from mxnet.onnx.mx2onnx.network import parameter_arrays
from onnx_checks import check, exported, run

X = mx.sym.var("x")
ONES = np.ones((2, 3), np.float32)
MOMENTS = {f"b_{n}": np.ones(3, np.float32) for n in ("gamma", "beta", "moving_mean", "moving_var")}


def test_outputs_have_mxnets_names_in_the_order_of_the_symbol():
    split = mx.sym.split(X, num_outputs=3, name="s")
    model = check(mx.sym.Group([split[1], mx.sym.relu(X, name="r"), split[0], X, split[1]]), {"x": ONES})
    assert [o.name for o in model.graph.output] == ["s1", "r", "s0", "x_output", "s1_1"]


def test_nodes_of_one_name_and_parameters_that_nothing_needs():
    sym = mx.sym.relu(mx.sym.relu(X, name="same") - 1, name="same")
    model = check(sym, {"x": ONES}, {})
    assert [o.name for o in model.graph.output] == ["same_1"]
    model = exported(mx.sym.BatchNorm(X, name="b"), {"x": ONES}, MOMENTS)
    assert [i.name for i in model.graph.input] == ["x"] and "b_gamma" not in [i.name for i in model.graph.initializer]


def test_an_output_that_onnx_lacks_is_refused():
    sym = mx.sym.BatchNorm(X, name="b", output_mean_var=True)
    check(sym[0], {"x": ONES}, MOMENTS)
    with pytest.raises(mx.MXNetError, match="output 1 of BatchNorm 'b' has no counterpart in ONNX; export a network without it"):
        exported(sym, {"x": ONES}, MOMENTS)
    with pytest.raises(mx.MXNetError, match="Activation 'a' needs output 1 of BatchNorm 'b', which has no counterpart in ONNX"):
        exported(mx.sym.Activation(sym[1], act_type="relu", name="a"), {"x": ONES}, MOMENTS)


def test_attributes_without_counterpart_are_named():
    with pytest.raises(mx.MXNetError, match="LayerNorm 'n' cannot be written to an ONNX file: ONNX has no counterpart for output_mean_var=True"):
        exported(mx.sym.LayerNorm(X, name="n", output_mean_var=True), {"x": ONES}, {"n_gamma": ONES[0], "n_beta": ONES[0]})


def test_labels_of_several_output_layers_are_left_out():
    sym = mx.sym.Group([mx.sym.SoftmaxOutput(X, name="a"), mx.sym.SoftmaxOutput(X + 1, name="b")])
    model = exported(sym, {"x": ONES})
    assert [i.name for i in model.graph.input] == ["x"] and len(run(model, {"x": ONES})) == 2


def test_parameters_lose_the_prefixes_of_files():
    found = parameter_arrays({"arg:w": mx.nd.ones(2), "aux:m": np.zeros(1), "arg_b": mx.nd.ones(1)})
    assert {k: v.tolist() for k, v in found.items()} == {"w": [1, 1], "m": [0], "arg_b": [1]}
    narrow = parameter_arrays({"w": mx.nd.array([1.5, -2], dtype="bfloat16")})["w"]
    assert narrow.dtype.name == "bfloat16" and narrow.astype(np.float32).tolist() == [1.5, -2]


def test_parameters_are_not_copied():
    weight = mx.nd.ones((2, 3))
    assert np.shares_memory(parameter_arrays({"w": weight})["w"], weight.as_torch().numpy())


def test_a_node_with_more_inputs_than_its_operator_takes():
    net = json.loads(mx.sym.BatchNorm(mx.sym.var("data"), name="bn").tojson())
    next(n for n in net["nodes"] if n["op"] == "BatchNorm")["inputs"] += [[0, 0, 0]] * 21
    parameters = {f"bn_{k}": ONES[0] for k in ("gamma", "beta", "moving_mean", "moving_var")}
    with pytest.raises(mx.MXNetError, match="BatchNorm 'bn' cannot be written to an ONNX file: with 26 inputs it is none that can run"):
        exported(mx.sym.load_json(json.dumps(net)), {"data": ONES}, parameters)
