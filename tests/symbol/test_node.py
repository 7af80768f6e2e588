import pytest

import mxnet as mx
from mxnet.symbol.node import auxiliary, copy_graph, monitored_inputs, topological


def test_deep_graphs_do_not_exhaust_the_stack():
    x = mx.sym.var("x")
    for _ in range(5000):
        x = x + 1
    assert len(x.get_internals()) == 5001
    assert mx.sym.load_json(x.tojson()).eval(x=mx.nd.zeros((1,)))[0].asscalar() == 5000


def fc():
    return mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc").handle[0][0]


def test_a_node_knows_its_inputs_and_outputs():
    node = fc()
    assert repr(node) == "<FullyConnected fc>" and repr(node.inputs[0][0]) == "<variable x>"
    assert node.input_names() == ("data", "weight", "bias") and (node.num_outputs(), node.output_names()) == (1, ["fc_output"])
    assert node.parsed()["num_hidden"] == 2 and node.parsed() is node.parsed()
    parts = mx.sym.split(mx.sym.var("x"), num_outputs=2, name="s").handle[0][0]
    assert (parts.num_outputs(), parts.output_names()) == (2, ["s_output0", "s_output1"])
    assert parts.inputs[0][0].num_outputs() == 1 and parts.inputs[0][0].output_names() == ["x"]


def test_nodes_come_after_their_inputs_and_once():
    x = mx.sym.exp(mx.sym.var("x"), name="e")
    both = mx.sym.Group([mx.sym.negative(x, name="n"), x * mx.sym.var("y")])
    assert [n.name for n in topological(both.handle)][:4] == ["x", "e", "n", "y"]
    assert len(topological(both.handle)) == 5


def test_variables_that_are_written_to_are_auxiliary():
    net = mx.sym.BatchNorm(mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc"), name="bn")
    nodes = topological(net.handle)
    assert [n.name for n in nodes if id(n) in auxiliary(nodes)] == ["bn_moving_mean", "bn_moving_var"]


def test_a_copy_shares_no_node():
    out = fc()
    (copied, index), = copy_graph([(out, 0)])
    assert copied is not out and index == 0 and (copied.name, copied.attrs) == (out.name, out.attrs)
    assert [n.name for n, _ in copied.inputs] == [n.name for n, _ in out.inputs]
    assert all(a is not b for (a, _), (b, _) in zip(copied.inputs, out.inputs))
    copied.attrs["num_hidden"] = "3"
    assert out.attrs["num_hidden"] == "2"


@pytest.mark.parametrize("make, expected", [
    (lambda x: mx.sym.Pooling(x, kernel=(1, 1)), ("data",)), (lambda x: mx.sym.exp(x), ("input0",)), (lambda x: mx.sym.softmax(x), ("data",)),
    (lambda x: mx.sym.FullyConnected(x, num_hidden=1), ("data", "weight", "bias"))])
def test_names_that_a_monitor_is_told(make, expected):
    assert tuple(monitored_inputs(make(mx.sym.var("x")).handle[0][0])) == expected
