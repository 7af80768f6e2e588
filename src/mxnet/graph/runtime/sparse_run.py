"""Execution of graphs with sparse arrays: operator by operator, on arrays in their storage types."""
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import torch

from ...base import MXNetError
from ...context import Context
from ...ndarray import NDArray, dispatch
from ...ndarray.sparse import cast_storage
from ...ndarray.sparse.dispatch import on_demand
from ...ndarray.sparse.on_demand import computed
from ...symbol.fused import stands_for
from ...symbol.node import Entry, Node, topological
from .monitoring import Watcher

_log = logging.getLogger("mxnet")
_announced: set = set()
_T = TypeVar("_T")


def suits(nodes: Iterable[Node]) -> bool:
    """Return True if the operators of a graph can be called one by one; loops and branches are compiled as a whole, on dense tensors."""
    return not any(n.subgraphs and stands_for(n) is None for n in nodes)


def announce_dense(what: str) -> None:
    """Log once that a graph converts its sparse arrays to dense ones."""
    if what not in _announced and os.environ.get("MXNET_STORAGE_FALLBACK_LOG_VERBOSE", "1") != "0":
        _announced.add(what)
        _log.warning("Storage type fallback: %s runs on dense arrays, its sparse ones are converted for it. "
                     "Set MXNET_STORAGE_FALLBACK_LOG_VERBOSE=0 to silence this.", what)


def makes_sparse(nodes: Iterable[Node]) -> bool:
    """Return True if a graph over dense arrays has sparse values inside."""
    return any(n.op is not None and n.op.changes_storage for n in nodes)


def run(outputs: Sequence[Entry], inputs: Iterable[NDArray], ctx: Context, observe: Watcher | None = None,
        order: Sequence[Node] | None = None) -> list[NDArray]:
    """Return the outputs of a graph, a list of arrays.

    Parameters
    ----------
    outputs : list of (Node, int)
    inputs : list of NDArray
        The variables, in the order of `topological`.
    ctx : Context
        Where operators without inputs create their arrays.
    observe : Watcher, optional
        A monitor, called for every variable and operator.
    order : list of Node, optional
        `topological` of the outputs, computed before by callers with many runs.
    """
    values: dict[tuple[int, int], Any] = {}
    variables = iter(inputs)
    for node in topological(outputs) if order is None else order:
        results: Any
        if node.op is None:
            results = [next(variables)]
        elif (graph := stands_for(node)) is not None:
            results = run(graph, [values[id(n), i] for n, i in node.inputs], ctx)
        else:
            attributes = {k: v for k, v in node.attrs.items() if k in node.op.attributes}
            if node.op.wants_device:
                attributes.setdefault("ctx", node.attrs.get("ctx") or str(ctx))
            try:
                arguments = [values[id(n), i] for n, i in node.inputs]
                if observe is not None:
                    observe.enter(node, [a._data for a in arguments], replaces=False)
                dispatch.mode.node = node.name if dispatch.observer is not None else ""
                if node.op.changes_storage:  # its function on tensors cannot change the storage type
                    results = cast_storage(*arguments, **node.parsed())
                else:
                    results = on_demand(node.op, arguments, attributes)
                    if results is None:
                        results = dispatch.invoke(node.op, arguments, attributes)
            except MXNetError as error:
                raise MXNetError(f"Error in operator {node.name} ({node.op.name}): {error}") from error
            finally:
                dispatch.mode.node = ""
            results = [results] if isinstance(results, NDArray) else results
        if observe is not None:
            observe(node, tuple(r._data for r in results))
        values.update(((id(node), i), r) for i, r in enumerate(results))
    return [computed(values[id(n), i]) for n, i in outputs]


def variable(array: Any) -> tuple[NDArray, torch.Tensor]:
    """Return a copy of an array that shares its values, and the tensor with respect to which torch differentiates."""
    if array._is_sparse:
        copy = array.detach()
        leaf = copy._variable()
    else:
        leaf = array._data.detach().requires_grad_()
        copy = NDArray._new(leaf, array._ctx)
    copy._autograd = _WANTED
    return copy, leaf


class _Wanted:
    """The autograd mark of an array whose gradient is taken from its tensor."""

    grad, grad_req, node, index, fresh = None, "write", None, 0, False


_WANTED = _Wanted()


def recorded(function: Callable[[], _T], recording: bool) -> _T:
    """Call a function with recording switched on or off."""
    before, grad_mode = dispatch.mode.recording, torch.is_grad_enabled()
    try:  # Ctrl-C may come with any call
        dispatch.mode.recording = recording
        torch._C._set_grad_enabled(recording)
        return function()
    finally:
        dispatch.mode.recording = before
        torch._C._set_grad_enabled(grad_mode)
