"""Notices that the connection to another worker has closed, as all connections of a process do when it dies.

Gloo tells the operations that wait for a message on that connection, and the next ones on it. It does not tell a receive of whose message a part has
arrived (`Pair::signalException` of its TCP transport goes over those that nothing has arrived for): that one waits for ever.
"""
from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist

_SECONDS = 5  # within which an operation ends whose connections have closed
_TAG = 0  # of messages that nobody receives


class Connections:
    """The connections of a group of torch's that has no other use. Each worker waits in it for messages that nobody sends.

    Parameters
    ----------
    group : torch.distributed.ProcessGroup
        Of Gloo, with all workers.
    """

    def __init__(self, group: Any) -> None:
        self._group: Any = group
        self._tensors = torch.zeros(1), [torch.zeros(1) for _ in range(group.size())]
        # Every worker gathers, and none takes part in the others' gather: it ends when a connection does.
        self._work: Any = dist.gather(*self._tensors, dst=dist.get_rank(), group=group, async_op=True)

    def closed(self, seconds: float = 0) -> Iterator[int]:
        """Yield the workers whose connections have closed; wait up to `seconds` until a first one has."""
        if self._work and seconds:
            with contextlib.suppress(RuntimeError):  # it is over its time, or a connection has closed
                self._work.wait(datetime.timedelta(seconds=seconds))
        if self._work and self._work.is_completed():
            for other in range(self._group.size()):
                try:
                    if other != self._group.rank():
                        self._group._get_backend(torch.device("cpu")).send([self._tensors[0]], other, _TAG)
                except RuntimeError:
                    yield other

    def end(self) -> bool:
        """End the wait, and with it the group's threads; return True if it has ended."""
        if not self._work.is_completed():
            backend, other = self._group._get_backend(torch.device("cpu")), (self._group.rank() + 1) % self._group.size()
            with contextlib.suppress(RuntimeError):  # a receive that is over its time closes all connections of the group
                backend.recv([torch.zeros(1)], other, _TAG + 1).wait(datetime.timedelta(milliseconds=1))
            with contextlib.suppress(RuntimeError):
                self._work.wait(datetime.timedelta(seconds=_SECONDS))
        if not self._work.is_completed():
            return False
        if dist.is_initialized():
            dist.destroy_process_group(self._group)
        self._group = self._work = None
        return True
