"""Convolutions on GPUs with their batch norm folded into their weights, and with the addition and the ReLU behind them in cuDNN's call.

A graph that was rewritten reads weights that are prepared from those of the program: which nodes prepare them is told to the caller, who runs them
before the graph (`prepared_weights`).
"""
import functools
import math
from collections.abc import Callable
from typing import Any

import torch

from ....kernels.runtime import tuning
from ....kernels.runtime.strided_output import ANY
from ....ops.elemwise.unary import amp_cast
from ...instrumentation import joined
from ...passes import folding
from ...passes.layout import convolves
from ...program import FxNode, Program, attributes_of, calls, item
from ..registry import wants_channels_last

_cuda: Any = torch.cuda  # tests put another in its place
FUSED, WIDENED, PRODUCT, PARTS = ("one call of cuDNN's", "one call of cuDNN's, on more channels", "a product of matrices",
                                  "cuDNN's convolution and what follows it")
_WIDE = 8  # channels that tensor cores take at once in half precision
_TYPES = (torch.float16, torch.bfloat16, torch.float32)
_ROUNDS, _RUNS = 2, 4  # of a race between the ways to compute a layer, and how often each runs in a round
_AHEAD = 1_000_000  # cycles (half a millisecond) that a GPU waits meanwhile, so that it is not the host that is measured
_CLEARLY = 0.97  # of the time of a more promising way, which takes less memory


class Convolution:
    """A two-dimensional convolution, and what follows it: ``rectified(convolution(data, weight) + bias + residual)``.

    Data with their channels last may be computed in one call of cuDNN's, or as a product of matrices where filters have one pixel. Which way is
    the fastest is found out in the first call, which must not be captured.

    Attributes
    ----------
    way : str or None
        `FUSED`, `WIDENED`, `PRODUCT` or `PARTS`; None while that is not known.

    Parameters
    ----------
    stride, padding, dilation : tuple of two int
    groups : int
    ceiling : float
        Where results are rectified, the largest that they may be; else `strided_output.ANY`.
    """

    __name__ = "convolution"  # what generated code and profiles call it

    def __init__(self, stride: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...], groups: int, ceiling: float = ANY):
        self._steps, self._ceiling = (stride, padding, dilation, groups), ceiling
        self.way: str | None = None

    def __call__(self, data: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None,
                 residual: torch.Tensor | None = None) -> torch.Tensor:
        """Return the result, in memory of its own.

        Parameters
        ----------
        data : torch.Tensor
            (N, C, H, W).
        weight : torch.Tensor
            (K, C / groups, R, S).
        bias : torch.Tensor, optional
            (K,).
        residual : torch.Tensor, optional
            Of the result's shape and type.
        """
        way = self.way
        if way is not PARTS and not (data.is_cuda and data.dtype in _TYPES and data.is_contiguous(memory_format=torch.channels_last)):
            way = PARTS
        if way is None and not _cuda.is_current_stream_capturing():
            way = self.way = self._fastest(data, weight, bias, residual)
        return self.run(way or PARTS, data, weight, bias, residual)

    def run(self, way: str, data: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, residual: torch.Tensor | None) -> torch.Tensor:
        """Return the result, computed in one way."""
        if way == PRODUCT:
            return self._product(data, weight, bias)
        if way == PARTS:
            out = torch.conv2d(data, weight, bias, *self._steps)
            out = out if residual is None else out.add_(residual)
            return out if self._ceiling < 0 else torch.relu_(out) if self._ceiling == math.inf else out.clamp_(0, self._ceiling)
        if way == WIDENED:
            data, weight = _widened(data), _widened(weight)
        if residual is None:
            out = torch.cudnn_convolution_relu(data, weight, bias, *self._steps)
        else:
            out = torch.cudnn_convolution_add_relu(data, weight, residual, 1.0, bias, *self._steps)
        return out if self._ceiling == math.inf else out.clamp_(max=self._ceiling)

    def _product(self, data: torch.Tensor, weight: torch.Tensor, bias: Any) -> torch.Tensor:
        count, _, height, width = data.shape
        pixels, filters = data.permute(0, 2, 3, 1).reshape(-1, data.shape[1]), weight.reshape(weight.shape[:2]).t()
        out = torch.addmm(bias, pixels, filters) if self._ceiling < 0 else torch._addmm_activation(bias, pixels, filters)
        return out.view(count, height, width, -1).permute(0, 3, 1, 2)

    def ways(self, data: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, residual: torch.Tensor | None) -> list[str]:
        """The ways in which data of such a shape may be computed, the most promising first."""
        found: list[str] = []
        if self._steps[3] > 1:  # depthwise convolutions and those of many groups have kernels of their own, which take no ReLU
            return [PARTS]
        if bias is not None and self._ceiling >= 0:
            found += [FUSED, WIDENED] if data.dtype is not torch.float32 and data.shape[1] < _WIDE else [FUSED]
        single = weight.shape[2:] == (1, 1) and self._steps[:2] == ((1, 1), (0, 0))
        # Products of float32 matrices may be rounded otherwise than convolutions.
        if bias is not None and residual is None and single and self._ceiling in (ANY, math.inf) and data.dtype is not torch.float32:
            found.append(PRODUCT)
        return [*found, PARTS]

    def _fastest(self, *arguments: Any) -> str:
        """The fastest of the ways that work here; the first of them where nothing may race."""
        runs = {way: functools.partial(self.run, way, *arguments) for way in self.ways(*arguments)}
        for way, run in list(runs.items()) if len(runs) > 1 else ():
            try:
                run()  # lets cuDNN choose its algorithm
            except torch.OutOfMemoryError:
                raise
            except RuntimeError:  # it has no engine for such shapes
                del runs[way]
        best, *others = runs
        if not others or not tuning.allowed():
            return best
        least = math.inf
        for way, run in runs.items():
            taken = min(_milliseconds(run) for _ in range(_ROUNDS))
            if taken < least * _CLEARLY:
                best, least = way, taken
        return best


def _widened(data: torch.Tensor) -> torch.Tensor:
    """Return images or filters with channels of zeros behind theirs, up to what tensor cores take at once."""
    return torch.constant_pad_nd(data, (0, 0, 0, 0, 0, _WIDE - data.shape[1])).contiguous(memory_format=torch.channels_last)


def _milliseconds(function: Callable[[], Any]) -> float:
    """How long a GPU takes for some runs, by its own clock."""
    start, end = _cuda.Event(enable_timing=True), _cuda.Event(enable_timing=True)
    _cuda._sleep(_AHEAD)
    start.record()
    for _ in range(_RUNS):
        function()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end))


def ordered(weight: torch.Tensor) -> torch.Tensor:
    """Return a copy of filters in the order in memory in which they are read fastest."""
    last = weight.dim() == 4 and wants_channels_last(weight)
    return weight.clone(memory_format=torch.channels_last if last else torch.contiguous_format)


def folded(weight: torch.Tensor, bias: torch.Tensor | None, *numbers: torch.Tensor, eps: float, fix_gamma: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the filters and the bias with a batch norm in them, in the type of the filters.

    Parameters
    ----------
    weight : torch.Tensor
        (K, C, R, S).
    bias : torch.Tensor or None
        (K,).
    numbers : torch.Tensor
        The batch norm's gamma, beta, moving mean and moving variance, each (K,).
    eps : float
    fix_gamma : bool
        Whether gamma counts as 1.
    """
    scale, shift = folding.scale_and_shift(bias, numbers, {"eps": eps, "fix_gamma": fix_gamma})
    return ordered((weight.float() * scale.float().reshape(-1, 1, 1, 1)).to(weight.dtype)), shift.to(weight.dtype)


def no_bias(weight: torch.Tensor) -> torch.Tensor:
    """Return a bias (K,) that adds nothing, for filters (K, C, R, S)."""
    return weight.new_zeros(weight.shape[:1])


def casts(program: Program, weights: set[FxNode]) -> set[FxNode]:
    """The casts of weights for mixed precision, which are made once; not those that are results."""
    found = {n for n in program.graph.nodes if calls(n, amp_cast) and n.args[0] in weights}
    return found - set(program.outputs)


def apply(program: Program, weights: set[FxNode]) -> tuple[list[str], set[FxNode]]:
    """Rewrite the convolutions of a graph whose layout is decided.

    Parameters
    ----------
    program : Program
        Its values have to be inferred.
    weights : set of fx.Node
        The nodes whose values change rarely.

    Returns
    -------
    list of str
        What was done, as lines of a report.
    set of fx.Node
        The nodes that prepare weights.
    """
    counts: dict[str, int] = {}
    prepared: set[FxNode] = set()
    taken: set[FxNode] = set()
    layers: dict[FxNode, folding.Chain] = {}
    for node in list(program.graph.nodes):
        if not _suits(program, node, weights):
            continue
        chain = folding.chain(program, node, weights.__contains__, taken)
        if chain.residual is not None and chain.ceiling < 0:
            chain = _without_addition(chain, taken)
        if len(chain.parts) == 1 and node.kwargs["kernel"] == (1, 1):
            continue  # filters of one pixel have no order in memory to be brought into
        new = _replaced(program, node, chain, prepared)
        layers[new] = chain
        counts[chain.kind] = counts.get(chain.kind, 0) + 1
    _join_biases(program, layers, prepared)
    return [f"cuda: {count} x convolution{kind}" for kind, count in sorted(counts.items())], prepared


def _suits(program: Program, node: FxNode, weights: set[FxNode]) -> bool:
    """Whether this is a convolution in two dimensions, with weights, in one type that cuDNN computes with."""
    if not convolves(node) or any(n not in weights for n in node.args[1:]) or not program.shape(node):
        return False
    types = {program.values[n].dtype if n in program.values else None for n in node.args}
    return len(types) == 1 and types.pop() in _TYPES


def _without_addition(chain: folding.Chain, taken: set[FxNode]) -> folding.Chain:
    """The chain before its addition, which gains nothing where no ReLU follows: another convolution may take it."""
    taken.remove(chain.parts[-1])
    return folding.Chain(chain.parts[:-1], chain.norm, None, ANY)


def _replaced(program: Program, node: FxNode, chain: folding.Chain, prepared: set[FxNode]) -> FxNode:
    """Put one call in the place of a chain; adds the nodes that prepare its weights to `prepared`."""
    graph, attributes, last = program.graph, attributes_of(node), chain.parts[-1]
    weight, bias = node.args[1], node.args[2] if len(node.args) == 3 else None
    layer = Convolution(tuple(attributes["stride"] or (1, 1)), tuple(attributes["pad"] or (0, 0)), tuple(attributes["dilate"] or (1, 1)),
                        attributes["num_group"], chain.ceiling)

    def call(function: Callable, *args: Any, **kwargs: Any) -> FxNode:
        made = graph.call_function(function, args, kwargs)
        prepared.add(made)
        return made
    with graph.inserting_before(last):
        if chain.norm is not None:
            normalized = attributes_of(chain.norm)
            pair = call(folded, weight, bias, *chain.norm.args[1:], eps=normalized["eps"], fix_gamma=normalized["fix_gamma"])
            weight, bias = call(item, pair, 0), call(item, pair, 1)
        else:
            bias = call(no_bias, weight) if bias is None and chain.ceiling >= 0 else bias
            weight = call(ordered, weight) if attributes["kernel"] != (1, 1) else weight  # filters of one pixel lie in the same order either way
        new = graph.call_function(layer, (node.args[0], weight, bias, *([] if chain.residual is None else [chain.residual])))
    joined(new, *chain.parts)
    program.values[new] = program.values[last]
    last.replace_all_uses_with(new)
    for part in reversed(chain.parts):
        graph.erase_node(part)
    return new


def _join_biases(program: Program, layers: dict[FxNode, folding.Chain], prepared: set[FxNode]) -> None:
    """Let a convolution add the bias of another one, whose result it adds: without a ReLU a bias takes torch a pass over memory."""
    for node in layers:
        residual = node.args[3] if len(node.args) == 4 else node
        if residual is node or residual not in layers or folding.only_user(residual) is not node:
            continue
        if layers[residual].ceiling >= 0 or residual.args[2] is None:
            continue
        first, second = node.args[2], residual.args[2]
        with program.graph.inserting_before(node):
            both = program.graph.call_function(torch.add, (first, second))
        prepared.add(both)
        node.update_arg(2, both)
        residual.update_arg(2, None)
