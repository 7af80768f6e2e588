"""Which nodes inference with known weights computes as one: a convolution with the batch norm, the addition and the ReLU behind it.

The backends that fold share the search; each has a layer of its own that computes what was found.
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
    """Nodes that one call can compute, each the only reader of the one before it.

    Attributes
    ----------
    parts : list of fx.Node
        All of them, in order: a convolution first.
    norm : fx.Node or None
        The batch norm among them.
    residual : fx.Node or None
        What is added.
    ceiling : float
        Where results are rectified, the largest that they may be: infinite for ReLU, 6 for ReLU6; else `ANY`.
    """

    parts: list[FxNode]
    norm: FxNode
    residual: FxNode
    ceiling: float

    @property
    def kind(self) -> str:
        """What follows the convolution, as it is said in a report."""
        limited = "" if self.ceiling < 0 else " + relu" if self.ceiling == math.inf else " + clip"
        return (" + batch norm" if self.norm is not None else "") + (" + add" if self.residual is not None else "") + limited


def chain(program: Program, node: FxNode, known: Callable[[FxNode], bool], taken: set) -> Chain:
    """Find what follows a convolution and can be computed with it.

    Parameters
    ----------
    program : Program
    node : fx.Node
        The convolution.
    known : callable
        Whether a node's values are known, as those of weights.
    taken : set of fx.Node
        Additions that other chains have; this one's is added.
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
    """Return the one node that reads what a node computes; None if there are more, or none."""
    return next(iter(node.users)) if len(node.users) == 1 else None


def normalizes(program: Program, node: FxNode, known: Callable[[FxNode], bool]) -> bool:
    """Whether this is a batch norm over the channels by known numbers."""
    if not calls(node, normalization.batch_norm) or len(node.args) != 5:
        return False
    attributes = attributes_of(node)
    averages = not attributes.get("training") or attributes["use_global_stats"]
    return (averages and attributes["axis"] == 1 and not attributes["output_mean_var"] and all(map(known, node.args[1:]))
            and program.shape(node) is not None)


def scale_and_shift(bias: torch.Tensor | None, numbers: Iterable[torch.Tensor], attributes: Mapping[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """By what a batch norm multiplies each channel, and what it adds to it, in float64; `bias` was added before.

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
    """Return the upper limit of the node's results, where it limits them to that and 0; else `ANY`."""
    if holds(node, "rectifies"):
        return math.inf
    if calls(node, clip) and attributes_of(node)["a_min"] == 0 and attributes_of(node)["a_max"] > 0:
        return float(attributes_of(node)["a_max"])
    return ANY


def drop_idle(program: Program) -> None:
    """Take out dropout where nothing is dropped, which would copy its data."""
    for node in list(program.graph.nodes):
        if calls(node, dropout) and not is_stochastic(node) and node.args[0].op != "placeholder":
            node.replace_all_uses_with(node.args[0])
            program.graph.erase_node(node)


def _adds(program: Program, node: FxNode) -> bool:
    """Whether the node adds two different arrays of one shape and type."""
    if not fusion.adds(node) or node.args[0] is node.args[1]:
        return False
    total, *values = [program.values.get(n) for n in (node, *node.args)]
    return isinstance(total, torch.Tensor) and all(
        isinstance(v, torch.Tensor) and v.dtype is total.dtype and v.shape == total.shape for v in values)
