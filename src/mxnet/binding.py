"""The binding of a Symbol to arrays: the checks and allocations of `Symbol.bind` and `Symbol.simple_bind` before an `Executor` is made."""
from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from . import ndarray as nd
from .base import MXNetError
from .context import Context, intern_context
from .executor import Executor
from .ndarray import NDArray, lazy_zeros
from .ndarray.ndarray import GRAD_REQS
from .ops import dtypes
from .suggestions import shortened
from .symbol import split_layers
from .symbol.node import topological

if TYPE_CHECKING:
    from .symbol import Symbol
    from .symbol.node import Node


def _requests(symbol: Symbol, grad_req: str | Sequence[str] | Mapping[str, str], arg_names: Sequence[str]) -> list[str]:
    if isinstance(grad_req, str):
        reqs = [grad_req] * len(arg_names)
    elif isinstance(grad_req, (list, tuple)):
        if len(grad_req) != len(arg_names):
            raise ValueError(f"grad_req has {len(grad_req)} entries for {len(arg_names)} arguments")
        reqs = list(grad_req)
    elif isinstance(grad_req, dict):
        reqs = [grad_req.get(n, "null") for n in arg_names]
    else:
        raise ValueError(f"grad_req must be in {', '.join(GRAD_REQS)}, or a list or dict of these; received {shortened(grad_req)}")
    for r in reqs:
        if r not in GRAD_REQS:
            raise ValueError(f"grad_req must be in {list(GRAD_REQS)}, received {shortened(r)}")
    return reqs


def _arrange(arrays: Any, names: Sequence[str], what: str, allow_missing: bool = False) -> list[Any]:
    """Return arrays given as a list or dict as a list in the order of `names`."""
    if isinstance(arrays, (list, tuple)):
        if len(arrays) != len(names):
            raise ValueError(f"{what}: {len(names)} arrays expected ({', '.join(names)}), received {len(arrays)}")
        arrays = list(arrays)
    elif isinstance(arrays, dict):
        for n in names:
            if n not in arrays and not allow_missing:
                raise ValueError(f"key `{n}` is missing in `{what}`")
        arrays = [arrays.get(n) for n in names]
    else:
        raise TypeError(f"{what}: a list of NDArrays, or a dict of them by name, expected; received {type(arrays).__name__}")
    for a in arrays:
        if not isinstance(a, NDArray) and not (a is None and allow_missing):
            raise TypeError(f"{what}: NDArrays expected, received an entry of type {type(a).__name__}")
    return arrays


def bind(symbol: Symbol, ctx: Context | str, args: Any, args_grad: Any, grad_req: str | Sequence[str] | Mapping[str, str], aux_states: Any,
         group2ctx: Mapping[str, Any] | None, shared_exec: Executor | None) -> Executor:
    """Implement `Symbol.bind`."""
    if not isinstance(ctx, Context):
        raise TypeError(f"Context type error: bind needs a Context such as mx.cpu(), received {shortened(ctx)}")
    if shared_exec is not None and not isinstance(shared_exec, Executor):
        raise TypeError(f"shared_exec must be an Executor, received {type(shared_exec).__name__}")
    arg_names, aux_names = symbol.list_arguments(), symbol.list_auxiliary_states()
    arguments = _arrange(args, arg_names, "args")
    states = _arrange(aux_states if aux_states is not None else [], aux_names, "aux_states")
    gradients = [None] * len(arg_names) if args_grad is None else _arrange(args_grad, arg_names, "args_grad", allow_missing=True)
    reqs = [r if g is not None else "null" for r, g in zip(_requests(symbol, grad_req, arg_names), gradients)]
    # A wrong shape raises an error here instead of at the first forward.
    symbol._infer_shape(True, (), {n: a.shape for n, a in zip(arg_names, arguments) if a.size})
    return Executor({"args": arguments, "grads": gradients, "auxs": states, "reqs": reqs}, symbol, ctx, grad_req, group2ctx)


def simple_bind(symbol: Symbol, ctx: Any, grad_req: str | Sequence[str] | Mapping[str, str], type_dict: Mapping[str, Any] | None,
                stype_dict: Mapping[str, str] | None, group2ctx: Mapping[str, Any] | None, shared_arg_names: Sequence[str] | None,
                shared_exec: Executor | None, shared_buffer: dict[str, NDArray] | None, shapes: Mapping[str, Any]) -> Executor:
    """Implement `Symbol.simple_bind`."""
    if not isinstance(ctx, Context):
        raise TypeError(f"Context type error: simple_bind needs a Context such as mx.cpu(), received {shortened(ctx)}")
    arg_names, aux_names = symbol.list_arguments(), symbol.list_auxiliary_states()
    given = {k: v for k, v in shapes.items() if k in arg_names or k in aux_names or isinstance(v, tuple)}
    for name in shapes.keys() - given.keys():
        warnings.warn(f"simple_bind: `{name}` is no argument of the Symbol and no shape, and has no effect", stacklevel=3)
    wrong = [k for k, v in given.items() if not isinstance(v, (tuple, list))]
    if wrong:
        raise MXNetError(f"simple_bind: the shape of {wrong[0]} must be a tuple, received {given[wrong[0]]!r}")
    try:
        inferred = symbol._infer_shape(False, (), given)
        types = symbol.infer_type_partial(**{k: v for k, v in (type_dict or {}).items() if k in arg_names or k in aux_names})
    except MXNetError as error:
        raise MXNetError(f"simple_bind error. Arguments: {given}. {error}") from error
    if inferred is None:
        arg_shapes, _, aux_shapes = symbol._infer_shape(True, (), given)
        missing = [f"{n}: {s}" for n, s in zip(arg_names + aux_names, arg_shapes + aux_shapes) if not s or 0 in s]
        raise MXNetError(f"simple_bind error. Arguments: {given}. Shapes cannot be decided for: {', '.join(missing)}; provide them")
    reqs = _requests(symbol, grad_req, arg_names)
    _refuse_missing_gradients(symbol, dict(zip(arg_names, reqs)))
    contexts = _placement(symbol, ctx, group2ctx)
    storage = _storage_types(symbol, stype_dict)
    shareable = set(shared_arg_names or ())

    def make(name: str, shape: tuple[int, ...], dtype: Any) -> NDArray:
        stype = storage.get(name, "default")
        place = contexts.get(name, ctx)
        dtype = dtypes.to_torch(dtype)
        if shared_exec is not None and name in shareable and name in shared_exec.arg_dict:
            array = shared_exec.arg_dict[name]
            if array.shape != shape or array._data.dtype != dtype:
                raise MXNetError(f"simple_bind: the shared argument {name} is {array.shape} of {np.dtype(array.dtype)}, this graph needs "
                                 f"{shape} of {dtypes.name_of(dtype)}")
            return array
        if stype != "default":
            return nd.zeros(shape, ctx=place, dtype=dtype, stype=stype)
        if shared_buffer is not None and name not in shareable:
            return _from_buffer(shared_buffer, name, shape, dtype, place)
        if all(shape):
            return nd.zeros(shape, ctx=place, dtype=dtype)
        return NDArray._new(torch.zeros(shape, dtype=dtype, device=place.torch_device), intern_context(place))

    args = [make(n, s, t or "float32") for n, s, t in zip(arg_names, inferred[0], types[0])]
    shared = {n: g for n, g in shared_exec.grad_dict.items() if n in shareable} if shared_exec is not None else {}
    grads = _gradients(symbol, dict(zip(arg_names, args)), dict(zip(arg_names, reqs)), storage, shared)
    auxs = []
    for n, s, t in zip(aux_names, inferred[2], types[2]):
        if shared_exec is not None and n in shared_exec.aux_dict and shared_exec.aux_dict[n].shape == s:
            auxs.append(shared_exec.aux_dict[n])
        else:
            auxs.append(make(n, s, t or "float32"))
    return Executor({"args": args, "grads": grads, "auxs": auxs, "reqs": reqs}, symbol, ctx, grad_req, group2ctx)


def _gradients(symbol: Symbol, args: Mapping[str, NDArray], reqs: Mapping[str, str], storage: Mapping[str, str],
               shared: Mapping[str, NDArray | None]) -> list[NDArray | None]:
    """Return an array for the gradient of each argument: one of `shared`, a new one of zeros, or None where none is asked for."""
    grads: list[NDArray | None] = []
    uses = _uses(symbol, storage)
    for name, array in args.items():
        if reqs[name] == "null" or shared.get(name) is not None:
            grads.append(None if reqs[name] == "null" else shared[name])
            continue
        stype = _grad_stype(name, uses.get(name, ()), storage)
        if stype == "default":
            grads.append(NDArray._new(lazy_zeros.zeros(array.shape, dtypes.to_torch(array.dtype), array.context.torch_device), array.context))
        else:
            grads.append(nd.zeros(array.shape, ctx=array.context, dtype=array.dtype, stype=stype))
    return grads


def _from_buffer(buffer: dict[str, NDArray], name: str, shape: tuple[int, ...], dtype: torch.dtype, ctx: Context) -> NDArray:
    """Return an array from the pool that bucketing executors share: the one of that name if it is large enough, else a new one."""
    array = buffer.get(name)
    count = int(np.prod(shape))
    if array is None or array._data.dtype != dtype or array.size < count:
        array = buffer[name] = nd.zeros(shape, ctx=ctx, dtype=dtype)
    if array.shape == tuple(shape):
        return array
    return NDArray._new(array._raw().reshape(-1)[:count].reshape(shape), array._ctx)


def _refuse_missing_gradients(symbol: Symbol, reqs: Mapping[str, str]) -> None:
    """Raise an error if a gradient is requested through an operator that has none, as MXNet does at binding."""
    needs = set()
    nodes = topological(symbol._outputs)
    for node in nodes:
        if node.op is None:
            if reqs.get(node.name, "null") != "null":
                needs.add(id(node))
        elif not node.op.stops_gradient and any(id(c) in needs for c, _ in node.inputs):
            needs.add(id(node))
    wanted = {id(n) for n, _ in symbol._outputs if n.op is not None and not n.op.stops_gradient}
    for node in reversed(nodes):
        if id(node) in wanted and node.op is not None:
            if node.op.no_gradient and id(node) in needs:
                raise MXNetError(f"'{node.name}': operator {node.op.name} has no gradient, and one is asked for through it; bind its arguments "
                                 "with grad_req='null', or put mx.sym.stop_gradient around it")
            wanted.update(id(c) for c, _ in node.inputs if c.op is None or not c.op.stops_gradient)


def _placement(symbol: Symbol, ctx: Context, group2ctx: Mapping[str, Any] | None) -> dict[str, Context]:
    if not group2ctx:
        return {}
    split_layers.contexts_of(group2ctx)  # checks them
    places = {node.name: split_layers.context_of(group2ctx, node) for node in symbol._nodes() if node.op is None}
    return {name: ctx for name, ctx in places.items() if ctx is not None}


def _storage_types(symbol: Symbol, stype_dict: Mapping[str, str] | None) -> dict[str, str]:
    names = {"0": "default", "1": "row_sparse", "2": "csr"}
    stypes = {n.name: names.get(n.attrs["__storage_type__"], "default") for n in symbol._nodes() if n.op is None and "__storage_type__" in n.attrs}
    stypes.update(stype_dict or {})
    return stypes


def _uses(symbol: Symbol, storage: Mapping[str, str]) -> dict[str, list[str | None]]:
    """Return the storage type of the gradient for each use of each array, by the array's name."""
    groups: dict[str, list[str | None]] = {}
    for node in symbol._nodes():
        for position, (child, _) in enumerate(node.inputs):
            if child.op is None:
                groups.setdefault(child.name, []).append(_stored_by_use(node, position, storage))
    return groups


def _grad_stype(name: str, uses: Sequence[str | None], storage: Mapping[str, str]) -> str:
    """Return the storage type of a gradient: row_sparse if all uses of the array need only some rows, or if the array is and no use is dense."""
    if uses and all(u == "row_sparse" for u in uses):
        return "row_sparse"
    return "row_sparse" if storage.get(name) == "row_sparse" and "default" not in uses else "default"


def _stored_by_use(node: Node, position: int, storage: Mapping[str, str]) -> str | None:
    """Return the storage type of the gradient for one use of an array as an input; None for the array's own."""
    if node.op.gradient_storage is None:
        return None
    in_stypes = tuple(storage.get(child.name, "default") if child.op is None else None for child, _ in node.inputs)
    return node.op.gradient_storage(position, in_stypes, node.op.with_defaults(node.parsed()))
