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
    for reduction in ("mul", "max", "min"):
        agrees(node("ScatterND", "x i u", reduction=reduction), {**inputs, "i": np.array([[1], [-1]])}, opset=18)
        elements = {"x": X, "i": np.array([[[0, 2, -1, 1]], [[1, 1, 0, 0]]]), "u": updates}
        agrees(node("ScatterElements", "x i u", axis=1, reduction=reduction), elements, opset=18)


def test_elements_of_arrays_of_open_sizes():
    places = np.array([[[0, 2, -1, 1]], [[1, 1, 0, 0]]])
    shapes = {"x": ("n", 3, 4), "i": ("n", "m", 4), "u": ("n", "m", 4)}
    agrees(node("GatherElements", "x i", axis=1), {"x": X, "i": places}, shapes=shapes)
    agrees(node("ScatterElements", "x i u", axis=1), {"x": X, "i": places, "u": -X[:, :1]}, shapes=shapes)


def test_a_cache_that_is_written_to():
    given = {"x": np.zeros((2, 4, 2), "float32"), "u": np.ones((2, 2, 2), "float32"), "i": np.array([1, 3])}
    shapes = {name: array.shape for name, array in given.items()}
    made = node("TensorScatter", "x u i", mode="circular", axis=1)
    (found,) = run(model_of([made], shapes, types={"i": 7}, opset=24), **given)
    assert found[:, :, 0].tolist() == [[0, 1, 1, 0], [1, 0, 0, 1]]
    with pytest.raises(MXNetError, match="reaches to place 4 of an axis of size 4"):
        run(model_of([node("TensorScatter", "x u i", axis=1)], shapes, types={"i": 7}, opset=24), **given)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_of_several(axis):
    agrees(node("OneHot", "i d v", axis=axis), {"i": np.array([[0, 2, -1], [5, 1, -9]])}, {"d": np.array(4), "v": np.float32([2, 5])})


def test_chosen_parts():
    chosen = {"c": np.array([False, True, True])}
    agrees(node("Compress", "x c", axis=1), {"x": X}, chosen)
    agrees(node("Compress", "x c"), {"x": X}, chosen)
