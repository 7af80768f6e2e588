"""Decorators for NumPy functions that dispatch to ``mx.np`` on ``mx.np`` arrays; `mxnet.numpy.protocols` implements the dispatch."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["with_array_function_protocol", "with_array_ufunc_protocol"]


def with_array_function_protocol(func: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function that needs NEP 18; every NumPy that is supported has it."""
    @functools.wraps(func)
    def run(*args, **kwargs):
        return func(*args, **kwargs)
    return run


def with_array_ufunc_protocol(func: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function that needs NEP 13; every NumPy that is supported has it."""
    return with_array_function_protocol(func)
