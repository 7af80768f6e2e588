import pytest

import mxnet as mx
from mxnet.graph.passes.cse import eliminate_common_expressions
from mxnet.symbol.node import topological


def operators(outputs):
    return sorted(n.op.name for n in topological(outputs) if n.op is not None)


def merged(symbol):
    return operators(eliminate_common_expressions(symbol.handle))


X = mx.sym.var("x")


def test_what_is_computed_twice_is_computed_once():
    twice = mx.sym.exp(X, name="a") * mx.sym.exp(X, name="b")
    assert merged(twice) == ["elemwise_mul", "exp"]
    assert operators(twice.handle) == ["elemwise_mul", "exp", "exp"]  # the Symbol itself stays as it is
    chained = mx.sym.negative(mx.sym.exp(X)) * mx.sym.negative(mx.sym.exp(X))
    assert merged(chained) == ["elemwise_mul", "exp", "negative"]


def test_other_attributes_inputs_or_annotations_keep_nodes_apart():
    assert merged(mx.sym.clip(X, 0, 1) * mx.sym.clip(X, 0, 2)) == ["clip", "clip", "elemwise_mul"]
    assert merged(mx.sym.exp(X) * mx.sym.exp(mx.sym.var("y"))) == ["elemwise_mul", "exp", "exp"]
    with mx.AttrScope(ctx_group="a"):
        a = mx.sym.exp(X)
    with mx.AttrScope(ctx_group="b"):
        b = mx.sym.exp(X)
    assert merged(a + b).count("exp") == 2


@pytest.mark.parametrize("make", [
    lambda: mx.sym.Dropout(X), lambda: mx.sym.random.uniform(shape=(2,)), lambda: mx.sym.shuffle(X), lambda: mx.sym.sample_normal(X, X),
    lambda: mx.sym.BatchNorm(X, *(mx.sym.var(n) for n in "gbmv")), lambda: mx.sym.image.random_flip_left_right(X)])
def test_what_draws_writes_or_depends_on_training_is_done_each_time(make):
    name = make().handle[0][0].op.name
    assert merged(mx.sym.Group([make(), make()])).count(name) == 2


def test_outputs_stay_apart():
    outputs = eliminate_common_expressions(mx.sym.Group([mx.sym.exp(X, name="a"), mx.sym.exp(X, name="b")]).handle)
    assert [n.name for n, _ in outputs] == ["a", "b"] and operators(outputs) == ["_copy", "exp"]


def test_the_pass_can_be_turned_off(monkeypatch):
    monkeypatch.setenv("MXNET_ELIMINATE_COMMON_EXPR", "0")
    assert merged(mx.sym.exp(X) * mx.sym.exp(X)) == ["elemwise_mul", "exp", "exp"]
