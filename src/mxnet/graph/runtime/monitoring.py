"""Monitoring: the values in a graph, forward and backward, are reported under MXNet's names.

A monitored graph runs node by node. Each use of a value is a separate view, so that the gradient of this use is reported before
it is added to the others, as in MXNet's graph of gradients.
"""
from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from typing import Any

import torch

from ...symbol.node import Entry, Node, monitored_inputs

_Callback = Callable[[str, str, torch.Tensor], object]
_table: dict[str, str] = {}


class Watcher:
    """Reports the values of one run, and the gradients of the backward pass after it.

    Parameters
    ----------
    callback : callable
        Called as ``callback(name, operator, tensor)``, with the operator's name.
    inputs : bool
        If True, the operators' inputs are reported, too.
    """

    reports_variables = False  # under their own names, at each use

    def __init__(self, callback: _Callback, inputs: bool):
        self.callback, self.inputs = callback, inputs
        self._values: dict[tuple[int, int], torch.Tensor] = {}  # by id of the node and number of the output
        self._uses: dict[tuple[int, int], torch.Tensor] = {}  # inputs with gradients, by id of the node and number of the input
        self._readers: dict[tuple[int, int], list[tuple[Node, int]]] = {}  # by id of the node and number of the output
        self._inputs: dict[int, list[torch.Tensor]] = {}
        self._variables: list[Node] = []

    # -- forward -----------------------------------------------------------------------------------------------------------

    def enter(self, node: Node, arguments: Sequence[Any], replaces: bool = True) -> Sequence[Any]:
        """Record the inputs of a node; return its arguments: if `replaces`, separate views for the gradients of this use."""
        if self.inputs:
            for name, (source, _), argument in zip(monitored_inputs(node), node.inputs, arguments):
                self._report_input(node, name, source, argument)
        if not torch.is_grad_enabled():
            return arguments
        read = []
        for k, argument in enumerate(arguments):
            if argument.requires_grad and argument.is_floating_point():
                if replaces:
                    argument = argument.view_as(argument)
                    argument.retain_grad()
                self._uses[id(node), k] = argument
                self._readers.setdefault((id(node.inputs[k][0]), node.inputs[k][1]), []).append((node, k))
            read.append(argument)
        if self.inputs:  # backward reports the inputs as they were read; arguments that the node writes to are copied
            self._inputs[id(node)] = [a.detach().clone() if k in node.op.mutated_indices else a.detach() for k, a in enumerate(arguments)]
        return read

    def __call__(self, node: Node, results: Sequence[torch.Tensor], hidden: Sequence[torch.Tensor] = ()) -> None:
        """Report the results of a node; `hidden` are results that its Symbol does not list."""
        for i, result in enumerate(results):
            if result.requires_grad and not result.is_leaf:
                result.retain_grad()
            self._values[id(node), i] = result
        if node.op is None:
            self._variables.append(node)
            return
        for i, result in enumerate(hidden, len(results)):
            self._values[id(node), i] = result
        names = node.op.list_output_names({**node.parsed(), **MOMENTS}) if hidden else node.op.list_output_names(node.parsed())
        for name, result in zip(names, (*results, *hidden)):
            self.callback(f"{node.name}_{name}", node.op.name, result.detach())

    def _report_input(self, node: Node, name: str, source: Node, tensor: torch.Tensor, backward: str = "") -> None:
        if source.op is None and self.reports_variables:
            self.callback(source.name, backward or node.op.name, tensor.detach())
        self.callback(f"{node.name}_{name}", backward or node.op.name, tensor.detach())

    # -- backward ----------------------------------------------------------------------------------------------------------

    def await_backward(self, results: Sequence[torch.Tensor]) -> None:
        """Report the gradients at the end of each backward pass that reaches one of the results."""
        waiting: list[Callable[[], None]] = []

        def end() -> None:
            waiting.clear()
            self.report_gradients()

        def begin(gradient: torch.Tensor) -> None:
            if not waiting:
                waiting.append(end)
                torch.autograd.Variable._execution_engine.queue_callback(end)

        for result in results:
            if result.requires_grad and result.is_floating_point():
                result.register_hook(begin)

    def report_gradients(self, heads: Sequence[Entry] = (), seeds: Sequence[torch.Tensor | None] = ()) -> None:
        """Report the gradients after a backward pass, in MXNet's order: depth first from the variables, each after the gradients it depends on."""
        seeded = {(id(n), i): (k, s) for k, ((n, i), s) in enumerate(zip(heads, seeds)) if s is not None}
        for kind, item in self._in_order(seeded):
            if kind == "node":
                self._report_node(item)
            elif kind == "head":
                self._report_head(item, *seeded[item])
            else:
                self._report_sum(item, seeded)
        for tensor in (*self._uses.values(), *self._values.values()):
            if tensor.requires_grad and not tensor.is_leaf:
                tensor.grad = None

    def _in_order(self, seeded: Any) -> Iterator[tuple[str, Any]]:
        """Yield the heads' gradients, the nodes whose gradients were computed, and the values whose gradients were added up."""
        stack: list[tuple[str, Any]] = [("value", (id(v), 0)) for v in reversed(self._variables)]
        seen = set()
        while stack:
            kind, item = stack.pop()
            if kind in ("node", "sum", "head"):
                yield kind, item
                continue
            if kind == "value":
                if item in seen:
                    continue
                seen.add(item)
                stack.append(("sum", item))
                stack += [("reader", node) for node, _ in self._readers.get(item, ())]  # the last of them is visited first
                if item in seeded and self.reports_variables:
                    stack.append(("head", item))
            else:
                if id(item) in seen:
                    continue
                seen.add(id(item))
                sources, _ = entries(item)
                stack.append(("node", item))
                if sources is None:
                    stack.append(("value", (id(item), 0)))
                else:
                    stack += [("value", (id(item), int(s[1:]))) for _, s in reversed(sources) if s[0] == "g"]

    def _gradient(self, node: Node, k: int) -> torch.Tensor:
        use = self._uses.get((id(node), k))
        if use is None or use.grad is None:
            return torch.zeros_like(self._values[id(node.inputs[k][0]), node.inputs[k][1]]).detach()
        return use.grad.detach()

    def _contributions(self, item: tuple[int, int], seeded: Any) -> list[torch.Tensor]:
        seeds = [seeded[item][1]] if item in seeded else []
        return seeds + [self._uses[id(node), k].grad for node, k in reversed(self._readers.get(item, ()))
                        if self._uses[id(node), k].grad is not None]  # type: ignore[misc]

    def _report_sum(self, item: tuple[int, int], seeded: Any) -> None:
        parts = self._contributions(item, seeded)
        if len(parts) < 2:
            return
        if self.inputs:
            for i, part in enumerate(parts):
                self.callback(f"sum_grad_arg{i}", "add_n", part.detach())
        self.callback(self._output_name("sum_grad", 0, 1, ""), "add_n", torch.stack([p.detach() for p in parts]).sum(0))

    def _report_head(self, item: tuple[int, int], number: int, seed: torch.Tensor) -> None:
        name = f"_head_grad_{number}"
        if self.inputs:
            for part, value in ((name, seed), (f"{name}_id_lhs", seed), (f"{name}_id_rhs", self._values[item])):
                self.callback(part, "_identity_with_attr_like_rhs", value.detach())
        self.callback(f"{name}_id_output", "_identity_with_attr_like_rhs", seed.detach())

    def _report_node(self, node: Node) -> None:
        sources, outputs = entries(node)
        if sources is None or all(use is None or use.grad is None for use in (self._uses.get((id(node), k)) for k in outputs)):
            return
        operator = f"_backward_{node.op.name}"
        if self.inputs:
            for suffix, source in sources:
                self._report_source(node, suffix, source, operator)
        for position, k in enumerate(outputs):
            self.callback(self._output_name(f"{node.name}_backward", position, len(outputs), "_backward"), operator, self._gradient(node, k))

    def _report_source(self, node: Node, suffix: str, source: str, operator: str) -> None:
        if source == "?":  # exists in MXNet's kernels only
            return
        kind, i = source[0], int(source[1:])
        if kind == "i":
            self._report_input(node, f"backward_{suffix}", node.inputs[i][0], self._inputs[id(node)][i], operator)
            return
        value = self._values.get((id(node), i))
        if value is None:  # of an output that is not computed here
            return
        if kind == "g":
            value = torch.zeros_like(value) if value.grad is None else value.grad
        self.callback(f"{node.name}_backward_{suffix}", operator, value.detach())

    def _output_name(self, name: str, position: int, count: int, backward: str) -> str:
        return f"{name}_{position}"


class ExecutorWatcher(Watcher):
    """A watcher for an executor's monitor, which also reports variables, and names gradients differently."""

    reports_variables = True

    def _output_name(self, name: str, position: int, count: int, backward: str) -> str:
        return f"{name}_output{position if count > 1 else ''}"


MOMENTS = {"output_mean_var": True}  # makes normalizations return mean and variance, which MXNet's monitors always report


def hides_outputs(node: Node) -> bool:
    """Return whether a node can return outputs that its Symbol does not list."""
    return bool(MOMENTS.keys() & node.op.attributes.keys()) and not node.parsed().get("output_mean_var")


def entries(node: Node) -> tuple[list[tuple[str, str]] | None, list[int]]:
    """Return the inputs and outputs of MXNet's gradient of a node, as described in `monitored.json`.

    A description such as ``"lhs=g0 rhs=i1 i2 -> 0"`` has a word for each array read, with the suffix of its name unless that is
    ``input<i>``; ``i*`` denotes all inputs, ``?`` an array that exists in MXNet only. Behind the arrow are the inputs that get a gradient, unless
    all do. ``"-"`` passes the gradient on. Without a description the gradient reads the gradients of outputs, the inputs and the outputs.

    Returns
    -------
    list of (str, str), or None
        Suffix of the name, and ``g0``, ``i0``, ``o0``: gradient of an output, input, output, by number. None if the gradient is passed on
        unchanged.
    list of int
        Numbers of the inputs that get a gradient.
    """
    if not _table:
        text = resources.files(__package__).joinpath("monitored.json").read_text()
        for words, names in json.loads(text).items():
            _table.update(dict.fromkeys(names.split(), words))
    count, outputs = len(node.inputs), node.num_outputs()
    mutated = node.op.mutated_indices
    every = [k for k in range(count) if k not in mutated]
    name = node.op.name
    row = next((_table[key] for key in (*(f"{name}[{k}={v}]" for k, v in node.parsed().items()), name) if key in _table), None)
    if row is None:
        words = [*(f"g{i}" for i in range(outputs)), *(f"i{k}" for k in range(count)), *(f"o{i}" for i in range(outputs))]
        return [(f"input{n}", word) for n, word in enumerate(words)], every
    if row == "-":
        return None, []
    reads, _, gives = row.partition("->")
    words = []
    for word in reads.split():
        suffix, _, source = word.rpartition("=")
        if source.endswith("*"):
            words += [(suffix, f"{source[0]}{i}") for i in range(outputs if source[0] in "go" else count)]
        else:
            words.append((suffix, source))
    words = [(suffix, s) for suffix, s in words if s[0] != "i" or int(s[1:]) < count]
    return [(suffix or f"input{n}", s) for n, (suffix, s) in enumerate(words)], [int(k) for k in gives.split()] or every
