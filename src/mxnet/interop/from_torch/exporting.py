"""A module of torch's as a graph: torch.export, with the size of the batch left open where the module allows it."""
from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ...base import MXNetError
from ...ndarray import NDArray
from .registry import converter


def as_tensors(values: Any) -> Any:
    """Examples with torch tensors in the place of NDArrays."""
    if isinstance(values, NDArray):
        return values.as_torch()
    if isinstance(values, (list, tuple)):
        return type(values)(map(as_tensors, values))
    if isinstance(values, Mapping):
        return {name: as_tensors(value) for name, value in values.items()}
    return values


def export(module: torch.nn.Module, examples: Sequence[Any], kwargs: Mapping[str, Any] | None, dynamic_shapes: Any) -> torch.export.ExportedProgram:
    """Return the module's graph, in operators that have counterparts, or are the parts of which torch says that others are made.

    Parameters
    ----------
    module : torch.nn.Module
    examples : sequence
        The positional arguments.
    kwargs : dict, optional
        The others.
    dynamic_shapes
        As for `torch.export.export`. By default the first size of all inputs may vary, if it is the same in all of them.

    Raises
    ------
    MXNetError
        If torch can't export the module.
    """
    args, named = _distinct((tuple(as_tensors(examples)), as_tensors(dict(kwargs or {}))))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # torch warns of names of its own that its exporter uses
            if dynamic_shapes is not None:
                program = torch.export.export(module, args, named, dynamic_shapes=dynamic_shapes)
            else:
                program = _with_open_batch(module, args, named)
            program = _in_known_operators(program)
        program.graph.eliminate_dead_code()
        return program
    except MXNetError:
        raise
    except Exception as error:
        raise MXNetError(f"from_torch: torch.export can't export {type(module).__name__}: {type(error).__name__}: {str(error)[:2000]}; "
                         "change that part of the module, or leave it in torch") from error


def _distinct(examples: Any) -> Any:
    """Return the examples with a copy where a tensor comes a second time: torch.export would take both for one input."""
    seen: set[int] = set()

    def copied(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        again = id(leaf) in seen
        seen.add(id(leaf))
        return leaf.detach().clone() if again else leaf

    return torch.utils._pytree.tree_map(copied, examples)


def _with_open_batch(module: torch.nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> torch.export.ExportedProgram:
    leaves = torch.utils._pytree.tree_leaves((args, named))
    sizes = {leaf.shape[0] if leaf.dim() else None for leaf in leaves if isinstance(leaf, torch.Tensor)}
    if len(sizes) == 1 and None not in sizes and 0 not in sizes:
        if sizes == {1}:  # which torch would take for a size that never varies
            double = torch.utils._pytree.tree_map(lambda leaf: torch.cat((leaf, leaf)) if isinstance(leaf, torch.Tensor) else leaf, (args, named))
        else:
            double = args, named
        axes = torch.utils._pytree.tree_map(lambda leaf: {0: torch.export.Dim.AUTO} if isinstance(leaf, torch.Tensor) else None, double)
        try:
            return torch.export.export(module, *double, dynamic_shapes={**_by_position(module, axes[0]), **axes[1]})
        except Exception:  # noqa: S110  # the module needs the size of the examples
            pass
    return torch.export.export(module, args, named)


def _by_position(module: torch.nn.Module, axes: Sequence[Any]) -> dict[str, Any]:
    """The first arguments of `forward`, by name."""
    import inspect
    arguments: dict[str, Any] = {}
    parameters = list(inspect.signature(module.forward).parameters.values())
    for i, parameter in enumerate(parameters):
        if parameter.kind is parameter.VAR_POSITIONAL:
            arguments[parameter.name] = tuple(axes[i:])
            break
        if i < len(axes):
            arguments[parameter.name] = axes[i]
    return arguments


def _has_tensors(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("val"), (torch.Tensor, list, tuple))


def _in_known_operators(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Take apart the operators that have no counterpart, and only these: not those of sizes and numbers, which are computed once."""
    unknown = {node.target for node in program.graph.nodes
               if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload) and converter(node.target) is None
               and _has_tensors(node) and any(map(_has_tensors, node.all_input_nodes))}
    if not unknown:
        return program
    table = torch.export.default_decompositions()
    parts = {target: table[target] for target in unknown if target in table}
    return program.run_decompositions(parts) if parts else program  # type: ignore[arg-type]  # an OpOverload is an OperatorBase
