"""Nodes that hold the graphs that they stand for."""
import json

import pytest

import mxnet as mx
from mxnet import nd, sym


def fused(**attrs):
    """JSON of a fused convolution, as MXNet 1.5 wrote it, with these attributes."""
    net = sym.Activation(sym.Convolution(sym.var("data"), num_filter=2, kernel=(1, 1), name="c"), act_type="relu", name="r")
    graph = json.loads(net.get_backend_symbol("MKLDNN").tojson())
    node = graph["nodes"][-1]
    node["attrs"] = attrs
    graph["attrs"]["mxnet_version"][1] = 10500
    return graph, node


def test_files_of_old_versions_call_activations_relu():
    graph, _ = fused(with_relu="true")
    net = sym.load_json(json.dumps(graph))
    assert net.list_attr() == {"with_act": "true"} and net.list_arguments() == ["data", "c_weight", "c_bias"]
    out = net.eval(data=nd.array([[[[-1, 2]]]]), c_weight=nd.ones((2, 1, 1, 1)), c_bias=nd.array([0, 1]))[0]
    assert out.asnumpy().tolist() == [[[[0, 2]], [[0, 3]]]]
    assert net.infer_shape(data=(1, 3, 5, 5)) == ([(1, 3, 5, 5), (2, 3, 1, 1), (2,)], [(1, 2, 5, 5)], [])


def test_integers_and_their_ranges():
    graph, node = fused(with_act="true", quantized="true", min_calib_range="0", max_calib_range="51.1")
    for name in ("low", "high"):
        graph["nodes"].insert(-1, {"op": "null", "name": name, "inputs": []})
        node["inputs"].append([len(graph["nodes"]) - 2, 0, 0])
    graph["arg_nodes"], graph["heads"] = [0, 1, 2, 3, 4], [[5, 0, 0], [5, 1, 0], [5, 2, 0]]
    net = sym.load_json(json.dumps(graph))
    assert net.list_outputs() == [f"{net.name}_output", f"{net.name}_output_min", f"{net.name}_output_max"]
    types, results, _ = net.infer_type(data="int8")
    assert [t.__name__ for t in (*types, *results)] == ["int8", *["float32"] * 4, "uint8", "float32", "float32"]
    out = net.bind(mx.cpu(), {"data": nd.array([[[[-51, 102]]]], dtype="int8"), "c_weight": nd.array([1, -1]).reshape((2, 1, 1, 1)),
                              "c_bias": nd.array([0, 20]), "low": nd.array([-25.5]), "high": nd.array([25.5])}).forward()
    assert out[0].asnumpy().tolist() == [[[[0, 102]], [[151, 0]]]] and out[0].dtype.__name__ == "uint8"
    assert (out[1].asscalar(), round(float(out[2].asscalar()), 4)) == (0, 51.1)
    with pytest.raises(mx.MXNetError, match="_sg_mkldnn_conv: `data` must be int8 or uint8 where it is quantized, received torch.float64"):
        net.infer_type(data="float64")


@pytest.mark.parametrize("change, match", [
    (lambda graph, node: node.pop("subgraphs"), "_sg_mkldnn_conv has 1 subgraphs, the file holds 0"),
    (lambda graph, node: node["inputs"].pop(), "has the inputs data, weight, bias; received 2, and a graph of 3 variables"),
    (lambda graph, node: node["subgraphs"][0]["nodes"].__setitem__(-1, {"op": "tanh", "name": "t", "inputs": [[3, 0, 0]]}),
     "starts with Convolution and goes on with a batch norm, a sum and an activation, received Convolution, tanh"),
    (lambda graph, node: node["attrs"].update(quantized="true"), "has the inputs data, weight, bias, data_min, data_max; received 3"),
])
def test_malformed_files(change, match):
    graph, node = fused(with_act="true")
    change(graph, node)
    with pytest.raises(mx.MXNetError, match=match):
        sym.load_json(json.dumps(graph))


def test_a_call_without_a_graph():
    with pytest.raises(mx.MXNetError, match="_sg_mkldnn_conv needs the graph that it stands for"):
        sym._internal._sg_mkldnn_conv(sym.var("x"))
    with pytest.raises(mx.MXNetError, match="_CachedOp needs the graph that it runs, as JSON"):
        sym._internal._CachedOp(sym.var("x"))


def test_a_graph_as_one_node():
    data, gamma, beta, mean, var = inputs = [sym.var(n) for n in ("x", "g", "b", "m", "v")]
    inner = sym.BatchNorm(*inputs, fix_gamma=False, name="bn") * 2
    net = sym._internal._CachedOp(*inputs, subgraph=inner.tojson(), name="whole") + 1
    assert net.list_auxiliary_states() == ["m", "v"] and sym.load_json(net.tojson()).tojson() == net.tojson()
    assert net.infer_shape(x=(3, 4))[0] == [(3, 4), (4,), (4,)]
    ones = {"x": nd.array([[1, 3]]), "g": nd.ones(2), "b": nd.array([0, 1])}
    grads = {name: nd.zeros(array.shape) for name, array in ones.items()}
    executor = net.bind(mx.cpu(), ones, grads, aux_states={"m": nd.ones(2), "v": nd.ones(2)})
    assert executor.forward()[0].asnumpy().round(3).tolist() == [[1, pytest.approx(6.998)]]
    executor.forward(is_train=True)
    executor.backward(nd.ones((1, 2)))
    assert grads["b"].asnumpy().tolist() == [2, 2] and executor.aux_dict["m"].asnumpy().tolist() == pytest.approx([1, 1.2])


def test_sparse_arrays_go_through_the_nodes_that_it_stands_for():
    inner = sym.dot(sym.var("x"), sym.var("w")) + 1
    net = sym._internal._CachedOp(sym.var("x"), sym.var("w"), subgraph=inner.tojson())
    data = {"x": nd.array([[0, 2], [0, 0]]).tostype("csr"), "w": nd.array([[1, 2], [3, 4]])}
    assert net.bind(mx.cpu(), data).forward()[0].asnumpy().tolist() == [[7, 9], [1, 1]]


def test_library_is_not_here():
    from mxnet.base import _LIB, NDArrayHandle, SymbolHandle
    assert SymbolHandle(3).value == NDArrayHandle(3).value == 3
    with pytest.raises(mx.MXNetError, match="_LIB.MXFoo: MXNet's C interface is not here"):
        _LIB.MXFoo
