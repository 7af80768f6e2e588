"""Fused batch normalization for training on a GPU, with an optional residual addition and ReLU.

The kernels are in Triton (`batch_norm_triton`), on which CUDA builds of torch depend. Such a layer is bound by memory traffic, so each array is read
as few times as the mathematics allows.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ..runtime import channel_kernels
from ..runtime.channel_kernels import arranged, blocks, empty_like, partition
from ..runtime.triton_kernels import on


def _load() -> Any:
    from . import batch_norm_triton

    return batch_norm_triton


_VARIANTS = (True, False, True), (True, True, False), (False, False, True)  # with a ReLU, an addition, a bias


def _smoke_tests(device: torch.device, dtype: torch.dtype) -> list[Callable[[], None]]:
    """Return functions that run a small layer forward and backward."""
    data = torch.zeros(1, 64, 2, 2, dtype=dtype, device=device).contiguous(memory_format=torch.channels_last)
    zeros, ones = torch.zeros(64, device=device), torch.ones(64, device=device)

    def test(relu, adds, shifts):
        bias, residual = zeros.to(dtype) if shifts else None, data if adds else None
        with on(device):
            out, mean, inverse = _forward(data, residual, ones, zeros, zeros.clone(), ones.clone(), bias, 1e-3, 0.9, relu)
            _backward(out, data, out if adds and relu else None, ones, zeros, mean, inverse, bias, relu, adds, True)

    return [functools.partial(test, *variant) for variant in _VARIANTS]


kernels = channel_kernels.KernelModule("batch norms", _load, _smoke_tests)


def _fits(data, parameters, residual, bias) -> bool:
    if not channel_kernels.fits(data) or not kernels.available(data.device, data.dtype):
        return False
    if not all(channel_kernels.fits_vector(p, data, (torch.float32,)) for p in parameters):
        return False
    if bias is not None and not channel_kernels.fits_vector(bias, data, channel_kernels.TYPES):
        return False
    return residual is None or (residual.shape == data.shape and residual.dtype is data.dtype and residual.device == data.device)


def batch_norm(data: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, moving_mean: torch.Tensor, moving_var: torch.Tensor,
               residual: torch.Tensor | None = None, *, bias: torch.Tensor | None = None, relu: bool = False, **attributes: Any) -> Any:
    """Compute ``relu(BatchNorm(data + bias) + residual)`` in training; each step but BatchNorm is optional. Return None where no kernel fits.

    The bias, one number for each channel, affects the moving mean only, and its gradient is 0, as a batch norm removes any shift. `attributes` are
    those of BatchNorm.
    """
    if not _fits(data, (gamma, beta, moving_mean, moving_var), residual, bias):
        return None
    return _Fused.apply(data, None if attributes.get("fix_gamma", True) else gamma, beta, None if residual is None else arranged(residual), bias,
                        moving_mean, moving_var, attributes.get("eps", 1e-3), attributes.get("momentum", 0.9), bool(relu))


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, gamma, beta, residual, bias, moving_mean, moving_var, eps, momentum, relu):
        with on(data.device):
            out, mean, inverse = _forward(data, residual, gamma, beta, moving_mean, moving_var, bias, eps, momentum, relu)
        ctx.relu, ctx.adds, ctx.eps = relu, residual is not None, eps
        # Without a residual, the backward kernels recompute the ReLU's mask from `data`.
        ctx.save_for_backward(data, gamma, beta, mean, inverse, out if relu and residual is not None else None, bias)
        return out

    @staticmethod
    def backward(ctx, dout):
        data, gamma, beta, mean, inverse, out, bias = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradients will be differentiated themselves
            return _recorded_gradients(ctx, dout, data, gamma, beta, out, bias)
        dout = arranged(dout)
        with on(data.device):
            dx, dgamma, dbeta, kept, dbias = _backward(dout, data, out, gamma, beta, mean, inverse, bias, ctx.relu, ctx.adds,
                                                       ctx.needs_input_grad[0])
        found = dx, None if gamma is None else dgamma, dbeta, kept, dbias
        return (*(g if needed else None for g, needed in zip(found, ctx.needs_input_grad)), None, None, None, None, None)


def _recorded_gradients(ctx, dout, data, gamma, beta, out, bias):
    """Return the gradients computed by torch's operators, which can be differentiated again."""
    normal = torch.batch_norm(data, torch.ones_like(beta) if gamma is None else gamma, beta, None, None, True, 0.0, ctx.eps, True)
    kept = torch.where((out if ctx.adds else normal) > 0, dout, 0) if ctx.relu else dout
    needed = [i for i in range(3) if ctx.needs_input_grad[i]]
    found: list[Any] = [None] * 10
    if needed:
        gradients = torch.autograd.grad(normal, [(data, gamma, beta)[i] for i in needed], kept, create_graph=True)
        for i, gradient in zip(needed, gradients):
            found[i] = gradient
    if ctx.needs_input_grad[3]:
        found[3] = kept
    if ctx.needs_input_grad[4]:
        found[4] = torch.zeros_like(bias)
    return tuple(found)


def _forward(data, residual, gamma, beta, moving_mean, moving_var, bias, eps, momentum, relu):
    """Return the result, and the mean and ``1 / sqrt(var + eps)`` of each channel."""
    channels = data.shape[1]
    rows = data.numel() // channels
    height, width = blocks(channels)
    columns = -(-channels // width)
    parts, part = partition(rows, channels, channel_kernels.PROGRAMS[0], channel_kernels.PARTS)
    sums = torch.empty(2, parts, channels, dtype=torch.float32, device=data.device)
    mean, inverse = torch.empty_like(beta), torch.empty_like(beta)
    out = empty_like(data)
    kernels.start("statistics", (columns, parts, 1), (data, sums), channels, (rows, channels, part), (height // 2, width))
    joined = channel_kernels.TILE // channel_kernels.PARTS
    moments = sums, beta if bias is None else bias, moving_mean, moving_var, mean, inverse
    kernels.start("join_statistics", (-(-channels // joined), 1, 1), moments, channels,
                  (rows, channels, part, parts, float(eps), float(momentum)), (bias is not None, channel_kernels.PARTS, joined))
    parts, part = partition(rows, channels, channel_kernels.PROGRAMS[1], rows)
    tensors = data, data if residual is None else residual, beta if gamma is None else gamma, beta, mean, inverse, out
    kernels.start("normalize", (columns, parts, 1), tensors, channels, (rows, channels, part),
                  (gamma is not None, residual is not None, relu, height, width))
    return out, mean, inverse


def _backward(dout, data, out, gamma, beta, mean, inverse, bias, relu, adds, needs_dx):
    """Return the gradients of data (None unless `needs_dx`), gamma, beta, residual and bias (None for an absent one)."""
    channels = data.shape[1]
    rows = data.numel() // channels
    height, width = blocks(channels)
    columns = -(-channels // width)
    parts, part = partition(rows, channels, channel_kernels.PROGRAMS[0], channel_kernels.PARTS)
    sums = torch.empty(2, parts, channels, dtype=torch.float32, device=data.device)
    dgamma, dbeta = torch.empty_like(beta), torch.empty_like(beta)
    dbias = None if bias is None else torch.empty_like(bias)
    masks = relu and adds
    kept = empty_like(data) if masks else dout  # without a ReLU the residual's gradient is the incoming one
    factor = beta if gamma is None else gamma
    tensors = dout, data, out if masks else data, factor, beta, mean, inverse, kept, sums
    kernels.start("gradient_sums", (columns, parts, 1), tensors, channels, (rows, channels, part),
                  (gamma is not None, relu, masks, height // 2, width))
    joined = channel_kernels.TILE // channel_kernels.PARTS
    kernels.start("join_gradient_sums", (-(-channels // joined), 1, 1), (sums, inverse, dgamma, dbeta, dbeta if dbias is None else dbias), channels,
                  (channels, parts), (bias is not None, channel_kernels.PARTS, joined))
    dx = None
    if needs_dx:
        dx = empty_like(data)
        parts, part = partition(rows, channels, channel_kernels.PROGRAMS[1], rows)
        tensors = kept, data, factor, beta, mean, inverse, dgamma, dbeta, dx
        kernels.start("gradient", (columns, parts, 1), tensors, channels, (rows, channels, part),
                      (gamma is not None, relu and not masks, height, width))
    return dx, dgamma, dbeta, kept if adds else None, dbias
