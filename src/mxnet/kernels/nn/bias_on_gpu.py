"""Biases of convolutions for training on a GPU, with an optional ReLU: one kernel forward, and one backward with a small second one.

The kernels are in Triton (`bias_triton`), on which CUDA builds of torch depend. They are bound by memory traffic. So the sum is written over the
convolution's result, and backward reads the gradient once for the ReLU's mask and the bias's gradient.
"""
import functools
from collections.abc import Callable
from typing import Any, Optional

import torch

from ..runtime import channel_kernels
from ..runtime.channel_kernels import arranged, blocks, empty_like, partition
from ..runtime.triton_kernels import on


def _load() -> Any:
    from . import bias_triton

    return bias_triton


_VARIANTS = (True, True), (True, False), (False, False)  # with a ReLU, and with a gradient of the data to be written


def _smoke_tests(device: torch.device, dtype: torch.dtype) -> list[Callable[[], None]]:
    """Return functions that add a small bias and compute its gradient."""
    data = torch.zeros(1, 64, 2, 2, dtype=dtype, device=device).contiguous(memory_format=torch.channels_last)
    bias = torch.zeros(64, dtype=dtype, device=device)

    def test(relu: bool, writes: bool) -> None:
        with on(device):
            _forward(data, bias, relu)
            _backward(data, data if relu else None, dtype, writes)

    return [functools.partial(test, *variant) for variant in _VARIANTS]


kernels = channel_kernels.KernelModule("biases", _load, _smoke_tests)


def add_bias(data: torch.Tensor, bias: torch.Tensor, relu: bool = False) -> Optional[torch.Tensor]:
    """Overwrite `data` by ``relu(data + bias)``, recorded by torch's autograd, and return it; the ReLU is optional.

    Parameters
    ----------
    data : torch.Tensor
        (N, C, H, W) with its channels last, or (N, C); no leaf of a gradient's graph.
    bias : torch.Tensor
        (C,).
    relu : bool

    Returns None, with the data unchanged, where no kernel fits.
    """
    if not channel_kernels.fits(data) or not channel_kernels.fits_vector(bias, data, channel_kernels.TYPES):
        return None
    if not kernels.available(data.device, data.dtype):
        return None
    out: torch.Tensor = _AddBias.apply(data, bias, relu)
    return out


class _AddBias(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, data: torch.Tensor, bias: torch.Tensor, relu: bool) -> torch.Tensor:
        with on(data.device):
            _forward(data, bias, relu)
        ctx.mark_dirty(data)
        ctx.relu, ctx.bias_type = relu, bias.dtype
        ctx.save_for_backward(*[data] * relu)
        return data

    @staticmethod
    def backward(ctx: Any, dout: torch.Tensor) -> tuple[Optional[torch.Tensor], Optional[torch.Tensor], None]:
        out = ctx.saved_tensors[0] if ctx.relu else None
        needs_data, needs_bias, _ = ctx.needs_input_grad
        if torch.is_grad_enabled():  # the gradients will be differentiated themselves
            dx, dbias = _recorded_gradients(dout, out, ctx.bias_type)
        elif not needs_bias:
            dx, dbias = dout if out is None else torch.ops.aten.threshold_backward(dout, out, 0), None
        else:
            dout = arranged(dout)
            with on(dout.device):
                dx, dbias = _backward(dout, out, ctx.bias_type, needs_data)
        return dx if needs_data else None, dbias if needs_bias else None, None


def _recorded_gradients(dout: torch.Tensor, out: Optional[torch.Tensor], bias_type: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients computed by torch's operators, which can be differentiated again."""
    dx = dout if out is None else torch.where(out <= 0, 0, dout)
    return dx, dx.sum([axis for axis in range(dx.dim()) if axis != 1]).to(bias_type)


def bias_gradient(dout: torch.Tensor, marks: Optional[torch.Tensor], dtype: torch.dtype) -> torch.Tensor:
    """Return the sum of a gradient over each channel, in this type; where there are marks, it counts where they are above 0."""
    return _backward(dout, marks, dtype, False)[1]


def _forward(data: torch.Tensor, bias: torch.Tensor, relu: bool) -> None:
    channels = data.shape[1]
    rows = data.numel() // channels
    height, width = blocks(channels)
    parts, part = partition(rows, channels, channel_kernels.PROGRAMS[1], rows)
    kernels.start("add_bias", (-(-channels // width), parts, 1), (data, bias), channels, (rows, channels, part), (relu, height, width))


def _backward(dout: torch.Tensor, out: Optional[torch.Tensor], bias_type: torch.dtype, needs_data: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of the data and the bias; without a ReLU, or if that of the data is not needed, the former is `dout` itself."""
    channels = dout.shape[1]
    rows = dout.numel() // channels
    height, width = blocks(channels)
    parts, part = partition(rows, channels, channel_kernels.PROGRAMS[0], channel_kernels.PARTS)
    writes = out is not None and needs_data
    dx = empty_like(dout) if writes else dout
    sums = torch.empty(parts, channels, dtype=torch.float32, device=dout.device)
    dbias = torch.empty(channels, dtype=bias_type, device=dout.device)
    kernels.start("gradient_sums", (-(-channels // width), parts, 1), (dout, dout if out is None else out, dx, sums), channels,
                  (rows, channels, part), (out is not None, writes, height // 2, width))
    joined = channel_kernels.TILE // channel_kernels.PARTS
    kernels.start("join_gradient_sums", (-(-channels // joined), 1, 1), (sums, dbias), channels, (channels, parts), (channel_kernels.PARTS, joined))
    return dx, dbias
