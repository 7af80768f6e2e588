"""The workers of a job and their collectives: sums, broadcasts and barriers of torch.distributed that raise an error if a worker is lost."""
from __future__ import annotations

import atexit
import contextlib
import copy
import ctypes
import datetime
import json
import os
import sys
import textwrap
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from ..base import MXNetError
from . import rendezvous
from .base import LostWorkerError
from .connections import Connections
from .liveness import SERVERS, STEP, WORKERS, Monitor, name

if TYPE_CHECKING:
    from .rendezvous import Place

# The monitor detects failures; Gloo requires a timeout of its own, which must not expire during any job.
_LONG = datetime.timedelta(days=3650)
# Tensors are sent in buckets: small ones first, so that sending begins early, then large ones, which cost least, and small ones last, since
# nothing is computed while the last one is sent.
BUCKET, SMALL_BUCKET = 16 << 20, 1 << 20  # bytes
_ADVICE = "The job can't go on: start it again from its last checkpoint"
_STORE_RULE = ("All workers of a synchronous kvstore init, push and pull the same keys with the same shapes and types in the same order, and "
               "compress alike")
_RANKS_RULE = "All ranks make the same calls in the same order, with the same arguments"
# The numbers in the message of an agreement, beside one for each worker. They are as many in all calls: Gloo ends a process that receives more than
# it expects.
_FRAME = 8
_CLOSING = 0.5  # the seconds within which the connections of a process that has died close, after the first one
_DESCRIPTIONS = datetime.timedelta(seconds=5)  # the time that the others have for saying what they do, after a difference
_joined = None


class Group:
    """The process group of a job's workers, from the perspective of one of them.

    Parameters
    ----------
    where : rendezvous.Place
    """

    def __init__(self, where: Place):
        self.store, self.rank = rendezvous.meet(where)
        self.place, self.num_workers, self.num_servers = where, where.num_workers, where.num_servers
        self.store.set(f"host/{self.rank}", os.uname().nodename)
        rendezvous.join(self.store, where)
        nodes = [name("worker", i) for i in range(self.num_workers)] + [name("server", i) for i in range(self.num_servers)]
        self.monitor = Monitor(self.store, name("worker", self.rank), nodes).start()
        self._pid = os.getpid()
        self._own = not dist.is_initialized()
        self._gloo = self._nccl = self._connections = None
        self._channels = []
        self._prepared = []  # channels that nobody has asked for yet
        self._given_up = []  # torch's groups with work that never ends
        self._under_way = {}  # work -> the tensors that it reads and writes
        self._sent = [0]
        self._ordered = [False]
        self._left = threading.Event()
        try:
            self._connect("the start of the job")
        except BaseException as error:  # Ctrl-C as well: a thread in the store at the interpreter's exit causes a SIGABRT
            self.monitor.stop(f"failed with {type(error).__name__}")
            raise

    def _connect(self, doing):
        if self._own:
            try:
                dist.init_process_group("gloo", store=dist.PrefixStore("workers", self.store), rank=self.rank, world_size=self.num_workers,
                                        timeout=self._start_limit())
            except RuntimeError as error:
                raise self._broken(doing, error) from error
            dist.group.WORLD._get_backend(torch.device("cpu"))._set_default_timeout(_LONG)
        else:  # the program uses torch.distributed itself
            self._gloo = self._new_gloo(doing)
        if self.num_workers > 1:
            self._connections = Connections(self._new_gloo(doing))

    def _start_limit(self):
        return datetime.timedelta(seconds=max(self.monitor.limit, 1))

    @property
    def sent(self) -> int:
        """The bytes that this worker has sent, computed for the algorithms of Gloo and NCCL."""
        return self._sent[0]

    def _count(self, number):
        self._sent[0] += number

    def sum_in_order(self) -> None:
        """Add up in the order of the workers from now on; all workers call it.

        Otherwise the order depends on an element's place in its bucket, and with three workers or more so does the last bit of a sum: a job that
        starts again has other buckets in its first steps.
        """
        self._ordered[0] = True

    def prepare_channel(self) -> None:
        """Make the group that the next `channel` returns; all workers call it.

        It is for programs that must not wait later: a worker that is killed while the others make a group costs them ``PS_HEARTBEAT_TIMEOUT``.
        """
        self._prepared.append(self.channel("the start of the job"))

    def channel(self, doing: str) -> Any:
        """Return a group of the same workers for collectives in an independent order; all workers call it.

        Raises
        ------
        MXNetError
            If one of them does not join.
        """
        if self._prepared:
            return self._prepared.pop()
        other = copy.copy(self)
        other._nccl, other._gloo = None, self._new_gloo(doing)
        self._channels.append(other)
        return other

    def _new_gloo(self, doing):
        try:
            group = dist.new_group(backend="gloo", timeout=self._start_limit())
            group._get_backend(torch.device("cpu"))._set_default_timeout(_LONG)
        except RuntimeError as error:
            raise self._broken(doing, error) from error
        return group

    def begin(self, collective: Callable[..., Any], *what: Any, **options: Any) -> Any:
        """Begin a collective call of torch.distributed; return work to `wait` for.

        Raises
        ------
        MXNetError
            If this worker has left the job.
        """
        if self._left.is_set():
            raise MXNetError(f"worker {self.rank} has left its job, as a program does at its end, and can't send or receive anything more")
        while (oldest := next(iter(self._under_way), None)) is not None and oldest.is_completed():  # finished without a wait
            self._under_way.pop(oldest, None)
        work = collective(*what, async_op=True, **options)
        self._under_way[work] = what
        return work

    # -- waiting -----------------------------------------------------------------------------------------------------------------

    def wait(self, work: Any, doing: str) -> None:
        """Wait for work of torch.distributed.

        Raises
        ------
        MXNetError
            If it can't end, because another worker has died, does not respond, or has left.
        """
        while True:
            try:
                work.wait(datetime.timedelta(seconds=STEP))
                self._under_way.pop(work, None)
                return
            except RuntimeError:
                if work.is_completed():  # with an error, or just after the end of this wait
                    try:
                        work.wait()
                        self._under_way.pop(work, None)
                        return
                    except RuntimeError as error:
                        raise self._broken(doing, error) from error
            trouble = self.monitor.trouble() or ", ".join(f"{worker}: its connection has closed" for worker in self._lost())
            if trouble:
                self._give_up()
                raise LostWorkerError(f"{doing}: worker {self.rank} waits in vain ({trouble}). {_ADVICE}")

    def _lost(self, seconds=0):
        """Return the workers whose connections have closed, or do within `seconds`, and that have not left."""
        closed = [name("worker", i) for i in self._connections.closed(seconds)] if self._connections else []
        ended = self.monitor.ended() if closed else {}  # whoever leaves has said so before
        return [worker for worker in closed if worker not in ended]

    def _give_up(self):
        """Abandon work that will never end, so that the process does not wait for its threads at exit.

        Its tensors are kept as well: it may fail during the interpreter's exit, and a thread of torch that frees the last reference to a tensor
        then ends the process with SIGABRT.
        """
        for kept in (self._under_way, self._connections, dist.group.WORLD, self._gloo, self._nccl, *(channel._gloo for channel in self._channels)):
            if kept and kept not in self._given_up:
                self._given_up.append(kept)
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))

    def _broken(self, doing, error):
        self._give_up()  # other work in flight may wait for a stopped or disconnected worker
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        lost = " and ".join(self._lost(_CLOSING)) or "another worker"
        ends = {**dict.fromkeys(self.monitor.gone(), "left"), **self.monitor.silent(float("inf")), **self.monitor.ended()}
        why = "".join(f"; {node} {'left before the others' if end == 'left' else end}" for node, end in ends.items() if node != self.monitor.me)
        return LostWorkerError(f"{doing}: worker {self.rank} has lost {lost}, which died or ended early{why} ({textwrap.shorten(reason, 200)}). "
                          f"{_ADVICE}")

    # -- collectives -------------------------------------------------------------------------------------------------------------

    def _group_for(self, tensor):
        if tensor.device.type != "cuda" or not dist.is_nccl_available():
            return self._gloo
        if self._nccl is None:
            self._nccl = self._make_nccl(tensor.device)
        return self._nccl or self._gloo

    def _make_nccl(self, device):
        """Return an NCCL group for GPUs, or False if workers share a GPU, which NCCL does not support (Gloo copies then)."""
        mine = f"{os.uname().nodename}/{torch.cuda.get_device_properties(device).uuid}"
        self.store.set(f"gpu/{self.rank}", mine)
        keys = [f"gpu/{i}" for i in range(self.num_workers)]
        self.store.wait(keys, _LONG)
        if len({bytes(v) for v in self.store.multi_get(keys)}) < self.num_workers:
            return False
        return dist.new_group(backend="nccl", timeout=_LONG)

    def all_reduce(self, tensor: torch.Tensor, op: Any = dist.ReduceOp.SUM) -> Any:
        """Begin to sum `tensor` over all workers, in place; return work to `wait` for."""
        self._count(2 * (self.num_workers - 1) * tensor.nbytes // self.num_workers)
        return self.begin(dist.all_reduce, tensor, op=op, group=self._group_for(tensor))

    def begin_broadcast(self, tensor: torch.Tensor, root: int = 0) -> Any:
        """Begin to broadcast the root's `tensor` to all others; return work to `wait` for."""
        self._count(tensor.nbytes * (self.num_workers - 1) if self.rank == root else 0)
        group = self._group_for(tensor)
        return self.begin(dist.broadcast, tensor, src=root if group is None else dist.get_global_rank(group, root), group=group)

    def begin_all_gather(self, parts: Sequence[torch.Tensor], own: torch.Tensor) -> list[Any]:
        """Begin to write the tensors of all workers to `parts`, of which each has the size of its worker's; return works to `wait` for."""
        if len({part.numel() for part in parts}) == 1:
            self._count(own.nbytes * (self.num_workers - 1))
            return [self.begin(dist.all_gather, list(parts), own, group=self._group_for(own))]
        parts[self.rank].copy_(own)
        return [self.begin_broadcast(part, i) for i, part in enumerate(parts) if part.numel()]

    def all_gather_uneven(self, tensor: torch.Tensor, sizes: Sequence[int], doing: str) -> list[torch.Tensor]:
        """Gather the tensors of all workers, whose first axes have the given sizes, without padding."""
        found = [tensor.contiguous() if i == self.rank else tensor.new_empty((size, *tensor.shape[1:])) for i, size in enumerate(sizes)]
        for work in [self.begin_broadcast(part, i) for i, part in enumerate(found) if part.numel()]:
            self.wait(work, doing)
        return found

    def barrier(self, doing: str = "barrier") -> None:
        """Wait until all workers have called this."""
        self.wait(self.all_reduce(torch.zeros(1)), doing)

    def agree(self, numbers: Sequence[int], doing: str, about: Mapping[str, Any] | None = None, rule: str = _STORE_RULE) -> Callable[[], Any]:
        """Begin to compare this worker's operation with those of all others.

        Without this check, sums of different keys would be silently wrong, and those of different sizes would never end.

        Parameters
        ----------
        numbers : list of int
            The first number must be the same on all workers, and lists of different lengths must not have the same one.
        doing : str
            Names the operation in errors.
        about : dict, optional
            The properties of the operation that the first number stands for: errors name those that differ.
        rule : str
            What all workers have to do; errors end with it.

        Returns
        -------
        function
            Waits for the end, and returns the lists of all workers.
        """
        # All messages have one size, whatever a worker calls. Longer lists go on in a second one, once the calls are known to be the same.
        size = self.num_workers + _FRAME
        first, rest = numbers[:size], numbers[size:]
        mine, everyone = torch.tensor([*first, *[0] * (size - len(first))]), torch.empty(self.num_workers, size, dtype=torch.int64)
        work = self.begin(dist.all_gather, list(everyone.unbind()), mine, group=self._gloo)

        def end():
            self.wait(work, doing)
            lists = everyone.tolist()
            others = [i for i, values in enumerate(lists) if values[0] != numbers[0]]
            if others:
                self._give_up()
                descriptions = self._exchange_descriptions({"call": doing, **(about or {})}, f"differs/{digest(lists)}")
                raise MXNetError(f"{doing}: {_difference(descriptions, self.rank, others)}. {rule}")
            if rest:
                lists = [a + b for a, b in zip(lists, self.begin_gather(torch.tensor(rest), doing)().tolist())]
            return [values[:len(numbers)] for values in lists]
        return end

    def _exchange_descriptions(self, description, key):
        """Return what all workers do, or None for one that does not say it in time.

        They say it through the store: Gloo may have other messages under way, which are different as well.
        """
        names = [f"{key}/{i}" for i in range(self.num_workers)]
        try:
            self.store.set(names[self.rank], json.dumps(description, default=str))
            self.store.wait(names, _DESCRIPTIONS)
            descriptions = [json.loads(text) for text in self.store.multi_get(names)]
            self.store.set(f"{key}/read/{self.rank}", "")
            if self.place.hosts:  # this process may end now, and the store with it
                with contextlib.suppress(RuntimeError):
                    self.store.wait([f"{key}/read/{i}" for i in range(self.num_workers)], _DESCRIPTIONS)
        except RuntimeError:
            return [None] * self.num_workers
        return descriptions

    def numbers_of_all(self, doing: str, *numbers: int, about: Mapping[str, Any] | None = None) -> list[list[int]]:
        """Return the numbers of all workers, a list for each; all call it for the same operation `about` the same, with as many numbers."""
        operation = digest(doing, len(numbers), about)
        return [values[1:] for values in self.agree([operation, *numbers], doing, about, _RANKS_RULE)()]

    def announce(self, doing: str, error: str) -> None:
        """Tell the other workers of an error in this one's call: they get an error from the call in which they wait for this worker."""
        with contextlib.suppress(MXNetError):  # the caller raises its own
            self.agree([digest(doing, error)], doing, {"error": error}, _RANKS_RULE)()

    def begin_sum(self, tensor: torch.Tensor, doing: str) -> Callable[[], Any]:
        """Begin to sum a tensor over all workers, in place, 16-bit floats in 32 bits; return a function that waits for the sum and returns it."""
        if tensor.dtype in (torch.float16, torch.bfloat16) or self._ordered[0] and self.num_workers > 2:
            return self.begin_ordered_sum(tensor, tensor.dtype, doing)
        work = self.all_reduce(tensor)

        def end():
            self.wait(work, doing)
            return tensor
        return end

    def begin_ordered_sum(self, tensor: torch.Tensor, dtype: torch.dtype, doing: str) -> Callable[[], Any]:
        """Do the same as `begin_sum` for tensors that are sent as another type: each worker sums a part in its order, and sends it to all.

        16-bit floats are summed in 32 bits.
        """
        count, workers, group = tensor.numel(), self.num_workers, self._group_for(tensor)
        share = -(-count // workers)
        parts = torch.zeros(workers * share, dtype=dtype, device=tensor.device)
        parts[:count] = tensor.reshape(-1)
        received = torch.empty_like(parts)
        self._count(2 * (workers - 1) * share * parts.element_size())
        # As bytes: not every release of Gloo supports all 16-bit types.
        work = self.begin(dist.all_to_all_single, received.view(torch.uint8), parts.view(torch.uint8), group=group)

        def end():
            self.wait(work, doing)
            rows = received.view(workers, share)
            own = rows[0].to(torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype, copy=True)
            for row in rows[1:]:
                own += row
            own = own.to(dtype)
            self.wait(self.begin(dist.all_gather, list(parts.view(torch.uint8).split(own.nbytes)), own.view(torch.uint8), group=group), doing)
            return parts[:count].to(tensor.dtype).view(tensor.shape)
        return end

    def begin_sum_parts(self, parts: Sequence[torch.Tensor], doing: str, joined: torch.Tensor | None = None) -> Callable[[], Any]:
        """Begin a reduce-scatter of flat tensors, one for each worker; return a function that waits for this worker's sum and returns it.

        `joined` has all parts in their order, if there is such a tensor; otherwise they are copied. It must not change until the sum is there.
        16-bit floats are summed in 32 bits, and the result stays float32.
        """
        own = parts[self.rank]
        sent, received = torch.cat(parts) if joined is None else joined, own.new_empty(self.num_workers * len(own))
        self._count(sent.nbytes - own.nbytes)
        work = self.begin(dist.all_to_all_single, received.view(torch.uint8), sent.view(torch.uint8), [own.nbytes] * self.num_workers,
                           [p.nbytes for p in parts], group=self._group_for(sent))
        wide = torch.float32 if own.dtype in (torch.float16, torch.bfloat16) else own.dtype

        def end():
            self.wait(work, doing)
            return received.view(self.num_workers, -1).sum(0, dtype=wide) if len(own) else own.to(wide)
        return end

    def begin_gather(self, tensor: torch.Tensor, doing: str) -> Callable[[], Any]:
        """Begin to gather the tensors of all workers; return a function that waits for them and returns them stacked."""
        found = tensor.new_empty((self.num_workers, *tensor.shape))
        self._count(tensor.nbytes * (self.num_workers - 1))
        work = self.begin(dist.all_gather, list(found.unbind()), tensor.contiguous(), group=self._group_for(tensor))

        def end():
            self.wait(work, doing)
            return found
        return end

    def begin_sum_many(self, tensors: Sequence[torch.Tensor], doing: str, half: torch.dtype | None = None, limited: bool = True) -> Any:
        """Begin to sum tensors over all workers, in `buckets`. The inputs are not changed; `half` is an optional 16-bit type for sending.

        Returns
        -------
        iterator of torch.Tensor
            The sums, in order, each as soon as it is available.
        """
        flights = []
        for bucket in buckets(tensors, limited):
            flat = torch.cat([t.reshape(-1) for t in bucket])  # a copy, of a single one too
            flights.append((bucket, self.begin_ordered_sum(flat, half, doing) if half else self.begin_sum(flat, doing)))
        return self._end_sum_many(flights)

    @staticmethod
    def _end_sum_many(flights):
        for bucket, end in flights:
            for tensor, part in zip(bucket, end().split([t.numel() for t in bucket])):
                yield part.view(tensor.shape)

    def local(self) -> tuple[int, int]:
        """Return ``(number, count)``: the number of this worker on its machine, and the count of workers there."""
        if "LOCAL_RANK" in os.environ and "LOCAL_WORLD_SIZE" in os.environ:  # set by torchrun
            return int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
        hosts = self.store.multi_get([f"host/{i}" for i in range(self.num_workers)])
        same = [i for i, host in enumerate(hosts) if host == hosts[self.rank]]
        return same.index(self.rank), len(same)

    def num_dead(self, node_id: int, seconds: float) -> int:
        """Return the number of workers (4) and servers (2) that have failed, or have not responded for `seconds`."""
        wanted = tuple(role for role, bit in (("worker", WORKERS), ("server", SERVERS)) if node_id & bit)
        return sum(node.startswith(wanted) for node in self.monitor.silent(seconds))

    # -- the end -----------------------------------------------------------------------------------------------------------------

    def _wait_for_others(self):
        """Wait until the others have ended, since this process hosts the rendezvous."""
        nodes, monitor, pause = set(self.monitor.others) - {self.monitor.me}, self.monitor, threading.Event()
        while not {*monitor.gone(), *monitor.silent(monitor.limit), *self._lost()}.issuperset(nodes):
            pause.wait(monitor.interval / 2)

    def leave(self) -> None:
        """Report the end or the failure of this worker to the others. It waits for work in flight only, and not at all after a failure."""
        if self._pid != os.getpid() or self._left.is_set():
            return
        self._left.set()
        error = getattr(sys, "last_value", None)
        if error is not None and not all(work.is_completed() for work in self._under_way):
            self._give_up()
        if not self._given_up:
            with contextlib.suppress(MXNetError):  # the work is abandoned then
                for work in list(self._under_way):
                    self.wait(work, "end")
        mark = "has given up" if self._given_up else "left"  # the others may wait for what this worker has not sent
        self.monitor.end(mark if error is None else f"failed with {type(error).__name__}")
        if not self._given_up and dist.is_initialized():
            self._end_threads()  # whoever waits for more from this worker hears it now
        if self.place.hosts and error is None:
            self._wait_for_others()
        self.monitor.stop()
        # Otherwise a thread of torch hears of the end of other processes during the interpreter's exit, and causes a SIGABRT.
        if self._connections and not self._connections.end():
            self._give_up()

    def _end_threads(self):
        """Drop the references to groups, which ends their threads: one that frees a tensor during the interpreter's exit causes a SIGABRT."""
        self._under_way.clear()
        for member in (*self._channels, self):
            made, member._gloo, member._nccl = [g for g in (member._gloo, member._nccl) if g], None, None
            while made:
                dist.destroy_process_group(made.pop())
        if self._own:
            dist.destroy_process_group()


class Member:
    """A mixin of stores with the properties of the job, from their `_group`."""

    @property
    def rank(self) -> int:
        """The number of this worker, from 0."""
        return self._group.rank

    @property
    def num_workers(self) -> int:
        """The number of workers."""
        return self._group.num_workers

    def get_num_dead_node(self, node_id: int, timeout: float = 60) -> int:
        """Return the number of processes that have died, or have not responded for a while.

        Parameters
        ----------
        node_id : int
            The roles to count: 2 for servers, 4 for workers, 6 for both. The scheduler (1) takes no part in the training and is never counted.
        timeout : float
            The time without a response, in seconds.
        """
        return self._group.num_dead(node_id, timeout)


def _difference(descriptions, rank, others):
    """Return what distinguishes this worker's operation from the one of another, in words, out of what they say about them."""
    failed = [i for i in others if descriptions[i] and "error" in descriptions[i]]
    if failed:
        return f"worker {failed[0]} has failed with the error: {descriptions[failed[0]]['error']}"
    other = others[0]
    mine, theirs = descriptions[rank], descriptions[other]
    text = f"worker {rank} and worker {other} do not do the same"
    if not mine or not theirs:
        return text
    if mine["call"] != theirs["call"]:
        return f"{text}: worker {other} calls {theirs['call']}"
    different = [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]
    return text + "".join(f"{'; ' if i else ': '}{name} is {mine.get(name)} on worker {rank} and {theirs.get(name)} on worker {other}"
                          for i, name in enumerate(different))


def digest(*things: Any) -> int:
    """Return a hash of a worker's operation, for `Group.agree`."""
    return zlib.crc32(repr(things).encode())


def buckets(tensors: Iterable[torch.Tensor], limited: bool = True) -> Iterator[Any]:
    """Divide tensors into buckets that are sent together: of one type and device, and in order.

    If `limited`, a bucket has at most the bytes of all before it, half of those from it to the end, and `BUCKET` bytes; but at least one tensor,
    and `SMALL_BUCKET` bytes are allowed everywhere.
    """
    tensors = list(tensors)
    pending, size, before, rest = [], 0, 0, sum(tensor.nbytes for tensor in tensors)
    for tensor in tensors:
        limit = max(SMALL_BUCKET, min(BUCKET, before, rest // 2))
        if pending and (limited and size + tensor.nbytes > limit or tensor.dtype != pending[0].dtype or tensor.device != pending[0].device):
            yield pending
            pending, size, before, rest = [], 0, before + size, rest - size
        pending.append(tensor)
        size += tensor.nbytes
    if pending:
        yield pending


def joined(kind: str, alone: bool = False) -> Any:
    """Return the group of this process, joined at the first call. With `alone`, a process without a launcher is a group of its own.

    Raises
    ------
    MXNetError
        If this process was not started by a launcher, or the others don't join.
    """
    global _joined
    if _joined is None or _joined._pid != os.getpid() or not (alone or _joined.place.port):
        where = rendezvous.place()
        if where is None and alone:
            where = rendezvous.Place("worker", 0, 1, 0, "127.0.0.1", 0, True, "")
        if where is None:
            raise MXNetError(f"a kvstore of type {kind!r} joins the processes of a job, and no launcher has started this one: run it as "
                             "`python -m mxnet.tools.launch -n 2 --launcher local COMMAND`, or by torchrun")
        if where.role != "worker":
            raise MXNetError(f"a kvstore of type {kind!r} is made by workers, this process is a {where.role} (DMLC_ROLE)")
        _joined = Group(where)
        atexit.register(_joined.leave)
    return _joined
