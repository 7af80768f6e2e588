"""Batches made by processes that read indices from one queue and write batches to another; the predecessor of `DataLoader`'s pool.

Kept for programs whose own loaders use these parts; `DataLoader` is faster and does not use them.
"""
from __future__ import annotations

import io
import multiprocessing
import pickle
import queue
import threading
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

from .. import interrupts
from ..base import MXNetError
from ..context import cpu, cpu_pinned
from ..gluon.data.dataloader import _as_in_context


class ConnectionWrapper:
    """A wrapper of a connection between processes that passes arrays through shared memory; other attributes are the connection's."""

    def __init__(self, conn: Connection):
        self._conn = conn

    def send(self, obj: Any) -> None:
        """Send an object."""
        content = io.BytesIO()
        ForkingPickler(content, pickle.HIGHEST_PROTOCOL).dump(obj)
        self._conn.send_bytes(content.getvalue())

    def recv(self) -> Any:
        """Receive an object."""
        return pickle.loads(self._conn.recv_bytes())

    def __getattr__(self, name: str) -> Any:
        if name == "_conn":
            raise AttributeError(name)  # during unpickling
        return getattr(self._conn, name)


def worker_loop_v1(dataset: Any, key_queue: Any, data_queue: Any, batchify_fn: Callable[[list[Any]], Any]) -> None:
    """Read requests ``(number, indices)``, make the batches, and write ``(number, batch)``, until the number is None."""
    while True:
        number, indices = key_queue.get()
        if number is None:
            return
        data_queue.put((number, batchify_fn([dataset[i] for i in indices])))


def fetcher_loop_v1(data_queue: Any, data_buffer: MutableMapping[int, Any], pin_memory: bool = False, pin_device_id: int = 0,
                    data_buffer_lock: AbstractContextManager[Any] | None = None) -> None:
    """Move ``(number, batch)`` from a queue to a dict, on the CPU or in pinned memory, until the number is None."""
    while True:
        number, batch = data_queue.get()
        if number is None:
            return
        batch = _as_in_context(batch, cpu_pinned(pin_device_id) if pin_memory else cpu())
        with data_buffer_lock or threading.Lock():
            data_buffer[number] = batch


class _MultiWorkerIterV1:
    """The batches of one epoch in order.

    Parameters
    ----------
    num_workers : int
        At least 1.
    dataset : Dataset
    batchify_fn : callable
    batch_sampler : Sampler
    pin_memory : bool
    pin_device_id : int
    worker_fn : callable
        The function that a worker runs; see `worker_loop_v1`.
    """

    def __init__(self, num_workers: int, dataset: Any, batchify_fn: Callable[[list[Any]], Any], batch_sampler: Any, pin_memory: bool = False,
                 pin_device_id: int = 0, worker_fn: Callable[..., None] = worker_loop_v1):
        if num_workers < 1:
            raise AssertionError(f"_MultiWorkerIterV1: at least one worker expected, received {num_workers}")
        self._num_workers, self._batch_sampler = num_workers, batch_sampler
        self._iter = iter(batch_sampler)
        self._key_queue: Any = multiprocessing.SimpleQueue()
        self._data_queue: Any = multiprocessing.SimpleQueue()
        self._data_buffer: dict[int, Any] = {}
        self._arrived: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._sent_idx = self._rcvd_idx = 0
        self._shutdown = False
        self._workers = [multiprocessing.Process(target=worker_fn, args=(dataset, self._key_queue, self._data_queue, batchify_fn), daemon=True)
                         for _ in range(num_workers)]
        self._fetcher = threading.Thread(target=fetcher_loop_v1, daemon=True,
                                         args=(self._data_queue, self._data_buffer, pin_memory, pin_device_id, _Announcing(self._arrived)))
        with interrupts.deferred():  # Python loses a Ctrl-C in the hooks of a fork, and one during a thread's start may block it forever
            for worker in self._workers:
                worker.start()
            self._fetcher.start()
            self._ending = interrupts.at_end(_end, self._data_queue, self._fetcher, self._workers)
        for _ in range(2 * num_workers):
            self._push_next()

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        return self

    def _push_next(self) -> None:
        """Request another batch, if there is one."""
        indices = next(self._iter, None)
        if indices is not None:
            with interrupts.deferred():  # an incomplete message would block the workers
                self._key_queue.put((self._sent_idx, indices))
            self._sent_idx += 1

    def __next__(self) -> Any:
        if self._shutdown or self._rcvd_idx == self._sent_idx:
            self.shutdown()
            raise StopIteration
        while self._rcvd_idx not in self._data_buffer:
            try:
                self._arrived.get(timeout=1)
            except queue.Empty:
                if not all(worker.is_alive() for worker in self._workers) and self._rcvd_idx not in self._data_buffer:
                    raise MXNetError("_MultiWorkerIterV1: a worker has ended without making its batch; what went wrong stands in its "
                                     "output") from None
        number, self._rcvd_idx = self._rcvd_idx, self._rcvd_idx + 1
        batch = self._data_buffer.pop(number)
        self._push_next()
        return batch

    def next(self) -> Any:
        """Return the next batch."""
        return self.__next__()

    def shutdown(self) -> None:
        """Stop the workers and the thread."""
        if not getattr(self, "_shutdown", True):
            self._shutdown = True
            self._ending.now()


def _end(data_queue: Any, fetcher: threading.Thread, workers: Sequence[multiprocessing.Process]) -> None:
    data_queue.put((None, None))  # before workers end: one that is killed within a message keeps the queue's lock
    fetcher.join()
    for worker in workers:
        worker.terminate()
        worker.join()


class _Announcing:
    """A context manager in the place of a lock, which at its end puts None into a queue to wake up the waiting thread."""

    def __init__(self, arrived: queue.SimpleQueue[None]):
        self._arrived = arrived

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        self._arrived.put(None)
