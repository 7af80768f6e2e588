"""Layers between the convolutions for inference on a GPU, one kernel each: batch norms that could not be folded, epilogues of convolutions that
cuDNN does not fuse, and maximum pooling.

The kernels are in Triton (`scoring_triton`), on which CUDA builds of torch depend.
"""
import math
from typing import Any, Optional

import torch

from ..runtime.strided_output import ANY
from ..runtime.triton_kernels import OPTIONS, installed, on, runs_on

_TYPES = (torch.float16, torch.bfloat16, torch.float32)
_BLOCK = 1024  # results of a program
_WARPS = 4
_MOST = 1 << 30  # elements: offsets, also those of masked lanes behind the end, have 32 bits
_MOST_OF_WINDOW = 49  # elements: loops over windows are unrolled


def _kernels() -> Any:
    """Return the module of the kernels, or None without triton."""
    if not installed():
        return None
    from . import scoring_triton

    return scoring_triton


def available(device: torch.device) -> bool:
    """Return True if a device supports the kernels. Callers have to handle failures of Triton's compiler."""
    return runs_on(device)


def fits(data: torch.Tensor) -> bool:
    """Return True if the kernels can read `data`: images (N, C, H, W) with their channels last."""
    return type(data) is torch.Tensor and data.dim() == 4 and 0 < data.numel() < _MOST and data.dtype in _TYPES and data.is_contiguous(
        memory_format=torch.channels_last) and available(data.device)


def fits_window(kernel: tuple[int, ...]) -> bool:
    """Return True if a window is small enough for `max_pool`."""
    return math.prod(kernel) <= _MOST_OF_WINDOW


def finish(data: torch.Tensor, shift: torch.Tensor, scale: Optional[torch.Tensor] = None, residual: Optional[torch.Tensor] = None,
           ceiling: float = ANY, in_place: bool = False) -> torch.Tensor:
    """Return ``relu(data * scale + shift + residual)``; `scale`, `residual` and the ReLU are optional.

    Parameters
    ----------
    data : torch.Tensor
        (N, C, H, W), of those that `fits` takes.
    shift, scale : torch.Tensor
        (C,), contiguous; without `scale` data is not multiplied.
    residual : torch.Tensor, optional
        Of the shape of `data`.
    ceiling : float
        The upper bound of the ReLU, infinite for none; `strided_output.ANY` for no ReLU.
    in_place : bool
        True to write the result over `data`.
    """
    out = data if in_place else torch.empty_like(data, memory_format=torch.channels_last)
    added = data if residual is None else residual.contiguous(memory_format=torch.channels_last)
    _start("finish", data, (data, shift if scale is None else scale, shift, added, out, data.numel(), data.shape[1], float(ceiling)),
           SCALES=scale is not None, ADDS=residual is not None, RECTIFIES=ceiling >= 0, LIMITS=0 <= ceiling < math.inf)
    return out


def max_pool(data: torch.Tensor, size: tuple[int, int], kernel: tuple[int, int], stride: tuple[int, int], pad: tuple[int, int]) -> torch.Tensor:
    """Return the largest value of each window, NaN where there is one.

    Parameters
    ----------
    data : torch.Tensor
        (N, C, H, W), of those that `fits` takes.
    size : tuple of two int
        The result's height and width. No window may lie in the padding alone.
    kernel, stride, pad : tuple of two int
    """
    count, channels, height, width = data.shape
    out = torch.empty((count, channels, *size), dtype=data.dtype, device=data.device, memory_format=torch.channels_last)
    _start("max_pool", out, (data, out, out.numel(), channels, height, width, *size), KERNEL_H=kernel[0], KERNEL_W=kernel[1],
           STRIDE_H=stride[0], STRIDE_W=stride[1], PAD_H=pad[0], PAD_W=pad[1])
    return out


def _start(name: str, result: torch.Tensor, arguments: tuple, **constants: Any) -> None:
    """Start a program for each block of results."""
    kernel = getattr(_kernels(), name)
    with on(result.device):
        kernel[(-(-result.numel() // _BLOCK),)](*arguments, **constants, BLOCK=_BLOCK, num_warps=_WARPS, **OPTIONS)
