"""Errors and shapes; values and gradients are compared in test_arrays_against_oracle.py."""
import pytest

import mxnet as mx
from mxnet import MXNetError


def zeros(*shape):
    return mx.nd.zeros(shape)


@pytest.mark.parametrize("call, message", [
    (lambda: mx.nd.contrib.Proposal(zeros(2, 24, 3, 3), zeros(2, 48, 3, 3), zeros(2, 3)), "use MultiProposal for several"),
    (lambda: mx.nd.contrib.Proposal(zeros(1, 22, 3, 3), zeros(1, 44, 3, 3), zeros(1, 3)), r"must have 2 \* 12 channels"),
    (lambda: mx.nd.contrib.Proposal(zeros(1, 24, 3, 3), zeros(1, 48, 3, 3), mx.nd.array([[64, 48, 1]])),
     "must reach over each image: received feature_stride=16, a feature map of 3 x 3"),
    (lambda: mx.nd.contrib.MultiProposal(zeros(1, 24, 3, 3), zeros(1, 48, 3, 3), zeros(1, 3), rpn_post_nms_top_n=-1),
     "`rpn_post_nms_top_n` must be at least 0"),
    (lambda: mx.nd.contrib.MultiProposal(zeros(1, 24, 3, 3), zeros(2, 48, 3, 3), zeros(1, 3)), r"`bbox_pred` must have shape \(1, 48, 3, 3\)"),
])
def test_errors(call, message):
    with pytest.raises(MXNetError, match=message):
        call()


def test_scores_are_an_output_if_asked_for():
    x = mx.sym.var("x")
    assert mx.sym.contrib.Proposal(x, x, x, name="p").list_outputs() == ["p_output"]
    assert mx.sym.contrib.Proposal(x, x, x, output_score=True, name="p").list_outputs() == ["p_output", "p_score"]
