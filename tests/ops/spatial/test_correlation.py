"""Errors and shapes; values and gradients are compared in test_arrays_against_oracle.py."""
import pytest

import mxnet as mx
from mxnet import MXNetError


def zeros(*shape):
    return mx.nd.zeros(shape)


@pytest.mark.parametrize("call, message", [
    (lambda: mx.nd.Correlation(zeros(1, 1, 4, 4), zeros(1, 1, 4, 4), kernel_size=2), "`kernel_size` must be odd"),
    (lambda: mx.nd.Correlation(zeros(1, 1, 4, 4), zeros(1, 1, 4, 4), max_displacement=4), "don't fit in data"),
    (lambda: mx.nd.Correlation(zeros(1, 1, 4, 4), zeros(2, 1, 4, 4)), r"must have one shape, received \(1, 1, 4, 4\) and \(2, 1, 4, 4\)"),
])
def test_errors(call, message):
    with pytest.raises(MXNetError, match=message):
        call()
