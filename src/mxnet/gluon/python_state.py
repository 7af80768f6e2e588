"""`PythonState`: detection of changes to the plain Python values that a traced `forward` can read."""
from __future__ import annotations

import functools
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ..ndarray import NDArray
from .block import Block

_VALUES = (bool, int, float, complex, str, bytes, type(None), np.generic)
_CONTAINERS = (list, tuple, dict, set, frozenset, deque, bytearray)
_MOST_LEVELS = 8  # of containers inside of containers
_MOST_ITEMS = 1000  # of containers that are compared at each call
_LIBRARIES = {"mxnet", "numpy", "torch", *sys.stdlib_module_names} - {"__main__"}


class PythonState:
    """A copy of the containers of user-defined blocks, and of the globals and closures of their methods, to detect changes.

    Attributes that are set are noticed by the blocks themselves (`HybridBlock.__setattr__`), for nothing.

    Parameters
    ----------
    blocks : iterable of Block
    ignored : set of str
        Attributes that are not looked at.
    """

    def __init__(self, blocks: Iterable[Any], ignored: Iterable[str]) -> None:
        self._checks: list[Callable[[], bool]] = []
        seen: set[Any] = set()
        for block in blocks:
            if is_library(type(block).__module__):
                continue
            for name, value in vars(block).items():
                if name not in ignored:
                    self._watch_inside(value)
                    self._watch_methods(value, seen)
            self._watch_class(type(block), seen)

    def __bool__(self) -> bool:
        return bool(self._checks)

    def __reduce__(self) -> Any:
        return PythonState, ((), ())

    def changed(self) -> bool:
        """Return True if anything has changed."""
        return not all(check() for check in self._checks)

    def _watch_inside(self, value: Any) -> None:
        """Watch a value that changes without being replaced."""
        if isinstance(value, np.ndarray) and value.nbytes <= _MOST_ITEMS and value.dtype != object:
            before = value.tobytes()
            self._checks.append(lambda: value.tobytes() == before)
        elif isinstance(value, _CONTAINERS) and not isinstance(value, frozenset) or _has_attributes(value):
            snapshot = _copied(value, [_MOST_ITEMS])
            if snapshot is not None:
                self._checks.append(lambda: _same(snapshot, value))

    def _watch_methods(self, value: Any, seen: set[Any]) -> None:
        """Watch the globals and closures that methods of a user-defined object or class refer to."""
        if isinstance(value, type) or _has_attributes(value):
            self._watch_class(value if isinstance(value, type) else type(value), seen)

    def _watch_class(self, kind: type, seen: set[Any]) -> None:
        """Watch the attributes of a class and of its bases, and the globals and closures of their methods."""
        for base in kind.__mro__:
            if is_library(base.__module__) or base in seen:
                continue
            seen.add(base)
            for name, value in list(vars(base).items()):
                if not name.startswith("__") and _may_matter(value):
                    self._checks.append(functools.partial(_stays, vars(base), name, value))
                    self._watch_inside(value)
            for function in _functions(vars(base).values()):
                self._watch_function(function, seen)

    def _watch_function(self, function: types.FunctionType, seen: set[Any]) -> None:
        """Watch the globals and closures of a function, and of the functions among them."""
        if function.__code__ in seen or len(seen) > _MOST_ITEMS or is_library(function.__module__):
            return
        seen.add(function.__code__)
        names = set(_names(function.__code__))
        places: list[tuple[dict[str, Any], str]] = []
        for name in names & function.__globals__.keys():
            value = function.__globals__[name]
            places.append((function.__globals__, name))
            if isinstance(value, types.ModuleType) and not is_library(value.__name__):
                places += [(vars(value), attribute) for attribute in names & vars(value).keys()]
        for values, name in places:
            value = values[name]
            is_function = isinstance(value, types.FunctionType)
            if is_function:
                self._watch_function(value, seen)
            else:
                self._watch_methods(value, seen)
            if (is_function and not is_library(value.__module__) or _may_matter(value)) and (id(values), name) not in seen:
                seen.add((id(values), name))
                self._checks.append(functools.partial(_stays, values, name, value))
                self._watch_inside(value)
        for cell in function.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:  # empty
                continue
            if isinstance(value, types.FunctionType):
                self._watch_function(value, seen)
            self._watch_methods(value, seen)
            if _may_matter(value):
                self._checks.append(functools.partial(_cell_stays, cell, value))
                self._watch_inside(value)


def _stays(values: Mapping[str, Any], name: str, value: Any) -> bool:
    return _equal(values.get(name), value)


def _cell_stays(cell: types.CellType, value: Any) -> bool:
    return _equal(cell.cell_contents, value)


def is_library(module: str | None) -> bool:
    """Return True if a module belongs to this package, to one of its dependencies, or to Python."""
    return (module or "").partition(".")[0] in _LIBRARIES


def holds_arrays(value: Any, level: int = 0) -> bool:
    """Return True if the value is an array, or a container with one in it."""
    if isinstance(value, (dict, list, tuple)) and level < _MOST_LEVELS:
        return any(holds_arrays(item, level + 1) for item in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, (NDArray, np.ndarray))


def _may_matter(value: Any) -> bool:
    return isinstance(value, (*_VALUES, *_CONTAINERS, NDArray, np.ndarray)) or _has_attributes(value)


def _has_attributes(value: Any) -> bool:
    """Return True if the value is a user-defined object with attributes, such as settings, but no block."""
    kind = type(value)
    return hasattr(value, "__dict__") and not isinstance(value, (type, types.ModuleType, types.FunctionType, Block)) \
        and (not is_library(kind.__module__) or kind in (types.SimpleNamespace,) or kind.__module__ == "argparse")


def _functions(values: Iterable[Any]) -> Iterator[types.FunctionType]:
    for value in values:
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        elif isinstance(value, property):
            value = value.fget
        while hasattr(value, "__wrapped__"):
            value = value.__wrapped__
        if isinstance(value, types.FunctionType):
            yield value


def _names(code: types.CodeType) -> Iterator[str]:
    """Return the values that a function looks up by name, with the functions defined in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _copied(value: Any, room: list[int], level: int = 0) -> Any:
    """Copy a container and the containers in it; return None for one that is too large."""
    if isinstance(value, (dict, list, tuple, set, frozenset, deque, bytearray)):
        items: Any = value.items() if isinstance(value, dict) else value
        room[0] -= len(value) if level < _MOST_LEVELS else _MOST_ITEMS + 1
        if room[0] < 0:
            return None
        copies = list(items) if isinstance(value, (set, frozenset, bytearray)) else \
            [(k, _copied(v, room, level + 1)) for k, v in items] if isinstance(value, dict) else [_copied(v, room, level + 1) for v in items]
        return None if room[0] < 0 else _Copy(type(value), copies)
    if isinstance(value, np.ndarray) and value.dtype != object:
        room[0] -= value.nbytes
        return None if room[0] < 0 else _Copy(type(value), (value.shape, value.dtype, value.tobytes()))
    if _has_attributes(value):
        inside = _copied(vars(value), room, level)
        return None if inside is None else _Copy(type(value), inside)
    return value


class _Copy:
    __slots__ = ("kind", "items")

    def __init__(self, kind: type, items: Any) -> None:
        self.kind, self.items = kind, items


def _same(copy: Any, value: Any) -> bool:
    """Return True if `value` still equals its copy from `_copied`."""
    if type(copy) is not _Copy:
        return _equal(copy, value)
    if type(value) is not copy.kind:
        return False
    return _same_items(copy.items, value)


def _same_items(items: Any, value: Any) -> bool:
    if type(items) is _Copy:  # an object's attributes
        return _same(items, vars(value))
    if isinstance(value, np.ndarray):
        return items == (value.shape, value.dtype, value.tobytes())
    if len(items) != len(value):
        return False
    if isinstance(value, dict):
        return all(a is b or a == b for (a, _), b in zip(items, value)) and all(map(_same, (v for _, v in items), list(value.values())))
    if isinstance(value, (set, frozenset, bytearray)):
        return set(items) == set(value) if not isinstance(value, bytearray) else bytes(items) == bytes(value)
    return all(map(_same, items, list(value)))


def _equal(a: Any, b: Any) -> bool:
    return a is b or type(a) is type(b) and isinstance(a, _VALUES) and a == b
