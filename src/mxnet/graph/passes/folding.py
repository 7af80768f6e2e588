"""Pattern search for inference with known weights: a convolution with the batch norm, the addition and the ReLU behind it.

The folding backends share this search; each has its own layer that computes the matched nodes.
"""
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import torch

from ...kernels.runtime.strided_output import ANY
from ...ops.elemwise.unary import clip
from ...ops.nn import normalization
from ...ops.nn.dropout import dropout
from ..program import FxNode, Program, attributes_of, calls, holds, is_stochastic
from . import fusion


class Chain(NamedTuple):
    """Nodes that one call can compute; each is the only reader of the one before it.

    Attributes
    ----------
    parts : list of fx.Node
        All of them, in order: a convolution first.
    norm : fx.Node or None
        The batch norm among them.
    residual : fx.Node or None
        The other operand of the addition.
    ceiling : float
        The upper limit of rectified results: infinite for ReLU, 6 for ReLU6; `ANY` without rectification.
    """

    parts: list[FxNode]
    norm: FxNode
    residual: FxNode
    ceiling: float

    @property
    def kind(self) -> str:
        """The nodes behind the convolution, as text for a report."""
        limited = "" if self.ceiling < 0 else " + relu" if self.ceiling == math.inf else " + clip"
        return (" + batch norm" if self.norm is not None else "") + (" + add" if self.residual is not None else "") + limited


def chain(program: Program, node: FxNode, known: Callable[[FxNode], bool], taken: set) -> Chain:
    """Return the chain of a convolution and the nodes behind it that can be computed with it.

    Parameters
    ----------
    program : Program
    node : fx.Node
        The convolution.
    known : callable
        Returns True if a node's values are constant, as those of weights.
    taken : set of fx.Node
        Additions that belong to other chains; this chain's addition is added to the set.
    """
    parts, norm, residual = [node], only_user(node), None
    if norm is not None and normalizes(program, norm, known) and norm.args[0] is node:
        parts.append(norm)
    else:
        norm = None
    total = only_user(parts[-1])
    if total is not None and total not in taken and _adds(program, total):
        residual = total.args[1] if total.args[0] is parts[-1] else total.args[0]
        taken.add(total)
        parts.append(total)
    relu = only_user(parts[-1])
    limit = ceiling(relu)
    if limit >= 0:
        parts.append(relu)
    return Chain(parts, norm, residual, limit)


def only_user(node: FxNode) -> FxNode:
    """Return the single reader of a node's result; None if there are several, or none."""
    return next(iter(node.users)) if len(node.users) == 1 else None


def normalizes(program: Program, node: FxNode, known: Callable[[FxNode], bool]) -> bool:
    """Return True if this is a batch norm over the channels with known parameters."""
    if not calls(node, normalization.batch_norm) or len(node.args) != 5:
        return False
    attributes = attributes_of(node)
    averages = not attributes.get("training") or attributes["use_global_stats"]
    return (averages and attributes["axis"] == 1 and not attributes["output_mean_var"] and all(map(known, node.args[1:]))
            and program.shape(node) is not None)


def scale_and_shift(bias: torch.Tensor | None, numbers: Iterable[torch.Tensor], attributes: Mapping[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a batch norm's factor and offset of each channel, in float64; the bias is part of the offset.

    Parameters
    ----------
    bias : torch.Tensor or None
        (C,).
    numbers : iterable of torch.Tensor
        gamma, beta, moving mean and moving variance, each (C,).
    attributes : dict
        The operator's.
    """
    gamma, beta, mean, var = (t.double() for t in numbers)
    scale = (var + attributes["eps"]).rsqrt()
    if not attributes["fix_gamma"]:
        scale = scale * gamma
    return scale, beta - mean * scale if bias is None else beta + (bias.double() - mean) * scale


def ceiling(node: FxNode) -> float:
    """Return the upper limit of a node that clamps its results to 0 and that limit; else `ANY`."""
    if holds(node, "is_relu"):
        return math.inf
    if calls(node, clip) and attributes_of(node)["a_min"] == 0 and attributes_of(node)["a_max"] > 0:
        return float(attributes_of(node)["a_max"])
    return ANY


def drop_idle(program: Program) -> None:
    """Remove inactive dropout, which would copy its data."""
    for node in list(program.graph.nodes):
        if calls(node, dropout) and not is_stochastic(node) and node.args[0].op != "placeholder":
            node.replace_all_uses_with(node.args[0])
            program.graph.erase_node(node)


def _adds(program: Program, node: FxNode) -> bool:
    """Return True if the node adds two different arrays of one shape and type."""
    if not fusion.adds(node) or node.args[0] is node.args[1]:
        return False
    total, *values = [program.values.get(n) for n in (node, *node.args)]
    return isinstance(total, torch.Tensor) and all(
        isinstance(v, torch.Tensor) and v.dtype is total.dtype and v.shape == total.shape for v in values)
