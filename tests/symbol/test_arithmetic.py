import math
import operator

import pytest

import mxnet as mx
from mxnet import sym

A, B = [-3.0, 2.0, 5.0], [2.0, 2.0, -4.0]


def values(symbol):
    return symbol.eval(**{n: mx.nd.array({"a": A, "b": B}[n]) for n in symbol.list_inputs()})[0].asnumpy().astype("float64").round(4).tolist()


# operator: with two Symbols, Symbol and 2, 2 and Symbol
@pytest.mark.parametrize("name, both, right, left", [
    ("add", [-1, 4, 1], [-1, 4, 7], [-1, 4, 7]), ("sub", [-5, 0, 9], [-5, 0, 3], [5, 0, -3]), ("mul", [-6, 4, -20], [-6, 4, 10], [-6, 4, 10]),
    ("truediv", [-1.5, 1, -1.25], [-1.5, 1, 2.5], [-0.6667, 1, 0.4]), ("mod", [1, 0, -3], [1, 0, 1], [-1, 0, 2]),
    ("pow", [9, 4, 0.0016], [9, 4, 25], [0.125, 4, 32]), ("eq", [0, 1, 0], [0, 1, 0], [0, 1, 0]), ("ne", [1, 0, 1], [1, 0, 1], [1, 0, 1]),
    ("gt", [0, 0, 1], [0, 0, 1], [1, 0, 0]), ("ge", [0, 1, 1], [0, 1, 1], [1, 1, 0]), ("lt", [1, 0, 0], [1, 0, 0], [0, 0, 1]),
    ("le", [1, 1, 0], [1, 1, 0], [0, 1, 1])])
def test_python_s_operators(name, both, right, left):
    a, b, function = sym.var("a"), sym.var("b"), getattr(operator, name)
    assert [values(function(a, b)), values(function(a, 2)), values(function(2, a))] == [both, right, left]


def test_signs():
    assert values(-sym.var("a")) == [3, -2, -5] and values(abs(sym.var("a"))) == [3, 2, 5]


@pytest.mark.parametrize("name, both, right, left, plain", [
    ("maximum", [2, 2, 5], [2, 2, 5], [2, 2, 5], 3), ("minimum", [-3, 2, -4], [-3, 2, 2], [-3, 2, 2], 2),
    ("hypot", [3.6056, 2.8284, 6.4031], [3.6056, 2.8284, 5.3852], [3.6056, 2.8284, 5.3852], math.sqrt(13)),
    ("power", [9, 4, 0.0016], [9, 4, 25], [0.125, 4, 32], 9), ("logical_and", [1, 1, 1], [1, 1, 1], [1, 1, 1], True),
    ("logical_or", [1, 1, 1], [1, 1, 1], [1, 1, 1], True), ("logical_xor", [0, 0, 0], [0, 0, 0], [0, 0, 0], False)])
def test_functions_take_symbols_and_numbers(name, both, right, left, plain):
    a, b, function = sym.var("a"), sym.var("b"), getattr(sym, name)
    assert [values(function(a, b)), values(function(a, 2)), values(function(2, a))] == [both, right, left]
    assert function(3, 2) == plain


def test_arguments_by_name():
    a = sym.var("a")
    assert values(sym.maximum(left=a, right=2)) == values(sym.maximum(a, right=2)) == [2, 2, 5]
    assert values(sym.power(base=a, exp=2)) == values(sym.pow(a, 2)) == [9, 4, 25]
    with pytest.raises(TypeError, match="hypot takes two arguments, `left` and `right`"):
        sym.hypot(a)


def test_what_is_neither_symbol_nor_number_is_refused():
    for wrong in (lambda a: a + "b", lambda a: [1] - a, lambda a: sym.maximum(a, None), lambda a: sym.maximum(None, a)):
        with pytest.raises(TypeError, match="not supported"):
            wrong(sym.var("a"))
