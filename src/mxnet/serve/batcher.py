"""The dynamic batcher: requests wait in a queue for a model, and a thread runs as many at once as pays."""
from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import threads
from ..base import MXNetError
from .curve import Curve
from .errors import RequestError, malformed
from .metrics import ModelMetrics

_log = logging.getLogger("mxnet.serve")


class Job:
    """Work for the compute thread, and the future that gets its result in the event loop.

    Attributes
    ----------
    inputs
        The arrays of a request, or what a model of another kind takes.
    rows : int
    key
        Jobs with equal keys may share a batch.
    """

    __slots__ = ("inputs", "rows", "key", "future", "arrived")

    def __init__(self, inputs: Any, rows: int, key: Any, future: asyncio.Future) -> None:
        self.inputs, self.rows, self.key, self.future, self.arrived = inputs, rows, key, future, time.perf_counter()


class Compute:
    """The thread that runs networks, one batch at a time: each has all cores. What it runs next is the model whose first request has waited longest.

    Calls handed to `call` take turns with batches.
    """

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.batchers: list[Batcher] = []
        self._calls: deque[Callable[[], Any]] = deque()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="mxnet.serve", daemon=True)

    def start(self) -> None:
        """Begin to run what comes."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what runs, and end the thread."""
        with self.condition:
            self._stopped = True
            self.condition.notify()
        self._thread.join()

    def call(self, function: Callable[[], Any]) -> Any:
        """Run a function in the thread; return its result, or raise what it raises. For other threads but the event loop's."""
        outcome: deque[tuple[bool, Any]] = deque()
        done = threading.Event()

        def run() -> None:
            try:
                outcome.append((True, function()))
            except BaseException as error:  # it belongs to the caller
                outcome.append((False, error))
            done.set()

        with self.condition:
            if self._stopped:
                raise MXNetError("the server is stopping")
            self._calls.append(run)
            self.condition.notify()
        done.wait()
        succeeded, result = outcome[0]
        if not succeeded:
            raise result
        return result

    def _run(self) -> None:
        threads.policy.begin()  # this thread computes from now on, not the main one
        while self._step():  # a function, so that nothing keeps arrays and networks while the thread waits
            pass

    def _step(self) -> bool:
        """Wait for a call or a batch, and run it, or one of each; return False when there is nothing more to do."""
        with self.condition:
            while not (self._calls or self._stopped or any(b.queue for b in self.batchers)):
                self.condition.wait()
            waiting = [b for b in self.batchers if b.queue]
            if self._stopped and not (waiting or self._calls):
                return False
            call = self._calls.popleft() if self._calls else None
            batcher = min(waiting, key=lambda b: b.queue[0].arrived) if waiting else None
            batch = batcher.take() if batcher is not None else []
        if call is not None:
            call()
        if batcher is not None:
            batcher.run(batch)
        return True


class Batcher:
    """The queue of one version of a model.

    Parameters
    ----------
    compute : Compute
    run : callable
        Takes the inputs of several jobs, the sum of their rows, and the number of rows to run; returns the outputs of each job.
    curve : Curve
    queue_limit : int
        The most jobs that may wait.
    metrics : ModelMetrics
    loop : asyncio.AbstractEventLoop
        Where `submit` is called, and futures get their results.
    """

    def __init__(self, compute: Compute, run: Callable[[Sequence[Any], int, int], Sequence[Any]], curve: Curve, queue_limit: int,
                 metrics: ModelMetrics, loop: asyncio.AbstractEventLoop) -> None:
        self.queue: deque[Job] = deque()
        self.curve = curve
        self._compute, self._run, self._limit, self._metrics, self._loop = compute, run, queue_limit, metrics, loop
        self._pending = 0  # queued, running, or not delivered yet; changed in the event loop only
        with compute.condition:
            compute.batchers.append(self)

    @property
    def pending(self) -> int:
        """Return the number of jobs without an answer."""
        return self._pending

    def retry_after(self) -> int:
        """Return in how many seconds the queue will have been answered, as far as one can tell; at least 1."""
        return max(1, math.ceil(len(self.queue) / self.curve.throughput()))

    def refuse_if_full(self, waiting: int = 0) -> None:
        """Raise a `RequestError` (429) if no more jobs may wait; `waiting` more are on their way."""
        if len(self.queue) + waiting >= self._limit:
            raise RequestError(429, f"{self._limit} requests wait for this model already", {"Retry-After": str(self.retry_after())})

    async def submit(self, inputs: Any, rows: int, key: Any, deadline: float) -> Any:
        """Return the outputs for a request, once a batch with it has run.

        Parameters
        ----------
        inputs, rows, key
            As for `Job`.
        deadline : float
            On the event loop's clock.

        Raises
        ------
        RequestError
            If the queue is full (429), the deadline passes (504), the network refuses the values (400), or fails (500).
        """
        self.refuse_if_full()
        job = Job(inputs, rows, key, self._loop.create_future())
        timer = self._loop.call_at(deadline, self._expire, job)
        self._pending += 1
        with self._compute.condition:
            self.queue.append(job)
            self._compute.condition.notify()
        self._metrics.queue.set(len(self.queue))
        try:
            return await job.future
        finally:
            timer.cancel()

    def _expire(self, job: Job) -> None:
        with self._compute.condition:
            waited = job in self.queue
            if waited:
                self.queue.remove(job)
        if waited:
            self._pending -= 1
        if not job.future.done():
            state = "waited" if waited else "was being computed"
            job.future.set_exception(RequestError(504, f"no answer in time: the request {state} when its time was up"))

    def take(self) -> list[Job]:
        """Remove and return the jobs of the next batch; the caller holds the condition."""
        first, rows = self.queue[0], 0
        fitting: list[Job] = []
        for job in self.queue:
            if job.key == first.key and (not fitting or rows + job.rows <= self.curve.largest):
                fitting.append(job)
                rows += job.rows
                if rows >= self.curve.largest:
                    break
        # Of three that wait only two may be worth running now.
        size, rows = self.curve.size(rows), 0
        batch: list[Job] = []
        for job in fitting:
            if not batch or rows + job.rows <= size:
                batch.append(job)
                rows += job.rows
        taken = set(map(id, batch))
        self.queue = deque(job for job in self.queue if id(job) not in taken)
        return batch

    def run(self, batch: Sequence[Job]) -> None:
        """Run a batch, in the compute thread, and hand the results to the event loop."""
        rows = sum(job.rows for job in batch)
        start = time.perf_counter()
        results = self._results(batch, rows)
        self._metrics.ran(rows, time.perf_counter() - start)
        try:
            self._loop.call_soon_threadsafe(self._deliver, list(zip(batch, results)))
        except RuntimeError:  # the loop is closed: nobody waits any more
            pass

    def _results(self, batch: Sequence[Job], rows: int) -> list[Any]:
        try:
            return list(self._run([job.inputs for job in batch], rows, max(rows, self.curve.size(rows))))
        except Exception as error:
            if len(batch) > 1:  # whoever is not to blame gets an answer
                return [self._results([job], job.rows)[0] for job in batch]
            return [_failure(error)]

    def _deliver(self, results: Sequence[tuple[Job, Any]]) -> None:
        self._pending -= len(results)
        self._metrics.queue.set(len(self.queue))
        for job, result in results:
            if job.future.done():  # its time was up, or its task was cancelled
                continue
            if isinstance(result, Exception):
                job.future.set_exception(result)
            else:
                job.future.set_result(result)

    async def close(self) -> None:
        """Wait until all that was submitted is answered, and leave the compute thread."""
        while self._pending:
            await asyncio.sleep(0.005)
        with self._compute.condition:
            self._compute.batchers.remove(self)


def _failure(error: Exception) -> Exception:
    """Return the error that a caller gets: what a network says of values is about the request, anything else about the server."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, (MXNetError, IndexError, ValueError, TypeError)):
        return malformed(f"the network can't compute this: {str(error)[:1000]}")
    _log.error("a batch failed", exc_info=error)
    return RequestError(500, f"the network failed: {type(error).__name__}")


def split(outputs: Sequence[np.ndarray], rows: Sequence[int]) -> list[list[np.ndarray]]:
    """Return the outputs of each request, out of those of a batch of them.

    Example
    -------
    >>> import numpy as np
    >>> from mxnet.serve.batcher import split
    >>> split([np.arange(3)], [1, 2])
    [[array([0])], [array([1, 2])]]
    """
    found, at = [], 0
    for count in rows:
        found.append([out[at:at + count] for out in outputs])
        at += count
    return found
