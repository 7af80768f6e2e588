"""Overlap of gradient communication with backward.

Finished gradients are sent in buckets, in an order that all workers share: that in which worker 0 finished its gradients in the previous step.
The step then waits for the buckets in flight instead of sending everything. Its result is always the same as without overlap: if a gradient was
changed after it was sent (clipped, computed again), all workers send everything once more, and the overlap is disabled from then on.
"""
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from ..ndarray import memory_format, mutation_tracking
from . import group
from .sending_threads import SendingThreads

#: Bit flags of a worker's state of early gradients, which it sends to the others.
COLLECTS, ACTIVE, CHANGED = 1, 2, 4
_log = logging.getLogger(__name__)


class _Flight:
    """A bucket in flight. `writes` sets `stale` if a sent tensor is written to, and `compares` if torch's version counters must be compared."""

    __slots__ = ("names", "sources", "counts", "end", "stale", "compares", "__weakref__")

    def __init__(self, names, sources, end):
        self.names, self.sources, self.end, self.stale, self.compares = names, sources, end, False, False
        tensors = [tensor for _, tensor in sources]
        self.counts = [t._version for t in tensors]
        if all(map(mutation_tracking.may_watch, tensors)):
            mutation_tracking.watch(tensors, self)
        else:
            self.stale = True

    def holds(self, arrays):
        """Return True if these arrays still have the values that were sent."""
        return (not self.stale and len(arrays) == len(self.sources)
                and all(a is b and a._data is tensor for a, (b, tensor) in zip(arrays, self.sources))
                and not (self.compares and self.counts != [tensor._version for _, tensor in self.sources]))


class Overlap:
    """The early gradients of a store, which are sent during backward.

    Parameters
    ----------
    net : group.Group
    merge : function
        Returns the tensor to send for a key and its arrays.
    begin : function
        Begins to sum, and returns an iterator over the sums; its arguments are keys, tensors, a text for errors and a group.
    """

    def __init__(self, net: Any, merge: Callable, begin: Callable) -> None:
        self._net, self._merge, self._begin = net, merge, begin
        self._channel: Any = None
        self._threads = SendingThreads()
        self._off = net.num_workers == 1
        self._names: list[Any] = []
        self._arrays: dict[Any, Sequence[Any]] = {}
        self._seen: list[Any] = []
        self._buckets: list[list[Any]] | None = None
        self._where: dict[Any, int] = {}
        self._last: set[Any] = set()  # keys whose gradients travel in channels-last order
        self._missing: dict[Any, int] = {}
        self._left: list[int] = []
        self._flights: list[_Flight] = []
        self._changed = False
        self._lock = threading.Lock()  # backward has a thread for each GPU

    # -- before and during backward ------------------------------------------------------------------------------------------------

    def expect(self, names: Sequence[Any], arrays: Sequence[Sequence[Any]]) -> Callable[[Any], None] | None:
        """Announce the gradients of the next backward; all workers call it after the same step.

        Returns
        -------
        function or None
            The function to call with a key each time that one of its arrays is finished; None if gradients are not sent early.
        """
        if self._off:
            return None
        self._arrays = dict(zip(names, arrays))
        if set(names) != set(self._names):
            self._names, self._seen, self._buckets = list(names), [], None
        elif self._buckets is None:
            self._plan()
        self._missing = {k: len(a) for k, a in self._arrays.items()}
        self._flights, self._changed = [], False
        if self._buckets is None:
            self._seen = []
        else:
            self._left = [sum(self._missing[k] for k in bucket) for bucket in self._buckets]
        return self._finished

    def _plan(self) -> None:
        """Choose the buckets in worker 0's order of finished gradients; those that it did not finish are last."""
        doing = "the order of gradients"
        # Where all workers have the same order in memory, gradients need not be brought into another one.
        last = [k for k in self._names if memory_format.has_channels_last(self._arrays[k][0]._raw())]
        found = self._net.agree([group.digest(doing, self._names), group.digest(last)], doing)()
        self._last = set(last) if all(numbers == found[0] for numbers in found) else set()
        positions = {k: i for i, k in enumerate(self._names)}
        seen = dict.fromkeys(self._seen) if self._seen else dict.fromkeys(reversed(self._names))
        order = torch.tensor([positions[k] for k in [*seen, *(k for k in self._names if k not in seen)]])
        self._net.wait(self._net.begin_broadcast(order), doing)
        if self._channel is None:
            self._channel = self._net.channel(doing)
        names = [self._names[i] for i in order.tolist()]
        rest = iter(names)
        self._buckets = [[next(rest) for _ in bucket] for bucket in group.buckets([self._arrays[k][0]._raw() for k in names])]
        self._where = {k: i for i, bucket in enumerate(self._buckets) for k in bucket}

    def _finished(self, name: Any) -> None:
        with self._lock:
            if self._buckets is None:
                self._seen.append(name)
                return
            self._missing[name] -= 1
            if self._missing[name] < 0:  # finished again by a second backward
                self._changed = True
                return
            self._left[self._where[name]] -= 1
            while len(self._flights) < len(self._buckets) and not self._left[len(self._flights)]:
                if not self._flights:
                    self._threads.defer()
                self._launch()

    def _launch(self) -> None:
        names = self._buckets[len(self._flights)]  # type: ignore[index]
        sources = [(array, array._data) for k in names for array in self._arrays[k]]
        tensors = [self._merge(k, self._arrays[k])._raw() for k in names]
        tensors = [t.permute(0, 2, 3, 1) if k in self._last else t for k, t in zip(names, tensors)]
        totals = self._begin(names, tensors, f"push of key {names[0]!r}", self._channel)
        self._flights.append(_Flight(names, sources, (t.permute(0, 3, 1, 2) if k in self._last else t for k, t in zip(names, totals))))

    # -- in the step ---------------------------------------------------------------------------------------------------------------

    def state(self, pairs: Sequence[tuple[Any, Sequence[Any]]]) -> int:
        """Return this worker's flags for the sum of these keys and arrays; if the keys are the announced ones, all buckets are in flight then."""
        self._threads.hurry()
        if self._buckets is None:
            return 0
        given = dict(pairs)
        if given.keys() != self._arrays.keys():
            return ACTIVE if self._flights else 0
        self._changed = self._changed or not all(flight.holds([array for k in flight.names for array in given[k]]) for flight in self._flights)
        self._arrays = given  # possibly another executor's, for buckets that are not in flight yet
        self._launch_all()
        return COLLECTS + CHANGED * self._changed

    def _launch_all(self) -> None:
        while len(self._flights) < len(self._buckets or ()):
            self._launch()

    def settle(self, states: Sequence[int]) -> bool:
        """Return True if `sums` has the valid sums, given the `state` of all workers. If early gradients are invalid, the overlap is disabled."""
        mine = states[self._net.rank]
        if not any(state & (CHANGED | ACTIVE) or (state ^ mine) & COLLECTS for state in states):
            return bool(mine & COLLECTS)
        self.stop()
        self._off = True
        _log.info("Gradients were changed after backward, or computed twice for a step: they travel after backward from now on, not during it")
        return False

    def stop(self) -> None:
        """Finish the buckets in flight, and discard the plan; all workers call it."""
        self._launch_all()
        for flight in self._flights:
            for _ in flight.end:
                pass
        self._names, self._buckets, self._flights, self._arrays = [], None, [], {}

    def sums(self) -> Iterator[tuple[Any, torch.Tensor]]:
        """Yield ``(key, sum)`` of all buckets in flight, each as soon as it is available."""
        flights, self._flights = self._flights, []
        for flight in flights:
            yield from zip(flight.names, flight.end)
