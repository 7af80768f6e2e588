"""Fused batch normalization for training on a CPU, with an optional residual addition and ReLU."""
from __future__ import annotations

import functools
from typing import Any, NamedTuple, Optional

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


class Saved(NamedTuple):
    """What the gradients of a fused batch norm need; `gamma` is None where it is fixed."""

    data: torch.Tensor
    gamma: Optional[torch.Tensor]
    beta: torch.Tensor
    mean: torch.Tensor
    deviation: torch.Tensor
    out: Optional[torch.Tensor]  # with a residual and a ReLU; without a residual the backward kernel recomputes the ReLU's mask from `data`
    relu: bool
    adds: bool


def saving(data: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, moving_mean: torch.Tensor, moving_var: torch.Tensor,
           residual: torch.Tensor | None = None, *, relu: bool = False, **attributes: Any) -> tuple[torch.Tensor, Saved] | None:
    """Return what `batch_norm` does, recording nothing, and what `gradients` needs; None where the kernel does not fit."""
    fitting = _fitting(data, gamma, beta, moving_mean, moving_var, residual)
    if fitting is None:
        return None
    plan, added = fitting
    scale, adds = None if attributes.get("fix_gamma", True) else gamma, residual is not None
    out, mean, deviation = plan((data, added, scale, beta, moving_mean, moving_var),
                                (attributes.get("eps", 1e-3), attributes.get("momentum", 0.9), relu, _past(data)))
    return out, Saved(data, scale, beta, mean, deviation, out if relu and adds else None, relu, adds)


def gradients(saved: Saved, dout: torch.Tensor) -> tuple[torch.Tensor, Optional[torch.Tensor], torch.Tensor, Optional[torch.Tensor]]:
    """Return the gradients of data, gamma, beta and residual; None for a fixed gamma, and without a residual."""
    data, gamma, beta, mean, deviation, out, relu, adds = saved
    dout = dout.contiguous(memory_format=_LAST)
    dx, masked, dgamma, dbeta = _backward((dout, data, out, gamma, beta, mean, deviation), (), (relu, _past(data)))
    # Without a ReLU the residual's gradient is the incoming one.
    return dx, None if gamma is None else dgamma, dbeta, (masked if relu else dout) if adds else None


def _fitting(data, gamma, beta, moving_mean, moving_var, residual):
    """Return the kernel's plan, and the residual as it takes it; None where it does not fit."""
    if data.numel() < _WORTHWHILE or residual is not None and not (data.shape == residual.shape and data.is_contiguous(memory_format=_LAST)):
        return None
    added = None if residual is None else residual.contiguous(memory_format=_LAST)
    plan = _forward.plan((data, added, gamma, beta, moving_mean, moving_var))
    return None if plan is None else (plan, added)


def batch_norm(data: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, moving_mean: torch.Tensor, moving_var: torch.Tensor,
               residual: torch.Tensor | None = None, *, relu: bool = False, **attributes: Any) -> Any:
    """Compute ``relu(BatchNorm(data) + residual)`` in training; `residual` and `relu` are optional. Return None where the kernel does not fit.

    `attributes` are those of BatchNorm.
    """
    if _fitting(data, gamma, beta, moving_mean, moving_var, residual) is None:
        return None
    return _Fused.apply(data, gamma, beta, moving_mean, moving_var, residual, {"relu": relu, **attributes})


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, gamma, beta, moving_mean, moving_var, residual, attributes):
        out, saved = saving(data, gamma, beta, moving_mean, moving_var, residual, **attributes)
        ctx.flags = saved[6:]
        ctx.save_for_backward(*saved[:6])
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dout):
        dx, dgamma, dbeta, dresidual = gradients(Saved(*ctx.saved_tensors, *ctx.flags), dout)
        return dx, dgamma, dbeta, None, None, dresidual, None
