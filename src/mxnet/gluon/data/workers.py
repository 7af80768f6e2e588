"""Worker processes, and threads, that compute batches."""
from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import multiprocessing.connection
import os
import pickle
import queue
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
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ... import interrupts
from ...base import MXNetError
from ...ops import random_state
from . import shared_memory

HEADER = struct.Struct("<QQI")  # number of the task, bytes and descriptors of the message
_DESCRIPTORS_AT_ONCE = 200  # the system takes at most 253
_PIECE = 1 << 14  # bytes that are read at once
PATIENCE = 5  # seconds for a worker to end before it is killed
_sockets: set[socket.socket] = set()  # our ends of those to all workers


class WorkerTimeout(MXNetError, multiprocessing.TimeoutError):
    """A batch didn't come in time."""


class RemoteTraceback(Exception):
    """The traceback of an error in a worker, shown above the error itself."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


def _send(sock: socket.socket, task: int, message: bytes, descriptors: list[int]) -> None:
    sock.sendall(HEADER.pack(task, len(message), len(descriptors)) + message)
    for i in range(0, len(descriptors), _DESCRIPTORS_AT_ONCE):
        socket.send_fds(sock, [b"d"], descriptors[i:i + _DESCRIPTORS_AT_ONCE])


class Incoming:
    """A reader that reassembles messages from the pieces that a socket delivers."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock, self._content, self._descriptors = sock, bytearray(), deque[int]()

    def read(self) -> list[tuple[int, bytes, list[int]]]:
        """Receive once; return the complete messages as (number of the task, message, descriptors). A blocking socket waits for data.

        Raises
        ------
        EOFError, OSError
            If the other side is gone, or a descriptor could not be taken.
        """
        try:
            data, descriptors, flags, _ = socket.recv_fds(self._sock, _PIECE, _DESCRIPTORS_AT_ONCE)
        except BlockingIOError:
            return []
        if not data:
            raise EOFError
        self._content += data
        self._descriptors += descriptors
        if flags & socket.MSG_CTRUNC:
            raise OSError(errno.EMFILE, "this process has no file descriptors left; raise the limit (ulimit -n) or keep fewer open files")
        messages = []
        while len(self._content) >= HEADER.size:
            task, length, count = HEADER.unpack_from(self._content)
            end = HEADER.size + length
            complete_end = end + -(-count // _DESCRIPTORS_AT_ONCE)  # a byte comes with each lot of descriptors
            if len(self._content) < complete_end:
                break
            messages.append((task, bytes(self._content[HEADER.size:end]), [self._descriptors.popleft() for _ in range(count)]))
            del self._content[:complete_end]
        return messages

    def close(self) -> None:
        """Close the socket, and descriptors of a message that is not complete."""
        self._sock.close()
        while self._descriptors:
            os.close(self._descriptors.popleft())


# -- in the worker -------------------------------------------------------------------------------------------------------

def _digest(state: Any):
    return int.from_bytes(hashlib.blake2b(state, digest_size=6).digest(), "little")


def _entropy():
    """Return a number derived from the state of each random generator (NumPy's, Python's and ours), without changing it."""
    _, keys, position, *_ = np.random.get_state(legacy=True)
    ours = random_state.get_state(torch.device("cpu"))
    return _digest(np.asarray(keys).tobytes()) + position, _digest(repr(random.getstate()).encode()), _digest(ours.tobytes())


def _seed(entropy: Any, task: Any) -> None:
    """Seed the generators for a task, independently of which worker runs it and of the number of workers."""
    for_numpy, for_python, for_arrays = entropy
    np.random.seed([for_numpy & 0xffffffff, for_numpy >> 32, task & 0xffffffff])
    random.seed(for_python << 32 | task)
    random_state.seed(for_arrays + task, "cpu")


def _run(function, arguments: Any):
    """Call the function; return (True, the result) or (False, (the error, its traceback)) as a message."""
    try:
        return shared_memory.pack((True, function(*arguments)))
    except Exception as error:
        trace = traceback.format_exc()
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # errors need be neither picklable nor complete when they come out of it
            error = MXNetError(f"{type(error).__name__}: {error}")
        return shared_memory.pack((False, (error, trace)))


def leave_opencv_alone() -> None:
    """Disable OpenCV's threads in a forked process, where they no longer exist. `environment` handles torch's."""
    if "cv2" in sys.modules:
        sys.modules["cv2"].setNumThreads(0)


def _serve(sock: Any, inherited: Any, entropy: Any, initializer) -> None:
    """Run tasks until the parent closes the socket."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in _sockets:
        other.close()  # an open copy here would hide the parent's end from other workers
    leave_opencv_alone()
    shared_memory.enable()
    if initializer:
        initializer()
    incoming = Incoming(sock)
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            for task, message, _ in incoming.read():
                _seed(entropy, task)
                function, arguments = shared_memory.unpack(message, inherited=inherited)
                _send(sock, task, *_run(function, arguments))
                del arguments


# -- in the parent -------------------------------------------------------------------------------------------------------

class Result:
    """The pending result of a task."""

    def __init__(self, pool: WorkerPool, answers: list[tuple[bool, Any]]) -> None:
        self._pool, self._answers = pool, answers

    def ready(self) -> bool:
        """True if `get` would not wait."""
        self._pool._collect(0)
        return bool(self._answers)

    def get(self, timeout: float | None = None) -> Any:
        """Return the result, or raise the task's error.

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
        self._pool._wait(self._answers, timeout)
        succeeded, value = self._answers[0]
        if succeeded:
            return value
        error, trace = value
        try:
            raise error from (RemoteTraceback(trace) if trace else None)
        finally:
            del self, error, value  # which lead to the error, and its traceback leads here: workers would live on until garbage is collected


class Worker:
    def __init__(self, process: Any, sock: socket.socket) -> None:
        self.process, self.sock = process, sock
        self.incoming, self.outgoing = Incoming(sock), bytearray()
        self.tasks: set[int] = set()
        self.received = shared_memory.Received()

    def flush(self) -> None:
        """Send as much as the socket takes without blocking, since a blocked send could not be interrupted."""
        while self.outgoing:
            try:
                del self.outgoing[:self.sock.send(self.outgoing)]
            except BlockingIOError:
                return

    def close(self) -> None:
        """Close the socket, which makes the worker end."""
        _sockets.discard(self.sock)
        self.incoming.close()

    def end(self) -> None:
        """Wait until the process is gone."""
        if not multiprocessing.connection.wait([self.process.sentinel], PATIENCE):  # it is stopped, or does not react
            self.process.kill()
        self.process.join()


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
        self._answers: dict[int, list[tuple[bool, Any]]] = {}  # the answers, shared with each task's `Result`
        self._lock = threading.RLock()
        self._workers: list[Worker] = []
        self._closed = False
        self._ending = interrupts.at_end(_terminate, self._workers, os.getpid(), exits=True)
        entropy = _entropy()
        with interrupts.deferred():  # the hooks of a fork would lose it, and a worker forked just now be unknown
            for _ in range(num_workers):
                self._workers.append(_start(inherited, entropy, initializer))

    def apply_async(self, function: Callable[..., Any], arguments: Any = ()) -> Any:
        """Run a function in a worker; return its `Result`.

        Raises
        ------
        MXNetError
            If the pool is closed or all workers died.
        """
        with self._lock:
            self._collect(0)
            if not self._workers:
                raise MXNetError("the DataLoader's workers have been terminated" if self._closed else "all workers of the DataLoader died")
            message, _ = shared_memory.pack((function, arguments), self._inherited)
            with interrupts.deferred():
                task = next(self._numbers)
                answers = self._answers[task] = []
                worker = min(self._workers, key=lambda w: len(w.tasks))
                worker.tasks.add(task)
                worker.outgoing += HEADER.pack(task, len(message), 0) + message
                try:
                    worker.flush()
                except ConnectionError:
                    self._bury(worker)
            return Result(self, answers)

    def _wait(self, answers: list[tuple[bool, Any]], timeout: float | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            while not answers:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                if self._closed:
                    raise MXNetError("the DataLoader's workers have been terminated")
                if not self._collect(left) and deadline is not None and time.monotonic() >= deadline:
                    raise WorkerTimeout(f"no batch within {timeout} seconds; raise the DataLoader's `timeout`, speed up the transforms, or "
                                        "use more workers")

    def _collect(self, timeout: float | None) -> int:
        """Exchange messages with the workers that are ready, waiting up to `timeout` seconds for the first; return their number."""
        with self._lock:
            poll = select.poll()
            for worker in self._workers:
                poll.register(worker.sock, select.POLLIN | (select.POLLOUT if worker.outgoing else 0))
            events = poll.poll(None if timeout is None else timeout * 1000) if self._workers else []  # here an interrupt harms nothing
            if events:
                with interrupts.deferred():
                    self._exchange({fd for fd, _ in events})
            return len(events)

    def _exchange(self, ready: set[int]) -> None:
        for worker in [w for w in self._workers if w.sock.fileno() in ready]:
            try:
                worker.flush()
            except ConnectionError:
                pass  # messages sent before its end can be read
            try:
                for task, message, descriptors in worker.incoming.read():
                    self._take(worker, task, message, descriptors)
            except (EOFError, ConnectionError):
                self._bury(worker)
            except OSError as error:
                worker.process.kill()
                self._bury(worker, f"was given up: {error.strerror}")

    def _take(self, worker: Worker, task: int, message: bytes, descriptors: list[int]) -> None:
        worker.tasks.discard(task)
        try:
            answer = shared_memory.unpack(message, descriptors, worker.received)
        except Exception as error:
            answer = False, (MXNetError(f"what the DataLoader's worker sent cannot be read: {error}"), traceback.format_exc())
        self._answers.pop(task).append(answer)

    def _bury(self, worker: Worker, cause: str | None = None) -> None:
        """Remove a worker that has ended and let its tasks fail."""
        self._workers.remove(worker)
        worker.close()
        worker.end()
        code = worker.process.exitcode
        if cause is None:
            cause = f"was killed by signal {-code} ({signal.Signals(-code).name})" if code and code < 0 else f"exited with code {code}"
            cause += "; the system may have run out of memory" if code == -signal.SIGKILL else ""
        for task in worker.tasks:
            self._answers.pop(task).append((False, (MXNetError(f"DataLoader worker (pid {worker.process.pid}) {cause}"), None)))

    def terminate(self) -> None:
        """End the workers at once."""
        with self._lock:
            self._closed = True
            self._ending.now()


def _start(inherited: tuple[Any, ...], entropy: Any, initializer: Callable[..., Any] | None) -> Worker:
    ours, theirs = socket.socketpair()
    _sockets.add(ours)
    try:
        process = multiprocessing.get_context("fork").Process(target=_serve, args=(theirs, inherited, entropy, initializer), daemon=True)
        with warnings.catch_warnings():
            # Python warns of forking with threads running; `_serve` uses none of what they may hold.
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
    except BaseException:
        _sockets.discard(ours)
        ours.close()
        raise
    finally:
        theirs.close()
    ours.setblocking(False)
    return Worker(process, ours)


def _terminate(workers: list[Worker], pid: int) -> None:
    if os.getpid() != pid:
        return  # a forked process has the pool but not the workers
    for worker in workers:
        worker.process.terminate()
        worker.close()
    for worker in workers:
        worker.end()
    workers.clear()


# -- threads -------------------------------------------------------------------------------------------------------------

class _Task:
    """A call and its result. Unlike `concurrent.futures.Future`, an interrupt cannot leave its lock taken and the thread waiting."""

    def __init__(self, function: Callable[..., Any], arguments: Any) -> None:
        self._call: Any = (function, arguments)
        self._answer: Any = None
        self._waits = threading.Lock()
        self._waits.acquire()

    def run(self) -> None:
        """Make the call."""
        function, arguments = self._call
        try:
            self.answer(True, function(*arguments))
        except BaseException as error:
            self.answer(False, error)
        finally:
            del self  # as in `get`

    def answer(self, succeeded: bool, value: Any) -> None:
        """Let `get` return or raise."""
        self._call, self._answer = None, (succeeded, value)
        self._waits.release()

    def get(self, timeout: float | None = None) -> Any:
        """Return the result, or raise the call's error."""
        if self._answer is None and self._waits.acquire(timeout=-1 if timeout is None else timeout):
            self._waits.release()
        if self._answer is None:
            raise multiprocessing.TimeoutError
        succeeded, value = self._answer
        if succeeded:
            return value
        try:
            raise value
        finally:
            del self, value  # as in `Result.get`


class WorkerThreads:
    """Threads that run functions. They end when this object is freed and their tasks are done, and do not keep the program from exiting.

    Parameters
    ----------
    num_workers : int
    initializer : callable
        Called in each thread first.
    """

    def __init__(self, num_workers: int, initializer: Callable[[], Any]) -> None:
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._ending = interrupts.at_end(_dismiss, self._tasks, num_workers)
        with interrupts.deferred():  # which can leave a thread that starts waiting for ever
            for _ in range(num_workers):
                threading.Thread(target=_work, args=(self._tasks, initializer), daemon=True, name="mxnet-data").start()

    def apply_async(self, function: Callable[..., Any], arguments: Any = ()) -> _Task:
        """Run a function in a thread; return an object with ``get(timeout)``."""
        task = _Task(function, arguments)
        self._tasks.put(task)
        return task

    def terminate(self) -> None:
        """Begin no more tasks."""
        self._ending.now()


def _work(tasks: queue.SimpleQueue[_Task | None], initializer: Callable[[], Any]) -> None:
    initializer()
    while (task := tasks.get()) is not None:
        task.run()
        del task


def _dismiss(tasks: queue.SimpleQueue[_Task | None], number: int) -> None:
    with contextlib.suppress(queue.Empty):
        while (task := tasks.get_nowait()) is not None:
            task.answer(False, MXNetError("the DataLoader's workers have been terminated"))
    for _ in range(number):
        tasks.put(None)
