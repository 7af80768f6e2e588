"""Batch normalization, with the addition and the ReLU that often follow it, as one operator for training on a CPU."""
import torch

from ..registry import get
from . import function, holds_vectors

# Smaller arrays are done before a kernel would have been called (and need no compiler).
_WORTHWHILE = 1 << 14
_SUFFIX = {torch.float32: "float32", torch.bfloat16: "bfloat16"}
_LAST = torch.channels_last


def batch_norm(data, gamma, beta, moving_mean, moving_var, residual=None, *, relu=False, training=False, **attributes):
    """``relu(BatchNorm(data) + residual)``; without `residual` or `relu`, without that step. `attributes` are those of BatchNorm."""
    if training and _suits(data, residual, gamma, beta, moving_mean, moving_var):
        gamma = None if attributes.get("fix_gamma", True) else gamma
        if residual is not None:
            residual = residual.contiguous(memory_format=_LAST)
        return _Fused.apply(data, gamma, beta, residual, moving_mean, moving_var, attributes.get("eps", 1e-3), attributes.get("momentum", 0.9),
                            relu)
    out = get("BatchNorm").fn(data, gamma, beta, moving_mean, moving_var, training=training, **attributes)
    if residual is not None:
        out = out + residual
    return torch.relu(out) if relu else out


def _suits(data, residual, *per_channel):
    """Whether the kernel can do it: channels last, all of one type, enough of it, and a number for each channel wherever it reads one."""
    return (data.numel() >= _WORTHWHILE and data.dtype in _SUFFIX and data.dim() == 4 and data.is_contiguous(memory_format=_LAST)
            and data.device.type == "cpu" and holds_vectors(data.shape[1], *per_channel)
            and (residual is None or residual.shape == data.shape and residual.dtype is data.dtype)
            and _forward(data.dtype) is not None)


def _forward(dtype):
    return function("batch_norm", f"forward_{_SUFFIX[dtype]}", "pppppppppllffii")


def _backward(dtype):
    return function("batch_norm", f"backward_{_SUFFIX[dtype]}", "pppppppppppllii")


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, gamma, beta, residual, moving_mean, moving_var, eps, momentum, relu):
        channels = data.shape[1]
        out = torch.empty_like(data)
        mean, deviation = torch.empty((2, channels)).unbind()
        _forward(data.dtype)(
            data.data_ptr(), None if residual is None else residual.data_ptr(), None if gamma is None else gamma.data_ptr(), beta.data_ptr(),
            moving_mean.data_ptr(), moving_var.data_ptr(), out.data_ptr(), mean.data_ptr(), deviation.data_ptr(), data.numel() // channels,
            channels, eps, momentum, relu, torch.get_num_threads())
        ctx.relu, ctx.adds = relu, residual is not None
        # Where nothing was added, the kernel finds out from `data` where the ReLU was off.
        ctx.save_for_backward(data, gamma, beta, mean, deviation, out if relu and residual is not None else None)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dout):
        data, gamma, beta, mean, deviation, out = ctx.saved_tensors
        dout = dout.contiguous(memory_format=_LAST)
        dx = torch.empty_like(data)
        # Without a ReLU the residual's gradient is the incoming one.
        kept = torch.empty_like(data) if out is not None else None
        channels = data.shape[1]
        dgamma, dbeta = torch.empty(channels), torch.empty(channels)
        _backward(data.dtype)(
            dout.data_ptr(), data.data_ptr(), None if out is None else out.data_ptr(), None if gamma is None else gamma.data_ptr(),
            beta.data_ptr(), mean.data_ptr(), deviation.data_ptr(), dx.data_ptr(), None if kept is None else kept.data_ptr(), dgamma.data_ptr(),
            dbeta.data_ptr(), data.numel() // channels, channels, ctx.relu, torch.get_num_threads())
        return dx, None if gamma is None else dgamma, dbeta, (kept if ctx.relu else dout) if ctx.adds else None, None, None, None, None, None
