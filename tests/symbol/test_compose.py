import numpy as np
import pytest

import mxnet as mx
from mxnet.ops import get
from mxnet.symbol.compose import create, group


@pytest.fixture(autouse=True)
def fresh_names():
    with mx.name.NameManager():
        yield


# What MXNet 1.9.1 calls them: (operator in JSON, name, attributes).
@pytest.mark.parametrize(("make", "expected"), [
    (lambda a, b: a + b, ("elemwise_add", "_plus0", {})),
    (lambda a, b: 2 - a, ("_rminus_scalar", "_rminusscalar0", {"scalar": "2"})),
    (lambda a, b: 2 ** a, ("_rpower_scalar", "_rpower_scalar0", {"scalar": "2"})),
    (lambda a, b: -a, ("_mul_scalar", "_mulscalar0", {"scalar": "-1.0"})),
    (lambda a, b: a > 1, ("_greater_scalar", "_greater_scalar0", {"scalar": "1"})),
    (lambda a, b: mx.sym.maximum(a, 2), ("_maximum_scalar", "_maximumscalar0", {"scalar": "2"})),
    (lambda a, b: mx.sym.split(a, num_outputs=2), ("SliceChannel", "split0", {"num_outputs": "2"})),
    (lambda a, b: mx.sym.concat(a, b), ("Concat", "concat0", {"num_args": "2"})),
    (lambda a, b: mx.sym.swapaxes(a, 0, 1), ("SwapAxis", "swapaxes0", {"dim1": "0", "dim2": "1"})),
    (lambda a, b: mx.sym.cast(a, dtype=np.float16), ("Cast", "cast0", {"dtype": "float16"})),
    (lambda a, b: mx.sym.linalg.gemm2(a, b), ("_linalg_gemm2", "gemm20", {})),
    (lambda a, b: mx.sym.zeros((2,)), ("_zeros", "_zeros0", {"dtype": "float32", "shape": "(2,)"})),
    (lambda a, b: a.sum(axis=1), ("sum", "sum0", {"axis": "1"})),
])
def test_operators_and_generated_names(make, expected):
    node = make(mx.sym.var("a"), mx.sym.var("b")).handle[0][0]
    assert (node.op.name, node.name, node.attrs) == expected


def test_attributes_reach_the_variables_an_operator_makes():
    with mx.AttrScope(ctx_group="dev1"):
        net = mx.sym.Convolution(mx.sym.var("data"), kernel=(1, 1), num_filter=1, name="conv", lr_mult=1)
    attrs = net.attr_dict()
    assert attrs["conv"] == {"kernel": "(1, 1)", "num_filter": "1", "__ctx_group__": "dev1", "ctx_group": "dev1", "__lr_mult__": "1", "lr_mult": "1"}
    assert attrs["conv_weight"] == attrs["conv"]
    assert net.attr("kernel") == "(1, 1)" and net.attr("nothing") is None
    v = mx.sym.var("v", shape=(2, 0), lr_mult=2, dtype="float16", init=mx.init.One())
    assert v.list_attr() == {"__shape__": "(2, 0)", "__lr_mult__": "2", "lr_mult": "2", "__dtype__": "2", "__init__": '["one", {}]'}


def test_composition():
    inner = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=10, name="fc1")
    outer = mx.sym.FullyConnected(name="fc3", num_hidden=10)
    net = outer(fc3_data=inner, name="composed")
    assert net.list_arguments() == ["data", "fc1_weight", "fc1_bias", "fc3_weight", "fc3_bias"]
    assert outer.list_arguments() == ["fc3_data", "fc3_weight", "fc3_bias"]
    with pytest.raises(mx.MXNetError, match="argument name nothing not found"):
        outer(nothing=inner)


def test_what_is_missing_becomes_a_variable():
    net = mx.sym.BatchNorm(mx.sym.var("x"), name="bn")
    assert net.list_inputs() == ["x", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var"]
    assert mx.sym.LeakyReLU(act_type="prelu", name="p").attr_dict()["p_gamma"]["__init__"] == '["Constant", {"value": 0.25}]'


def test_an_optional_input_given_by_name_stands():
    x, b = mx.sym.var("x"), mx.sym.var("b")
    assert mx.sym.FullyConnected(data=x, bias=b, num_hidden=2, no_bias=True, name="fc").list_arguments() == ["x", "fc_weight", "b"]


def test_inputs_that_do_not_fit():
    x, y = mx.sym.var("x"), mx.sym.var("y")
    op = get("FullyConnected")
    with pytest.raises(mx.MXNetError, match="FullyConnected: no input is called 'wait'; its inputs are data, weight, bias"):
        create(op, {"wait": x}, {"num_hidden": 2})
    with pytest.raises(mx.MXNetError, match=r"FullyConnected takes 3 inputs \(data, weight, bias\), received 4"):
        create(op, [x, y, x, y], {"num_hidden": 2})
    with pytest.raises(mx.MXNetError, match=r"^setting variable attributes with weight_lr_mult is deprecated. Please instead use\n"
                                           r"w = mx.sym.Variable\(..., lr_mult=2\)\nFullyConnected\(..., weight=w\)$"):
        mx.sym.FullyConnected(x, num_hidden=2, weight_lr_mult=2)


def test_a_variable_carries_what_is_known_of_it():
    v = mx.sym.var("v", attr={"mood": "good"}, shape=3, lr_mult=0.5, wd_mult=0, dtype="float16", init="zeros", stype="row_sparse", __layout__="NC")
    assert v.list_attr() == {"mood": "good", "__shape__": "(3,)", "__lr_mult__": "0.5", "lr_mult": "0.5", "__wd_mult__": "0", "wd_mult": "0",
                             "__dtype__": "2", "__init__": "zeros", "__storage_type__": "1", "__layout__": "NC"}
    with pytest.raises(ValueError, match="var: the annotation `mood` must start and end with two underscores, as in `__mood__`"):
        mx.sym.var("v", mood="good")
    assert mx.sym.Variable is mx.sym.var


def test_a_group_has_all_outputs():
    x = mx.sym.var("x")
    halves = mx.sym.split(x, num_outputs=2, name="s")
    assert mx.sym.Group([halves, x]).list_outputs() == ["s_output0", "s_output1", "x"]
    for wrong in ([], None, [x, 3]):
        with pytest.raises(TypeError, match="list of symbols"):
            group(wrong)


def test_symbols_of_numpy_stay_so():
    x = mx.sym.var("x").as_np_ndarray()
    assert type(mx.sym.FullyConnected(x, num_hidden=2)) is type(x) and type(x) is not mx.sym.Symbol


def test_annotations_of_operators_are_kept_as_texts():
    weighted = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=3, name="fc", attr={"__init__": mx.init.Normal(0.5), "__group__": 2})
    assert weighted.attr_dict()["fc"] == {"__init__": '["normal", {"sigma": 0.5}]', "__group__": "2", "num_hidden": "3"}
    assert mx.sym.load_json(weighted.tojson()).attr("__group__") == "2"
    assert weighted.simple_bind(mx.cpu(), x=(2, 4)).forward()[0].shape == (2, 3)
    with pytest.raises(ValueError, match="var: annotations must be strings, received __group__=2; an initializer is given as `init`"):
        mx.sym.var("x", attr={"__group__": 2})


def test_a_type_may_be_that_of_an_array():
    y = mx.nd.ones((2,), dtype="int32")
    assert mx.sym.var("x").astype(y).attr("dtype") == mx.sym.zeros((2,), dtype=y).attr("dtype") == "int32"
    assert mx.sym.var("x", dtype=y).attr("__dtype__") == "4"


def scoped(**attributes):
    with mx.AttrScope(**attributes):
        return mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")


WAYS = {"attr": lambda **attributes: mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc", attr=attributes),
        "given": lambda **attributes: mx.sym.FullyConnected(mx.sym.var("data"), mx.sym.var("w"), num_hidden=3, attr=attributes),
        "set": lambda **attributes: mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3)._set_attr(**attributes)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name, value", [("weight_lr_mult", "0"), ("bias_wd_mult", "2"), ("data_ctx_group", "dev1"), ("fc_weight_lr_mult", "0")])
def test_annotations_of_inputs_are_refused_with_what_to_do(way, name, value):
    target, _, hidden = name.rpartition("_")[0].rpartition("_")
    target, hidden = (target, f"{hidden}_{name.rpartition('_')[2]}")
    message = (f"^setting variable attributes with {name} is deprecated. Please instead use\n"
               rf"w = mx.sym.Variable\(..., {hidden}={value}\)\nFullyConnected\(..., {target}=w\)$")
    with pytest.raises(mx.MXNetError, match=message):
        WAYS[way](**{name: value})


def test_annotations_of_inputs_are_refused_in_scopes_and_of_variables():
    with pytest.raises(mx.MXNetError, match="setting variable attributes with weight_lr_mult is deprecated"):
        with mx.AttrScope(weight_lr_mult="0"):
            mx.sym.FullyConnected(mx.sym.Variable("data", attr={}), num_hidden=3)
    with pytest.raises(mx.MXNetError, match="setting variable attributes with weight_lr_mult is deprecated"):
        mx.sym.var("w", attr={"weight_lr_mult": "0"})
    with pytest.raises(mx.MXNetError, match="setting variable attributes with weight_lr_mult is deprecated"):
        mx.sym.var("w")._set_attr(weight_lr_mult="0")
    with pytest.raises(mx.MXNetError, match="setting variable attributes with bias_lr_mult is deprecated"):
        mx.sym.broadcast_add(mx.sym.var("a"), mx.sym.var("b"), attr={"bias_lr_mult": "0"})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["mood", "weight", "weight_mood", "_mood", "__mood", "mood__", "____", "shape"])
def test_annotations_that_no_operator_has_are_refused(way, name):
    with pytest.raises(mx.MXNetError, match=f"FullyConnected: cannot find argument '{name}'"):
        WAYS[way](**{name: "0"})


def test_scopes_with_names_that_an_operator_does_not_have():
    x = mx.sym.var("x")
    with mx.AttrScope(mood="good"):
        assert mx.sym.var("v").attr("mood") == "good"
        assert mx.sym.broadcast_add(x, x).attr("mood") == "good"  # it has no attributes, and looks at none
        with pytest.raises(mx.MXNetError, match="cannot find argument 'mood'"):
            x * 2


def test_attributes_of_the_operator_in_attr_count():
    assert WAYS["attr"](num_hidden="20").attr("num_hidden") == "20"
    assert WAYS["attr"](no_bias="True").list_arguments() == ["data", "fc_weight"]
    assert scoped(no_bias="True", __mood__="good").attr_dict()["fc"] == {"num_hidden": "3", "no_bias": "True", "__mood__": "good"}
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
    net._set_attr(num_hidden="4")
    assert net.infer_shape(data=(2, 5))[1] == [(2, 4)]
    with pytest.raises(mx.MXNetError, match="FullyConnected: `num_hidden` must be"):
        net._set_attr(num_hidden="many")
    net._set_attr(name="dense")
    assert net.attr("name") == net.name == "dense"
    assert mx.sym.var("w", attr={"name": "v"}).name == "v"
