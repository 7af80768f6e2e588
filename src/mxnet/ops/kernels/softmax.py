"""Softmax along the last axis."""
import torch

from .gate import Kernel

# Smaller arrays are done before a kernel would have been called.
_WORTHWHILE = 1 << 14
_lines = Kernel("softmax", "lines", {"data": "float32 (n, w)"}, {"out": "float32 (n, w)"}, sizes=("n", "w"))


def softmax(data, axis):
    """`torch.softmax`."""
    if data.numel() >= max(_WORTHWHILE, 1) and axis in (-1, data.dim() - 1) and data.is_contiguous() and not torch.compiler.is_compiling():
        arrays = (data.view(-1, data.shape[-1]),)
        plan = _lines.plan(arrays)
        if plan is not None:
            return _Softmax.apply(data, plan) if data.requires_grad and torch.is_grad_enabled() else plan(arrays)[0].view(data.shape)
    return torch.softmax(data, axis)


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, plan):
        out = plan((data.view(-1, data.shape[-1]),))[0].view(data.shape)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, dout):
        out, = ctx.saved_tensors
        return torch._softmax_backward_data(dout, out, -1, out.dtype), None
