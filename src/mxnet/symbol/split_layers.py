"""Fully connected layers of the group ``sharded``, whose classes are divided among contexts, and among the ranks of a job.

`split` replaces each of them by one node, which computes the products of all parts and joins them. The weight is one variable, of which each part
takes some rows, or each part has a variable of its own: the part's context then holds nothing else of the weight, its gradient and its states.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base import MXNetError
from ..context import Context
from ..ops.nn.divided_dense import DividedDense
from ..ops.registry import get
from ..ops.schema import to_shape
from ..suggestions import shortened
from .node import Entry, Node, topological

if TYPE_CHECKING:
    from .symbol import Symbol

__all__ = ["GROUP", "Part", "context_of", "contexts_of", "split", "splits"]

GROUP = "sharded"
_PART = "__part__"  # the attribute of a part's variable: the number of its context
_FULLY_CONNECTED = get("FullyConnected")


class Part(NamedTuple):
    """Some rows of a weight or bias: its variable, the number of its context, the rows, and the number of all rows of the weight."""

    name: str
    context: int
    begin: int
    end: int
    height: int


def contexts_of(group2ctx: Mapping[str, Any] | None) -> list[Context]:
    """Return the contexts of the group ``sharded``; none if `group2ctx` does not name it.

    Raises
    ------
    MXNetError
        If they are no contexts, or if another group has a list of them.
    """
    for group, given in (group2ctx or {}).items():
        entries = given if isinstance(given, (list, tuple)) and group == GROUP else [given]
        if not entries or not all(isinstance(ctx, Context) for ctx in entries):
            raise MXNetError(f"group2ctx[{group!r}] must be a Context{', or a list of them' if group == GROUP else ''}, received {shortened(given)}"
                             + ("" if group == GROUP else f"; only the layers of the group {GROUP!r} are divided among several contexts"))
        if group == GROUP:
            return list(entries)
    return []


def context_of(group2ctx: Mapping[str, Any], node: Node) -> Context | None:
    """Return the context of a node, or None if its group is not in `group2ctx`."""
    group = node.attrs.get("__ctx_group__")
    given = group2ctx.get(group) if group is not None else None
    return given[int(node.attrs.get(_PART, 0))] if isinstance(given, (list, tuple)) else given


def splits(nodes: Sequence[Node]) -> bool:
    """Return True if there is a layer that `split` divides."""
    return any(node.op is _FULLY_CONNECTED and node.attrs.get("__ctx_group__") == GROUP for node in nodes)


def split(symbol: Symbol, contexts: Sequence[Context], ranks: Any = None, separate: bool = False) -> tuple[Symbol, dict[str, list[Part]]]:
    """Divide the fully connected layers of the group ``sharded``.

    Parameters
    ----------
    symbol : Symbol
    contexts : list of Context
        A rank's rows are divided among these.
    ranks : Ranks, optional
        The ranks of the job, among which the rows are divided first.
    separate : bool
        Replace the variables of the layers by one for each part.

    Returns
    -------
    tuple of Symbol and dict
        The graph, and the parts of each variable that was replaced, by its name.

    Raises
    ------
    MXNetError
        If a layer has too few units, or its weight has other users; if another layer of the group has weights.
    """
    copies: dict[int, Node] = {}
    parts: dict[str, list[Part]] = {}
    variables: dict[str, list[Node]] = {}
    nodes = topological(symbol._outputs)
    for node in nodes:
        if node.attrs.get("__ctx_group__") == GROUP:
            _require_divisible(node)
        inputs = [(copies[id(child)], i) for child, i in node.inputs]
        if node.op is _FULLY_CONNECTED and node.attrs.get("__ctx_group__") == GROUP:
            layer = DividedDense(node.name, node.parsed(), [ctx.torch_device for ctx in contexts], ranks, separate)
            if separate:
                inputs = inputs[:1] + [(_of_part(entry, k, layer, parts, variables), entry[1])
                                       for entry in node.inputs[1:] for k in range(len(contexts))]
            copies[id(node)] = Node(layer, node.name, dict(node.attrs), inputs)
        else:
            copies[id(node)] = Node(node.op, node.name, dict(node.attrs), inputs, node.subgraphs) if inputs else node
    outputs = [(copies[id(node)], i) for node, i in symbol._outputs]
    shared = sorted({node.name for node in topological(outputs) if node.op is None and node.name in parts})
    if shared:
        raise MXNetError(f"{shared[0]} is the weight of a layer of the group {GROUP!r}, which is divided, and has other users; leave the layer "
                         "out of the group")
    return type(symbol)(outputs), parts


def _require_divisible(node: Node) -> None:
    """Raise an error for another layer with weights."""
    if node.op is None or node.op is _FULLY_CONNECTED:
        return
    weights = [child.name for name, (child, _) in zip(node.input_names(), node.inputs) if child.op is None and name in node.op.weights]
    if weights or node.subgraphs:
        raise MXNetError(f"{node.name}: the group {GROUP!r} is divided among contexts and ranks, which is possible for FullyConnected layers; "
                         f"received {node.op.name}{' with the weight ' + weights[0] if weights else ''}. Leave it out of the group")


def _of_part(entry: Entry, k: int, layer: DividedDense, parts: dict[str, list[Part]], variables: dict[str, list[Node]]) -> Node:
    """Return the node with the rows of part `k` of a weight."""
    node, index = entry
    begin, end = layer.edges[k:k + 2]
    if node.op is not None:
        if not node.op.by_rows or len(node.inputs) != 1 or index:
            raise MXNetError(f"{layer.label}: its weight is computed by {node.name} ({node.op.name}) out of others, so that its rows can't be "
                             "divided; between a variable and the layer may be operators that keep its rows apart, such as L2Normalization and "
                             "_mul_scalar")
        return Node(node.op, f"{node.name}[{k}]", {**node.attrs, "__ctx_group__": GROUP}, [(_of_part(node.inputs[0], k, layer, parts, variables), 0)])
    if node.attrs.get("__storage_type__", "0") != "0":
        raise MXNetError(f"{layer.label}: its weight {node.name} is declared as a sparse array, and only dense ones are divided")
    known = variables.setdefault(node.name, [])
    if k < len(known):
        return known[k]
    attrs = {**node.attrs, "__ctx_group__": GROUP, _PART: str(k)}
    if "__shape__" in attrs:
        attrs["__shape__"] = str((end - begin, *to_shape(attrs["__shape__"])[1:]))
    known.append(Node(None, f"{node.name}[{k}]", attrs))
    parts.setdefault(node.name, []).append(Part(known[k].name, k, begin, end, layer.units))
    return known[k]
