"""Registries of classes by name: optimizers, metrics, initializers, and those of client libraries.

Example
-------
>>> import mxnet as mx
>>> class Shape: pass
>>> register, create = mx.registry.get_register_func(Shape, 'shape'), mx.registry.get_create_func(Shape, 'shape')
>>> @register
... class Circle(Shape):
...     def __init__(self, radius=1):
...         self.radius = radius
>>> create('circle', radius=3).radius, create('["circle", {"radius": 4}]').radius
(3, 4)
"""
from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

from .suggestions import did_you_mean, shortened, unexpected_argument, unknown_arguments

__all__ = ["get_alias_func", "get_create_func", "get_register_func", "get_registry"]

_REGISTRY: dict[type, dict[str, type]] = {}  # base class -> {lower-case name: class}


def get_registry(base_class: type) -> dict[str, type]:
    """Return a copy of the registered classes under `base_class`, by lower-case name."""
    return _REGISTRY.setdefault(base_class, {}).copy()


def get_register_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """Return a function ``register(klass, name=None)`` that registers classes derived from `base_class`.

    Parameters
    ----------
    base_class : type
    nickname : str
        The term for such a class in messages, such as ``'optimizer'``.
    """
    registry = _REGISTRY.setdefault(base_class, {})

    def register(klass, name=None):
        if not (isinstance(klass, type) and issubclass(klass, base_class)):
            raise TypeError(f"can only register subclasses of {base_class.__name__} as {nickname}, received {shortened(klass)}")
        name = (klass.__name__ if name is None else name).lower()
        known = registry.get(name)
        if known is not None:
            warnings.warn(f"New {nickname} {klass.__module__}.{klass.__name__} registered with name {name} is "
                          f"overriding existing {nickname} {known.__module__}.{known.__name__}", UserWarning, stacklevel=2)
        registry[name] = klass
        return klass

    register.__doc__ = f"Register a class as {nickname} under `name`, by default its own."
    return register


def get_alias_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """Return a decorator ``alias(*names)`` that registers a class under further names."""
    register = get_register_func(base_class, nickname)

    def alias(*aliases):
        def decorate(klass):
            for name in aliases:
                register(klass, name)
            return klass
        return decorate

    alias.__doc__ = f"Register a class as {nickname} under several names."
    return alias


def get_create_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """Return a function ``create(name, *args, **kwargs)`` that makes an object of a registered class.

    The name may also be an object of `base_class` (returned as it is), a dict ``{nickname: name, ...}``, or JSON: ``["name", {...}]``
    or ``{"nickname": "name", ...}``.
    """
    registry = _REGISTRY.setdefault(base_class, {})

    def create(*args, **kwargs):
        if args:
            name, args = args[0], args[1:]
        elif nickname in kwargs:
            name = kwargs.pop(nickname)
        else:
            raise TypeError(f"create: `{nickname}` is missing: a name, a configuration or a {base_class.__name__}")
        ready = isinstance(name, (base_class, dict)) or (isinstance(name, str) and name.startswith(("[", "{")))
        if ready and (args or kwargs):
            raise ValueError(f"no further arguments are allowed beside the {nickname} {name!r}, which has its own")
        if isinstance(name, base_class):
            return name
        if isinstance(name, dict):
            return create(**name)
        if ready:
            config = json.loads(name)
            return create(**config) if isinstance(config, dict) else create(config[0], **config[1])
        if not isinstance(name, str):
            raise TypeError(f"{nickname} must be a string or a {base_class.__name__}, received {shortened(name)}")
        if name.lower() not in registry:
            raise ValueError(f"there is no {nickname} named {name!r}; decorate its class with {nickname}.register; "
                             f"registered: {', '.join(sorted(registry))}{did_you_mean(name, registry)}")
        klass = registry[name.lower()]
        try:
            return klass(*args, **kwargs)
        except TypeError as error:
            unknown = unknown_arguments(klass, kwargs)
            if not unknown:
                raise
            raise TypeError(f"{klass.__name__}: {unexpected_argument(klass, unknown[0])}") from error

    create.__doc__ = f"Make a {nickname} by name, or by its configuration as a dict or JSON."
    return create
