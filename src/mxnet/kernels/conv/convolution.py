"""Two-dimensional convolution for training on a CPU, with its gradients.

Torch calls oneDNN for all three, which reorders the weights each time: a quarter of the time of a ResNet-50 step with one image. The direct kernel
here reads the weights in the order they have; `few_channels` has another one for the first layer. The autotuner chooses it or an alternative that is
faster: `winograd` for stride 1, `amx` for float32 in parts, oneDNN for large convolutions, and float32 arithmetic for bfloat16, whose pairs some
processors multiply more slowly.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional

import torch

from ...threads import usual
from ..gemm import amx, matmul
from ..memory.transpose import permute_copy
from ..runtime.contract import Kernel
from ..runtime.denormals import zeroed
from ..runtime.parameters import ConvParams
from ..runtime.tuning import Autotuner, postponed
from . import few_channels, winograd

# Multiplications below which torch is done before a kernel would have been called (and no compiler is needed).
_WORTHWHILE = 1 << 20
_LAST = torch.channels_last
_DATA, _WEIGHT, _BIAS, _RESULT = "T (n, c, h, w) last", "float32 (k, c, r, s) last", "float32 (k)", "T (n, k, p, q) last"
_STEPS = ("stride_h", "stride_w", "pad_h", "pad_w", "dilate_h", "dilate_w")
_HEIGHT, _WIDTH = ("(h + 2 * pad_h - dilate_h * (r - 1) - 1) // stride_h + 1", "(w + 2 * pad_w - dilate_w * (s - 1) - 1) // stride_w + 1")
# Channels fill whole vectors; the kernel's table has room for 128 taps.
_PRECONDITIONS = ("c % 16 == 0", "k % 16 == 0", "r * s <= 128", "min(n, c, h, w, k, r, s, p, q) >= 1",
                  "min(stride_h, stride_w, dilate_h, dilate_w) >= 1", "min(pad_h, pad_w) >= 0")
_WORK = "k * c * r * s * n * p * q"
_SIZES: dict[str, Any] = {"parameters": ConvParams, "multiplies": _WORK}


def _declared(arithmetic: str) -> tuple[Kernel, Kernel, Kernel]:
    """Return the kernels of the convolution, of its data gradient and of its weight gradient."""
    return (Kernel("conv/convolution", f"forward_{arithmetic}{{T}}",
                   {"data": _DATA, "weight": _WEIGHT, "bias": f"{_BIAS} optional"}, {"out": _RESULT},
                   integers=_STEPS, where={"p": _HEIGHT, "q": _WIDTH}, preconditions=_PRECONDITIONS, work=_WORK, **_SIZES),
            Kernel("conv/convolution", f"backward_data_{arithmetic}{{T}}", {"dout": _RESULT, "weight": _WEIGHT}, {"dx": _DATA},
                   integers=("h", "w", *_STEPS), preconditions=(*_PRECONDITIONS, f"p == {_HEIGHT}", f"q == {_WIDTH}"), **_SIZES),
            Kernel("conv/convolution", f"backward_weight_{arithmetic}{{T}}", {"dout": _RESULT, "data": _DATA},
                   {"dweight": _WEIGHT, "dbias": f"{_BIAS} if biased"}, integers=("r", "s", "biased", *_STEPS),
                   preconditions=(*_PRECONDITIONS, f"p == {_HEIGHT}", f"q == {_WIDTH}"), **_SIZES))


forward, backward_data, backward_weight = _declared("")
widened_forward, widened_backward_data, widened_backward_weight = _declared("widened_")  # of bfloat16 alone
WIDENED, ONEDNN = "float32 arithmetic", "oneDNN"
_KERNELS = {winograd.DIRECT: (forward, backward_data, backward_weight),
            WIDENED: (widened_forward, widened_backward_data, widened_backward_weight)}
_TUNED = 1 << 24  # multiplications from which on algorithms are benchmarked
_ROWS = 1 << 13  # of data for each thread: enough for a benchmark
_MOST = 1 << 10  # programs whose shapes never repeat must not fill the memory
autotuner = Autotuner("convolution-ways", "gemm/amx", "conv/convolution", "conv/few_channels", "conv/winograd")
_found: dict[tuple, str] = {}


class Layer:
    """A convolution of a graph, called like `convolution`.

    Attributes
    ----------
    exact : bool
        True if only the direct kernel may compute it.
    chosen : dict of str to str
        The algorithm of the last call, for each of ``"forward"``, ``"gradient of data"`` and ``"gradient of weights"``.
    """

    def __init__(self, exact: bool = False):
        self.exact = exact
        self.chosen: dict[str, str] = {}

    def run(self, way: str, data: torch.Tensor, weight: torch.Tensor, steps: Any, runs: Mapping[str, Callable]) -> torch.Tensor:
        """Return the result of the fastest of `runs`."""
        first = next(iter(runs))
        found = self.chosen[way] = first if self.exact or len(runs) == 1 else _fastest(way, data, weight, steps, runs)
        return runs[found](data)


def _fastest(way: str, data: torch.Tensor, weight: torch.Tensor, steps: tuple[int, ...], runs: Mapping[str, Callable[[torch.Tensor], Any]]) -> str:
    """Return the name of the fastest of `runs` for data of this shape, benchmarked on a part of `data` once for each machine."""
    threads = usual()
    key = way, data.dtype, data.shape, weight.shape, steps, threads
    try:
        return _found[key]
    except KeyError:
        pass
    n, channels, h, w = data.shape
    found = winograd.DIRECT
    if n * h * w * weight.numel() >= _TUNED:
        part = data[:min(n, -(-_ROWS * threads // (h * w)))]
        sizes, filters = ("x".join(map(str, t.shape)) for t in (part, weight))
        name = (f"{way}, {str(data.dtype).removeprefix('torch.')}, {sizes}, weights {filters}, stride, padding, dilation "
                f"{' '.join(map(str, steps))}, {threads} threads")
        if postponed():  # take the cached choice, and run no benchmark
            return autotuner.cached(name, runs) or winograd.DIRECT
        found = autotuner.fastest(name, {name: functools.partial(run, part) for name, run in runs.items()})
    if len(_found) >= _MOST:
        _found.clear()
    _found[key] = found
    return found


def convolution(data: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, layer: Optional[Layer] = None,
                **attributes: Any) -> torch.Tensor | None:
    """Compute ``Convolution`` in two dimensions and one group, with the operator's attributes; None where the kernel does not fit.

    The weights may be float32 beside data in half precision, as before the casts of mixed precision. Without a `layer` the direct kernel computes it.
    """
    steps = (*(attributes.get("stride") or (1, 1)), *(attributes.get("pad") or (0, 0)), *(attributes.get("dilate") or (1, 1)))
    single, offset = _single(weight, data), _single(bias, data)
    direct = few_channels.forward if few_channels.suits(weight) else forward
    if direct.plan((data, single, offset), steps, _WORTHWHILE) is not None:
        return _Convolution.apply(data, single, offset, steps, layer or _EXACT)
    return None


def deconvolution(data: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: Sequence[int], pad: Sequence[int], adj: Sequence[int],
                  dilate: Sequence[int]) -> torch.Tensor | None:
    """Compute ``Deconvolution`` in two dimensions and one group, as a convolution's data gradient; None where the kernel does not fit.

    Stride, padding, adjustment and dilation have one number for each axis.
    """
    if data.dtype is not torch.float32 or data.numel() * weight[0].numel() < _WORTHWHILE or data.shape[1] % 16 or weight.shape[1] % 16:
        return None  # before any array is reordered
    height, width = (s * (n - 1) + d * (k - 1) + 1 - 2 * p + a
                     for n, k, s, p, a, d in zip(data.shape[2:], weight.shape[2:], stride, pad, adj, dilate))
    ordered = _channels_last(data), weight.contiguous(memory_format=_LAST)
    steps = (*stride, *pad, *dilate)
    plan = backward_data.plan(ordered, (height, width, *steps))
    if plan is None:
        return None
    out = _Deconvolution.apply(*ordered, bias, steps, adj, plan)
    return out if data.is_contiguous(memory_format=_LAST) else permute_copy(out.permute(0, 2, 3, 1), (0, 3, 1, 2))


def _channels_last(data):
    return data if data.is_contiguous(memory_format=_LAST) else permute_copy(data, (0, 2, 3, 1)).permute(0, 3, 1, 2)


def _single(parameter, data):
    """Return a parameter as float32 if it has the type of the data, else unchanged."""
    return parameter if parameter is None or parameter.dtype is not data.dtype else parameter.float()


def cast(parameter: torch.Tensor | None, data: torch.Tensor) -> torch.Tensor | None:
    """Return a float32 parameter in the type of the data, as mixed precision casts it."""
    return parameter if parameter is None or parameter.dtype is not torch.float32 else parameter.to(data.dtype)


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, weight, bias, steps, layer):
        ctx.steps, ctx.biased, ctx.layer = steps, bias is not None, layer
        ctx.save_for_backward(data, weight)
        return layer.run("forward", data, weight, steps, _forward_runs(data.dtype, weight, bias, steps))

    @staticmethod
    def backward(ctx, dout):
        data, weight = ctx.saved_tensors
        wanted = ctx.needs_input_grad[:3]
        if torch.is_grad_enabled():  # to be differentiated again: torch's own gradient can be
            found = torch.ops.aten.convolution_backward(dout, data, weight.to(data.dtype), [weight.shape[0]] if ctx.biased else None,
                                                        *_in_pairs(ctx.steps), False, [0, 0], 1, wanted)
            return found[0], *[None if t is None else t.float() for t in found[1:]], None, None
        dout = dout.contiguous(memory_format=_LAST)
        dx = dw = db = None
        if wanted[0]:
            dx = ctx.layer.run("gradient of data", dout, weight, ctx.steps, _data_runs(data.shape, dout.dtype, weight, ctx.steps))
        if wanted[1] or wanted[2]:
            dw, db = ctx.layer.run("gradient of weights", dout, weight, ctx.steps, _weight_runs(data, weight, wanted[2], ctx.steps))
        return dx, dw, db, None, None


def _own(dtype, weight):
    """Return the direct kernels for this type and these weights, by name: those of the convolution, of the data gradient, of the weight gradient."""
    if few_channels.suits(weight):
        return {winograd.DIRECT: (few_channels.forward, None, few_channels.backward_weight)}
    return _KERNELS if dtype is torch.bfloat16 else {winograd.DIRECT: _KERNELS[winograd.DIRECT]}


def _by_winograd(weight, steps):
    """Return the names of Winograd's forms for these weights, whose kernels take whole vectors of channels."""
    return () if few_channels.suits(weight) else winograd.names(weight, steps)


def _onednn_takes(dtype, steps):
    """Return True if oneDNN is a candidate. Torch crashed the process for a dilated convolution of few pixels."""
    if steps[4:] != (1, 1):
        return False
    return torch.backends.mkldnn.is_available() if dtype is torch.float32 else matmul.prefers_onednn_layout(dtype)


def _forward_runs(dtype, weight, bias, steps):
    """Return the candidate algorithms for the convolution of data of this type, by name."""
    runs: dict[str, Callable] = {name: lambda part, kernel=kernels[0]: kernel((part, weight, bias), steps)[0]
                                 for name, kernels in _own(dtype, weight).items()}
    if _onednn_takes(dtype, steps):
        def by_onednn(part):
            with zeroed(part.numel() * len(weight)):
                return torch.conv2d(part, weight.to(dtype), None if bias is None else bias.to(dtype), *_in_pairs(steps))
        runs[ONEDNN] = by_onednn
    if dtype is torch.float32 and amx.suits(weight):
        runs[amx.NAME] = lambda part: amx.convolve(part, weight, bias, steps)
    return runs | {name: functools.partial(winograd.run, name, weight=weight, bias=bias, pad=steps[2:4]) for name in _by_winograd(weight, steps)}


def _data_runs(shape, dtype, weight, steps):
    """Return the candidate algorithms for the gradient of data of this shape and type, by name."""
    sizes, pad = (*shape[2:], *steps), winograd.backwards(weight, steps[2:4])
    runs: dict[str, Callable] = {name: lambda part, kernel=kernels[1]: kernel((part, weight), sizes)[0]
                                 for name, kernels in _own(dtype, weight).items() if kernels[1] is not None}
    if _onednn_takes(dtype, steps) or not runs:
        def by_onednn(part):
            like = torch.empty((len(part), *shape[1:]), dtype=dtype, device=part.device, memory_format=_LAST)  # only its shape and order are read
            return _gradients(part, like, weight, steps, 0)[0]
        runs[ONEDNN] = by_onednn
    back = tuple(d * (k - 1) - p for d, k, p in zip(steps[4:], weight.shape[2:], steps[2:4]))  # the padding of the gradient's convolution
    if dtype is torch.float32 and steps[:2] == (1, 1) and min(back) >= 0 and amx.suits(weight):
        runs[amx.NAME] = lambda part: amx.convolve(part, weight, None, (1, 1, *back, *steps[4:]), turned=True)
    fewer = _by_winograd(weight, steps) if min(pad) >= 0 else ()
    return runs | {name: functools.partial(winograd.run, name, weight=weight, bias=None, pad=pad, turned=True) for name in fewer}


def _weight_runs(data, weight, biased, steps):
    """Return the candidate algorithms for the gradients of the weights and of the bias, by name."""
    sizes = (*weight.shape[2:], biased, *steps)
    runs: dict[str, Callable] = {name: lambda part, kernel=kernels[2]: kernel((part, data[:len(part)]), sizes)
                                 for name, kernels in _own(data.dtype, weight).items()}
    if _onednn_takes(data.dtype, steps):
        def by_onednn(part):
            found = _gradients(part, data[:len(part)], weight, steps, 1)[1].float()
            return found, part.sum((0, 2, 3), dtype=torch.float32) if biased else None
        runs[ONEDNN] = by_onednn
    if amx.suits(weight):
        def by_tiles(part):
            dweight, = amx.backward_weight((part, data[:len(part)]), (*weight.shape[2:], *steps))
            return dweight, part.sum((0, 2, 3), dtype=torch.float32) if biased else None
        runs[amx.NAME if data.dtype is torch.float32 else amx.BRIEF] = by_tiles
    return runs | {name: lambda part, name=name: winograd.backward_weight(name, part, data[:len(part)], biased, steps[2:4])
                   for name in _by_winograd(weight, steps) if name in winograd.backward}


def _gradients(dout, data, weight, steps, which):
    """Return torch's gradients of a convolution; only number `which` is computed (0 data, 1 weights, 2 bias)."""
    with zeroed(dout.numel() * weight[0].numel()):
        return torch.ops.aten.convolution_backward(dout, data, weight.to(dout.dtype), None, *_in_pairs(steps), False, [0, 0], 1,
                                                   [number == which for number in range(3)])


def _in_pairs(steps):
    """Return stride, padding and dilation as three pairs."""
    return steps[:2], steps[2:4], steps[4:]


_EXACT = Layer(exact=True)


class _Deconvolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, weight, bias, steps, adj, plan):
        ctx.steps, ctx.adj, ctx.biased = steps, adj, bias is not None
        ctx.save_for_backward(data, weight)
        out, = plan((data, weight))
        return out if bias is None else out.add_(bias.reshape(-1, 1, 1))

    @staticmethod
    def backward(ctx, dout):
        data, weight = ctx.saved_tensors
        wanted = ctx.needs_input_grad[:3]
        if torch.is_grad_enabled():
            found = torch.ops.aten.convolution_backward(dout, data, weight, [weight.shape[1]] if ctx.biased else None, *_in_pairs(ctx.steps), True,
                                                        ctx.adj, 1, wanted)
            return *found, None, None, None
        dout = _channels_last(dout)
        dx = forward((dout, weight, None), ctx.steps)[0] if wanted[0] else None
        dw = backward_weight((data, dout), (*weight.shape[2:], 0, *ctx.steps))[0] if wanted[1] else None
        return dx, dw, dout.sum((0, 2, 3)) if wanted[2] else None, None, None, None
