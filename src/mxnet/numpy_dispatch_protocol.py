"""Which functions of the official NumPy run ``mx.np``'s code when they get ``mx.np`` arrays; `mxnet.numpy.protocols` does it."""
import functools

from .numpy.protocols import FUNCTIONS as _NUMPY_ARRAY_FUNCTION_LIST  # noqa: F401
from .numpy.protocols import UFUNCS as _NUMPY_ARRAY_UFUNC_LIST  # noqa: F401

__all__ = ["with_array_function_protocol", "with_array_ufunc_protocol"]


def with_array_function_protocol(func):
    """Mark a function that needs NEP 18; every NumPy that is supported has it."""
    @functools.wraps(func)
    def run(*args, **kwargs):
        return func(*args, **kwargs)
    return run


def with_array_ufunc_protocol(func):
    """Mark a function that needs NEP 13; every NumPy that is supported has it."""
    return with_array_function_protocol(func)
