"""Maximum pooling in two dimensions, of planes and of channels-last arrays; on GPUs by `max_pooling_on_gpu` in training.

On CPUs torch compares each window element by element: 14 times as slow as MXNet on large arrays.
"""
from __future__ import annotations

from typing import Any

import torch

from ..runtime.contract import Kernel
from ..runtime.parameters import MaxPoolingParams, PoolingNhwcParams
from . import max_pooling_on_gpu

# Elements below which torch is done before a kernel would have been called (and no compiler is needed).
_WORTHWHILE = 1 << 15
_DATA, _RESULT, _MARKS = "float32 (n, c, h, w)", "float32 (n, c, p, q)", "uint8 (n, c, p, q)"
_WINDOW = ("kernel_h", "kernel_w", "stride_h", "stride_w", "pad_h", "pad_w")
_SIZES: dict[str, Any] = {"parameters": MaxPoolingParams, "sizes": {"planes": "n * c"}}
_HEIGHT, _WIDTH = ("(h + 2 * pad_h - kernel_h + (stride_h - 1 if ceil else 0)) // stride_h + 1",
                   "(w + 2 * pad_w - kernel_w + (stride_w - 1 if ceil else 0)) // stride_w + 1")
# The index of a window's largest element is stored in a byte; no window lies in the padding alone.
_PRECONDITIONS = ("kernel_h * kernel_w <= 256", "0 <= pad_h < kernel_h", "0 <= pad_w < kernel_w", "min(stride_h, stride_w, p, q, h, w) >= 1",
            "(p - 1) * stride_h - pad_h < h", "(q - 1) * stride_w - pad_w < w")

_forward = Kernel("nn/max_pooling", "forward", {"data": _DATA}, {"out": _RESULT}, integers=(*_WINDOW, "ceil"), where={"p": _HEIGHT, "q": _WIDTH},
                  preconditions=_PRECONDITIONS, **_SIZES)
_forward_marked = Kernel("nn/max_pooling", "forward_marked", {"data": _DATA}, {"out": _RESULT, "marks": _MARKS}, integers=(*_WINDOW, "ceil"),
                         where={"p": _HEIGHT, "q": _WIDTH}, preconditions=_PRECONDITIONS, **_SIZES)
_backward = Kernel("nn/max_pooling", "backward", {"marks": _MARKS, "dout": _RESULT}, {"gradient": f"{_DATA} filled 0"},
                   integers=("h", "w", *_WINDOW, "ceil"), preconditions=(*_PRECONDITIONS, f"p == {_HEIGHT}", f"q == {_WIDTH}"), **_SIZES)
_SIZES_LAST: dict[str, Any] = {"parameters": PoolingNhwcParams, "sizes": {"total": "c", "first": "0", "average": "0", "padded": "0"}}
_forward_last = Kernel("nn/pooling_nhwc", "forward_marked", {"data": f"{_DATA} last"}, {"out": f"{_RESULT} last", "marks": f"{_MARKS} last"},
                       integers=(*_WINDOW, "ceil"), where={"p": _HEIGHT, "q": _WIDTH}, preconditions=_PRECONDITIONS, **_SIZES_LAST)
_backward_last = Kernel("nn/pooling_nhwc", "backward_marked", {"marks": f"{_MARKS} last", "dout": f"{_RESULT} last"}, {"gradient": f"{_DATA} last"},
                        integers=("h", "w", *_WINDOW, "ceil"), preconditions=(*_PRECONDITIONS, f"p == {_HEIGHT}", f"q == {_WIDTH}"), **_SIZES_LAST)


def max_pool2d(data: torch.Tensor, kernel: tuple[int, ...], stride: tuple[int, ...], pad: tuple[int, ...], ceil: bool) -> torch.Tensor:
    """Compute maximum pooling without dilation, like `torch.max_pool2d`; no window may lie in the padding alone."""
    if data.numel() >= _WORTHWHILE and not torch.compiler.is_compiling():
        window = (*kernel, *stride, *pad, ceil)
        marks = data.requires_grad and torch.is_grad_enabled()
        if data.is_cuda:
            out = max_pooling_on_gpu.max_pool2d(data, max_pooling_on_gpu.Window(kernel, stride, pad, ceil)) if marks else None
            return torch.max_pool2d(data, kernel, stride, pad, 1, ceil) if out is None else out
        plan = (_forward_marked if marks else _forward).plan((data,), window)
        if plan is not None:
            return _MaxPool.apply(data, window, plan, torch.contiguous_format) if marks else plan((data,))[0]
        if marks and (plan := _forward_last.plan((data,), window)) is not None:
            return _MaxPool.apply(data, window, plan, torch.channels_last)
    return torch.max_pool2d(data, kernel, stride, pad, 1, ceil)


class _MaxPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, window, plan, order):
        out, marks = plan((data,))
        ctx.window, ctx.order = window, order
        ctx.save_for_backward(data, marks)
        return out

    @staticmethod
    def backward(ctx, dout):
        data, marks = ctx.saved_tensors
        if torch.is_grad_enabled():  # to be differentiated again: torch's own gradient can be
            kernel, stride, pad = ctx.window[:2], ctx.window[2:4], ctx.window[4:6]
            again = torch.max_pool2d(data, kernel, stride, pad, 1, ctx.window[6])
            return *torch.autograd.grad(again, data, dout, create_graph=True), None, None, None
        kernel = _backward if ctx.order is torch.contiguous_format else _backward_last
        return *kernel((marks, dout.contiguous(memory_format=ctx.order)), (*data.shape[2:], *ctx.window)), None, None, None
