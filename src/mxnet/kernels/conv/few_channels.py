"""Two-dimensional convolutions of images with few channels, such as a network's first layer, for training on a CPU in float32."""
from typing import Any

import torch

from ..runtime.contract import Kernel
from ..runtime.parameters import ConvParams

MOST = 7  # channels
_DATA, _WEIGHT, _BIAS, _RESULT = "float32 (n, c, h, w) last", "float32 (k, c, r, s) last", "float32 (k)", "float32 (n, k, p, q) last"
_STEPS = ("stride_h", "stride_w", "pad_h", "pad_w", "dilate_h", "dilate_w")
HEIGHT, WIDTH = "(h + 2 * pad_h - dilate_h * (r - 1) - 1) // stride_h + 1", "(w + 2 * pad_w - s) // stride_w + 1"
PRECONDITIONS = (f"c <= {MOST}", "r <= 128", "min(n, c, h, w, k, r, s, p, q) >= 1", "min(stride_h, stride_w, dilate_h) >= 1", "dilate_w == 1",
                  "0 <= pad_h <= dilate_h * (r - 1)", "0 <= pad_w < s")
_WORK = "k * c * r * s * n * p * q"
_SIZES: dict[str, Any] = {"parameters": ConvParams, "multiplies": _WORK}
forward = Kernel("conv/few_channels", "forward_float32", {"data": _DATA, "weight": _WEIGHT, "bias": f"{_BIAS} optional"}, {"out": _RESULT},
                 integers=_STEPS, where={"p": HEIGHT, "q": WIDTH}, preconditions=PRECONDITIONS, work=_WORK, **_SIZES)
backward_weight = Kernel("conv/few_channels", "backward_weight_float32", {"dout": _RESULT, "data": _DATA},
                         {"dweight": _WEIGHT, "dbias": f"{_BIAS} if biased"}, integers=("r", "s", "biased", *_STEPS),
                         preconditions=(*PRECONDITIONS, f"p == {HEIGHT}", f"q == {WIDTH}"), **_SIZES)


def suits(weight: torch.Tensor) -> bool:
    """Return True if a convolution with these weights (K, C, R, S) reads few channels, and more than one number of each row."""
    return weight.shape[1] <= MOST and weight.shape[3] > 1
