"""Worker processes that compute batches."""
from __future__ import annotations

import contextlib
import hashlib
import itertools
import multiprocessing
import os
import pickle
import random
import select
import signal
import socket
import struct
import sys
import threading
import time
import traceback
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ...base import MXNetError
from ...ops import random_state
from . import _shared_memory

_HEADER = struct.Struct("<QQI")  # number of the task, bytes and descriptors of the message
_DESCRIPTORS_AT_ONCE = 200  # the system takes at most 253
_pools: weakref.WeakSet[Any] = weakref.WeakSet()


class WorkerTimeout(MXNetError, multiprocessing.TimeoutError):
    """A batch didn't come in time."""


class RemoteTraceback(Exception):
    """The traceback of an error in a worker, shown above the error itself."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


def _send(sock: Any, task: Any, message, descriptors: Any) -> None:
    sock.sendall(_HEADER.pack(task, len(message), len(descriptors)))
    sock.sendall(message)
    for i in range(0, len(descriptors), _DESCRIPTORS_AT_ONCE):
        socket.send_fds(sock, [b"d"], descriptors[i:i + _DESCRIPTORS_AT_ONCE])


def _read(sock: Any, length: int):
    content = bytearray(length)
    view = memoryview(content)
    while view:
        count = sock.recv_into(view)
        if not count:
            raise EOFError
        view = view[count:]
    return content


def _receive(sock: Any):
    """The number of a task, a message and its descriptors; EOFError if the other side is gone."""
    task, length, count = _HEADER.unpack(_read(sock, _HEADER.size))
    message = bytes(_read(sock, length))
    descriptors: list[int] = []
    while len(descriptors) < count:
        data, some, _, _ = socket.recv_fds(sock, 1, min(count - len(descriptors), _DESCRIPTORS_AT_ONCE))
        if not data:
            raise EOFError
        descriptors += some
    return task, message, descriptors


# -- in the worker -------------------------------------------------------------------------------------------------------

def _digest(state: Any):
    return int.from_bytes(hashlib.blake2b(state, digest_size=6).digest(), "little")


def _entropy():
    """A number from the state of each random generator (numpy's, Python's and ours), which it leaves as it is."""
    _, keys, position, *_ = np.random.get_state(legacy=True)
    ours = random_state.get_state(torch.device("cpu"))
    return _digest(np.asarray(keys).tobytes()) + position, _digest(repr(random.getstate()).encode()), _digest(ours.tobytes())


def _seed(entropy: Any, task: Any) -> None:
    """Give each task random numbers of its own, the same whichever worker has it and however many there are."""
    for_numpy, for_python, for_arrays = entropy
    np.random.seed([for_numpy & 0xffffffff, for_numpy >> 32, task & 0xffffffff])
    random.seed(for_python << 32 | task)
    random_state.seed(for_arrays + task, "cpu")


def _run(function, arguments: Any):
    """(True, the result) or (False, (the error, its traceback)), as a message."""
    try:
        return _shared_memory.pack((True, function(*arguments)))
    except Exception as error:
        trace = traceback.format_exc()
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # errors need be neither picklable nor complete when they come out of it
            error = MXNetError(f"{type(error).__name__}: {error}")
        return _shared_memory.pack((False, (error, trace)))


def _serve(sock: Any, inherited: Any, entropy: Any, initializer) -> None:
    """Compute until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for pool in list(_pools):
        pool._close_sockets()  # while we hold them, other workers don't see their parent go
    # Workers are the parallelism, and the threads of torch and OpenCV don't survive the fork.
    torch.set_num_threads(1)
    if "cv2" in sys.modules:
        sys.modules["cv2"].setNumThreads(0)
    _shared_memory.enable()
    if initializer:
        initializer()
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            task, message, _ = _receive(sock)
            _seed(entropy, task)
            function, arguments = _shared_memory.unpack(message, inherited=inherited)
            _send(sock, task, *_run(function, arguments))
            del arguments


# -- in the parent -------------------------------------------------------------------------------------------------------

class Result:
    """What a task will give."""

    def __init__(self, pool) -> None:
        self._pool = pool
        self._answer: Any = None

    def ready(self) -> bool:
        """True if `get` would not wait."""
        self._pool._collect(0)
        return self._answer is not None

    def get(self, timeout: float | None = None) -> Any:
        """The result; what the task raised is raised here.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait.

        Raises
        ------
        WorkerTimeout
            If it takes longer.
        MXNetError
            If the worker died.
        """
        self._pool._wait(self, timeout)
        succeeded, value = self._answer
        if succeeded:
            return value
        error, trace = value
        raise error from (RemoteTraceback(trace) if trace else None)


class _Worker:
    def __init__(self, process, sock: Any) -> None:
        self.process, self.sock = process, sock
        self.tasks: set[int] = set()
        self.received = _shared_memory.Received()


class WorkerPool:
    """Processes forked from this one that run functions.

    Parameters
    ----------
    num_workers : int
    inherited : tuple
        Objects that tasks refer to and that need not be picklable, because workers get them by the fork.
    initializer : callable, optional
        Called in each worker first.
    """

    def __init__(self, num_workers: int, inherited: tuple[Any, ...] = (), initializer: Callable[..., Any] | None = None) -> None:
        self._inherited = inherited
        self._numbers = itertools.count()
        self._results: weakref.WeakValueDictionary[int, Result] = weakref.WeakValueDictionary()  # nobody waits for a result that was dropped
        self._lock = threading.RLock()
        self._workers = []
        self._closed = False
        entropy = _entropy()
        context = multiprocessing.get_context("fork")
        _pools.add(self)
        for _ in range(num_workers):
            ours, theirs = socket.socketpair()
            process = context.Process(target=_serve, args=(theirs, inherited, entropy, initializer), daemon=True)
            self._workers.append(_Worker(process, ours))
            with warnings.catch_warnings():
                # Python warns of forking with threads running; `_serve` uses none of what they may hold.
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            theirs.close()
        self._finalizer = weakref.finalize(self, _terminate, self._workers, os.getpid())

    def apply_async(self, function, arguments: Any = ()) -> Any:
        """Run a function in a worker; a `Result`.

        Raises
        ------
        MXNetError
            If the pool is closed or all workers died.
        """
        with self._lock:
            self._collect(0)
            if not self._workers:
                raise MXNetError("the DataLoader's workers have been terminated" if self._closed else "all workers of the DataLoader died")
            result, task = Result(self), next(self._numbers)
            self._results[task] = result
            worker = min(self._workers, key=lambda w: len(w.tasks))
            worker.tasks.add(task)
            try:
                _send(worker.sock, task, *_shared_memory.pack((function, arguments), self._inherited))
            except ConnectionError:
                self._bury(worker)
            return result

    def _wait(self, result, timeout: float) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            while result._answer is None:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                if self._closed:
                    raise MXNetError("the DataLoader's workers have been terminated")
                if not self._collect(left) and left is not None and time.monotonic() >= deadline:
                    raise WorkerTimeout(f"no batch within {timeout} seconds; raise the DataLoader's `timeout`, speed up the transforms, or "
                                        "use more workers")

    def _collect(self, timeout: float) -> int:
        """Take the messages that are there, waiting up to `timeout` seconds for the first; how many there were."""
        with self._lock:
            by_descriptor = {worker.sock.fileno(): worker for worker in self._workers}
            poll = select.poll()
            for fd in by_descriptor:
                poll.register(fd, select.POLLIN)
            events = poll.poll(None if timeout is None else timeout * 1000) if by_descriptor else []
            for fd, _ in events:
                self._take(by_descriptor[fd])
            return len(events)

    def _take(self, worker: Any) -> None:
        try:
            task, message, descriptors = _receive(worker.sock)
        except (EOFError, ConnectionError):
            self._bury(worker)
            return
        worker.tasks.discard(task)
        try:
            answer = _shared_memory.unpack(message, descriptors, worker.received)
        except Exception as error:
            answer = False, (MXNetError(f"what the DataLoader's worker sent cannot be read: {error}"), traceback.format_exc())
        self._deliver(task, answer)

    def _deliver(self, task: Any, answer) -> None:
        result = self._results.pop(task, None)
        if result is not None:
            result._answer = answer

    def _bury(self, worker: Any) -> None:
        """A worker is gone; so are its tasks."""
        self._workers.remove(worker)
        worker.sock.close()
        worker.process.join(5)
        code = worker.process.exitcode
        how = f"was killed by signal {-code} ({signal.Signals(-code).name})" if code and code < 0 else f"exited with code {code}"
        hint = "; the system may have run out of memory" if code == -signal.SIGKILL else ""
        for task in worker.tasks:
            self._deliver(task, (False, (MXNetError(f"DataLoader worker (pid {worker.process.pid}) {how}{hint}"), None)))

    def _close_sockets(self) -> None:
        for worker in self._workers:
            worker.sock.close()

    def terminate(self) -> None:
        """End the workers at once."""
        with self._lock:
            self._closed = True
            self._finalizer()


def _terminate(workers, pid) -> None:
    if os.getpid() != pid:
        return  # a forked process has the pool but not the workers
    for worker in workers:
        worker.process.terminate()
        worker.sock.close()
    for worker in workers:
        worker.process.join()
    workers.clear()
