"""Training graphs whose results depend on the last bit of what their batch norms are given.

The statistics of a few values follow each of them: the normalized ones are of the size of 1 however small the differences are, and rounding
grows by up to ``1 / sqrt(eps)`` in each layer. Two orders of the same sums, each right to 1e-7, then differ by 1e-3 behind ResNet-18 on 1 x 1
pixels and two images. Where such layers follow one another, the graph runs operator by operator as it would without one, so that both results are
equal.
"""
import math
from collections.abc import Mapping, Sequence

from ..ops.nn import normalization
from ..symbol import inference
from ..symbol.node import Node

_FEW = 8  # values of a channel: from so many on, results in single precision agree to 1e-5 behind ResNet-18, to 1e-4 behind ResNet-50
_CHAIN = 2  # layers, one behind another; a single one, such as that of a pooled image, does no harm
_layers = (normalization.batch_norm, normalization.batch_norm_with_relu, normalization.batch_norm_v1, normalization.sync_batch_norm)


def batch_norms(nodes: Sequence[Node]) -> set[int]:
    """The ids of the nodes that normalize by the statistics of their batch while training."""
    return {id(node) for node in nodes if node.op in _layers and not node.op.with_defaults(node.parsed())["use_global_stats"]}


def is_ill_conditioned(nodes: Sequence[Node], norms: set[int], given: Mapping[str, tuple[int, ...]]) -> bool:
    """Return whether several of the `norms`, one behind another, normalize a few values of each channel. (A single value becomes 0 exactly.)

    Parameters
    ----------
    nodes : list of Node
        In order.
    norms : set of int
        Those that `batch_norms` names.
    given : dict of str to tuple of int
        The shapes of the variables.

    Raises
    ------
    MXNetError
        If a rule contradicts a shape.
    """
    shapes = inference.check_shapes(nodes, given)
    depths: dict[int, int] = {}  # how many such layers an output has gone through
    for node in nodes:
        depth = max((depths[id(child)] for child, _ in node.inputs), default=0)
        if id(node) in norms:
            shape, channels = (shapes[id(child), i] for child, i in node.inputs[:2])
            if shape and channels and channels[0] and 1 < math.prod(shape) // channels[0] < _FEW:
                depth += 1
        depths[id(node)] = depth
    return max(depths.values(), default=0) >= _CHAIN
