"""The official NumPy's functions and types by name."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

TYPES = {"float16": np.float16, "float32": np.float32, "float64": np.float64, "float": np.float64, "uint8": np.uint8, "int8": np.int8,
         "int16": np.int16, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64, "int32": np.int32, "int64": np.int64, "int": np.int64,
         "bool": bool, "bool_": np.bool_, "None": None}
MODULES = [np, np.linalg, np.random, np.fft]


def function(name: str) -> Callable[..., Any]:
    """Return a function of NumPy by name, also of ``linalg``, ``random`` and ``fft``.

    Raises
    ------
    ValueError
        If there is none.
    """
    for module in MODULES:
        if hasattr(module, name):
            return getattr(module, name)
    raise ValueError(f"NumPy has no function {name!r}, nor have its linalg, random and fft")
