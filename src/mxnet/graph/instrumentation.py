"""Instrumentation of graphs: every call of a graph is timed and reported to ``dispatch.graph_observer``; the kernels are unchanged."""
import time
from collections.abc import Callable, Iterable
from typing import Any

from torch import fx

from ..ndarray import dispatch
from ..ndarray.dispatch import Call
from .program import FxNode, copied, item

ORIGINS = "parts"  # in the meta of an fx node: the Symbol's nodes that it computes, where they are not the one under "node"


def record_origins(node: FxNode, *parts: FxNode) -> None:
    """Record on an fx node the Symbol's nodes that these fx nodes computed."""
    origins = [n for part in parts for n in nodes_of(part)]
    node.meta[ORIGINS] = list(dict.fromkeys(origins))


def nodes_of(node: FxNode) -> list[Any]:
    """Return the Symbol's nodes that an fx node computes."""
    if ORIGINS in node.meta:
        return node.meta[ORIGINS]
    symbol_node = node.meta.get("node")
    return [symbol_node] if symbol_node is not None and symbol_node.op is not None else []


def call_of(nodes: Iterable[Any], otherwise: str, note: str = "") -> Call:
    """Return the profile entry of a computation of these nodes; its name is `otherwise` if there are none."""
    nodes = list(nodes)
    if not nodes:
        return Call(otherwise, note=note)
    return Call("+".join(n.op.name for n in nodes), "+".join(n.name for n in nodes), note)


def instrumented(function: Callable, name: str = "") -> Callable:
    """Return a version of a graph's function that reports its calls; `name` is the backend's."""
    own = getattr(function, "instrumented", None)
    if own is not None:
        return own
    module = getattr(function, "__self__", None)
    if isinstance(module, fx.GraphModule):
        return _instrumented_copy(module).forward
    if getattr(module, "self_instrumented", False):
        return function
    return _reporting(function, Call(name or "graph", graph=True))


def _instrumented_copy(module: fx.GraphModule) -> fx.GraphModule:
    """Return a copy of the graph that reports each call; it is cached on the module."""
    copy = module.__dict__.get("_instrumented")
    if copy is None:
        copy = copied(module)
        for number, node in enumerate(copy.graph.nodes):
            if node.op == "call_function" and node.target is not item:
                node.target = _named(_instrumented_target(node), number)
            elif node.op == "call_method" and node.target == "to":  # from one device of a graph to another
                node.op, node.target = "call_function", _named(_reporting(_moved, Call("_copyto")), number)
        copy.recompile()
        module.__dict__["_instrumented"] = copy
    return copy


def _moved(data: Any, *place: Any) -> Any:
    return data.to(*place)


def _instrumented_target(node: FxNode) -> Callable:
    target = node.target
    own = getattr(target, "instrumented", None)
    if own is not None:
        return own
    symbol_node = node.meta.get("node")
    kernel = "" if symbol_node is not None and getattr(symbol_node.op, "fn", None) is target else getattr(target, "__name__", "")
    return _reporting(target, call_of(nodes_of(node), kernel or "graph", f"by {kernel}" if kernel and nodes_of(node) else ""))


def _reporting(function: Callable, call: Call) -> Callable:
    def run(*args: Any, **kwargs: Any) -> Any:
        observer = dispatch.graph_observer
        if observer is None:
            return function(*args, **kwargs)
        start = time.perf_counter_ns()
        enclose = dispatch.enclose
        result = function(*args, **kwargs) if enclose is None else enclose(call.name, function, args, kwargs)
        observer(call, start, time.perf_counter_ns(), args, result)
        return result

    return run


def _named(function: Callable, number: int) -> Callable:
    """Return the function under a unique name: generated code refers to functions by name."""
    def run(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    run.__name__ = run.__qualname__ = f"instrumented_{number}"
    return run
