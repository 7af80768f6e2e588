"""Sums, products and extrema that NumPy takes of lists of arrays: ``numpy.sum([a, b])`` is an array, as in MXNet.

MXNet's arrays are no arrays to NumPy: it reduces a list of them by adding them up as objects. Here they convert to NumPy's, and the
reduction would give one of its numbers, which has no `asscalar` and sits on no device.
"""
from __future__ import annotations

import sys
from typing import Any

import numpy as np

# The function through which all NumPy versions call ``ufunc.reduce`` for these.
_CALLER, _METHODS = "_wrapreduction", ("sum", "prod", "max", "min")


def element(array: Any, dtype: Any) -> np.ndarray | None:
    """Return an object array that holds the reduced `array`, if NumPy converts it as an element of a list that is reduced; else None."""
    frame = sys._getframe(2)
    if frame.f_code.co_name != _CALLER or dtype is not None:
        return None
    call = frame.f_locals
    if call.get("method") not in _METHODS or call.get("obj") is array or any(call.get(name) is not None for name in ("axis", "dtype", "out")):
        return None
    # Of no axes, NumPy takes the array itself, beside numbers in the list, too.
    reduced = np.empty(1, object)
    reduced[0] = getattr(array, call["method"])()
    return reduced.reshape(()) if array.size == 1 else reduced
