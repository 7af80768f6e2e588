"""The `kernels` backend: inference on CPUs by our own kernels, with constant weights.

Batch norms are folded into the convolutions before them, sums and ReLU are computed by these, and weights of convolutions with stride 1 are
transformed once for Winograd kernels (`kernels.conv.winograd`), where these measure faster. With few rows the weights of fully
connected layers are prepacked (`kernels.gemm.prepacked_skinny`).
"""
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ....base import MXNetError
from ....kernels.conv import convolution as direct
from ....kernels.conv.prepacked_conv import PrepackedConv
from ....kernels.gemm import prepacked_skinny
from ....kernels.nn.pooling_nhwc import Pooling
from ....kernels.runtime.strided_output import StridedOutputLayer
from ....ops.nn.dense import fully_connected
from ....ops.nn.pooling import pooling
from ....suggestions import shortened
from ...instrumentation import record_origins
from ...passes import amp_casts, attention, folding, fusion, layout, output_ownership, recurrent_layers
from ...passes.layout import convolves
from ...program import FxNode, Program, attributes_of, calls, holds
from ..registry import Unavailable, asks_for_exact
from . import batch_tiling, concat_in_place, mlp_fusion
from .static_plan import StaticPlan

_BRIEF = ("bfloat16", "bf16")
LEAST_WORK = 1 << 28  # least number of multiplications of all convolutions: compiling a smaller graph takes longer than it saves


class Kernels:
    """The backend that runs a graph by our own kernels for one set of shapes, with constant weights.

    With `only_if_worthwhile` it rejects graphs for which it is hardly ever the fastest: small ones, and those whose results are to be exact.

    Options
    -------
    exact : bool
        If True, convolutions never run on kernels with fewer multiplications and larger rounding errors.
    weights : {'float32', 'bfloat16', 'bf16'}
        The type of the weights of fully connected layers. With few images, reading these takes all the time, so that bfloat16 halves it; each is
        rounded to 8 binary digits, by up to 2^-9 of its size. Computations are in float32.
    """

    name = "kernels"
    specializes = True
    trains = False
    freezes = True
    devices = ("cpu",)

    def __init__(self, only_if_worthwhile: bool = False):
        self._only_if_worthwhile = only_if_worthwhile

    def available(self) -> bool:
        """Return True if the kernel of convolutions is available."""
        return direct.forward.available(T="float32")

    def compile(self, program: Program, exact: bool = False, weights: str = "float32") -> Callable:
        """Return a function from the program's inputs to the tuple of its outputs.

        Raises
        ------
        MXNetError
            If an option has a wrong type or value.
        """
        if not isinstance(exact, bool):
            raise MXNetError(f"backend 'kernels': `exact` must be True or False, received {shortened(exact)}")
        if weights not in ("float32", *_BRIEF):
            raise MXNetError(f"backend 'kernels': `weights` must be 'float32' or 'bfloat16', received {shortened(weights)}")
        exact = exact or program.exact or asks_for_exact()
        if self._only_if_worthwhile and (exact or not is_worth_compiling(program)):
            raise Unavailable("it would not be ahead of others")
        module = program.module
        program.report += amp_casts.apply(module) + layout.apply(module)
        program.infer()
        folding.drop_idle(program)
        counts = fold(program, exact)
        program.report += [f"kernels: {count} x convolution{kind}" for kind, count in sorted(counts.items())]
        program.report += _pool(program)
        program.report += concat_in_place.apply(program) + ([] if weights in _BRIEF else mlp_fusion.apply(program))
        program.report += _keep_dense(program, weights in _BRIEF)
        program.report += fusion.fuse_batch_norms(module) + fusion.rectify_in_place(module)
        program.report += recurrent_layers.apply(module) + attention.apply(module)
        program.report += batch_tiling.apply(program)
        output_ownership.apply(module)  # again: removed dropout was a copy
        program.finish()
        has_plan = any(isinstance(target, StridedOutputLayer) for target in batch_tiling.targets(program.graph))  # else there is nothing to plan
        return StaticPlan(program) if has_plan else module.forward


def is_worth_compiling(program: Program) -> bool:
    """Return True if the convolutions have enough multiplications for the graph to be worth compiling."""
    return sum(work for _, work in _convolutions(program)) >= LEAST_WORK


def _convolutions(program: Program) -> Iterator[tuple[FxNode, int]]:
    """Yield the convolutions with constant weights, and their numbers of multiplications."""
    for node in program.graph.nodes:
        if convolves(node) and node.args[1] in program.constants and program.shape(node) is not None:
            yield node, math.prod(program.shape(node) or ()) * math.prod(program.constants[node.args[1]].shape[1:])


def _steps(attributes: dict[str, Any]) -> tuple[int, ...]:
    return (*(attributes["stride"] or (1, 1)), *(attributes["pad"] or (0, 0)), *(attributes["dilate"] or (1, 1)))


def fold(program: Program, exact: bool) -> dict[str, int]:
    """Replace convolutions with constant weights and the nodes folded into them; return the number of each kind."""
    counts: dict[str, int] = {}
    graph = program.graph
    taken: set[FxNode] = set()
    for node in list(graph.nodes):
        if not _fixed(program, node):
            continue
        attributes = attributes_of(node)
        weight, bias = (program.constants[n] for n in node.args[1:]) if len(node.args) == 3 else (program.constants[node.args[1]], None)
        chain, scale = folding.chain(program, node, program.constants.__contains__, taken), None
        if chain.norm is not None:
            scale, bias = (t.float() for t in folding.scale_and_shift(bias, [program.constants[n] for n in chain.norm.args[1:]],
                                                                      attributes_of(chain.norm)))
        last, residual = chain.parts[-1], chain.residual
        steps = _steps(attributes)
        data = node.args[0]
        planes = data.target is layout.channels_last and attributes["num_group"] == 1 and PrepackedConv.few_channels(weight, steps[4:])
        layer = PrepackedConv(weight.detach(), bias, steps[:2], steps[2:4], steps[4:], attributes["num_group"], chain.ceiling, exact, scale, planes)
        data = data.args[0] if planes else data
        with graph.inserting_before(last):
            new = graph.call_function(layer, (data,) if residual is None else (data, residual))
        record_origins(new, *chain.parts)
        program.values[new] = program.values[last]
        last.replace_all_uses_with(new)
        for part in (*reversed(chain.parts), *([node.args[0]] if planes else [])):
            if not part.users:
                graph.erase_node(part)
        counts[chain.kind] = counts.get(chain.kind, 0) + 1
    return counts


def _pool(program: Program) -> list[str]:
    """Replace the pooling of channels-last images; return the lines of a report."""
    graph, last, count = program.graph, set(), 0
    for node in list(graph.nodes):
        if isinstance(node.target, StridedOutputLayer) or node.target is layout.channels_last:
            last.add(node)
        elif holds(node, "layout_agnostic") and any(n in last for n in node.all_input_nodes):
            last.add(node)
            layer = _pooling(program, node) if calls(node, pooling) else None
            if layer is not None:
                with graph.inserting_before(node):
                    new = graph.call_function(layer, node.args)
                record_origins(new, node)
                last.add(new)
                program.values[new] = program.values[node]
                node.replace_all_uses_with(new)
                graph.erase_node(node)
                count += 1
    return [f"kernels: {count} x pooling"] if count else []


def _pooling(program: Program, node: FxNode) -> Pooling | None:
    """Return the pooling layer of a node; None if the kernel does not support it."""
    attributes, data, out = attributes_of(node), program.shape(node.args[0]), program.shape(node)
    if data is None or out is None or len(data) != 4 or attributes["pool_type"] not in ("max", "avg"):
        return None
    if program.values[node.args[0]].dtype is not torch.float32:
        return None
    is_global = attributes["global_pool"]
    kernel = data[2:] if is_global else attributes["kernel"]
    stride, pad = (() if is_global else attributes[name] for name in ("stride", "pad"))
    return Pooling(functools.partial(pooling.fn, **node.kwargs), (out[2], out[3]), kernel, stride or (1, 1), pad or (0, 0),
                   attributes["pool_type"] == "avg", attributes["count_include_pad"] is not False)


def _keep_dense(program: Program, brief: bool) -> list[str]:
    """Replace fully connected layers with constant weights, and ReLU behind them; return the lines of a report."""
    graph, count = program.graph, 0
    for node in list(graph.nodes):
        if not calls(node, fully_connected) or any(n not in program.constants for n in node.args[1:]) or not math.prod(program.shape(node) or (0,)):
            continue
        if any(program.values[n].dtype is not torch.float32
               for n in node.args) or program.values[node.args[0]].dim() < 2 or not prepacked_skinny.available():
            continue
        weight, bias = (program.constants[n] for n in node.args[1:]) if len(node.args) == 3 else (program.constants[node.args[1]], None)
        relu = folding.only_user(node)
        relu = relu if holds(relu, "is_relu") else None
        layer = prepacked_skinny.Dense(weight.detach(), bias, attributes_of(node)["flatten"], relu is not None, brief)
        last = relu or node
        with graph.inserting_before(last):
            new = graph.call_function(layer, (node.args[0],))
        record_origins(new, *([node] if relu is None else [node, relu]))
        program.values[new] = program.values[last]
        last.replace_all_uses_with(new)
        for part in (last, node) if relu is not None else (node,):
            graph.erase_node(part)
        count += 1
    return [f"kernels: {count} x fully connected layer{', weights in bfloat16' if brief else ''}"] if count else []


def _fixed(program: Program, node: FxNode) -> bool:
    """Return True if this is a convolution in single precision with constant weights."""
    if not convolves(node) or any(n not in program.constants for n in node.args[1:]):
        return False
    return program.shape(node) is not None and all(program.values[n].dtype is torch.float32 for n in node.args)
