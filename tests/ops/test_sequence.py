"""Errors and shapes of the sequence operators; values are compared in test_arrays_against_oracle.py."""
import pytest

import mxnet as mx
from mxnet.base import MXNetError


@pytest.mark.parametrize("call, message", [
    (lambda: mx.nd.SequenceMask(mx.nd.ones((3,))), r"SequenceMask: `data` must be of rank 2 or greater, received shape \(3,\)"),
    (lambda: mx.nd.SequenceMask(mx.nd.ones((2, 3, 1)), axis=2), "`axis` must be 0 or 1, received 2"),
    (lambda: mx.nd.SequenceLast(mx.nd.ones((2, 3)), use_sequence_length=True), "SequenceLast expects 2 inputs .* but got 1"),
    (lambda: mx.nd.SequenceReverse(mx.nd.ones((2, 3)), axis=1), "`axis` must be 0, received 1; swap the axes first"),
    (lambda: mx.nd.SequenceReverse(mx.nd.ones((2, 3)), mx.nd.array([1, 3, 2]), use_sequence_length=True),
     "`sequence_length` must be at most 2, the length of the data, received 3"),
    (lambda: mx.nd.SequenceMask(mx.nd.ones((2, 3)), mx.nd.array([1]), use_sequence_length=True),
     r"SequenceMask: `sequence_length` must have shape \(3,\) for data \(2, 3\) with axis=0, received \(1,\)"),
    (lambda: mx.nd.SequenceLast(mx.nd.ones((2, 3)), mx.nd.array([1, 2, 3]), use_sequence_length=True, axis=1),
     r"SequenceLast: `sequence_length` must have shape \(2,\)"),
])
def test_errors(call, message):
    with pytest.raises(MXNetError, match=message):
        call()


def test_lengths_are_inputs_only_where_used():
    data, length = mx.sym.var("data"), mx.sym.var("length")
    assert mx.sym.SequenceMask(data).list_arguments() == ["data"]
    assert mx.sym.SequenceMask(data, length, use_sequence_length=True).list_arguments() == ["data", "length"]


@pytest.mark.parametrize("operator, axis, arguments, outputs", [
    ("SequenceMask", 0, [(5, 2, 3), (2,)], [(5, 2, 3)]), ("SequenceMask", 1, [(5, 2, 3), (5,)], [(5, 2, 3)]),
    ("SequenceLast", 0, [(5, 2, 3), (2,)], [(2, 3)]), ("SequenceLast", 1, [(5, 2, 3), (5,)], [(5, 3)]),
    ("SequenceReverse", 0, [(5, 2, 3), (2,)], [(5, 2, 3)]),
])
def test_shape_of_the_lengths_follows(operator, axis, arguments, outputs):
    symbol = getattr(mx.sym, operator)(mx.sym.var("data"), mx.sym.var("length"), use_sequence_length=True, axis=axis)
    assert symbol.infer_shape_partial(data=(5, 2, 3))[:2] == (arguments, outputs)


def test_fractions_of_lengths_are_truncated():
    out = mx.nd.SequenceMask(mx.nd.ones((3, 1)), mx.nd.array([1.7]), use_sequence_length=True)
    assert out.asnumpy().ravel().tolist() == [1, 0, 0]
