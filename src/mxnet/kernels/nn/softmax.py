"""Softmax and log-softmax along the last axis, and the log-likelihood of one class in each line."""
from __future__ import annotations

from typing import Any, Optional

import torch

from ..runtime.contract import Kernel

# Elements below which torch is done before a kernel would have been called.
_WORTHWHILE = 1 << 14
_lines, _logarithms = (Kernel("nn/softmax", name, {"data": "float32 (n, w)"}, {"out": "float32 (n, w)"}, sizes=("n", "w"))
                       for name in ("lines", "logarithms"))


_CLASSES = {"data": "float32 (n, w)", "classes": "T (n)"}
_rest: dict[str, Any] = {"preconditions": ("w >= 1", "T in ('float32', 'int64')"), "sizes": ("n", "w"), "limits_threads": True}
_likelihoods = Kernel("nn/softmax", "log_likelihoods_{T}", _CLASSES, {"out": "float32 (n)", "sums": "float32 (n, 2)"}, **_rest)
_likelihood_gradients = Kernel("nn/softmax", "log_likelihood_gradients_{T}", {**_CLASSES, "sums": "float32 (n, 2)", "dout": "float32 (n)"},
                               {"dx": "float32 (n, w)"}, **_rest)


def softmax(data: torch.Tensor, axis: int) -> torch.Tensor:
    """Compute the softmax like `torch.softmax`, with the kernel where it fits."""
    return _run(_lines, data, axis, torch.softmax, torch._softmax_backward_data)


def log_softmax(data: torch.Tensor, axis: int) -> torch.Tensor:
    """Compute the log-softmax like `torch.log_softmax`, with the kernel where it fits."""
    return _run(_logarithms, data, axis, torch.log_softmax, torch._log_softmax_backward_data)


def _run(kernel, data, axis, on_torch, backward):
    if data.numel() >= max(_WORTHWHILE, 1) and axis in (-1, data.dim() - 1) and data.is_contiguous() and not torch.compiler.is_compiling():
        arrays = (data.view(-1, data.shape[-1]),)
        plan = kernel.plan(arrays)
        if plan is not None:
            return _Lines.apply(data, plan, backward) if data.requires_grad and torch.is_grad_enabled() else plan(arrays)[0].view(data.shape)
    return on_torch(data, axis)


class _Lines(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, plan, backward):
        out = plan((data.view(-1, data.shape[-1]),))[0].view(data.shape)
        ctx.save_for_backward(out)
        ctx.backward_of_it = backward
        return out

    @staticmethod
    def backward(ctx, dout):
        out, = ctx.saved_tensors
        return ctx.backward_of_it(dout, out, -1, out.dtype), None, None


def log_likelihood(data: torch.Tensor, classes: torch.Tensor) -> Optional[torch.Tensor]:
    """Return the log-softmax of each line of `data` (N, W) at one place, `classes` (N); None if there is no kernel for these tensors.

    Places are rounded towards zero, and those outside of a line are the nearest ones. Compared with the log-softmax of all places, neither the
    result nor its gradient writes and reads an array of the data's size in between.
    """
    if torch.compiler.is_compiling():
        return None
    if classes.dtype is not torch.float32:
        classes = classes.long()
    plan = _likelihoods.plan((data, classes))
    if plan is None:
        return None
    return _LogLikelihood.apply(data, classes, plan) if torch.is_grad_enabled() and data.requires_grad else plan((data, classes))[0]


class _LogLikelihood(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, classes, plan):
        out, sums = plan((data, classes))
        ctx.save_for_backward(data, classes, sums)
        return out

    @staticmethod
    def backward(ctx, dout):
        data, classes, sums = ctx.saved_tensors
        if not torch.is_grad_enabled():
            return _likelihood_gradients((data, classes, sums, dout.contiguous()))[0], None, None
        places = classes.nan_to_num(0).clamp(0, data.shape[1] - 1).long()
        one_hot = torch.zeros_like(data).scatter_(1, places.view(-1, 1), 1)
        return dout.view(-1, 1) * (one_hot - torch.softmax(data, 1)), None, None
