"""Errors and shapes; values and gradients are compared in test_arrays_against_oracle.py."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError
from mxnet.ops.spatial.boxes import greedy_suppression


def zeros(*shape):
    return mx.nd.zeros(shape)


@pytest.mark.parametrize("call, message", [
    (lambda: mx.nd.contrib.box_nms(zeros(3, 4)), "the last axis must hold a score, 4 coordinates"),
    (lambda: mx.nd.contrib.box_nms(zeros(3, 6), score_index=3), "score_index=3 is out of range or conflicts"),
    (lambda: mx.nd.contrib.box_iou(zeros(3, 5), zeros(3, 4)), "last dimension of lhs must be 4"),
    (lambda: mx.nd.contrib.bipartite_matching(zeros(3), threshold=1), "must have at least 2 axes"),
    (lambda: mx.nd.contrib.box_nms(zeros(3, 6), id_index=0, score_index=0), "id_index=0 must not be score_index=0"),
    (lambda: mx.nd.contrib.box_encode(zeros(1, 2), zeros(2, 2), zeros(2, 2, 4), zeros(2, 3, 4), zeros(4), zeros(4)),
     r"received \(1, 2\), \(2, 2\), \(2, 2, 4\), \(2, 3, 4\)"),
    (lambda: mx.nd.contrib.box_decode(zeros(2, 3, 4), zeros(1, 2, 4)), r"anchors \(1, N, 4\), received \(2, 3, 4\) and \(1, 2, 4\)"),
])
def test_errors(call, message):
    with pytest.raises(MXNetError, match=message):
        call()


def test_suppression():
    boxes = np.array([[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 0, 10, 10]], float)
    assert greedy_suppression(boxes, 0.5).tolist() == [True, False, True, False]
    assert greedy_suppression(boxes, 0.5, classes=np.array([0, 1, 0, 0])).tolist() == [True, True, True, False]
    assert greedy_suppression(boxes, 0.5, limit=1).tolist() == [True, False, False, False]
    assert greedy_suppression(boxes, 1.0).tolist() == [True, True, True, True]
    assert greedy_suppression(boxes, 1.0, inclusive=True).tolist() == [True, True, True, False]
    assert greedy_suppression(np.zeros((0, 4)), 0.5).tolist() == []
