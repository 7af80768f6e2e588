"""Fused batch normalization for training on a CPU, with an optional residual addition and ReLU."""
from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch

from ... import processor
from ..runtime.contract import Kernel
from ..runtime.parameters import BatchNormBackwardParams, BatchNormForwardParams

# Elements below which torch is done before a kernel would have been called (and no compiler is needed).
_WORTHWHILE = 1 << 14
_MOST = 1 << 26
_LAST = torch.channels_last
_IMAGES, _VECTOR = "T (n, c, h, w) last", "float32 (c)"

_forward = Kernel(
    "nn/batch_norm", "forward_{T}",
    {"data": _IMAGES, "residual": f"{_IMAGES} optional", "gamma": f"{_VECTOR} optional", "beta": _VECTOR, "moving_mean": _VECTOR,
     "moving_var": _VECTOR},
    {"out": _IMAGES, "mean": _VECTOR, "deviation": _VECTOR},
    preconditions=("n * c * h * w >= 1",), sizes=("n * h * w", "c"), numbers=BatchNormForwardParams)

_backward = Kernel(
    "nn/batch_norm", "backward_{T}",
    {"dout": _IMAGES, "data": _IMAGES, "out": f"{_IMAGES} optional", "gamma": f"{_VECTOR} optional", "beta": _VECTOR, "mean": _VECTOR,
     "deviation": _VECTOR},
    {"dx": _IMAGES, "kept": f"{_IMAGES} if out", "dgamma": _VECTOR, "dbeta": _VECTOR},
    preconditions=("n * c * h * w >= 1",), sizes=("n * h * w", "c"), numbers=BatchNormBackwardParams)


@functools.cache
def _large() -> int:
    """Return the bytes from which on results use non-temporal stores: half of the last-level cache, limited as others share a large one."""
    return min(processor.last_cache() // 2 or _MOST, _MOST)


def _past(data: torch.Tensor) -> bool:
    return data.numel() * data.element_size() >= _large()


def batch_norm(data: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, moving_mean: torch.Tensor, moving_var: torch.Tensor,
               residual: torch.Tensor | None = None, *, relu: bool = False, **attributes: Any) -> Any:
    """Compute ``relu(BatchNorm(data) + residual)`` in training; `residual` and `relu` are optional. Return None where the kernel does not fit.

    `attributes` are those of BatchNorm.
    """
    planned = _planned(data, gamma, beta, moving_mean, moving_var, residual)
    if planned is None:
        return None
    scale = None if attributes.get("fix_gamma", True) else gamma
    return _Fused.apply(data, scale, beta, planned[1], moving_mean, moving_var, _numbers(relu, **attributes), planned[0])


class Saved(NamedTuple):
    """The arrays and numbers of a forward pass that its gradients read."""

    data: torch.Tensor
    gamma: torch.Tensor | None
    beta: torch.Tensor
    mean: torch.Tensor
    deviation: torch.Tensor
    out: torch.Tensor | None  # without a residual, the backward kernel recomputes the ReLU's mask from `data`
    relu: bool
    adds: bool  # True if there was a residual


def saving(data: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, moving_mean: torch.Tensor, moving_var: torch.Tensor,
           residual: torch.Tensor | None = None, *, relu: bool = False, **attributes: Any) -> tuple[torch.Tensor, Saved] | None:
    """Return the result of `batch_norm` and the arguments of `gradients`, without torch's autograd; None where the kernel does not fit."""
    planned = _planned(data, gamma, beta, moving_mean, moving_var, residual)
    if planned is None:
        return None
    scale = None if attributes.get("fix_gamma", True) else gamma
    return _forward_saving(data, scale, beta, planned[1], moving_mean, moving_var, _numbers(relu, **attributes), planned[0])


def gradients(saved: Saved, dout: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor, torch.Tensor | None]:
    """Return the gradients of the data, gamma, beta and the residual; None for gamma where it was fixed, and for the residual without one."""
    dout = dout.contiguous(memory_format=_LAST)
    data, gamma, beta, mean, deviation, out, relu, adds = saved
    dx, kept, dgamma, dbeta = _backward((dout, data, out, gamma, beta, mean, deviation), (), (relu, _past(data)))
    # Without a ReLU the residual's gradient is the incoming one.
    return dx, None if gamma is None else dgamma, dbeta, (kept if relu else dout) if adds else None


def _planned(data, gamma, beta, moving_mean, moving_var, residual):
    """Return the plan of the forward kernel, and the residual in its order; None where it does not fit."""
    if data.numel() < _WORTHWHILE or not (residual is None or data.shape == residual.shape and data.is_contiguous(memory_format=_LAST)):
        return None
    added = None if residual is None else residual.contiguous(memory_format=_LAST)
    plan = _forward.plan((data, added, gamma, beta, moving_mean, moving_var))
    return None if plan is None else (plan, added)


def _numbers(relu, eps=1e-3, momentum=0.9, **_):
    return eps, momentum, relu


def _forward_saving(data, gamma, beta, residual, moving_mean, moving_var, numbers, plan):
    # Gamma is None where it counts as 1.
    out, mean, deviation = plan((data, residual, gamma, beta, moving_mean, moving_var), (*numbers, _past(data)))
    relu = numbers[2]
    return out, Saved(data, gamma, beta, mean, deviation, out if relu and residual is not None else None, relu, residual is not None)


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, gamma, beta, residual, moving_mean, moving_var, numbers, plan):
        out, saved = _forward_saving(data, gamma, beta, residual, moving_mean, moving_var, numbers, plan)
        ctx.save_for_backward(*saved[:6])
        ctx.flags = saved[6:]
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dout):
        return *gradients(Saved(*ctx.saved_tensors, *ctx.flags), dout), None, None, None, None
