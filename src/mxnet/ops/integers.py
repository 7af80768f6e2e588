"""Gradients of arrays of integers and booleans.

MXNet differentiates them like any others; torch records floating-point tensors only. A marked integer array therefore holds
`RecordedIntegers`: its values, and a float64 copy that torch records. Functions of such a tensor compute both.
`convert` makes them where recorded floating-point numbers become integers.
"""
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map

_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_plain_functions = torch._C.DisableTorchFunctionSubclass


class RecordedIntegers(torch.Tensor):
    """An integer tensor that takes part in a recorded computation through its `shadow`."""

    shadow: torch.Tensor

    @staticmethod
    def wrap(values: torch.Tensor, shadow: torch.Tensor) -> Any:
        """The tensor `values`, recorded as the float64 tensor `shadow`."""
        with _plain_functions():
            out = values.as_subclass(RecordedIntegers)
        out.shadow = shadow
        return out

    requires_grad = property(lambda self: True)  # so that no fast path skips the recording

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        with _plain_functions():
            result = func(*tree_map(plain, args), **tree_map(plain, kwargs))
            tensors = isinstance(result, torch.Tensor) or isinstance(result, (tuple, list)) and any(isinstance(r, torch.Tensor) for r in result)
            if not tensors or not torch.is_grad_enabled():
                return result
            try:
                recorded = func(*tree_map(_recorded, args), **tree_map(_recorded, kwargs))
            except (RuntimeError, TypeError, IndexError):  # a function of integers or booleans only: bit operations, indices
                return result
        if isinstance(result, torch.Tensor):
            return _joined(result, recorded)
        return tuple(_joined(r, s) for r, s in zip(result, recorded))


def mark(values: torch.Tensor, deliver: Callable) -> Any:
    """A leaf with these values; ``deliver(leaf)`` is called when its gradient is there."""
    shadow = values.double().requires_grad_()
    shadow.register_post_accumulate_grad_hook(deliver)
    return RecordedIntegers.wrap(values, shadow)


def convert(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A copy of `tensor` in another type; gradients pass through it unchanged, also where numbers are truncated."""
    if dtype.is_floating_point or not tensor.requires_grad or not torch.is_grad_enabled():
        return tensor.to(dtype, copy=True)
    values = plain(tensor).detach().to(dtype, copy=True)
    return RecordedIntegers.wrap(values, _Replaced.apply(_recorded(tensor), values))


def differentiated(function: Any, raw: Any, attributes: dict[str, Any], tensors: Any) -> Any:
    """Compute an operator with a gradient of its own, ``function(attributes, *tensors)``, some of whose tensors are `RecordedIntegers`.

    The results are those of ``raw(*tensors, **attributes)`` on the integers; the gradient is that of float64 copies, or 0 if `function` is None.
    """
    kinds = {t.dtype for t in tensors if type(t) is RecordedIntegers}
    with torch.no_grad():
        results = raw(*[plain(t) for t in tensors], **attributes)
    if function is None:
        return results
    try:
        with _plain_functions():
            recorded = function(attributes, *[
                _recorded(t) if type(t) is RecordedIntegers else t.double() if t is not None and t.dtype in kinds else t for t in tensors])
    except (RuntimeError, TypeError, IndexError):  # as in `__torch_function__`
        return results
    if isinstance(results, torch.Tensor):
        return _joined(results, recorded)
    return tuple(_joined(result, r) for result, r in zip(results, recorded))


class _Replaced(torch.autograd.Function):
    """Other values in the place of those that were recorded, in float64."""

    @staticmethod
    def forward(ctx, recorded, values):
        return values.double()

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return the values of `RecordedIntegers` without the recorded copy, for operators without a gradient; other tensors unchanged."""
    if type(tensor) is not RecordedIntegers:
        return tensor
    with _plain_functions():
        return tensor.as_subclass(torch.Tensor)



def _recorded(x):
    if type(x) is RecordedIntegers:
        if x.shadow.is_leaf:  # the array may have been written to since it was marked
            x.shadow.data.copy_(x.as_subclass(torch.Tensor))
        return x.shadow
    return torch.float64 if isinstance(x, torch.dtype) and x in _INTEGERS else x


def _joined(result, recorded):
    if not isinstance(recorded, torch.Tensor) or not recorded.requires_grad:
        return result
    if result.is_floating_point():
        return recorded.to(result.dtype)
    return RecordedIntegers.wrap(result, recorded)
