"""The pass that fuses the steps of an unrolled LSTM, GRU or RNN cell: each chain of steps becomes one recurrent layer, as fast as if the program
had used that."""
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

from ... import environment
from ...ops.elemwise.binary import elemwise_sub
from ...ops.elemwise.scalar import subtract_from
from ...ops.elemwise.unary import ones_like, relu, sigmoid, tanh
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


_CELLS = {"lstm": "an LSTM cell", "gru": "a GRU cell", "rnn_tanh": "an RNN cell", "rnn_relu": "an RNN cell"}
_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


class _Step(NamedTuple):
    """One step of a cell: its inputs, its results, and all its nodes. The states are the hidden state, and the cell state of an LSTM."""

    mode: str  # as of `RNN`
    data: FxNode
    before: tuple[FxNode, ...]
    weights: tuple[FxNode, ...]  # from the input, from the state; their biases
    after: tuple[FxNode, ...]
    inside: tuple[FxNode, ...]

    @property
    def hidden(self) -> FxNode:
        """The hidden state after the step."""
        return self.after[0]


class _NoMatch(Exception):
    """Raised if a node does not match the pattern of a step."""


def apply(module: fx.GraphModule, is_train: bool, device: torch.device) -> list[str]:
    """Fuse chains of steps; return the lines of a report."""
    if not environment.get_bool("MXNET_USE_FUSION"):
        return []
    outputs: dict[tuple[FxNode, ...], FxNode] = {}
    chains = [c for c in _chains(module.graph) if is_train or not c[0].mode.startswith("rnn_")]  # OpenVINO scores those 10 % faster step by step
    report = [f"recurrence: {len(chain)} steps of {_CELLS[chain[0].mode]} run as one layer" for chain in chains
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
        if before is not None and (before.mode, before.after, before.weights) == (step.mode, step.before, step.weights):
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
    for match in (_lstm, _gru, _vanilla):
        try:
            step = match(hidden)
        except _NoMatch:
            continue
        inside = set(step.inside)
        if all(node.users.keys() <= inside for node in step.inside if node not in step.after):
            return step
    raise _NoMatch


def _lstm(hidden: FxNode) -> _Step:
    leaves, shown = _arithmetic(hidden, "multiply")
    cell, = _activated(shown, tanh)
    forget_term, input_term = _arithmetic(cell, "add")
    forgets, cell_before = _arithmetic(forget_term, "multiply")
    enters, candidate = _arithmetic(input_term, "multiply")
    gates = [_activated(n, op)[0] for n, op in ((enters, sigmoid), (forgets, sigmoid), (candidate, tanh), (leaves, sigmoid))]
    parts = _cut(gates)
    of_input, of_state = _arithmetic(parts.args[0], "add")
    inside = (of_input, of_state, parts.args[0], parts, *gates, enters, forgets, candidate, leaves, forget_term, input_term, shown, cell, hidden)
    return _made("lstm", of_input, of_state, (cell_before,), (hidden, cell), inside)


def _gru(hidden: FxNode) -> _Step:
    new_term, old_term = _arithmetic(hidden, "add")
    remainder, candidate = _arithmetic(new_term, "multiply")
    update, before = _arithmetic(old_term, "multiply")
    sums = [_activated(candidate, tanh)[0], _activated(update, sigmoid)[0]]
    given, gated = _arithmetic(sums[0], "add")
    reset, inner = _arithmetic(gated, "multiply")
    sums.append(_activated(reset, sigmoid)[0])
    (r_input, r_state), (z_input, z_state) = _arithmetic(sums[2], "add"), _arithmetic(sums[1], "add")
    of_input, of_state = _cut([r_input, z_input, given]), _cut([r_state, z_state, inner])
    step = _made("gru", of_input.args[0], of_state.args[0], (), (hidden,), (
        of_input.args[0], of_state.args[0], of_input, of_state, r_input, r_state, z_input, z_state, given, inner, *sums, gated, reset, update,
        candidate, *_complement(remainder, update), new_term, old_term, hidden))
    if step.before != (before,):
        raise _NoMatch
    return step


def _vanilla(hidden: FxNode) -> _Step:
    function = next((f for f in (tanh, relu) if calls(hidden, f) or calls(hidden, activation)
                     and attributes_of(hidden)["act_type"] == f.name), None)
    if function is None:
        raise _NoMatch
    total = hidden.args[0]
    of_input, of_state = _arithmetic(total, "add")
    return _made(f"rnn_{function.name}", of_input, of_state, (), (hidden,), (of_input, of_state, total, hidden))


def _made(mode: str, of_input: FxNode, of_state: FxNode, cells: tuple[FxNode, ...], after: tuple[FxNode, ...], inside: tuple[FxNode, ...]) -> _Step:
    """Return the step of these products of the input and of the hidden state; `cells` is the cell state before, if there is one."""
    data, *input_weights = _product(of_input)
    hidden_before, *state_weights = _product(of_state)
    weights = (input_weights[0], state_weights[0], input_weights[1], state_weights[1])
    return _Step(mode, data, (hidden_before, *cells), weights, after, inside)


def _cut(parts: Sequence[FxNode]) -> FxNode:
    """Return the node that cuts a matrix into these columns."""
    cut = parts[0].args[0] if parts[0].target is item else None
    if cut is None or [(n.target, *n.args) for n in parts] != [(item, cut, i) for i in range(len(parts))] or not calls(cut, slice_channel):
        raise _NoMatch
    given = attributes_of(cut)
    if (given["num_outputs"], given["axis"], given["squeeze_axis"]) != (len(parts), 1, False):
        raise _NoMatch
    return cut


def _complement(node: FxNode, of: FxNode) -> tuple[FxNode, ...]:
    """Return the nodes that compute 1 - `of`."""
    if calls(node, subtract_from) and node.args == (of,) and attributes_of(node)["scalar"] == 1:
        return (node,)
    if calls(node, elemwise_sub) and len(node.args) == 2 and node.args[1] is of and calls(node.args[0], ones_like) and node.args[0].args == (of,):
        return (node.args[0], node)
    raise _NoMatch


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
        cells, last = [n for step in self.chain for n in step.after[1:]], self.chain[-1].after
        if any(user not in self._inside for n in cells if n not in last for user in n.users):
            return False
        outside = {user for n in (*self._hidden, *last) for user in n.users if user not in self._inside}
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
        data, before, weights, mode = self._data(), self.chain[0].before, self.chain[0].weights, self.chain[0].mode
        units = attributes_of(self.chain[0].inside[1])["num_hidden"] // _GATES[mode]
        vector = self._call(rnn_param_concat, [self._call(reshape, [w], shape=(-1,)) for w in weights], dim=0, num_args=4)
        layer = self._call(rnn, [data, vector, *(self._call(expand_dims, [state], axis=0) for state in before)], state_size=units, num_layers=1,
                           mode=mode, state_outputs=True)
        record_origins(layer, *(n for step in self.chain for n in step.inside))
        out, *last = (self.graph.call_function(item, (layer, i)) for i in range(1 + len(before)))
        self._outputs[tuple(self._hidden)] = out
        for user in outside:
            axis = attributes_of(user)["axis"] if calls(user, stack) and list(user.args) == self._hidden else None
            if axis in (0, 1):  # all outputs, one behind the other
                user.replace_all_uses_with(out if axis == 0 else self._call(swap_axis, [out], dim1=0, dim2=1))
        # The caller may write to one of several outputs, so none shares its memory with another.
        for node, end in zip(self.chain[-1].after, last):
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
