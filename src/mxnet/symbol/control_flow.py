"""The operators ``_foreach``, ``_while_loop`` and ``_cond``: nodes that hold graphs of their own.

`contrib` creates such nodes, and ``graph.control_flow`` runs them. Attributes map the node's inputs to the variables of its graphs:
lists of positions ("locs") with the same meaning as in MXNet's files.
"""
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from .. import util
from ..base import MXNetError
from ..ops.registry import OPERATORS, Operator
from ..ops.schema import Shape, Training
from ..ops.shapes import known, unify
from . import inference
from .node import Entry, Node, auxiliary, topological


class ControlFlow(Operator):
    """An operator whose uses hold subgraphs, which its rules receive as the attribute ``subgraphs``."""

    names_inputs = True  # the subgraphs determine the roles of the inputs

    def __init__(self, fn: Callable, subgraphs: int, input_locs: Callable[[Mapping[str, Any]], list]):
        """`subgraphs` is their number; ``input_locs(attributes)`` returns, for each, the inputs of the node that feed its variables."""
        super().__init__(fn.__name__, fn, key_var_num_args="num_args", num_outputs=lambda a: a["num_outputs"], data_dependent=True)
        self.subgraphs, self.input_locs = subgraphs, input_locs

    def with_defaults(self, parsed: dict[str, Any]) -> dict[str, Any]:
        return dict(parsed)

    def mutated_inputs(self, parsed: dict[str, Any]) -> tuple[str, ...]:
        """Return the inputs that an operator of a subgraph writes to."""
        if "subgraphs" not in parsed:
            _raise_unsupported(self.name)
        names: set[str] = set()
        for outputs, locs in zip(parsed["subgraphs"], self.input_locs(parsed)):
            nodes = topological(outputs)
            aux = auxiliary(nodes)
            names.update(f"arg{loc}" for node, loc in zip(variables(nodes), locs) if id(node) in aux)
        return tuple(names)

    def input_names(self, parsed: dict[str, Any], count: int | None = None) -> tuple[str, ...]:
        return tuple(f"arg{i}" for i in range(count or 0))


    def check(self, parsed: dict[str, Any], count: int) -> None:
        """Raise an error for a node of a file whose graphs do not fit its attributes and its `count` inputs.

        Raises
        ------
        MXNetError
            If they do not.
        """
        graphs, outputs = parsed["subgraphs"], parsed["num_outputs"]
        try:
            places = self.input_locs(parsed)
        except ValueError:
            raise MXNetError(f"{self.name}: the attributes name no input for some variables of the graph") from None
        for graph, locs in zip(graphs, places):
            if len(variables(topological(graph))) != len(locs) or not all(0 <= i < count for i in locs):
                raise MXNetError(f"{self.name}: a graph's {len(variables(topological(graph)))} variables and the inputs {tuple(locs)} do not fit; "
                                 f"the node has {count} inputs")
        sizes = [len(graph) for graph in graphs]
        if sizes != [1] * (len(graphs) > 1) + [outputs] * (len(graphs) - (len(graphs) > 1)):
            raise MXNetError(f"{self.name}: num_outputs={outputs} does not fit graphs of {sizes} outputs")
        if "num_out_data" in parsed:
            states = parsed["func_var_locs"] if "func_var_locs" in parsed else parsed["in_state_locs"]
            if not 0 <= parsed["num_out_data"] == outputs - len(states) or not all(
                    0 <= i < len(parsed["func_input_locs"]) for i in parsed.get("func_var_locs", ())):
                raise MXNetError(f"{self.name}: num_outputs={outputs} and num_out_data={parsed['num_out_data']} do not fit {len(states)} states")


def variables(nodes: Iterable[Node]) -> list[Node]:
    """Return the variables among the nodes of a graph, in order."""
    return [n for n in nodes if n.op is None]


def infer(outputs: Sequence[Entry], inputs: Sequence, results: Sequence | None, types: bool = False) -> tuple[list, list]:
    """Infer the shapes, or types, of the variables and outputs of a subgraph from the known ones."""
    names = [n.name for n in variables(topological(outputs))]
    given = dict(zip(names, inputs))
    inferred, nodes = inference.infer_types(outputs, given) if types else inference.infer_shapes(outputs, given, results)
    return [inferred[id(n), 0] for n in variables(nodes)], [inferred[id(n), i] for n, i in outputs]


def _merge(shapes: list, places: Iterable[int], inferred: Iterable) -> None:
    for place, shape in zip(places, inferred):
        shapes[place] = unify(shapes[place], shape)


def _row(shape: inference.Partial) -> inference.Partial:
    """Return the shape of an element of an array that is looped over. Without NumPy's shapes there are no scalars: a number has shape (1,)."""
    return None if shape is None else shape[1:] or (() if util.is_np_shape() else (1,))


def _stacked(count: int, row: inference.Partial) -> inference.Partial:
    return None if row is None else (count, *row)


def _looped(count: int, element: inference.Partial) -> inference.Partial:
    """Return the shape of the array with these elements, if known: an element of shape (1,) may be a number."""
    return None if element == (1,) and not util.is_np_shape() else _stacked(count, element)


def _raise_unsupported(name: str) -> NoReturn:
    raise MXNetError(f"{name} needs the graphs of its branches: use mx.sym.contrib or mx.nd.contrib's foreach, while_loop and cond")


def _run(tensors: tuple, name: str, attributes: Mapping[str, Any]) -> NoReturn:
    if "subgraphs" not in attributes:
        _raise_unsupported(name)
    raise NotImplementedError  # shapes come from the rules; graph.control_flow runs the node


def _foreach(*data, num_outputs: int, num_out_data: int, in_state_locs: Shape, in_data_locs: Shape, remain_locs: Shape,
             training: Training = False):
    """A loop over the first axis; made by ``mx.sym.contrib.foreach``."""


def _while_loop(*data, num_outputs: int, num_out_data: int, max_iterations: int, cond_input_locs: Shape, func_input_locs: Shape,
                func_var_locs: Shape, training: Training = False):
    """A loop under a condition; made by ``mx.sym.contrib.while_loop``."""


def _cond(*data, num_outputs: int, cond_input_locs: Shape, then_input_locs: Shape, else_input_locs: Shape, training: Training = False):
    """One of two computations; made by ``mx.sym.contrib.cond``."""


def foreach_locs(attributes: Mapping[str, Any]) -> list:
    """For each variable of the loop's body the input of the node: data first, then states, then the others."""
    order = (*attributes["in_data_locs"], *attributes["in_state_locs"], *attributes["remain_locs"])
    return [[order.index(i) for i in range(len(order))]]


def while_locs(attributes: Mapping[str, Any]) -> list:
    """For each variable of condition and body the input of the node."""
    return [attributes["cond_input_locs"], attributes["func_input_locs"]]


def while_variables(attributes: Mapping[str, Any]) -> list[int]:
    """For each loop variable the input of the node that holds its first value."""
    return [attributes["func_input_locs"][i] for i in attributes["func_var_locs"]]


def cond_locs(attributes: Mapping[str, Any]) -> list:
    """For each variable of predicate, then-branch and else-branch the input of the node."""
    return [attributes["cond_input_locs"], attributes["then_input_locs"], attributes["else_input_locs"]]


def _foreach_shapes(in_shapes: Sequence[inference.Partial], out_shapes: Sequence[inference.Partial], subgraphs: Sequence[Sequence[Entry]],
                    in_data_locs: Sequence[int], num_out_data: int, **attributes: Any) -> tuple[list, list]:
    ins, outs = list(in_shapes), list(out_shapes)
    places, = foreach_locs({"in_data_locs": in_data_locs, **attributes})
    n_data, n_states = len(in_data_locs), len(attributes["in_state_locs"])
    counts = [s[0] for s in (*ins[:n_data], *outs[:num_out_data]) if s]
    count = next((c for c in counts if c >= 0), -1)
    for _ in range(2):  # a second round where the first has found a state's shape
        rows = [_row(ins[p]) if p < n_data else ins[p] for p in places]
        inferred, results = infer(subgraphs[0], rows, [*map(_row, outs[:num_out_data]), *outs[num_out_data:]])
        _merge(ins, places, [_looped(count, s) if p < n_data else s for p, s in zip(places, inferred)])
        _merge(outs, range(len(outs)), [_stacked(count, s) for s in results[:num_out_data]] + results[num_out_data:])
        for i in range(n_states):
            if known(outs[num_out_data + i]) or ins[n_data + i] is None or not known(ins[n_data + i]):
                ins[n_data + i] = unify(ins[n_data + i], outs[num_out_data + i])
    return ins, outs


def _foreach_types(in_types: Sequence, out_types: Sequence, subgraphs: Sequence[Sequence[Entry]], num_out_data: int,
                   **attributes: Any) -> tuple[list, list]:
    ins = list(in_types)
    places, = foreach_locs(attributes)
    inferred, results = infer(subgraphs[0], [ins[p] for p in places], None, types=True)
    for place, kind in zip(places, inferred):
        ins[place] = ins[place] or kind
    return ins, results


def _while_shapes(in_shapes: Sequence[inference.Partial], out_shapes: Sequence[inference.Partial], subgraphs: Sequence[Sequence[Entry]],
                  num_out_data: int, max_iterations: int, **attributes: Any) -> tuple[list, list]:
    ins, outs = list(in_shapes), list(out_shapes)
    cond_places, places = while_locs(attributes)
    variable_places = while_variables(attributes)
    for _ in range(2):
        _merge(ins, cond_places, infer(subgraphs[0], [ins[p] for p in cond_places], [None])[0])
        inferred, results = infer(subgraphs[1], [ins[p] for p in places], [*map(_row, outs[:num_out_data]), *outs[num_out_data:]])
        _merge(ins, places, inferred)
        _merge(outs, range(len(outs)), [_stacked(max_iterations, s) for s in results[:num_out_data]] + results[num_out_data:])
        _merge(ins, variable_places, outs[num_out_data:])
    return ins, outs


def _while_types(in_types: Sequence, out_types: Sequence, subgraphs: Sequence[Sequence[Entry]], **attributes: Any) -> tuple[list, list]:
    ins = list(in_types)
    results: list = []
    for outputs, places in zip(subgraphs, while_locs(attributes)):
        inferred, results = infer(outputs, [ins[p] for p in places], None, types=True)
        for place, kind in zip(places, inferred):
            ins[place] = ins[place] or kind
    return ins, results


def _cond_shapes(in_shapes: Sequence[inference.Partial], out_shapes: Sequence[inference.Partial], subgraphs: Sequence[Sequence[Entry]],
                 **attributes: Any) -> tuple[list, list]:
    ins, outs = list(in_shapes), list(out_shapes)
    for i, (outputs, places) in enumerate(zip(subgraphs, cond_locs(attributes))):
        inferred, results = infer(outputs, [ins[p] for p in places], outs if i else [None])
        _merge(ins, places, inferred)
        if i:
            _merge(outs, range(len(outs)), results)
    return ins, outs


def _cond_types(in_types: Sequence, out_types: Sequence, subgraphs: Sequence[Sequence[Entry]], **attributes: Any) -> tuple[list, list]:
    ins, outs = list(in_types), list(out_types)
    for i, (outputs, places) in enumerate(zip(subgraphs, cond_locs(attributes))):
        inferred, results = infer(outputs, [ins[p] for p in places], None, types=True)
        for place, kind in zip(places, inferred):
            ins[place] = ins[place] or kind
        if i:
            outs = [a or b for a, b in zip(outs, results)]
    return ins, outs


def _register(fn: Callable, subgraphs: int, locs: Callable, shape_rule: Callable, dtype_rule: Callable) -> ControlFlow:
    operator = OPERATORS[fn.__name__] = ControlFlow(fn, subgraphs, locs)
    operator.shape_inference, operator.dtype_inference = shape_rule, dtype_rule

    def run(*tensors: Any, **attributes: Any) -> None:
        _run(tensors, fn.__name__, attributes)

    run.__module__ = __name__
    operator.fn = operator.raw = run
    return operator


FOREACH = _register(_foreach, 1, foreach_locs, _foreach_shapes, _foreach_types)
WHILE_LOOP = _register(_while_loop, 2, while_locs, _while_shapes, _while_types)
COND = _register(_cond, 3, cond_locs, _cond_shapes, _cond_types)
