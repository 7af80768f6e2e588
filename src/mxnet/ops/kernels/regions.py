"""Pooling of regions of feature maps. Each is small and of its own size, so that in torch the calls take longer than the numbers."""
import torch

from . import function

_LARGEST_MAP = (1 << 31) - 1  # pixels: an int32 says which was the largest
_POINTERS = {"largest": "p" * 8, "largest_backward": "pppp", "weighted": "p" * 5, "weighted_backward": "p" * 5, "sensitive": "p" * 5,
             "sensitive_backward": "p" * 5}


def usable(data):
    """Whether the kernels can pool these feature maps."""
    return type(data) is torch.Tensor and data.dtype is torch.float32 and data.device.type == "cpu" and data.is_contiguous() \
        and data.shape[2] * data.shape[3] <= _LARGEST_MAP and not torch.compiler.is_compiling() and _kernel("largest") is not None


def largest(data, images, bins, fallback):
    """The largest value in each bin of each region, 0 in an empty bin: (R, C, rows, columns).

    Parameters
    ----------
    data : (N, C, H, W)
        Feature maps for which `usable` holds.
    images : (R,) int64
        Regions of other images than 0 to N - 1 give zeros.
    bins : tuple of 4 int64 tensors
        Where the bins begin and end down (R, rows), then across (R, columns).
    fallback : callable
        Computes the same of `data` in torch, for a gradient that is to be differentiated again.
    """
    return _call(_Largest, data, images, bins, (bins[0].shape[1], bins[2].shape[1]), fallback)


def weighted(data, images, rows, columns, groups, fallback):
    """``sum_hw rows[r, p, h] * columns[r, q, w] * data[image of r, c, h, w]`` for each region: (R, C, p, q).

    Parameters
    ----------
    data, images, fallback
        As for `largest`.
    rows, columns : (R, p, H), (R, q, W)
        Weights.
    groups : (int, int), optional
        Bin (p, q) reads the one of that many groups of channels (down, right) that belongs to it.
    """
    weights = tuple(w.contiguous() for w in (rows, columns))
    return _call(_Weighted, data, images, weights, (rows.shape[1], columns.shape[1]), fallback, groups)


def _call(operation, data, images, tables, size, fallback, *extra):
    tables = (images.contiguous(), *(t.contiguous() for t in tables))
    shape = (*data.shape, len(images), *size)
    if data.requires_grad and torch.is_grad_enabled():
        return operation.apply(data, tables, shape, fallback, *extra)
    return operation.run(data, tables, shape, *extra)


def _kernel(entry):
    sizes = 9 if entry.startswith("sensitive") else 7
    return function("regions", entry, _POINTERS[entry] + "l" * sizes + "i")


def _run(entry, arrays, shape):
    _kernel(entry)(*(None if a is None else a.data_ptr() for a in arrays), *shape, torch.get_num_threads())


def _result(data, shape, depth):
    return data.new_zeros(shape[4], depth, *shape[5:])


def _differentiable_gradient(fallback, data, dout):
    return torch.autograd.grad(fallback(data), data, dout, create_graph=True)[0]


class _Largest(torch.autograd.Function):
    @staticmethod
    def run(data, tables, shape, where=None):
        out = _result(data, shape, shape[1])
        _run("largest", (data, *tables, out, where), shape)
        return out

    @staticmethod
    def forward(ctx, data, tables, shape, fallback):
        where = torch.full((shape[4], shape[1], *shape[5:]), -1, dtype=torch.int32)
        ctx.images, ctx.shape, ctx.fallback = tables[0], shape, fallback
        ctx.save_for_backward(data, where)
        return _Largest.run(data, tables, shape, where)

    @staticmethod
    def backward(ctx, dout):
        data, where = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _differentiable_gradient(ctx.fallback, data, dout), None, None, None
        gradient = torch.zeros_like(data)
        _run("largest_backward", (where, ctx.images, dout.contiguous(), gradient), ctx.shape)
        return gradient, None, None, None


class _Weighted(torch.autograd.Function):
    @staticmethod
    def run(data, tables, shape, groups):
        if groups is None:
            out = _result(data, shape, shape[1])
            _run("weighted", (data, *tables, out), shape)
        else:
            out = _result(data, shape, shape[1] // (groups[0] * groups[1]))
            _run("sensitive", (data, *tables, out), (*shape, *groups))
        return out

    @staticmethod
    def forward(ctx, data, tables, shape, fallback, groups):
        ctx.tables, ctx.shape, ctx.fallback, ctx.groups = tables, shape, fallback, groups
        ctx.save_for_backward(data)
        return _Weighted.run(data, tables, shape, groups)

    @staticmethod
    def backward(ctx, dout):
        data, = ctx.saved_tensors
        if torch.is_grad_enabled():
            gradient = _differentiable_gradient(ctx.fallback, data, dout)
        else:
            gradient = torch.zeros_like(data)
            entry, shape = ("weighted_backward", ctx.shape) if ctx.groups is None else ("sensitive_backward", (*ctx.shape, *ctx.groups))
            _run(entry, (*ctx.tables, dout.contiguous(), gradient), shape)
        return gradient, None, None, None, None
