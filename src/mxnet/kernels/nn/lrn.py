"""Local response normalization in one pass over memory. Torch's operators take a dozen passes."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..runtime.contract import Kernel

# Elements below which torch is done before a kernel would have been called.
_WORTHWHILE = 1 << 13
_DATA = "float32 (n, c, h, w)"
_SIZES: dict[str, Any] = {"integers": ("reach",), "preconditions": ("0 <= reach < max(c, 1)",), "sizes": ("n", "c", "h * w", "reach"),
                          "numbers": "fff"}
_forward = Kernel("nn/lrn", "respond", {"data": _DATA}, {"out": _DATA}, **_SIZES)
_backward = Kernel("nn/lrn", "respond_back", {"data": _DATA, "dout": _DATA}, {"gradient": _DATA}, **_SIZES)


def normalize(data: torch.Tensor, reach: int, alpha: float, beta: float, knorm: float,
              in_torch: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """Return ``data / (knorm + alpha * s) ** beta``, s being the sum of squares up to `reach` channels away; `in_torch` is the fallback."""
    if data.numel() < _WORTHWHILE or torch.compiler.is_compiling():
        return in_torch(data)
    plan = _forward.plan((data,), (reach,))
    if plan is None:
        return in_torch(data)
    if data.requires_grad and torch.is_grad_enabled():
        return _LocalResponse.apply(data, reach, (alpha, beta, knorm), plan, in_torch)
    return plan((data,), (alpha, beta, knorm))[0]


class _LocalResponse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, reach, rule, plan, in_torch):
        ctx.save_for_backward(data)
        ctx.reach, ctx.rule, ctx.in_torch = reach, rule, in_torch
        return plan((data,), rule)[0]

    @staticmethod
    def backward(ctx, dout):
        data, = ctx.saved_tensors
        if torch.is_grad_enabled():  # to be differentiated again: torch's operators can be
            return *torch.autograd.grad(ctx.in_torch(data), data, dout, create_graph=True), None, None, None, None
        return *_backward((data, dout.contiguous()), (ctx.reach,), ctx.rule), None, None, None, None
