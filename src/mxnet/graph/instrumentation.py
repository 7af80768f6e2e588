"""Watching a graph while it runs: whoever runs it otherwise does, kernel for kernel, and tells ``dispatch.graph_observer`` of each."""
import time
from collections.abc import Callable, Iterable
from typing import Any

from torch import fx

from ..ndarray import dispatch
from ..ndarray.dispatch import Call
from .program import FxNode, copied, item

PARTS = "parts"  # in the meta of an fx node: the Symbol's nodes that it computes, where they are not the one under "node"


def joined(node: FxNode, *parts: FxNode) -> None:
    """Note that an fx node computes what these have computed."""
    found = [n for part in parts for n in nodes_of(part)]
    node.meta[PARTS] = list(dict.fromkeys(found))


def nodes_of(node: FxNode) -> list[Any]:
    """The Symbol's nodes that an fx node computes."""
    if PARTS in node.meta:
        return node.meta[PARTS]
    symbol_node = node.meta.get("node")
    return [symbol_node] if symbol_node is not None and symbol_node.op is not None else []


def call_of(nodes: Iterable[Any], otherwise: str, note: str = "") -> Call:
    """How a profile names what computes these nodes."""
    nodes = list(nodes)
    if not nodes:
        return Call(otherwise, note=note)
    return Call("+".join(n.op.name for n in nodes), "+".join(n.name for n in nodes), note)


def observed(function: Callable, name: str = "") -> Callable:
    """A function that runs a graph, in a form that tells of what it runs; `name` is the backend's."""
    own = getattr(function, "observed", None)
    if own is not None:
        return own
    module = getattr(function, "__self__", None)
    if isinstance(module, fx.GraphModule):
        return _twin(module).forward
    if getattr(module, "tells", False):
        return function
    return _told(function, Call(name or "graph", graph=True))


def _twin(module: fx.GraphModule) -> fx.GraphModule:
    """The same graph, each call of which is told of."""
    twin = module.__dict__.get("_observed")
    if twin is None:
        twin = copied(module)
        for number, node in enumerate(twin.graph.nodes):
            if node.op == "call_function" and node.target is not item:
                node.target = _named(_of_node(node), number)
            elif node.op == "call_method" and node.target == "to":  # from one device of a graph to another
                node.op, node.target = "call_function", _named(_told(_moved, Call("_copyto")), number)
        twin.recompile()
        module.__dict__["_observed"] = twin
    return twin


def _moved(data: Any, *place: Any) -> Any:
    return data.to(*place)


def _of_node(node: FxNode) -> Callable:
    target = node.target
    own = getattr(target, "observed", None)
    if own is not None:
        return own
    symbol_node = node.meta.get("node")
    kernel = "" if symbol_node is not None and getattr(symbol_node.op, "fn", None) is target else getattr(target, "__name__", "")
    return _told(target, call_of(nodes_of(node), kernel or "graph", f"by {kernel}" if kernel and nodes_of(node) else ""))


def _told(function: Callable, call: Call) -> Callable:
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
    """Generated code finds functions by their names."""
    def run(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    run.__name__ = run.__qualname__ = f"observed_{number}"
    return run
