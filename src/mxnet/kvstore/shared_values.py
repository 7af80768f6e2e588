"""Values of a store that use the memory of the array which pulls them, until the program writes to that array.

A worker that updates its values itself would otherwise hold each weight twice, and copy it in each step.
"""
from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..ndarray import memory_format, mutation_tracking

if TYPE_CHECKING:
    from ..ndarray import NDArray


class _Sharing:
    """A watcher of the shared memory, which gives the value memory of its own just before the array's is written to."""

    __slots__ = ("_value", "__weakref__")

    def __init__(self, value: NDArray) -> None:
        self._value = value
        mutation_tracking.watch([value._data], self)

    def end(self, _: object = None) -> None:
        self._value._rebind(self._value._data.detach().clone())

    # `mutation_tracking` sets `stale` before a write, and `compares` before torch gets access to the memory.
    stale = property(None, end)
    compares = property(None, end)


class SharedValues:
    """The values of a store that share memory, by their keys."""

    def __init__(self) -> None:
        self._all: dict[Any, _Sharing] = {}

    def __contains__(self, key: Any) -> bool:
        return key in self._all

    @staticmethod
    def _are_one(value: NDArray, arrays: Sequence[NDArray]) -> bool:
        return len(arrays) == 1 and arrays[0]._data is value._data

    def pull(self, key: Any, value: NDArray, arrays: Sequence[NDArray]) -> bool:
        """Write a value to the array that pulls it, and let it use the memory of that; return False, with nothing written, if it can't.

        It can't if there are several arrays, if they differ in type or device, or if something else uses the array's memory.
        """
        if self._are_one(value, arrays):
            return True
        array = arrays[0]
        if len(arrays) > 1 or not value.stype == array.stype == "default" or value.dtype != array.dtype or value.ctx != array.ctx:
            return False
        # Not on a GPU, where captured graphs know the addresses of the values.
        if not array._data.is_cpu or not memory_format.owned(array._data):
            return False
        if not mutation_tracking.are_writes_announced(array._data):
            return False
        value.copyto(array)
        value._rebind(array._data)
        self._all[key] = _Sharing(value)
        return True

    @contextlib.contextmanager
    def updated(self, values: Mapping[Any, NDArray], keys: Iterable[Any], outs: Mapping[Any, Sequence[NDArray]]) -> Iterator[None]:
        """Return a ``with`` block that changes the values of keys. Arrays that share them change as well if they are in `outs`, and only then."""
        together = []
        for key in keys:
            if key in self._all:
                if self._are_one(values[key], outs.get(key, ())):
                    together.append(key)
                else:
                    self._all[key].end()
                del self._all[key]  # no reference to the watcher may be left: the update is to write to the shared memory
        try:
            yield
        finally:
            for key in together:
                self._all[key] = _Sharing(values[key])
