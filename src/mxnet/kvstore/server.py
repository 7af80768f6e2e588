"""A server of a distributed job: keeps its part of the values, and updates them at each push of a worker."""
from __future__ import annotations

import contextlib
import json
import os
import queue
import secrets
import threading
from collections.abc import Callable
from multiprocessing.connection import Listener
from typing import TYPE_CHECKING, Any

import torch

from .. import optimizer as opt
from ..base import MXNetError
from ..context import cpu
from ..ndarray import NDArray
from ..ndarray.sparse.arrays import RowSparseNDArray
from ..optimizer import pickles
from . import messages, rendezvous
from .compression import make_compression
from .liveness import Monitor, name

if TYPE_CHECKING:
    from .rendezvous import Place


class Store:
    """This server's part of the values of one kvstore of the workers."""

    def __init__(self) -> None:
        self.values, self.updater, self.optimizer = {}, None, None

    def value(self, key: int | str) -> torch.Tensor:
        try:
            return self.values[key]
        except KeyError:
            raise MXNetError(f"key {key!r} has not been inited: call init or broadcast with it first") from None


class Server:
    """Serves the workers of a job until all of them have left.

    Each connection has a thread that reads and writes; the thread that calls `run` processes the requests, one after the other.

    Parameters
    ----------
    where : rendezvous.Place
    commands : dict of int to function, optional
        The commands that workers may send by number; called with a text and the rank of this server.
    """

    def __init__(self, where: Place, commands: Callable[..., Any] | None = None):
        self._commands = commands or {}
        self._meeting, self.rank = rendezvous.meet(where)
        key = secrets.token_bytes(32)
        self._listener = Listener((rendezvous.own_address(where), 0), "AF_INET", backlog=128, authkey=key)
        self._meeting.set(f"server/{self.rank}", json.dumps([*self._listener.address, key.hex()]))
        self._stores, self._requests = {}, queue.Queue()
        rendezvous.join(self._meeting, where)
        nodes = [name("worker", i) for i in range(where.num_workers)] + [name("server", i) for i in range(where.num_servers)]
        self._monitor = Monitor(self._meeting, name("server", self.rank), nodes).start()
        self._workers = nodes[:where.num_workers]

    def run(self) -> None:
        """Serve until all workers have left, or died."""
        threading.Thread(target=self._accept, daemon=True).start()
        while not self._deserted():
            try:
                head, tensors, answer = self._requests.get(timeout=0.2)
            except queue.Empty:
                continue
            try:
                answer.put(self._handle(head, tensors))
            except Exception as error:  # noqa: BLE001  (it is sent to the worker; the server continues)
                answer.put(({"error": str(error) if isinstance(error, MXNetError) else repr(error)}, ()))
        self._monitor.stop()

    def _deserted(self):
        ended = {*self._monitor.gone(), *self._monitor.silent(self._monitor.limit)}
        if self._monitor.cut_off():
            raise MXNetError(f"server {self.rank} stops: {self._monitor.cut_off()}")
        return ended.issuperset(self._workers)

    # -- connections ---------------------------------------------------------------------------------------------------------------

    def _accept(self):
        while True:
            try:
                connection = messages.accept(self._listener)
            except Exception:  # noqa: BLE001, S112  (a client without the key, or a closed connection)
                continue
            threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection):
        failed = None  # the first error of requests without a response; it is sent with the next response
        with contextlib.suppress(EOFError, OSError), connection:
            while True:
                try:
                    head, tensors = messages.receive(connection)
                except MXNetError as error:
                    messages.send(connection, {"error": str(error)})
                    return
                answer = queue.SimpleQueue()
                self._requests.put((head, tensors, answer))
                told, found = answer.get()
                if head.get("silent"):
                    failed = failed or told.get("error")
                    continue
                messages.send(connection, {"error": failed} if failed else told, () if failed else found)
                failed = None

    # -- requests ------------------------------------------------------------------------------------------------------------------

    def _handle(self, head, tensors):
        """Process a request, and return the response: a dict and tensors."""
        if head.get("do") == "command" and head.get("head") in self._commands:
            self._commands[head["head"]](head["body"], self.rank)
            return {}, ()
        action = _ACTIONS.get(head.get("do"))
        if action is None:
            what = f"command {head.get('head')!r}" if head.get("do") == "command" else f"request {head.get('do')!r}"
            raise MXNetError(f"server {self.rank} knows no {what}")
        store = self._stores.setdefault(head.get("store"), Store())
        found = action(store, head, tensors)
        return {}, found or ()


def _init(store, head, tensors):
    """Initialize values: dense ones, or row numbers and rows of row_sparse ones."""
    tensors = iter(tensors)
    for key, stype, shape in head["keys"]:
        if key in store.values:
            raise MXNetError(f"duplicate init of key {key!r}: init or broadcast was called with this key before")
        if stype == "default":
            store.values[key] = NDArray._new(next(tensors), cpu())
        else:
            numbers, values = next(tensors), next(tensors)
            store.values[key] = _rows(key, numbers, values, tuple(shape))


def _rows(key, numbers, values, shape):
    if numbers.dtype != torch.int64 or numbers.dim() != 1 or tuple(values.shape) != (len(numbers), *shape[1:]):
        raise MXNetError(f"key {key!r}: the rows of a value of shape {shape} are int64 numbers and as many rows, received {numbers.dtype} and "
                         f"{tuple(values.shape)}")
    _check_range(key, numbers, shape[0])
    return RowSparseNDArray._make(values, [numbers], shape, cpu())


def _check_range(key, numbers, count):
    if numbers.dtype != torch.int64 or len(numbers) and not (0 <= int(numbers.min()) and int(numbers.max()) < count):
        raise MXNetError(f"key {key!r}: row numbers are integers from 0 to {count - 1}, received others")


def _push(store, head, tensors):
    tensors = iter(tensors)
    for key, stype in head["keys"]:
        kept = store.value(key)
        if stype == "row_sparse":
            numbers, values = next(tensors), next(tensors)
            gradient = _rows(key, numbers, values, kept.shape)
        else:
            pushed = next(tensors)
            if stype != "default":
                pushed = make_compression(stype).decompress(pushed, kept._raw().shape, kept._raw().dtype)
            if tuple(pushed.shape) != kept.shape:
                raise MXNetError(f"push: key {key!r} was inited with shape {kept.shape}, received {tuple(pushed.shape)}")
            gradient = NDArray._new(pushed, cpu())
        if store.updater is None:
            raise MXNetError(f"push of key {key!r}: an asynchronous kvstore can't wait for all values to add up, it needs an optimizer; call "
                             "set_optimizer first")
        store.updater(key, gradient, kept)


def _pull(store, head, tensors):
    found = []
    for key in head["keys"]:
        kept = store.value(key)
        found.append((kept if kept.stype == "default" else kept.tostype("default"))._raw())
    return found


def _pull_rows(store, head, tensors):
    kept = store.value(head["key"])
    (wanted,) = tensors
    _check_range(head["key"], wanted, kept.shape[0])
    if kept.stype == "default":
        return [kept._raw()[wanted]]
    numbers, values = kept._aux[0], kept._values
    place = torch.searchsorted(numbers, wanted).clamp_(max=max(len(numbers) - 1, 0))
    rows = values.new_zeros((len(wanted), *kept.shape[1:]))
    if len(numbers):
        there = numbers[place] == wanted
        rows[there] = values[place[there]]
    return [rows]


def _set_optimizer(store, head, tensors):
    (content,) = tensors
    content = content.numpy().tobytes()
    if content != store.optimizer:  # all workers send the same one; its states must not be reset each time
        store.updater = opt.get_updater(pickles.loads(content, "the optimizer that a worker sent"))
        store.optimizer = content


def _states(store, head, tensors):
    if store.updater is None:
        raise MXNetError("save_optimizer_states: this store has no optimizer; call set_optimizer(...) first")
    return [torch.frombuffer(bytearray(store.updater.get_states(head["with_optimizer"])), dtype=torch.uint8)]


def _load_states(store, head, tensors):
    if store.updater is None:
        raise MXNetError("load_optimizer_states: this store has no optimizer; call set_optimizer(...) first")
    store.updater.set_states(tensors[0].numpy().tobytes())


def _flush(store, head, tensors):
    """Do nothing: the response confirms that all earlier requests of the connection are processed."""


_ACTIONS = {"flush": _flush, "init": _init, "push": _push, "pull": _pull, "pull_rows": _pull_rows, "optimizer": _set_optimizer, "states": _states,
            "load_states": _load_states}


def serve(commands: Callable[..., Any] | None = None) -> None:
    """Run the role in ``DMLC_ROLE``, server or scheduler, until the job has ended; `commands` as for `Server`.

    Raises
    ------
    MXNetError
        If the environment has no rendezvous address, the others don't join, or this process is a worker.
    """
    where = rendezvous.place()
    role = where.role if where else "worker"
    if role == "server":
        Server(where, commands).run()
    elif role == "scheduler":
        _schedule(where)
    else:
        raise MXNetError("DMLC_ROLE says that this process is a worker; servers and schedulers serve")


def _schedule(where):
    """Host the rendezvous until all processes have left."""
    store, _ = rendezvous.meet(where)
    rendezvous.join_as_host(store, where)
    nodes = [name("worker", i) for i in range(where.num_workers)] + [name("server", i) for i in range(where.num_servers)]
    monitor = Monitor(store, f"scheduler {os.getpid()}", nodes).start()
    done = threading.Event()
    while not {*monitor.gone(), *monitor.silent(monitor.limit)}.issuperset(nodes):
        done.wait(0.2)
    monitor.stop()
