"""Running an iterator in a thread of its own, some items ahead of its consumer."""
import collections
import os
import threading
import weakref
from collections.abc import Iterator
from typing import Any

from ..base import MXNetError

_END = object()


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


class _Channel:
    """A queue that holds so many items at most and can be closed from both ends without anybody waiting for ever."""

    def __init__(self, capacity: int) -> None:
        self._capacity = max(1, capacity)
        self._items: collections.deque[Any] = collections.deque()
        self._changed = threading.Condition()
        self.closed = False

    def put(self, item: Any) -> bool:
        """Add an item when there is room; False if the channel was closed instead."""
        with self._changed:
            self._changed.wait_for(lambda: self.closed or len(self._items) < self._capacity)
            if self.closed:
                return False
            self._items.append(item)
            self._changed.notify_all()
            return True

    def get(self) -> Any:
        """The next item when there is one; `_END` if the channel was closed."""
        with self._changed:
            self._changed.wait_for(lambda: self.closed or self._items)
            if not self._items:
                return _END
            item = self._items.popleft()
            self._changed.notify_all()
            return item

    def close(self) -> None:
        with self._changed:
            self.closed = True
            self._items.clear()
            self._changed.notify_all()


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
        # A forked process has not the thread, and may have the channel's lock in the state in which the thread held it.
        return
    channel.close()
    if thread is not threading.current_thread():
        thread.join()


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
        self.thread.start()
        self._finalizer = weakref.finalize(self, _stop, self._channel, self.thread, self._pid)

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
        self._finalizer()
