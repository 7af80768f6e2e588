"""Insertion of casts into the functions of ``mx.nd`` and ``mx.sym``.

The functions themselves are replaced when AMP is switched on, so that calls cost nothing extra while it is off.
"""
from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ... import ndarray, symbol
from ...ndarray import NDArray, arithmetic, methods
from ...ndarray import functions as array_functions
from ...ops.dtypes import NAME_TO_TORCH, to_torch
from ...ops.elemwise.unary import amp_cast, amp_multicast
from ...ops.registry import OPERATORS
from ...symbol import Symbol
from ...symbol import functions as symbol_functions

if TYPE_CHECKING:
    from .loss_scaler import LossScaler

_log = logging.getLogger(__name__)
_ARRAY_MODULES = [getattr(ndarray, name) for name in "op _internal linalg image contrib random sparse".split()] + [ndarray]
_SYMBOL_MODULES = [getattr(symbol, name) for name in "op _internal linalg image contrib random sparse".split()] + [symbol]
_FLOATS = {NAME_TO_TORCH[name] for name in ("float32", "float16", "bfloat16")}


def cast_to(value: Any, dtype: Any) -> Any:
    """Return an array or Symbol converted to `dtype`; an array only if both are types that AMP computes in on its device. Anything else as it is."""
    if isinstance(value, Symbol):
        return symbol.amp_cast(value, dtype=dtype)
    if isinstance(value, NDArray):
        own, wanted = value._data.dtype, to_torch(dtype)
        computed = _FLOATS - {NAME_TO_TORCH["float16"]} if value.context.device_type == "cpu" else _FLOATS
        if own != wanted and own in computed:
            return ndarray.amp_cast(value, dtype=dtype)
    return value


class Rule:
    """The cast rule of an operator's inputs.

    Parameters
    ----------
    dtype : str, optional
        The type to cast to; without it, the widest among them.
    uncast : collection of str
        Inputs that are not cast.
    condition : (str, list of str), optional
        An attribute, and its values with which the rule applies.
    """

    def __init__(self, low: str, dtype: str | None = None, uncast: Iterable[str] = (), condition: tuple[str, Sequence[str]] | None = None):
        self.low, self.dtype, self.uncast, self.condition = low, dtype, frozenset(uncast), condition

    def cast(self, arrays: list[Any]) -> list[Any]:
        """Return the arrays, cast; unchanged if one of them is sparse."""
        if any(array._is_sparse for array in arrays):
            return arrays
        types = [array._data.dtype for array in arrays]
        if self.dtype is not None:
            wanted, convertible = NAME_TO_TORCH[self.dtype], _FLOATS
        else:
            low, single = NAME_TO_TORCH[self.low], NAME_TO_TORCH["float32"]
            wanted, convertible = (single, {low}) if single in types else (low, ())
        cast = array_functions.operator_function(amp_cast.name)
        return [cast(array, dtype=wanted) if dtype in convertible and dtype != wanted else array for array, dtype in zip(arrays, types)]

    def holds(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Return True if the rule applies to a call with these arguments."""
        if self.condition is None:
            return True
        name, values = self.condition
        return kwargs[name] in values if name in kwargs else any(type(arg) is str and arg in values for arg in args)


def array_function(function: Callable[..., Any], op: Any, rule: Rule) -> Callable[..., Any]:
    """Return a function of ``mx.nd`` that converts its inputs first."""
    uncast = rule.uncast | set(op.mutates)

    @functools.wraps(function)
    def converting(*args, **kwargs):
        if not rule.holds(args, kwargs):
            return function(*args, **kwargs)
        args = _flat(op, args)
        places = [(args, i) for i, arg in enumerate(args)
                  if isinstance(arg, NDArray) and not (i < len(op.inputs) and op.inputs[i] in uncast)]
        # `out` receives the result whatever its type.
        places += [(kwargs, key) for key, arg in kwargs.items() if isinstance(arg, NDArray) and key not in uncast and key != "out"]
        for (container, key), array in zip(places, rule.cast([container[key] for container, key in places])):
            container[key] = array
        return function(*args, **kwargs)

    return converting


def symbol_function(function: Callable[..., Any], op: Any, rule: Rule) -> Callable[..., Any]:
    """Return a function of ``mx.sym`` that puts casts before its inputs."""
    if rule.dtype is None:
        return _widening_symbol_function(function, op)
    uncast = rule.uncast | set(op.mutates)

    @functools.wraps(function)
    def converting(*args, **kwargs):
        result = function(*args, **kwargs)
        node = result._outputs[0][0]
        if rule.condition is None or node.attrs.get(rule.condition[0]) in rule.condition[1]:
            cast = symbol_functions.operator_function(amp_cast.name)
            # The node is new and unshared. Its auxiliary states must stay variables.
            node.inputs = [entry if name in uncast else cast(Symbol([entry]), dtype=rule.dtype)._outputs[0]
                           for name, entry in zip(node.input_names(), node.inputs)]
        return result

    return converting


def _widening_symbol_function(function, op):
    @functools.wraps(function)
    def converting(*args, **kwargs):
        args = _flat(op, args)
        places = [(args, i) for i, arg in enumerate(args) if isinstance(arg, Symbol)]
        places += [(kwargs, key) for key, arg in kwargs.items() if isinstance(arg, Symbol)]
        if places:
            cast = symbol_functions.operator_function(amp_multicast.name)
            for (container, key), entry in zip(places, cast(*[c[k] for c, k in places], num_outputs=len(places))):
                container[key] = entry
        return function(*args, **kwargs)

    return converting


def _flat(op, args):
    """Return the arguments as a list; those of ``concat([x, y])`` as of ``concat(x, y)``."""
    if op.variadic and len(args) == 1 and isinstance(args[0], (list, tuple)):
        args = args[0]
    return list(args)


def arithmetic_function(function: Callable[..., Any], rules: Any) -> Callable[..., Any]:
    """``x + y`` and its like; `rules` are those for two arrays, for an array first and for an array second (None: nothing to do)."""
    @functools.wraps(function)
    def converting(lhs, rhs):
        left, right = isinstance(lhs, NDArray), isinstance(rhs, NDArray)
        rule = rules[0 if left and right else 1 if left else 2]
        if rule is not None:
            if left and right:
                lhs, rhs = rule.cast([lhs, rhs])
            elif left:
                lhs, = rule.cast([lhs])
            elif right:
                rhs, = rule.cast([rhs])
        return function(lhs, rhs)

    return converting


def scaling_loss(function: Callable[..., Any], scaler: LossScaler) -> Callable[..., Any]:
    """Return a loss layer of ``mx.nd`` whose gradient is multiplied by the loss scale."""
    @functools.wraps(function)
    def scaling(*args, **kwargs):
        kwargs["grad_scale"] = float(kwargs.get("grad_scale", 1)) * scaler.loss_scale
        return function(*args, **kwargs)

    return scaling


def warning_loss(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a loss layer of ``mx.sym``, where the scale of the moment would stay in the graph."""
    @functools.wraps(function)
    def warning(*args, **kwargs):
        _log.warning("%s in a graph keeps the loss scale of the moment: a scale that changes later has no effect on it", function.__name__)
        return function(*args, **kwargs)

    return warning


class Installation:
    """AMP, switched on.

    Parameters
    ----------
    rules : dict of str to Rule
        By name of the operator. Names that are not registered are left out.
    losses : list of str
        Layers whose gradient is scaled.
    scaler : LossScaler
    """

    def __init__(self, rules: Any, losses: Any, scaler: Any):
        self._undo = []
        for name, rule in rules.items():
            if name in OPERATORS:
                op = OPERATORS[name]
                self._replace(array_functions, _ARRAY_MODULES, name, lambda f, op=op, rule=rule: array_function(f, op, rule))
                self._replace(symbol_functions, _SYMBOL_MODULES, name, lambda f, op=op, rule=rule: symbol_function(f, op, rule))
        for name in losses:
            self._replace(array_functions, _ARRAY_MODULES, name, lambda f: scaling_loss(f, scaler))
            self._replace(symbol_functions, _SYMBOL_MODULES, name, warning_loss)
        self._replace_arithmetic(rules)
        self._attach_methods()

    def _set(self, owner, name, value):
        self._undo.append(functools.partial(setattr, owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def _replace(self, functions, modules, name, wrap):
        old = functions.operator_function(name)
        new = wrap(old)
        _swap(functions, modules, name, old, new)
        self._undo.append(functools.partial(_swap, functions, modules, name, new, old))

    def _replace_arithmetic(self, rules):
        for name, (both, first, second) in arithmetic.BINARY.items():
            chosen = [rules.get(operator) for operator in (both, first, second)]
            if not any(chosen):
                continue
            old = arithmetic.FUNCTIONS[name]
            for attribute in [key for key, value in vars(ndarray).items() if value is old]:
                self._set(ndarray, attribute, arithmetic_function(old, chosen))
            method = arithmetic.METHODS.get(name)
            if method:
                self._set(NDArray, method, arithmetic_function(getattr(NDArray, method), chosen))
                reflected = f"__r{method.strip('_')}__"
                if reflected in vars(NDArray):
                    # The array comes first here too, the number it stands behind second.
                    self._set(NDArray, reflected, arithmetic_function(getattr(NDArray, reflected), [chosen[0], chosen[2], chosen[2]]))

    @staticmethod
    def _attach_methods():
        """Attach the methods again, since each method caches the function that it has looked up."""
        methods.attach(NDArray, array_functions.operator_function, array_functions.call_shared)
        methods.attach(Symbol, symbol_functions.operator_function)

    def undo(self) -> None:
        """Restore the original functions. Programs cannot switch AMP off; tests must."""
        while self._undo:
            self._undo.pop()()
        self._attach_methods()


def _swap(functions, modules, name, old, new):
    functions.replace(name, new)
    for module in modules:  # those that have handed out the old one keep it as an attribute
        for attribute in [key for key, value in vars(module).items() if value is old]:
            setattr(module, attribute, new)
