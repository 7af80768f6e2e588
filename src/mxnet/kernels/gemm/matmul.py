"""Products of large float32 matrices on processors where torch's own library is not the fastest there is.

Torch multiplies float32 matrices with MKL, which leaves the wide vectors of other makers' processors unused: on an AMD EPYC of Zen 5 its products
take 2.2 times as long as oneDNN's, which torch has aboard, too (`benchmarks/operators.py`: FullyConnected, dot). Zen 4 computes wide vectors in two
halves, and gains a fifth, from large products only. On any processor they are slow where numbers are too small to be normal, see `denormals`.
"""
import functools

import torch

from ... import processor
from ..runtime.denormals import HEAVY, zeroed
from . import selector, tensor_cores

_WEIGHT = 1 << 14  # elements of the second matrix, and
_OUTPUTS, _ROWS = 1 << 16, 16  # from which on writing the bias to all rows first, as torch does for MKL, costs more than oneDNN is behind
_BLOCK = 1 << 20  # outputs that are computed before they are copied to where they are to stay
_WORK_IN_BATCH = 1 << 23  # multiplications of each product of a batch, at least: the results are put together


def _computes_in_halves():
    return processor.maker() == "AuthenticAMD" and processor.family() < 26


@functools.cache
def _least_work():
    """The multiplications from which on calling oneDNN pays, with a gradient that is computed in Python."""
    return HEAVY if _computes_in_halves() else 1 << 21


@functools.cache
def _least_columns():
    """Those of the result from which on it pays to put a transposed first matrix in order, as torch does for oneDNN: MKL takes it as it is."""
    return 1 << 9 if _computes_in_halves() else 1 << 6


@functools.cache
def _prefers_onednn():
    """True on x86 processors with AVX-512 that Intel did not make."""
    if not torch.backends.mkldnn.is_available() or torch.backends.cpu.get_cpu_capability() != "AVX512":
        return False
    return processor.maker() not in ("GenuineIntel", "")


def keeps(dtype):
    """Whether oneDNN's own order is the fastest for weights of this type that stay the same."""
    if dtype is torch.bfloat16:
        return torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return dtype is torch.float32 and _prefers_onednn()


def linear(data, weight, bias=None):
    """``data @ weight.T + bias`` over the last axis of `data`."""
    if weight.numel() < _WEIGHT or not _suits(data, weight, bias):
        return tensor_cores.linear(data, weight, bias) if data.is_cuda else torch._C._nn.linear(data, weight, bias)
    rows = data if data.dim() == 2 else data.reshape(-1, data.shape[-1])
    out = _linear(rows, weight, bias)
    return out if data.dim() == 2 else out.view(*data.shape[:-1], weight.shape[0])


def matmul(a, b, memory=None):
    """The product of two matrices, in `memory` of its shape if that can be, and nothing is recorded."""
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


def of_weight(dout, rows, memory=None):
    """``dout.T @ rows``, in `memory` as for `matmul`: the gradient of a weight (K, C) whose product with `rows` (N, C) has the gradient `dout`."""
    a = dout.t()
    if a.is_cuda and tensor_cores.suits(a, rows):
        return tensor_cores.product(a, rows) if memory is None else tensor_cores.switched(torch.mm, a, rows, out=memory)
    if len(rows) <= selector.ROWS and not torch.is_grad_enabled() and _plain(a, rows, None) and a.shape[1] == len(rows):
        return _unrecorded(a, rows, memory)
    return matmul(a, rows, memory)


def _least_work_in_batch():
    """The multiplications of each product of a batch from which on calling oneDNN for one after another pays."""
    return max(_WORK_IN_BATCH, _least_work())


def batched(a, b):
    """The products of two batches of matrices, (..., n, k) and (..., k, m); their leading axes are the same."""
    if a.dim() < 3 or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2] or not a.numel() or not b.numel():
        return torch.matmul(a, b)
    each, work = _work_in_batch(a, b)
    if work < HEAVY and (each < _least_work_in_batch() or not _prefers_onednn()) or not _plain(_first(a), _first(b), None):
        return torch.matmul(a, b)
    if torch.is_grad_enabled() and (a.requires_grad or b.requires_grad):
        return _Batched.apply(a, b)
    return _batched(a, b)


def _work_in_batch(a, b):
    """The multiplications of each product, and of all."""
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
    """Whether there is something to gain: from oneDNN, or because denormal numbers would count."""
    k = data.shape[-1] if data.dim() else 0
    work = data.numel() // k * weight.numel() if k else 0
    return work >= _least_work() and _plain(data, weight, bias) and (work >= HEAVY or _prefers_onednn())


def _plain(data, weight, bias):
    """Whether they are nothing but float32 matrices on the CPU."""
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
    # Few rows are a matter of reading the weight once, which oneDNN does well in its own order only.
    if rows.shape[0] < 4 and not weight.is_contiguous() or rows.shape[1] != weight.shape[1]:
        return torch._C._nn.linear(rows, weight, bias)
    return torch.ops.mkldnn._linear_pointwise(_whole(rows), _whole(weight), bias, "none", [], "")


def _onednn_into(rows, weight, memory):
    """Blocks that the caches hold: torch lets oneDNN write to fresh memory only, and finding that takes as long as the product if it is large."""
    block = max(16, _BLOCK // max(1, len(weight)))
    for start in range(0, len(rows), block):
        memory[start:start + block] = _onednn(rows[start:start + block], weight, None)
    return memory


def _whole(matrix):
    """The matrix without gaps between its rows, or its columns: oneDNN has only a reference implementation for others."""
    return matrix if matrix.is_contiguous() or matrix.t().is_contiguous() else matrix.contiguous()


class _Batched(torch.autograd.Function):
    """`batched`, with a gradient that is made of such products again."""

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
    """`linear`, with a gradient that is made of such products again, so that it can be differentiated."""

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
