"""Overlaps of boxes (IoU) and greedy non-maximum suppression. NumPy takes a dozen calls for each remaining box."""
from __future__ import annotations

import numpy as np
import torch

from ..runtime.contract import Kernel

_suppress = Kernel("nn/nms", "suppress", {"boxes": "float32 (n, 4)", "classes": "int64 (n) optional"}, {"stays": "bool (n)"}, sizes=("n",),
                   numbers="ffli", threads=False)  # threshold, border, limit, inclusive
_overlaps = Kernel("nn/nms", "overlaps", {"lhs": "float32 (n, 4)", "rhs": "float32 (m, 4)"}, {"out": "float32 (n, m)"}, sizes=("n", "m"))


def suppress(boxes: torch.Tensor, threshold: float, classes: torch.Tensor | None, border: float, limit: int | None,
             inclusive: bool) -> torch.Tensor | None:
    """Compute `spatial.boxes.greedy_suppression` for a NumPy array of boxes (n, 4); return None where the kernel does not fit."""
    if boxes.dtype != np.float32:
        return None
    # torch.from_numpy requires writable arrays.
    arrays = [torch.from_numpy(np.require(boxes, requirements=("C", "W"))),
              None if classes is None else torch.from_numpy(np.require(classes, np.int64, ("C", "W")))]
    plan = _suppress.plan(arrays)
    return None if plan is None else plan(arrays, (threshold, border, len(boxes) if limit is None else limit, inclusive))[0].numpy()


def overlaps(lhs: torch.Tensor, rhs: torch.Tensor) -> torch.Tensor | None:
    """Compute `spatial.boxes.overlaps` of boxes (n, 4) and (m, 4); return None where the kernel does not fit or a gradient is recorded."""
    if lhs.requires_grad or rhs.requires_grad or torch.compiler.is_compiling():
        return None
    arrays = lhs.contiguous(), rhs.contiguous()
    plan = _overlaps.plan(arrays)
    return None if plan is None else plan(arrays)[0]
