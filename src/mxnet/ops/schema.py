"""Operator attributes: the meaning of annotations, and the parsing of values and of strings from JSON files.

An operator declares its attributes as keyword-only parameters. The annotation is the complete declaration: ``int``, ``float``, ``bool``,
``str``, ``Shape`` (a tuple of integers), ``Ends`` (None among them), ``Floats``, ``Axes`` (an integer, a tuple or None), ``DType``, ``Literal[...]``,
``Optional[...]`` of these, ``Annotated[float, Between(0, 1)]`` for a number with bounds (such as `AtLeast1` and `Fraction`). Two
annotations name values from the caller of an operator instead of the user: ``Training`` (True while a training pass runs) and
``Device`` (where a new array goes; users say ``ctx=``).
"""
import ast
import types
import typing
from typing import Annotated, Any, Literal, Optional, Union

import numpy as np
import torch

from . import dtypes

Shape = tuple[int, ...]
Ends = tuple[Optional[int], ...]
Floats = tuple[float, ...]
Axes = Union[int, tuple[int, ...], None]
DType = torch.dtype


class Between(typing.NamedTuple):
    """The bounds of an attribute, both included; None for none."""

    low: Optional[float] = None
    high: Optional[float] = None


AtLeast0 = Annotated[int, Between(0)]
AtLeast1 = Annotated[int, Between(1)]
Fraction = Annotated[float, Between(0, 1)]
Finite = Annotated[float, Between(-3.4028235e38, 3.4028235e38)]  # as a float32
Training = Annotated[bool, "training"]
Device = Annotated[Optional[torch.device], "device"]
_INT64 = 1 << 63  # the first number that a size, a stride or an end cannot be


def _parse_literal(text):
    """Parse a number or a (nested) tuple; MXNet also writes ``[1,2]``, ``1L`` and ``None``."""
    try:
        return ast.literal_eval(text.strip().replace("L", ""))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError(text) from None


def _to_int(value):
    if type(value) is int:
        return value
    if isinstance(value, str):
        text = value.strip()
        if text in ("True", "False"):
            return int(text == "True")
        return int(text.rstrip("L"))
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, (float, np.floating)) and value != int(value):
        raise ValueError(value)
    if isinstance(value, np.ndarray) and value.size != 1:
        raise ValueError(value)
    return int(value)


def _to_float(value):
    if type(value) is float:
        return value
    if isinstance(value, str):
        text = value.strip()
        return float({"True": "1", "False": "0"}.get(text, text))
    return float(value)


def _to_bool(value):
    if type(value) is bool:
        return value
    if isinstance(value, str):
        text = value.strip().lower()
        if text in ("true", "1"):
            return True
        if text in ("false", "0"):
            return False
        raise ValueError(value)
    if value is None:
        raise ValueError(value)
    return bool(value)


def _to_str(value):
    return value if type(value) is str else str(value)


def to_shape(value: Any) -> tuple[int, ...]:
    if type(value) is tuple and all(type(v) is int and -_INT64 <= v < _INT64 for v in value):
        return value
    if isinstance(value, str):
        value = _parse_literal(value) if value.strip() else ()
    if value is None:
        raise ValueError(value)
    if isinstance(value, (int, np.integer)) or getattr(value, "ndim", 1) == 0:  # an array without axes is a number
        return (_to_int64(value),)
    return tuple(map(_to_int64, value))


def _to_int64(value):
    value = _to_int(value)
    if not -_INT64 <= value < _INT64:
        raise ValueError(value)
    return value


def _to_ends(value):
    if isinstance(value, str) and value.strip():
        value = _parse_literal(value)
    if isinstance(value, (tuple, list)):
        return tuple(None if v is None else _to_int64(v) for v in value)
    return to_shape(value)


def _to_floats(value):
    if isinstance(value, str):
        value = _parse_literal(value) if value.strip() else ()
    if isinstance(value, (int, float, np.number)):
        return (float(value),)
    return tuple(float(v) for v in value)


def _to_axes(value):
    if isinstance(value, str):
        value = _parse_literal(value) if value.strip() else ()
    if value is None or type(value) is int:
        return value
    if isinstance(value, (int, np.integer)) or getattr(value, "ndim", 1) == 0:
        return int(value)
    return to_shape(value)


def _to_dtype(value):
    if value is None or isinstance(value, str) and value == "None":
        raise ValueError(value)
    if isinstance(value, str) and value.lstrip("-").isdigit():
        if int(value) not in dtypes.FLAG_TO_NAME:
            raise ValueError(value)
        return dtypes.NAME_TO_TORCH[dtypes.FLAG_TO_NAME[int(value)]]
    return dtypes.to_torch(value)


_PARSERS = {int: (_to_int, "an integer"), float: (_to_float, "a number"), bool: (_to_bool, "True or False"), str: (_to_str, "a string"),
            Shape: (to_shape, "a tuple of integers"), Ends: (_to_ends, "a tuple of integers or None"), Floats: (_to_floats, "a tuple of numbers"),
            Axes: (_to_axes, "an integer, a tuple of integers or None"), DType: (_to_dtype, "the name of a data type")}


# Attributes with a number of inputs, outputs or layers. Lists of that length are made of them, so a file's number needs a limit: one
# input takes over 10 bytes of a file, and MXNet's own programs stay below a thousand.
COUNTS = frozenset({"num_args", "num_arrays", "num_layers", "num_out_data", "num_outputs", "num_tensors", "num_weights", "sections"})
MAX_COUNT = 1 << 14


class Attribute:
    """One attribute of an operator: its name, default, and how a value is checked.

    `kind` is the annotation without its ``Optional``; `choices` the allowed strings of a ``Literal``.
    """

    __slots__ = ("name", "kind", "default", "required", "optional", "choices", "bounds", "_parse", "expected", "note")

    def __init__(self, operator: str, name: str, annotation: Any, default: Any, required: bool):
        self.name, self.default, self.required = name, default, required
        self.note = ""
        try:
            self.kind, self.optional, self.choices, self.bounds = _parsed(annotation)
        except TypeError as error:
            raise TypeError(f"operator {operator}: attribute `{name}` has the annotation {error}") from None
        if self.choices is not None:
            self._parse, self.expected = self._choose, "one of " + ", ".join(map(repr, self.choices))
        else:
            self._parse, self.expected = _PARSERS[self.kind]
        if name in COUNTS and self.kind is int:
            self.bounds = Between(self.bounds and self.bounds.low, MAX_COUNT)
        if self.bounds is not None:
            low, high = self.bounds
            self.expected += f" of at least {low}" if high is None else f" up to {high}" if low is None else f" from {low} to {high}"

    def description(self) -> str:
        """Return a line with the attribute's name, type and default."""
        kind = f"{self.expected}{' or None' if self.optional else ''}"
        default = repr(self.default) if isinstance(self.default, str) else to_string(self.default)
        return f"{self.name} : {kind}, {'required' if self.required else f'optional, default={default}'}"

    def _choose(self, value):
        text = value if isinstance(value, str) else _dtype_text(value)
        if text not in (self.choices or ()):
            raise ValueError(value)
        return text

    def parse(self, value: Any) -> Any:
        """The value in the form that the operator expects.

        Raises
        ------
        ValueError
            If `value` is not of the attribute's type, or beyond its bounds.
        """
        if self.optional and (value is None or (type(value) is str and value == "None")):
            return None
        if self.bounds is None:
            return self._parse(value)
        value, (low, high) = self._parse(value), self.bounds
        if low is not None and not value >= low or high is not None and not value <= high:  # nor is it no number
            raise ValueError(value)
        return value


def _parsed(annotation: Any) -> tuple[Any, bool, Optional[tuple], Optional[Between]]:
    """Return the kind that an annotation means, whether None is allowed, the choices and the bounds."""
    optional, choices, bounds = False, None, None
    if annotation != Axes and typing.get_origin(annotation) in (Union, types.UnionType):
        members = typing.get_args(annotation)
        rest = [a for a in members if a is not type(None)]
        optional = len(rest) < len(members)
        if len(rest) != 1:
            raise TypeError(f"{annotation}, which joins several types; use one type, or Optional of one")
        annotation = rest[0]
    if typing.get_origin(annotation) is Annotated:
        annotation, bounds = typing.get_args(annotation)
    if typing.get_origin(annotation) is Literal:
        annotation, choices = Literal, typing.get_args(annotation)
    elif annotation not in _PARSERS:
        raise TypeError(f"{annotation!r}, which no file format can hold; use one of int, float, bool, str, Shape, Ends, Floats, Axes, DType, "
                        "Literal, or Optional of these")
    return annotation, optional, choices, bounds


def _dtype_text(value):
    if isinstance(value, (bool, int, float)):
        return str(value)
    try:
        return dtypes.name_of(dtypes.to_torch(value))
    except TypeError:
        return str(value)


def to_string(value: Any) -> str:
    """Return an attribute's value as a string, as in a Symbol and its JSON."""
    if type(value) is str:
        return value
    if isinstance(value, (torch.dtype, np.dtype)) or (isinstance(value, type) and issubclass(value, (np.generic, float, int, bool))):
        return dtypes.name_of(dtypes.to_torch(value))
    if isinstance(value, (list, tuple)):
        items = [str(v.item()) if isinstance(v, np.generic) else to_string(v) if isinstance(v, (list, tuple)) else str(v)
                 for v in value]
        if isinstance(value, list):
            return "[" + ", ".join(items) + "]"
        return "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"
    if isinstance(value, np.generic):
        return str(value.item())
    return str(value)


__all__ = ["AtLeast0", "AtLeast1", "Attribute", "Axes", "Between", "DType", "Device", "Floats", "Fraction", "Literal", "MAX_COUNT", "Optional",
           "Ends", "Shape", "Training", "to_string"]
