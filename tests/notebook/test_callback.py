"""With stand-ins for pandas and bokeh, which need not be installed."""
import sys
import types

import pytest

import mxnet as mx
from mxnet.notebook import callback


class Frame:
    """As much of a dataframe as is needed."""

    def __init__(self):
        self.columns, self.rows = [], {}
        self.loc = self

    def __len__(self):
        return len(self.rows)

    def __setitem__(self, key, value):
        if isinstance(key, str):
            self.columns.append(key)
        else:
            self.rows[key] = value


class Line:
    def __init__(self):
        self.data_source = types.SimpleNamespace(data={}, stream=lambda new: self.data_source.data.update(new))


@pytest.fixture
def modules(monkeypatch):
    pushed = []
    figure = types.SimpleNamespace(line=lambda x, y, **kwargs: Line(), legend=types.SimpleNamespace())
    io = types.SimpleNamespace(output_notebook=lambda: None, push_notebook=lambda handle: pushed.append(handle))
    plotting = types.SimpleNamespace(figure=lambda **kwargs: figure, show=lambda fig, notebook_handle: "handle")
    for name, module in (("pandas", types.SimpleNamespace(DataFrame=Frame)), ("bokeh", types.SimpleNamespace(io=io, plotting=plotting)),
                         ("bokeh.io", io), ("bokeh.plotting", plotting)):
        monkeypatch.setitem(sys.modules, name, module)
    return pushed


def param(nbatch, epoch=0, value=None):
    metric = None
    if value is not None:
        metric = mx.metric.CustomMetric(lambda label, pred: value, name="score")
        metric.update([mx.nd.ones(1)], [mx.nd.ones(1)])
    return types.SimpleNamespace(nbatch=nbatch, epoch=epoch, eval_metric=metric)


def test_a_logger_keeps_rows(modules):
    logger = callback.PandasLogger(32, frequent=2)
    for i in range(4):
        last = param(i, value=.5)
        logger.train_cb(last)
    logger.eval_cb(param(3, epoch=1, value=.75))
    logger.epoch_cb(0, None, {}, {})
    train, evaluation, epoch = (logger.all_dataframes[n] for n in ("train", "eval", "epoch"))
    assert [row["minibatch_count"] for row in train.rows.values()] == [0, 2] and train.rows[0]["score"] == .5
    assert train.rows[1]["records_per_sec"] == pytest.approx(32 * train.rows[1]["batches_per_sec"])
    assert (evaluation.rows[0]["epoch"], len(epoch), set(epoch.columns)) == (1, 1, {"elapsed", "epoch_time"})
    assert (logger.train_df, logger.eval_df, logger.epoch_df) == (train, evaluation, epoch)
    assert last.eval_metric.num_inst == 1  # not looked at, so not reset


def test_a_learning_curve_draws_both_lines(modules):
    curve = callback.LiveLearningCurve("score", display_freq=1000, frequent=1)
    curve.batch_cb(param(0, value=.25))
    assert not modules  # it is not time yet
    curve.eval_cb(param(1, value=.5))
    assert modules == ["handle"]
    assert [curve._lines[k].data_source.data["y"] for k in ("train", "eval")] == [[.25], [.5]]
    curve = callback.LiveLearningCurve("loss", display_freq=-1, frequent=1)
    with pytest.raises(ValueError, match="there is no metric 'loss'; fit measures .*score"):
        curve.batch_cb(param(0, value=.25))


def test_a_time_series_grows(modules):
    series = callback.LiveTimeSeries(title="loss")
    series.update_chart_data(3)
    assert series._line.data_source.data["y"] == [3] and modules == ["handle"]


def test_arguments_of_several_are_put_together(modules):
    logger, curve = callback.PandasLogger(8), callback.LiveLearningCurve("score")
    together = callback.args_wrapper(logger, curve)
    assert together["batch_end_callback"] == [logger.train_cb, curve.batch_cb]
    assert together["eval_end_callback"] == [logger.eval_cb, curve.eval_cb] and together["epoch_end_callback"] == [logger.epoch_cb]


def test_a_chart_of_ones_own_must_say_what_to_draw(modules):
    with pytest.raises(NotImplementedError, match="a subclass must say what to draw in setup_chart"):
        callback.LiveBokehChart(None, "score")


def test_what_is_not_installed_is_named(monkeypatch):
    for name in ("pandas", "bokeh.io", "bokeh"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="PandasLogger needs pandas, which is not installed: pip install pandas"):
        callback.PandasLogger(8)
    with pytest.raises(ImportError, match="LiveLearningCurve needs bokeh"):
        callback.LiveLearningCurve("score")
    assert callback.pd is callback.Pandas_Failed_To_Import
