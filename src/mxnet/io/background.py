"""Running an iterator in a thread of its own, some items ahead of its consumer."""
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


class _Channel:
    """A queue that holds so many items at most and can be closed from both ends without anybody waiting for ever.

    An interrupt in `threading.Condition` can leave its lock taken; these queues are written in C and wait in one step.
    """

    def __init__(self, capacity: int) -> None:
        self._items: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()  # an entry for each item that may still be put
        for _ in range(max(1, capacity)):
            self._room.put(None)
        self.closed = False

    def put(self, item: Any) -> bool:
        """Add an item when there is room; False if the channel was closed instead."""
        self._room.get()
        if self.closed:
            return False
        self._items.put(item)
        return True

    def get(self) -> Any:
        """The next item when there is one; `_END` if the channel was closed."""
        if self.closed:
            return _END
        self._room.put(None)  # first: after an interrupt behind `get`, there would be less room for good
        item = self._items.get()
        if self.closed:
            self._items.put(_END)  # for others who wait
            return _END
        return item

    def close(self) -> None:
        self.closed = True
        with contextlib.suppress(queue.Empty):
            while True:
                self._items.get_nowait()
        self._room.put(None)
        self._items.put(_END)


def _fill(channel: _Channel, items: Iterator[Any]) -> None:
    """What the thread does. It holds no reference to the Background, so that this can be collected while the thread waits."""
    try:
        for item in items:
            if not channel.put(item):
                break
        else:
            channel.put(_END)
    except BaseException as error:  # whatever it is, the consumer has to learn of it
        channel.put(_Failure(error))
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


def _stop(channel: _Channel, thread: threading.Thread, pid: int) -> None:
    if pid != os.getpid():
        return  # a forked process has not the thread, and may have its queues in the state in which the thread held them
    channel.close()
    # A garbage collection may come in any thread: one of ours, such as one that decodes, may be what that thread is waiting for.
    if not threading.current_thread().name.startswith("mxnet-"):
        with interrupts.deferred() as interrupt:
            while thread.is_alive() and not interrupt.came:  # it may be at something long, and ends by itself after that
                thread.join(0.1)


class Background:
    """Iterates over `items` in a thread, up to `ahead` items before they are asked for.

    An error in the thread is raised where the item is taken. The thread ends with the items, with `close`, when this object is
    garbage, and at the latest when the interpreter exits.

    Parameters
    ----------
    items : iterator
        A generator is closed in the end.
    ahead : int
    """

    def __init__(self, items: Iterator[Any], ahead: int) -> None:
        self._channel = _Channel(ahead)
        self._pid = os.getpid()
        self.thread = threading.Thread(target=_fill, args=(self._channel, items), daemon=True, name="mxnet-io")
        with interrupts.deferred():  # an interrupt can leave a thread that starts waiting for ever
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
