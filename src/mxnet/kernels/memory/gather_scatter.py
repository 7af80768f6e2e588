"""Gather, scatter and masking of whole rows, with gradients that write each row once. Torch fills the result first, or copies it twice."""
from __future__ import annotations

import math
from typing import Any

import torch

from ..runtime.contract import Kernel

# Elements below which torch is done before a kernel would have been called.
_WORTHWHILE = 1 << 15
_INDEX = "int64 (k)"
_WIDTH = ("1 <= w < 2147483648",)  # so that an index of any type can be compared with it
_mask = Kernel("memory/gather_scatter", "mask", {"data": "float32 (a, b, w)", "lengths": "int64 (s)"}, {"out": "float32 (a, b, w)"},
               integers=("first",),
               where={"t": "b if first else a"}, preconditions=("s == (a if first else b)",), sizes=("t", "s", "w", "first"), numbers="f")
_collect = Kernel("memory/gather_scatter", "collect", {"data": "float32 (n, w)", "chosen": "bool (n)"}, {"out": "float32 (k, w)"}, integers=("k",),
                  preconditions=("k >= 0",), sizes=("n", "k", "w"))
_spread = Kernel("memory/gather_scatter", "spread", {"rows": "float32 (k, w)", "chosen": "bool (n)"}, {"out": "float32 (n, w)"}, sizes=("n", "k",
                                                                                                                                        "w"))
_replace = Kernel("memory/gather_scatter", "replace", {"old": "float32 (n, w) optional", "index": _INDEX, "others": "float32 (k, w) optional"},
                  {"out": "float32 (n, w)"}, integers=("n", "w"), preconditions=("min(n, w) >= 0",), sizes=("n", "k", "w"))
_add = Kernel("memory/gather_scatter", "add", {"rows": "float32 (k, w)", "index": _INDEX}, {"out": "float32 (n, w)"}, integers=("n",),
              preconditions=("n >= 0",),
              sizes=("n", "k", "w"))
_pick = Kernel("memory/gather_scatter", "pick_{T}", {"data": "float32 (n, w)", "index": "T (n)"}, {"out": "float32 (n)"},
               preconditions=_WIDTH, sizes=("n", "w"))
_place = Kernel("memory/gather_scatter", "place_{T}", {"values": "float32 (n)", "index": "T (n)"}, {"out": "float32 (n, w)"}, integers=("w",),
                preconditions=_WIDTH,
                sizes=("n", "w"))
_gather = Kernel("memory/gather_scatter", "gather_{T}", {"data": "float32 (n, w)", "index": "T (k)"}, {"out": "float32 (k, w)"},
                 preconditions=("1 <= n < 2147483648",), sizes=("n", "k", "w"))
_mark = Kernel("memory/gather_scatter", "mark_{T}", {"index": "T (n)"}, {"out": "float32 (n, w)"}, integers=("w",), preconditions=_WIDTH,
               sizes=("n", "w"), numbers="ff")
_sum_up = Kernel("memory/gather_scatter", "sum_up", {"data": "float32 (n, length, w)"}, {"out": "float32 (n, length, w)"}, integers=("backwards",),
                 sizes=("n", "length", "w", "backwards"))
_ABREAST = 8  # columns from which on adding rows is faster than torch's sum of each column


def _fits(data):
    return data.numel() >= max(_WORTHWHILE, 1) and data.dtype is torch.float32 and data.is_contiguous() and not torch.compiler.is_compiling()


def _recorded(*tensors):
    return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)


def _matrix(data):
    return data if data.dim() == 2 else data.view(len(data), math.prod(data.shape[1:]))


def mask(data: torch.Tensor, lengths: torch.Tensor, value: float, first: Any) -> torch.Tensor | None:
    """Replace `data` (times, sequences, ...) behind each sequence's length by `value`; with `first`, sequences are axis 0. None without a kernel."""
    if not _fits(data):
        return None
    arrays = (data.view(*data.shape[:2], -1), lengths)
    plan = _mask.plan(arrays, (int(first),))
    if plan is None:
        return None
    return _Masked.apply(data, lengths, value, first) if _recorded(data) else plan(arrays, (value,))[0].view(data.shape)


class _Masked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, lengths, value, first):
        ctx.save_for_backward(lengths)
        ctx.first = first
        return mask(data, lengths, value, first)

    @staticmethod
    def backward(ctx, dout):
        lengths, = ctx.saved_tensors
        return mask(dout.contiguous(), lengths, 0.0, ctx.first), None, None, None


def select(data: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Return ``data.index_select(0, index)``."""
    if _fits(data) and _recorded(data):
        return _Selected.apply(data, index, None)
    return data.index_select(0, index)


def nearest(data: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Return the rows of `data` at `index` (k), of any type and clamped to the valid range."""
    if _fits(data) and data.dim() > 1 and len(data):
        arrays = (_matrix(data), index)
        plan = _gather.plan(arrays)
        if plan is not None:
            if _recorded(data):
                return _Selected.apply(data, index, plan)
            found, = plan(arrays)
            return found if data.dim() == 2 else found.view(-1, *data.shape[1:])
    return select(data, _clamped(index, len(data)))


def _clamped(index, size):
    return index.long().clamp(0, size - 1)


class _Selected(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, index, plan):
        ctx.save_for_backward(index)
        ctx.shape, ctx.nearest = data.shape, plan is not None
        return data.index_select(0, index) if plan is None else plan((_matrix(data), index))[0].view(-1, *data.shape[1:])

    @staticmethod
    def backward(ctx, dout):
        index, = ctx.saved_tensors
        if ctx.nearest:
            index = _clamped(index, ctx.shape[0])
        if not torch.is_grad_enabled():
            arrays = (_matrix(dout.contiguous()), index)
            plan = _add.plan(arrays, ctx.shape[:1])
            if plan is not None:
                return plan(arrays)[0].view(ctx.shape), None, None
        return dout.new_zeros(ctx.shape).index_add(0, index, dout), None, None  # which can be differentiated again


def chosen(data: torch.Tensor, marks: torch.Tensor) -> torch.Tensor:
    """Return the rows of `data` where the booleans `marks` are True."""
    if _fits(data):
        arrays = (_matrix(data), marks)
        plan = _collect.plan(arrays, (int(marks.count_nonzero()),)) if data.is_cpu else None
        if plan is not None:
            return _Chosen.apply(data, marks, plan) if _recorded(data) else plan(arrays)[0].view(-1, *data.shape[1:])
    return data.index_select(0, marks.nonzero().view(-1))


class _Chosen(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, marks, plan):
        ctx.save_for_backward(marks)
        ctx.shape = data.shape
        return plan((_matrix(data), marks))[0].view(-1, *data.shape[1:])

    @staticmethod
    def backward(ctx, dout):
        marks, = ctx.saved_tensors
        if not torch.is_grad_enabled():
            arrays = (_matrix(dout.contiguous()), marks)
            plan = _spread.plan(arrays)
            if plan is not None:
                return plan(arrays)[0].view(ctx.shape), None, None
        return dout.new_zeros(ctx.shape).index_copy(0, marks.nonzero().view(-1), dout), None, None


def replace(old: torch.Tensor, index: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Return ``old.index_copy(0, index, others)``."""
    if _fits(old) and len(index) and others.is_contiguous():
        arrays = (_matrix(old), index, _matrix(others))
        plan = _replace.plan(arrays, arrays[0].shape)
        if plan is not None and all(0 <= int(i) < len(old) for i in index.aminmax()):
            return _Replaced.apply(old, index, others) if _recorded(old, others) else plan(arrays)[0].view(old.shape)
    return old.index_copy(0, index, others)


class _Replaced(torch.autograd.Function):
    @staticmethod
    def forward(ctx, old, index, others):
        ctx.save_for_backward(index)
        matrix = _matrix(old)
        return _replace((matrix, index, _matrix(others)), matrix.shape)[0].view(old.shape)

    @staticmethod
    def backward(ctx, dout):
        index, = ctx.saved_tensors
        d_old = d_others = None
        if ctx.needs_input_grad[0]:
            arrays = (_matrix(dout.contiguous()), index, None)
            plan = None if torch.is_grad_enabled() else _replace.plan(arrays, arrays[0].shape)
            d_old = dout.index_fill(0, index, 0) if plan is None else plan(arrays)[0].view(dout.shape)
        if ctx.needs_input_grad[2]:
            d_others = dout.index_select(0, index)
        return d_old, None, d_others


def scattered(data: torch.Tensor, index: torch.Tensor, size: int) -> torch.Tensor:
    """Return zeros (size, ...) with the rows of `data` at `index` (k), which must lie in range."""
    if _fits(data) and len(data):
        matrix = _matrix(data)
        arrays = (None, index, matrix)
        plan = _replace.plan(arrays, (size, matrix.shape[1]))
        if plan is not None and all(0 <= int(i) < size for i in index.aminmax()):
            return _Scattered.apply(data, index, size, plan) if _recorded(data) else plan(arrays)[0].view(size, *data.shape[1:])
    return data.new_zeros(size, *data.shape[1:]).index_put((index,), data)


class _Scattered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, index, size, plan):
        ctx.save_for_backward(index)
        return plan((None, index, _matrix(data)))[0].view(size, *data.shape[1:])

    @staticmethod
    def backward(ctx, dout):
        index, = ctx.saved_tensors
        return dout.index_select(0, index), None, None, None


def marked(index: torch.Tensor, width: int, on: float, off: float) -> torch.Tensor | None:
    """Return float32 one-hot rows (n, width): `on` at `index` (n) if it lies in range, else `off`; None without a kernel."""
    if len(index) * width < _WORTHWHILE or torch.compiler.is_compiling():
        return None
    plan = _mark.plan((index,), (width,))
    return None if plan is None else plan((index,), (on, off))[0]


def summed(data: torch.Tensor, axis: int) -> torch.Tensor:
    """Return ``data.cumsum(axis)``."""
    plan = _summing(data, axis, False)
    if plan is None:
        return data.cumsum(axis)
    return _Summed.apply(data, axis) if _recorded(data) else _sum(data, axis, plan)


def _summing(data, axis, backwards):
    width = math.prod(data.shape[axis + 1:])
    return _sum_up.plan((data.view(-1, data.shape[axis], width),), (int(backwards),)) if width >= _ABREAST and _fits(data) else None


def _sum(data, axis, plan):
    return plan((data.view(-1, data.shape[axis], math.prod(data.shape[axis + 1:])),))[0].view(data.shape)


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, axis):
        ctx.axis = axis
        return _sum(data, axis, _summing(data, axis, False))

    @staticmethod
    def backward(ctx, dout):
        dout = dout.contiguous()
        plan = None if torch.is_grad_enabled() else _summing(dout, ctx.axis, True)
        return dout.flip(ctx.axis).cumsum(ctx.axis).flip(ctx.axis) if plan is None else _sum(dout, ctx.axis, plan), None


def picked(data: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Return one element of each row, (n) of (n, w), at `index`, of any type and clamped to the valid range."""
    if _fits(data):
        plan = _pick.plan((data, index))
        if plan is not None:
            return _Picked.apply(data, index, plan) if _recorded(data) else plan((data, index))[0]
    return data.gather(1, _column(index, data.shape[1])).view(-1)


def _column(index, width):
    return _clamped(index, width).view(-1, 1)


class _Picked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, index, plan):
        ctx.save_for_backward(index)
        ctx.shape = data.shape
        return plan((data, index))[0]

    @staticmethod
    def backward(ctx, dout):
        index, = ctx.saved_tensors
        if not torch.is_grad_enabled():
            arrays = (dout.contiguous(), index)
            plan = _place.plan(arrays, ctx.shape[1:])
            if plan is not None:
                return plan(arrays)[0], None, None
        return dout.new_zeros(ctx.shape).scatter(1, _column(index, ctx.shape[1]), dout.view(-1, 1)), None, None
