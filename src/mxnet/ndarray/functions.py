"""From operators to the functions of ``mx.nd``."""
import builtins
import inspect
import sys
from collections.abc import Callable
from typing import Any

from ..base import MXNetError, _Null
from ..ops.docstrings import with_parameters
from ..ops.registry import OPERATORS, Operator, exists, get
from ..suggestions import MissingAttributeError, shortened
from . import dispatch
from .dispatch import invoke, mode
from .fast_calls import fast

_made: dict[tuple[str, type | None], Callable] = {}


def operator_function(name: str, cls: type | None = None) -> Callable:
    """Return the function ``mx.nd.<name>``: MXNet's signature, arrays in and out."""
    key = name, cls
    function = _made.get(key)
    if function is None:
        function = _made[key] = _make(get(name), name, cls)
    return function


def replace(name: str, function: Callable) -> None:
    """Replace ``mx.nd.<name>`` by `function`; references to the former function stay valid."""
    _made[name, None] = function


def split_arguments(op: Operator, args: tuple, kwargs: dict[str, Any], array_type: type) -> tuple[list, dict[str, Any]]:
    """Split a call's arguments into inputs and attributes.

    Returns
    -------
    inputs : list
        Up to the last one given; None for those left out in between.
    attributes : dict
        The other arguments, without those left at ``_Null``.
    """
    if not kwargs and len(args) == 1 and isinstance(args[0], array_type):
        return [args[0]], kwargs
    positional: tuple[Any, ...]
    if op.variadic:
        inputs, rest = list(args), ()
        for i, value in enumerate(args):
            if not isinstance(value, array_type):
                inputs, rest = inputs[:i], args[i:]
                break
        if not inputs and rest and isinstance(rest[0], (list, tuple)):
            inputs, rest = list(rest[0]), rest[1:]
        if op.names_inputs and any(isinstance(v, array_type) for v in kwargs.values()):
            named = {k: kwargs.pop(k) for k in [k for k, v in kwargs.items() if isinstance(v, array_type)]}
            names = op.input_names(op.parse(kwargs))
            unknown = [k for k in named if k not in names[len(inputs):]]
            if unknown:
                raise MXNetError(f"{op.name}: no further input is called {unknown[0]!r}; its inputs are {', '.join(names)}")
            inputs += [named.get(n) for n in names[len(inputs):]]
        if not inputs and isinstance(kwargs.get(op.inputs[-1]), (list, tuple)):
            inputs = list(kwargs.pop(op.inputs[-1]))
        if len(op.inputs) > 1:
            for n in op.inputs[:-1]:
                if n in kwargs:
                    inputs.insert(op.inputs.index(n), kwargs.pop(n))
        if rest:
            raise MXNetError(f"{op.name}: positional arguments must be arrays, received {shortened(rest[0])}; give attributes by name")
        for name in kwargs:
            if kwargs[name] is _Null:
                return inputs, {k: v for k, v in kwargs.items() if v is not _Null}
        return inputs, kwargs
    else:
        most = len(op.inputs)
        inputs, positional = list(args[:most]), args[most:]
        if kwargs:
            for i, name in enumerate(op.inputs):
                if name in kwargs:
                    if i < len(inputs) and inputs[i] is not None:
                        raise TypeError(f"{op.name}: input `{name}` was given twice")
                    inputs.extend([None] * (i + 1 - len(inputs)))
                    inputs[i] = kwargs.pop(name)
        # Activation(x, 'relu'): an attribute may follow the inputs that were given by position.
        for i in range(1, len(inputs)):
            if inputs[i] is not None and not isinstance(inputs[i], array_type) and op.inputs[i] in op.optional_inputs:
                positional = tuple(inputs[i:]) + positional
                del inputs[i:]
                break
        while inputs and inputs[-1] is None:
            inputs.pop()
    for name, value in zip(op.attributes, positional):
        if value is not _Null:
            if name in kwargs:
                raise TypeError(f"{op.name}: `{name}` was given twice")
            kwargs[name] = value
    if len(positional) > len(op.attributes):
        raise TypeError(f"{op.name} takes at most {len(op.inputs) + len(op.attributes)} arguments, received {len(args)}")
    for name in [k for k, v in kwargs.items() if v is _Null]:
        del kwargs[name]
    return inputs, kwargs


def _make(op: Operator, name: str, cls: type | None) -> Callable:
    NDArray = dispatch.NDArray
    cls = cls or NDArray
    required = 0 if op.variadic else sum(1 for i in op.inputs if i not in op.optional_inputs)
    most = None if op.variadic else len(op.inputs) + len(_attribute_names(op))

    def general(*args: Any, out: Any = None, name: str | None = None, **kwargs: Any) -> Any:
        if most is not None and most < len(args) <= most + 2 and out is None:  # `out` and `name` may come by position
            out, args = args[most], args[:most]
        inputs, attrs = split_arguments(op, args, kwargs, NDArray)
        if len(inputs) < required:
            needed = op.inputs if op.inputs_rule is None else op.input_names(op.parse(attrs))
            if len(inputs) < len(needed):
                raise MXNetError(f"{op.name} expects {len(needed)} inputs ({', '.join(needed)}), received {len(inputs)}")
        return invoke(op, inputs, attrs, out, cls if cls is not NDArray else dispatch.kind_of(inputs))

    function = fast(op, cls, general)
    function.__name__ = function.__qualname__ = name
    function.__module__ = "mxnet.ndarray.op"
    function.__doc__ = with_parameters(op, "NDArray")
    function.__signature__ = signature(op)  # type: ignore[attr-defined]
    return function


def call_shared(name: str, array: Any, *args: Any, **kwargs: Any) -> Any:
    """Call an operator of one input so that the result shares the input's memory."""
    op = get(name)
    inputs, attrs = split_arguments(op, (array, *args), kwargs, dispatch.NDArray)
    return invoke(op, inputs, attrs, None, type(array), op.view)


def _attribute_names(op: Operator) -> list[str]:
    """Return the names of the attributes in the order of the function's parameters."""
    return list(dict.fromkeys([*op.attributes, *(["ctx"] if op.wants_device else []), *([op.key_var_num_args] if op.key_var_num_args else [])]))


def signature(op: Operator) -> inspect.Signature:
    """Return the signature for `inspect` and editors: inputs, then attributes, then ``out`` and ``name``."""
    P = inspect.Parameter
    kind = P.KEYWORD_ONLY if op.variadic else P.POSITIONAL_OR_KEYWORD
    if op.variadic:
        head = [P(n, P.POSITIONAL_OR_KEYWORD) for n in op.inputs[:-1]] + [P(op.inputs[-1], P.VAR_POSITIONAL)]
    else:
        head = [P(n, P.POSITIONAL_OR_KEYWORD, default=None) for n in op.inputs]
    attributes = [P(n, kind, default=_Null) for n in _attribute_names(op)]
    tail = [P("out", kind, default=None), P("name", kind, default=None), P("kwargs", P.VAR_KEYWORD)]
    return inspect.Signature(head + attributes + tail)


def namespace_lookup(module_name: str, prefix: str, make: Callable[[str], Callable], underscored: bool = False,
                     may_hide_builtins: bool = False) -> tuple[Callable[[str], Callable], Callable[[], list[str]]]:
    """Return a module ``__getattr__`` that finds operators named ``prefix + name``, and a ``__dir__`` that lists them.

    Functions found are stored in the module. `may_hide_builtins` is True if no code of the module uses Python's own `sum`, `slice`, ...
    """
    def lookup(name: str) -> Callable:
        if not name.startswith("__"):
            for candidate in (prefix + name, name) if underscored or prefix == "_sparse_" else (prefix + name,):
                if exists(candidate) and (underscored or not candidate.startswith("_") or prefix):
                    function = make(candidate)
                    if may_hide_builtins or not hasattr(builtins, name):
                        setattr(sys.modules[module_name], name, function)
                    return function
        raise MissingAttributeError(module_name, name)

    def listing() -> list[str]:
        module = sys.modules[module_name]
        names = {n[len(prefix):] for n in OPERATORS if n.startswith(prefix) and (underscored or prefix or not n.startswith("_"))}
        return sorted(names | set(module.__dict__))

    return lookup, listing


__all__ = ["mode", "namespace_lookup", "operator_function", "signature", "split_arguments"]
