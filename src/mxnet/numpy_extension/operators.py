"""The operators of ``mx.npx``: those registered as ``_npx_*``."""
from typing import Any

from ..ndarray import from_numpy as _from_numpy
from ..ndarray.functions import operator_function
from ..numpy.frontend import arrays
from ..numpy.multiarray import ndarray
from ..ops import numpy as _register  # noqa: F401  (registers them)
from ..ops.registry import OPERATORS


def names() -> list[str]:
    """The public names of the operators."""
    return sorted(n[5:] for n in OPERATORS if n.startswith("_npx_") and not n.startswith("_npx__"))


def lookup(name: str, cls) -> Any:
    """The function ``npx.<name>`` on arrays of the class `cls`; None if there is no such operator."""
    if name.startswith("_") or f"_npx_{name}" not in OPERATORS:
        return None
    return operator_function(f"_npx_{name}", cls)


def from_numpy(ndarray: Any, zero_copy: bool = True) -> Any:
    """An ``mx.np`` array with the values of a NumPy array; with `zero_copy` in its memory.

    Raises
    ------
    ValueError
        If the memory is to be shared, and is not contiguous.

    Example
    -------
    >>> import numpy
    >>> mx.npx.from_numpy(numpy.ones((2,), 'float32'))
    array([1., 1.])
    """
    return _from_numpy(ndarray, zero_copy).as_np_ndarray()


def reshape(a: Any, newshape: Any, reverse: bool = False, order: str = "C") -> ndarray:
    """Another shape for the same elements, with codes that refer to the old one.

    ``-1`` is inferred, ``-2`` keeps a size, ``-3`` drops an axis of size 1, ``-4`` keeps all remaining sizes, ``-5`` joins two axes,
    ``-6`` splits one into the two sizes that follow. With `reverse` sizes are matched from the right.
    """
    return arrays.call("_npx_reshape", a, newshape=newshape, reverse=reverse, order=order)


def nonzero(a: Any) -> ndarray:
    """The indices of the elements other than 0: one row for each, one column for each axis, as int64."""
    return arrays.call("_npx_nonzero", a)


def constraint_check(x: Any, msg: str) -> Any:
    """True if all elements of a boolean array are.

    Raises
    ------
    ValueError
        With the text `msg`, if one is not.
    """
    return arrays.call("_npx_constraint_check", x, msg=msg)

