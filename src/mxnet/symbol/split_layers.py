"""Fully connected layers of the group ``sharded``, whose classes are divided among contexts, and among the ranks of a job.

`split` replaces each of them by one node, which computes the products of all parts and joins them. The weight is one variable, of which each part
takes some rows, or each part has a variable of its own: the part's context then holds nothing else of the weight, its gradient and its states.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from ..base import MXNetError
from ..context import Context
from ..kernels.gemm.matmul import linear
from ..ops.nn.common import assign, same_type
from ..ops.registry import Operator, get
from ..ops.schema import to_shape
from ..ops.shapes import product
from .node import Entry, Node, topological

if TYPE_CHECKING:
    from .symbol import Symbol

__all__ = ["GROUP", "Part", "context_of", "contexts_of", "split", "splits"]

GROUP = "sharded"
_PART = "__part__"  # the attribute of a part's variable: the number of its context
_FULLY_CONNECTED = get("FullyConnected")


class Part(NamedTuple):
    """Some rows of a weight or bias: its variable, the number of its context, and the rows, counted from the first of the whole weight."""

    name: str
    context: int
    begin: int
    end: int


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
            raise MXNetError(f"group2ctx[{group!r}] must be a Context{', or a list of them' if group == GROUP else ''}, received {given!r}"
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


class _Layer(Operator):
    """A divided layer. Its inputs are the data, the weight's variables (one, or one for each part), and as many of the bias, if there is one.

    Parameters
    ----------
    node : Node
        The layer as it was.
    contexts : list of Context
    ranks : Ranks or None
        See `kvstore.ranks`; None for a process alone.
    separate : bool
        Each part has variables of its own.
    """

    names_inputs = True

    def __init__(self, node: Node, contexts: Sequence[Context], ranks: Any, separate: bool) -> None:
        attributes = _FULLY_CONNECTED.with_defaults(node.parsed())
        self.units, self.flattens, self.has_bias = attributes["num_hidden"], attributes["flatten"], not attributes["no_bias"]
        self.devices, self.ranks, self.separate, self.label = [ctx.torch_device for ctx in contexts], ranks, separate, node.name
        count, rank = (ranks.count, ranks.rank) if ranks is not None else (1, 0)
        if self.units < count * len(contexts):
            raise MXNetError(f"{node.name}: its {self.units} units can't be divided among {count} ranks with {len(contexts)} contexts each; use "
                             f"fewer, or leave the layer out of the group {GROUP!r}")
        self.of_ranks = [self.units * i // count for i in range(count + 1)]
        begin, end = self.of_ranks[rank:rank + 2]
        self.edges = [begin + (end - begin) * i // len(contexts) for i in range(len(contexts) + 1)]

        def run(data: torch.Tensor, *arrays: torch.Tensor) -> Any:
            return _Product.apply(self, data, *arrays)

        run.__doc__ = _FULLY_CONNECTED.__doc__
        super().__init__("FullyConnected (divided)", run, complete_rule=True, compute_bound=True, amp=("low", "low"))
        self.shape_inference, self.dtype_inference = self._shapes, same_type

    weights = property(lambda self: self.input_names({})[1:], doc="The inputs that hold the network's parameters.")

    def input_names(self, parsed: dict[str, Any], count: int | None = None) -> tuple[str, ...]:
        parts = range(len(self.devices) if self.separate else 1)
        return "data", *(f"weight{k}" for k in parts), *(f"bias{k}" for k in parts if self.has_bias)

    def with_defaults(self, parsed: dict[str, Any]) -> dict[str, Any]:
        return {}

    def _shapes(self, in_shapes: list, out_shapes: list) -> tuple[list, list]:
        data = in_shapes[0]
        if data is not None:
            rows = [end - begin for begin, end in zip(self.edges, self.edges[1:])] if self.separate else [self.units]
            width = product(data[1:]) if self.flattens else data[-1]
            for k, count in enumerate(rows):
                assign(in_shapes, 1 + k, (count, width), f"the weight of {self.label}")
                assign(in_shapes, 1 + len(rows) + k, (count,), f"the bias of {self.label}")
            assign(out_shapes, 0, (data[0], self.units) if self.flattens else (*data[:-1], self.units), f"the output of {self.label}")
        return in_shapes, out_shapes

    def rows(self, arrays: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return the rows of each part, out of a weight or a bias."""
        if self.separate:
            return list(arrays)
        return [arrays[0][begin:end] for begin, end in zip(self.edges, self.edges[1:])]


class _Product(torch.autograd.Function):
    """The product of a batch with all parts; over ranks, each computes that of its rows with the samples of all."""

    @staticmethod
    def forward(ctx: Any, layer: _Layer, data: torch.Tensor, *arrays: torch.Tensor) -> torch.Tensor:
        count = len(layer.devices) if layer.separate else 1
        own = data.reshape(len(data), -1) if layer.flattens else data.reshape(-1, data.shape[-1])
        ctx.layer, ctx.shape, ctx.sizes, batch = layer, data.shape, [len(own)], own
        ranks, doing = layer.ranks, f"the product of {layer.label}"
        if ranks is not None:
            ctx.sizes = [size for size, in ranks.agree(doing, len(own))]
            batch = ranks.gather(own, ctx.sizes, doing)
        weights, biases = layer.rows(arrays[:count]), layer.rows(arrays[count:]) if layer.has_bias else [None] * len(layer.devices)
        out = torch.cat([linear(batch.to(weight.device), weight, bias).to(data.device) for weight, bias in zip(weights, biases)], 1)
        ctx.save_for_backward(batch, *arrays)
        if ranks is not None:  # each rank's samples go to it
            widths = [end - begin for begin, end in zip(layer.of_ranks, layer.of_ranks[1:])]
            received = [len(own) * width for width in widths]
            flat = ranks.exchange(out.view(-1), [size * out.shape[1] for size in ctx.sizes], received, doing)
            out = torch.cat([part.view(len(own), width) for part, width in zip(flat.split(received), widths)], 1)
        return out if layer.flattens else out.view(*data.shape[:-1], layer.units)

    @staticmethod
    def backward(ctx: Any, *heads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        layer, (batch, *arrays) = ctx.layer, ctx.saved_tensors
        ranks, doing, (needs_data, *needs) = layer.ranks, f"the gradient of {layer.label}", ctx.needs_input_grad[1:]
        head = heads[0].reshape(-1, layer.units)
        if ranks is not None:  # each rank's classes go to it
            ranks.agree(doing)
            width = layer.edges[-1] - layer.edges[0]
            columns = [part.reshape(-1) for part in head.split([end - begin for begin, end in zip(layer.of_ranks, layer.of_ranks[1:])], 1)]
            head = ranks.exchange(torch.cat(columns), [len(part) for part in columns], [size * width for size in ctx.sizes], doing).view(-1, width)
        count = len(layer.devices) if layer.separate else 1
        weights, of_data = layer.rows(arrays[:count]), batch.new_zeros(batch.shape if needs_data else ())
        of_weights: list[Any] = []
        of_biases: list[Any] = []
        for weight, begin, end in zip(weights, layer.edges, layer.edges[1:]):
            part = head[:, begin - layer.edges[0]:end - layer.edges[0]].to(weight.device)
            if needs_data:
                of_data += (part @ weight).to(batch.device)
            of_weights.append(part.t() @ batch.to(weight.device) if any(needs[:count]) else None)
            of_biases.append(part.sum(0) if any(needs[count:]) else None)
        if needs_data and ranks is not None:
            of_data = ranks.begin_scatter(of_data, ctx.sizes, doing)()
        if not layer.separate:
            of_weights, of_biases = ([torch.cat(parts) if parts[0] is not None else None] for parts in (of_weights, of_biases))
        gradients = [*of_weights, *of_biases] if layer.has_bias else of_weights
        return (None, of_data.view(ctx.shape) if needs_data else None, *(g if need else None for g, need in zip(gradients, needs)))


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
            layer = _Layer(node, contexts, ranks, separate)
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


def _of_part(entry: Entry, k: int, layer: _Layer, parts: dict[str, list[Part]], variables: dict[str, list[Node]]) -> Node:
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
    parts.setdefault(node.name, []).append(Part(known[k].name, k, begin, end))
    return known[k]
