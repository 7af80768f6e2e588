"""Callbacks for ``Module.fit`` that gather statistics in pandas dataframes, or draw them live with bokeh, in a notebook."""
from __future__ import annotations

import collections
import datetime
import importlib
import time
from collections.abc import Mapping
from typing import Any

from ..suggestions import MissingAttributeError as _MissingAttributeError


class Pandas_Failed_To_Import:  # noqa: N801
    """Stands for pandas where it is not installed."""


def __getattr__(name: str) -> Any:
    if name == "pd":
        try:
            return importlib.import_module("pandas")
        except ImportError:
            return Pandas_Failed_To_Import
    raise _MissingAttributeError(__name__, name)


def _needed(module, who):
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.split(".")[0]
        raise ImportError(f"{who} needs {package}, which is not installed: pip install {package}") from None


def _metrics_of(param):
    """Return the values that a metric has measured since the last call, and reset it."""
    if param.eval_metric is None:
        return {}
    values = dict(param.eval_metric.get_name_value())
    param.eval_metric.reset()
    return values


def _frame(name, doc):
    """A property: one of the logger's dataframes."""
    return property(lambda self: self._dataframes[name], doc=doc)


class PandasLogger:
    """Gathers what happens in training in three dataframes: of batches, of evaluations, of epochs.

    Parameters
    ----------
    batch_size : int
    frequent : int
        How many batches there are from one row to the next.

    Raises
    ------
    ImportError
        If pandas is not installed.

    Example
    -------
    .. code-block:: python

        logger = mx.notebook.callback.PandasLogger(batch_size=32)
        module.fit(train, eval_data=validation, num_epoch=5, **logger.callback_args())
        logger.train_df.plot(x="elapsed", y="accuracy")
    """

    def __init__(self, batch_size: int, frequent: int = 50):
        frame = _needed("pandas", "PandasLogger").DataFrame
        self.batch_size, self.frequent = batch_size, frequent
        self._dataframes = {name: frame() for name in ("train", "eval", "epoch")}
        self.last_time = time.time()
        self.start_time = self.last_epoch_time = datetime.datetime.now()

    train_df = _frame("train", "Of every `frequent`-th batch: its metrics, how fast it was, and when.")
    eval_df = _frame("eval", "Of every evaluation: its metrics, and when it was.")
    epoch_df = _frame("epoch", "Of every epoch: how long it took, and when it ended.")
    all_dataframes = property(lambda self: self._dataframes, doc="The three by name: train, eval, epoch.")

    def append_metrics(self, metrics: Mapping[str, Any], df_name: str) -> None:
        """Add a row, a dict, to a dataframe; columns that are new are added too."""
        frame = self._dataframes[df_name]
        for column in metrics:
            if column not in frame.columns:
                frame[column] = None
        frame.loc[len(frame)] = metrics

    def elapsed(self) -> datetime.timedelta:
        """The time since the start."""
        return datetime.datetime.now() - self.start_time

    def train_cb(self, param: Any) -> None:
        """For ``batch_end_callback``."""
        if param.nbatch % self.frequent == 0:
            self._process_batch(param, "train")

    def eval_cb(self, param: Any) -> None:
        """For ``eval_end_callback``."""
        self._process_batch(param, "eval")

    def _process_batch(self, param, dataframe):
        now = time.time()
        passed = now - self.last_time
        speed = self.frequent / passed if passed else float("inf")
        # MXNet has these two the wrong way round.
        self.append_metrics({**_metrics_of(param), "batches_per_sec": speed, "records_per_sec": speed * self.batch_size,
                             "elapsed": self.elapsed(), "minibatch_count": param.nbatch, "epoch": param.epoch}, dataframe)
        self.last_time = now

    def epoch_cb(self, *args: Any) -> None:
        """For ``epoch_end_callback``, whose arguments it needs not."""
        now = datetime.datetime.now()
        self.append_metrics({"elapsed": self.elapsed(), "epoch_time": now - self.last_epoch_time}, "epoch")
        self.last_epoch_time = now

    def callback_args(self) -> dict[str, Any]:
        """The arguments for `fit` that attach this."""
        return {"batch_end_callback": self.train_cb, "eval_end_callback": self.eval_cb, "epoch_end_callback": self.epoch_cb}


class LiveBokehChart:
    """A chart that is drawn again while training goes on; subclasses say what is in it.

    Parameters
    ----------
    pandas_logger : PandasLogger or None
        Where the data comes from; a new one of `batch_size` and `frequent` if None and `batch_size` is given.
    metric_name : str
    display_freq : float
        Seconds between two drawings.
    batch_size, frequent : int

    Raises
    ------
    ImportError
        If bokeh, or pandas for the logger, is not installed.
    """

    def __init__(self, pandas_logger: Any, metric_name: str | None, display_freq: int = 10, batch_size: int | None = None, frequent: int = 50):
        self._io = _needed("bokeh.io", type(self).__name__)
        self.pandas_logger = pandas_logger or (PandasLogger(batch_size, frequent) if batch_size is not None else None)
        self.metric_name, self.display_freq, self.frequent = metric_name, display_freq, frequent
        self.last_update = time.time()
        self._io.output_notebook()
        self.handle = self.setup_chart()

    def setup_chart(self) -> Any:
        """Draw for the first time; returns the handle that bokeh updates the chart by."""
        raise NotImplementedError(f"{type(self).__name__}: a subclass must say what to draw in setup_chart()")

    def update_chart_data(self) -> Any:
        """Bring the data of the chart up to date."""
        raise NotImplementedError(f"{type(self).__name__}: a subclass must say what has changed in update_chart_data()")

    def interval_elapsed(self) -> bool:
        """Return True when it is time to draw again."""
        return time.time() - self.last_update > self.display_freq

    def callback_args(self) -> dict[str, Any]:
        """The arguments for `fit` that attach this."""
        return {"batch_end_callback": self.batch_cb, "eval_end_callback": self.eval_cb}

    def _redraw(self):
        self.update_chart_data()
        self._io.push_notebook(handle=self.handle)
        self.last_update = time.time()

    def eval_cb(self, param: Any) -> None:
        """For ``eval_end_callback``."""
        self._redraw()

    def batch_cb(self, param: Any) -> None:
        """For ``batch_end_callback``."""
        if self.interval_elapsed():
            self._redraw()

    def _show(self, figure):
        return _needed("bokeh.plotting", type(self).__name__).show(figure, notebook_handle=True)


class LiveTimeSeries(LiveBokehChart):
    """A line through the values given to `update_chart_data`, over the time since the start.

    Parameters
    ----------
    **fig_params
        For ``bokeh.plotting.figure``.
    """

    def __init__(self, **fig_params: Any):
        self.fig = _needed("bokeh.plotting", "LiveTimeSeries").figure(x_axis_type="datetime", x_axis_label="Elapsed time", **fig_params)
        super().__init__(None, None)

    def setup_chart(self) -> Any:
        """Draw an empty line."""
        self.start_time = datetime.datetime.now()
        self._line = self.fig.line([], [])
        return self._show(self.fig)

    def elapsed(self) -> datetime.timedelta:
        """The time since the chart was made."""
        return datetime.datetime.now() - self.start_time

    def update_chart_data(self, value: float) -> None:
        """Add a value, and draw."""
        self._line.data_source.stream({"x": [self.elapsed()], "y": [value]})
        self._io.push_notebook(handle=self.handle)


class LiveLearningCurve(LiveBokehChart):
    """A metric over time, in training and in evaluation.

    Parameters
    ----------
    metric_name : str
        The name that the metric has in `fit`.
    display_freq : float
        Seconds between two drawings.
    frequent : int
        How many batches there are from one point to the next.
    """

    def __init__(self, metric_name: str, display_freq: int = 10, frequent: int = 50):
        self.start_time = datetime.datetime.now()
        self._data = {"train": {"elapsed": []}, "eval": {"elapsed": []}}
        super().__init__(None, metric_name, display_freq, frequent=frequent)

    def setup_chart(self) -> Any:
        """Draw two empty lines."""
        self.fig = _needed("bokeh.plotting", "LiveLearningCurve").figure(x_axis_type="datetime", x_axis_label="Training time",
                                                                         y_axis_label=self.metric_name)
        self._lines = {"train": self.fig.line([], [], line_dash="dotted", legend_label="train"),
                       "eval": self.fig.line([], [], line_color="green", line_width=2, legend_label="validation")}
        self.fig.legend.location = "bottom_right"
        return self._show(self.fig)

    def batch_cb(self, param: Any) -> None:
        """For ``batch_end_callback``."""
        if param.nbatch % self.frequent == 0:
            self._process_batch(param, "train")
        super().batch_cb(param)

    def eval_cb(self, param: Any) -> None:
        """For ``eval_end_callback``."""
        self._process_batch(param, "eval")
        super().eval_cb(param)

    def _process_batch(self, param, df_name):
        for key, value in {**_metrics_of(param), "elapsed": datetime.datetime.now() - self.start_time}.items():
            self._data[df_name].setdefault(key, []).append(value)

    def update_chart_data(self) -> Any:
        """Show all points gathered so far."""
        for name, line in self._lines.items():
            data = self._data[name]
            if data["elapsed"]:
                if self.metric_name not in data:
                    raise ValueError(f"LiveLearningCurve: there is no metric {self.metric_name!r}; fit measures "
                                     f"{', '.join(sorted(set(data) - {'elapsed'})) or 'none'}")
                line.data_source.data = {"x": list(data["elapsed"]), "y": list(data[self.metric_name])}


def args_wrapper(*args: Any) -> dict[str, Any]:
    """The arguments for `fit` that attach several of these objects.

    Example
    -------
    .. code-block:: python

        module.fit(train, eval_data=validation, num_epoch=5, **args_wrapper(PandasLogger(32), LiveLearningCurve("accuracy")))
    """
    callbacks = collections.defaultdict(list)
    for each in args:
        for name, function in each.callback_args().items():
            callbacks[name].append(function)
    return dict(callbacks)
