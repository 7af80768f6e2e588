"""Two-dimensional convolutions with constant weights that are packed once, for inference on a CPU in float32."""
import functools
import math
import threading
from collections.abc import Sequence
from typing import Optional

import torch

from ...threads import of_kernels
from ..gemm import amx
from ..runtime.contract import Kernel, Plan
from ..runtime.parameters import DepthwiseParams, PrepackedConvParams
from ..runtime.strided_output import ANY, Bound, StridedOutputLayer, new_images
from ..runtime.tuning import Autotuner, postponed
from . import winograd

_LAST = torch.channels_last
_FEW = 8  # channels below which the inner sum runs over a row of the filter
DEPTHWISE = "depthwise"
_WORTHWHILE = 1 << 22  # multiplications (of the direct kernel) from which on algorithms are benchmarked
_OUTPUTS = 1 << 13  # for each thread: enough for a benchmark
_MOST = 1 << 10  # programs whose shapes never repeat must not fill the memory
autotuner = Autotuner("convolutions", "gemm/amx", "conv/prepacked_conv", "conv/winograd")
_found: dict[tuple, str] = {}
_STEPS = ("stride_h", "stride_w", "pad_h", "pad_w", "dilate_h", "dilate_w")
_HEIGHT, _WIDTH = "(h + 2 * pad_h - dilate_h * (r - 1) - 1) // stride_h + 1", "(w + 2 * pad_w - dilate_w * (s - 1) - 1) // stride_w + 1"
_COLUMNS = {"columns": "(k + 15) // 16 * 16", "size": "columns * c * r * s"}  # weights are packed for whole vectors
pack = Kernel("conv/prepacked_conv", "pack_float32", {"weight": "float32 (k, c, r, s) last"}, {"packed": "float32 (size)"}, integers=("lines",),
              where={**_COLUMNS, "taps": "r if lines else r * s", "depth": "s * c if lines else c"}, preconditions=("min(k, c, r, s) >= 1",),
              sizes=("k", "taps", "depth"))


def _forward(order: str, planes: int) -> Kernel:
    """Return the direct kernel for data in the given memory order."""
    return Kernel("conv/prepacked_conv", "forward_float32",
                  {"data": f"float32 (n, c, h, w){order}", "packed": "float32 (size)", "bias": "float32 (columns) optional",
                   "residual": "float32 (n, k, p, q) last optional", "into": "float32 (n, total, p, q) last"},
                  {"frame": "float32 (n, height, width, c) if lines"}, integers=("k", "r", "s", *_STEPS, "first", "lines"), numbers="f",
                  where={**_COLUMNS, "height": "h + 2 * pad_h", "width": "w + 2 * pad_w", "p": _HEIGHT, "q": _WIDTH, "planes": str(planes)},
                  preconditions=("min(n, c, h, w, k, r, s, p, q) >= 1", "r * s <= 128", "min(stride_h, stride_w, dilate_h, dilate_w) >= 1",
                           "min(pad_h, pad_w) >= 0", "first >= 0", "first + k <= total", "dilate_w == 1 or not lines", "lines or not planes"),
                  work="k * c * r * s * n * p * q", multiplies="k * c * r * s * n * p * q", parameters=PrepackedConvParams)


forward, forward_planes = _forward(" last", 0), _forward("", 1)
# Depthwise convolution; the channels fill at least one vector.
depthwise = Kernel("conv/depthwise", "forward_float32",
                   {"data": "float32 (n, c, h, w) last", "weight": "float32 (r * s, c)", "bias": "float32 (c) optional",
                    "residual": "float32 (n, c, p, q) last optional", "into": "float32 (n, total, p, q) last"},
                   integers=("r", "s", *_STEPS, "first"), numbers="f", where={"p": _HEIGHT, "q": _WIDTH},
                   preconditions=("c >= 16", "min(n, h, w, r, s, p, q) >= 1", "r * s <= 128", "min(stride_h, stride_w, dilate_h, dilate_w) >= 1",
                            "min(pad_h, pad_w) >= 0", "first >= 0", "first + c <= total"),
                   multiplies="n * c * p * q * r * s", parameters=DepthwiseParams)


class PrepackedConv(StridedOutputLayer):
    """A convolution with weights packed or transformed once, and an optional epilogue: a residual addition and a ReLU.

    Attributes
    ----------
    chosen : dict of str to str
        Under ``"forward"`` the name of the chosen algorithm.

    Parameters
    ----------
    weight : torch.Tensor
        (K, C / groups, R, S).
    bias : torch.Tensor or None
        (K,).
    stride, pad, dilate : tuple of two int
    groups : int
    ceiling : float
        The upper bound of the ReLU: infinite for ReLU, 6 for ReLU6; `strided_output.ANY` for none.
    exact : bool
        True to use the direct kernel only: no Winograd form, which rounds more, and no split into bfloat16 parts.
    scale : torch.Tensor, optional
        (K,), a factor for each filter.
    planes : bool
        True for data with the channels first in memory; only for layers with `few_channels`.

    The weights are packed at the first call, so that only one layer's unpacked copy is in memory at a time.

    Example
    -------
    >>> import math
    >>> layer = PrepackedConv(torch.ones(1, 1, 2, 2), torch.tensor([-3.0]), (1, 1), (0, 0), (1, 1), 1, math.inf)
    >>> layer(torch.tensor([[[[1.0, 0, 1], [1, 2, 1]]]]))
    tensor([[[[1., 1.]]]])
    """

    __name__ = "convolution"  # the name in generated code and profiles

    def __init__(self, weight: torch.Tensor, bias: Optional[torch.Tensor], stride: tuple[int, ...], pad: tuple[int, ...], dilate: tuple[int, ...],
                 groups: int, ceiling: float = ANY, exact: bool = False, scale: Optional[torch.Tensor] = None,
                 planes: bool = False):
        self._given = weight, scale
        self._weight = weight[:0]  # ordered and scaled; held while the algorithm is chosen, and afterwards only if torch computes it
        # The kernels of dense convolutions read the bias in whole vectors.
        self._bias = bias if bias is None or groups > 1 else torch.nn.functional.pad(bias, (0, -len(bias) % 16))
        self._filters, self._kernel, self._groups, self._each = weight.shape[0], tuple(weight.shape[2:]), groups, weight[0].numel()
        self._stride, self._pad, self._dilate = tuple(stride), tuple(pad), tuple(dilate)
        self._ceiling, self._exact = ceiling, exact
        self._lines = self.few_channels(weight, dilate)
        self.order, self._direct = (torch.contiguous_format, forward_planes) if planes else (_LAST, forward)
        self._made: dict[str, torch.Tensor] = {}  # packed or transformed weights, by algorithm
        self._plans: dict[tuple, Optional[Plan]] = {}
        self.chosen: dict[str, str] = {}
        self._lock = threading.Lock()

    def __call__(self, data: torch.Tensor, residual: Optional[torch.Tensor] = None, into: Optional[torch.Tensor] = None,
                 first: int = 0) -> torch.Tensor:
        data = data.contiguous(memory_format=self.order)
        if residual is not None:
            residual = residual.contiguous(memory_format=_LAST)
        key = data.shape, torch.get_num_threads(), residual is None, None if into is None else (into.shape, first)
        try:
            plan = self._plans[key]
        except KeyError:
            with self._lock:
                plan = self._plans[key] = self._plan(data, residual, self._result(data) if into is None else into, first)
        if plan is not None:
            out = self._result(data) if into is None else into
            plan((data, self._made[self.chosen["forward"]], self._bias, residual, out), (self._ceiling,))
            return out
        bias = None if self._bias is None else self._bias[:self._filters]
        found = torch.conv2d(data, self._weight, bias, self._stride, self._pad, self._dilate, self._groups)
        if residual is not None:
            found += residual
        if self._ceiling >= 0:
            found.clamp_(0, self._ceiling)
        if into is None:
            return found
        into[:, first:first + self._filters] = found
        return into

    def _result(self, data: torch.Tensor) -> torch.Tensor:
        return new_images(self.sizes(data.shape))

    @staticmethod
    def few_channels(weight: torch.Tensor, dilate: tuple[int, ...]) -> bool:
        """Return True if the kernel sums over rows of the filter for these weights; it can then read data with the channels first, too."""
        return weight.shape[1] < _FEW and dilate[1] == 1 and weight.shape[3] > 1

    def bound(self, data: torch.Tensor, residual: Optional[torch.Tensor], into: torch.Tensor, first: int) -> Optional[Bound]:
        plan = self._plan(data, residual, into, first) if self.chosen else None
        return None if plan is None else Bound(plan, (data, self._made[self.chosen["forward"]], self._bias, residual, into), (self._ceiling,))

    def sizes(self, shape: Sequence[int]) -> tuple[int, ...]:
        along = [(n + 2 * p - d * (k - 1) - 1) // s + 1
                 for n, k, s, p, d in zip(shape[2:], self._kernel, self._stride, self._pad, self._dilate)]
        return (shape[0], self._filters, *(max(n, 0) for n in along))

    def work(self, shape: Sequence[int]) -> int:
        """Return the number of multiplications of the direct algorithm for data of this shape."""
        return math.prod(self.sizes(shape)) * self._each

    def release(self) -> None:
        """Free the weights of a layer that is not called any more."""
        self._plans, self._made = {}, {}
        self._weight, self._given = torch.empty(0), (torch.empty(0), None)

    def _ordered(self) -> torch.Tensor:
        """Return the weights with their channels last, multiplied by `scale`."""
        weight, scale = self._given
        if scale is None:
            return weight.contiguous(memory_format=_LAST)
        # Reordered and multiplied in one pass; in double precision it took five times as long, while the program waits.
        return torch.mul(weight, scale.view(-1, 1, 1, 1), out=torch.empty_like(weight, memory_format=_LAST))

    def _plan(self, data: torch.Tensor, residual: Optional[torch.Tensor], into: torch.Tensor, first: int) -> Optional[Plan]:
        """Return the plan for data of this shape, None where torch computes it. The first call chooses the algorithm for all shapes."""
        name = self.chosen.get("forward")
        if name is None:
            self._weight = self._ordered()
            name = self.chosen["forward"] = self._choose(data)
            if name != "torch":
                self._made = {name: self._make(name)}
                self._weight = torch.empty(0)  # frees the unpacked copy
        if name == "torch":
            return None
        return self._plan_for(name, self._made[name], data, self._bias, residual, into, first)

    def _plan_for(self, name: str, made: torch.Tensor, data: torch.Tensor, bias: Optional[torch.Tensor], residual: Optional[torch.Tensor],
                 into: torch.Tensor, first: int) -> Optional[Plan]:
        """Return an algorithm's plan, given the weights `made` for it."""
        arrays = data, made, bias, residual, into
        if name == DEPTHWISE:
            return depthwise.plan(arrays, (*self._kernel, *self._steps(), first))
        if name == winograd.DIRECT:
            return self._direct.plan(arrays, (*self._numbers(), first, self._lines))
        if name == amx.NAME:
            return amx.plan(*arrays, self._numbers(), first)
        return winograd.plan(name, *arrays, self._pad, first)

    def _choose(self, data: torch.Tensor) -> str:
        """Return the name of the algorithm for data of this shape."""
        if self._groups == self._filters == data.shape[1] and depthwise.available():
            arrays = data, self._make(DEPTHWISE), self._bias, None, self._result(data)
            return "torch" if depthwise.plan(arrays, (*self._kernel, *self._steps(), 0)) is None else DEPTHWISE
        if self._groups > 1 or not forward.available():
            return "torch"
        # Memory of the right size only: packing waits until the direct kernel is chosen or benchmarked.
        packed = self._weight.new_empty(-(-self._filters // 16) * 16 * self._each)
        arrays = data, packed, None, None, self._result(data)
        if pack.plan((self._weight,), (self._lines,)) is None or self._direct.plan(arrays, (*self._numbers(), 0, self._lines)) is None:
            return "torch"
        if self._exact:
            return winograd.DIRECT
        whole = not (self._weight.shape[0] % 16 or self._weight.shape[1] % 16)
        rivals = winograd.names(self._weight, self._steps()) if whole else ()
        return self._fastest(data, (*rivals, *([amx.NAME] if amx.suits(self._weight) else [])))

    def _fastest(self, data: torch.Tensor, rivals: Sequence[str]) -> str:
        """Return the fastest of the direct algorithm and `rivals` for data of this shape, benchmarked once for each machine."""
        threads = of_kernels()
        key = data.shape, self._numbers(), threads
        found = _found.get(key)
        if found is not None:
            return found
        found = winograd.DIRECT
        n, c, h, w = data.shape
        if rivals and self.work(data.shape) >= _WORTHWHILE:
            part = data[:min(n, -(-_OUTPUTS * threads // math.prod(self.sizes(data.shape)[2:])))]
            taps, *steps = ("x".join(map(str, pair)) for pair in (self._kernel, self._stride, self._pad, self._dilate))
            name = (f"weights kept, {len(part)}x{c}x{h}x{w} to {self._filters} by {taps}, stride {steps[0]}, padding {steps[1]}, "
                    f"dilation {steps[2]}, {threads} threads")
            if postponed():  # take the cached choice, and run no benchmark
                return autotuner.cached(name, (winograd.DIRECT, *rivals)) or winograd.DIRECT
            found = autotuner.fastest(name, {rival: functools.partial(self._alone, rival, part) for rival in (winograd.DIRECT, *rivals)})
        if len(_found) >= _MOST:
            _found.clear()
        _found[key] = found
        return found

    def _steps(self) -> tuple[int, ...]:
        return (*self._stride, *self._pad, *self._dilate)

    def _numbers(self) -> tuple[int, ...]:
        return (self._filters, *self._kernel, *self._steps())

    def _alone(self, name: str, data: torch.Tensor) -> torch.Tensor:
        """Run the convolution without bias and epilogue by the named algorithm."""
        into = self._result(data)
        plan = self._plan_for(name, self._make(name), data, None, None, into, 0)
        if plan is not None:
            plan((data, self._make(name), None, None, into), (ANY,))
        return into

    def _make(self, name: str) -> torch.Tensor:
        """Return the weights in the named algorithm's order, made at the first request."""
        found = self._made.get(name)
        if found is None:
            if name == DEPTHWISE:
                found = self._weight.flatten(1).t().contiguous()
            elif name == winograd.DIRECT:
                found, = pack((self._weight,), (self._lines,))
            elif name == amx.NAME:
                found = amx.packed(self._weight)
            else:
                found = winograd.transformed(name, self._weight)
            self._made[name] = found
        return found
