"""The threading policy: small networks train single-threaded, because sharing their operators among threads costs more than it saves.

To start and to end a parallel region takes 3 to 20 microseconds, depending on the machine's state, and threads that spin while they wait
slow this one down; half of a product of 32 x 784 x 128 takes 35. The decision depends on shapes alone, so that runs are reproducible to the bit.
"""
import math
from collections.abc import Mapping, Sequence

from ...ops.linalg import batch_dot, dot
from ...ops.nn.dense import fully_connected
from ...symbol import inference
from ...symbol.node import Node

_PRODUCT = 1 << 22  # multiplications of the largest product
_RESULT = 1 << 15  # elements of the largest result: from this size on torch shares elementwise operators among threads
_VARIABLES = 1 << 18  # elements of all variables
_products = (fully_connected, dot, batch_dot)


def runs_single_threaded(nodes: Sequence[Node], given: Mapping[str, tuple[int, ...]]) -> bool:
    """Return True if no operator of a graph is worth sharing among threads.

    Parameters
    ----------
    nodes : list of Node
        In order.
    given : dict of str to tuple of int
        The shapes of the variables.

    Raises
    ------
    MXNetError
        If a rule contradicts a shape.
    """
    if sum(map(math.prod, given.values())) > _VARIABLES:
        return False
    operators = [node for node in nodes if node.op is not None]
    if any(node.op not in _products and node.op.holds("compute_bound", node.op.with_defaults(node.parsed())) for node in operators):
        return False
    shapes = inference.check_shapes(nodes, given)
    for node in operators:
        results = [_numbers(shapes[id(node), i]) for i in range(node.num_outputs())]
        if max(results) > _RESULT:
            return False
        if node.op in _products:
            left, right = [_numbers(shapes[id(child), i]) for child, i in node.inputs[:2]]
            if left * right * results[0] > _PRODUCT ** 2:  # of a product (m, k) by (k, n), the square of m k n
                return False
    return True


def _numbers(shape: tuple | None) -> float:
    return math.inf if shape is None else math.prod(shape)
