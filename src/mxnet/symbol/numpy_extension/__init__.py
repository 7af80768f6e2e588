"""``mx.sym.npx``: the operators of ``mx.npx`` on Symbols."""
import importlib as _importlib

from ...ops import numpy as _register  # noqa: F401  (registers them)
from ...ops.registry import OPERATORS as _OPERATORS
from ..numpy.frontend import npx_function as _made
from ..numpy.frontend import symbols as _symbols
from . import random


def reshape(a, newshape, reverse=False, order="C"):
    """Another shape for the same elements; see ``mx.npx.reshape`` for the codes."""
    return _symbols.call("_npx_reshape", a, newshape=newshape, reverse=reverse, order=order)


def __getattr__(name):
    if name == "image":
        return _importlib.import_module(f"{__name__}.image")
    if not name.startswith("_") and f"_npx_{name}" in _OPERATORS:
        globals()[name] = _made(f"_npx_{name}")
        return globals()[name]
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__():
    return sorted({*globals(), "image", *(n[5:] for n in _OPERATORS if n.startswith("_npx_") and not n.startswith("_npx__"))})
