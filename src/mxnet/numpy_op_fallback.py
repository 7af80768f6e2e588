"""Operators of ``mx.np`` that are written over NumPy, as `mx.operator.CustomOp`."""
import functools

from . import operator
from .util import np_array


def register(op_name, imperative=True, symbolic=True):
    """A decorator for a `CustomOpProp`: offer it as ``mx.nd.np._internal.<op_name>`` and ``mx.sym.np._internal.<op_name>``.

    Parameters
    ----------
    op_name : str
    imperative, symbolic : bool
        Whether to offer it for arrays, and for Symbols.

    Raises
    ------
    ValueError
        If the name is taken there.
    """
    def offer(prop):
        from .numpy import _internal as arrays
        from .symbol.numpy import _internal as symbols
        places = [m for m, wanted in ((arrays, imperative), (symbols, symbolic)) if wanted]
        for module in places:
            if hasattr(module, op_name):
                raise ValueError(f"numpy_op_fallback: {module.__name__} has an operator {op_name} already")
        with np_array():
            prop = operator.register(op_name)(prop)
        for module in places:
            setattr(module, op_name, functools.partial(module.Custom, op_type=op_name))
        return prop

    return offer
