"""From operators to the functions of ``mx.sym``."""
from collections.abc import Callable, Mapping
from typing import Any

from ..base import MXNetError
from ..ndarray.functions import namespace_lookup, signature, split_arguments
from ..ops.docstrings import with_parameters
from ..ops.registry import Operator, get
from .compose import create
from .symbol import Symbol

_made: dict[str, Callable[..., Symbol]] = {}


def operator_function(name: str) -> Callable[..., Symbol]:
    """Return the function ``mx.sym.<name>``: MXNet's signature, Symbols in and out."""
    function = _made.get(name)
    if function is None:
        function = _made[name] = _make(get(name), name)
    return function


def replace(name: str, function: Callable[..., Symbol]) -> None:
    """Replace ``mx.sym.<name>`` by `function`; references to the former function stay valid."""
    _made[name] = function


def _make(op: Operator, public_name: str) -> Callable[..., Symbol]:
    hint = _hint(public_name)

    def function(*args: Any, name: str | None = None, attr: Mapping[str, str] | None = None, out: Any = None, **kwargs: Any) -> Symbol:
        if out is not None and not isinstance(out, Symbol):  # one Symbol for another means nothing, and MXNet takes it
            raise MXNetError(f"{op.name}: a Symbol has no values to write to `out`, received {type(out).__name__}")
        if not op.variadic or op.names_inputs:
            named = {n: kwargs.pop(n) for n in (list(kwargs) if op.names_inputs else op.inputs) if isinstance(kwargs.get(n), Symbol)}
            if named:
                by_position, attrs = split_arguments(op, args, kwargs, Symbol)
                names = op.input_names(op.parse(attrs)) if op.names_inputs else op.inputs
                named.update({n: v for n, v in zip(names, by_position) if v is not None})
                return create(op, named, attrs, name, hint, attr)
        inputs, attrs = split_arguments(op, args, kwargs, Symbol)
        if op.variadic and attrs.get(op.key_var_num_args) is not None:
            count = op.count(attrs[op.key_var_num_args])
            if count < len(inputs):
                raise MXNetError(f"{op.name}: {op.key_var_num_args}={count}, but {len(inputs)} inputs were given")
            inputs = inputs + [None] * (count - len(inputs))
        return create(op, inputs, attrs, name, hint, attr)

    function.__name__ = function.__qualname__ = public_name
    function.__module__ = "mxnet.symbol.op"
    doc = with_parameters(op, "NDArray")
    function.__doc__ = doc.replace("NDArray", "Symbol") if doc else None
    function.__signature__ = signature(op)  # type: ignore[attr-defined]  # read by inspect
    return function


def _hint(name: str) -> str:
    # In the public namespaces the prefix is not part of the function's name, nor of the names it gives.
    for prefix in ("_contrib_", "_linalg_", "_sparse_", "_image_", "_random_", "_npx_", "_npi_", "_np_"):
        if name.startswith(prefix):
            return name[len(prefix):].lower()
    return name.lower()


__all__ = ["namespace_lookup", "operator_function"]
