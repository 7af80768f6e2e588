"""The graph behind Symbols: nodes that refer to the outputs of other nodes."""
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from ..ops.registry import Operator

Entry: TypeAlias = tuple["Node", int]  # which output of which node


class Node:
    """A variable (``op`` is None) or one use of an operator.

    Attributes
    ----------
    op : mxnet.ops.Operator or None
    name : str
    attrs : dict of str to str
        The attributes given by the user, and annotations such as ``__lr_mult__``.
    inputs : list of (Node, int)
        Which output of which node.
    subgraphs : tuple of graphs
        The outputs, lists of (Node, int), of the graphs that a loop or a branch runs.
    """

    __slots__ = ("op", "name", "attrs", "inputs", "subgraphs", "_parsed")

    def __init__(self, op: "Operator | None", name: str, attrs: dict[str, str], inputs: Iterable[Entry] = (),
                 subgraphs: Iterable[Sequence[Entry]] = ()):
        self.op: Any = op  # not Optional: callers that use it have checked that the node is no variable
        self.name, self.attrs, self.inputs = name, attrs, list(inputs)
        self.subgraphs = tuple(subgraphs)
        self._parsed: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<{'variable' if self.op is None else self.op.name} {self.name}>"

    def parsed(self) -> dict[str, Any]:
        """Return the operator's attributes, checked; those not given are absent."""
        if self._parsed is None:
            self._parsed = self.op.parse({k: v for k, v in self.attrs.items() if k in self.op.attributes})
            if self.subgraphs and not self.op.may_hold_graph:
                self._parsed["subgraphs"] = self.subgraphs
        return self._parsed

    def num_outputs(self) -> int:
        """Return the number of outputs of the node."""
        return 1 if self.op is None else self.op.outputs(self.parsed())

    def output_names(self) -> list[str]:
        """Return the names that Symbols list for the node's outputs."""
        if self.op is None:
            return [self.name]
        return [f"{self.name}_{suffix}" for suffix in self.op.list_output_names(self.parsed())]

    def input_names(self) -> Sequence[str]:
        """Return the operator's names of the inputs, as many as the node has."""
        names = self.op.input_names(self.parsed(), len(self.inputs))
        if len(names) < len(self.inputs):  # optional inputs that were given
            names = self.op.inputs[:len(self.inputs)]
        return names


def topological(outputs: Sequence[Entry]) -> list[Node]:
    """All nodes that the outputs need, each after its inputs, in depth-first order."""
    order, seen = [], set()
    # An explicit stack: unrolled recurrent networks are deeper than Python's recursion limit.
    stack = [(node, 0) for node, _ in reversed(outputs)]
    while stack:
        node, position = stack.pop()
        if position == 0:
            if id(node) in seen:
                continue
            seen.add(id(node))
        if position < len(node.inputs):
            stack.append((node, position + 1))
            child = node.inputs[position][0]
            if id(child) not in seen:
                stack.append((child, 0))
        else:
            order.append(node)
    return order


def auxiliary(nodes: Iterable[Node]) -> set[int]:
    """Return the ids of the variables that an operator of the graph writes to."""
    auxiliary_names = set()
    for node in nodes:
        if node.op is None:
            continue
        mutated = node.op.mutated_inputs(node.parsed() if node.op.names_inputs or node.op.mutates_rule else None)
        if mutated:
            for name, (child, _) in zip(node.input_names(), node.inputs):
                if name in mutated and child.op is None:
                    auxiliary_names.add(id(child))
    return auxiliary_names


def copy_graph(outputs: Sequence[Entry]) -> list[Entry]:
    """Return the same graph of new nodes; returns its outputs."""
    copies: dict[int, Node] = {}
    for node in topological(outputs):
        copies[id(node)] = Node(node.op, node.name, dict(node.attrs), [(copies[id(n)], i) for n, i in node.inputs], node.subgraphs)
    return [(copies[id(n)], i) for n, i in outputs]


def monitored_inputs(node: Node) -> Sequence[str]:
    """Return the names of a node's inputs for a monitor; ``input0`` as in MXNet (its test_op_hook_output_names shows it)."""
    names = node.input_names()
    return ("input0",) if tuple(names) == ("data",) and not node.op.names_input else names
