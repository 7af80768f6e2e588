"""What every other module needs: the error types, the type groups clients test against, small helpers."""
import sys

import numpy as np

__all__ = ["MXNetError"]


class MXNetError(RuntimeError):
    """The base of all errors that MXNet programs expect to catch.

    Example
    -------
    >>> import mxnet as mx
    >>> try:
    ...     mx.nd.ones((2, 3)).reshape((7,))
    ... except mx.MXNetError as error:
    ...     print(type(error).__name__)
    MXNetError
    """


class NotImplementedForSymbol(MXNetError):
    """Raised when something that needs values (``bool(x)``, ``x.asnumpy()``) is asked of a Symbol."""

    def __init__(self, function, alias=None, *args):
        super().__init__()
        self.function = function if isinstance(function, str) else function.__name__
        self.alias = alias
        self.args = tuple(str(a) for a in args)

    def __str__(self):
        hint = f" (or its alias `{self.alias}`)" if self.alias else ""
        given = f" with arguments ({', '.join(self.args)})" if self.args else ""
        return f"`{self.function}`{hint} needs values and a Symbol has none{given}; use an NDArray, or bind the Symbol first."


class NotSupportedForSparseNDArray(MXNetError):
    """Raised when a sparse array is asked for something only dense arrays can do."""

    def __init__(self, function, alias=None, *args):
        super().__init__()
        self.function = function if isinstance(function, str) else function.__name__
        self.alias = alias
        self.args = tuple(str(a) for a in args)

    def __str__(self):
        return (f"`{self.function}` is not supported for sparse arrays (arguments: {', '.join(self.args) or 'none'}); "
                "convert with `tostype('default')` first.")


class MXNetNotImplementedError(MXNetError, NotImplementedError):
    """A feature that this build can't offer; the message says why and what to use instead."""


class _NullType:
    """The default of generated operator functions: 'not given', where None is a value of its own."""

    _instance = None

    def __new__(cls):
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __repr__(self):
        return "_Null"

    def __bool__(self):
        return False


_Null = _NullType()

string_types = (str,)
numeric_types = (float, int, np.generic)
integer_types = (int, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
mx_real_t = np.float32
mx_uint = int
mx_float = float
py_str = str if sys.version_info >= (3,) else bytes


def _as_list(obj):
    """A list or tuple as it is; anything else in a list of its own."""
    return obj if isinstance(obj, (list, tuple)) else [obj]


class classproperty:
    """A read-only property of a class."""

    def __init__(self, getter):
        self.getter = getter

    def __get__(self, instance, owner):
        return self.getter(owner)


def data_dir():
    """Where downloaded data and models are kept: ``$MXNET_HOME``, else ``~/.mxnet``."""
    import os
    return os.environ.get("MXNET_HOME") or os.path.join(os.path.expanduser("~"), ".mxnet")
