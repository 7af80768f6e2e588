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
_rest: dict[str, Any] = {"preconditions": ("w >= 1", "T in ('float32', 'int64')"), "sizes": ("n", "w"), "numbers": "f", "limits_threads": True}
_likelihoods = Kernel("nn/softmax", "log_likelihoods_{T}", _CLASSES, {"out": "float32 (n)", "sums": "float32 (n, 2)"}, **_rest)
_likelihood_gradients = Kernel("nn/softmax", "log_likelihood_gradients_{T}", {**_CLASSES, "sums": "float32 (n, 2)", "dout": "float32 (n)"},
                               {"dx": "float32 (n, w)"}, **_rest)
_minus_one_hot = Kernel("nn/softmax", "minus_one_hot_{T}", _CLASSES, {"out": "float32 (n, w)"}, **_rest)


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


def minus_one_hot(data: torch.Tensor, classes: torch.Tensor, scale: float) -> Optional[torch.Tensor]:
    """Return ``(data - one_hot(classes)) * scale`` for `data` (N, W) and `classes` (N), recording nothing; None if no kernel takes these tensors.

    Classes are rounded towards zero; one out of range is none.
    """
    arrays = data, _numbers(classes)
    plan = None if torch.compiler.is_compiling() else _minus_one_hot.plan(arrays)
    return None if plan is None else plan(arrays, (scale,))[0]


def log_likelihood(data: torch.Tensor, classes: torch.Tensor, scale: float = 1.0) -> Optional[torch.Tensor]:
    """Return `scale` times the log-softmax of each line of `data` (N, W) at one place, `classes` (N); None if no kernel takes these tensors.

    Places are rounded towards zero, and those outside of a line are the nearest ones. Compared with the log-softmax of all places, neither the
    result nor its gradient writes and reads an array of the data's size in between.
    """
    if torch.is_grad_enabled() and data.requires_grad:
        if torch.compiler.is_compiling():
            return None
        classes = _numbers(classes)
        plan = _likelihoods.plan((data, classes))
        return None if plan is None else _LogLikelihood.apply(data, classes, plan, scale)
    call = log_likelihood_saving(data, classes, scale)
    return None if call is None else call[0]


def log_likelihood_saving(data: torch.Tensor, classes: torch.Tensor, scale: float) -> Optional[tuple[torch.Tensor, tuple[Any, ...]]]:
    """Return the result of `log_likelihood`, and what `log_likelihood_gradient` needs, recording nothing; None if no kernel takes them."""
    arrays = data, _numbers(classes)
    plan = None if torch.compiler.is_compiling() else _likelihoods.plan(arrays)
    if plan is None:
        return None
    out, sums = plan(arrays, (scale,))
    return out, (*arrays, sums, scale)


def log_likelihood_gradient(saved: tuple[Any, ...], dout: torch.Tensor) -> torch.Tensor:
    """Return the gradient of `log_likelihood` for its data, given that of its result (N) and what `log_likelihood_saving` returned."""
    data, classes, sums, scale = saved
    return _likelihood_gradients((data, classes, sums, dout.contiguous()), (), (scale,))[0]


def _numbers(classes: torch.Tensor) -> torch.Tensor:
    return classes if classes.dtype is torch.float32 else classes.long()


class _LogLikelihood(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, classes, plan, scale):
        out, sums = plan((data, classes), (scale,))
        ctx.save_for_backward(data, classes, sums)
        ctx.scale = scale
        return out

    @staticmethod
    def backward(ctx, dout):
        data, classes, sums = ctx.saved_tensors
        if not torch.is_grad_enabled():
            return log_likelihood_gradient((data, classes, sums, ctx.scale), dout), None, None, None
        places = classes.nan_to_num(0).clamp(0, data.shape[1] - 1).long()
        one_hot = torch.zeros_like(data).scatter_(1, places.view(-1, 1), 1)
        return dout.view(-1, 1) * (one_hot - torch.softmax(data, 1)) * ctx.scale, None, None, None
