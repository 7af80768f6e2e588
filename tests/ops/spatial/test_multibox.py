"""Errors and shapes; values and gradients are compared in test_arrays_against_oracle.py."""
import subprocess

import pytest

import mxnet as mx
from forked import python
from mxnet import MXNetError


def zeros(*shape):
    return mx.nd.zeros(shape)


@pytest.mark.parametrize("call, message", [
    (lambda: mx.nd.contrib.MultiBoxPrior(zeros(1, 1, 2, 2), steps=(1, -1)), "`steps` must be two numbers"),
    (lambda: mx.nd.contrib.MultiBoxTarget(zeros(1, 3, 4), zeros(1, 2, 5), zeros(1, 2, 4)), "number of anchors mismatch: 3 anchors"),
    (lambda: mx.nd.contrib.MultiBoxDetection(zeros(1, 2, 3), zeros(1, 8), zeros(1, 3, 4)), "number of anchors mismatch"),
    (lambda: mx.nd.contrib.MultiBoxPrior(zeros(1, 1, 2, 2), offsets=(2, 0)), r"`offsets` must be 2 numbers from 0 to 1, received \(2.0, 0.0\)"),
    (lambda: mx.nd.contrib.MultiBoxTarget(zeros(1, 3, 4), zeros(1, 2, 5), zeros(1, 2, 3), negative_mining_ratio=1, negative_mining_thresh=0),
     "`negative_mining_thresh` must be above 0"),
    (lambda: mx.nd.contrib.MultiBoxDetection(zeros(1, 2, 3), zeros(1, 12), zeros(1, 3, 4), variances=(1,)),
     r"`variances` must have 4 numbers, received \(1.0,\)"),
])
def test_errors(call, message):
    with pytest.raises(MXNetError, match=message):
        call()


def test_hard_negatives_that_do_not_exist():
    anchors = mx.nd.array([[[0, 0, 1, 1], [0, 0, 0.9, 1], [0, 0, 1, 0.9]]])
    with pytest.raises(MXNetError, match="only 0 anchors overlap .* asks for 2"):
        mx.nd.contrib.MultiBoxTarget(anchors, mx.nd.array([[[0, 0, 0, 1, 1]]]), zeros(1, 2, 3), overlap_threshold=0.95,
                                       negative_mining_ratio=3)


def test_names_of_outputs():
    x = mx.sym.var("x")
    assert mx.sym.contrib.MultiBoxTarget(x, x, x, name="t").list_outputs() == ["t_loc_target", "t_loc_mask", "t_cls_target"]


def test_shapes_are_said_by_rules_also_where_they_do_not_fit():
    program = """if True:
        import sys
        import mxnet as mx
        anchors = mx.sym.contrib.MultiBoxPrior(mx.sym.var("x"), sizes=(0.5, 0.2), ratios=(1, 2))
        found = mx.sym.contrib.MultiBoxDetection(mx.sym.var("p"), mx.sym.var("l"), anchors)
        print(found.infer_shape(x=(1, 8, 4, 5), p=(2, 3, 60), l=(2, 240))[1])
        print([m for m in ("sympy", "torch._dynamo") if m in sys.modules])
        """
    found = subprocess.run([*python(), "-c", program], capture_output=True, text=True, timeout=120)
    assert found.stdout.splitlines() == ["[(2, 60, 6)]", "[]"], found.stderr
    scores, moves, anchors = mx.sym.var("p"), mx.sym.var("l"), mx.sym.var("a")
    with pytest.raises(mx.MXNetError, match=r"number of anchors mismatch: expected cls_prob .* received \(2, 3, 60\), \(2, 240\) and \(1, 50, 4\)"):
        mx.sym.contrib.MultiBoxDetection(scores, moves, anchors).infer_shape(p=(2, 3, 60), l=(2, 240), a=(1, 50, 4))
    with pytest.raises(mx.MXNetError, match="`data` must be .*, received shape"):
        mx.sym.contrib.MultiBoxPrior(mx.sym.var("x")).infer_shape(x=(1, 8, 4))


def test_detection_keeps_the_first_of_what_is_equal():
    scores = mx.nd.array([[[0] * 9, [.5, .25, .5, .75, .5, .25, .5, .75, .125], [.25, .5, .5, .75, .5, .5, .25, .25, .125]]])
    anchors = mx.nd.array([[[i / 10, 0, i / 10 + .1, 1] for i in range(9)]])
    found = mx.nd.contrib.MultiBoxDetection(scores, zeros(1, 36), anchors, nms_topk=2, threshold=.2).asnumpy()[0, :, :3]
    # Of all nine two have a class: the first of those of 0.75. Rows behind them stand as they came, without the one below 0.2.
    assert found[:, 0].tolist() == [0, 0, -1, -1, -1, -1, -1, -1, -1]
    assert found[:, 1].tolist() == [.75, .75, .5, .75, .5, .5, .5, .75, -1]
    assert found[:, 2].round(1).tolist() == pytest.approx([.3, .7, .2, .3, .4, .5, .6, .7, -1])


def test_detection_of_more_classes_than_a_byte_counts():
    scores = mx.nd.one_hot(mx.nd.array([300]), 301).reshape((1, 301, 1))
    found = mx.nd.contrib.MultiBoxDetection(scores, zeros(1, 4), mx.nd.array([[[0, 0, 1, 1]]]))
    assert found.asnumpy().tolist() == [[[299, 1, 0, 0, 1, 1]]]
