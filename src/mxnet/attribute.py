"""Attributes that every Symbol created in a ``with`` block receives."""
from __future__ import annotations

import collections
import functools
import threading
import warnings
from typing import Any

from . import interrupts
from .base import ClassPropertyType, classproperty

__all__ = ["AttrScope", "current"]


class AttrScope(interrupts.Scope, metaclass=ClassPropertyType):
    """Attributes for all Symbols created in a ``with`` block; nested scopes are merged, and the inner one takes precedence.

    Parameters
    ----------
    **kwargs : str
        The attributes, such as ``ctx_group='dev1'`` or ``__lr_mult__='0.1'``.

    Raises
    ------
    ValueError
        If a value is not a string.

    Example
    -------
    >>> import mxnet as mx
    >>> with mx.AttrScope(ctx_group='dev1'):
    ...     layer = mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=10)
    >>> layer.attr('ctx_group')
    'dev1'
    """

    _current, _blocks = threading.local(), interrupts.Blocks()

    @classproperty
    def current(cls) -> AttrScope:
        """The scope in force in this thread. Deprecated: use a ``with`` statement."""
        warnings.warn("AttrScope.current is deprecated; use `with mx.AttrScope(...):`", DeprecationWarning, stacklevel=3)
        return current()

    @current.setter
    def current(cls, scope: AttrScope) -> None:
        warnings.warn("AttrScope.current is deprecated; use `with mx.AttrScope(...):`", DeprecationWarning, stacklevel=4)
        cls._current.value = scope
    _subgraph_names: collections.defaultdict[str, int] = collections.defaultdict(int)  # the number of subgraphs of loops and branches so far, by name

    def __init__(self, **kwargs: str):
        for name, value in kwargs.items():
            if not isinstance(value, str):
                raise ValueError(f"AttrScope: attributes need to be strings, received {name}={value!r}")
        self._attr = kwargs

    def get(self, attr: Any) -> dict[str, Any]:
        """Return the attributes for a new Symbol: the scope's, overridden by those of the dict `attr` (or None)."""
        if self._attr:
            return {**self._attr, **attr} if attr else self._attr.copy()
        return attr or {}

    def _changes(self):
        outer = current()
        # A scope that is entered again keeps its merged attributes, as in MXNet.
        self._attr = {**outer._attr, **self._attr}
        return [functools.partial(setattr, AttrScope._current, "value", scope) for scope in (self, outer)]


def current() -> AttrScope:
    """Return the scope in force in this thread.

    Example
    -------
    >>> with mx.AttrScope(ctx_group='stage1'):
    ...     print(mx.attribute.current().get({}))
    {'ctx_group': 'stage1'}
    """
    try:
        return AttrScope._current.value
    except AttributeError:
        scope = AttrScope._current.value = AttrScope()
        return scope
