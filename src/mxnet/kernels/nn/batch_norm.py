"""Fused batch normalization for training on a CPU, with an optional residual addition and ReLU."""
from __future__ import annotations

import functools
from typing import Any

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
    if data.numel() >= _WORTHWHILE and (residual is None or data.shape == residual.shape and data.is_contiguous(memory_format=_LAST)):
        added = None if residual is None else residual.contiguous(memory_format=_LAST)
        plan = _forward.plan((data, added, gamma, beta, moving_mean, moving_var))
        if plan is not None:
            scale = None if attributes.get("fix_gamma", True) else gamma
            return _Fused.apply(data, scale, beta, added, moving_mean, moving_var, attributes.get("eps", 1e-3), attributes.get("momentum", 0.9),
                                relu, plan)
    return None


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, gamma, beta, residual, moving_mean, moving_var, eps, momentum, relu, plan):
        out, mean, deviation = plan((data, residual, gamma, beta, moving_mean, moving_var), (eps, momentum, relu, _past(data)))
        ctx.relu, ctx.adds = relu, residual is not None
        # Without a residual, the backward kernel recomputes the ReLU's mask from `data`.
        ctx.save_for_backward(data, gamma, beta, mean, deviation, out if relu and residual is not None else None)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dout):
        data, gamma, beta, mean, deviation, out = ctx.saved_tensors
        dout = dout.contiguous(memory_format=_LAST)
        dx, kept, dgamma, dbeta = _backward((dout, data, out, gamma, beta, mean, deviation), (), (ctx.relu, _past(data)))
        # Without a ReLU the residual's gradient is the incoming one.
        return dx, None if gamma is None else dgamma, dbeta, (kept if ctx.relu else dout) if ctx.adds else None, None, None, None, None, None, None
