"""The values of metrics, next to those of MXNet 1.9.1."""
import math

import numpy as np
import pytest

import mxnet as mx
from mxnet import metric

PROBABILITIES = [[[0.1, 0.7, 0.2], [0.5, 0.25, 0.25], [0.3, 0.3, 0.4], [0.6, 0.2, 0.2]], [[0.2, 0.2, 0.6], [0.1, 0.8, 0.1]]]
CLASSES = [[1, 2, 2, 0], [0, 1]]
TWO = [[[0.3, 0.7], [0.6, 0.4], [0.2, 0.8], [0.9, 0.1], [0.45, 0.55]], [[0.2, 0.8], [0.7, 0.3]]]
TWO_CLASSES = [[1, 1, 0, 0, 1], [1, 0]]
PREDICTED = [[[0.5, 1.0], [2.0, -1.0], [0.0, 4.0]], [[1.0, 0.0]]]
ACTUAL = [[[0.0, 1.5], [1.0, 1.0], [0.5, 3.0]], [[2.0, 2.0]]]

# (class, arguments, labels, predictions, name and value in MXNet 1.9.1)
VALUES = [
    (metric.Accuracy, {}, CLASSES, PROBABILITIES, "accuracy", 0.6666666666666666),
    (metric.TopKAccuracy, {"top_k": 2}, CLASSES, PROBABILITIES, "top_k_accuracy_2", 0.8333333333333334),
    (metric.Perplexity, {"ignore_label": None}, CLASSES, PROBABILITIES, "perplexity", 2.301998882927026),
    (metric.Perplexity, {"ignore_label": 0}, CLASSES, PROBABILITIES, "perplexity", 2.0556680738061197),
    (metric.CrossEntropy, {}, CLASSES, PROBABILITIES, "cross-entropy", 0.8337778647740682),
    (metric.CrossEntropy, {"eps": 0.1}, CLASSES, PROBABILITIES, "cross-entropy", 0.6053535143534342),
    (metric.NegativeLogLikelihood, {}, CLASSES, PROBABILITIES, "nll-loss", 0.8337778647740682),
    (metric.PCC, {}, CLASSES, PROBABILITIES, "pcc", 0.5),
    (metric.F1, {}, TWO_CLASSES, TWO, "f1", 0.8333333333333333),
    (metric.F1, {"average": "micro"}, TWO_CLASSES, TWO, "f1", 0.75),
    (metric.MCC, {}, TWO_CLASSES, TWO, "mcc", 0.5833333333333334),
    (metric.MCC, {"average": "micro"}, TWO_CLASSES, TWO, "mcc", 0.4166666666666667),
    (metric.PCC, {}, TWO_CLASSES, TWO, "pcc", 0.4166666666666667),
    (metric.MAE, {}, ACTUAL, PREDICTED, "mae", 1.2083333432674408),
    (metric.MSE, {}, ACTUAL, PREDICTED, "mse", 1.8125),
    (metric.RMSE, {}, ACTUAL, PREDICTED, "rmse", 1.320899486541748),
    (metric.PearsonCorrelation, {"average": "micro"}, ACTUAL, PREDICTED, "pearsonr", 0.6085081897008586),
    (metric.Loss, {}, ACTUAL, PREDICTED, "loss", 0.9375),
    (metric.Torch, {}, ACTUAL, PREDICTED, "torch", 0.9375),
    (metric.Caffe, {}, ACTUAL, PREDICTED, "caffe", 0.9375),
]
IDS = [f"{v[0].__name__}-{i}" for i, v in enumerate(VALUES)]


def updated(m, labels, predictions, dtype="float32"):
    for label, prediction in zip(labels, predictions):
        m.update([mx.nd.array(label)], [mx.nd.array(prediction, dtype=dtype)])
    return m


@pytest.mark.parametrize("klass, kwargs, labels, predictions, name, value", VALUES, ids=IDS)
def test_values(klass, kwargs, labels, predictions, name, value):
    got = updated(klass(**kwargs), labels, predictions).get()
    assert got == (name, pytest.approx(value, rel=1e-6))
    assert type(got[1]) is float


@pytest.mark.parametrize("klass, kwargs, labels, predictions, name, value", VALUES, ids=IDS)
def test_half_precision(klass, kwargs, labels, predictions, name, value):
    assert updated(klass(**kwargs), labels, predictions, "float16").get()[1] == pytest.approx(value, rel=5e-3)


@pytest.mark.parametrize("klass, kwargs, labels, predictions, name, value", VALUES, ids=IDS)
def test_local_and_global_values(klass, kwargs, labels, predictions, name, value):
    m = updated(klass(**kwargs), labels, predictions)
    m.reset_local()
    assert math.isnan(m.get()[1])
    assert m.get_global() == (name, pytest.approx(value, rel=1e-6))
    assert m.get_global_name_value() == [(name, pytest.approx(value, rel=1e-6))]
    updated(m, labels, predictions)
    assert m.get()[1] == pytest.approx(value, rel=1e-6)
    assert m.get_global()[1] == pytest.approx(value, rel=1e-6)
    m.reset()
    assert math.isnan(m.get()[1]) and math.isnan(m.get_global()[1])


@pytest.mark.parametrize("klass, kwargs, labels, predictions, name, value", VALUES, ids=IDS)
def test_made_again_from_its_configuration(klass, kwargs, labels, predictions, name, value):
    m = metric.create(klass(**kwargs).get_config())
    assert type(m) is klass and updated(m, labels, predictions).get() == (name, pytest.approx(value, rel=1e-6))


def test_accuracy_of_class_numbers_and_other_axes():
    m = metric.Accuracy()
    m.update(mx.nd.array([1, 2, 3]), mx.nd.array([1, 2, 2]))
    assert m.get()[1] == pytest.approx(2 / 3)
    m = metric.Accuracy(axis=2)
    m.update([mx.nd.array([[0, 1]])], [mx.nd.array([[[1, 0], [1, 0]]])])
    assert m.get()[1] == 0.5


def test_the_first_of_equal_scores_counts():
    m = metric.Accuracy()
    m.update([mx.nd.array([0, 1])], [mx.nd.array([[1, 1], [1, 1]])])
    assert m.get()[1] == 0.5


def test_top_k_with_few_classes():
    m = metric.TopKAccuracy(top_k=5)
    m.update([mx.nd.array([0, 1])], [mx.nd.array([[1, 2], [1, 2]])])
    assert m.get() == ("top_k_accuracy_5", 1.0)


def test_perplexity_of_sequences():
    m = metric.Perplexity(ignore_label=-1)
    m.update([mx.nd.array([[0, -1], [1, 1]])], [mx.nd.array([[[0.5, 0.5], [0, 0]], [[0.5, 0.5], [0.75, 0.25]]])])
    assert m.get()[1] == pytest.approx(math.exp((2 * math.log(2) + math.log(4)) / 3), rel=1e-6)
    assert m.num_inst == 3


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


def test_pcc_grows_with_the_classes():
    m = metric.PCC()
    m.update([mx.nd.array([0, 1])], [mx.nd.array([[1, 0], [0, 1]])])
    m.update([mx.nd.array([4, 2])], [mx.nd.array([4, 2])])
    assert m.k == 5 and m.get() == ("pcc", 1.0)


@pytest.mark.parametrize("m, labels, predictions, message", [
    (metric.Accuracy(), [[1, 2, 3]], [[[1, 0], [0, 1]]], "length 3 of the labels and 2 of the predictions"),
    (metric.Accuracy(), [[1]], [[1], [2]], "length 1 of the labels and 2 of the predictions"),
    (metric.F1(), [[0, 1, 2]], [[[1, 0]] * 3], "F1 currently only supports binary classification"),
    (metric.TopKAccuracy(2), [[0]], [[[[1, 0]]]], r"no more than 2 dims, received shape \(1, 1, 2\)"),
    (metric.PearsonCorrelation(), [[1, 2]], [[[1], [2]]], "of the labels and .* of the predictions must be equal"),
    (metric.CrossEntropy(), [[1, 2, 3]], [[[1, 0]]], "length 3 of the labels"),
    (metric.Perplexity(None), [[1, 2, 3]], [[[1, 0]]], r"shape mismatch: \(3,\) vs. \(1, 2\)")])
def test_what_does_not_fit(m, labels, predictions, message):
    with pytest.raises(ValueError, match=message):
        m.update([mx.nd.array(x) for x in labels], [mx.nd.array(x) for x in predictions])


def test_sums_of_pearsons_correlation():
    m = metric.PearsonCorrelation(average="micro")
    assert m.update_variance(np.array([1., 2, 4]), 2, 1.5, .5) == (5, pytest.approx(2), pytest.approx(6))
    m.update_cov(np.array([1., 2]), np.array([2., 2]))
    m.update_cov(np.array([3., 5]), np.array([4., 7]))
    assert m._micro(1)[1] == pytest.approx(.9705690415381713)
