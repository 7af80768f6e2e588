"""The operators of ``mx.np`` under their internal names: ``_internal.boolean_mask`` is the operator ``_npi_boolean_mask``."""
from ..ndarray.functions import operator_function as _operator_function
from ..ops import numpy as _register  # noqa: F401  (registers them)
from ..ops.registry import OPERATORS as _OPERATORS
from ..suggestions import MissingAttributeError as _MissingAttributeError
from .multiarray import ndarray as _ndarray


def __getattr__(name):
    if name.startswith("_") or f"_npi_{name}" not in _OPERATORS:
        raise _MissingAttributeError(__name__, name)
    return _operator_function(f"_npi_{name}", _ndarray)
