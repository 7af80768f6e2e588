"""The execution engine's interface.

A device's own queue is the engine here: CUDA streams make GPU work asynchronous, CPU operators run at once. The size of bulks is
kept for programs that set and read it; there is no scheduling cost that bundling operators would save.
"""
from __future__ import annotations

import threading
from collections.abc import Iterator

from . import interrupts

__all__ = ["bulk", "set_bulk_size"]


class _Settings(threading.local):
    bulk_size = 0


_settings = _Settings()


def set_bulk_size(size: int) -> int:
    """Set the number of operators that may be bundled, and return the previous one.

    Example
    -------
    >>> import mxnet as mx
    >>> before = mx.engine.set_bulk_size(20)
    >>> mx.engine.set_bulk_size(before)
    20
    """
    before, _settings.bulk_size = _settings.bulk_size, int(size)
    return before


@interrupts.scope
def bulk(size: int) -> Iterator[None]:
    """Set the number of operators that may be bundled to `size` in a ``with`` block.

    Example
    -------
    >>> import mxnet as mx
    >>> with mx.engine.bulk(10):
    ...     x = mx.nd.ones((2,)) + 1
    """
    before, size = _settings.bulk_size, int(size)
    try:
        _settings.bulk_size = size
        yield
    finally:
        _settings.bulk_size = before
