import pytest
import torch

import mxnet as mx
from mxnet.graph import lower
from mxnet.graph.lower import call_attributes

CPU = torch.device("cpu")


def test_a_module_takes_the_variables_and_returns_a_tuple():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    module = lower((a - b * 2).handle, False, CPU)
    assert [n.meta["node"].name for n in module.graph.nodes if n.op == "placeholder"] == ["a", "b"]
    found = module(torch.tensor([5.0]), torch.tensor([1.0]))
    assert isinstance(found, tuple) and found[0].tolist() == [3]


def test_nodes_know_what_they_came_from():
    symbol = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc")
    nodes = [n for n in lower(symbol.handle, False, CPU).graph.nodes if n.op != "output"]
    assert [n.meta["node"].name for n in nodes] == ["x", "fc_weight", "fc_bias", "fc"]


def test_outputs_of_one_node_are_taken_apart_where_they_are_used():
    parts = mx.sym.split(mx.sym.var("x"), num_outputs=3, axis=0)
    x = torch.tensor([[1.0], [2.0], [3.0]])
    module = lower((parts[2] - parts[0]).handle, False, CPU)
    assert module(x)[0].tolist() == [[2]]
    assert len([n for n in module.graph.nodes if n.op == "call_function"]) == 4  # the operator, two of three outputs, and the difference


def test_training_is_told_to_operators_that_ask():
    dropout = mx.sym.Dropout(mx.sym.var("x"), p=0.5)
    x = torch.ones(1000)
    mx.random.seed(0)
    assert lower(dropout.handle, False, CPU)(x)[0].tolist() == [1] * 1000
    assert set(lower(dropout.handle, True, CPU)(x)[0].tolist()) == {0, 2}


def test_sources_make_their_arrays_on_the_device_of_the_graph():
    node = mx.sym.zeros((2,)).handle[0][0]
    assert call_attributes(node, False, torch.device("meta"))[node.op.wants_device] == torch.device("meta")
    assert lower(mx.sym.ones((2,)).handle, False, torch.device("meta"))()[0].device.type == "meta"
    on_host = mx.sym.zeros((2,), ctx=mx.cpu()).handle[0][0]
    assert call_attributes(on_host, False, torch.device("meta"))[node.op.wants_device] == CPU


def test_open_sizes_are_given():
    symbol = mx.sym.zeros((0, 2)) + mx.sym.var("x")
    source = next(n for n in symbol._nodes() if n.name.startswith("_zeros") or n.op is not None and not n.inputs)
    module = lower(symbol.handle, False, CPU, source_shapes={id(source): (3, 2)})
    assert module(torch.ones(3, 2))[0].tolist() == [[1, 1]] * 3
    symbol = mx.sym.arange(1, step=2, infer_range=True, name="a") + mx.sym.var("x")
    source = next(n for n in symbol._nodes() if n.name == "a")
    assert lower(symbol.handle, False, CPU, source_shapes={id(source): (3,)})(torch.zeros(3))[0].tolist() == [1, 3, 5]


def test_groups_run_on_their_devices():
    with mx.AttrScope(ctx_group="far"):
        x = mx.sym.exp(mx.sym.var("x"), name="far")
    near = mx.sym.negative(x, name="near")
    module = lower(near.handle, False, CPU, {"far": torch.device("meta")})
    moves = [n for n in module.graph.nodes if n.op == "call_method"]
    assert [(n.target, n.args[0].meta["node"].name, n.args[1]) for n in moves] == [("to", "far", CPU)]


NAMES = ["a.b", "a_b", "a:0", "a/0", "é", "ü", "0x", "inf", "nan", "device", "torch", "self", "class",
         "variable_1", "input", "def f():", "a b", "'", "\\", "\n"]


@pytest.mark.parametrize("training", [False, True])
def test_variables_may_have_any_name(training):
    """Some are one identifier when made legal, some mean something in the code that is generated."""
    variables = [mx.sym.var(name) for name in NAMES]
    total = variables[0]
    for i, variable in enumerate(variables[1:], 2):
        total = total + i * variable
    executor = total.bind(mx.cpu(), {name: mx.nd.array([10.0 ** (i % 5)]) for i, name in enumerate(NAMES)})
    assert executor.forward(is_train=training)[0].asscalar() == sum((i + 1) * 10.0 ** (i % 5) for i in range(len(NAMES)))
