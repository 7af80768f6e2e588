"""Prefetching: an iterator that runs in a thread of its own, ahead of its consumer."""
import contextlib
import os
import queue
import threading
from collections.abc import Iterator
from typing import Any

from .. import interrupts
from ..base import MXNetError

_END = object()


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


class Channel:
    """A bounded queue that can be closed from both ends without blocking any thread forever.

    An interrupt in `threading.Condition` can leave its lock acquired; the queues used here are written in C and wait atomically.
    """

    def __init__(self, capacity: int) -> None:
        self._items: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()  # an entry for each free slot
        for _ in range(max(1, capacity)):
            self._room.put(None)
        self.closed = False

    def put(self, item: Any) -> bool:
        """Add an item when there is a free slot; return False if the channel was closed instead."""
        self._room.get()
        if self.closed:
            return False
        self._items.put(item)
        return True

    def get(self) -> Any:
        """Wait for the next item and return it; `_END` if the channel was closed."""
        if self.closed:
            return _END
        self._room.put(None)  # first: an interrupt after `get` would lose the slot permanently
        item = self._items.get()
        if self.closed:
            self._items.put(_END)  # for other waiting threads
            return _END
        return item

    def close(self) -> None:
        self.closed = True
        with contextlib.suppress(queue.Empty):
            while True:
                self._items.get_nowait()
        self._room.put(None)
        self._items.put(_END)


def _fill(channel: Channel, items: Iterator[Any]) -> None:
    """Run the thread. It has no reference to the Background, which can therefore be garbage collected while the thread waits."""
    try:
        for item in items:
            if not channel.put(item):
                break
        else:
            channel.put(_END)
    except BaseException as error:  # all errors are passed to the consumer
        channel.put(_Failure(error))
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


def _stop(channel: Channel, thread: threading.Thread, pid: int) -> None:
    if pid != os.getpid():
        return  # a forked process does not have the thread, and its queues may be in an inconsistent state
    channel.close()
    # A garbage collection may run in any thread: the thread to end may be waiting for this one, such as a decoding thread.
    if not threading.current_thread().name.startswith("mxnet-"):
        with interrupts.deferred() as interrupt:
            while thread.is_alive() and not interrupt.came:  # a long operation may be running; the thread ends by itself after it
                thread.join(0.1)


class Background:
    """Iterates over `items` in a thread, up to `ahead` items ahead of the consumer.

    An error in the thread is raised when the item is taken. The thread ends with the items, with `close`, when this object is
    garbage collected, and at the latest when the interpreter exits.

    Parameters
    ----------
    items : iterator
        The items; a generator is closed at the end.
    ahead : int
    """

    def __init__(self, items: Iterator[Any], ahead: int) -> None:
        self._channel = Channel(ahead)
        self._pid = os.getpid()
        self.thread = threading.Thread(target=_fill, args=(self._channel, items), daemon=True, name="mxnet-io")
        with interrupts.deferred():  # an interrupt can block a starting thread forever
            self.thread.start()
            self._ending = interrupts.at_end(_stop, self._channel, self.thread, self._pid, exits=True)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._pid != os.getpid():
            raise MXNetError(f"this data iterator reads ahead in a thread of process {self._pid}, which process {os.getpid()} has not; "
                             "create the iterator in the process that uses it, or call its reset()")
        item = self._channel.get()
        if item is _END:
            self._channel.close()
            raise StopIteration
        if isinstance(item, _Failure):
            self._channel.close()
            raise item.error
        return item

    def close(self) -> None:
        """Stop the thread and wait for it."""
        self._ending.now()
