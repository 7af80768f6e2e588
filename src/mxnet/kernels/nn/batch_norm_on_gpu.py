"""Fused batch normalization for training on a GPU, with an optional residual addition and ReLU.

The kernels are in Triton (`batch_norm_triton`), on which CUDA builds of torch depend. Such a layer is bound by memory traffic, so each array is read
as few times as the mathematics allows.
"""
from __future__ import annotations

import logging
import threading
from typing import Any

import torch

from ..runtime.triton_kernels import OLDEST, installed
from ..runtime.triton_kernels import interpreted as _interpreted
from ..runtime.triton_kernels import on as _on

_log = logging.getLogger(__name__)
# Elements below which torch is done before three kernels would have been started (and nothing is compiled).
_WORTHWHILE = 1 << 14
_TYPES = torch.float16, torch.bfloat16, torch.float32
_TILE = 4096  # elements of a program's tile
_MOST_CHANNELS = 64  # of a tile: a row of float16 fills a cache line
_PARTS = 1024  # most parts of the rows in sums; programs with _TILE // _PARTS channels join them
_PROGRAMS = 1024, 2048  # of the kernels that sum, and that write an array; a GPU runs about four on each of up to 160 multiprocessors at once
_LARGEST = 1 << 16, 1 << 30  # channels and rows
_WARPS = 8
_ALIGNED = 16  # multiple of addresses (bytes) and of channels for which Triton specializes kernels


def _kernels() -> Any:
    """Return the module of the kernels, or None without triton."""
    if not installed():
        return None
    from . import batch_norm_triton

    return batch_norm_triton
_usable: dict[tuple, bool] = {}
_compiling: dict[tuple, threading.Thread] = {}
_VARIANTS = (True, False, True), (True, True, False), (False, False, True)  # with a ReLU, an addition, a bias


def available(device: torch.device, dtype: torch.dtype = torch.float32) -> bool:
    """Return True if the kernels run on a device. The first call starts a thread that compiles and tests them; until it is done, torch's run."""
    if dtype not in _TYPES or _kernels() is None:
        return False
    if _interpreted():
        return device.type == "cpu"
    found = _usable.get((device, dtype))
    if found is None and device.type == "cuda" and (device, dtype) not in _compiling and not torch.cuda.is_current_stream_capturing():
        if torch.cuda.get_device_capability(device) < OLDEST:
            _usable[device, dtype] = False
        else:
            _compiling[device, dtype] = thread = threading.Thread(target=_try, args=(device, dtype), name="Triton compiles batch norms")
            thread.start()
    return bool(found)


def compiling() -> bool:
    """Return True while kernels are being compiled: a graph captured now would not contain them."""
    return any(thread.is_alive() for thread in list(_compiling.values()))


def wait() -> None:
    """Wait until all compilations are done."""
    for thread in list(_compiling.values()):
        thread.join()


def _try(device: torch.device, dtype: torch.dtype) -> None:
    """Run a small layer forward and backward, and record if it works: Triton's compiler may lack a tool on this machine."""
    try:
        data = torch.zeros(1, 64, 2, 2, dtype=dtype, device=device).contiguous(memory_format=torch.channels_last)
        zeros, ones = torch.zeros(64, device=device), torch.ones(64, device=device)
        for relu, adds, shifts in _VARIANTS:
            bias, residual = zeros.to(dtype) if shifts else None, data if adds else None
            with _on(device):
                out, mean, inverse = _forward(data, residual, ones, zeros, zeros.clone(), ones.clone(), bias, 1e-3, 0.9, relu)
                _backward(out, data, out if adds and relu else None, ones, zeros, mean, inverse, bias, relu, adds, True)
            if not threading.main_thread().is_alive():
                return  # the program ends
    except Exception as error:  # of the compiler, the assembler or the driver
        _log.warning("batch norms train on torch's kernels, as Triton's fail on %s: %s", device, str(error).strip()[:300])
        _usable[device, dtype] = False
    else:
        _usable[device, dtype] = True


def _rows_of_channels(tensor: torch.Tensor) -> bool:
    """Return True if a tensor is contiguous with its channels last."""
    return tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last) or tensor.dim() == 2 and tensor.is_contiguous()


def _arranged(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous(memory_format=torch.channels_last) if tensor.dim() == 4 else tensor.contiguous()


def _fits(data, parameters, residual, bias) -> bool:
    if type(data) is not torch.Tensor or data.numel() < max(_WORTHWHILE, 1) or not _rows_of_channels(data):
        return False
    channels = data.shape[1]
    if channels > _LARGEST[0] or data.numel() // channels > _LARGEST[1] or not available(data.device, data.dtype):
        return False
    vectors = [(p, p.dtype is torch.float32) for p in parameters]
    if bias is not None:
        vectors.append((bias, bias.dtype in _TYPES))
    if not all(typed and p.shape == (channels,) and p.is_contiguous() and p.device == data.device for p, typed in vectors):
        return False
    return residual is None or (residual.shape == data.shape and residual.dtype is data.dtype and residual.device == data.device)


def batch_norm(data: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, moving_mean: torch.Tensor, moving_var: torch.Tensor,
               residual: torch.Tensor | None = None, *, bias: torch.Tensor | None = None, relu: bool = False, **attributes: Any) -> Any:
    """Compute ``relu(BatchNorm(data + bias) + residual)`` in training; each step but BatchNorm is optional. Return None where no kernel fits.

    The bias, one number for each channel, affects the moving mean only, and its gradient is 0, as a batch norm removes any shift. `attributes` are
    those of BatchNorm.
    """
    if not _fits(data, (gamma, beta, moving_mean, moving_var), residual, bias):
        return None
    return _Fused.apply(data, None if attributes.get("fix_gamma", True) else gamma, beta, None if residual is None else _arranged(residual), bias,
                        moving_mean, moving_var, attributes.get("eps", 1e-3), attributes.get("momentum", 0.9), bool(relu))


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, gamma, beta, residual, bias, moving_mean, moving_var, eps, momentum, relu):
        with _on(data.device):
            out, mean, inverse = _forward(data, residual, gamma, beta, moving_mean, moving_var, bias, eps, momentum, relu)
        ctx.relu, ctx.adds, ctx.eps = relu, residual is not None, eps
        # Without a residual, the backward kernels recompute the ReLU's mask from `data`.
        ctx.save_for_backward(data, gamma, beta, mean, inverse, out if relu and residual is not None else None, bias)
        return out

    @staticmethod
    def backward(ctx, dout):
        data, gamma, beta, mean, inverse, out, bias = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradients will be differentiated themselves
            return _recorded_gradients(ctx, dout, data, gamma, beta, out, bias)
        dout = _arranged(dout)
        with _on(data.device):
            dx, dgamma, dbeta, kept, dbias = _backward(dout, data, out, gamma, beta, mean, inverse, bias, ctx.relu, ctx.adds,
                                                       ctx.needs_input_grad[0])
        found = dx, None if gamma is None else dgamma, dbeta, kept, dbias
        return (*(g if needed else None for g, needed in zip(found, ctx.needs_input_grad)), None, None, None, None, None)


def _recorded_gradients(ctx, dout, data, gamma, beta, out, bias):
    """Return the gradients computed by torch's operators, which can be differentiated again."""
    normal = torch.batch_norm(data, torch.ones_like(beta) if gamma is None else gamma, beta, None, None, True, 0.0, ctx.eps, True)
    kept = torch.where((out if ctx.adds else normal) > 0, dout, 0) if ctx.relu else dout
    needed = [i for i in range(3) if ctx.needs_input_grad[i]]
    found: list[Any] = [None] * 10
    if needed:
        gradients = torch.autograd.grad(normal, [(data, gamma, beta)[i] for i in needed], kept, create_graph=True)
        for i, gradient in zip(needed, gradients):
            found[i] = gradient
    if ctx.needs_input_grad[3]:
        found[3] = kept
    if ctx.needs_input_grad[4]:
        found[4] = torch.zeros_like(bias)
    return tuple(found)


def _blocks(channels: int) -> tuple[int, int]:
    """Return the rows and channels of a tile."""
    width = min(max(1 << (channels - 1).bit_length(), 8), _MOST_CHANNELS)
    return _TILE // width, width


def _partition(rows: int, channels: int, programs: int, most: int) -> tuple[int, int]:
    """Return the number of parts of the rows for about `programs` programs, and the rows of a part: a multiple of the tile's."""
    height, width = _blocks(channels)
    parts = min(max(programs // -(-channels // width), 1), most)
    part = -(-rows // (parts * height)) * height
    return -(-rows // part), part


_started: dict[tuple, Any] = {}


def _start(name, grid, tensors, channels, numbers, constants):
    """Start a kernel, whose parameters are tensors, numbers and constants in this order.

    At every start Triton selects the specialization for types, alignments and constants, which takes longer than the start itself. So the compiled
    kernel is cached here for aligned addresses; for others Triton selects it each time.
    """
    plain = channels > 1 and not any(t.data_ptr() % _ALIGNED for t in tensors)
    key = name, channels % _ALIGNED == 0, tensors[0].device, *[t.dtype for t in tensors], *constants
    found = _started.get(key) if plain else None
    if found is not None:
        found[grid](*tensors, *numbers, *constants)
        return
    made = getattr(_kernels(), name)[grid](*tensors, *numbers, *constants, num_warps=_WARPS)
    if plain and made is not None:  # None from the interpreter
        _started[key] = made


def _forward(data, residual, gamma, beta, moving_mean, moving_var, bias, eps, momentum, relu):
    """Return the result, and the mean and ``1 / sqrt(var + eps)`` of each channel."""
    channels = data.shape[1]
    rows = data.numel() // channels
    height, width = _blocks(channels)
    columns = -(-channels // width)
    parts, part = _partition(rows, channels, _PROGRAMS[0], _PARTS)
    sums = torch.empty(2, parts, channels, dtype=torch.float32, device=data.device)
    mean, inverse = torch.empty_like(beta), torch.empty_like(beta)
    out = _like(data)
    _start("statistics", (columns, parts, 1), (data, sums), channels, (rows, channels, part), (height // 2, width))
    joined = _TILE // _PARTS
    moments = sums, beta if bias is None else bias, moving_mean, moving_var, mean, inverse
    _start("join_statistics", (-(-channels // joined), 1, 1), moments, channels,
           (rows, channels, part, parts, float(eps), float(momentum)), (bias is not None, _PARTS, joined))
    parts, part = _partition(rows, channels, _PROGRAMS[1], rows)
    tensors = data, data if residual is None else residual, beta if gamma is None else gamma, beta, mean, inverse, out
    _start("normalize", (columns, parts, 1), tensors, channels, (rows, channels, part),
           (gamma is not None, residual is not None, relu, height, width))
    return out, mean, inverse


def _backward(dout, data, out, gamma, beta, mean, inverse, bias, relu, adds, needs_dx):
    """Return the gradients of data (None unless `needs_dx`), gamma, beta, residual and bias (None for an absent one)."""
    channels = data.shape[1]
    rows = data.numel() // channels
    height, width = _blocks(channels)
    columns = -(-channels // width)
    parts, part = _partition(rows, channels, _PROGRAMS[0], _PARTS)
    sums = torch.empty(2, parts, channels, dtype=torch.float32, device=data.device)
    dgamma, dbeta = torch.empty_like(beta), torch.empty_like(beta)
    dbias = None if bias is None else torch.empty_like(bias)
    masks = relu and adds
    kept = _like(data) if masks else dout  # without a ReLU the residual's gradient is the incoming one
    factor = beta if gamma is None else gamma
    tensors = dout, data, out if masks else data, factor, beta, mean, inverse, kept, sums
    _start("gradient_sums", (columns, parts, 1), tensors, channels, (rows, channels, part), (gamma is not None, relu, masks, height // 2, width))
    joined = _TILE // _PARTS
    _start("join_gradient_sums", (-(-channels // joined), 1, 1), (sums, inverse, dgamma, dbeta, dbeta if bias is None else dbias), channels,
           (channels, parts), (bias is not None, _PARTS, joined))
    dx = None
    if needs_dx:
        dx = _like(data)
        parts, part = _partition(rows, channels, _PROGRAMS[1], rows)
        _start("gradient", (columns, parts, 1), (kept, data, factor, beta, mean, inverse, dgamma, dbeta, dx), channels, (rows, channels, part),
               (gamma is not None, relu and not masks, height, width))
    return dx, dgamma, dbeta, kept if adds else None, dbias


def _like(data: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(data, memory_format=torch.channels_last if data.dim() == 4 else torch.contiguous_format)
