"""Fully connected layers with a large weight and mostly zero inputs: unused columns are skipped, and gradients are written in place.

A network over hundreds of thousands of features gets rows of mostly zeros. Weight columns of features that no row of a batch contains are multiplied
by zeros only; they take a gigabyte, and their product most of a step.
"""
import logging
from typing import Any, Optional

import torch
from torch.utils.weak import WeakIdKeyDictionary

from ..kernels.gemm import matmul, tensor_cores
from ..kernels.runtime.denormals import HEAVY, zeroed

LARGE = 1 << 22  # elements of a weight from which on it is worth looking
_FEW = 1 / 4  # of the columns: below, they are taken out and multiplied for themselves
_SAMPLE = 1 << 12  # elements of the data that are looked at first
_DENSE = 1 / 16  # of the sample: above, the search ends
_log = logging.getLogger("mxnet")
_lent = WeakIdKeyDictionary()  # weight -> a list with the memory for its gradient, or with none once that is in use
_told: set[tuple[int, ...]] = set()


def lend_memory(weight: torch.Tensor, memory: torch.Tensor) -> None:
    """Have `linear` write the first gradient of this tensor to `memory`, which is of its shape and type, and which nothing else uses meanwhile."""
    _lent[weight] = [memory]


def linear(data: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor]) -> torch.Tensor:
    """``data @ weight.T + bias`` over the last axis of `data`, with a weight (K, C).

    If most columns of `data` are zero the others alone are multiplied: a weight there that is not finite, whose product with 0 would be NaN, is
    passed over. The gradient of the weight is written to memory that was lent for it (`lend_memory`).
    """
    rows = data.reshape(-1, data.shape[-1])
    differentiates = torch.is_grad_enabled()
    used = None if differentiates and data.requires_grad else _used_columns(rows, weight)
    if differentiates and weight.requires_grad and not torch.compiler.is_compiling():
        out = _Wide.apply(rows, weight, bias, used)
    elif used is not None:
        out = matmul.linear(rows.index_select(1, used), weight.index_select(1, used), bias)
    else:
        return matmul.linear(data, weight, bias)
    return out if data.dim() == 2 else out.view(*data.shape[:-1], weight.shape[0])


def _used_columns(rows: torch.Tensor, weight: torch.Tensor) -> Optional[torch.Tensor]:
    """The numbers of the columns that are not zero throughout; None if these are too many, or are not to be looked for."""
    if not _plain(rows) or not _plain(weight) or rows.shape[1] != weight.shape[1] or not rows.numel() or torch.compiler.is_compiling():
        return None
    rows = rows.detach()
    sample = rows.view(-1)[::max(1, rows.numel() // _SAMPLE)]
    if int(sample.count_nonzero()) > _DENSE * len(sample):
        return None
    # A fifth of the time that `any` takes.
    used = ((rows.amax(0) != 0) | (rows.amin(0) != 0)).nonzero().view(-1)
    if len(used) > _FEW * rows.shape[1]:
        return None
    _tell(rows, weight)
    return used


def _plain(tensor: torch.Tensor) -> bool:
    return type(tensor) is torch.Tensor and tensor.device.type == "cpu" and tensor.dtype is torch.float32 and tensor.is_contiguous()


def _tell(rows: torch.Tensor, weight: torch.Tensor) -> None:
    """Log once for each shape of weights that sparse data and weights would be faster."""
    if tuple(weight.shape) in _told:
        return
    _told.add(tuple(weight.shape))
    share = 100 * (1 - int(rows.count_nonzero()) / rows.numel())
    _log.warning("FullyConnected: %.2f %% of its data %s are zeros. The columns of the weight %s that meet nothing else are left out of the product, "
                 "but gradient and update still go over all of it: `tostype('csr')` of the data and `mx.sym.sparse.dot` with a weight of stype "
                 "'row_sparse' would spare these, too (examples/wide_network.py)", share, tuple(rows.shape), tuple(weight.shape))


class _Wide(torch.autograd.Function):
    """`linear` of rows, with a gradient that can be differentiated again."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor], used: Optional[torch.Tensor]) -> torch.Tensor:
        ctx.memory, ctx.shape, ctx.used = _lent.get(weight), weight.shape, used
        if used is None:
            ctx.save_for_backward(rows, weight)
            return matmul.linear(rows, weight, bias)
        rows = rows.index_select(1, used)
        ctx.save_for_backward(rows, weight)
        return matmul.linear(rows, weight.index_select(1, used), bias)

    @staticmethod
    def backward(ctx: Any, dout: torch.Tensor) -> tuple[Optional[torch.Tensor], ...]:  # type: ignore[override]
        rows, weight = ctx.saved_tensors
        return ((tensor_cores.product if dout.is_cuda else matmul.matmul)(dout, weight) if ctx.needs_input_grad[0] else None,
                _of_weight(ctx, dout, rows) if ctx.needs_input_grad[1] else None,
                _column_sums(dout) if ctx.needs_input_grad[2] else None, None)


def _column_sums(dout: torch.Tensor) -> torch.Tensor:
    """Return ``dout.sum(0)`` as a product with ones, which is three times as fast in torch for few long rows."""
    if torch.is_grad_enabled() or not _plain(dout):
        return dout.sum(0)
    with zeroed(HEAVY):
        return torch.mv(dout.t(), dout.new_ones(len(dout)))


def _of_weight(ctx: Any, dout: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    memory = ctx.memory.pop() if ctx.memory and not torch.is_grad_enabled() else None
    if ctx.used is None:
        return matmul.of_weight(dout, rows, None if memory is None else memory.detach())
    part = matmul.of_weight(dout, rows)
    if memory is None:
        return part.new_zeros(ctx.shape).index_copy(1, ctx.used, part) if torch.is_grad_enabled() else \
            part.new_zeros(ctx.shape).index_copy_(1, ctx.used, part)
    # Another tensor on the same memory: torch adopts it as the gradient if it has no other reference.
    return memory.detach().zero_().index_copy_(1, ctx.used, part)
