"""Whole rows copied, added or left out, with gradients that write each line of memory once. Torch fills the result first, or copies it twice."""
import math

import torch

from .gate import Kernel

# Smaller arrays are done before a kernel would have been called.
_WORTHWHILE = 1 << 15
_INDEX = "int64 (k)"
_mask = Kernel("rows", "mask", {"data": "float32 (a, b, w)", "lengths": "int64 (s)"}, {"out": "float32 (a, b, w)"}, integers=("first",),
               where={"t": "b if first else a"}, demands=("s == (a if first else b)",), sizes=("t", "s", "w", "first"), numbers="f")
_collect = Kernel("rows", "collect", {"data": "float32 (n, w)", "chosen": "bool (n)"}, {"out": "float32 (k, w)"}, integers=("k",),
                  demands=("k >= 0",), sizes=("n", "k", "w"))
_spread = Kernel("rows", "spread", {"rows": "float32 (k, w)", "chosen": "bool (n)"}, {"out": "float32 (n, w)"}, sizes=("n", "k", "w"))
_replace = Kernel("rows", "replace", {"old": "float32 (n, w)", "index": _INDEX, "others": "float32 (k, w) optional"}, {"out": "float32 (n, w)"},
                  sizes=("n", "k", "w"))
_add = Kernel("rows", "add", {"rows": "float32 (k, w)", "index": _INDEX}, {"out": "float32 (n, w)"}, integers=("n",), demands=("n >= 0",),
              sizes=("n", "k", "w"))
_place = Kernel("rows", "place", {"values": "float32 (n)", "index": "int64 (n)"}, {"out": "float32 (n, w)"}, integers=("w",), demands=("w >= 0",),
                sizes=("n", "w"))


def _fits(data):
    return data.numel() >= max(_WORTHWHILE, 1) and data.dtype is torch.float32 and data.is_contiguous() and not torch.compiler.is_compiling()


def _recorded(*tensors):
    return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)


def _matrix(data):
    return data.view(len(data), math.prod(data.shape[1:]))


def mask(data, lengths, value, first):
    """`data` (times, sequences, ...) up to each sequence's end, `value` behind it; with `first` the sequences come first. None without a kernel."""
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


def select(data, index):
    """``data.index_select(0, index)``."""
    if _fits(data) and _recorded(data):
        return _Selected.apply(data, index)
    return data.index_select(0, index)


class _Selected(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, index):
        ctx.save_for_backward(index)
        ctx.shape = data.shape
        return data.index_select(0, index)

    @staticmethod
    def backward(ctx, dout):
        index, = ctx.saved_tensors
        if not torch.is_grad_enabled():
            arrays = (_matrix(dout.contiguous()), index)
            plan = _add.plan(arrays, ctx.shape[:1])
            if plan is not None:
                return plan(arrays)[0].view(ctx.shape), None
        return dout.new_zeros(ctx.shape).index_add(0, index, dout), None  # which can be differentiated again


def chosen(data, marks):
    """The rows of `data` where the booleans `marks` say so."""
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


def replace(old, index, others):
    """``old.index_copy(0, index, others)``."""
    if _fits(old) and len(index) and others.is_contiguous():
        arrays = (_matrix(old), index, _matrix(others))
        plan = _replace.plan(arrays)
        if plan is not None and all(0 <= int(i) < len(old) for i in index.aminmax()):
            return _Replaced.apply(old, index, others) if _recorded(old, others) else plan(arrays)[0].view(old.shape)
    return old.index_copy(0, index, others)


class _Replaced(torch.autograd.Function):
    @staticmethod
    def forward(ctx, old, index, others):
        ctx.save_for_backward(index)
        return _replace((_matrix(old), index, _matrix(others)))[0].view(old.shape)

    @staticmethod
    def backward(ctx, dout):
        index, = ctx.saved_tensors
        d_old = d_others = None
        if ctx.needs_input_grad[0]:
            arrays = (_matrix(dout.contiguous()), index, None)
            plan = None if torch.is_grad_enabled() else _replace.plan(arrays)
            d_old = dout.index_fill(0, index, 0) if plan is None else plan(arrays)[0].view(dout.shape)
        if ctx.needs_input_grad[2]:
            d_others = dout.index_select(0, index)
        return d_old, None, d_others


def picked(data, index):
    """``data.gather(-1, index)`` for one number of each row: `index` has the size 1 in the last axis."""
    if _fits(data) and _recorded(data):
        return _Picked.apply(data, index)
    return data.gather(-1, index)


class _Picked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, index):
        ctx.save_for_backward(index)
        ctx.shape = data.shape
        return data.gather(-1, index)

    @staticmethod
    def backward(ctx, dout):
        index, = ctx.saved_tensors
        if not torch.is_grad_enabled():
            arrays = (dout.reshape(-1), index.reshape(-1))
            plan = _place.plan(arrays, ctx.shape[-1:])
            if plan is not None:
                return plan(arrays)[0].view(ctx.shape), None
        return dout.new_zeros(ctx.shape).scatter(-1, index, dout), None
