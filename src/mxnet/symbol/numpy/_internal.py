"""The operators of ``mx.np`` under their internal names: ``_internal.boolean_mask`` is the operator ``_npi_boolean_mask``."""
from collections.abc import Callable as _Callable

from ...ops import numpy as _register  # noqa: F401  (registers them)
from ...ops.registry import OPERATORS as _OPERATORS
from ...suggestions import MissingAttributeError as _MissingAttributeError
from ..functions import operator_function as _operator_function


def __getattr__(name: str) -> _Callable:
    if name.startswith("_") or f"_npi_{name}" not in _OPERATORS:
        raise _MissingAttributeError(__name__, name)
    return _operator_function(f"_npi_{name}")
