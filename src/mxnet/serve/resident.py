"""The memory of the process: what large requests took is given back to the system."""
from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path

from .. import memory

_MORE = 32 << 20  # bytes above the level that may stay
_DELAY = 1.0  # seconds between a request and a look at the memory, so that many requests are one occasion
_STATM = Path("/proc/self/statm")


def resident() -> int:
    """Return the bytes of memory that the process takes; 0 where that can't be read."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


class Resident:
    """A watch of the process's memory.

    The allocator is configured to keep what is freed (`mxnet.memory`), which networks need, so that the process would stay as large as the
    largest request made it: an image of 9 million pixels takes 27 MB while it is decoded. The level is what the process takes once its models
    have run batches of all sizes; beyond it, free memory goes back.
    """

    def __init__(self) -> None:
        self._level = self._decoding = 0
        self._waiting: asyncio.TimerHandle | None = None

    def settle(self) -> None:
        """Take the present memory for the level: models have been loaded."""
        self._level = max(self._level, resident())

    @contextlib.contextmanager
    def decoding(self, executor: Executor) -> Iterator[None]:
        """Watch the memory that decoding takes in a ``with`` block, once none is going on."""
        self._decoding += 1
        try:
            yield
        finally:
            self._decoding -= 1
            self.watch(executor)

    def watch(self, executor: Executor) -> None:
        """Look at the memory soon, and give free memory back from a thread of `executor` if the process has grown."""
        if self._level and self._waiting is None:
            self._waiting = asyncio.get_running_loop().call_later(_DELAY, self._look, executor)

    def _look(self, executor: Executor) -> None:
        self._waiting = None
        if self._decoding:
            self.watch(executor)
        elif resident() > self._level + _MORE:
            executor.submit(self._trim)

    def _trim(self) -> None:
        memory.trim(tensors=False)

    def close(self) -> None:
        """Look no more."""
        if self._waiting is not None:
            self._waiting.cancel()
        self._level = 0
