"""Transposing copies. Torch copies element by element where the last axis does not stay the last."""
from __future__ import annotations

import torch

from ..runtime.contract import Kernel

# Elements below which torch is done before a kernel would have been called.
_WORTHWHILE = 1 << 15
_last_two = Kernel("memory/transpose", "last_two", {"data": "float32 (n, h, w)"}, {"out": "float32 (n, w, h)"}, sizes=("n", "h", "w"))
_reversed = Kernel("memory/transpose", "reversed", {"data": "float32 (n, h, w)"}, {"out": "float32 (w, h, n)"}, sizes=("n", "h", "w"))
_FOUR_BYTES = (torch.float32, torch.int32)


def permute_copy(data: torch.Tensor, axes: tuple[int, ...] | list[int]) -> torch.Tensor:
    """Return a contiguous copy with permuted axes, like `torch.permute_copy`."""
    if data.numel() >= _WORTHWHILE and data.dtype in _FOUR_BYTES and not torch.compiler.is_compiling():
        kernel, shape = _choose(data.shape, axes)
        if kernel is not None and data.is_contiguous():
            return _Permuted.apply(data, axes, kernel, shape) if data.requires_grad and torch.is_grad_enabled() else _run(data, axes, kernel, shape)
    return torch.permute_copy(data, axes)


def transpose_copy(data: torch.Tensor, first: int, second: int) -> torch.Tensor:
    """Return a contiguous copy with two axes swapped, like `torch.transpose_copy`."""
    size = data.dim()
    if data.numel() < _WORTHWHILE or not (-size <= first < size and -size <= second < size):
        return torch.transpose_copy(data, first, second)
    axes = list(range(size))
    axes[first], axes[second] = axes[second], axes[first]
    return permute_copy(data, axes)


def _choose(shape, axes):
    """Return the kernel and the three sizes for an order of axes, after merging axes that stay neighbours; the kernel may be None."""
    size = len(shape)
    if not all(-size <= a < size for a in axes):
        return None, None
    axes = [a % size for a in axes]
    if sorted(axes) != list(range(size)):
        return None, None
    starts = [a for i, a in enumerate(axes) if not i or a != axes[i - 1] + 1]  # of runs of neighbours
    ordered = sorted(starts)
    sizes = [shape[start:end].numel() for start, end in zip(ordered, [*ordered[1:], size])]
    order = [ordered.index(s) for s in starts]
    if order == [1, 0]:
        return _last_two, (1, *sizes)
    return _last_two if order == [0, 2, 1] else _reversed if order == [2, 1, 0] else None, tuple(sizes)


def _run(data, axes, kernel, shape):
    arrays = (data.view(torch.float32).view(shape),)
    plan = kernel.plan(arrays)
    if plan is None:
        return torch.permute_copy(data, axes)
    return plan(arrays)[0].view(data.dtype).view([data.shape[a] for a in axes])


class _Permuted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, axes, kernel, shape):
        ctx.axes = [a % data.dim() for a in axes]
        out = _run(data, axes, kernel, shape)
        return torch.ops.aten._unsafe_view(out, out.shape)  # autograd forbids in-place changes of a view that a Function returns

    @staticmethod
    def backward(ctx, dout):
        return permute_copy(dout, [ctx.axes.index(a) for a in range(len(ctx.axes))]), None, None, None
