"""Products of large float32 matrices on processors where MKL, torch's library, is not the fastest.

MKL leaves the 512-bit vectors of other makers' processors unused: on an AMD EPYC of Zen 5 its products take 2.2 times as long as oneDNN's, which
torch contains, too (`benchmarks/operators.py`: FullyConnected, dot). Zen 4 computes 512-bit vectors in two halves and gains a fifth, from large
products only. On any processor products of denormal numbers are slow, see `denormals`.
"""
from __future__ import annotations

import functools

import torch

from ... import processor
from ..runtime.denormals import HEAVY, zeroed
from . import selector, tensor_cores

_WEIGHT = 1 << 14  # elements of the second matrix, below which torch's product is called directly
_OUTPUTS, _ROWS = 1 << 16, 16  # sizes from which on torch's copying of the bias to all rows for MKL costs more than oneDNN's slower product
_BLOCK = 1 << 20  # outputs of a block, which is computed and then copied into place
_WORK_IN_BATCH = 1 << 23  # least multiplications of each product of a batch: the results have to be stacked


def _computes_in_halves():
    return processor.maker() == "AuthenticAMD" and processor.family() < 26


@functools.cache
def _least_work():
    """Return the number of multiplications from which on oneDNN is faster, including a gradient that is computed in Python."""
    return HEAVY if _computes_in_halves() else 1 << 21


@functools.cache
def _least_columns():
    """Return the number of result columns from which on oneDNN is faster although it copies a transposed first matrix (MKL does not)."""
    return 1 << 9 if _computes_in_halves() else 1 << 6


@functools.cache
def _prefers_onednn():
    """Return True on x86 processors with AVX-512 of other makers than Intel."""
    if not torch.backends.mkldnn.is_available() or torch.backends.cpu.get_cpu_capability() != "AVX512":
        return False
    return processor.maker() not in ("GenuineIntel", "")


def prefers_onednn_layout(dtype: torch.dtype) -> bool:
    """Return True if oneDNN's blocked layout is the fastest for constant weights of this type."""
    if dtype is torch.bfloat16:
        return torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return dtype is torch.float32 and _prefers_onednn()


def linear(data: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """Return ``data @ weight.T + bias`` over the last axis of `data`."""
    if weight.numel() < _WEIGHT or not _suits(data, weight, bias):
        return tensor_cores.linear(data, weight, bias) if data.is_cuda else torch._C._nn.linear(data, weight, bias)
    rows = data if data.dim() == 2 else data.reshape(-1, data.shape[-1])
    out = _linear(rows, weight, bias)
    return out if data.dim() == 2 else out.view(*data.shape[:-1], weight.shape[0])


def matmul(a: torch.Tensor, b: torch.Tensor, memory: torch.Tensor | None = None) -> torch.Tensor:
    """Return the product of two matrices; with `memory`, a tensor of its shape, write it there and record no gradient."""
    if b.numel() < _WEIGHT or a.shape[1] != b.shape[0] or not _suits(a, b, None):
        return torch.mm(a, b) if memory is None else torch.mm(a, b, out=memory)
    if memory is None and torch.is_grad_enabled():
        return _linear(a, b.t(), None)
    return _unrecorded(a, b, memory)


def _unrecorded(a, b, memory):
    if selector.suits(a, b):
        return selector.product(a, b, None, memory, lambda: _by_library(a, b, memory))
    return _by_library(a, b, memory)


def _by_library(a, b, memory):
    if memory is None and (a.is_contiguous() or b.shape[1] >= _least_columns()):
        return _library_linear(a, b.t(), None)
    with zeroed(a.shape[0] * b.numel()):
        if memory is None:
            return torch.mm(a, b)
        return _onednn_into(a, b.t(), memory) if _prefers_onednn() else torch.mm(a, b, out=memory)


def of_weight(dout: torch.Tensor, rows: torch.Tensor, memory: torch.Tensor | None = None) -> torch.Tensor:
    """Return ``dout.T @ rows``, a weight's gradient (K, C), for `rows` (N, C) and the result's gradient `dout` (N, K); `memory` as in `matmul`."""
    a = dout.t()
    if a.is_cuda and tensor_cores.suits(a, rows):
        return tensor_cores.product(a, rows) if memory is None else tensor_cores.switched(torch.mm, a, rows, out=memory)
    if len(rows) <= selector.ROWS and not torch.is_grad_enabled() and _plain(a, rows, None) and a.shape[1] == len(rows):
        return _unrecorded(a, rows, memory)
    return matmul(a, rows, memory)


def _least_work_in_batch():
    """Return the multiplications of each product of a batch from which on separate calls of oneDNN are faster."""
    return max(_WORK_IN_BATCH, _least_work())


def batched(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the products of two batches of matrices, (..., n, k) and (..., k, m), with the same leading axes."""
    if a.dim() < 3 or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2] or not a.numel() or not b.numel():
        return torch.matmul(a, b)
    each, work = _work_in_batch(a, b)
    if work < HEAVY and (each < _least_work_in_batch() or not _prefers_onednn()) or not _plain(_first(a), _first(b), None):
        return torch.matmul(a, b)
    if torch.is_grad_enabled() and (a.requires_grad or b.requires_grad):
        return _Batched.apply(a, b)
    return _batched(a, b)


def _work_in_batch(a, b):
    """Return the number of multiplications of each product, and of all."""
    return a.shape[-2] * b.shape[-2] * b.shape[-1], a.numel() * b.shape[-1]


def _first(batch):
    return batch[(0,) * (batch.dim() - 2)]


def _batched(a, b):
    each, work = _work_in_batch(a, b)
    with zeroed(work):
        if each < _least_work_in_batch() or not _prefers_onednn():
            return torch.matmul(a, b)
        out = [_onednn(left, right.t(), None) for left, right in zip(a.flatten(0, -3).unbind(), b.flatten(0, -3).unbind())]
        return torch.stack(out).view(*a.shape[:-1], b.shape[-1])


def _suits(data, weight, bias):
    """Return True if oneDNN, or flushing denormal numbers to zero, can make the product faster."""
    k = data.shape[-1] if data.dim() else 0
    work = data.numel() // k * weight.numel() if k else 0
    return work >= _least_work() and _plain(data, weight, bias) and (work >= HEAVY or _prefers_onednn())


def _plain(data, weight, bias):
    """Return True if all are plain float32 tensors on the CPU, and nothing is being compiled."""
    return (data.dtype is torch.float32 and weight.dtype is torch.float32 and weight.dim() == 2 and data.dim() >= 2
            and type(data) is type(weight) is torch.Tensor and data.device.type == weight.device.type == "cpu"
            and (bias is None or type(bias) is torch.Tensor and bias.dtype is torch.float32) and not torch.compiler.is_compiling())


def _linear(rows, weight, bias):
    if torch.is_grad_enabled() and (rows.requires_grad or weight.requires_grad or bias is not None and bias.requires_grad):
        return _Linear.apply(rows, weight, bias)
    return _product(rows, weight, bias)


def _product(rows, weight, bias):
    if selector.suits(rows, weight.t()):
        return selector.product(rows, weight.t(), bias, None, lambda: _library_linear(rows, weight, bias))
    return _library_linear(rows, weight, bias)


def _library_linear(rows, weight, bias):
    with zeroed(rows.shape[0] * weight.numel()):
        adds_bias = bias is not None and len(weight) >= _OUTPUTS and len(rows) >= _ROWS and torch.backends.mkldnn.is_available()
        return _onednn(rows, weight, bias) if adds_bias or _prefers_onednn() else torch._C._nn.linear(rows, weight, bias)


def _onednn(rows, weight, bias):
    # Few rows are bound by reading the weight, which oneDNN does efficiently in its own layout only.
    if rows.shape[0] < 4 and not weight.is_contiguous() or rows.shape[1] != weight.shape[1]:
        return torch._C._nn.linear(rows, weight, bias)
    return torch.ops.mkldnn._linear_pointwise(_dense(rows), _dense(weight), bias, "none", [], "")


def _onednn_into(rows, weight, memory):
    """Write the product to `memory` in blocks that fit the caches: torch's oneDNN call returns new memory, whose allocation is slow if large."""
    block = max(16, _BLOCK // max(1, len(weight)))
    for start in range(0, len(rows), block):
        memory[start:start + block] = _onednn(rows[start:start + block], weight, None)
    return memory


def _dense(matrix):
    """Return the matrix with dense rows or columns, copied if necessary: oneDNN has only a reference implementation for others."""
    return matrix if matrix.is_contiguous() or matrix.t().is_contiguous() else matrix.contiguous()


class _Batched(torch.autograd.Function):
    """`batched`, with a gradient made of such products again."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return _batched(a, b)

    @staticmethod
    def backward(ctx, dout):
        a, b = ctx.saved_tensors
        return (batched(dout, b.mT) if ctx.needs_input_grad[0] else None,
                batched(a.mT, dout) if ctx.needs_input_grad[1] else None)


class _Linear(torch.autograd.Function):
    """`linear`, with a differentiable gradient made of such products."""

    @staticmethod
    def forward(ctx, rows, weight, bias):
        ctx.save_for_backward(rows, weight)
        return _product(rows, weight, bias)

    @staticmethod
    def backward(ctx, dout):
        rows, weight = ctx.saved_tensors
        return (matmul(dout, weight) if ctx.needs_input_grad[0] else None,
                of_weight(dout, rows) if ctx.needs_input_grad[1] else None,
                dout.sum(0) if ctx.needs_input_grad[2] else None)
