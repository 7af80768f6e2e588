"""Shared definitions of all modules: the error types, the type groups clients test against, small helpers."""
from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .suggestions import shortened

__all__ = ["MXNetError"]


class MXNetError(RuntimeError):
    """The base class of all errors that MXNet programs expect to catch.

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
    """Raised when an operation that needs values (``bool(x)``, ``x.asnumpy()``) is called on a Symbol."""

    def __init__(self, function: Callable[..., Any] | str, alias: str | None = None, *args: Any):
        super().__init__()
        self.function = function if isinstance(function, str) else function.__name__
        self.alias = alias
        self.args = tuple(shortened(a) if hasattr(a, "shape") else str(a)[:80] for a in args)

    def __str__(self) -> str:
        hint = f" (or its alias `{self.alias}`)" if self.alias else ""
        given = f" with arguments ({', '.join(self.args)})" if self.args else ""
        return f"`{self.function}`{hint} needs values and a Symbol has none{given}; use an NDArray, or bind the Symbol first."


class NotSupportedForSparseNDArray(MXNetError):
    """Raised when an operation that only dense arrays support is called on a sparse array."""

    def __init__(self, function: Callable[..., Any] | str, alias: str | None = None, *args: Any):
        super().__init__()
        self.function = function if isinstance(function, str) else function.__name__
        self.alias = alias
        self.args = tuple(shortened(a) if hasattr(a, "shape") else str(a)[:80] for a in args)

    def __str__(self) -> str:
        return (f"`{self.function}` is not supported for sparse arrays (arguments: {', '.join(self.args) or 'none'}); "
                "convert with `tostype('default')` first.")


class DelayedError(MXNetError):
    """An error that MXNet raises only while it computes: the call on arrays returns, and waiting for the values raises the error.

    Parameters
    ----------
    message : str
        Begins with the operator's name.
    instead : dict
        Attributes with which the operator would make a result of the same shape and type.
    """

    def __init__(self, message: str, instead: dict[str, Any] | None = None):
        super().__init__(message)
        self.instead: dict[str, Any] = instead or {}


class MXNetNotImplementedError(MXNetError, NotImplementedError):
    """A feature is not available in this build; the message has the reason and the alternative."""


error_types: dict = {}  # the classes of `register_error`: name -> class


def register_error(func_name: Any = None, cls: type[BaseException] | None = None) -> Any:
    """Register a class of errors by name, as a decorator or by ``register_error("Name", cls)``.

    Example
    -------
    >>> import mxnet as mx
    >>> @mx.error.register
    ... class OutOfPaper(mx.MXNetError):
    ...     pass
    >>> mx.base.error_types["OutOfPaper"].__name__
    'OutOfPaper'
    """
    if isinstance(func_name, type):
        return register_error(func_name.__name__, func_name)

    def register(error):
        error_types[func_name or error.__name__] = error
        return error

    return register if cls is None else register(cls)


def check_call(ret: int) -> None:
    """Raise an MXNetError if `ret`, the return value of a C function, is not 0.

    MXNet's own C functions don't exist here; this is for programs that call C functions of their own in the same way.
    """
    if ret != 0:
        raise MXNetError(f"a C function returned the error code {ret}")


class _NullType:
    """The type of the default of generated operator functions: 'not given', as distinct from None."""

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
mx_int, mx_uint, mx_int64, mx_float = ctypes.c_int, ctypes.c_uint, ctypes.c_int64, ctypes.c_float
mx_float_p = ctypes.POINTER(mx_float)
NDArrayHandle = SymbolHandle = ctypes.c_void_p


# Prefixes of names in MXNet's C interface, longer ones first, and their equivalents in Python here.
_PYTHON_NAMES = {
    "MXRecordIO": "mx.recordio.MXRecordIO", "MXQuantizeSymbol": "mx.contrib.quantization.quantize_model",
    "MXSetCalibTableToQuantizedSymbol": "mx.contrib.quantization.quantize_model", "MXReducePrecisionSymbol": "mx.contrib.amp.convert_symbol",
    "MXListAllOpNames": "mx.operator.get_all_registered_operators", "NNListAllOpNames": "mx.operator.get_all_registered_operators",
    "MXGetGPUCount": "mx.context.num_gpus", "MXGetGPUMemoryInformation": "mx.context.gpu_memory_info", "MXRandomSeed": "mx.random.seed",
    "MXGetVersion": "mx.__version__", "MXLibInfo": "mx.runtime.Features", "MXEngineSetBulkSize": "mx.engine.set_bulk_size",
    "MXStorageEmptyCache": "mx.Context.empty_cache", "MXProfile": "mx.profiler", "MXSetProfiler": "mx.profiler", "MXDumpProfile": "mx.profiler.dump",
    "MXAutograd": "mx.autograd", "MXKVStore": "mx.kv.create", "MXInitPSEnv": "mx.kv.create", "MXDataIter": "mx.io", "MXListDataIters": "mx.io",
    "MXExecutor": "mx.executor.Executor", "MXCustom": "mx.operator.register", "MXRtc": "mx.rtc.CudaModule",
    "MXGenBackendSubgraph": "mx.sym.Symbol.optimize_for", "MXOptimizeForBackend": "mx.sym.Symbol.optimize_for", "MXSymbol": "mx.sym.Symbol",
    "NNSymbol": "mx.sym.Symbol", "MXNDArray": "mx.nd.NDArray",
    "MXImperativeInvoke": "mx.nd", "MXCreateCachedOp": "mx.gluon.HybridBlock.hybridize", "MXInvokeCachedOp": "mx.gluon.HybridBlock.hybridize",
    "MXShallowCopy": "mx.nd.NDArray", "MXLoadLib": "mx.library.load",
}


class _NoLibrary:
    """A placeholder for MXNet's C library, which programs import. Its functions raise an error that names their replacement."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        use = next((use for prefix, use in _PYTHON_NAMES.items() if name.startswith(prefix)), None)
        advice = f"use {use}" if use else "Symbols, arrays and executors have methods for what it does"
        if name.startswith("MXRecordIO"):
            advice += " or MXIndexedRecordIO; a subclass that overrides `open` calls `super().open()` there, and has no `handle`"
        raise MXNetError(f"_LIB.{name}: MXNet's C interface is not here, since there is no libmxnet; {advice}")


_LIB = _NoLibrary()


def _as_list(obj):
    """Return a list or tuple unchanged; put anything else into a list."""
    return obj if isinstance(obj, (list, tuple)) else [obj]


class classproperty:
    """A property of a class. A ``setter`` works if `ClassPropertyType` is the class's metaclass.

    Example
    -------
    >>> from mxnet import base
    >>> class Scale(metaclass=base.ClassPropertyType):
    ...     _percent = 100
    ...     @base.classproperty
    ...     def factor(cls):
    ...         return cls._percent / 100
    ...     @factor.setter
    ...     def factor(cls, value):
    ...         cls._percent = 100 * value
    >>> Scale.factor = 1.5
    >>> Scale._percent
    150.0
    """

    def __init__(self, func: Callable[..., Any], fset: Callable[..., Any] | None = None):
        self.fget = func.__func__ if isinstance(func, (classmethod, staticmethod)) else func
        self.fset = fset

    def __get__(self, instance: Any, owner: type) -> Any:
        return self.fget(owner)

    def __set__(self, instance: Any, value: Any) -> None:
        if self.fset is None:
            raise AttributeError("this property of a class has no setter")
        self.fset(instance if isinstance(instance, type) else type(instance), value)

    def setter(self, fset: Callable[..., Any]) -> classproperty:
        """Return the same property with the setter `fset(cls, value)`."""
        return type(self)(self.fget, fset)


class ClassPropertyType(type):
    """The metaclass of classes whose `classproperty` can be set."""

    def __setattr__(cls, name: str, value: Any) -> None:
        descriptor = cls.__dict__.get(name)
        if isinstance(descriptor, classproperty):
            descriptor.__set__(cls, value)
        else:
            super().__setattr__(name, value)


def with_metaclass(meta: type, *bases: type) -> type:
    """Return a base class that has the metaclass `meta` and the given bases."""
    return meta("WithMetaclass", bases, {})


# -- for programs that call C libraries of their own --------------------------------------------------------------------------

def py_str(x: str | bytes) -> str:
    """Decode the bytes of a C string; return text, such as the names that monitors receive here, unchanged."""
    return x if isinstance(x, str) else x.decode("utf-8")


def c_str(string: str) -> ctypes.c_char_p:
    """Return a text as a C string (``char *``)."""
    return ctypes.c_char_p(string.encode())


def c_str_array(strings: Sequence[str]) -> ctypes.Array[Any]:
    """Return a C array of strings (``char **``)."""
    return c_array(ctypes.c_char_p, [s.encode() for s in strings])


def c_array(ctype: type[Any], values: Sequence[Any]) -> ctypes.Array[Any]:
    """Return a C array of the type `ctype` with the given values.

    Example
    -------
    >>> import mxnet as mx
    >>> list(mx.base.c_array(mx.base.mx_float, [1, 2]))
    [1.0, 2.0]
    """
    return (ctype * len(values))(*values)


def c_array_buf(ctype: type[Any], buf: Any) -> ctypes.Array[Any]:
    """Return a C array of the type `ctype` over the memory of a writable buffer such as ``array.array``; memory is shared."""
    return (ctype * len(buf)).from_buffer(buf)


def c_handle_array(objs: Sequence[Any]) -> ctypes.Array[Any]:
    """Return a C array of the pointers in the ``handle`` of each object."""
    return c_array(ctypes.c_void_p, [obj.handle for obj in objs])


def ctypes2buffer(cptr: Any, length: int) -> bytearray:
    """Copy `length` bytes from a ``char *`` into a bytearray.

    Raises
    ------
    TypeError
        If `cptr` is no ``POINTER(c_char)``.
    """
    if not isinstance(cptr, ctypes.POINTER(ctypes.c_char)):
        raise TypeError(f"a char pointer is needed, received {type(cptr).__name__}")
    return bytearray(ctypes.string_at(cptr, length))


def ctypes2numpy_shared(cptr: Any, shape: Sequence[int]) -> np.ndarray:
    """Return a NumPy array of `shape` over the memory that a ``POINTER(mx_float)`` points to; memory is shared.

    Raises
    ------
    RuntimeError
        If `cptr` is no pointer to floats.
    """
    if not isinstance(cptr, mx_float_p):
        raise RuntimeError(f"a float pointer is needed, received {type(cptr).__name__}")
    return np.ctypeslib.as_array(cptr, tuple(shape))


def data_dir_default() -> str:
    """Return the default folder of downloaded data and models: ``~/.mxnet``, or one in the temporary folder for users without a home."""
    home = os.path.expanduser("~")
    return os.path.join(home, ".mxnet") if home != "~" else os.path.join(tempfile.gettempdir(), f"mxnet-{os.getuid()}")


def data_dir() -> str:
    """Return the folder of downloaded data and models: ``$MXNET_HOME``, else the result of `data_dir_default`."""
    return os.environ.get("MXNET_HOME") or data_dir_default()
