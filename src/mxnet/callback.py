"""Callbacks for ``fit`` and ``score``: progress, metrics and checkpoints."""
from __future__ import annotations

import logging
import math
import time
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from .checkpoint import position_file, save_checkpoint
from .io import save_position

__all__ = ["BatchEndParam", "LogValidationMetricsCallback", "ProgressBar", "Speedometer", "do_checkpoint", "log_train_metric", "module_checkpoint"]

BatchEndParam = namedtuple("BatchEndParams", ["epoch", "nbatch", "eval_metric", "locals"])
BatchEndParam.__doc__ = """The argument of batch-end callbacks: epoch, batch number, training metric, and the local variables of the loop.

    Example
    -------
    >>> mx.model.BatchEndParam(epoch=0, nbatch=10, eval_metric=None, locals=None).nbatch
    10
    """


def _every(period, save):
    """Return an epoch-end callback that calls ``save(epoch number, symbol, arguments, auxiliary states)`` every `period` epochs."""
    period = max(1, int(period))

    def callback(iter_no, sym=None, arg=None, aux=None):
        done = iter_no + 1
        if done % period == 0:
            save(done, sym, arg, aux)

    return callback


def module_checkpoint(mod: Any, prefix: str, period: int = 1, save_optimizer_states: bool = False, data: Any = None) -> Callable[..., None]:
    """Return an epoch-end callback that saves a module's checkpoint, optionally with the optimizer's states and the position of the data.

    Parameters
    ----------
    mod : Module
    prefix : str
        The path prefix of the files.
    period : int
        The number of epochs between two checkpoints.
    save_optimizer_states : bool
        Write ``prefix-0001.states`` as well, so that training can resume exactly.
    data : DataIter, optional
        The training data: ``prefix-0001.data`` is written as well, from which `mx.io.load_position` restores the order of the epochs
        that follow.

    Example
    -------
    >>> import mxnet as mx, os, tempfile
    >>> prefix = os.path.join(tempfile.mkdtemp(), 'net')
    >>> net = mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=1), name='softmax')
    >>> train = mx.io.NDArrayIter(mx.nd.ones((4, 2)), mx.nd.ones((4, 1)), 2, shuffle=True)
    >>> mod = mx.mod.Module(net)
    >>> mod.fit(train, num_epoch=3, epoch_end_callback=mx.callback.module_checkpoint(mod, prefix, save_optimizer_states=True, data=train))
    >>> mod = mx.mod.Module.load(prefix, 3, load_optimizer_states=True)
    >>> mx.io.load_position(prefix + '-0003.data', train)   # and mod.fit(train, begin_epoch=3, ...) goes on
    """
    def save(done, *_):
        mod.save_checkpoint(prefix, done, save_optimizer_states)
        if data is not None:
            save_position(position_file(prefix, done), data, epoch_over=True)

    return _every(period, save)


def do_checkpoint(prefix: str, period: int = 1) -> Callable[..., None]:
    """Return an epoch-end callback that saves the network and its parameters every `period` epochs.

    Example
    -------
    >>> import mxnet as mx
    >>> every_second = mx.callback.do_checkpoint('/tmp/mymodel', period=2)   # for fit(epoch_end_callback=...)
    """
    return _every(period, lambda done, sym, arg, aux: save_checkpoint(prefix, done, sym, arg, aux))


def log_train_metric(period: int, auto_reset: bool = False) -> Callable[[Any], None]:
    """Return a batch-end callback that logs the training metric every `period` batches; with `auto_reset` it then resets the metric.

    Example
    -------
    >>> log = mx.callback.log_train_metric(period=100)   # logs at every hundredth batch
    >>> log(mx.model.BatchEndParam(epoch=0, nbatch=1, eval_metric=mx.metric.Accuracy(), locals=None))
    """

    def callback(param):
        metric = param.eval_metric
        if metric is None or param.nbatch % period:
            return
        for name, value in metric.get_name_value():
            logging.info("Iter[%d] Batch[%d] Train-%s=%f", param.epoch, param.nbatch, name, value)
        if auto_reset:
            metric.reset_local()

    return callback


class Speedometer:
    """A batch-end callback that logs samples per second and the training metric.

    Parameters
    ----------
    batch_size : int
    frequent : int
        The number of batches between two lines.
    auto_reset : bool
        Report the metric over the batches since the last line, not since the start of the epoch.

    Example
    -------
    >>> import mxnet as mx
    >>> speedometer = mx.callback.Speedometer(128, 100)   # for fit(batch_end_callback=...)

    which logs lines such as ``Epoch[0] Batch [0-100]	Speed: 1250.41 samples/sec	accuracy=0.612345``.
    """

    def __init__(self, batch_size: int, frequent: int = 50, auto_reset: bool = True):
        self.batch_size = batch_size
        self.frequent = frequent
        self.auto_reset = auto_reset
        self.init = False
        self.tic = 0.0
        self.last_count = 0

    def __call__(self, param: Any) -> None:
        count = param.nbatch
        started = self.init and count >= self.last_count  # a lower count means that a new epoch has begun
        self.last_count = count
        if not started:
            self.init, self.tic = True, time.time()
            return
        if count % self.frequent:
            return
        seconds = time.time() - self.tic
        speed = self.frequent * self.batch_size / seconds if seconds > 0 else float("inf")
        if param.eval_metric is None:
            logging.info("Iter[%d] Batch [%d]\tSpeed: %.2f samples/sec", param.epoch, count, speed)
        else:
            values = param.eval_metric.get_name_value()
            first = 0
            if self.auto_reset:
                param.eval_metric.reset_local()
                first = count - self.frequent
            logging.info("Epoch[%d] Batch [%d-%d]\tSpeed: %.2f samples/sec" + "\t%s=%f" * len(values), param.epoch, first, count, speed,
                         *(field for pair in values for field in pair))
        self.tic = time.time()


class ProgressBar:
    """A batch-end callback that logs a bar such as ``[=====-----] 50%``.

    Parameters
    ----------
    total : int
        The number of batches in an epoch.
    length : int
        The width of the bar, in characters.

    Example
    -------
    >>> bar = mx.callback.ProgressBar(total=10, length=20)   # prints [==========----------] 50%
    >>> bar(mx.model.BatchEndParam(epoch=0, nbatch=5, eval_metric=None, locals=None))
    """

    def __init__(self, total: int, length: int = 80):
        self.bar_len = length
        self.total = total

    def __call__(self, param: Any) -> None:
        filled = round(self.bar_len * param.nbatch / self.total)
        percent = math.ceil(100.0 * param.nbatch / self.total)
        logging.info("[%s] %s%s\r", "=" * filled + "-" * (self.bar_len - filled), percent, "%")


class LogValidationMetricsCallback:
    """A callback for the end of an evaluation that logs each metric as ``Epoch[0] Validation-accuracy=0.987654``.

    Example
    -------
    >>> metric = mx.metric.create('acc')
    >>> metric.update([mx.nd.array([0])], [mx.nd.array([[0.9, 0.1]])])
    >>> log = mx.model.LogValidationMetricsCallback()   # Epoch[3] Validation-accuracy=1.000000
    >>> log(mx.model.BatchEndParam(epoch=3, nbatch=1, eval_metric=metric, locals=None))
    """

    def __call__(self, param: Any) -> None:
        if param.eval_metric:
            for name, value in param.eval_metric.get_name_value():
                logging.info("Epoch[%d] Validation-%s=%f", param.epoch, name, value)
