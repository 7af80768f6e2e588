"""Convolutions on GPUs with folded batch norms, and with the addition and the ReLU behind them as one layer.

The rewritten graph reads weights that are derived from the program's: the pass returns the nodes that derive them, which are to run
before the graph (`prepared_weights`).
"""
import functools
from collections.abc import Callable
from typing import Any

import torch

from ....kernels.nn import scoring_on_gpu
from ....ops.elemwise.unary import amp_cast
from ....ops.nn import normalization
from ....ops.nn.pooling import pooling
from ...instrumentation import record_origins
from ...passes import folding
from ...passes.layout import convolves
from ...program import FxNode, Program, attributes_of, calls, holds, item
from ..registry import on_tensor_cores, wants_channels_last
from .scoring_layers import TYPES, Convolution, MaxPool, Normalization


def ordered(weight: torch.Tensor) -> torch.Tensor:
    """Return a copy of filters in the memory format that convolutions read fastest."""
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
        If True, gamma is taken as 1.
    """
    scale, shift = folding.scale_and_shift(bias, numbers, {"eps": eps, "fix_gamma": fix_gamma})
    return ordered((weight.float() * scale.float().reshape(-1, 1, 1, 1)).to(weight.dtype)), shift.to(weight.dtype)


def no_bias(weight: torch.Tensor) -> torch.Tensor:
    """Return a bias (K,) that adds nothing, for filters (K, C, R, S)."""
    return weight.new_zeros(weight.shape[:1])


def casts(program: Program, weights: set[FxNode]) -> set[FxNode]:
    """Return the casts of weights for mixed precision, which are precomputed; casts that are outputs are excluded."""
    nodes = {n for n in program.graph.nodes if calls(n, amp_cast) and n.args[0] in weights}
    return nodes - set(program.outputs)


def apply(program: Program, weights: set[FxNode], device: torch.device) -> tuple[list[str], set[FxNode]]:
    """Rewrite the convolutions of a graph after the layout pass, and the layers between them.

    Parameters
    ----------
    program : Program
        Its values have to be inferred.
    weights : set of fx.Node
        The nodes whose values change rarely.
    device : torch.device

    Returns
    -------
    list of str
        The lines of a report.
    set of fx.Node
        The nodes that derive weights.
    """
    counts: dict[str, int] = {}
    prepared: set[FxNode] = set()
    taken: set[FxNode] = set()
    layers: dict[FxNode, folding.Chain] = {}
    for node in list(program.graph.nodes):
        if not _suits(program, node, weights):
            continue
        chain = folding.chain(program, node, weights.__contains__, taken)
        if len(chain.parts) == 1 and node.kwargs["kernel"] == (1, 1):
            continue  # filters of one pixel need no change of the memory format
        new = _replaced(program, node, chain, prepared)
        layers[new] = chain
        counts[chain.kind] = counts.get(chain.kind, 0) + 1
    _join_biases(program, layers, prepared)
    report = [f"cuda: {count} x convolution{kind}" for kind, count in sorted(counts.items())]
    if layers and scoring_on_gpu.available(device):
        report += _normalize(program, weights, prepared, device) + _pool(program)
    return report, prepared


def _suits(program: Program, node: FxNode, weights: set[FxNode]) -> bool:
    """Return True if this is a two-dimensional convolution, in one type that cuDNN supports."""
    if not convolves(node) or any(n not in weights for n in node.args[1:]) or not program.shape(node):
        return False
    types = {program.values[n].dtype if n in program.values else None for n in node.args}
    return len(types) == 1 and types.pop() in TYPES


def _replaced(program: Program, node: FxNode, chain: folding.Chain, prepared: set[FxNode]) -> FxNode:
    """Replace a chain by one call; add the nodes that derive its weights to `prepared`."""
    graph, attributes, last = program.graph, attributes_of(node), chain.parts[-1]
    weight, bias = node.args[1], node.args[2] if len(node.args) == 3 else None
    layer = Convolution(tuple(attributes["stride"] or (1, 1)), tuple(attributes["pad"] or (0, 0)), tuple(attributes["dilate"] or (1, 1)),
                        attributes["num_group"], chain.ceiling)

    def call(function: Callable, *args: Any, **kwargs: Any) -> FxNode:
        created = graph.call_function(function, args, kwargs)
        prepared.add(created)
        return created
    with graph.inserting_before(last):
        if chain.norm is not None:
            normalized = attributes_of(chain.norm)
            pair = call(folded, weight, bias, *chain.norm.args[1:], eps=normalized["eps"], fix_gamma=normalized["fix_gamma"])
            weight, bias = call(item, pair, 0), call(item, pair, 1)
        else:
            bias = call(no_bias, weight) if bias is None and chain.ceiling >= 0 else bias
            weight = call(ordered, weight) if attributes["kernel"] != (1, 1) else weight  # filters of one pixel lie in the same order either way
        new = graph.call_function(layer, (node.args[0], weight, bias, *([] if chain.residual is None else [chain.residual])))
    _take_place(program, new, chain.parts)
    return new


def _join_biases(program: Program, layers: dict[FxNode, folding.Chain], prepared: set[FxNode]) -> None:
    """Move the bias of a convolution to the convolution that adds its result: without ReLU, torch adds a bias in a pass over memory."""
    for node in layers:
        residual = node.args[3] if len(node.args) == 4 else node
        if residual is node or residual not in layers or folding.only_user(residual) is not node:
            continue
        if layers[residual].ceiling >= 0 or layers[residual].residual is not None or residual.args[2] is None:
            continue
        both = residual.args[2]
        if node.args[2] is not None:
            with program.graph.inserting_before(node):
                both = program.graph.call_function(torch.add, (node.args[2], both))
            prepared.add(both)
        node.update_arg(2, both)
        residual.update_arg(2, None)


def scale_and_shift(*numbers: torch.Tensor, eps: float, fix_gamma: bool) -> tuple[torch.Tensor, ...]:
    """Return a batch norm's factor and offset of each channel, in float32; the arguments are those of `folded`."""
    return tuple(t.float() for t in folding.scale_and_shift(None, numbers, {"eps": eps, "fix_gamma": fix_gamma}))


def _normalize(program: Program, weights: set[FxNode], prepared: set[FxNode], device: torch.device) -> list[str]:
    """Replace batch norms that were not folded, and the ReLU behind them; return lines of the report."""
    counts: dict[str, int] = {}
    for node in list(program.graph.nodes):
        if not calls(node, normalization.batch_norm) or not folding.normalizes(program, node, weights.__contains__):
            continue
        if len(program.shape(node) or ()) != 4 or not on_tensor_cores(program.values[node.args[0]].dtype, device):
            continue  # its channels are not last
        relu = folding.only_user(node)
        ceiling = folding.ceiling(relu)
        last, attributes = node if ceiling < 0 else relu, attributes_of(node)
        with program.graph.inserting_before(last):
            pair = program.graph.call_function(scale_and_shift, node.args[1:], {k: attributes[k] for k in ("eps", "fix_gamma")})
            parts = [program.graph.call_function(item, (pair, i)) for i in range(2)]
            new = program.graph.call_function(Normalization(ceiling), (node.args[0], *parts))
        prepared.update((pair, *parts))
        _take_place(program, new, [node] if last is node else [node, relu])
        kind = "" if last is node else " + relu"
        counts[kind] = counts.get(kind, 0) + 1
    return [f"cuda: {count} x batch norm{kind}" for kind, count in sorted(counts.items())]


def _pool(program: Program) -> list[str]:
    """Replace maximum pooling; return lines of the report."""
    count = 0
    for node in list(program.graph.nodes):
        layer = _pooling(program, node) if calls(node, pooling) and holds(node, "layout_agnostic") else None
        if layer is not None:
            with program.graph.inserting_before(node):
                new = program.graph.call_function(layer, node.args)
            _take_place(program, new, [node])
            count += 1
    return [f"cuda: {count} x max pooling"] if count else []


def _pooling(program: Program, node: FxNode) -> MaxPool | None:
    """Return the maximum pooling layer of a node; None if it is another kind of pooling."""
    attributes, data, out = attributes_of(node), program.shape(node.args[0]), program.shape(node)
    if data is None or out is None or len(data) != 4 or attributes["pool_type"] != "max" or attributes["global_pool"]:
        return None
    kernel, stride, pad = attributes["kernel"], attributes["stride"] or (1, 1), attributes["pad"] or (0, 0)
    if any(p >= k or (n - 1) * s - p >= size for k, s, p, n, size in zip(kernel, stride, pad, out[2:], data[2:])):
        return None  # a window lies in the padding alone
    return MaxPool(functools.partial(pooling.fn, **node.kwargs), (out[2], out[3]), kernel, stride, pad)


def _take_place(program: Program, new: FxNode, parts: list[FxNode]) -> None:
    """Replace the nodes of a chain by the node that computes their results."""
    record_origins(new, *parts)
    program.values[new] = program.values[parts[-1]]
    parts[-1].replace_all_uses_with(new)
    for part in reversed(parts):
        program.graph.erase_node(part)
