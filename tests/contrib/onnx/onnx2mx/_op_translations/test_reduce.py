import numpy as np
import pytest

from mxnet import MXNetError
from onnx_import_checks import agrees, model_of, node, run

X = np.random.RandomState(0).rand(2, 3, 4).astype("float32") + 0.1
ALL = ["ReduceMax", "ReduceMin", "ReduceMean", "ReduceSum", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum",
       "ReduceLogSumExp"]


@pytest.mark.parametrize("operator", ALL)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_reductions_with_axes_as_an_input_or_an_attribute(operator, keepdims):
    agrees(node(operator, "x axes", keepdims=keepdims), {"x": X}, {"axes": np.array([-1, 0])}, opset=18)
    agrees(node(operator, "x", keepdims=keepdims), {"x": X}, opset=18)
    agrees(node(operator, "x axes", keepdims=keepdims), {"x": X}, {"axes": np.array([0, 1, 2])}, opset=18)
    found = run(model_of([node(operator, "x", axes=[1], keepdims=keepdims)], {"x": X.shape}, opset=11), x=X)
    assert found[0].shape == ((2, 1, 4) if keepdims else (2, 4))


def test_no_axes_may_mean_none():
    assert agrees(node("ReduceSum", "x", noop_with_empty_axes=1), {"x": X})[0].shape == X.shape


def test_integers_stay_integers():
    assert agrees(node("ReduceSum", "x"), {"x": np.arange(6).reshape(2, 3)})[0].dtype == np.int64


def test_a_sum_of_exponentials_does_not_overflow():
    assert run(model_of([node("ReduceLogSumExp", "x", keepdims=0)], {"x": (2,)}), x=np.float32([1000, 1000]))[0] == pytest.approx([1000.6931])


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
def test_places(operator):
    tied = np.float32([[1, 3, 3], [2, 2, 0], [0, 0, 0]])
    for attributes in ({}, {"axis": 1, "keepdims": 0}, {"axis": -1, "select_last_index": 1}):
        assert agrees(node(operator, "x", **attributes), {"x": tied})[0].dtype == np.int64
    agrees(node(operator, "x", axis=0, keepdims=0), {"x": tied[0]})


def test_the_largest_and_smallest_values():
    for largest in (0, 1):
        values, places = agrees(node("TopK", "x k", "v i", axis=1, largest=largest), {"x": X}, {"k": np.array([2])}, "v i")
        assert places.dtype == np.int64 and values.shape == (2, 2, 4)
    with pytest.raises(MXNetError, match="`k` must be 1 or more, received 0"):
        agrees(node("TopK", "x k", "v i"), {"x": X}, {"k": np.array([0])}, "v i")


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_running_sums(exclusive, reverse):
    agrees(node("CumSum", "x axis", exclusive=exclusive, reverse=reverse), {"x": X}, {"axis": np.array(1)})


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [-1, 0, 2])
def test_triangles(upper, k):
    agrees(node("Trilu", "x k", upper=upper), {"x": X}, {"k": np.array(k)})


def test_places_that_are_not_0():
    assert run(model_of([node("NonZero", "x")], {"x": (2, 2)}, types={"y": 7}), x=np.float32([[0, 1], [2, 0]]))[0].tolist() == [[0, 1], [1, 0]]
