import numpy as np
import pytest

import mxnet as mx
from onnx_checks import check

X, Y = mx.sym.var("x").as_np_ndarray(), mx.sym.var("y").as_np_ndarray()
VALUES = np.random.default_rng(1).uniform(0.5, 0.9, (2, 3, 4)).astype(np.float32)
WHOLE = np.arange(-6, 6, dtype=np.int32).reshape(3, 4)
VARYING = dict(varying=[(None, 3, 4)], others=[{"x": np.repeat(VALUES, 2, 0)}])


@pytest.mark.parametrize("name", ["abs", "arccos", "arcsin", "arctan", "arcsinh", "arctanh", "ceil", "cos", "cosh", "exp", "floor", "log", "negative",
                                  "reciprocal", "rint", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "square", "cbrt", "log2", "log10", "log1p",
                                  "expm1", "degrees", "radians", "fix", "trunc", "around", "isnan", "isinf", "isfinite", "logical_not"])
def test_functions(name):
    check(getattr(mx.sym.np, name)(X), {"x": VALUES}, **VARYING)
    check(getattr(mx.sym.np, name)(X + 1), {"x": abs(WHOLE)})


@pytest.mark.parametrize("function", [
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y, lambda x, y: x % y, mx.sym.np.hypot, lambda x, y: x > y,
    lambda x, y: x == y, lambda x, y: x != y, lambda x, y: x <= y, mx.sym.np.maximum, mx.sym.np.minimum])
def test_of_two(function):
    check(function(X, Y), {"x": VALUES, "y": VALUES[:1, :, :1] * 2})
    check(function(X, Y), {"x": abs(WHOLE), "y": np.full((3, 1), 2, np.int32)})


def test_of_two_types():
    for function in (lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x / y):
        check(function(X, Y), {"x": VALUES[0], "y": WHOLE + 10})


@pytest.mark.parametrize("function", [lambda x: x + 2, lambda x: 2 - x, lambda x: x / 2, lambda x: 2 / x, lambda x: x ** 2, lambda x: 2 ** x,
                                      lambda x: x % 2, lambda x: x > 0.7, lambda x: x == 2, lambda x: x != 2, lambda x: x * 2.5, lambda x: x <= 1])
def test_with_a_number(function):
    check(function(X), {"x": VALUES}, **VARYING)
    check(function(X), {"x": abs(WHOLE) + 1})


def test_choices():
    check(mx.sym.np.where(X > 0, X, Y), {"x": WHOLE.astype("float32"), "y": VALUES[0]})
    for given in ((X, 2.0), (2.0, X), (1.0, 2.0)):
        check(mx.sym.np.where(X > 0, *given), {"x": WHOLE.astype("float32")})
    check(mx.sym.np.nan_to_num(X, nan=3.0), {"x": np.float32([np.nan, np.inf, -np.inf, 1])})
    check(mx.sym.np.around(X, 1), {"x": VALUES})
    with pytest.raises(mx.MXNetError, match="Sub of truth values|boolean"):
        check((X > 0) - (Y > 0), {"x": VALUES, "y": VALUES})
