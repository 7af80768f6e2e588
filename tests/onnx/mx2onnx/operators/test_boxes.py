import numpy as np
import pytest

import mxnet as mx
from onnx_checks import check, exported

X, Y = mx.sym.var("x"), mx.sym.var("y")
# class, score, corners: two of the first class overlap, one of another class overlaps both, one lies apart, one has no score worth its name.
BOXES = np.array([[[0, 0.6, 0, 0, 4, 5], [0, 0.9, 0, 0, 4, 4], [1, 0.7, 0, 0, 4, 4.5], [0, 0.3, 8, 8, 9, 9], [1, 0.001, 20, 20, 30, 30]],
                  [[1, 0.2, 1, 1, 2, 2], [1, 0.1, 1, 1, 2, 2.1], [0, 0.8, 5, 5, 6, 6], [0, 0.7, 5, 5, 6, 6.1], [2, 0.9, 5, 5, 6, 6.2]]], np.float32)


@pytest.mark.parametrize("attributes", [
    {"force_suppress": True}, {"id_index": 0}, {"id_index": 0, "force_suppress": True}, {"id_index": 0, "background_id": 1},
    {"topk": 2, "id_index": 0}, {"overlap_thresh": 0.95, "force_suppress": True}, {"out_format": "center", "force_suppress": True}])
def test_box_nms(attributes):
    sym = mx.sym.contrib.box_nms(X, **{"coord_start": 2, "score_index": 1, "valid_thresh": 0.01, "overlap_thresh": 0.5, **attributes})
    check(sym, {"x": BOXES}, varying=[("N", 5, 6)], others=[{"x": BOXES[:1]}], opsets=(13,))


def test_box_nms_of_centres_and_of_few_numbers():
    sym = mx.sym.contrib.box_nms(X, coord_start=1, score_index=0, in_format="center", out_format="corner", overlap_thresh=0.5)
    check(sym, {"x": np.array([[0.5, 2, 2, 2, 2], [0.8, 2.1, 2, 2, 2], [0.6, 9, 9, 1, 1]], np.float32)})


@pytest.mark.parametrize("format", ["corner", "center"])
@pytest.mark.parametrize("clip", [-1, 0.5])
def test_box_decode(format, clip):
    rng = np.random.default_rng(1)
    anchors = np.sort(rng.uniform(0, 9, (1, 3, 4)).astype(np.float32), -1)
    sym = mx.sym.contrib.box_decode(X, Y, std0=0.1, std1=0.2, std2=0.5, std3=0.25, clip=clip, format=format)
    check(sym, {"x": rng.standard_normal((2, 3, 4)).astype(np.float32), "y": anchors}, atol=1e-4)


def test_a_varying_number_of_boxes_is_refused():
    with pytest.raises(mx.MXNetError, match="_contrib_box_nms 'b' .*: the number of boxes must not vary"):
        exported(mx.sym.contrib.box_nms(X, name="b"), {"x": BOXES}, dynamic_shapes=[(None, None, 6)])
