"""Checks of quantization's arguments: errors for invalid ones, warnings for those without effect."""
from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ... import ndarray
from ...base import MXNetError
from ...context import Context
from ...graph.int8.quantize import is_quantized
from ...ndarray import NDArray
from ...ops.quantization.conversion import quantize_v2, requantize
from ...ops.registry import UnknownOperatorError, get
from ...suggestions import shortened
from ...symbol import Symbol
from ...symbol.fused import Fused
from ...symbol.node import Node, topological

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SUFFIX = "_quantize"  # of the name of a parameter that is integers
DTYPES, MODES, GRANULARITIES = ("int8", "uint8", "auto"), ("full", "smart"), ("tensor-wise", "channel-wise")


def names(argument: str, value: list[str] | None) -> list[str]:
    """Return a list of names; an empty one for None.

    Raises
    ------
    ValueError
        If it is no list, or has something else in it.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"`{argument}` must be a list of names, received {shortened(value)} of type {type(value).__name__}")
    other = next((one for one in value if not isinstance(one, str)), None)
    if other is not None:
        raise ValueError(f"`{argument}` must be a list of names, received one with {other!r} of type {type(other).__name__}")
    return value


def one_of(argument: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raise a ValueError unless a word is among those allowed."""
    if value not in allowed:
        raise ValueError(f"unknown {argument} {value} received: expected {', '.join(f'`{a}`' for a in allowed[:-1])} or `{allowed[-1]}`")


def context(ctx: Context) -> Context:
    """Return a single Context; raise a ValueError for anything else."""
    if not isinstance(ctx, Context):
        raise ValueError(f"calibration runs on a single ctx, received {shortened(ctx)} of type {type(ctx).__name__}")
    return ctx


def model(sym: Symbol, arg_params: Mapping[str, NDArray]) -> None:
    """Raise a ValueError unless the arguments are a Symbol and a dict of arrays."""
    if not isinstance(sym, Symbol):
        raise ValueError(f"`sym` must be a Symbol, received {shortened(sym)} of type {type(sym).__name__}; mx.sym.load reads one from a file")
    if not isinstance(arg_params, Mapping):
        raise ValueError(f"`arg_params` must be a dict of NDArrays by name, received {type(arg_params).__name__}")
    for name, array in arg_params.items():
        if not isinstance(array, NDArray):
            raise ValueError(f"parameter '{name}' must be an NDArray, received {type(array).__name__}; mx.nd.array makes one")


def examples(count: int | None) -> None:
    """Raise an error for an invalid number of calibration examples."""
    if count is None:
        return
    if isinstance(count, bool) or not hasattr(count, "__index__"):
        raise TypeError(f"`num_calib_examples` must be an integer, or None for all, received {shortened(count)}")
    if count < 1:
        raise ValueError(f"`num_calib_examples` must be at least 1, or None for all, received {count}")


def trained(name: str, array: NDArray) -> tuple[float, float]:
    """Return the least and the largest value of a parameter that integers are to stand for.

    Raises
    ------
    MXNetError
        If it is not float32, or has values that are infinite or no numbers.
    """
    if array.dtype.__name__ != "float32":
        raise MXNetError(f"parameter '{name}' is {array.dtype.__name__}: float32 is what can be quantized; cast the network before, or exclude the "
                         "layers that use it")
    ends = ndarray.min(array).asscalar(), ndarray.max(array).asscalar()
    if not all(abs(end) < float("inf") for end in ends):  # False for NaN, too
        raise MXNetError(f"parameter '{name}' has values from {ends[0]} to {ends[1]}, which no integers can stand for; it was not trained well, or "
                         "exclude the layers that use it")
    return ends


def quantized_parameters(qsym: Symbol, params: Mapping[str, NDArray]) -> None:
    """Raise an error for floating-point parameters that quantized nodes cannot use, see `trained`."""
    used = {child.name: None for node in qsym._nodes() if is_quantized(node) for child, _ in node.inputs if child.op is None}
    for name in used:
        source = name.removesuffix(SUFFIX)
        if source in params and not (source != name and name in params):  # else they are integers already
            trained(source, params[source])


def excluded(sym: Symbol, layers: Sequence[str], operators: Sequence[str]) -> list[str]:
    """Return the canonical names of `operators`. Unmatched names cause a warning, not an error: MXNet's programs have lists for many networks."""
    known = {n.name for n in _nodes(sym._nodes())}
    for name in dict.fromkeys(layers):
        if name not in known:
            warnings.warn(f"quantization: '{name}' is to be excluded, but nothing in the network is called so; "
                          "sym.get_internals().list_outputs() tells what its layers are called", stacklevel=4)
    names = []
    for name in operators:
        try:
            names.append(get(name).name)
        except UnknownOperatorError as error:
            warnings.warn(f"quantization: '{name}' is to be excluded: {error}", stacklevel=4)
    return names


def _nodes(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        for graph in node.subgraphs:
            yield from _nodes(topological(graph))


def lost(qsym: Symbol) -> None:
    """Warn of calibrated layers whose negative values are lost, because of ``quantized_dtype='uint8'``."""
    layers = []
    for node in qsym._nodes():
        if node.op in (quantize_v2, requantize) and not isinstance(node.inputs[0][0].op, Fused):  # fused ones have a type of their own
            parsed = node.op.with_defaults(node.parsed())
            if parsed["out_type"] == "uint8" and (parsed["min_calib_range"] or 0) < 0:
                layers.append(f"{node.name} (from {parsed['min_calib_range']:g})")
    if layers:
        warnings.warn(f"quantization: uint8 holds nothing below zero, which is lost in {', '.join(layers)}; quantized_dtype='auto' takes int8 there",
                      stacklevel=4)
