import collections

import mxnet as mx


def test_metrics_are_written_under_the_prefix(tmp_path):
    written = []
    callback = mx.contrib.tensorboard.LogMetricsCallback(str(tmp_path), prefix="run")
    writer = collections.namedtuple("Writer", "add_scalar")(lambda name, value, global_step: written.append((name, value, global_step)))
    callback.summary_writer = writer
    metric = mx.metric.Accuracy()
    metric.update([mx.nd.array([1, 0])], [mx.nd.array([[0, 1], [0, 1]])])
    param = collections.namedtuple("Param", "epoch eval_metric")
    callback(param(3, metric))
    callback(param(4, None))
    assert written == [("run-accuracy", 0.5, 3)]
