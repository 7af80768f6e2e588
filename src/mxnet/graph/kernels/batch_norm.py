"""Batch normalization, with the addition and the rectifier that often follow it, as one operator for training on a CPU."""
from ctypes import c_float, c_int64

import torch

from ...ops.registry import get
from . import load, pointer

# Smaller arrays are done before the kernel would have started its threads (and need no compiler).
_WORTHWHILE = 1 << 16
_SUFFIX = {torch.float32: "float32", torch.bfloat16: "bfloat16"}


def batch_norm(data, gamma, beta, moving_mean, moving_var, residual=None, *, relu=False, training=False, **attributes):
    """``relu(BatchNorm(data) + residual)``; without `residual` or `relu`, without that step. `attributes` are those of BatchNorm."""
    if training and _suits(data, residual, moving_mean) and load("batch_norm") is not None:
        gamma = None if attributes.get("fix_gamma", True) else gamma
        if data.requires_grad or beta.requires_grad or (residual is not None and residual.requires_grad) \
                or (gamma is not None and gamma.requires_grad):
            return _Fused.apply(data, gamma, beta, residual, moving_mean.data, moving_var.data, attributes.get("eps", 1e-3),
                                attributes.get("momentum", 0.9), relu)
        return _forward(data, gamma, beta, residual, moving_mean.data, moving_var.data, attributes.get("eps", 1e-3),
                        attributes.get("momentum", 0.9), relu)[0]
    out = get("BatchNorm").fn(data, gamma, beta, moving_mean, moving_var, training=training, **attributes)
    if residual is not None:
        out = out + residual
    return torch.relu(out) if relu else out


def _suits(data, residual, moving_mean):
    """Whether the kernel can do it: channels last, all of one type, and enough of it."""
    return (data.numel() >= _WORTHWHILE and data.dim() == 4 and data.dtype in _SUFFIX and data.is_contiguous(memory_format=torch.channels_last)
            and data.device.type == "cpu" and moving_mean.dtype is torch.float32
            and (residual is None or residual.shape == data.shape and residual.dtype is data.dtype))


def _forward(data, gamma, beta, residual, moving_mean, moving_var, eps, momentum, relu):
    channels = data.shape[1]
    out = torch.empty_like(data)
    mean, deviation = torch.empty(channels), torch.empty(channels)
    if residual is not None:
        residual = residual.contiguous(memory_format=torch.channels_last)
    getattr(load("batch_norm"), f"forward_{_SUFFIX[data.dtype]}")(
        pointer(data), pointer(residual), pointer(gamma), pointer(beta), pointer(moving_mean), pointer(moving_var), pointer(out), pointer(mean),
        pointer(deviation), c_int64(data.numel() // channels), c_int64(channels), c_float(eps), c_float(momentum), int(relu),
        torch.get_num_threads())
    return out, mean, deviation


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, gamma, beta, residual, moving_mean, moving_var, eps, momentum, relu):
        out, mean, deviation = _forward(data, gamma, beta, residual, moving_mean, moving_var, eps, momentum, relu)
        ctx.relu, ctx.adds = relu, residual is not None
        # Where nothing was added, the kernel finds out from `data` where the rectifier was off.
        ctx.save_for_backward(data, gamma, beta, mean, deviation, *((out,) if relu and residual is not None else ()))
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dout):
        data, gamma, beta, mean, deviation, *rest = ctx.saved_tensors
        dout = dout.contiguous(memory_format=torch.channels_last)
        dx = torch.empty_like(data)
        # Without a rectifier the residual's gradient is simply what comes from above.
        kept = torch.empty_like(data) if ctx.adds and ctx.relu else None
        channels = data.shape[1]
        dgamma, dbeta = torch.empty(channels), torch.empty(channels)
        getattr(load("batch_norm"), f"backward_{_SUFFIX[data.dtype]}")(
            pointer(dout), pointer(data), pointer(rest[0] if rest else None), pointer(gamma), pointer(beta), pointer(mean), pointer(deviation),
            pointer(dx), pointer(kept), pointer(dgamma), pointer(dbeta), c_int64(data.numel() // channels), c_int64(channels), int(ctx.relu),
            torch.get_num_threads())
        return dx, None if gamma is None else dgamma, dbeta, (kept if ctx.relu else dout) if ctx.adds else None, None, None, None, None, None
