"""A lowered graph in torch's own operators alone: the form that torch.export, torch.compile, autocast and torch.func can look into."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx

from ..base import MXNetError
from ..graph.lower import lower
from ..graph.program import attributes_of, is_stochastic, operator_of
from ..ops.nn.dropout import chance_and_scale, dropout
from ..ops.nn.normalization import batch_norm
from ..ops.registry import Operator
from ..symbol import Symbol


class NotPortable(MXNetError):
    """A graph that torch.export and torch.compile cannot take, because an operator has no form in torch's own operators.

    The network still runs, eagerly. What must be exported has to be written with other operators.
    """


def _dropout(data: torch.Tensor, *, p: float = 0.5, mode: str = "training", axes: tuple[int, ...] = (), cudnn_off: bool | None = False,
             training: bool = False) -> torch.Tensor:
    """`Dropout` with torch's random numbers."""
    if not (training or mode == "always") or p == 0:
        return data.clone()
    if not axes:
        return torch.nn.functional.dropout(data, p, True)
    chance, scale = chance_and_scale(p)
    shape = [1 if axis in axes else size for axis, size in enumerate(data.shape)]
    return data * torch.bernoulli(torch.full(shape, chance, dtype=data.dtype, device=data.device)) * scale


def _batch_norm(data: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, moving_mean: torch.Tensor, moving_var: torch.Tensor, *,
                eps: float = 1e-3, momentum: float = 0.9, fix_gamma: bool = True, use_global_stats: bool = False, output_mean_var: bool = False,
                axis: int = 1, training: bool = False, **hints: Any) -> Any:
    """`BatchNorm`, which torch sees write to its buffers."""
    if output_mean_var:
        return batch_norm.raw(data, gamma, beta, moving_mean, moving_var, eps=eps, momentum=momentum, fix_gamma=fix_gamma,
                              use_global_stats=use_global_stats, output_mean_var=True, axis=axis, training=training)
    axis %= data.dim()
    moved = data if axis == 1 else data.movedim(axis, 1)
    scale = None if fix_gamma else gamma
    if not training or use_global_stats:
        out = torch.batch_norm(moved, scale, beta, moving_mean, moving_var, False, 0.0, eps, False)
    else:
        var, mean = torch.var_mean(moved.detach().to(moving_mean.dtype), [a for a in range(data.dim()) if a != 1], correction=0)
        moving_mean.mul_(momentum).add_(mean, alpha=1 - momentum)
        moving_var.mul_(momentum).add_(var, alpha=1 - momentum)
        out = torch.batch_norm(moved, scale, beta, None, None, True, 0.0, eps, False)
    return out if axis == 1 else out.movedim(1, axis)


_FORMS: dict[Operator, Callable[..., Any]] = {dropout: _dropout, batch_norm: _batch_norm}


def portable(symbol: Symbol, is_train: bool, device: torch.device, source_shapes: Mapping[int, Any] | None = None) -> fx.GraphModule:
    """Return the graph of a Symbol as a module that calls only what torch can trace.

    Parameters
    ----------
    symbol : Symbol
    is_train : bool
    device : torch.device
    source_shapes : dict of int to shape, optional
        As for `lower`.

    Returns
    -------
    torch.fx.GraphModule
        It takes the variables in the order of ``symbol.list_inputs()`` and returns a tuple.

    Raises
    ------
    NotPortable
        If an operator draws random numbers from MXNet's generators or computes outside of torch.
    """
    module = lower(symbol._outputs, is_train, device, source_shapes=source_shapes)
    for node in module.graph.nodes:
        if node.op != "call_function":
            continue
        op = operator_of(node)
        if op in _FORMS:
            node.target = _FORMS[op]
        elif op is not None and is_stochastic(node):
            attributes = attributes_of(node)
            data_dependent = op.holds("data_dependent", attributes)
            why = "runs Python code or control flow of the program" if data_dependent else "draws random numbers of MXNet's generators"
            raise NotPortable(f"operator {op.name} (node {node.meta['node'].name}) {why}: torch.export and torch.compile can't look into it")
        if node.target.__module__ != "_operator":
            torch.compiler.allow_in_graph(node.target)
    module.generate()  # type: ignore[operator]  # of lower.py
    return module
