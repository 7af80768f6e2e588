"""Layers of training graphs: a kernel computes them, or the operator's own function where the kernel does not fit."""
from typing import Any, Optional

import torch

from ...kernels.conv import convolution as direct
from ...kernels.nn import batch_norm as fused
from ...kernels.nn import batch_norm_on_gpu as fused_on_gpu
from .convolution import convolution
from .normalization import batch_norm as batch_norm_operator


class ConvolutionLayer(direct.Layer):
    """``Convolution`` in two dimensions and one group, by the fastest algorithm for the shapes; the attributes are those of the operator."""

    __name__ = "convolution"  # the name in generated code and profiles

    def __call__(self, data: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor] = None, **attributes: Any) -> torch.Tensor:
        out = direct.convolution(data, weight, bias, self, **attributes)
        return convolution.fn(data, direct.cast(weight, data), direct.cast(bias, data), **attributes) if out is None else out


def batch_norm(data: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, moving_mean: torch.Tensor, moving_var: torch.Tensor,
               residual: Optional[torch.Tensor] = None, *, bias: Optional[torch.Tensor] = None, relu: bool = False, training: bool = False,
               **attributes: Any) -> torch.Tensor:
    """Return ``relu(BatchNorm(data + bias) + residual)``; `bias` (C,), `residual` and `relu` are optional.

    `attributes` are those of BatchNorm.
    """
    out = None
    if training and data.is_cuda:
        out = fused_on_gpu.batch_norm(data, gamma, beta, moving_mean, moving_var, residual, bias=bias, relu=relu, **attributes)
    if out is None and bias is not None:
        data = data + bias.to(data.dtype).view(data.shape[1], *[1] * (data.dim() - 2))
    if training and not data.is_cuda:
        out = fused.batch_norm(data, gamma, beta, moving_mean, moving_var, residual, relu=relu, **attributes)
    if out is None:
        out = batch_norm_operator.fn(data, gamma, beta, moving_mean, moving_var, training=training, **attributes)
        out = out if residual is None else out + residual
        out = torch.relu_(out) if relu else out  # no gradient reads the overwritten values
    return out
