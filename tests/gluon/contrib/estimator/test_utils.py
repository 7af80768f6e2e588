import pytest

import mxnet as mx
from mxnet.gluon.contrib.estimator import utils


def test_metrics_become_a_flat_list():
    mse, mae = mx.metric.MSE(), mx.metric.MAE()
    assert utils._check_metrics(mx.metric.CompositeEvalMetric([mse, mx.metric.CompositeEvalMetric([mae])])) == [mse, mae]
    assert utils._check_metrics(mse) == [mse] and utils._check_metrics(None) == [] and utils._check_metrics((mse,)) == [mse]
    with pytest.raises(ValueError, match=r"an EvalMetric or a list of them expected, received \['mse'\]; mx.metric.create makes one"):
        utils._check_metrics(["mse"])


def test_metrics_that_a_handler_refers_to():
    class Handler:
        metric_name = "mse"

        def __init__(self, metric):
            self.own_metric, self.monitor = metric, mx.metric.MAE()

    mse = mx.metric.MSE()
    utils._check_handler_metric_ref(Handler(mse), {mse})
    with pytest.raises(ValueError, match="Handler refers to EvalMetric"):
        utils._check_handler_metric_ref(Handler(mse), {mx.metric.MAE()})


def test_a_suggested_metric():
    assert type(utils._suggest_metric_for_loss(mx.gluon.loss.SoftmaxCELoss())) is mx.metric.Accuracy
    assert utils._suggest_metric_for_loss(mx.gluon.loss.L2Loss()) is None
