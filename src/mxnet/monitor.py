"""Statistics of the intermediate values of a network while it runs."""
from __future__ import annotations

import logging
import re
from collections.abc import Callable
from math import sqrt
from typing import Any

from . import ndarray
from .base import MXNetError, py_str
from .ndarray import NDArray
from .suggestions import shortened

__all__ = ["Monitor", "py_str", "sqrt"]


class Monitor:
    """Collects a statistic of outputs, weights and gradients every few batches.

    Parameters
    ----------
    interval : int
        The number of calls of `tic` between two collections.
    stat_func : callable, optional
        From an NDArray to an NDArray or a list of them; default: the norm divided by the square root of the size.
    pattern : str
        A regular expression; only arrays whose names match it (from their start) are collected.
    sort : bool
        Report by name instead of by time.
    monitor_all : bool
        Collect the inputs of operators too, not only their outputs.

    Example
    -------
    >>> import mxnet as mx
    >>> net = mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=2, name='fc')
    >>> exe = net.simple_bind(mx.cpu(), data=(1, 3))
    >>> monitor = mx.mon.Monitor(interval=1, pattern='.*output')
    >>> monitor.install(exe)
    >>> monitor.tic(); _ = exe.forward()
    >>> [name for _, name, _ in monitor.toc()]
    ['fc_output']
    """

    def __init__(self, interval: int, stat_func: Callable[[NDArray], Any] | None = None, pattern: str = ".*", sort: bool = False,
                 monitor_all: bool = False):
        self.stat_func = stat_func or _mean_size
        self.re_prog = re.compile(pattern)
        self.interval, self.sort, self.monitor_all = interval, sort, monitor_all
        self.exes, self.queue = [], []
        self.activated, self.step = False, 0

    def stat_helper(self, name: str, array: NDArray) -> None:
        """Collect the statistic of an array if collecting is active; the callback of the executors."""
        if self.activated:
            self._collect(name, array)

    def _collect(self, name, array):
        if self.re_prog.match(name):
            self.queue.append((self.step, name, self.stat_func(array)))

    def install(self, exe: Any) -> None:
        """Install the monitor in an executor."""
        exe.set_monitor_callback(self.stat_helper, self.monitor_all)
        self.exes.append(exe)

    def _wait(self):
        for exe in self.exes:
            for array in (*exe.arg_arrays, *exe.aux_arrays):
                array.wait_to_read()

    def tic(self) -> None:
        """Start a batch; collecting begins if `interval` selects it."""
        if self.step % self.interval == 0:
            self._wait()
            self.queue = []
            self.activated = True
        self.step += 1

    def toc(self) -> list[tuple[int, str, str]]:
        """End a batch.

        Returns
        -------
        list of (int, str, str)
            Batch number, name of the array, the statistic as text; empty when nothing was collected.
        """
        if not self.activated:
            return []
        self._wait()
        for exe in self.exes:
            symbol = exe._symbol
            for names, arrays in ((symbol.list_arguments(), exe.arg_arrays), (symbol.list_auxiliary_states(), exe.aux_arrays)):
                for name, array in zip(names, arrays):
                    self._collect(name, array)
        self.activated = False
        collected, self.queue = self.queue, []
        if self.sort:
            collected.sort(key=lambda entry: entry[1])
        return [(step, name, _as_text(name, stat)) for step, name, stat in collected]

    def toc_print(self) -> None:
        """End a batch and log the collected statistics."""
        for step, name, text in self.toc():
            logging.info(f"Batch: {step:7d} {name:30s} {text}")


def _mean_size(x):
    return ndarray.norm(x) / sqrt(x.size)


def _as_text(name, stat):
    values = [stat] if isinstance(stat, NDArray) else stat
    if not isinstance(values, list) or not all(isinstance(v, NDArray) for v in values):
        raise MXNetError(f"Monitor: `stat_func` must return an NDArray or a list of NDArrays, received {shortened(stat)} for {name!r}")
    return "".join(f"{v.asscalar() if v.shape == (1,) else v.asnumpy()!s}\t" for v in values)
