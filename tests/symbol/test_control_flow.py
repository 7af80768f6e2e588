"""Loops and branches in graphs. Values, names and JSON are those of MXNet 1.9.1."""
import json

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd, sym
from mxnet.attribute import AttrScope


@pytest.fixture(autouse=True)
def fresh_names():
    """Names that start at 0, for the comparisons with MXNet's JSON."""
    AttrScope._subgraph_names.clear()
    with mx.name.NameManager():
        yield


def run(symbol, head_grads=None, **values):
    """Outputs and gradients of a bound graph."""
    arrays = {k: nd.array(v) for k, v in values.items()}
    grads = {k: nd.zeros(v.shape) for k, v in arrays.items()}
    exe = symbol.bind(mx.cpu(), arrays, grads)
    outputs = exe.forward(is_train=True)
    exe.backward([nd.ones(o.shape) for o in outputs] if head_grads is None else [nd.array(g) for g in head_grads])
    return [o.asnumpy().tolist() for o in outputs], {k: v.asnumpy().tolist() for k, v in grads.items()}


def loop():
    x, s, w = sym.var("x"), sym.var("s"), sym.var("w")
    h = w * 2
    out, state = sym.contrib.foreach(lambda row, state: (row * h + state, state * w + row), x, s)
    return sym.Group([out, state])


def test_foreach_values_and_gradients():
    outputs, grads = run(loop(), x=[[1, 2], [3, 4], [5, 6]], s=[1, -1], w=[2, 3])
    assert outputs == [[[5, 11], [15, 23], [29, 37]], [23, 9]]
    assert grads == {"x": [[11, 19], [7, 10], [5, 7]], "s": [15, 40], "w": [43, 8]}


def test_foreach_infers_shapes_and_types_of_what_the_body_uses():
    out, state = sym.contrib.foreach(lambda row, state: (sym.FullyConnected(row, num_hidden=4, name="fc"), state), sym.var("x"), sym.var("s"))
    assert out.list_arguments() == ["x", "s", "fc_weight", "fc_bias"]
    assert out.infer_shape(x=(3, 2, 5), s=(2,)) == ([(3, 2, 5), (2,), (4, 5), (4,)], [(3, 2, 4)], [])
    assert loop().infer_shape(x=(3, 2)) == ([(3, 2), (2,), (2,)], [(3, 2), (2,)], [])
    assert loop().infer_type(x="float64")[1] == [np.float64, np.float64]


def test_foreach_json():
    w = sym.var("w")
    h = sym.exp(w, name="h")
    out, states = sym.contrib.foreach(lambda row, states: (sym.FullyConnected(row * h + states[0], num_hidden=3, name="fc"), [states[0] + w]),
                                      sym.var("data"), [sym.var("state")])
    symbol = sym.Group([out] + states)
    text = symbol.tojson()
    graph = json.loads(text)
    node = graph["nodes"][6]
    assert node["attrs"] == {"in_data_locs": "[0]", "in_state_locs": "[2]", "num_args": "7", "num_out_data": "1", "num_outputs": "2",
                             "remain_locs": "[1, 3, 4, 5]"}
    assert (node["op"], node["name"]) == ("_foreach", "_foreach0")
    assert node["inputs"] == [[0, 0, 0], [1, 0, 0], [3, 0, 0], [4, 0, 0], [5, 0, 0], [2, 0, 0]]
    body, = node["subgraphs"]
    assert [n["name"] for n in body["nodes"]] == ["data-0", "h_output", "_mul0", "state-0", "_plus0", "fc_weight", "fc_bias", "fc", "w", "_plus1"]
    assert body["nodes"][2]["attrs"] == {"__subgraph_name__": "foreach0"} and "attrs" not in body["nodes"][1]
    assert (body["heads"], body["arg_nodes"]) == ([[7, 0, 0], [9, 0, 0]], [0, 1, 3, 5, 6, 8])
    assert '      "subgraphs": [\n        {\n          "nodes": [\n            {\n              "op": "null", \n' in text
    again = sym.load_json(text)
    assert again.tojson() == text
    values = {n: nd.array(np.arange(np.prod(s)).reshape(s) / 7) for n, s in
              {"data": (2, 1, 3), "state": (1, 3), "w": (1, 3), "fc_weight": (3, 3), "fc_bias": (3,)}.items()}
    for a, b in zip(symbol.eval(**values), again.eval(**values)):
        assert a.asnumpy().tolist() == b.asnumpy().tolist()


def test_nested_loops():
    out, _ = sym.contrib.foreach(lambda rows, s: sym.contrib.foreach(lambda row, t: (row + t, t + 1), rows, s), sym.var("x"), sym.var("s"))
    assert out.eval(x=nd.zeros((2, 3, 1)), s=nd.array([1.]))[0].asnumpy()[:, :, 0].tolist() == [[1, 2, 3], [4, 5, 6]]
    inner = json.loads(out.tojson())["nodes"][2]["subgraphs"][0]["nodes"][2]["subgraphs"][0]["nodes"][0]
    assert inner == {"op": "null", "name": "x-0-0", "attrs": {"__subgraph_name__": "foreach0$foreach0"}, "inputs": []}


def test_a_variable_made_in_two_bodies_is_one_argument():
    shared = []

    def body(row, state):
        if not shared:
            shared.append(sym.var("scale"))
        return row * shared[0], state

    first, state = sym.contrib.foreach(body, sym.var("x"), sym.var("s"))
    second, _ = sym.contrib.foreach(body, first, state)
    assert second.list_arguments() == ["x", "s", "scale"]
    outputs, grads = run(second, x=[[1.], [2.]], s=[0.], scale=[3.])
    assert outputs == [[[9], [18]]] and grads["scale"] == [18]


def test_batch_norm_in_a_loop_has_auxiliary_states():
    out, _ = sym.contrib.foreach(lambda row, s: (sym.BatchNorm(row, fix_gamma=False, name="bn"), s), sym.var("x"), sym.var("s"))
    assert out.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    exe = out.simple_bind(mx.cpu(), x=(2, 3, 1), s=(1,))
    exe.forward(is_train=True, x=nd.array([[[1], [2], [3]], [[4], [5], [6]]]))
    np.testing.assert_allclose(exe.aux_dict["bn_moving_mean"].asnumpy(), [0.68], rtol=1e-6)


def test_while_loop_values_gradients_and_shapes():
    x, s, w = sym.var("x"), sym.var("s"), sym.var("w")
    out, states = sym.contrib.while_loop(lambda i, v: i <= 3, lambda i, v: (v * w, (i + 1, v + i)), (x, s), max_iterations=5)
    symbol = sym.Group([out] + states)
    outputs, grads = run(symbol, [[[1.], [2.], [3.], [4.], [5.]], [1.], [1.]], x=[1], s=[2], w=[3])
    assert outputs == [[[6], [9], [15], [0], [0]], [4], [8]]
    assert grads == {"x": [28], "s": [19], "w": [23]}
    assert symbol.infer_shape(x=(1,), s=(1,), w=(1,)) == ([(1,), (1,), (1,)], [(5, 1), (1,), (1,)], [])
    never = symbol.eval(x=nd.array([9]), s=nd.array([2]), w=nd.array([3]))
    assert [a.asnumpy().tolist() for a in never] == [[[0]] * 5, [9], [2]]


def test_while_loop_json():
    w = sym.var("w")
    h = sym.exp(w, name="h")
    out, states = sym.contrib.while_loop(lambda i, s: i <= 5 * w, lambda i, s: ([i + s], [i + 1, s + i * h]), (sym.var("i"), sym.var("s")),
                                         max_iterations=10)
    node = json.loads(sym.Group(out + states).tojson())["nodes"][4]
    assert node["attrs"] == {"cond_input_locs": "[0, 1]", "func_input_locs": "[0, 2, 3]", "func_var_locs": "[0, 1]", "max_iterations": "10",
                             "num_args": "6", "num_out_data": "1", "num_outputs": "3"}
    assert node["inputs"] == [[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]]


def test_a_loop_variable_used_from_outside_keeps_its_first_value():
    x = sym.var("x")
    out, state = sym.contrib.while_loop(lambda i: i < 10, lambda i: (i, i + x), x, max_iterations=3)
    assert out.eval(x=nd.array([2]))[0].asnumpy().ravel().tolist() == [2, 4, 6]


def test_cond_values_and_gradients():
    x, w = sym.var("x"), sym.var("w")
    for value, output, grads in ((1, 3, {"x": [3], "w": [1]}), (9, 6, {"x": [1], "w": [-1]})):
        chosen = sym.contrib.cond(x < 5, lambda: x * w, lambda: x - w)
        assert run(chosen, x=[value], w=[3]) == ([[output]], grads)


def test_cond_json():
    a, b, h = sym.var("a"), sym.var("b"), sym.exp(sym.var("w"), name="h")
    out = sym.contrib.cond(a * b < 5, lambda: (a + 5) * (b + 5), lambda: (a - 5) * h)
    node = json.loads(out.tojson())["nodes"][6]
    assert node["attrs"] == {"cond_input_locs": "[0]", "else_input_locs": "[1, 3]", "num_args": "7", "num_outputs": "1", "then_input_locs": "[1, 2]"}
    assert [[n["name"] for n in g["nodes"]] for g in node["subgraphs"]] == [
        ["_lesser_scalar0_output", "identity0"], ["a", "_plusscalar0", "b", "_plusscalar1", "_mul1"], ["a", "_minusscalar0", "h_output", "_mul2"]]


def test_a_node_without_its_graphs_cannot_be_bound():
    made = mx.symbol.functions.operator_function("_cond")(cond_input_locs=(), then_input_locs=(), else_input_locs=(), num_outputs=1)
    with pytest.raises(mx.MXNetError, match="_cond needs the graphs of its branches"):
        mx.gluon.cached_op.CachedOp(made)
