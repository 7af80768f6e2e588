"""Pooling of regions of interest (RoI). Regions are small and of different sizes, so that in torch the call overhead dominates."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..runtime.contract import Kernel
from ..runtime.parameters import RoiPoolingParams

_MAPS, _IMAGES, _DOUT = "float32 (n, c, h, w)", "int64 (r)", "float32 (r, c, p, q)"
_ONE_GROUP: dict[str, Any] = {"parameters": RoiPoolingParams, "sizes": {"down": "1", "right": "1"}}
_BINS = {"top": "int64 (r, p)", "bottom": "int64 (r, p)", "left": "int64 (r, q)", "right": "int64 (r, q)"}
_WEIGHTS = {"images": _IMAGES, "rows": "float32 (r, p, h)", "columns": "float32 (r, q, w)"}
_SOME = "h * w <= 2147483647"  # the index of the largest pixel is an int32
_GROUPS: dict[str, Any] = {"integers": ("down", "right"), "where": {"depth": "c // (down * right)"},
           "preconditions": (_SOME, "min(down, right) >= 1", "c == depth * down * right"),
           "parameters": RoiPoolingParams}

_largest = Kernel("nn/roi_pooling", "largest", {"data": _MAPS, "images": _IMAGES, **_BINS},
                  {"out": f"{_DOUT} filled 0", "marks": "int32 (r, c, p, q) filled -1 if marked"}, integers=("marked",), preconditions=(_SOME,),
                  **_ONE_GROUP)
_largest_backward = Kernel("nn/roi_pooling", "largest_backward", {"marks": "int32 (r, c, p, q)", "images": _IMAGES, "dout": _DOUT},
                           {"gradient": f"{_MAPS} filled 0"}, integers=("n", "h", "w"), preconditions=(_SOME, "min(n, h, w) >= 0"), **_ONE_GROUP)
_weighted = Kernel("nn/roi_pooling", "weighted", {"data": _MAPS, **_WEIGHTS}, {"out": f"{_DOUT} filled 0"}, preconditions=(_SOME,), **_ONE_GROUP)
_weighted_backward = Kernel("nn/roi_pooling", "weighted_backward", {**_WEIGHTS, "dout": _DOUT}, {"gradient": f"{_MAPS} filled 0"}, integers=("n",),
                            preconditions=(_SOME, "n >= 0"), **_ONE_GROUP)
_sensitive = Kernel("nn/roi_pooling", "sensitive", {"data": _MAPS, **_WEIGHTS}, {"out": "float32 (r, depth, p, q) filled 0"}, **_GROUPS)
_sensitive_backward = Kernel("nn/roi_pooling", "sensitive_backward", {**_WEIGHTS, "dout": "float32 (r, depth, p, q)"},
                             {"gradient": f"{_MAPS} filled 0"},
                             **{**_GROUPS, "integers": ("n", "down", "right"), "where": {"c": "depth * down * right"},
                                "preconditions": (_SOME, "min(down, right) >= 1", "n >= 0")})


def largest(data: torch.Tensor, images: torch.Tensor, bins: Any, fallback: Callable[..., torch.Tensor]) -> torch.Tensor:
    """Return the largest value in each bin of each region, 0 in an empty bin: (R, C, rows, columns).

    Parameters
    ----------
    data : (N, C, H, W)
        Feature maps.
    images : (R,) int64
        Regions of other images than 0 to N - 1 give zeros.
    bins : tuple of 4 int64 tensors
        First and end indices of the bins: vertical (R, rows), then horizontal (R, columns).
    fallback : callable
        Computes the same from `data` in torch, where the kernel does not fit, and for gradients of gradients.
    """
    return _run(_Largest, _largest, (data, images.contiguous(), *(b.contiguous() for b in bins)), fallback, (_differentiates(data),))


def weighted(data: torch.Tensor, images: torch.Tensor, rows: Any, columns: Any, groups: Any, fallback: Callable[..., torch.Tensor]) -> torch.Tensor:
    """Return ``sum_hw rows[r, p, h] * columns[r, q, w] * data[image of r, c, h, w]`` for each region: (R, C, p, q).

    Parameters
    ----------
    data, images, fallback
        As for `largest`.
    rows, columns : (R, p, H), (R, q, W)
        Weights.
    groups : (int, int), optional
        Position-sensitive pooling: bin (p, q) reads its own one of (down, right) groups of channels.
    """
    arrays = data, images.contiguous(), rows.contiguous(), columns.contiguous()
    return _run(_Weighted, _weighted, arrays, fallback) if groups is None else _run(_Weighted, _sensitive, arrays, fallback, groups)


def _differentiates(data):
    return data.requires_grad and torch.is_grad_enabled()


def _run(operation, kernel, arrays, fallback, integers=()):
    data, *tables = arrays
    plan = None if torch.compiler.is_compiling() else kernel.plan(arrays, integers)
    if plan is None:
        return fallback(data)
    return operation.apply(data, tables, integers, fallback, plan) if _differentiates(data) else plan(arrays)[0]


def _differentiable_gradient(fallback, data, dout):
    return torch.autograd.grad(fallback(data), data, dout, create_graph=True)[0]


class _Largest(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, tables, integers, fallback, plan):
        out, marks = plan((data, *tables))
        ctx.images, ctx.fallback = tables[0], fallback
        ctx.save_for_backward(data, marks)
        return out

    @staticmethod
    def backward(ctx, dout):
        data, marks = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _differentiable_gradient(ctx.fallback, data, dout), None, None, None, None
        return *_largest_backward((marks, ctx.images, dout.contiguous()), (data.shape[0], *data.shape[2:])), None, None, None, None


class _Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, tables, groups, fallback, plan):
        ctx.tables, ctx.fallback, ctx.groups = tables, fallback, groups
        ctx.save_for_backward(data)
        return plan((data, *tables))[0]

    @staticmethod
    def backward(ctx, dout):
        data, = ctx.saved_tensors
        if torch.is_grad_enabled():
            gradient = _differentiable_gradient(ctx.fallback, data, dout)
        else:
            kernel = _sensitive_backward if ctx.groups else _weighted_backward
            gradient, = kernel((*ctx.tables, dout.contiguous()), (len(data), *ctx.groups))
        return gradient, None, None, None, None
