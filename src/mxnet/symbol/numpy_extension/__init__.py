"""``mx.sym.npx``: the operators of ``mx.npx`` on Symbols."""
import importlib as _importlib
from collections.abc import Sequence as _Sequence
from typing import Any as _Any

from ...ops import numpy as _register  # noqa: F401  (registers them)
from ...ops.registry import OPERATORS as _OPERATORS
from ...suggestions import MissingAttributeError as _MissingAttributeError
from ..numpy.frontend import npx_function as _made
from ..numpy.frontend import symbols as _symbols
from ..numpy.symbol import _Symbol
from . import random


def reshape(a: _Symbol, newshape: int | _Sequence[int], reverse: bool = False, order: str = "C") -> _Symbol:
    """Another shape for the same elements; see ``mx.npx.reshape`` for the codes."""
    return _symbols.call("_npx_reshape", a, newshape=newshape, reverse=reverse, order=order)


def __getattr__(name: str) -> _Any:
    if name == "image":
        return _importlib.import_module(f"{__name__}.image")
    if not name.startswith("_") and f"_npx_{name}" in _OPERATORS:
        globals()[name] = _made(f"_npx_{name}")
        return globals()[name]
    raise _MissingAttributeError(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), "image", *(n[5:] for n in _OPERATORS if n.startswith("_npx_") and not n.startswith("_npx__"))})
