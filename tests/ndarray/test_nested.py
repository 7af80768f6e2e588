import pytest

import mxnet as mx
from mxnet.ndarray.nested import flatten, regroup, to_python


def test_flatten_and_regroup():
    a, b = mx.nd.ones((1,)), mx.nd.ones((2,))
    flat, structure = flatten([a, [b, []]], mx.nd.NDArray, "message")
    assert flat[0] is a and flat[1] is b and structure == [0, [0, []]] and regroup(flat, structure) == [a, [b, []]]
    pair = mx.sym.split(mx.sym.var("x"), num_outputs=2, name="pair")
    flat, structure = flatten([pair, pair[0]], mx.sym.Symbol, "message")
    assert [s.list_outputs() for s in flat] == [["pair_output0"], ["pair_output1"], ["pair_output0"]] and structure == [2, 0]
    assert regroup([1, 2, 3], structure) == [[1, 2], 3]
    with pytest.raises(AssertionError, match="^an array; received 3 of type int$"):
        flatten([a, 3], mx.nd.NDArray, "an array")


def test_to_python():
    assert to_python(mx.nd.array([2.5]), int, "n") == 2 and to_python(0, bool, "b") is False
    with pytest.raises(ValueError, match="^Cannot convert n to python int$"):
        to_python("x", int, "n")


def test_the_names_of_mxnet():
    assert mx.nd.contrib._flatten is mx.sym.contrib._flatten is flatten and mx.nd.contrib._regroup is mx.sym.contrib._regroup is regroup
