import numpy as np
import pytest

import mxnet as mx
from onnx_checks import check

X, Y = mx.sym.var("x"), mx.sym.var("y")
VALUES = np.array([[0.5, -0.25, 0.75], [-1.5, 0.125, 2]], np.float32)


@pytest.mark.parametrize("name", ["abs", "arccos", "arcsin", "arctan", "arcsinh", "arctanh", "ceil", "cos", "cosh", "erf", "exp", "expm1", "floor",
                                  "log1p", "negative", "reciprocal", "relu", "sigmoid", "sign", "sin", "sinh", "softsign", "square", "tan", "tanh",
                                  "identity", "BlockGrad", "make_loss", "MakeLoss", "logical_not", "hard_sigmoid", "smooth_l1", "rint"])
def test_of_one_input(name):
    values = np.clip(VALUES, -0.9, 0.9) if name in ("arccos", "arcsin", "arctanh", "log1p") else VALUES
    check(getattr(mx.sym, name)(X), {"x": values}, opsets=(13,))


@pytest.mark.parametrize("name", ["log", "log2", "log10", "sqrt", "rsqrt", "arccosh"])
def test_of_positive_numbers(name):
    check(getattr(mx.sym, name)(X), {"x": np.abs(VALUES) + 1}, opsets=(13,))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "mod", "power", "maximum", "minimum", "equal", "not_equal", "greater", "lesser",
                                  "greater_equal", "lesser_equal", "logical_and", "logical_or", "logical_xor"])
def test_of_two_inputs(name):
    other = np.array([[2, 0.125, -0.75]], np.float32)
    values = np.abs(VALUES) if name == "power" else VALUES
    check(getattr(mx.sym, f"broadcast_{name}")(X, Y), {"x": values, "y": other}, opsets=(13,))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_stay_integers(dtype):
    x, y = np.array([7, -7, 5], dtype), np.array([3, 3, 0], dtype)
    for sym in (X + Y, X * Y, mx.sym.broadcast_mod(X, Y), X + 2, 3 - X, X > 2, mx.sym.maximum(X, Y), X ** 2, mx.sym.square(X), -X):
        check(sym, {"x": x, "y": y} if "y" in sym.list_inputs() else {"x": x}, opsets=(13,))


@pytest.mark.parametrize("sym", [X + 2.5, X - 2, 2 - X, X * 3, X / 4, 2 / (X + 5), (X + 2) ** 2, 2 ** X, X == 0.5, X != 0.5, X > 0.5, X < 0.5,
                                 X >= 0.5, X <= 0.5, mx.sym.maximum(X, 0.25), mx.sym.minimum(X, 0.25), mx.sym.clip(X, a_min=-1, a_max=0.5)])
def test_with_a_number(sym):
    check(sym, {"x": VALUES}, opsets=(13,))


def test_sums_of_many_casts_and_choices():
    check(mx.sym.add_n(X, Y, X), {"x": VALUES, "y": VALUES})
    check(mx.sym.cast(X, dtype="int32"), {"x": VALUES})
    check(mx.sym.where(X > 0, X, Y), {"x": VALUES, "y": -VALUES})
    check(mx.sym.where(mx.sym.var("c"), X, Y), {"c": np.array([0, 1], np.float32), "x": VALUES, "y": -VALUES})
