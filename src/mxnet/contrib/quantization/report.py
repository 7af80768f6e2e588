"""Comparison of a quantized network with the floating-point one, layer by layer."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, Union

import numpy as np

from ... import ndarray
from ...base import MXNetError
from ...context import cpu
from ...gluon import HybridBlock
from ...graph.int8.quantize import PREFIX
from ...ndarray import NDArray
from ...symbol import Symbol
from ...symbol.node import Node, topological

if TYPE_CHECKING:
    from collections.abc import Iterable

Model: TypeAlias = Union[HybridBlock, tuple[Symbol, Mapping[str, NDArray], Mapping[str, NDArray]]]


class Layer(NamedTuple):
    """A layer's results in both networks.

    Attributes
    ----------
    name : str
        Of its node in the network on real numbers, or of the fused node.
    nodes : tuple of str
        The name to exclude to keep it in floating point.
    error : float
        The difference from the floating-point result, relative to the latter's size (a ratio of Euclidean norms); it includes the errors of
        earlier layers.
    own : float or None
        The same for the floating-point result rounded to the layer's range: the error due to this range alone. None for layers that return
        real numbers.
    clipped : float or None
        The part of the values on real numbers that lies outside of the range.
    """

    name: str
    nodes: tuple[str, ...]
    error: float
    own: float | None
    clipped: float | None


class Report(Sequence):
    """The layers of a network, in its order. ``str(report)`` is a table."""

    def __init__(self, layers: Iterable[Layer]):
        self.layers = list(layers)

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, index: Any) -> Any:
        return self.layers[index]

    def worst(self, count: int = 1) -> list[Layer]:
        """Return the layers with the largest errors due to their own ranges, the worst first."""
        return sorted((one for one in self.layers if one.own is not None), key=lambda one: -(one.own or 0))[:count]

    def __str__(self) -> str:
        width = max((len(one.name) for one in self.layers), default=5)
        return "\n".join([f"{'layer':{width}}   error     own  clipped", *(
            f"{one.name:{width}}  {one.error:6.4f}  {_number(one.own, '6.4f')}  {_number(one.clipped, '7.4f')}" for one in self.layers)])


def _number(value: float | None, spec: str) -> str:
    return " " * int(spec[0]) if value is None else format(value, spec)


def compare(original: Model, quantized: Model, data: Any) -> Report:
    """Run a network and its quantized form on the same data, and compare the results of their layers.

    Parameters
    ----------
    original, quantized : HybridBlock, or tuple of Symbol, dict and dict
        A Gluon network and the result of `quantize_net_v2`; or the Symbol, parameters and auxiliary states that `quantize_model` was given, and
        those it returned.
    data : NDArray, list of NDArray, or dict of str to NDArray
        One batch: the networks' inputs, in order or by name.

    Returns
    -------
    Report
        A `Layer` for each operator that both networks have.

    Raises
    ------
    MXNetError
        If they have none in common.

    Example
    -------
    >>> import mxnet as mx
    >>> net = mx.gluon.nn.Dense(4, in_units=3, prefix='fc_')
    >>> net.initialize()
    >>> data = mx.nd.ones((2, 3))
    >>> qnet = mx.contrib.quantization.quantize_net_v2(net, calib_data=[data], calib_mode='naive')
    >>> report = mx.contrib.quantization.compare(net, qnet, data)
    >>> report[0].nodes, report[0].error < 0.02
    (('fc_fwd',), True)
    """
    first, arrays = _graph(original, data)
    second, quantized_arrays = _graph(quantized, data)
    if not any(n.name.startswith(PREFIX) for n in second._nodes()):
        raise MXNetError("compare: the second network is not quantized; give what quantize_net_v2 or quantize_model returned")
    pairs = _pairs(first, second) or _pairs(first.get_backend_symbol("MKLDNN_QUANTIZE"), second)
    fused = _pairs(first.get_backend_symbol("MKLDNN_QUANTIZE"), second)
    pairs = fused if len(fused) > len(pairs) else pairs
    if not pairs:
        raise MXNetError("compare: the networks have no layer in common, by name; the second must have been made from the first")
    ours = _run(Symbol([(a, 0) for a, _ in pairs]), arrays)
    entries = [(b, i) for _, b in pairs for i in range(min(b.num_outputs(), 3) if _ranged(b) else 1)]
    theirs = iter(_run(Symbol(entries), quantized_arrays))
    return Report(_compared(a, real, [next(theirs) for _ in range(3 if _ranged(b) else 1)]) for (a, b), real in zip(pairs, ours))


def _ranged(node: Node) -> bool:
    return node.num_outputs() == 3 and node.name.startswith((PREFIX, "requantize_"))


def _graph(model: Model, data: Any) -> tuple[Symbol, dict[str, NDArray]]:
    """Return a model's graph, and all arrays that it takes."""
    if isinstance(model, HybridBlock):
        model.hybridize()
        model(*(data.values() if isinstance(data, Mapping) else data if isinstance(data, (list, tuple)) else [data]))
        inputs, net = model._cached_graph
        names = [variable.name for variable in inputs]
        arrays = {name: parameter._reduce() for name, parameter in model._by_name().items()}
    else:
        net, args, aux = model
        arrays = {**args, **aux}
        names = [n for n in net.list_inputs() if n not in arrays]
    given = data if isinstance(data, Mapping) else dict(zip(names, data if isinstance(data, (list, tuple)) else [data]))
    return net, {**arrays, **given}


def _pairs(first: Symbol, second: Symbol) -> list[tuple[Node, Node]]:
    """Return the nodes on real numbers, and those that return the same in the other graph."""
    by_name = {n.name: n for n in second._nodes() if n.op is not None}
    pairs = []
    for node in first._nodes():
        if node.op is not None:
            other = next((by_name[n] for n in (f"requantize_{node.name}", PREFIX + node.name, node.name) if n in by_name), None)
            if other is not None:
                pairs.append((node, other))
    return pairs


def _run(net: Symbol, arrays: Mapping[str, NDArray]) -> list[NDArray]:
    names, aux = net.list_arguments(), net.list_auxiliary_states()
    missing = [n for n in (*names, *aux) if n not in arrays]
    # Labels count for nothing in inference; their shapes follow from the data.
    if missing:
        shapes = dict(zip(names, net.infer_shape_partial(**{n: arrays[n].shape for n in names if n in arrays})[0]))
        arrays = {**arrays, **{n: ndarray.zeros(shapes[n]) for n in missing}}
    return net.bind(cpu(), {n: arrays[n] for n in names}, grad_req="null", aux_states={n: arrays[n] for n in aux}).forward()


def _compared(node: Node, real: NDArray, computed: list[NDArray]) -> Layer:
    values = real.asnumpy().astype(np.float64)
    own = clipped = None
    if len(computed) == 1:
        result = computed[0].asnumpy()
    else:
        low, high = (end.asscalar() for end in computed[1:])
        kind = computed[0].dtype.__name__
        result = ndarray.contrib.dequantize(*computed).asnumpy() if kind in ("int8", "uint8") else \
            computed[0].asnumpy() * (max(abs(low), abs(high)) / 2. ** 31)
        if kind in ("int8", "uint8"):
            rounded = ndarray.contrib.dequantize(*ndarray.contrib.quantize_v2(real, out_type=kind, min_calib_range=low, max_calib_range=high))
            own = _distance(rounded.asnumpy(), values)
            top = max(abs(low), abs(high))
            clipped = float(((values > top) | (values < (0 if kind == "uint8" else -top))).mean())
    return Layer(node.name, tuple(_names(node)), _distance(result, values), own, clipped)


def _names(node: Node) -> Iterator[str]:
    if not node.subgraphs:
        yield node.name
    for graph in node.subgraphs:
        yield from (n.name for n in topological(graph) if n.op is not None)


def _distance(computed: np.ndarray, expected: np.ndarray) -> float:
    size = np.linalg.norm(expected)
    return float(np.linalg.norm(computed - expected) / (size or 1.0))
