"""``mx.sym``: computations that are described first and run later."""
import sys as _sys
import types as _types
from typing import Any as _Any

from ..base import MXNetError
from .symbol import Symbol
from . import functions as _functions
from .compose import Variable, var
from .compose import group as Group  # noqa: N812
from . import arithmetic as _arithmetic
from ..ndarray import methods as _methods
from .creation import arange, eye, full, histogram, linspace, load, load_json, ones, split_v2, zeros

globals().update(_arithmetic.FUNCTIONS)
_methods.attach(Symbol, _functions.operator_function)

_find_operator, __dir__ = _functions.namespace_lookup(__name__, "", _functions.operator_function, may_hide_builtins=True)
_NUMPY = {"np": "numpy", "numpy": "numpy", "npx": "numpy_extension", "numpy_extension": "numpy_extension"}


def __getattr__(name: str) -> _Any:
    if name in _NUMPY:
        import importlib
        globals()[name] = importlib.import_module(f"{__name__}.{_NUMPY[name]}")
        return globals()[name]
    return _find_operator(name)


def _namespace(name: str, prefix: str, doc: str, underscored: bool = False) -> _Any:
    module = _types.ModuleType(f"{__name__}.{name}", doc)
    _sys.modules[module.__name__] = module
    module.__getattr__, module.__dir__ = _functions.namespace_lookup(module.__name__, prefix, _functions.operator_function, underscored)
    return module


_internal = _namespace("_internal", "", "Operators under their internal names.", underscored=True)
op = _namespace("op", "", "All public operators.")
linalg = _namespace("linalg", "_linalg_", "Linear algebra.")
image = _namespace("image", "_image_", "Operators on images.")
sparse = _namespace("sparse", "_sparse_", "Operators on sparse arrays.")
from . import contrib, fused, random
