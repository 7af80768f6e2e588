"""The pass that fuses the steps of an unrolled LSTM cell: each chain of steps becomes one recurrent layer, as fast as if the program
had used that."""
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

from ... import environment
from ...ops.elemwise.unary import sigmoid, tanh
from ...ops.nn.activation import activation
from ...ops.nn.dense import fully_connected
from ...ops.nn.rnn import rnn
from ...ops.registry import Operator
from ...ops.shape.joining import rnn_param_concat, stack
from ...ops.shape.reshaping import expand_dims, reshape, squeeze, swap_axis
from ...ops.shape.slicing import slice_channel
from ...symbol.node import Node
from ..instrumentation import record_origins
from ..lower import call_attributes
from ..program import FxNode, attributes_of, calls, is_stochastic, item, mutates_inputs, operator_of

_FEWEST = 2  # steps


class _Step(NamedTuple):
    """One step of an LSTM cell: its inputs, its results, and all its nodes."""

    data: FxNode
    before: tuple[FxNode, FxNode]
    weights: tuple[FxNode, ...]  # from the input, from the state; their biases
    hidden: FxNode
    cell: FxNode
    inside: tuple[FxNode, ...]


class _NoMatch(Exception):
    """Raised if a node does not match the pattern of a step."""


def apply(module: fx.GraphModule, is_train: bool, device: torch.device) -> list[str]:
    """Fuse chains of steps; return the lines of a report."""
    if not environment.get_bool("MXNET_USE_FUSION"):
        return []
    outputs: dict[tuple[FxNode, ...], FxNode] = {}
    report = [f"recurrence: {len(chain)} steps of an LSTM cell run as one layer" for chain in _chains(module.graph)
              if _Layer(module.graph, chain, is_train, device, outputs).replaces()]
    if report:
        module.graph.eliminate_dead_code(lambda node: mutates_inputs(node) or is_stochastic(node) or node.op in ("placeholder", "output"))
    return report


def _chains(graph: fx.Graph) -> list[list[_Step]]:
    """Return the longest chains of consecutive steps with the same weights."""
    steps = {step.hidden: step for step in map(_matched, graph.nodes) if step is not None}
    follows: dict[FxNode, list[_Step]] = {}
    for step in steps.values():
        before = steps.get(step.before[0])
        if before is not None and before.cell is step.before[1] and before.weights == step.weights:
            follows.setdefault(before.hidden, []).append(step)
    later = {followers[0].hidden for followers in follows.values() if len(followers) == 1}  # where a state has two successors, the chain ends
    chains = []
    for step in steps.values():
        if step.hidden not in later:
            chain = [step]
            while len(follows.get(chain[-1].hidden, ())) == 1:
                chain += follows[chain[-1].hidden]
            if len(chain) >= _FEWEST:
                chains.append(chain)
    return chains


def _matched(hidden: FxNode) -> _Step | None:
    try:
        return _step(hidden)
    except _NoMatch:
        return None


def _step(hidden: FxNode) -> _Step:
    leaves, shown = _arithmetic(hidden, "multiply")
    cell, = _activated(shown, tanh)
    forget_term, input_term = _arithmetic(cell, "add")
    forgets, cell_before = _arithmetic(forget_term, "multiply")
    enters, candidate = _arithmetic(input_term, "multiply")
    gates = [_activated(n, op)[0] for n, op in ((enters, sigmoid), (forgets, sigmoid), (candidate, tanh), (leaves, sigmoid))]
    parts = gates[0].args[0] if gates[0].target is item else None
    if parts is None or [(n.target, *n.args) for n in gates] != [(item, parts, i) for i in range(4)] or not calls(parts, slice_channel):
        raise _NoMatch
    cut = attributes_of(parts)
    if (cut["num_outputs"], cut["axis"], cut["squeeze_axis"]) != (4, 1, False):
        raise _NoMatch
    both = parts.args[0]
    of_input, of_state = _arithmetic(both, "add")
    data, *input_weights = _product(of_input)
    hidden_before, *state_weights = _product(of_state)
    weights = (input_weights[0], state_weights[0], input_weights[1], state_weights[1])
    inside = (of_input, of_state, both, parts, *gates, enters, forgets, candidate, leaves, forget_term, input_term, cell, shown, hidden)
    for node in inside[:-3]:
        if not node.users.keys() <= set(inside):
            raise _NoMatch
    return _Step(data, (hidden_before, cell_before), weights, hidden, cell, inside)


def _arithmetic(node: FxNode, kind: str) -> Sequence[FxNode]:
    """Return the operands of a sum or a product of two arrays of one shape."""
    op = operator_of(node)
    if op is None or op.arithmetic != kind or not op.same_shape or len(node.args) != 2:
        raise _NoMatch
    return node.args


def _activated(node: FxNode, function: Operator) -> Sequence[FxNode]:
    if not calls(node, function) and not (calls(node, activation) and attributes_of(node)["act_type"] == function.name):
        raise _NoMatch
    return node.args


def _product(node: FxNode) -> Sequence[FxNode]:
    if not calls(node, fully_connected) or len(node.args) != 3:
        raise _NoMatch
    return node.args


class _Layer:
    """The replacement of a chain of steps by one layer; `outputs` has the output of each layer so far, by the states that it replaced."""

    def __init__(self, graph: fx.Graph, chain: Sequence[_Step], is_train: bool, device: torch.device, outputs: dict[tuple[FxNode, ...], FxNode]):
        self.graph, self._mode, self._outputs = graph, (is_train, device), outputs
        self._stacked = outputs.get(tuple(step.data for step in chain))
        self.chain = [_step(step.hidden) for step in chain]  # anew: where another chain was replaced, its results are other nodes
        self._inside = {n for step in self.chain for n in step.inside}
        self._hidden = [step.hidden for step in self.chain]

    def replaces(self) -> bool:
        """Replace the chain by the layer; return False, without a change, if other nodes read intermediate results."""
        last = self.chain[-1].cell
        if any(user not in self._inside for step in self.chain for n in (step.cell, step.inside[-2]) if n is not last for user in n.users):
            return False
        outside = {user for n in (*self._hidden, last) for user in n.users if user not in self._inside}
        order = {node: i for i, node in enumerate(self.graph.nodes)}
        first = min(outside, key=order.__getitem__, default=None)
        needed = _ancestors([*(step.data for step in self.chain), *self.chain[0].before, *self.chain[0].weights])
        late = [n for n in sorted(needed, key=order.__getitem__) if first is not None and order[n] > order[first]]
        if first is None or needed & self._inside or needed & outside or any(is_stochastic(n) or mutates_inputs(n) for n in late):
            return False
        for node in late:
            first.prepend(node)
        with self.graph.inserting_before(first):
            self._put(outside)
        return True

    def _put(self, outside: Iterable[FxNode]) -> None:
        data, before, weights = self._data(), self.chain[0].before, self.chain[0].weights
        units = attributes_of(self.chain[0].inside[1])["num_hidden"] // 4
        vector = self._call(rnn_param_concat, [self._call(reshape, [w], shape=(-1,)) for w in weights], dim=0, num_args=4)
        layer = self._call(rnn, [data, vector, *(self._call(expand_dims, [state], axis=0) for state in before)], state_size=units, num_layers=1,
                           mode="lstm", state_outputs=True)
        record_origins(layer, *(n for step in self.chain for n in step.inside))
        out, hidden, cell = (self.graph.call_function(item, (layer, i)) for i in range(3))
        self._outputs[tuple(self._hidden)] = out
        for user in outside:
            axis = attributes_of(user)["axis"] if calls(user, stack) and list(user.args) == self._hidden else None
            if axis in (0, 1):  # all outputs, one behind the other
                user.replace_all_uses_with(out if axis == 0 else self._call(swap_axis, [out], dim1=0, dim2=1))
        # The caller may write to one of several outputs, so none shares its memory with another.
        ends = {self.chain[-1].hidden: hidden, self.chain[-1].cell: cell}
        for node, end in ends.items():
            if set(node.users) - self._inside:
                self._replace(node, self._call(squeeze, [end], axis=0))
        rest = [i for i, node in enumerate(self._hidden[:-1]) if any(u not in self._inside and u.users or u.op == "output" for u in node.users)]
        if rest:
            parts = self._call(slice_channel, [out], num_outputs=len(self.chain), axis=0, squeeze_axis=True)
            for i in rest:
                self._replace(self._hidden[i], self.graph.call_function(item, (parts, i)))

    def _data(self) -> FxNode:
        """Return the input of all steps, (T, N, C)."""
        if self._stacked is not None:  # another layer's output
            return self._stacked
        given = [step.data for step in self.chain]
        source: FxNode = given[0].args[0] if given[0].target is item else None
        if calls(source, slice_channel) and [(n.target, *n.args) for n in given] == [(item, source, i) for i in range(len(given))]:
            cut = attributes_of(source)
            if cut["num_outputs"] == len(given) and cut["squeeze_axis"] and cut["axis"] in (0, 1):
                data = source.args[0] if cut["axis"] == 0 else self._call(swap_axis, [source.args[0]], dim1=0, dim2=1)
                return self._call(reshape, [data], shape=(0, 0, -1))
        return self._call(reshape, [self._call(stack, given, axis=0, num_args=len(given))], shape=(0, 0, -1))

    def _replace(self, node: FxNode, by: FxNode) -> None:
        for user in [u for u in node.users if u not in self._inside]:
            user.replace_input_with(node, by)

    def _call(self, op: Operator, inputs: Sequence[FxNode], **attributes: Any) -> FxNode:
        node = Node(op, self.chain[-1].hidden.meta["node"].name, {k: str(v) for k, v in attributes.items()})
        value = self.graph.call_function(op.in_graph, tuple(inputs), call_attributes(node, *self._mode))
        value.meta["node"] = node
        return value


def _ancestors(nodes: Iterable[FxNode]) -> set[FxNode]:
    """Return the nodes and all their ancestors."""
    ancestors, todo = set(), list(nodes)
    while todo:
        node = todo.pop()
        if node not in ancestors:
            ancestors.add(node)
            todo += node.all_input_nodes
    return ancestors
