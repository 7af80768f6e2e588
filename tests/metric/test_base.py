import json

import numpy as np
import pytest

import mxnet as mx
from mxnet import metric

LABEL, PRED = mx.nd.array([0, 1]), mx.nd.array([[0.5, 0.5], [1, 0]])


@pytest.mark.parametrize("name, klass", [
    ("acc", metric.Accuracy), ("Accuracy", metric.Accuracy), ("ce", metric.CrossEntropy), ("nll_loss", metric.NegativeLogLikelihood),
    ("pearsonr", metric.PearsonCorrelation), ("mse", metric.MSE), ("f1", metric.F1), ("mcc", metric.MCC), ("pcc", metric.PCC), ("loss", metric.Loss),
    ("composite", metric.CompositeEvalMetric)])
def test_create_by_name(name, klass):
    assert type(metric.create(name)) is klass


def test_create_with_arguments():
    assert metric.create("top_k_acc", top_k=3).name == "top_k_accuracy_3"
    assert metric.create({"metric": "acc", "axis": 2}).axis == metric.create('["acc", {"axis": 2}]').axis == 2
    assert metric.create(json.dumps(metric.Accuracy(axis=3).get_config())).axis == 3
    with pytest.raises(ValueError, match="there is no metric named 'nope'; decorate its class with metric.register"):
        metric.create("nope")
    with pytest.raises(ValueError, match="Please use Accuracy if top_k is no more than 1; received 1"):
        metric.TopKAccuracy(1)


def test_composite():
    m = metric.create(["acc", metric.CrossEntropy(name="x"), lambda label, pred: 2.0])
    m.update([LABEL], [PRED])
    assert m.get() == (["accuracy", "x", "custom(<lambda>)"], [0.5, pytest.approx(14.162084), 2.0])
    assert m.get_name_value()[0] == ("accuracy", 0.5)
    m.reset_local()
    assert np.isnan(m.get()[1]).all() and m.get_global()[1][2] == 2.0
    m.reset()
    assert np.isnan(m.get_global()[1]).all()
    assert m.get_metric(0).name == "accuracy"
    with pytest.raises(ValueError, match="Metric index 4 is out of range 0 and 3"):
        m.get_metric(4)
    nested = metric.create(metric.CompositeEvalMetric(["acc", ["mse"]]).get_config())
    assert nested.get()[0] == ["accuracy", "mse"]


def test_outputs_and_labels_by_name():
    m = metric.Accuracy(output_names=["o"], label_names=["l"])
    m.update_dict({"l": mx.nd.array([1, 0]), "x": LABEL}, {"o": mx.nd.array([[0, 1], [0, 1]]), "p": PRED})
    assert m.get()[1] == 0.5
    m = metric.CompositeEvalMetric(["acc"], output_names=["o"], label_names=["l"])
    m.update_dict({"l": mx.nd.array([1, 0]), "x": LABEL}, {"o": mx.nd.array([[0, 1], [0, 1]]), "p": PRED})
    assert m.get()[1] == [0.5]
    m = metric.Accuracy()
    m.update_dict({"l": LABEL}, {"o": PRED})
    assert m.get()[1] == 0.5


def test_functions():
    def worst(label, pred):
        assert isinstance(label, np.ndarray)
        return np.abs(label - pred).max()

    m = metric.create(worst, name="w")
    m.update([mx.nd.array([1, 2])], [mx.nd.array([1, 4])])
    m.update([mx.nd.array([1, 2])], [mx.nd.array([2, 2])])
    assert m.get() == ("w", 1.5) and type(m.get()[1]) is float
    with pytest.raises(NotImplementedError, match="CustomMetric cannot be serialized"):
        m.get_config()
    shares = metric.np(lambda label, pred: ((label == pred).sum(), label.size), name="s")
    shares.update([mx.nd.array([1, 2, 3])], [mx.nd.array([1, 2, 2])])
    assert shares.get() == ("s", pytest.approx(2 / 3))
    assert metric.np(worst).name == "worst"


def test_extra_outputs():
    with pytest.raises(ValueError, match="length 1 of the labels and 2 of the predictions"):
        metric.CustomMetric(lambda label, pred: 1).update([LABEL], [LABEL, LABEL])
    m = metric.CustomMetric(lambda label, pred: 1, allow_extra_outputs=True)
    m.update([LABEL], [LABEL, LABEL])
    assert m.num_inst == 1


def test_text():
    m = metric.Accuracy()
    assert str(m) == "EvalMetric: {'accuracy': nan}"
    m.update([LABEL], [PRED])
    assert str(m) == "EvalMetric: {'accuracy': 0.5}"
    assert m.get_config() == {"axis": 1, "metric": "Accuracy", "name": "accuracy", "output_names": None, "label_names": None}


def test_own_metrics():
    @metric.register
    @metric.alias("batches")
    class CountBatches(metric.EvalMetric):
        def __init__(self):
            super().__init__("count")

        def update(self, labels, preds):
            self.sum_metric += 1
            self.num_inst = 1

    m = metric.create("batches")
    m.update([LABEL], [PRED])
    m.update([LABEL], [PRED])
    assert m.get() == m.get_global() == ("count", 2.0)
    assert m.get_global_name_value() == [("count", 2.0)]
    with pytest.raises(NotImplementedError, match="EvalMetric must define update"):
        metric.EvalMetric("x").update([], [])


def test_predictions_on_another_device_and_recorded_ones():
    m, pred = metric.Accuracy(), PRED.copy()
    pred.attach_grad()
    with mx.autograd.record():
        m.update([LABEL], [pred * 1])
        m.update([LABEL.as_in_context(mx.cpu(1))], [PRED])
    assert m.get()[1] == 0.5


def test_many_small_values_add_up():
    m = metric.Loss()
    for _ in range(3):
        m.update(None, [mx.nd.array([16777216.0]), mx.nd.array([1.0])])
    assert m.sum_metric == 3 * 16777217.0


def test_metrics_only_read_what_they_are_given():
    from mxnet.ndarray import mutation_tracking
    label, pred = mx.nd.array([0, 1]), mx.nd.array([[0.6, 0.4], [1, 0]])
    accuracy = metric.Accuracy()
    accuracy.update([label], [pred])
    assert accuracy.get() == ("accuracy", 0.5)
    assert pred._data.untyped_storage().data_ptr() not in mutation_tracking._shared  # torch's users have not seen it
