import json

import numpy as np
import pytest

import mxnet as mx

S = mx.sym.random


def node(symbol):
    return json.loads(symbol.tojson())["nodes"][-1]


def test_numbers_become_attributes_as_in_mxnet():
    with mx.name.NameManager():
        assert node(S.normal(2, shape=(3,))) == {"op": "_random_normal", "name": "_random_normal0", "inputs": [],
                                                 "attrs": {"loc": "2", "scale": "1", "shape": "(3,)"}}
        assert node(S.randn(2, 3, loc=2))["attrs"] == {"loc": "2", "scale": "1", "shape": "(2, 3)"}
        assert S.uniform().list_outputs() == ["_random_uniform0_output"]
        assert S.randint(0, 3, name="r").name == "r"


def test_symbols_become_inputs():
    symbol = S.uniform(mx.sym.var("a"), mx.sym.var("b"), shape=(2,), name="x")
    assert symbol.list_arguments() == ["a", "b"] and node(symbol)["op"] == "_sample_uniform"
    values = symbol.bind(mx.cpu(), {"a": mx.nd.array([0, 5]), "b": mx.nd.array([1, 6])}).forward()[0].asnumpy()
    assert values.shape == (2, 2) and (values[1] >= 5).all()


def test_each_run_draws_anew():
    executor = S.exponential(2.0, shape=(1000,)).bind(mx.cpu(), {})
    mx.random.seed(1)
    first, second = (executor.forward()[0].asnumpy().copy() for _ in range(2))
    mx.random.seed(1)
    assert not np.array_equal(first, second) and np.array_equal(executor.forward()[0].asnumpy(), first)
    assert abs(first.mean() - 2) < 0.3


def test_multinomial_has_two_outputs():
    assert S.multinomial(mx.sym.var("p"), name="m").list_outputs() == ["m_output0", "m_output1"]
    assert len(S.multinomial(mx.sym.var("p"), get_prob=False).list_outputs()) == 1
    assert S.shuffle(mx.sym.var("p"), name="s").list_arguments() == ["p"]


def test_all_distributions():
    for function in (S.poisson, S.gamma, S.negative_binomial, S.generalized_negative_binomial):
        assert function(shape=(2, 3)).infer_shape()[1] == [(2, 3)]


@pytest.mark.parametrize("call, message", [
    (lambda: S.uniform(mx.sym.var("a"), 1), "either numbers or arrays"), (lambda: S.uniform("q"), "either Symbols or numbers, received"),
    (lambda: S.randint(mx.sym.var("a"), mx.sym.var("a")), "must be numbers, received Symbols")])
def test_wrong_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("draw", [
    lambda x: S.uniform(shape=(40,)), lambda x: mx.sym.image.random_brightness(x, min_factor=0.1, max_factor=3), lambda x: S.shuffle(x),
    lambda x: mx.sym.np.random.normal(size=(40,)).as_nd_ndarray()], ids=["uniform", "brightness", "shuffle", "numpy"])
def test_two_draws_are_not_one(draw):
    x = mx.sym.var("x")
    first, second = mx.sym.Group([draw(x), draw(x)]).bind(mx.cpu(), {"x": mx.nd.arange(1, 41).reshape((8, 5, 1))}).forward()
    assert not np.array_equal(first.asnumpy(), second.asnumpy())
