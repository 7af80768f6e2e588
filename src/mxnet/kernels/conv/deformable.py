"""Sampling of a deformable convolution's taps in one pass over memory. Torch's operators take about forty passes."""
from typing import Optional

import torch

from ..runtime.contract import Kernel
from ..runtime.parameters import DeformableParams

_LARGEST = 1 << 20  # coordinates in float32 are exact enough for this size, and sums of such sizes fit
_sizes = ("stride_down", "stride_across", "dilate_down", "dilate_across", "pad_down", "pad_across")
_patches = Kernel(
    "conv/deformable", "patches",
    {"data": "float32 (n, c, h, w) last", "offset": "float32 (n, 2 * groups * down * across, p, q)",
     "mask": "float32 (n, groups * down * across, p, q) optional"},
    {"out": "float32 (n, p, q, down * across, c)"}, integers=("groups", "down", "across", *_sizes, "fades"),
    preconditions=("groups >= 1", "c % groups == 0", "min(down, across) >= 1", f"min({', '.join(_sizes)}) >= 0",
             f"max(h, w, p, q, down, across, {', '.join(_sizes)}) <= {_LARGEST}", "min(h, w) >= 1"),
    parameters=DeformableParams, work="n * c * p * q * down * across")
_WORTHWHILE = 1 << 10  # numbers below which torch is done before a kernel would have been compiled


def patches(data: torch.Tensor, offset: torch.Tensor, mask: Optional[torch.Tensor], groups: int, kernel: tuple[int, int], stride: tuple[int, int],
            dilate: tuple[int, int], pad: tuple[int, int], fades: bool) -> Optional[torch.Tensor]:
    """Return the samples of each tap at each output position: (N, H', W', taps, C).

    Parameters
    ----------
    data : (N, C, H, W)
    offset : (N, 2 * taps * groups, H', W')
        The displacement of each tap (down, right), for each group of channels.
    mask : (N, taps * groups, H', W'), optional
        A factor for each sample.
    fades : bool
        True if samples less than a pixel outside are interpolated between the border and zero; else the border's value ends at once.

    Returns
    -------
    torch.Tensor or None
        None where the kernel does not fit, or a gradient is recorded.
    """
    if torch.compiler.is_compiling() or torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (data, offset, mask)):
        return None
    arrays = data.contiguous(memory_format=torch.channels_last), offset.contiguous(), None if mask is None else mask.contiguous()
    plan = _patches.plan(arrays, (groups, *kernel, *stride, *dilate, *pad, int(fades)), _WORTHWHILE)
    return None if plan is None else plan(arrays)[0]
