"""The table from torch's operators to MXNet's."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_table: dict[str, Callable[..., Any]] = {}


def converts(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function for operators of torch: ``conv2d`` for all overloads, ``conv2d.padding`` for one.

    The function gets a `Call`, and the operator's arguments in the order of its schema: a `Value` for a tensor, numbers as they are. It returns a
    `Value`, or a list of these with None for what MXNet does not compute.
    """
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            if name in _table:
                raise ValueError(f"torch's operator {name} is registered twice")
            _table[name] = function
        return function
    return register


def converter(target: Any) -> Callable[..., Any] | None:
    """Return the function for an operator of torch's, or None. What ends in an underscore writes to its input, and computes the same."""
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        return None
    name, overload = target._schema.name.removeprefix("aten::"), target._overloadname
    for candidate in (f"{name}.{overload}", name, f"{name.rstrip('_')}.{overload}", name.rstrip("_")):
        if candidate in _table:
            return _table[candidate]
    return None


def writes(target: Any) -> bool:
    """Return whether an operator of torch's writes to its first input."""
    alias = target._schema.arguments[0].alias_info if target._schema.arguments else None
    return alias is not None and alias.is_write
