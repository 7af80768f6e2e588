"""Overlaps of boxes and greedy suppression: what NumPy does in a dozen calls for each box that stays."""
import numpy as np
import torch

from . import function


def suppress(boxes, threshold, classes, border, limit, inclusive):
    """What `spatial.boxes.greedy_suppression` computes, of (n, 4) boxes as a NumPy array; None where the kernel can't."""
    if boxes.dtype != np.float32:
        return None
    kernel = function("nms", "suppress", "ppplffli")
    if kernel is None:
        return None
    boxes = np.ascontiguousarray(boxes)
    classes = None if classes is None else np.ascontiguousarray(classes, np.int64)
    stays = np.empty(len(boxes), bool)
    kernel(boxes.ctypes.data, None if classes is None else classes.ctypes.data, stays.ctypes.data, len(boxes), threshold, border,
           len(boxes) if limit is None else limit, inclusive)
    return stays


def overlaps(lhs, rhs):
    """What `spatial.boxes.overlaps` computes, of (n, 4) and (m, 4) boxes, without a gradient; None where the kernel can't."""
    if any(type(b) is not torch.Tensor or b.dtype is not torch.float32 or b.device.type != "cpu" or b.requires_grad for b in (lhs, rhs)) \
            or torch.compiler.is_compiling():
        return None
    kernel = function("nms", "overlaps", "ppplli")
    if kernel is None:
        return None
    lhs, rhs = lhs.contiguous(), rhs.contiguous()
    out = lhs.new_empty(len(lhs), len(rhs))
    kernel(lhs.data_ptr(), rhs.data_ptr(), out.data_ptr(), len(lhs), len(rhs), torch.get_num_threads())
    return out
