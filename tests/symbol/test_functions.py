import inspect

import pytest

import mxnet as mx
from mxnet import sym
from mxnet.symbol import functions


def test_a_function_is_made_once_from_its_operator():
    function = sym.FullyConnected
    assert function is functions.operator_function("FullyConnected") is sym.op.FullyConnected
    assert function.__name__ == "FullyConnected" and "weight.T" in function.__doc__
    assert list(inspect.signature(function).parameters)[:4] == ["data", "weight", "bias", "num_hidden"]


def test_another_function_can_take_its_place():
    def other(*args):
        return "other"

    original = functions.operator_function("erfinv")
    functions.replace("erfinv", other)
    try:
        assert functions.operator_function("erfinv") is other
    finally:
        functions.replace("erfinv", original)


def test_inputs_by_position_by_name_and_missing():
    x, w = sym.var("x"), sym.var("w")
    for made in (sym.FullyConnected(x, w, num_hidden=2, no_bias=True), sym.FullyConnected(weight=w, data=x, num_hidden=2, no_bias=True),
                 sym.FullyConnected(x, weight=w, num_hidden=2, no_bias=True)):
        assert made.list_arguments() == ["x", "w"]
    assert sym.FullyConnected(weight=w, num_hidden=2, no_bias=True, name="fc").list_arguments() == ["fc_data", "w"]


def test_any_number_of_inputs():
    x = sym.var("x")
    assert sym.concat(x, x, x, dim=0).attr("num_args") == "3"
    assert sym.add_n(x, num_args=2, name="n").list_arguments() == ["x", "n_arg1"]
    with pytest.raises(mx.MXNetError, match="add_n: num_args=1, but 2 inputs were given"):
        sym.add_n(x, x, num_args=1)


def test_a_symbol_has_no_values_to_write_to():
    with pytest.raises(mx.MXNetError, match="exp: a Symbol has no values to write to `out`, received NDArray"):
        sym.exp(sym.var("x"), out=mx.nd.ones(1))


@pytest.mark.parametrize("make, hint", [
    (lambda x: sym.linalg.syrk(x), "syrk"), (lambda x: sym.contrib.quadratic(x), "quadratic"), (lambda x: sym.image.to_tensor(x), "to_tensor"),
    (lambda x: sym.Flatten(x), "flatten"), (lambda x: sym.flatten(x), "flatten")])
def test_generated_names_have_no_prefix(make, hint):
    with mx.name.NameManager():
        assert make(sym.var("x")).name == f"{hint}0"


@pytest.mark.parametrize("count", [(), "many", 10**12, -1, float("inf")])
def test_the_number_of_inputs_is_one(count):
    with pytest.raises(mx.MXNetError, match="`num_args` must be an integer from 0 to 16384, received"):
        sym.concat(sym.var("a"), sym.var("b"), num_args=count)
