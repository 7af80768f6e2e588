import numpy as np
import pytest

import mxnet as mx
from metric_checks import ACTUAL, PREDICTED, check_local_and_global, check_refused, check_value
from mxnet import metric

# (class, arguments, labels, predictions, name and value in MXNet 1.9.1)
VALUES = [
    (metric.MAE, {}, ACTUAL, PREDICTED, "mae", 1.2083333432674408),
    (metric.MSE, {}, ACTUAL, PREDICTED, "mse", 1.8125),
    (metric.RMSE, {}, ACTUAL, PREDICTED, "rmse", 1.320899486541748),
    (metric.PearsonCorrelation, {"average": "micro"}, ACTUAL, PREDICTED, "pearsonr", 0.6085081897008586),
    (metric.Loss, {}, ACTUAL, PREDICTED, "loss", 0.9375),
    (metric.Torch, {}, ACTUAL, PREDICTED, "torch", 0.9375),
    (metric.Caffe, {}, ACTUAL, PREDICTED, "caffe", 0.9375),
]


@pytest.mark.parametrize("case", VALUES, ids=lambda case: case[0].__name__)
def test_values(case):
    check_value(*case)


@pytest.mark.parametrize("case", VALUES, ids=lambda case: case[0].__name__)
def test_local_and_global_values(case):
    check_local_and_global(*case)


def test_integer_labels_keep_their_digits():
    m = metric.MAE()
    m.update([mx.nd.array([16777217], dtype="int32")], [mx.nd.array([16777216.0])])
    assert m.get()[1] == 1.0


def test_pearson_of_batches():
    m = metric.PearsonCorrelation()
    for label, pred in (([1, 2, 3], [2, 4, 6]), ([1, 2, 3], [3, 2, 1]), ([1, 2, 4], [1, 3, 4])):
        m.update([mx.nd.array(label)], [mx.nd.array(pred)])
    assert m.get()[1] == pytest.approx((1 - 1 + np.corrcoef([1, 2, 4], [1, 3, 4])[0, 1]) / 3)


def test_pearson_micro_is_exact_far_from_zero():
    rng = np.random.RandomState(0)
    label, pred = 1e6 + rng.randn(2, 100)
    m = metric.PearsonCorrelation(average="micro")
    for i in range(0, 100, 7):
        m.update([mx.nd.array(label[i:i + 7], dtype="float64")], [mx.nd.array(pred[i:i + 7], dtype="float64")])
    assert m.get()[1] == pytest.approx(np.corrcoef(label, pred)[0, 1], rel=1e-6)


def test_sums_of_pearsons_correlation():
    m = metric.PearsonCorrelation(average="micro")
    assert m.update_variance(np.array([1., 2, 4]), 2, 1.5, .5) == (5, pytest.approx(2), pytest.approx(6))
    m.update_cov(np.array([1., 2]), np.array([2., 2]))
    m.update_cov(np.array([3., 5]), np.array([4., 7]))
    assert m._micro(1)[1] == pytest.approx(.9705690415381713)


@pytest.mark.parametrize("m, labels, predictions, message", [
    (metric.PearsonCorrelation(), [[1, 2]], [[[1], [2]]], "of the labels and .* of the predictions must be equal"),
])
def test_what_does_not_fit(m, labels, predictions, message):
    check_refused(m, labels, predictions, message)
