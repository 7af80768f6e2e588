"""Errors and partial shapes of Concat and stack; values are compared in test_arrays_against_oracle.py."""
import pytest

import mxnet as mx
from mxnet.base import MXNetError
from mxnet.ops import get


def test_concat_infers_both_ways():
    a, b, d = (mx.sym.var(n) for n in "abd")
    total = d + mx.sym.Concat(a, b, num_args=2, dim=1)
    arguments, outputs, _ = total.infer_shape(a=(0, 10), b=(0, 5), d=(2, 0))
    assert dict(zip(total.list_arguments(), arguments)) == {"a": (2, 10), "b": (2, 5), "d": (2, 15)}
    assert outputs == [(2, 15)]


def test_rnn_param_concat_divides_the_rest():
    rule = get("_rnn_param_concat").shape_inference
    assert rule([(-1,), (20,), (-1,)], [(100,)], dim=0) == ([(40,), (20,), (40,)], [(100,)])
    with pytest.raises(MXNetError, match="do not fill a vector of 10"):
        rule([(-1,), (20,)], [(10,)], dim=0)


def test_stack_infers_from_one_input():
    assert get("stack").shape_inference([(3, 4), None], [None], axis=1) == ([(3, 4), (3, 4)], [(3, 2, 4)])


@pytest.mark.parametrize("call, message", [
    (lambda: mx.nd.concat(mx.nd.zeros((2,)), mx.nd.zeros((2,), dtype="float64"), dim=0), "all inputs must have one data type"),
    (lambda: mx.nd.stack(mx.nd.zeros((2,)), mx.nd.zeros((2,), dtype="int32")), "all inputs must have one data type"),
    (lambda: mx.nd.concat(mx.nd.zeros((2, 2)), mx.nd.zeros((2, 3)), dim=0), r"Concat: .*float32\(2, 2\).*float32\(2, 3\)"),
])
def test_errors(call, message):
    with pytest.raises(MXNetError, match=message):
        call()
