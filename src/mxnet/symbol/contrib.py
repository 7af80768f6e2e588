"""``mx.sym.contrib``: operators outside MXNet's stability promise, and loops and branches."""
import collections
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from .. import attribute
from .. import name as _name
from ..attribute import AttrScope
from ..base import MXNetError
from ..ndarray import nested
from ..ops.registry import OPERATORS
from ..ops.schema import to_string
from . import control_flow  # noqa: F401  (registers its operators)
from .compose import group, var
from .functions import namespace_lookup as _namespace_lookup
from .functions import operator_function as _operator_function
from .node import Entry, Node, topological
from .symbol import Symbol

_lookup, __dir__ = _namespace_lookup(__name__, "_contrib_", _operator_function)


def __getattr__(name: str) -> Callable:
    if name == "uniform":
        return _operator_function("uniform")
    return _lookup(name)


def _gradient_function(name: str) -> Callable:
    def backward(*data: Any, name: str | None = None, attr: Any = None, out: Any = None, **kwargs: Any) -> NoReturn:
        raise MXNetError(f"{backward.__name__}: the gradient of an operator is no operator of a graph; bind the graph and call backward(), or "
                         f"use mx.nd.contrib.{backward.__name__} on arrays")

    backward.__name__ = backward.__qualname__ = f"backward_{name}"
    backward.__doc__ = f"Not offered for Symbols: raises an MXNetError that says what is. See ``mx.nd.contrib.backward_{name}``."
    return backward


backward_hawkesll, backward_index_copy, backward_quadratic = map(_gradient_function, ("hawkesll", "index_copy", "quadratic"))


def rand_zipfian(true_classes: Symbol, num_sampled: int, range_max: int) -> tuple[Symbol, Symbol, Symbol]:
    """Draw classes from an approximately Zipfian distribution, P(class) = log((class + 2) / (class + 1)) / log(range_max + 1).

    Parameters
    ----------
    true_classes : Symbol
        The target classes, in one axis.
    num_sampled, range_max : int
        The number of draws, and the number of classes.

    Returns
    -------
    samples, expected_count_true, expected_count_sampled : Symbol
        The drawn classes (int64), and how often the targets and they are expected (float64).
    """
    from .random import uniform
    log_range = math.log(range_max + 1)
    samples = (uniform(0, log_range, shape=(num_sampled,), dtype="float64").exp() - 1).astype("int64") % range_max

    def expected(classes: Symbol) -> Symbol:
        classes = classes.astype("float64")
        return ((classes + 2.0) / (classes + 1.0)).log() / log_range * num_sampled

    return samples, expected(true_classes), expected(samples)


def _update(op: str, symbols: dict[str, Symbol], rescale_grad: float | Symbol, **attributes: Any) -> Symbol:
    from .creation import full
    if not isinstance(rescale_grad, Symbol):
        rescale_grad = full(shape=(1,), val=rescale_grad)
    return _operator_function(op)(**symbols, rescale_grad=rescale_grad, **attributes)


def adamw_update(weight: Symbol, grad: Symbol, mean: Symbol, var: Symbol, rescale_grad: float | Symbol, lr: float, eta: float, beta1: float = 0.9,
                 beta2: float = 0.999, epsilon: float = 1e-8, wd: float = 0, clip_gradient: float = -1, out: Any = None, name: str | None = None,
                 **kwargs: Any) -> Symbol:
    """One step of AdamW. `rescale_grad` may be a number or a Symbol; where it is 0, NaN or infinite nothing changes."""
    return _update("_adamw_update", {"weight": weight, "grad": grad, "mean": mean, "var": var}, rescale_grad, lr=lr, eta=eta, beta1=beta1,
                   beta2=beta2, epsilon=epsilon, wd=wd, clip_gradient=clip_gradient, out=out, name=name, **kwargs)


def mp_adamw_update(weight: Symbol, grad: Symbol, mean: Symbol, var: Symbol, weight32: Symbol, rescale_grad: float | Symbol, lr: float, eta: float,
                    beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, wd: float = 0, clip_gradient: float = -1, out: Any = None,
                    name: str | None = None, **kwargs: Any) -> Symbol:
    """One step of AdamW for a float16 weight with a float32 copy; see `adamw_update`."""
    return _update("_mp_adamw_update", {"weight": weight, "grad": grad, "mean": mean, "var": var, "weight32": weight32}, rescale_grad, lr=lr, eta=eta,
                   beta1=beta1, beta2=beta2, epsilon=epsilon, wd=wd, clip_gradient=clip_gradient, out=out, name=name, **kwargs)


# -- loops and branches -----------------------------------------------------------------------------------------------------
#
# The functions of a loop are called once, on fresh variables, under an attribute scope of their own. Their nodes carry the
# scope's name; at inputs without it the graph is cut, and these become inputs of the loop.


class _Subgraph:
    """The subgraph of one function of a loop or branch, cut out of the surrounding graph.

    `outputs` is the graph; `variables` its variables; ``origin[i]`` the entry (Node, int) of the outer graph that feeds
    variable `i`, or None for one of `fresh`, the function's own parameters. The last `states` of the symbols are states.
    """

    def __init__(self, symbols: Sequence[Symbol], scope: str, fresh: Iterable[Node], states: int = 0):
        seen = {n.name for n in topological([e for s in symbols for e in s._outputs]) if n.op is None}
        first_state = len(symbols) - states
        names = {s.name for s in symbols[:first_state]}
        flat = []
        for i, s in enumerate(symbols):
            inside = s.list_attr().get("__subgraph_name__", "") == scope
            # An output that is an input, or is listed twice, must be a node of its own.
            again = s.name in seen or not inside or (i >= first_state and s.name in names)
            flat.append(_operator_function("identity")(s) if again else s)
        self.outputs, origins = _cut([e for s in flat for e in s._outputs], scope, fresh)
        self.variables = [n for n in topological(self.outputs) if n.op is None]
        self.origin = [origins.get(id(n)) for n in self.variables]
        repeated = [n for n, count in collections.Counter(v.name for v in self.variables).items() if count > 1]
        if repeated:
            raise AssertionError(f"the inputs of the body must have different names; {', '.join(map(repr, repeated))} occur more than once")


def _cut(outputs: Sequence[Entry], scope: str, parameters: Iterable[Node]) -> tuple[list[Entry], dict[int, Entry]]:
    """Cut out the part of a graph made in `scope`; return it, and the outer entry that feeds each of its variables."""
    nodes = topological(outputs)
    own = {id(n) for n in parameters}
    inside = {id(n): n.attrs.get("__subgraph_name__", "") == scope for n in nodes}
    copies, cuts, origins = {}, {}, {}

    def entry(node: Node, index: int) -> Entry:
        if inside[id(node)]:
            return copies[id(node)], index
        if (id(node), index) not in cuts:
            variable = cuts[id(node), index] = Node(None, node.output_names()[index], {})
            origins[id(variable)] = (node, index)
        return cuts[id(node), index], 0

    for node in nodes:
        if not inside[id(node)]:
            continue
        if id(node) in own:
            copies[id(node)] = node
        elif node.op is None:
            copy = copies[id(node)] = Node(None, node.name, dict(node.attrs))
            origins[id(copy)] = (node, 0)
        else:
            copies[id(node)] = Node(node.op, node.name, dict(node.attrs), [entry(n, i) for n, i in node.inputs], node.subgraphs)
    return [entry(n, i) for n, i in outputs], origins


def _scope_name(name: str) -> str:
    outer = attribute.current().get(None).get("__subgraph_name__", "")
    name = f"{outer}${name}" if outer else name
    number = AttrScope._subgraph_names[name]
    AttrScope._subgraph_names[name] += 1
    return f"{name}{number}"


def _parameters(symbols: Iterable[Symbol]) -> list[Symbol]:
    """Create variables for a body's parameters, named after their values."""
    return [var(f"{s.name}-{s._outputs[0][1]}") for s in symbols]


def _nodes(symbols: Iterable[Symbol]) -> list[Node]:
    return [s._outputs[0][0] for s in symbols]


class _Inputs:
    """The inputs of a node: each entry of the outer graph once."""

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self.places: dict[Any, int] = {}

    def place(self, origin: Entry, key: Any = None) -> int:
        """Return the position of `origin`, adding it if new. A loop variable has its own `key`, because its input changes during the loop."""
        if key is None:
            # Parameters of a layer that two functions use are one variable, although each function made its own.
            key = origin[0].name if origin[0].op is None else id(origin[0]), origin[1]
        if key not in self.places:
            self.places[key] = len(self.entries)
            self.entries.append(origin)
        return self.places[key]


def _node(op: str, inputs: Sequence[Entry], subgraphs: Sequence[_Subgraph], **attributes: Any) -> list[Symbol]:
    """Return a Symbol for a loop or a branch."""
    operator = OPERATORS[op]
    attrs = {k: to_string(v) for k, v in attributes.items()}
    attrs["num_args"] = str(len(inputs) + len(subgraphs))
    annotations = attribute.current().get(None) or {}
    node = Node(operator, _name.current().get(None, op), {**annotations, **attrs}, inputs, [s.outputs for s in subgraphs])
    return [Symbol([(node, i)]) for i in range(node.num_outputs())]


def foreach(body: Callable, data: Any, init_states: Any, name: str = "foreach") -> tuple[Any, Any]:
    """Run a function over the first axis of `data`, carrying states along.

    Parameters
    ----------
    body : callable
        ``body(row, states)`` returns ``(outputs, new_states)``; it is called once, with Symbols, to build its graph.
    data : Symbol or nested list of Symbol
    init_states : Symbol or nested list of Symbol
        Their structure is that of the states everywhere.
    name : str
        The prefix that makes the names of the body's nodes unique.

    Returns
    -------
    outputs, states
        The outputs of all steps stacked along a new first axis, and the last states; structured as `body` returns them.

    Raises
    ------
    AssertionError
        If arguments or results are no Symbols, if the structure of the states changes, or if data or states are not used.

    Example
    -------
    >>> import mxnet as mx
    >>> outs, total = mx.sym.contrib.foreach(lambda row, s: (row + s, row + s), mx.sym.var('x'), mx.sym.var('s'))
    >>> outs.eval(x=mx.nd.array([[1], [2], [3]]), s=mx.nd.array([0]))[0].asnumpy().T
    array([[1., 3., 6.]], dtype=float32)
    """
    flat_data, data_format = nested.flatten(data, Symbol, "data should be a symbol or a nested list of symbols")
    flat_states, states_format = nested.flatten(init_states, Symbol, "init_states should be a symbol or a nested list of symbols")
    scope = _scope_name(name)
    with AttrScope(__subgraph_name__=scope):
        rows, states = _parameters(flat_data), _parameters(flat_states)
        outputs, new_states = body(nested.regroup(rows, data_format), nested.regroup(states, states_format))
        outputs, out_format = nested.flatten(outputs, Symbol, "the output should be a Symbol or a nested list of Symbols")
        new_states, new_format = nested.flatten(new_states, Symbol, "the output states should be a Symbol or a nested list of Symbols")
        if new_format != states_format:
            raise AssertionError("foreach: the body must return states in the structure in which it receives them (a list for a list), "
                                 f"received {len(new_states)} for {len(flat_states)}")
        fresh = _nodes(rows + states)
        graph = _Subgraph(outputs + new_states, scope, fresh, len(new_states))
    position = {id(n): i for i, n in enumerate(graph.variables)}
    for nodes, kind in ((_nodes(rows), "data"), (_nodes(states), "state")):
        if any(id(n) not in position for n in nodes):
            raise AssertionError(f"foreach: each {kind} array must take part in the body's result; leave out those that don't")
    rest = [i for i, origin in enumerate(graph.origin) if origin is not None]
    inputs = [s._outputs[0] for s in flat_data + flat_states] + [graph.origin[i] for i in rest]
    results = _node("_foreach", inputs, [graph], num_outputs=len(outputs) + len(new_states), num_out_data=len(outputs),
                    in_state_locs=[position[id(n)] for n in _nodes(states)], in_data_locs=[position[id(n)] for n in _nodes(rows)], remain_locs=rest)
    return nested.regroup(results[:len(outputs)], out_format), nested.regroup(results[len(outputs):], new_format)


def while_loop(cond: Callable, func: Callable, loop_vars: Any, max_iterations: int | None = None, name: str = "while_loop") -> tuple[Any, Any]:
    """Run a function as long as a condition holds.

    Parameters
    ----------
    cond : callable
        ``cond(*loop_vars)`` returns a single value.
    func : callable
        ``func(*loop_vars)`` returns ``(outputs, new_loop_vars)``.
    loop_vars : Symbol or nested list of Symbol
    max_iterations : int
        The most steps; also the length of the outputs' first axis. Rows of steps that did not happen are 0.
    name : str
        The prefix that makes the names of the functions' nodes unique.

    Returns
    -------
    outputs, loop_vars
        The outputs of all steps stacked along a new first axis, and the last loop variables.

    Raises
    ------
    ValueError
        If `max_iterations` is missing or no number, or the loop variables are empty, change in number or go unused.
    """
    if max_iterations is None:
        raise ValueError("while_loop: max_iterations should be specified, received None")
    max_iterations = nested.to_python(max_iterations, int, "max_iteration")
    if len(loop_vars) == 0:
        raise ValueError("while_loop: at least one of loop_vars expected, received none")
    flat, structure = nested.flatten(loop_vars, Symbol, "loop_vars should be a symbol or a nested list of symbols")

    def trace(function: Callable, kind: str) -> tuple:
        scope = _scope_name(f"{name}_{kind}")
        with AttrScope(__subgraph_name__=scope):
            parameters = _parameters(flat)
            arguments = nested.regroup(parameters, structure)
            arguments = arguments if isinstance(arguments, list) else [arguments]
            result = function(*arguments)
            if kind == "cond":
                condition, _ = nested.flatten([result], Symbol, "the condition should be a symbol")
                return _Subgraph(condition, scope, _nodes(parameters)), parameters, None, None
            outputs, new_vars = ([] if r is None else r for r in result)
            if isinstance(loop_vars, Symbol) and isinstance(new_vars, (list, tuple)) and len(new_vars) == 1:
                new_vars = new_vars[0]
            outputs, out_format = nested.flatten(outputs, Symbol, "step_output should be a symbol or a nested list of symbols")
            new_vars, _ = nested.flatten(new_vars, Symbol, "new loop_vars should be a symbol or a nested list of symbols")
            if len(new_vars) != len(flat):
                raise ValueError(f"while_loop: func must return as many loop_vars as it receives, {len(flat)}; received {len(new_vars)}")
            return _Subgraph(outputs + new_vars, scope, _nodes(parameters)), parameters, out_format, len(outputs)

    condition, cond_parameters, _, _ = trace(cond, "cond")
    if len(condition.outputs) != 1:
        raise ValueError(f"cond should return a single value, received {len(condition.outputs)}")
    body, parameters, out_format, count = trace(func, "func")
    inputs = _Inputs()

    def places(graph: _Subgraph, own: Iterable[Symbol]) -> list[int]:
        number = {id(n): i for i, n in enumerate(_nodes(own))}
        return [inputs.place(origin) if origin is not None else inputs.place(flat[number[id(v)]]._outputs[0], number[id(v)])
                for v, origin in zip(graph.variables, graph.origin)]

    cond_locs = places(condition, cond_parameters)
    func_locs = places(body, parameters)
    position = {id(n): i for i, n in enumerate(body.variables)}
    for i, n in enumerate(_nodes(parameters), 1):
        if id(n) not in position:
            raise ValueError(f"while_loop: loop_var {i} has no influence on the result; leave it out")
    results = _node("_while_loop", inputs.entries, [condition, body], max_iterations=max_iterations, cond_input_locs=cond_locs,
                    func_input_locs=func_locs, func_var_locs=[position[id(n)] for n in _nodes(parameters)], num_out_data=count,
                    num_outputs=len(body.outputs))
    return nested.regroup(results[:count], out_format), nested.regroup(results[count:], structure)


def cond(pred: Symbol, then_func: Callable, else_func: Callable, name: str = "cond") -> Any:
    """Run one of two functions.

    Parameters
    ----------
    pred : Symbol
        A single value; zero is false.
    then_func, else_func : callable
        Take nothing and return a Symbol or a nested list of Symbols, equal in number, shapes and types.
    name : str
        The prefix that makes the names of the functions' nodes unique.

    Returns
    -------
    Symbol or nested list of Symbol
        The result of the chosen function, structured like that of `then_func`.

    Raises
    ------
    ValueError
        If `pred` is not one output, or the functions return different numbers of them.
    """
    def trace(function: Callable, kind: str) -> tuple[_Subgraph, Any]:
        scope = _scope_name(f"{name}_{kind}")
        with AttrScope(__subgraph_name__=scope):
            outputs, structure = nested.flatten(function(), Symbol, f"{kind} should be a symbol or a nested list of symbols")
            return _Subgraph(outputs, scope, ()), structure

    graphs = [trace(lambda: pred, "pred"), trace(then_func, "then"), trace(else_func, "else")]
    sizes = [len(g.outputs) for g, _ in graphs]
    if sizes[0] != 1:
        raise ValueError(f"cond: pred must have one output, received {sizes[0]}")
    if sizes[1] != sizes[2]:
        raise ValueError(f"cond: branches with equally many outputs expected, received {sizes[1]} and {sizes[2]}")
    inputs = _Inputs()
    locs = [[inputs.place(origin) for origin in g.origin] for g, _ in graphs]
    results = _node("_cond", inputs.entries, [g for g, _ in graphs], cond_input_locs=locs[0], then_input_locs=locs[1], else_input_locs=locs[2],
                    num_outputs=sizes[1])
    return nested.regroup(results, graphs[1][1])


__all__ = ["AttrScope", "MXNetError", "Symbol", "adamw_update", "cond", "foreach", "group", "mp_adamw_update", "rand_zipfian", "while_loop"]
