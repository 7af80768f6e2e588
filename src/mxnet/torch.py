"""Torch's functions on MXNet's arrays: ``mx.th.<name>`` calls ``torch.<name>`` on arrays and returns arrays.

Gradients flow through them inside of ``autograd.record()``.

Example
-------
>>> import mxnet as mx
>>> mx.th.cumsum(mx.nd.array([1, 2, 3]), dim=0).asnumpy()
array([1., 3., 6.], dtype=float32)
"""
from __future__ import annotations

import functools as _functools
from typing import Any

import torch as _torch

from .ndarray import NDArray, from_torch
from .ndarray.dispatch import mode as _mode
from .ops.grad_mode import GradMode as _GradMode

__all__ = ["NDArray"]


def _unwrapped(value):
    if isinstance(value, NDArray):
        return value.as_torch()
    return type(value)(_unwrapped(v) for v in value) if type(value) in (list, tuple) else value


def _wrapped(value):
    if isinstance(value, _torch.Tensor):
        return from_torch(value)
    if isinstance(value, (list, tuple)):  # torch's named tuples too
        return [_wrapped(v) for v in value]
    return value


def __getattr__(name: str) -> Any:
    function = getattr(_torch, name, None)
    if name.startswith("_") or not callable(function) or isinstance(function, type):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}': torch has no such function")

    @_functools.wraps(function)
    def call(*args, **kwargs):
        with _GradMode(_mode.recording):
            return _wrapped(function(*map(_unwrapped, args), **{k: _unwrapped(v) for k, v in kwargs.items()}))

    return call
