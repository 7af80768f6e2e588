"""Color changes of images (H, W, 1 or 3), uint8 or float32, in one pass over memory. Each function returns None without a kernel."""
from __future__ import annotations

import torch

from ..runtime.contract import Kernel

# Numbers of an image below which torch is done before a kernel would have been called.
_WORTHWHILE = 1 << 13
_NARROW = 32  # columns up to which the kernel mirrors faster than torch
_PIXELS, _IMAGE = "T (n, 3)", "T (h, w, c)"
_shift = Kernel("image/color_jitter", "shift_{T}", {"pixels": "T (n)", "shifts": "float32 (3)"}, {"out": "T (n)"}, sizes=("n",), numbers="f")
_fade = Kernel("image/color_jitter", "fade_{T}", {"pixels": _PIXELS}, {"out": _PIXELS}, sizes=("n",), numbers="ff")
_turn = Kernel("image/color_jitter", "turn_{T}", {"pixels": _PIXELS}, {"out": _PIXELS}, sizes=("n",), numbers="f")
_sum = Kernel("image/color_jitter", "sum_{T}", {"pixels": _PIXELS}, {"sums": "float64 (3)"}, sizes=("n",), threads=False)
_mirror = Kernel("image/color_jitter", "mirror_{T}", {"image": _IMAGE}, {"out": _IMAGE}, preconditions=("c == 1 or c == 3",), sizes=("h", "w", "c"))


def shift(image: torch.Tensor, factor: float, shifts: torch.Tensor) -> torch.Tensor | None:
    """Return ``factor * image + shifts``; `shifts` is a float32 tensor (3,)."""
    return _run(_shift, image, (-1,), (shifts,), float(factor)) if _fits(image) else None


def fade(image: torch.Tensor, factor: float, share: float) -> torch.Tensor | None:
    """Return ``factor * image + share * image[..., 2:]``."""
    return _run(_fade, image, (-1, 3), (), float(factor), float(share)) if _fits(image) else None


def rotate_hue(image: torch.Tensor, part: float) -> torch.Tensor | None:
    """Rotate the hue by `part` of the color circle."""
    return _run(_turn, image, (-1, 3), (), float(part)) if _fits(image) else None


def sums(image: torch.Tensor) -> torch.Tensor | None:
    """Return the sums of three channels, float64 (3,)."""
    if not _fits(image) or image.shape[-1] != 3:
        return None
    arrays = (image.view(-1, 3),)
    plan = _sum.plan(arrays)
    return None if plan is None else plan(arrays)[0]


def mirror(image: torch.Tensor) -> torch.Tensor | None:
    """Return the image with its columns reversed."""
    return _run(_mirror, image, image.shape, ()) if _fits(image) and image.shape[1] <= _NARROW else None


def _fits(image):
    # Images on a GPU are rejected before anything waits for their values.
    return image.is_cpu and image.numel() >= _WORTHWHILE and image.is_contiguous() and not torch.compiler.is_compiling() \
        and not (image.requires_grad and torch.is_grad_enabled())


def _run(kernel, image, shape, more, *numbers):
    arrays = (image.view(shape), *more)
    plan = kernel.plan(arrays)
    return None if plan is None else plan(arrays, numbers)[0].view(image.shape)
