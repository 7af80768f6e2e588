"""Quantization passes over a Symbol's graph: from real numbers to 8-bit integers, with the nodes and names of MXNet's files.

`quantize` replaces each operator that has a quantized version, and puts `quantize_v2` and `dequantize` between these and the others. The
quantized version of a node is described by its `Plan` (`ops/quantization/plan.py`). `calibrate` writes observed ranges into the nodes that
need one.
"""
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...base import MXNetError
from ...ops.quantization.conversion import dequantize, quantize_asym, quantize_v2, requantize
from ...ops.quantization.plan import Plan, plan_of
from ...suggestions import shortened
from ...symbol.node import Entry, Node, topological

_BETWEEN = (dequantize, quantize_asym, quantize_v2, requantize)
PREFIX = "quantized_"


def plans(nodes: Sequence[Node], excluded: Collection[str] = (), excluded_operators: Collection[str] = (), smart: bool = False,
          channel_wise: bool = False) -> dict[int, Plan]:
    """Return the quantization plans of nodes, by the node's id.

    A fused node is left alone if the name of a node in it is excluded, or the operator that computes its product.

    Parameters
    ----------
    nodes : list of Node
        In topological order.
    excluded, excluded_operators : collection of str
        Names of nodes, and of operators, that are not quantized.
    smart : bool
        Quantize only matrix products and convolutions, and the nodes between two of these.
    channel_wise : bool
        Weights get a range for each output channel, if the operator supports that.
    """
    chosen: dict[int, Plan] = {}
    for node in nodes:
        if node.op is None or node.name in excluded or node.op.name in excluded_operators or any(
                inner.name in excluded or inner.op.name in excluded_operators and _multiplies(inner)
                for graph in node.subgraphs for inner in topological(graph) if inner.op is not None):
            continue
        plan = plan_of(node.op, node.op.with_defaults(node.parsed()) | ({"subgraphs": node.subgraphs} if node.subgraphs else {}), channel_wise)
        if plan is not None:
            chosen[id(node)] = plan
    return _between(nodes, chosen) if smart else chosen


def _multiplies(node: Node) -> bool:
    plan = plan_of(node.op, node.op.with_defaults(node.parsed()))
    return plan is not None and plan.must


def _between(nodes: Sequence[Node], planned: dict[int, Plan]) -> dict[int, Plan]:
    """Return the required plans, and those of nodes on paths of planned nodes between two required ones."""
    users: dict[int, list[Node]] = {}
    for node in nodes:
        for child, _ in node.inputs:
            users.setdefault(id(child), []).append(node)
    start = [n for n in nodes if id(n) in planned and planned[id(n)].must]
    before = _reached(start, planned, lambda n: (child for child, _ in n.inputs))
    after = _reached(start, planned, lambda n: users.get(id(n), ()))
    return {key: plan for key, plan in planned.items() if plan.must or key in before and key in after}


def _reached(start: Iterable[Node], planned: Mapping[int, Plan], neighbours: Any) -> set[int]:
    seen: set[int] = set()
    queue = deque(start)
    while queue:
        for node in neighbours(queue.popleft()):
            if id(node) in planned and not planned[id(node)].must and id(node) not in seen:
                seen.add(id(node))
                queue.append(node)
    return seen


def is_quantized(node: Node) -> bool:
    """Return True if a node quantizes, dequantizes or computes with quantized arrays."""
    return node.op is not None and (node.op in _BETWEEN or node.op.is_quantized(node.parsed()))


class _Pass:
    """The construction of a quantized graph, node by node."""

    def __init__(self, planned: Mapping[int, Plan], out_type: str):
        self.planned, self.out_type = planned, out_type
        self.new: dict[int, Node] = {}  # by the old node's id: the node that computes its results
        self.old: dict[int, Node] = {}  # by the new node's id
        self.quantized: dict[tuple[int, int], Node] = {}  # by an entry of the old graph: the node that quantizes it
        self.dequantized: dict[tuple[int, int], Node] = {}  # and the node that dequantizes it

    def returns_integers(self, node: Node) -> bool:
        plan = self.planned.get(id(node))
        return plan is not None and not plan.returns_real

    def integers(self, node: Node) -> Node:
        """Return the quantized node of a planned node: its outputs are arrays and their ranges."""
        plan = self.planned[id(node)]
        new = Node(plan.operator, PREFIX + node.name, {**node.attrs, **plan.attrs}, (), node.subgraphs)
        ranged = []
        for i, (child, index) in enumerate(node.inputs):
            if i in plan.real:
                new.inputs.append(self.real((child, index)))
                continue
            # A shift and a scale are no range: inputs that need these are quantized again.
            direct = self.returns_integers(child) and i not in plan.shifted
            source, first = (self.new[id(child)], index) if direct else (self._to_integers((child, index), i in plan.shifted), 0)
            new.inputs.append((source, first))
            ranged.append((source, first))
        for source, first in ranged:
            arrays = source.num_outputs() - 2
            new.inputs += [(source, arrays + 2 * first), (source, arrays + 2 * first + 1)]
        if not plan.wide:
            return new
        return Node(requantize, f"requantize_{node.name}", {"out_type": self.out_type}, [(new, i) for i in range(3)])

    def _to_integers(self, entry: Entry, shifted: bool) -> Node:
        child, index = entry
        quantized = self.quantized.get((id(child), index))
        if quantized is None:
            suffix = "" if child.op is None else f"_{child.op.list_output_names(child.parsed())[index]}" if child.op.names_output else f"_{index}"
            name = f"{child.name}{suffix}_quantize"
            quantized = Node(quantize_asym, name, {}) if shifted else Node(quantize_v2, name, {"out_type": self.out_type})
            quantized.inputs = [self.real(entry)]
            self.quantized[id(child), index] = quantized
        return quantized

    def real(self, entry: Entry) -> Entry:
        """Return the new graph's entry with the real numbers of an old entry."""
        child, index = entry
        new = self.new[id(child)]
        if not self.returns_integers(child):
            return new, index
        dequantized = self.dequantized.get((id(child), index))
        if dequantized is None:
            arrays = new.num_outputs() - 2
            ends = [(new, arrays + 2 * index), (new, arrays + 2 * index + 1)]
            dequantized = Node(dequantize, f"{child.name}_dequantize", {}, [(new, index), *ends])
            self.dequantized[id(child), index] = dequantized
        return dequantized, 0


def quantize(outputs: Sequence[Entry], offline: Collection[str] = (), out_type: str = "int8", excluded: Collection[str] = (),
             excluded_operators: Collection[str] = (), smart: bool = False, channel_wise: bool = False) -> tuple[list[Entry], list[str]]:
    """Return the quantized graph, and the names of the old graph's outputs and inputs whose ranges it needs.

    Parameters
    ----------
    outputs : list of (Node, int)
    offline : collection of str
        Variables that are quantized offline: their integers are variables ``<name>_quantize``, ``..._min`` and ``..._max``.
    out_type : {'int8', 'uint8', 'auto'}
    excluded, excluded_operators, smart, channel_wise
        As for `plans`.

    Raises
    ------
    MXNetError
        If the graph is quantized already.
    """
    nodes = topological(outputs)
    already = next((n for n in nodes if is_quantized(n)), None)
    if already is not None:
        raise MXNetError(f"the graph is quantized already: node '{already.name}' is {already.op.name}; quantize the graph on real numbers that it "
                         "was made from")
    work = _Pass(plans(nodes, excluded, excluded_operators, smart, channel_wise), out_type)
    for node in nodes:
        if id(node) in work.planned:
            new = work.integers(node)
        else:
            new = Node(node.op, node.name, dict(node.attrs), [work.real(e) for e in node.inputs], node.subgraphs)
        work.new[id(node)], work.old[id(new)] = new, node
    results = _offline([work.real(e) for e in outputs], offline)
    return results, list(_calibration_names(results, work.old))


def _offline(outputs: list[Entry], offline: Collection[str]) -> list[Entry]:
    variables: dict[tuple[int, int], Node] = {}

    def replaced(entry: Entry) -> Entry:
        node, index = entry
        if node.op is not quantize_v2 or node.inputs[0][0].op is not None or node.inputs[0][0].name not in offline:
            return entry
        variable = variables.setdefault((id(node), index), Node(None, node.name + ("", "_min", "_max")[index], {}))
        return variable, 0

    for node in topological(outputs):
        node.inputs = [replaced(e) for e in node.inputs]
    return outputs


def _calibration_names(outputs: Sequence[Entry], old: Mapping[int, Node]) -> Iterator[str]:
    for node in topological(outputs):
        if node.op is None or node.op.calibrates is None:
            continue
        which, i = node.op.calibrates
        source = old.get(id(node))
        if source is None:
            child, i = _origin(node.inputs[i]) if which == "input" else (node, i)
            source = old[id(child)]
        elif which == "input":
            i = node.inputs[i][1]
        yield source.output_names()[i]


def _origin(entry: Entry) -> Entry:
    """Return the entry before a dequantization; other entries unchanged."""
    if entry[0].op is dequantize:
        entry = entry[0].inputs[0]
    return entry


def calibrate(outputs: Sequence[Entry], table: Mapping[str, tuple[float, float]]) -> list[Entry]:
    """Return a copy of a quantized graph with the ranges of a table, whose keys are names that `quantize` returned.

    Raises
    ------
    MXNetError
        If a range is not two finite numbers, or the graph has no node to calibrate.
    """
    if not any(n.op is not None and n.op.calibrates is not None for n in topological(outputs)):
        raise MXNetError("the graph has nothing to calibrate; give the one that quantize_graph returned")
    ranges = {name: _checked(name, ends) for name, ends in table.items()}
    copies: dict[int, Node] = {}
    for node in topological(outputs):
        new = copies[id(node)] = Node(node.op, node.name, dict(node.attrs), [(copies[id(n)], i) for n, i in node.inputs], node.subgraphs)
        if node.op is None or node.op.calibrates is None:
            continue
        which, i = node.op.calibrates
        source, i = _origin(node.inputs[i]) if which == "input" else (node, i)
        if source is not node and source.op is requantize:
            source, i = source.inputs[0]
        name = source.output_names()[i]
        ends = ranges.get(name.removeprefix(PREFIX) if source.name.startswith(PREFIX) else name)
        if ends is not None:
            new.attrs["min_calib_range"], new.attrs["max_calib_range"] = ends
    return [(copies[id(n)], i) for n, i in outputs]


def _checked(name: str, ends: Any) -> tuple[str, str]:
    try:
        low, high = (float(np.float32(end if isinstance(end, (int, float)) else end.item())) for end in ends)
    except (AttributeError, TypeError, ValueError):
        raise MXNetError(f"the range of '{name}' must be two numbers, (low, high), received {shortened(ends)}") from None
    if not np.isfinite([low, high]).all():
        raise MXNetError(f"the range of '{name}' is from {low} to {high}: its values overflow or are no numbers for the data it was calibrated with; "
                         "look for it there, or exclude the layer")
    if low == high == 0:
        # All observed values are zeros, which any range contains: this one also suits later values.
        low, high = -1.0, 1.0
    return text(low), text(high)


def text(value: float) -> str:
    """Return a number in the format of MXNet's files, with six decimals; with nine digits where these would round it by more than a thousandth."""
    short = f"{value:f}"
    return short if abs(float(short) - value) <= 1e-3 * abs(value) else f"{value:.9g}"
