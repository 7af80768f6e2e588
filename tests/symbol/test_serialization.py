import json
import re

import pytest

import mxnet as mx

# tojson() of MXNet 1.9.1 for BatchNorm(var('x'), name='bn', fix_gamma=False).
BATCH_NORM = """{
  "nodes": [
    {
      "op": "null", 
      "name": "x", 
      "inputs": []
    }, 
    {
      "op": "null", 
      "name": "bn_gamma", 
      "attrs": {"fix_gamma": "False"}, 
      "inputs": []
    }, 
    {
      "op": "null", 
      "name": "bn_beta", 
      "attrs": {"fix_gamma": "False"}, 
      "inputs": []
    }, 
    {
      "op": "null", 
      "name": "bn_moving_mean", 
      "attrs": {
        "__init__": "[\\"zero\\", {}]", 
        "fix_gamma": "False"
      }, 
      "inputs": []
    }, 
    {
      "op": "null", 
      "name": "bn_moving_var", 
      "attrs": {
        "__init__": "[\\"one\\", {}]", 
        "fix_gamma": "False"
      }, 
      "inputs": []
    }, 
    {
      "op": "BatchNorm", 
      "name": "bn", 
      "attrs": {"fix_gamma": "False"}, 
      "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 1], [4, 0, 1]]
    }
  ], 
  "arg_nodes": [0, 1, 2, 3, 4], 
  "node_row_ptr": [
    0, 
    1, 
    2, 
    3, 
    4, 
    5, 
    8
  ], 
  "heads": [[5, 0, 0]], 
  "attrs": {"mxnet_version": ["int", 10901]}
}"""  # noqa: W291


def graph(**changes):
    base = {"nodes": [{"op": "null", "name": "x", "inputs": []},
                      {"op": "Activation", "name": "act", "attrs": {"act_type": "relu"}, "inputs": [[0, 0, 0]]}],
            "arg_nodes": [0], "heads": [[1, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}}
    return json.dumps({**base, **changes})


def test_loading_and_writing_give_the_same_text():
    net = mx.sym.load_json(BATCH_NORM)
    assert net.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    again = json.loads(net.tojson())
    assert again["nodes"] == json.loads(BATCH_NORM)["nodes"]


def test_long_lists_are_written_line_by_line():
    x = mx.sym.var("x")
    net = mx.sym.Group([x + i for i in range(11)])
    text = net.tojson()
    assert '"heads": [\n    [1, 0, 0], \n    [2, 0, 0], \n' in text
    assert '"arg_nodes": [0], \n' in text


def test_files(tmp_path):
    f = str(tmp_path / "net-symbol.json")
    net = mx.sym.Activation(mx.sym.var("x"), act_type="relu", name="act")
    net.save(f)
    assert mx.sym.load(f).tojson() == net.tojson()
    with pytest.raises(mx.MXNetError, match="cannot read .*missing.json"):
        mx.sym.load(str(tmp_path / "missing.json"))


X = {"op": "null", "name": "x", "inputs": []}


def activation(attrs, source=0, op="Activation"):
    """A graph of one operator `act`, after the variable `x`."""
    return graph(nodes=[X, {"op": op, "name": "act", "attrs": attrs, "inputs": [[source, 0, 0]]}])


@pytest.mark.parametrize(("text", "match"), [
    ("zzz", "JSON: not a valid Symbol: not JSON"),
    ("[]", "the graph must be an object, received "),
    ("{}", "the field 'nodes' is missing"),
    (graph()[:80], "not JSON"),
    (graph(heads=[[7, 0, 0]]), r"head \[7, 0, 0\] refers to no node"),
    (graph(heads=[[1, 3, 0]]), "asks for output 3 of 'act', which has 1"),
    (activation({}, op="Activatoin"), "node 'act': operator 'Activatoin' is not registered; did you mean 'Activation'"),
    (activation({"act_type": "zelu"}), "node 'act': Activation: `act_type` must be"),
    (activation({"act_type": "relu", "act": "1"}), "cannot find argument 'act'"),
    (activation({"act_type": "relu"}, source=1), "has input 1, which does not come before it"),
    (graph(nodes=[{"name": "x"}]), "node 0 has no field 'op'"),
    (graph(nodes=["x"]), 'node 0 must be an object, received "x"'),
])
def test_bad_files(text, match):
    with pytest.raises(mx.MXNetError, match=match):
        mx.sym.load_json(text)


def test_files_of_version_0_8():
    # Attributes in "param", annotations in "attr", no auxiliary states, no version.
    old = json.dumps({"nodes": [
        {"op": "null", "param": {}, "name": "data", "inputs": [], "backward_source_id": -1},
        {"op": "null", "param": {}, "name": "bn_gamma", "inputs": [], "backward_source_id": -1},
        {"op": "null", "param": {}, "name": "bn_beta", "inputs": [], "backward_source_id": -1},
        {"op": "BatchNorm", "param": {"eps": "0.001", "fix_gamma": "True"}, "name": "bn", "attr": {"lr_mult": "3", "gamma_lr_mult": "5"},
         "inputs": [[0, 0], [1, 0], [2, 0]], "backward_source_id": -1}], "arg_nodes": [0, 1, 2], "heads": [[3, 0]]})
    net = mx.sym.load_json(old)
    assert net.list_arguments() == ["data", "bn_gamma", "bn_beta"]
    assert net.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    attrs = net.attr_dict()
    assert attrs["bn"]["__lr_mult__"] == "3" and attrs["bn_gamma"]["__lr_mult__"] == "5"


def test_argmax_over_all_axes_before_0_9_5():
    def axis(version):
        node = {"op": "argmax", "name": "a", "attr": {"axis": "-1"}, "inputs": [[0, 0, 0]]}
        text = json.dumps({"nodes": [X, node], "arg_nodes": [0], "heads": [[1, 0, 0]], "attrs": {"mxnet_version": ["int", version]}})
        return mx.sym.load_json(text).attr("axis")

    assert axis(900) is None and axis(10901) == "-1"


def _loop():
    return mx.sym.contrib.foreach(lambda row, s: (row + s, row * s), mx.sym.var("rows"), mx.sym.var("state"))[0].tojson()


@pytest.mark.parametrize("pattern, put, match", [
    (r'"num_outputs": "\d+"', '"num_outputs": "5"', "_foreach: num_outputs=5 does not fit graphs of .2. outputs"),
    (r'"num_out_data": "\d+"', '"num_out_data": "-7"', "num_out_data=-7 do not fit 1 states"),
    (r'"in_data_locs": "[^"]*"', '"in_data_locs": "(9,)"', "_foreach: "),
    (r'"subgraphs": \[', '"subgraphs": [7, ', "the graph must be an object, received 7"),
])
def test_loops_whose_graphs_do_not_fit(pattern, put, match):
    assert len(mx.sym.load_json(_loop()).list_outputs()) == 1
    text, count = re.subn(pattern, put, _loop(), count=1)
    assert count == 1
    with pytest.raises(mx.MXNetError, match=match):
        mx.sym.load_json(text)


def test_outputs_and_numbers_that_no_graph_has():
    text = mx.sym.split(mx.sym.var("x"), num_outputs=2, name="cut").tojson()
    for bad, match in (("[[0, -5, 0]]", r"each number of node 1 \('cut'\): 'inputs'\[0\] must be an integer of at least 0, received -5"),
                       ("[[0, 1e999, 0]]", "received Infinity"), ("[[1.5, 0, 0]]", "received 1.5"), ("[[0, 7, 0]]", "uses output 7 of 'x'")):
        with pytest.raises(mx.MXNetError, match=match):
            mx.sym.load_json(text.replace('"inputs": [[0, 0, 0]]', f'"inputs": {bad}'))
    with pytest.raises(mx.MXNetError, match="not a valid Symbol: each number of 'heads'.0. must be an integer of at least 0, received Infinity"):
        mx.sym.load_json(text.replace('"heads": [[1, ', '"heads": [[1e999, '))
    with pytest.raises(mx.MXNetError, match="node 1: 'op' must be a string, received 5"):
        mx.sym.load_json(text.replace('"op": "SliceChannel"', '"op": 5'))
    with pytest.raises(mx.MXNetError, match="not a valid Symbol"):
        mx.sym.load_json('{"nodes": ' + "[" * 100_000)
    with pytest.raises(mx.MXNetError, match="variable 'x': a shape is a tuple of sizes, received '.0, 1.5.'"):
        mx.sym.load_json(mx.sym.relu(mx.sym.var("x", shape=(0, 3))).tojson().replace("(0, 3)", "(0, 1.5)")).infer_shape_partial()


VALUES = (None, True, 3, -1, 10 ** 30, 1.5, "x", [], [0], [[0, 0, 0]], {}, {"a": 1})


def _places(value, place=()):
    """All places in a JSON value, as tuples of keys and positions."""
    yield place
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _places(inner, (*place, key))


def _replaced(value, place, new):
    if not place:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = _replaced(value[place[0]], place[1:], new)
    return copy


OLD = {"nodes": [{"op": "null", "param": {}, "name": "x", "inputs": [], "backward_source_id": -1},
                 {"op": "Activation", "param": {"act_type": "relu"}, "attr": {"lr_mult": "3"}, "name": "act", "inputs": [[0, 0]],
                  "backward_source_id": -1}], "arg_nodes": [0], "heads": [[1, 0]]}


@pytest.mark.parametrize("np_shape", [False, True])
@pytest.mark.parametrize("text", [graph(node_row_ptr=[0, 1, 2]), json.dumps(OLD), _loop()])
def test_each_value_of_another_json_type_is_an_error_that_names_its_place(text, np_shape):
    """Every value of a file, replaced by every JSON type: a file is read, or refused with an MXNetError; another type is always refused."""
    valid = json.loads(text)
    kinds = {"nodes": list, "arg_nodes": list, "heads": list, "node_row_ptr": list, "attrs": dict, "attr": dict, "param": dict, "op": str,
             "name": str, "inputs": list, "subgraphs": list, "backward_source_id": int}
    with mx.util.np_shape(np_shape):
        for place in _places(valid):
            kind = kinds.get(place[-1]) if place else dict
            if len(place) > 1 and place[-2] in ("attrs", "attr", "param"):
                kind = list if place[-1] == "mxnet_version" else str
            elif place and isinstance(place[-1], int) and kind is None:
                kind = type(_at(valid, place))
            for value in VALUES:
                try:
                    mx.sym.load_json(json.dumps(_replaced(valid, place, value)))
                except mx.MXNetError as error:
                    assert str(error).startswith("JSON: "), (place, value)
                else:
                    assert kind is None or type(value) is kind, (place, value)


def _at(value, place):
    for key in place:
        value = value[key]
    return value


@pytest.mark.parametrize("change, message", [
    ({"attrs": 3}, "'attrs' must be an object, received 3"),
    ({"attrs": {"mxnet_version": 3}}, "'attrs': 'mxnet_version' must be .type, value., received 3"),
    ({"attrs": {"mxnet_version": ["int", "x"]}}, "'attrs': the number of 'mxnet_version' must be an integer of at least 0, received \"x\""),
    ({"heads": 3}, "'heads' must be a list, received 3"),
    ({"heads": [3]}, r"'heads'\[0\] must be a list, received 3"),
    ({"heads": [[1]]}, r"'heads'\[0\] must be \[node, output\] or \[node, output, version\], received \[1\]"),
    ({"arg_nodes": ["x"]}, "each entry of 'arg_nodes' must be an integer of at least 0, received \"x\""),
    ({"arg_nodes": [7]}, "'arg_nodes' refers to node 7, of 2 nodes"),
    ({"nodes": {}}, "'nodes' must be a list, received {}"),
    ({"nodes": [{**X, "attrs": [1]}]}, r"node 0 \('x'\): 'attrs' must be an object, received \[1\]"),
    ({"nodes": [{**X, "attrs": {"__lr_mult__": 2}}]}, r"node 0 \('x'\): the attribute '__lr_mult__' must be a string, received 2"),
    ({"nodes": [{**X, "name": None}]}, "node 0: 'name' must be a string, received null"),
    ({"nodes": [{**X, "inputs": 5}]}, r"node 0 \('x'\): 'inputs' must be a list, received 5"),
])
def test_fields_of_another_type(change, message):
    with pytest.raises(mx.MXNetError, match=f"^JSON: not a valid Symbol: {message}$"):
        mx.sym.load_json(graph(**change))
