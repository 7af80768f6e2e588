"""Detection of ill-conditioned batch norms: training graphs whose results depend on the last bit of their inputs.

The statistics of a few values follow each of these values: normalized values are of the size of 1 however small their differences, and rounding
errors grow by up to ``1 / sqrt(eps)`` in each layer. Two orders of the same sums, each right to 1e-7, then differ by 1e-3 behind ResNet-18 on 1 x 1
pixels and two images. With several such layers in a row the graph runs operator by operator as in eager execution, so that both results are
equal.
"""
import math
from collections.abc import Mapping, Sequence

from ...ops.nn import normalization
from ...symbol import inference
from ...symbol.control_flow import variables
from ...symbol.fused import stands_for
from ...symbol.node import Entry, Node, topological

_FEW = 8  # values of a channel: from so many on, results in single precision agree to 1e-5 behind ResNet-18, to 1e-4 behind ResNet-50
_CHAIN = 2  # layers in a row; a single one, such as that of a pooled image, is harmless
_layers = (normalization.batch_norm, normalization.batch_norm_with_relu, normalization.batch_norm_v1, normalization.sync_batch_norm)


def batch_norms(nodes: Sequence[Node]) -> set[int]:
    """Return the ids of the nodes that normalize by batch statistics in training, those in the graphs of fused nodes included."""
    ids = {id(node) for node in nodes if node.op in _layers and not node.op.with_defaults(node.parsed())["use_global_stats"]}
    return ids.union(*(batch_norms(topological(graph)) for node in nodes if (graph := _inside(node)) is not None))


def _inside(node: Node) -> Sequence[Entry] | None:
    return stands_for(node) if node.op is not None else None


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
    return _deepest(nodes, norms, given, 0) >= _CHAIN


def _deepest(nodes: Sequence[Node], norms: set[int], given: Mapping[str, tuple[int, ...]], before: int) -> int:
    """Return the largest number of such layers that an output has gone through, `before` of them ahead of all variables."""
    shapes = inference.check_shapes(nodes, given)
    depths: dict[int, int] = {}
    for node in nodes:
        depth = max((depths[id(child)] for child, _ in node.inputs), default=before)
        graph = _inside(node)
        if graph is not None:
            inner = topological(graph)
            sizes = {v.name: shape for v, (child, i) in zip(variables(inner), node.inputs) if (shape := shapes[id(child), i]) is not None}
            depth = _deepest(inner, norms, sizes, depth)
        elif id(node) in norms:
            shape, channels = (shapes[id(child), i] for child, i in node.inputs[:2])
            if shape and channels and channels[0] and 1 < math.prod(shape) // channels[0] < _FEW:
                depth += 1
        depths[id(node)] = depth
    return max(depths.values(), default=before)
