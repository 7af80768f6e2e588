"""Overlaps of boxes and greedy suppression: what NumPy does in a dozen calls for each box that stays."""
import numpy as np
import torch

from ..runtime.contract import Kernel

_suppress = Kernel("nn/nms", "suppress", {"boxes": "float32 (n, 4)", "classes": "int64 (n) optional"}, {"stays": "bool (n)"}, sizes=("n",),
                   numbers="ffli", threads=False)  # threshold, border, limit, inclusive
_overlaps = Kernel("nn/nms", "overlaps", {"lhs": "float32 (n, 4)", "rhs": "float32 (m, 4)"}, {"out": "float32 (n, m)"}, sizes=("n", "m"))


def suppress(boxes, threshold, classes, border, limit, inclusive):
    """What `spatial.boxes.greedy_suppression` computes, of (n, 4) boxes as a NumPy array; None where the kernel can't."""
    if boxes.dtype != np.float32:
        return None
    # Torch takes arrays of NumPy's that may be written to.
    arrays = [torch.from_numpy(np.require(boxes, requirements=("C", "W"))),
              None if classes is None else torch.from_numpy(np.require(classes, np.int64, ("C", "W")))]
    plan = _suppress.plan(arrays)
    return None if plan is None else plan(arrays, (threshold, border, len(boxes) if limit is None else limit, inclusive))[0].numpy()


def overlaps(lhs, rhs):
    """What `spatial.boxes.overlaps` computes, of (n, 4) and (m, 4) boxes, without a gradient; None where the kernel can't."""
    if lhs.requires_grad or rhs.requires_grad or torch.compiler.is_compiling():
        return None
    arrays = lhs.contiguous(), rhs.contiguous()
    plan = _overlaps.plan(arrays)
    return None if plan is None else plan(arrays)[0]
