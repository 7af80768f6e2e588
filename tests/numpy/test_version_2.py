"""What `mx.util.set_version('2.0')` changes in mx.np."""
import numpy as onp
import pytest

import mxnet as mx
from mxnet import gluon, np


@pytest.fixture(autouse=True)
def version_2():
    before = mx.util.set_version("2.0")
    yield
    mx.util.set_version(before)


class Apply(gluon.HybridBlock):
    def __init__(self, function):
        super().__init__()
        self._function = function

    def forward(self, x):
        return self._function(x)


FRACTIONS = [(lambda x: x + 1.5, [2.5, 4.5], "float64"), (lambda x: 2.5 - x, [1.5, -0.5], "float64"), (lambda x: x * 0.5, [0.5, 1.5], "float64"),
             (lambda x: x ** 0.5, [1.0, 3 ** 0.5], "float64"), (lambda x: x % 1.5, [1.0, 0.0], "float64"),
             (lambda x: x // 1.5, [0.0, 2.0], "float64"),
             (lambda x: x > 1.5, [False, True], "bool"), (lambda x: x == 1.5, [False, False], "bool"), (lambda x: x + 2, [3, 5], "int32"),
             (lambda x: x + onp.float32(0.5), [1.5, 3.5], "float64"),
             (lambda x: np.maximum(x, 1.5), [1.5, 3.0], "float64"), (lambda x: -x, [-1, -3], "int32"),
             (lambda x: x / 2, [0.5, 1.5], "float32")]


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("function,expected,dtype", FRACTIONS)
def test_fractions_beside_integers_are_not_truncated(function, expected, dtype, hybridize):
    block = Apply(function)
    if hybridize:
        block.hybridize()
    for _ in range(3):
        result = block(np.array([1, 3], dtype="int32"))
        assert result.dtype == dtype and result.tolist() == expected


def test_fractions_beside_integers_are_truncated_in_mxnet_1():
    x = np.array([1, 3], dtype="int32")
    mx.util.set_version("1.9")
    assert (x + 1.5).tolist() == [2, 4] and (x + 1.5).dtype == onp.int32
    assert np.exp(x).tolist() == [2, 20]


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("name,values,given,expected,dtype", [
    ("sqrt", [1, 4], "int32", [1.0, 2.0], "float32"), ("log2", [2, 8], "int64", [1.0, 3.0], "float32"),
    ("cos", [0, 0], "int8", [1.0, 1.0], "float16"),
    ("exp", [0, 0], "bool", [1.0, 1.0], "float16"), ("rint", [3, -3], "int32", [3.0, -3.0], "float32"), ("floor", [3, -3], "int32", [3, -3], "int32"),
    ("ceil", [1, 0], "bool", [1.0, 0.0], "float16"), ("square", [3, -3], "int32", [9, 9], "int32"), ("acos", [1, 1], "uint8", [0.0, 0.0], "float16")])
def test_functions_of_integers_give_fractions(name, values, given, expected, dtype, hybridize):
    block = Apply(getattr(np, name))
    if hybridize:
        block.hybridize()
    for _ in range(3):
        result = block(np.array(values, dtype=given))
        assert result.dtype == dtype and result.tolist() == expected


def test_types_in_common():
    assert np.result_type("int8", "uint8") == onp.int16 and np.result_type(np.ones(1), "int64", bool) == onp.float32
    with pytest.raises(TypeError, match="uint64 and int8 have no type in common"):
        np.result_type("uint64", "int8")
    with pytest.raises(ValueError, match="at least one"):
        np.result_type()
    mx.util.set_version("1.9")
    assert np.result_type("int64", "float32") == onp.float64
