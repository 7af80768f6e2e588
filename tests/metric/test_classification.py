import math

import pytest

import mxnet as mx
from metric_checks import CLASSES, PROBABILITIES, TWO, TWO_CLASSES, check_local_and_global, check_refused, check_value
from mxnet import metric

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
]


@pytest.mark.parametrize("case", VALUES, ids=lambda case: case[0].__name__)
def test_values(case):
    check_value(*case)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_likelihoods_of_all_types(dtype):
    likelihood = metric.NegativeLogLikelihood(eps=0)
    likelihood.update([mx.nd.array([1, -1, 0])], [mx.nd.array([[0.5, 0.5], [0.75, 0.25], [1, 0]], dtype=dtype)])  # the last class is -1, too
    assert likelihood.get() == ("nll-loss", pytest.approx(math.log(8) / 3, rel=1e-3 if dtype == "float16" else 1e-6))


@pytest.mark.parametrize("case", VALUES, ids=lambda case: case[0].__name__)
def test_local_and_global_values(case):
    check_local_and_global(*case)


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
    (metric.CrossEntropy(), [[1, 2, 3]], [[[1, 0]]], "length 3 of the labels"),
    (metric.Perplexity(None), [[1, 2, 3]], [[[1, 0]]], r"shape mismatch: \(3,\) vs. \(1, 2\)"),
])
def test_what_does_not_fit(m, labels, predictions, message):
    check_refused(m, labels, predictions, message)


def test_counts_of_two_classes_for_metrics_of_programs():
    counts = mx.metric._BinaryClassificationMetrics()
    label, pred = mx.nd.array([0, 1, 1, 0]), mx.nd.array([[1, 0], [0, 1], [1, 0], [0, 1]])
    counts.update_binary_stats(label, pred)
    assert [counts.true_positives, counts.false_negatives, counts.false_positives, counts.true_negatives, counts.total_examples] == [1, 1, 1, 1, 4]
    assert [counts.precision, counts.recall, counts.fscore, counts.matthewscc()] == [0.5, 0.5, 0.5, 0.0]
    counts.local_reset_stats()
    assert [counts.total_examples, counts.global_total_examples, counts.global_fscore, counts.matthewscc(True)] == [0, 4, 0.5, 0.0]
    counts.reset_stats()
    assert counts.global_total_examples == 0
    with pytest.raises(ValueError, match="_BinaryClassificationMetrics currently only supports binary classification"):
        counts.update_binary_stats(mx.nd.array([0, 1, 2]), pred[:3])
