"""Handlers of the estimator's events: begin and end of training, of epochs and of batches."""
from __future__ import annotations

import contextlib
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ....files import remove_left
from ....io import load_position, save_position
from ....metric import CompositeEvalMetric, EvalMetric
from ....metric import Loss as metric_loss
from ....suggestions import shortened
from ...utils import UsageError
from .utils import _check_metrics

if TYPE_CHECKING:
    from ...data import DataLoader
    from .estimator import Estimator

__all__ = ["TrainBegin", "TrainEnd", "EpochBegin", "EpochEnd", "BatchBegin", "BatchEnd", "StoppingHandler", "MetricHandler", "ValidationHandler",
           "LoggingHandler", "CheckpointHandler", "EarlyStoppingHandler", "GradientUpdateHandler"]


class EventHandler:
    """The base of handlers. Derive from those of the events that you handle; the lower its ``priority``, the earlier a handler is called."""


def _check_event_handlers(handlers: Any) -> list[Any]:
    if isinstance(handlers, EventHandler):
        return [handlers]
    handlers = handlers or []
    if not isinstance(handlers, (list, tuple)) or not all(isinstance(handler, EventHandler) for handler in handlers):
        raise ValueError(f"an EventHandler or a list of them expected as event_handlers, received {shortened(handlers)}; derive handlers from "
                         "TrainBegin, EpochBegin, BatchBegin, BatchEnd, EpochEnd and TrainEnd")
    return list(handlers)


class TrainBegin(EventHandler):
    """Has a `train_begin`.

    Example
    -------
    >>> class Greeting(mx.gluon.contrib.estimator.TrainBegin):
    ...     def train_begin(self, estimator, *args, **others):
    ...         print('training begins')
    >>> Greeting().train_begin(None)
    training begins
    """

    def train_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Called once, before the first epoch."""


class TrainEnd(EventHandler):
    """Has a `train_end`.

    Example
    -------
    >>> class Farewell(mx.gluon.contrib.estimator.TrainEnd):
    ...     def train_end(self, estimator, *args, **kwargs):
    ...         print('training ends')
    >>> Farewell().train_end(None)
    training ends
    """

    def train_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Called once, after the last epoch."""


class EpochBegin(EventHandler):
    """Has an `epoch_begin`.

    Example
    -------
    >>> class Clock(mx.gluon.contrib.estimator.EpochBegin):
    ...     def epoch_begin(self, estimator, *args, **kwargs):
    ...         self.epochs = getattr(self, 'epochs', 0) + 1
    >>> clock = Clock()
    >>> clock.epoch_begin(None)
    >>> clock.epochs
    1
    """

    def epoch_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Called before each epoch, and before an evaluation."""


class EpochEnd(EventHandler):
    """Has an `epoch_end`.

    Example
    -------
    >>> class Clock(mx.gluon.contrib.estimator.EpochEnd):
    ...     def epoch_end(self, estimator, *args, **kwargs):
    ...         print('an epoch is over')
    >>> Clock().epoch_end(None)
    an epoch is over
    """

    def epoch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> bool | None:
        """Called after each epoch, and after an evaluation; True ends the training."""
        return False


class BatchBegin(EventHandler):
    """Has a `batch_begin`.

    Example
    -------
    >>> class Sizes(mx.gluon.contrib.estimator.BatchBegin):
    ...     def batch_begin(self, estimator, *args, batch=None, **kwargs):
    ...         print(batch[0].shape)
    >>> Sizes().batch_begin(None, batch=[mx.nd.ones((2, 3))])
    (2, 3)
    """

    def batch_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Called before each batch, with it as ``batch=``."""


class BatchEnd(EventHandler):
    """Has a `batch_end`.

    Example
    -------
    >>> class Losses(mx.gluon.contrib.estimator.BatchEnd):
    ...     def batch_end(self, estimator, *args, loss=None, **kwargs):
    ...         print(loss[0].mean().asscalar())
    >>> Losses().batch_end(None, loss=[mx.nd.array([1, 2])])
    1.5
    """

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> bool | None:
        """Called after each batch, with ``batch=``, ``pred=``, ``label=`` and ``loss=``; True ends the epoch."""
        return False


class StoppingHandler(TrainBegin, BatchEnd, EpochEnd):
    """Ends the training after so many epochs or batches. An estimator adds one and sets the limits when training begins.

    Example
    -------
    >>> handler = mx.gluon.contrib.estimator.StoppingHandler(max_batch=2)
    >>> handler.batch_end(None), handler.batch_end(None)
    (False, True)
    """

    def __init__(self, max_epoch: int | None = None, max_batch: int | None = None) -> None:
        self.max_epoch = max_epoch
        self.max_batch = max_batch
        self.current_batch = 0
        self.current_epoch = 0
        self.stop_training = False

    def train_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Take over the limits of the estimator and count from 0."""
        self.max_epoch, self.max_batch = estimator.max_epoch, estimator.max_batch
        self.current_batch = self.current_epoch = 0

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> bool:
        """Count the batch; return True if it was the last one, or training is to stop already."""
        self.current_batch += 1
        self.stop_training |= self.current_batch == self.max_batch
        return self.stop_training

    def epoch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> bool:
        """Count the epoch; return True if it was the last one, or training is to stop already."""
        self.current_epoch += 1
        self.stop_training |= self.current_epoch == self.max_epoch
        return self.stop_training


class MetricHandler(EpochBegin, BatchEnd):
    """Resets metrics before each epoch and updates them after each batch.

    Parameters
    ----------
    metrics : EvalMetric or list of EvalMetric
        A `metric.Loss` gets the losses, any other the labels and outputs.
    priority : float

    Example
    -------
    >>> accuracy = mx.metric.Accuracy()
    >>> handler = mx.gluon.contrib.estimator.MetricHandler([accuracy])
    >>> handler.batch_end(None, pred=[mx.nd.array([[0.9, 0.1]])], label=[mx.nd.array([0])], loss=[mx.nd.zeros(1)])
    >>> accuracy.get()
    ('accuracy', 1.0)
    """

    def __init__(self, metrics: EvalMetric | list[EvalMetric], priority: float = -1000) -> None:
        self.metrics = _check_metrics(metrics)
        self.priority = priority  # before all that reads metrics

    def epoch_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Reset the metrics."""
        for metric in self.metrics:
            metric.reset()

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Update the metrics."""
        for metric in self.metrics:
            if isinstance(metric, metric_loss):
                metric.update(0, kwargs["loss"])
            else:
                metric.update(kwargs["label"], kwargs["pred"])


class ValidationHandler(TrainBegin, BatchEnd, EpochEnd):
    """Evaluates every so many epochs or batches.

    Parameters
    ----------
    val_data : DataLoader
    eval_fn : callable
        ``eval_fn(val_data=, batch_axis=, event_handlers=)``, such as ``estimator.evaluate``.
    epoch_period, batch_period : int, optional
        After how many epochs, and after how many batches; None for never.
    priority : float
    event_handlers : EventHandler or list of EventHandler, optional
        For `eval_fn`.

    Example
    -------
    >>> net = mx.gluon.nn.Dense(1)
    >>> net.initialize()
    >>> est = mx.gluon.contrib.estimator.Estimator(net, mx.gluon.loss.L2Loss(), trainer=mx.gluon.Trainer(net.collect_params(), 'sgd'))
    >>> est.logger.setLevel('ERROR')
    >>> data = mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(mx.nd.ones((4, 2)), mx.nd.ones(4)), batch_size=2)
    >>> validation = mx.gluon.contrib.estimator.ValidationHandler(data, eval_fn=lambda **_: print('validation'), epoch_period=2)
    >>> est.fit(data, epochs=4, event_handlers=[validation])
    validation
    validation
    """

    def __init__(self, val_data: DataLoader, eval_fn: Callable[..., Any], epoch_period: int | None = 1, batch_period: int | None = None,
                 priority: float = -1000, event_handlers: EventHandler | list[EventHandler] | None = None) -> None:
        self.val_data, self.eval_fn, self.event_handlers = val_data, eval_fn, event_handlers
        self.epoch_period, self.batch_period = epoch_period, batch_period
        self.current_batch = self.current_epoch = 0
        self.priority = priority  # before all that reads metrics

    def train_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Count from 0."""
        self.current_batch = self.current_epoch = 0

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Evaluate if it is time."""
        self.current_batch += 1
        self._evaluate_every(self.batch_period, self.current_batch, estimator)

    def epoch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Evaluate if it is time."""
        self.current_epoch += 1
        self._evaluate_every(self.epoch_period, self.current_epoch, estimator)

    def _evaluate_every(self, period: int | None, count: int, estimator: Estimator) -> None:
        if period and count % period == 0:
            self.eval_fn(val_data=self.val_data, batch_axis=estimator.batch_axis, event_handlers=self.event_handlers)


class LoggingHandler(TrainBegin, TrainEnd, EpochBegin, EpochEnd, BatchBegin, BatchEnd):
    """Writes progress and metrics to ``estimator.logger``.

    Parameters
    ----------
    log_interval : int or 'epoch'
        Write after so many batches too.
    metrics : EvalMetric or list of EvalMetric, optional
    priority : float

    Raises
    ------
    ValueError
        If `log_interval` is anything else.

    Example
    -------
    >>> handler = mx.gluon.contrib.estimator.LoggingHandler(log_interval=100, metrics=mx.metric.Accuracy())
    >>> handler.log_interval
    100
    """

    def __init__(self, log_interval: int | str = "epoch", metrics: EvalMetric | list[EvalMetric] | None = None,
                 priority: float = np.inf) -> None:
        if not isinstance(log_interval, int) and log_interval != "epoch":
            raise ValueError(f"LoggingHandler: log_interval is a number of batches or 'epoch', received {shortened(log_interval)}")
        self.metrics = _check_metrics(metrics)
        self.batch_index = 0
        self.current_epoch = 0
        self.processed_samples = 0
        self.priority = priority  # after all handlers that change the logged values
        self.log_interval = log_interval
        self.log_interval_time = 0.0

    def _values(self) -> str:
        return ", ".join("{}: {:.4f}".format(*metric.get()) for metric in self.metrics)

    def train_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Log the learning rate and the limits with which training begins."""
        self.train_start = time.time()
        trainer = estimator.trainer
        estimator.logger.info("Training begin: using optimizer %s with current learning rate %.4f ",
                              type(trainer.optimizer).__name__, trainer.learning_rate)
        if estimator.max_epoch:
            estimator.logger.info("Train for %d epochs.", estimator.max_epoch)
        else:
            estimator.logger.info("Train for %d batches.", estimator.max_batch)
        self.current_epoch = self.batch_index = self.processed_samples = 0
        self.log_interval_time = 0.0

    def train_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Log the duration and the metrics."""
        estimator.logger.info("Train finished using total %ds with %d epochs. %s", time.time() - self.train_start, self.current_epoch, self._values())

    def batch_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Note the time."""
        self.batch_start = time.time()

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Write the metrics if it is time."""
        if isinstance(self.log_interval, int):
            self.processed_samples += kwargs["batch"][0].shape[0]
            self.log_interval_time += time.time() - self.batch_start
            if self.batch_index % self.log_interval == 0:
                estimator.logger.info("[Epoch %d][Batch %d][Samples %s] time/interval: %.3fs %s", self.current_epoch, self.batch_index,
                                      self.processed_samples, self.log_interval_time, self._values())
                self.log_interval_time = 0.0
        self.batch_index += 1

    def epoch_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Write that an epoch, or an evaluation, begins."""
        self.epoch_start = time.time()
        if any("training" in metric.name for metric in self.metrics):
            estimator.logger.info("[Epoch %d] Begin, current learning rate: %.4f", self.current_epoch, estimator.trainer.learning_rate)
        else:
            estimator.logger.info("Validation Begin")

    def epoch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Log the duration and the metrics."""
        estimator.logger.info("[Epoch %d] Finished in %.3fs, %s", self.current_epoch, time.time() - self.epoch_start, self._values())
        self.current_epoch += 1
        self.batch_index = 0


def _comparison(handler: Any, monitor: EvalMetric, mode: str) -> Any:
    """Return ``np.less`` if a lower value of `monitor` is better, else ``np.greater``."""
    if mode not in ("auto", "min", "max"):
        warnings.warn(f"{type(handler).__name__}: mode is 'auto', 'min' or 'max', received {shortened(mode)}; it is taken for 'auto'", RuntimeWarning,
                      stacklevel=3)
        mode = "auto"
    if mode == "auto":
        name = monitor.get()[0]
        mode = "max" if "acc" in str(name).lower() or "f1" in str(name).lower() else "min"
        warnings.warn(f"{type(handler).__name__}: the {'higher' if mode == 'max' else 'lower'} value of {name!r} is taken for the better one; "
                      "say mode='min' or mode='max'", stacklevel=3)
    return np.greater if mode == "max" else np.less


def _monitored(handler: Any) -> float:
    """Return the monitored value; NaN, with a warning, if nothing has updated it."""
    name, value = handler.monitor.get()
    if np.isnan(value):
        warnings.warn(f"{type(handler).__name__}: {name} has no value; monitor a metric out of estimator.train_metrics or estimator.val_metrics, "
                      "the latter with validation data", RuntimeWarning, stacklevel=3)
    return value


class CheckpointHandler(TrainBegin, BatchEnd, EpochEnd):
    """Saves parameters, the trainer's states and how far the data are every so many epochs or batches, and the graph of a hybridized network once.

    The files are ``<model_prefix>-epoch<e>batch<b>.params``, ``.states`` and ``.data`` (`mx.io.save_position`), ``<model_prefix>-symbol.json``, and
    ``<model_prefix>-best.params`` and ``.states``, in `model_dir`.

    Parameters
    ----------
    model_dir : str
        Made if it does not exist.
    model_prefix : str
    monitor : EvalMetric, optional
        The metric of the estimator's that `save_best` compares.
    verbose : int
        1 to write each checkpoint to the log.
    save_best : bool
        Keep the checkpoint with the best value of `monitor` as well.
    mode : str
        Which value is the better one: 'min', 'max', or 'auto' for the higher one if the metric's name has "acc" or "f1" in it.
    epoch_period, batch_period : int, optional
        After how many epochs, and after how many batches, to save; None for never.
    max_checkpoints : int
        The number of checkpoints to keep besides the best one, including those of a resumed training; the oldest are removed.
    resume_from_checkpoint : bool
        Load the newest checkpoint of `model_dir`, if there is one, and train for the remaining epochs or batches, on the remaining data.

    Raises
    ------
    ValueError
        If `save_best` has no metric to compare.

    Example
    -------
    >>> import os, tempfile
    >>> folder, net = tempfile.mkdtemp(), mx.gluon.nn.Dense(1)
    >>> net.initialize()
    >>> est = mx.gluon.contrib.estimator.Estimator(net, mx.gluon.loss.L2Loss(), trainer=mx.gluon.Trainer(net.collect_params(), 'sgd'))
    >>> data = mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(mx.nd.ones((4, 2)), mx.nd.ones(4)), batch_size=2)
    >>> est.logger.setLevel('ERROR')
    >>> est.fit(data, epochs=2, event_handlers=[mx.gluon.contrib.estimator.CheckpointHandler(folder, max_checkpoints=1)])
    >>> sorted(os.listdir(folder))
    ['model-epoch1batch4.data', 'model-epoch1batch4.params', 'model-epoch1batch4.states', 'model-symbol.json']
    """

    def __init__(self, model_dir: str, model_prefix: str = "model", monitor: EvalMetric | None = None, verbose: int = 0, save_best: bool = False,
                 mode: str = "auto", epoch_period: int | None = 1, batch_period: int | None = None, max_checkpoints: int = 5,
                 resume_from_checkpoint: bool = False) -> None:
        os.makedirs(model_dir, exist_ok=True)
        self.monitor = monitor
        self.verbose = verbose
        self.model_dir = model_dir
        self.model_prefix = model_prefix
        self.save_best = save_best
        self.epoch_period = epoch_period
        self.batch_period = batch_period
        self.current_batch = 0
        self.current_epoch = 0
        self.trained_epoch = -1
        self.trained_batch = -1
        self._within_epoch = False  # the first epoch of a resumed training is the rest of one
        self.max_checkpoints = max_checkpoints
        self.resume_from_checkpoint = resume_from_checkpoint
        self.saved_checkpoints: list[str] = []
        if save_best:
            if not isinstance(monitor, EvalMetric):
                raise ValueError("CheckpointHandler: save_best compares a metric out of estimator.train_metrics or estimator.val_metrics, "
                                 f"received monitor={monitor!r}")
            self.monitor_op = _comparison(self, monitor, mode)
            self.best = np.inf if self.monitor_op is np.less else -np.inf

    def train_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Count from 0, and load the newest checkpoint if training is to be resumed.

        Raises
        ------
        UsageError
            If training by epochs is to be resumed from checkpoints after batches, or the other way round.
        ValueError
            If the newest checkpoint has trained so long already.
        """
        self.current_epoch = self.current_batch = 0
        if self.save_best:
            self.best = np.inf if self.monitor_op is np.less else -np.inf
        if self.resume_from_checkpoint:
            periods = self.epoch_period, self.batch_period
            wanted, other = periods if estimator.max_epoch else periods[::-1]
            if other or not wanted:
                unit = "epochs" if estimator.max_epoch else "batches"
                raise UsageError(f"CheckpointHandler: training for a number of {unit} is resumed from checkpoints after {unit} alone; received "
                                 f"epoch_period={self.epoch_period}, batch_period={self.batch_period}")
            self._resume_from_checkpoint(estimator)

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Save if it is time, and the graph after the first batch."""
        if self.current_batch == 0:
            self._save_symbol(estimator)
        if self.batch_period and (self.current_batch + 1) % self.batch_period == 0:
            self._save_checkpoint(estimator)
        self.current_batch += 1

    def epoch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Save if it is time."""
        if self.epoch_period and (self.current_epoch + 1) % self.epoch_period == 0:
            self._save_checkpoint(estimator, epoch_over=True)
        self.current_epoch += 1

    def _save_checkpoint(self, estimator: Estimator, epoch_over: bool = False) -> None:
        epoch, batch = self.current_epoch, self.current_batch
        if self.resume_from_checkpoint:
            epoch += self.trained_epoch + (0 if self._within_epoch else 1)
            # At the end of an epoch the batch is counted already.
            batch += self.trained_batch + (0 if estimator.max_epoch else 1)
        prefix = f"{self.model_prefix}-epoch{epoch}batch{batch}"
        # The parameters come last and go first: by them a checkpoint is found, so that it is complete even if the process is killed meanwhile.
        self._save_position(estimator, prefix, epoch_over)
        self._save_params_and_trainer(estimator, prefix)
        self.saved_checkpoints.append(prefix)
        if len(self.saved_checkpoints) > self.max_checkpoints:
            with contextlib.suppress(FileNotFoundError):
                os.remove(os.path.join(self.model_dir, self.saved_checkpoints.pop(0) + ".params"))
        self._remove_incomplete()
        self._tell(estimator, "%d batches trained, saved as %s in %s", self.current_batch + 1, prefix, self.model_dir)
        if self.save_best:
            self._save_if_best(estimator)

    def _save_position(self, estimator: Estimator, prefix: str, epoch_over: bool) -> None:
        try:
            len(estimator._train_data)
        except TypeError:  # its sampler may be infinite, so that its rest is no list
            return
        left = estimator._train_data.state()["batches"]
        save_position(os.path.join(self.model_dir, f"{prefix}.data"), estimator._train_data, epoch_over or not left)

    def _save_if_best(self, estimator: Estimator) -> None:
        value = _monitored(self)
        if np.isnan(value):
            return
        name = self.monitor.get()[0] if self.monitor else ""
        if self.monitor_op(value, self.best):
            self._save_params_and_trainer(estimator, f"{self.model_prefix}-best")
            self._tell(estimator, "%s went from %0.5f to %0.5f, saved as %s-best in %s", name, self.best, value, self.model_prefix, self.model_dir)
            self.best = value
        else:
            self._tell(estimator, "%s is %0.5f, no better than %0.5f: the best checkpoint stays", name, value, self.best)

    def _tell(self, estimator: Estimator, message: str, *args: Any) -> None:
        if self.verbose > 0:
            estimator.logger.info("[Epoch %d] CheckpointHandler: " + message, self.current_epoch, *args)

    def _save_symbol(self, estimator: Estimator) -> None:
        path = os.path.join(self.model_dir, f"{self.model_prefix}-symbol.json")
        graph = getattr(estimator.net, "_cached_graph", None)
        if graph:
            graph[1].save(path)
        else:
            estimator.logger.info("CheckpointHandler: %s is not written, since the network has no graph; make it of HybridBlocks and call "
                                  "hybridize() before training to get it", path)

    def _save_params_and_trainer(self, estimator: Estimator, file_prefix: str) -> None:
        path = os.path.join(self.model_dir, file_prefix)
        estimator.trainer.save_states(f"{path}.states")
        estimator.net.save_parameters(f"{path}.params")

    def _pattern(self, ending: str) -> str:
        """Return a regular expression for file names of checkpoints with this ending; its groups are the name without it, the epoch and the batch."""
        return rf"({re.escape(self.model_prefix)}-epoch(\d+)batch(\d+))\.{ending}"

    def _files(self, ending: str) -> Iterator[re.Match[str]]:
        return filter(None, map(re.compile(self._pattern(ending)).fullmatch, os.listdir(self.model_dir)))

    def _found_checkpoints(self) -> list[tuple[int, int]]:
        """Epochs and batches of the checkpoints in the folder, the oldest first."""
        return sorted((int(match[2]), int(match[3])) for match in self._files("params"))

    def _remove_incomplete(self) -> None:
        """Remove remains of checkpoints without parameters, and files that a killed process did not finish."""
        remove_left(self.model_dir, self._pattern("(params|states|data)"))
        complete = {match[1] for match in self._files("params")}
        for match in self._files("(states|data)"):
            if match[1] not in complete:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(os.path.join(self.model_dir, match[0]))

    def _resume_from_checkpoint(self, estimator: Estimator) -> None:
        checkpoints = self._found_checkpoints()
        if not checkpoints:
            length = f"{estimator.max_batch} batches" if estimator.max_batch else f"{estimator.max_epoch} epochs"
            estimator.logger.info("CheckpointHandler: no checkpoint in %s; training starts from scratch, for %s", self.model_dir, length)
            return
        self.saved_checkpoints = [f"{self.model_prefix}-epoch{epoch}batch{batch}" for epoch, batch in checkpoints]
        self.trained_epoch, self.trained_batch = checkpoints[-1]
        limit, trained, unit = ((estimator.max_epoch, self.trained_epoch, "epochs") if estimator.max_epoch else
                                (estimator.max_batch or 0, self.trained_batch, "batches"))
        left = limit - trained - 1
        if left <= 0:
            raise ValueError(f"CheckpointHandler: {self.saved_checkpoints[-1]} in {self.model_dir} has trained the {limit} {unit} asked for; ask "
                             "for more, or say resume_from_checkpoint=False to train from scratch")
        if estimator.max_epoch:
            estimator.max_epoch = left
        else:
            estimator.max_batch = left
        path = os.path.join(self.model_dir, self.saved_checkpoints[-1])
        if not os.path.exists(f"{path}.states"):
            raise UsageError(f"CheckpointHandler: {path}.params has no {path}.states beside it; remove the former to resume from an older one")
        estimator.net.load_parameters(f"{path}.params", ctx=estimator.context)
        estimator.trainer.load_states(f"{path}.states")
        if os.path.exists(f"{path}.data"):  # MXNet writes none
            load_position(f"{path}.data", estimator._train_data)
            self._within_epoch = bool(estimator._train_data.state()["batches"])
        estimator.logger.warning("CheckpointHandler: resumed from epoch %d, batch %d; %d %s are left", self.trained_epoch, self.trained_batch,
                                 left, unit)


class EarlyStoppingHandler(TrainBegin, EpochEnd, TrainEnd):
    """Ends the training when a metric stops improving.

    Parameters
    ----------
    monitor : EvalMetric
        One of the estimator's metrics.
    min_delta : float
        By how much the value must improve to count.
    patience : int
        The number of epochs without improvement before the end.
    mode : str
        Which value is the better one: 'min', 'max', or 'auto' for the higher one if the metric's name has "acc" or "f1" in it.
    baseline : float, optional
        The value that the first one must improve on.

    Raises
    ------
    ValueError
        If `monitor` is no single metric.

    Example
    -------
    >>> net, loss = mx.gluon.nn.Dense(1), mx.metric.Loss('loss')
    >>> net.initialize(mx.init.Zero())
    >>> est = mx.gluon.contrib.estimator.Estimator(net, mx.gluon.loss.L2Loss(), train_metrics=loss,
    ...                                            trainer=mx.gluon.Trainer(net.collect_params(), 'sgd'))
    >>> est.logger.setLevel('ERROR')
    >>> data = mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(mx.nd.zeros((4, 2)), mx.nd.zeros(4)), batch_size=2)
    >>> stop = mx.gluon.contrib.estimator.EarlyStoppingHandler(loss, patience=1, mode='min')
    >>> est.fit(data, epochs=9, event_handlers=[stop])
    >>> stop.current_epoch
    2
    """

    def __init__(self, monitor: EvalMetric, min_delta: float = 0, patience: int = 0, mode: str = "auto", baseline: float | None = None) -> None:
        if not isinstance(monitor, EvalMetric) or isinstance(monitor, CompositeEvalMetric):
            raise ValueError("EarlyStoppingHandler: a single metric out of estimator.train_metrics or estimator.val_metrics expected as monitor, "
                             f"received {shortened(monitor)}")
        self.monitor = monitor
        self.baseline = baseline
        self.patience = patience
        self.wait = 0
        self.stopped_epoch = 0
        self.current_epoch = 0
        self.stop_training = False
        self.monitor_op = _comparison(self, monitor, mode)
        self.min_delta = min_delta if self.monitor_op is np.greater else -min_delta

    def train_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Start anew."""
        self.wait = self.stopped_epoch = self.current_epoch = 0
        self.stop_training = False
        self.best = self.baseline if self.baseline is not None else np.inf if self.monitor_op is np.less else -np.inf

    def epoch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> bool:
        """Compare the metric with its best value; return True after `patience` epochs without improvement."""
        value = _monitored(self)
        if not np.isnan(value):
            if self.monitor_op(value - self.min_delta, self.best):
                self.best, self.wait = value, 0
            else:
                self.wait += 1
            if self.wait and self.wait >= self.patience:
                self.stopped_epoch, self.stop_training = self.current_epoch, True
        self.current_epoch += 1
        return self.stop_training

    def train_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Write why training ended."""
        if self.stopped_epoch > 0:
            estimator.logger.info("[Epoch %d] EarlyStoppingHandler: training ends since %s does not improve", self.stopped_epoch,
                                  self.monitor.get()[0])


class GradientUpdateHandler(BatchEnd):
    """Lets the trainer update the parameters after each batch. With one of your own in its place gradients can be added up, or clipped.

    Parameters
    ----------
    priority : float

    Example
    -------
    >>> handler = mx.gluon.contrib.estimator.GradientUpdateHandler()
    >>> handler.priority   # it runs before the handlers that measure
    -2000
    """

    def __init__(self, priority: float = -2000) -> None:
        self.priority = priority  # before all else

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Update, with the number of losses as the batch size."""
        losses = kwargs["loss"] if isinstance(kwargs["loss"], list) else [kwargs["loss"]]
        estimator.trainer.step(sum(loss.shape[0] for loss in losses))
