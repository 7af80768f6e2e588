"""Stand-ins for MXNet's handles of arrays: programs cast the argument of a callback to ``NDArrayHandle``, and make an array of it."""
import ctypes
import itertools
import weakref
from typing import Any

from ..base import MXNetError

_arrays: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)


def number_of(array: Any) -> int:
    """Return a number that stands for an array in `ctypes` as long as the array exists."""
    number = next(_numbers)
    _arrays[number] = array
    return number


def array_of(handle: ctypes.c_void_p) -> Any:
    """Return the array that a handle was cast from.

    Raises
    ------
    MXNetError
        If there is none, or none any more.
    """
    array = _arrays.get(handle.value or 0)
    if array is None:
        raise MXNetError(f"NDArray: no array has the handle {handle.value}: handles are for callbacks of monitors, whose arrays live as long as the "
                         "callback, unless it keeps them; build arrays with mx.nd.array(...)")
    return array


class MonitorName(str):
    """The name passed to a monitor's callback. MXNet's is bytes, which some programs decode themselves."""

    __slots__ = ()

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the name, which is text already."""
        return str(self)
