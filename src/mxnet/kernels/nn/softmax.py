"""Softmax and log-softmax along the last axis."""
from __future__ import annotations

import torch

from ..runtime.contract import Kernel

# Elements below which torch is done before a kernel would have been called.
_WORTHWHILE = 1 << 14
_lines, _logarithms = (Kernel("nn/softmax", name, {"data": "float32 (n, w)"}, {"out": "float32 (n, w)"}, sizes=("n", "w"))
                       for name in ("lines", "logarithms"))


def softmax(data: torch.Tensor, axis: int) -> torch.Tensor:
    """Compute the softmax like `torch.softmax`, with the kernel where it fits."""
    return _run(_lines, data, axis, torch.softmax, torch._softmax_backward_data)


def log_softmax(data: torch.Tensor, axis: int) -> torch.Tensor:
    """Compute the log-softmax like `torch.log_softmax`, with the kernel where it fits."""
    return _run(_logarithms, data, axis, torch.log_softmax, torch._log_softmax_backward_data)


def _run(kernel, data, axis, on_torch, backward):
    if data.numel() >= max(_WORTHWHILE, 1) and axis in (-1, data.dim() - 1) and data.is_contiguous() and not torch.compiler.is_compiling():
        arrays = (data.view(-1, data.shape[-1]),)
        plan = kernel.plan(arrays)
        if plan is not None:
            return _Lines.apply(data, plan, backward) if data.requires_grad and torch.is_grad_enabled() else plan(arrays)[0].view(data.shape)
    return on_torch(data, axis)


class _Lines(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, plan, backward):
        out = plan((data.view(-1, data.shape[-1]),))[0].view(data.shape)
        ctx.save_for_backward(out)
        ctx.backward_of_it = backward
        return out

    @staticmethod
    def backward(ctx, dout):
        out, = ctx.saved_tensors
        return ctx.backward_of_it(dout, out, -1, out.dtype), None, None
