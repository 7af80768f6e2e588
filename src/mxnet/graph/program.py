"""The program that passes rewrite and backends compile: a lowered graph with shapes, types and known constants."""
import contextlib
import linecache
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import fx
from torch.fx.graph_module import _loader

from .. import interrupts
from ..base import MXNetError
from ..ops.grad_mode import no_grad
from ..ops.registry import Operator

# An fx.Node: its own annotations allow twenty types for each argument, where passes know from the operator which it is.
FxNode: TypeAlias = Any
# Runs a graph: from its inputs to its outputs.
Function = Callable[..., Sequence[torch.Tensor]]


class GraphModule(fx.GraphModule):
    """A graph module whose source is generated at its first run and released with the module.

    Most graphs are copied or rewritten before their first run, and generating code takes as long as building them. Torch keeps the
    sources of all modules for tracebacks, also after a module's end.
    """

    def recompile(self) -> Any:
        type(self).forward = _generated  # torch makes a class for each module
        return None

    def generate(self) -> None:
        """Generate the source of `forward`."""
        # Submodules that partitioning added are recompiled here; modules of this class generate their own source.
        parts = [m for m in self.children() if isinstance(m, fx.GraphModule) and not isinstance(m, GraphModule)]
        for part in parts:
            _forget_with(part)
        super().recompile()
        for module in (self, *parts):
            _forget_with(module)

    @property
    def code(self) -> str:
        """The generated source."""
        if type(self).forward is _generated:
            self.generate()
        return super().code


class _Generated:
    """A descriptor in place of `forward` that generates the source at first access."""

    def __get__(self, module: GraphModule | None, owner: type) -> Any:
        if module is None:
            return self
        module.generate()
        return module.forward


_generated: Any = _Generated()


# Sources whose modules have ended. A garbage collection may run in the middle of linecache.checkcache(), which IPython calls for each cell, pdb
# and doctest when they start, and which before Python 3.13 fails if a name has disappeared: entries are removed when the next source is generated.
_ended: deque[str] = deque()


def _forget_with(module: fx.GraphModule) -> None:
    """Register a module's source for removal at the module's end, and remove the sources of modules that have ended."""
    module.__dict__["_source"] = interrupts.at_end(_forget, type(module).forward.__code__.co_filename)
    for _ in range(len(_ended)):
        with contextlib.suppress(IndexError):  # another thread does the same
            linecache.cache.pop(_ended.popleft(), None)


def _forget(name: str) -> None:
    _loader.eval_cache.pop(name, None)
    _ended.append(name)


class Program:
    """A graph with the shapes, types and constants that are known when it is compiled.

    Attributes
    ----------
    module : torch.fx.GraphModule
        Owned by the program: passes rewrite it.
    inputs : list of torch.Tensor
        One for each placeholder, in order.
    constants : dict of fx.Node to torch.Tensor
        The values of weights, and all results computed from weights only.
    values : dict of fx.Node to tensor or tuple of tensors on the ``meta`` device
        The shape and type of every result; no entry for a node (or its descendants) whose shape depends on values.
    report : list of str
        Descriptions of the applied rewrites, one line each.
    exact : bool
        If True, algorithms with fewer multiplications and larger rounding errors are not allowed.

    Parameters
    ----------
    module : torch.fx.GraphModule
    inputs : list of torch.Tensor
    weights : set of int
        Positions of the inputs whose values may be compiled in.
    exact : bool
    """

    def __init__(self, module: fx.GraphModule, inputs: Sequence[torch.Tensor], weights: Iterable[int] = (), exact: bool = False):
        self.module, self.exact = copied(module), exact
        graph = self.module.graph
        self.inputs = list(inputs)
        self.report: list[str] = []
        self.placeholders = [n for n in graph.nodes if n.op == "placeholder"]
        self.weights = frozenset(weights)
        self.constants = {self.placeholders[i]: inputs[i].detach() for i in self.weights}
        self.values: dict[FxNode, Any] = {}
        self.infer()

    @property
    def graph(self) -> fx.Graph:
        return self.module.graph

    @property
    def outputs(self) -> tuple[FxNode, ...]:
        """The nodes whose results the graph returns."""
        results = next(n for n in reversed(self.graph.nodes) if n.op == "output").args[0]
        return (results,) if isinstance(results, fx.Node) else tuple(results)

    def infer(self) -> None:
        """Infer shapes and types by running the graph on meta tensors; compute the nodes that depend only on weights."""
        for placeholder, tensor in zip(self.placeholders, self.inputs):
            self.values[placeholder] = tensor.detach().to("meta")
        with no_grad():
            for node in self.graph.nodes:
                if node.op in ("call_function", "call_method") and node not in self.values:
                    self._infer_node(node)

    def _infer_node(self, node: FxNode) -> None:
        arguments = [n for n in node.all_input_nodes]
        if any(n not in self.values for n in arguments) or mutates_inputs(node):
            return
        if all(n in self.constants for n in arguments) and not is_stochastic(node):
            try:
                value = self._call(node, self.constants)
            except (RuntimeError, MXNetError, ValueError, TypeError, IndexError):
                return  # running the graph raises it, with the user's inputs at hand
            self.constants[node] = value
            self.values[node] = _meta(value)
            return
        try:
            self.values[node] = self._by_rules(node) if self._has_rules(node) else self._call(node, self.values)
        except (RuntimeError, NotImplementedError, MXNetError, ValueError, TypeError, IndexError):
            return

    def _has_rules(self, node: FxNode) -> bool:
        """Return True if the operator's shape rules determine its results: no pass replaced it, and its inputs share one floating type."""
        op = operator_of(node)
        if op is None or op.complete_rule not in (True, "mixed") or node.target is not op.in_graph:
            return False
        if op.complete_rule == "mixed" and op.outputs(dict(node.kwargs)) != 1:
            return False
        inputs = [self.values[n] for n in node.args]
        if any(not isinstance(t, torch.Tensor) or not t.dtype.is_floating_point for t in inputs):
            return False
        return op.complete_rule == "mixed" or len({t.dtype for t in inputs}) == 1

    def _by_rules(self, node: FxNode) -> torch.Tensor | tuple[torch.Tensor, ...]:
        """Return meta tensors for a node's results by its operator's shape rules."""
        op, inputs, attributes = operator_of(node), [self.values[n] for n in node.args], attributes_of(node)
        count = op.outputs(dict(node.kwargs))
        attributes.pop(op.wants_training, None)
        _, shapes = op.shape_inference([tuple(t.shape) for t in inputs], [None] * count, **attributes)
        results = tuple(inputs[0].new_empty(shape) for shape in shapes)
        return results if count > 1 else results[0]

    @staticmethod
    def _call(node: FxNode, env: Mapping[FxNode, Any]) -> Any:
        args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda n: env[n])
        if not node.all_input_nodes and is_stochastic(node):  # drawing for shape inference would advance the generator
            kwargs = {name: torch.device("meta") if isinstance(value, torch.device) else value for name, value in kwargs.items()}
        if node.op == "call_method":
            return getattr(args[0], node.target)(*args[1:], **kwargs)
        return node.target(*args, **kwargs)

    def shape(self, node: Any) -> tuple[int, ...] | None:
        """Return the shape of a node with one result, or None if it is unknown."""
        value = self.values.get(node)
        return tuple(value.shape) if isinstance(value, torch.Tensor) else None

    def finish(self) -> None:
        """Remove unused nodes, and recompile the module."""
        for node in reversed(self.graph.nodes):
            if node.op not in ("placeholder", "output") and not node.users and not mutates_inputs(node):
                self.graph.erase_node(node)
        self.graph.lint()
        self.module.recompile()

    def note(self, text: str) -> None:
        self.report.append(text)


def copied(module: fx.GraphModule) -> fx.GraphModule:
    """Return a separate module with a copy of the graph."""
    graph = fx.Graph()
    nodes: dict[fx.Node, fx.Node] = {}
    graph.output(graph.graph_copy(module.graph, nodes))
    return GraphModule(module, graph)


def item(value: Any, index: int) -> torch.Tensor:
    # An operator with one visible output may return a bare tensor although its node lists more.
    return value[index] if isinstance(value, (tuple, list)) else value


def operator_of(node: FxNode) -> Any:
    """Return the operator that an fx node calls, or None."""
    symbol_node = node.meta.get("node")
    return symbol_node.op if symbol_node is not None else None


def calls(node: object, *operators: Operator) -> bool:
    """Return True if `node` is an fx node that calls one of these operators."""
    return isinstance(node, fx.Node) and node.op == "call_function" and operator_of(node) in operators


def attributes_of(node: FxNode) -> dict[str, Any]:
    """Return all attributes of the operator that an fx node calls, defaults included, and `training` if the operator takes it."""
    op, given = operator_of(node), dict(node.kwargs)
    attributes = op.with_defaults(given)
    if op.wants_training in given:
        attributes[op.wants_training] = given[op.wants_training]
    return attributes


def holds(node: object, trait: str) -> bool:
    """Return True if `node` is an fx node whose operator has this trait for the node's attributes."""
    op = operator_of(node) if isinstance(node, fx.Node) else None
    return op is not None and op.holds(trait, attributes_of(node))


def is_stochastic(node: FxNode) -> bool:
    """Return True if the node draws random numbers, or may do so (see `is_data_dependent`)."""
    return holds(node, "stochastic") or is_data_dependent(node)


def is_data_dependent(node: FxNode) -> bool:
    """Return True if the computation may depend on more than shapes: a loop, a branch, a user's operator."""
    return holds(node, "data_dependent")


def mutates_inputs(node: FxNode) -> bool:
    """Return True if the node writes to its inputs."""
    op = operator_of(node)
    return op is not None and op.writes(bool(node.kwargs.get(op.wants_training)))


def _meta(value: Any) -> Any:
    return value.to("meta") if isinstance(value, torch.Tensor) else tuple(t.to("meta") for t in value)
