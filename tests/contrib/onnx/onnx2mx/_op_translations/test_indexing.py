import numpy as np
import pytest

from mxnet import MXNetError
from onnx_import_checks import agrees, model_of, node, run

X = np.arange(24, dtype="float32").reshape(2, 3, 4)


@pytest.mark.parametrize("indices", [np.array(1), np.array(-1), np.array([0, -1]), np.array([[1, 0], [0, 1]], "int32")], ids=str)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_parts(indices, axis):
    agrees(node("Gather", "x i", axis=axis), {"x": X}, {"i": indices})
    agrees(node("Gather", "x i", axis=axis), {"x": X, "i": indices})
    agrees(node("Gather", "x i"), {"x": X[0, 0]}, {"i": indices})


def test_an_index_beyond_the_axis_is_refused():
    with pytest.raises(MXNetError, match=r"node 'the_gather' \(Gather\): the indices reach from 0 to 2 on an axis of size 2"):
        agrees(node("Gather", "x i"), {"x": X}, {"i": np.array([0, 2])})


def test_single_elements():
    agrees(node("GatherElements", "x i", axis=1), {"x": X, "i": np.array([[[0, 2, -1, 1]], [[1, 1, 0, 0]]])})
    agrees(node("GatherND", "x i"), {"x": X, "i": np.array([[1, -1], [0, 0]])})
    agrees(node("GatherND", "x i", batch_dims=1), {"x": X, "i": np.array([[1], [0]])})


def test_replaced_elements():
    updates = np.float32([[[9, 8, 7, 6]], [[5, 4, 3, 2]]])
    for operator in ("ScatterElements", "Scatter"):
        (found,) = run(model_of([node(operator, "x i u", axis=1)], {"x": X.shape, "i": (2, 1, 4), "u": (2, 1, 4)}, types={"i": 7}, opset=10), x=X,
                       i=np.array([[[0, 2, -1, 1]], [[1, 1, 0, 0]]]), u=updates)
        expected = X.copy()
        np.put_along_axis(expected, np.array([[[0, 2, -1, 1]], [[1, 1, 0, 0]]]), updates, 1)
        assert found.tolist() == expected.tolist()
    inputs = {"x": X, "i": np.array([[1], [0]]), "u": -X}
    agrees(node("ScatterND", "x i u"), inputs)
    agrees(node("ScatterND", "x i u", reduction="add"), {**inputs, "i": np.array([[1], [1]])}, opset=16)
    with pytest.raises(NotImplementedError, match="scattering with reduction='mul'"):
        agrees(node("ScatterND", "x i u", reduction="mul"), inputs, opset=16)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_of_several(axis):
    agrees(node("OneHot", "i d v", axis=axis), {"i": np.array([[0, 2, -1], [5, 1, -9]])}, {"d": np.array(4), "v": np.float32([2, 5])})


def test_chosen_parts():
    chosen = {"c": np.array([False, True, True])}
    agrees(node("Compress", "x c", axis=1), {"x": X}, chosen)
    agrees(node("Compress", "x c"), {"x": X}, chosen)
