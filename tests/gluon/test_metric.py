import math

import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon import metric


def value_of(made, labels, preds):
    made.update([mx.np.array(labels)], [mx.np.array(preds)])
    return made.get()[1]


def test_those_of_mx_metric_are_here():
    assert metric.Accuracy is mx.metric.Accuracy and type(metric.create("acc")) is mx.metric.Accuracy
    made = metric.create(["f1", "mse"])
    assert [type(m) for m in made.metrics] == [metric.F1, mx.metric.MSE] and type(mx.metric.create("f1")) is mx.metric.F1


def test_binary_accuracy():
    assert value_of(metric.BinaryAccuracy(threshold=0.6), [0, 1, 0], [0.7, 1, 0.55]) == 2 / 3
    assert value_of(metric.BinaryAccuracy(threshold=np.array([0.5, 0.9])), [[0, 1], [1, 0]], [[0.4, 0.95], [0.6, 0.8]]) == 1
    with pytest.raises(ValueError, match="a threshold for each of 2 classes expected, received 3"):
        value_of(metric.BinaryAccuracy(threshold=np.ones(3)), [[0, 1]], [[0.4, 0.95]])


def test_f1_of_two_classes():
    made = metric.F1()
    assert math.isnan(made.get()[1])
    assert round(value_of(made, [0, 1, 1], [[0.3, 0.7], [0, 1], [0.4, 0.6]]), 6) == 0.8
    assert round(value_of(made, [1, 1], [0.1, 0.2]), 6) == round(2 * 2 / (2 * 2 + 1 + 2), 6)  # counts of both batches
    made.reset()
    assert math.isnan(made.get()[1]) and value_of(made, [0, 0], [0.1, 0.2]) == 0
    assert round(value_of(metric.Fbeta(beta=2), [0, 1, 1], [[0.3, 0.7], [0, 1], [0.4, 0.6]]), 6) == 0.909091
    for labels, preds, message in (([2], [0.1], "labels 0 and 1 expected, received 2"),
                                   ([1], [[0.1, 0.2, 0.3]], r"one class or two expected, received shape \(1, 3\)")):
        with pytest.raises(ValueError, match=message):
            value_of(metric.F1(), labels, preds)


def test_f1_of_several_classes():
    labels, preds = [0, 1, 2, 2], np.eye(3)[[0, 2, 2, 2]]
    assert value_of(metric.F1(class_type="multiclass"), labels, preds) == 0.75
    assert round(value_of(metric.F1(class_type="multiclass", average="macro"), labels, preds), 6) == 0.6
    np.testing.assert_allclose(value_of(metric.F1(class_type="multiclass", average=None), labels, preds), [1, 0, 0.8])
    with pytest.raises(ValueError, match="labels below 3 expected"):
        value_of(metric.F1(class_type="multiclass"), [3], preds[:1])
    many = metric.F1(class_type="multilabel", average=None)
    np.testing.assert_allclose(value_of(many, [[1, 0], [1, 1]], [[0.9, 0.6], [0.2, 0.8]]), [2 / 3, 2 / 3])
    with pytest.raises(ValueError, match=r"a label for each prediction expected, received shapes \(1,\) and \(1, 2\)"):
        value_of(many, [1], [[0.1, 0.2]])
    with pytest.raises(ValueError, match="class_type must be one of .*, received 'many'"):
        metric.F1(class_type="many")
    with pytest.raises(ValueError, match="average must be one of .*, received 'mean'"):
        metric.Fbeta(average="mean")


def test_distances():
    distance = (2 + math.sqrt(5)) / 2
    assert round(value_of(metric.MeanPairwiseDistance(), [[1.0, 0.0], [4.0, 2.0]], [[1.0, 2.0], [3.0, 4.0]]), 6) == round(distance, 6)
    assert value_of(metric.MeanPairwiseDistance(p=1), [[1.0, 0.0]], [[3.0, 4.0]]) == 6
    assert round(value_of(metric.MeanCosineSimilarity(), [[3.0, 4.0], [2.0, 2.0]], [[1.0, 0.0], [1.0, 1.0]]), 6) == 0.8
    assert value_of(metric.MeanCosineSimilarity(), [0.0, 0.0], [1.0, 0.0]) == 0


@pytest.mark.parametrize("made", [metric.Fbeta(beta=2, average="macro"), metric.BinaryAccuracy(threshold=0.2), metric.MeanPairwiseDistance(p=3)])
def test_configurations_make_them_again(made):
    config = made.get_config()
    again = metric.create(config.pop("metric"), **config)
    assert type(again) is type(made) and again.get_config() == made.get_config()


def test_cross_entropy_of_mxnet_2():
    metric = mx.gluon.metric.create("ce", ignore_label=2)
    metric.update([mx.np.array([0, 1, 2])], [mx.np.array([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [1, 0, 0]])])
    assert metric.get() == ("cross-entropy", pytest.approx(1.0397207708))  # (log 2 + log 4) / 2
    logits = mx.gluon.metric.CrossEntropy(from_logits=True, axis=0)
    logits.update([mx.np.array([0, 1])], [mx.np.log(mx.np.array([[0.5, 0.75], [0.5, 0.25]])) + 3])
    assert logits.get()[1] == pytest.approx(1.0397207708)
    perplexity = mx.gluon.metric.create("perplexity")
    assert str(perplexity.get()[1]) == "nan"
    perplexity.update([mx.np.array([0, 0])], [mx.np.array([[0.5, 0.5], [0.5, 0.5]])])
    assert perplexity.get() == ("perplexity", pytest.approx(2))
    assert type(mx.metric.create("perplexity", None)) is mx.metric.Perplexity is not mx.gluon.metric.Perplexity


def test_predictions_and_thresholds():
    assert mx.gluon.metric.predict_with_threshold(mx.np.array([[0.2, 0.7]]), mx.np.array([0.1, 0.8])).tolist() == [[True, False]]
    with pytest.raises(ValueError, match="a threshold for each of 2 classes expected, received 1"):
        mx.gluon.metric.predict_with_threshold(mx.np.array([[0.2, 0.7]]), mx.np.array([0.1]))


def test_metrics_of_all_samples():
    made = mx.gluon.metric.create("mcc")
    made.update([mx.np.array([1, 0]), mx.np.array([1, 0])], [mx.np.array([[0.1, 0.9], [0.5, 0.5]]), mx.np.array([[0.85, 0.15], [1.0, 0.0]])])
    assert made.num_inst == 4 and made.get()[1] == pytest.approx(2 / math.sqrt(1 * 2 * 2 * 3))
    pearson = mx.gluon.metric.PearsonCorrelation()
    for label, pred in (([[1, 0], [0, 1]], [[0.3, 0.7], [0, 1]]), ([[1, 0]], [[1, 2]])):
        pearson.update([mx.np.array(label)], [mx.np.array(pred)])
    assert pearson.get()[1] == pytest.approx(np.corrcoef([1, 0, 0, 1, 1, 0], [0.3, 0.7, 0, 1, 1, 2])[0, 1], rel=1e-5)


def test_metrics_come_back_from_their_configuration():
    import json
    for made in (mx.gluon.metric.F1(class_type="multilabel"), mx.gluon.metric.create("ce", axis=1), mx.gluon.metric.create("mcc"),
                 mx.gluon.metric.create("pearsonr"), mx.gluon.metric.create("acc", axis=0),
                 mx.gluon.metric.create(["acc", "f1"])):
        again = mx.gluon.metric.create(json.dumps(made.get_config()))
        assert type(again) is type(made) and again.get_config() == made.get_config()
    with pytest.raises(ValueError, match="the JSON text of a metric's get_config"):
        mx.gluon.metric.create("{}")
