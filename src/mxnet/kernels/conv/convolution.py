"""Two-dimensional convolution for training on a CPU, with its gradients.

Torch calls oneDNN for all three, which reorders the weights each time: a quarter of the time of a ResNet-50 step with one image. The direct kernel
here reads the weights in the order they have; `few_channels` has another one for the first layer. The autotuner chooses it or an alternative that is
faster: `winograd` for stride 1, `amx` for float32 in parts, oneDNN for large convolutions, and float32 arithmetic for bfloat16, whose pairs some
processors multiply more slowly.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Optional

import torch

from ...threads import of_kernels
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
_DIRECT = forward, backward_data, backward_weight
_FEW = few_channels.forward, None, few_channels.backward_weight
_WIDENED = widened_forward, widened_backward_data, widened_backward_weight
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

    def run(self, way: str, first: torch.Tensor, weight: torch.Tensor, steps: tuple[int, ...], *others: Any) -> Any:
        """Return the result of the fastest algorithm; `first` is the data, or the gradient of the result."""
        key = way, first.dtype, first.shape, weight.shape, steps, of_kernels()
        name = _found.get(key)
        if name is None or self.exact:
            name = _choose(key, self.exact, first, weight, steps, others)
        self.chosen[way] = name
        return _WAYS[way][1](name, first, weight, steps, *others)


def _choose(key: tuple, exact: bool, first: torch.Tensor, weight: torch.Tensor, steps: tuple[int, ...], others: tuple) -> str:
    """Return the name of the fastest algorithm for arrays of these shapes, benchmarked on a part of `first` once for each machine."""
    way, dtype, (n, channels, h, w), *_, threads = key
    names, run = _WAYS[way]
    candidates = names(first, weight, steps)
    if exact or len(candidates) == 1:
        return candidates[0]
    found = winograd.DIRECT
    if n * h * w * weight.numel() >= _TUNED:
        part = first[:min(n, -(-_ROWS * threads // (h * w)))]
        sizes, filters = ("x".join(map(str, t.shape)) for t in (part, weight))
        name = (f"{way}, {str(dtype).removeprefix('torch.')}, {sizes}, weights {filters}, stride, padding, dilation "
                f"{' '.join(map(str, steps))}, {threads} threads")
        if postponed():  # take the cached choice, and run no benchmark
            return autotuner.cached(name, candidates) or winograd.DIRECT
        found = autotuner.fastest(name, {c: functools.partial(run, c, part, weight, steps, *others) for c in candidates})
    if len(_found) >= _MOST:
        _found.clear()
    _found[key] = found
    return found


def convolution(data: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, layer: Optional[Layer] = None,
                **attributes: Any) -> torch.Tensor | None:
    """Compute ``Convolution`` in two dimensions and one group, with the operator's attributes; None where the kernel does not fit.

    The weights may be float32 beside data in half precision, as before the casts of mixed precision. Without a `layer` the direct kernel computes it.
    """
    steps = _steps(attributes)
    if not _fits(data, weight, bias, steps):
        return None
    return _Convolution.apply(data, _single(weight, data), _single(bias, data), steps, layer or _EXACT)


class Saved(NamedTuple):
    """The arrays and numbers of a forward pass that its gradients read."""

    data: torch.Tensor
    weight: torch.Tensor
    steps: tuple[int, ...]


def saving(layer: Layer, data: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, **attributes: Any) -> tuple[torch.Tensor, Saved] | None:
    """Return the result of `convolution` and the argument of `gradients`, without torch's autograd; None where the kernel does not fit."""
    steps = _steps(attributes)
    if not _fits(data, weight, bias, steps):
        return None
    weight = _single(weight, data)
    return layer.run("forward", data, weight, steps, _single(bias, data)), Saved(data, weight, steps)


def gradients(layer: Layer, saved: Saved, dout: torch.Tensor, wanted: Sequence[bool]) -> list[torch.Tensor | None]:
    """Return the gradients of data, weight and bias, None for those not `wanted`."""
    data, weight, steps = saved
    dout = dout.contiguous(memory_format=_LAST)
    dx = dw = db = None
    if wanted[0]:
        dx = layer.run("gradient of data", dout, weight, steps, data.shape)
    biased = len(wanted) > 2 and wanted[2]
    if wanted[1] or biased:
        dw, db = layer.run("gradient of weights", dout, weight, steps, data, biased)
    return [dx, dw, db][:len(wanted)]


def _steps(attributes):
    return (*(attributes.get("stride") or (1, 1)), *(attributes.get("pad") or (0, 0)), *(attributes.get("dilate") or (1, 1)))


def _fits(data, weight, bias, steps):
    """Return True if a direct kernel takes these arrays, and is worth its call."""
    direct = few_channels.forward if few_channels.suits(weight) else forward
    return direct.plan((data, _single(weight, data), _single(bias, data)), steps, _WORTHWHILE) is not None


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
        return layer.run("forward", data, weight, steps, bias)

    @staticmethod
    def backward(ctx, dout):
        data, weight = ctx.saved_tensors
        wanted = ctx.needs_input_grad[:3]
        if torch.is_grad_enabled():  # to be differentiated again: torch's own gradient can be
            found = torch.ops.aten.convolution_backward(dout, data, weight.to(data.dtype), [weight.shape[0]] if ctx.biased else None,
                                                        *_in_pairs(ctx.steps), False, [0, 0], 1, wanted)
            return found[0], *[None if t is None else t.float() for t in found[1:]], None, None
        return *gradients(ctx.layer, Saved(data, weight, ctx.steps), dout, wanted), None, None


def _direct(name, weight):
    """Return the kernels of a direct algorithm, for the convolution, the data gradient and the weight gradient; None for others."""
    if name == winograd.DIRECT:
        return _FEW if few_channels.suits(weight) else _DIRECT
    return _WIDENED if name == WIDENED else None


def _direct_names(dtype):
    return (winograd.DIRECT, WIDENED) if dtype is torch.bfloat16 else (winograd.DIRECT,)


def _onednn_names(dtype, steps):
    """Return oneDNN's name where it is a candidate. Torch crashed the process for a dilated convolution of few pixels."""
    if steps[4:] != (1, 1):
        return ()
    return (ONEDNN,) if (torch.backends.mkldnn.is_available() if dtype is torch.float32 else matmul.prefers_onednn_layout(dtype)) else ()


def _winograd_names(weight, steps):
    """Return the names of Winograd's forms for these weights; their kernels take whole vectors of channels."""
    return () if few_channels.suits(weight) else winograd.names(weight, steps)


def _forward_names(data, weight, steps):
    """Return the names of the candidates for a convolution."""
    tiles = (amx.NAME,) if data.dtype is torch.float32 and amx.suits(weight) else ()
    return (*_direct_names(data.dtype), *_onednn_names(data.dtype, steps), *tiles, *_winograd_names(weight, steps))


def _forward(name, data, weight, steps, bias):
    """Return the convolution by the named algorithm."""
    direct = _direct(name, weight)
    if direct is not None:
        return direct[0]((data, weight, bias), steps)[0]
    if name == ONEDNN:
        with zeroed(data.numel() * len(weight)):
            return torch.conv2d(data, weight.to(data.dtype), None if bias is None else bias.to(data.dtype), *_in_pairs(steps))
    return amx.convolve(data, weight, bias, steps) if name == amx.NAME else winograd.run(name, data, weight, bias, steps[2:4])


def _backward_pad(weight, steps):
    """Return the padding of the convolution that computes the data gradient, for stride 1."""
    return tuple([d * (k - 1) - p for d, k, p in zip(steps[4:], weight.shape[2:], steps[2:4])])


def _data_names(dout, weight, steps):
    """Return the names of the candidates for the gradient of the data."""
    if few_channels.suits(weight):
        return (ONEDNN,)
    whole = min(_backward_pad(weight, steps)) >= 0
    tiles = (amx.NAME,) if dout.dtype is torch.float32 and steps[:2] == (1, 1) and whole and amx.suits(weight) else ()
    return (*_direct_names(dout.dtype), *_onednn_names(dout.dtype, steps), *tiles, *(_winograd_names(weight, steps) if whole else ()))


def _data_gradient(name, dout, weight, steps, shape):
    """Return the gradient of data of this shape by the named algorithm."""
    direct = _direct(name, weight)
    if direct is not None:
        return direct[1]((dout, weight), (*shape[2:], *steps))[0]
    if name == ONEDNN:
        like = torch.empty((len(dout), *shape[1:]), dtype=dout.dtype, device=dout.device, memory_format=_LAST)  # only its shape and order are read
        return _gradients(dout, like, weight, steps, 0)[0]
    pad = _backward_pad(weight, steps)
    if name == amx.NAME:
        return amx.convolve(dout, weight, None, (1, 1, *pad, *steps[4:]), turned=True)
    return winograd.run(name, dout, weight, None, pad, turned=True)


def _weight_names(dout, weight, steps):
    """Return the names of the candidates for the gradients of the weights and of the bias."""
    tiles = (amx.NAME if dout.dtype is torch.float32 else amx.BRIEF,) if amx.suits(weight) else ()
    return (*_direct_names(dout.dtype), *_onednn_names(dout.dtype, steps), *tiles,
            *[name for name in _winograd_names(weight, steps) if name in winograd.backward])


def _weight_gradients(name, dout, weight, steps, data, biased):
    """Return the gradients of the weights and, if `biased`, of the bias (else None), by the named algorithm; `dout` may be that of fewer images."""
    data = data if len(data) == len(dout) else data[:len(dout)]
    direct = _direct(name, weight)
    if direct is not None:
        return direct[2]((dout, data), (*weight.shape[2:], biased, *steps))
    if name == ONEDNN:
        dweight = _gradients(dout, data, weight, steps, 1)[1].float()
    elif name in (amx.NAME, amx.BRIEF):
        dweight, = amx.backward_weight((dout, data), (*weight.shape[2:], *steps))
    else:
        return winograd.backward_weight(name, dout, data, biased, steps[2:4])
    return dweight, dout.sum((0, 2, 3), dtype=torch.float32) if biased else None


def _gradients(dout, data, weight, steps, which):
    """Return torch's gradients of a convolution; only number `which` is computed (0 data, 1 weights, 2 bias)."""
    with zeroed(dout.numel() * weight[0].numel()):
        return torch.ops.aten.convolution_backward(dout, data, weight.to(dout.dtype), None, *_in_pairs(steps), False, [0, 0], 1,
                                                   [number == which for number in range(3)])


def _in_pairs(steps):
    """Return stride, padding and dilation as three pairs."""
    return steps[:2], steps[2:4], steps[4:]


_WAYS: dict[str, tuple[Callable[..., tuple[str, ...]], Callable[..., Any]]] = {
    "forward": (_forward_names, _forward), "gradient of data": (_data_names, _data_gradient),
    "gradient of weights": (_weight_names, _weight_gradients)}
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
