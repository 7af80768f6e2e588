"""Names for Symbols that the program leaves unnamed: ``fullyconnected0``, ``fullyconnected1``, ..."""
from __future__ import annotations

import functools
import threading
import warnings

from . import interrupts
from .base import ClassPropertyType, classproperty

__all__ = ["NameManager", "Prefix", "current"]


class NameManager(interrupts.Scope, metaclass=ClassPropertyType):
    """Names unnamed Symbols by a hint and a running number. Derive from it for other names.

    Example
    -------
    >>> import mxnet as mx
    >>> with mx.name.NameManager():
    ...     print(mx.sym.relu(mx.sym.var('x')).name, mx.sym.relu(mx.sym.var('x')).name)
    relu0 relu1
    """

    _current, _blocks = threading.local(), interrupts.Blocks()

    @classproperty
    def current(cls) -> NameManager:
        """The manager in force in this thread. Deprecated: use a ``with`` statement."""
        warnings.warn("NameManager.current is deprecated; use `with mx.name.NameManager():`", DeprecationWarning, stacklevel=3)
        return current()

    @current.setter
    def current(cls, manager: NameManager) -> None:
        cls._current.value = manager

    def __init__(self) -> None:
        self._counter = {}

    def get(self, name: str | None, hint: str) -> str:
        """Return `name` if it is given, otherwise `hint` with the next number."""
        if name:
            return name
        number = self._counter.get(hint, 0)
        self._counter[hint] = number + 1
        return f"{hint}{number}"

    def _changes(self):
        return [functools.partial(setattr, NameManager._current, "value", manager) for manager in (self, current())]


class Prefix(NameManager):
    """Adds a prefix to every name, given or generated.

    Parameters
    ----------
    prefix : str
        The prefix of all names.

    Example
    -------
    >>> import mxnet as mx
    >>> with mx.name.Prefix('left_'):
    ...     layer = mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=10, name='fc')
    >>> layer.list_arguments()
    ['data', 'left_fc_weight', 'left_fc_bias']
    """

    def __init__(self, prefix: str):
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        """Return the prefix with the name that `NameManager` chooses."""
        return self._prefix + super().get(name, hint)


def current() -> NameManager:
    """Return the name manager in force in this thread.

    Example
    -------
    >>> with mx.name.Prefix('net_'):
    ...     print(mx.name.current().get(None, 'fc'))
    net_fc0
    """
    try:
        return NameManager._current.value
    except AttributeError:
        manager = NameManager._current.value = NameManager()
        return manager
