import numpy as np
import pytest

from mxnet import MXNetError
from onnx_import_checks import agrees, model_of, node, run

R = np.random.RandomState(11)


@pytest.mark.parametrize("center", [0, 1])
def test_the_best_boxes(center):
    boxes = R.rand(2, 30, 4).astype("float32")
    inputs = {"b": boxes, "s": R.rand(2, 3, 30).astype("float32"), "n": np.array(5), "i": np.float32(0.3), "t": np.float32(0.2)}
    found = agrees(node("NonMaxSuppression", "b s n i t", center_point_box=center), inputs, opset=11)[0]
    assert found.dtype == np.int64 and len(found) > 10
    agrees(node("NonMaxSuppression", "b s n"), {k: inputs[k] for k in "bsn"}, opset=11)


def test_boxes_and_scores_must_agree():
    model = model_of([node("NonMaxSuppression", "b s")], {"b": (1, 5, 4), "s": (1, 1, 6)})
    with pytest.raises(MXNetError, match=r"boxes of shape \(1, 5, 4\) and scores of shape \(1, 1, 6\): expected"):
        run(model, b=np.zeros((1, 5, 4), "f"), s=np.zeros((1, 1, 6), "f"))


@pytest.mark.parametrize("sort", [0, 1])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_different_elements(sort, axis):
    data = np.float32([[2, 1, 1, 3], [2, 1, 1, 3], [0, 4, 4, 3]])
    attributes = {} if axis is None else {"axis": axis}
    agrees(node("Unique", "x", "y f i c", sorted=sort, **attributes), {"x": data}, outputs="y f i c", opset=11)
