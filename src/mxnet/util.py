"""Switches of NumPy semantics, environment variables, properties of GPUs, and helpers for API functions."""
from __future__ import annotations

import functools
import inspect
import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from . import interrupts
from .suggestions import shortened

if TYPE_CHECKING:
    from .context import Context

__all__ = ["get_cuda_compute_capability", "get_gpu_count", "get_gpu_memory", "getenv", "is_np_array", "is_np_shape", "makedirs", "np_array",
           "np_shape", "np_ufunc_legal_option", "reset_np", "set_module", "set_np", "set_np_shape", "set_version", "setenv", "use_np",
           "use_np_array", "use_np_shape", "version", "wrap_np_binary_func", "wrap_np_unary_func"]

_OFF, _THREAD, _GLOBAL = 0, 1, 2  # the levels of NumPy shape semantics, as symbol JSON stores them
_announced: set[str] = set()
_NOT_WITH_ARRAYS = "NumPy shape semantics can't be deactivated while NumPy array semantics is active; call npx.reset_np() to deactivate both"


class _ThreadFlags(threading.local):
    np_shape = False


_flags = _ThreadFlags()
_np_shape_everywhere = False


def level_of_program() -> int:
    """Return the `stacklevel` with which a warning of the calling function points to the program's line, however deep in the library it is."""
    frame, level = sys._getframe(1), 1
    library = __name__.partition(".")[0]
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == library:
        frame, level = frame.f_back, level + 1
    return level


def _announce(topic, text):
    if topic not in _announced:
        _announced.add(topic)
        logging.info(text)


# -- NumPy shapes --------------------------------------------------------------------------------------------------------

def is_np_shape() -> bool:
    """Return True if NumPy shape semantics is on: ``()`` is a scalar's shape and 0 a size; otherwise both mean 'unknown'.

    Example
    -------
    >>> with mx.util.np_shape():
    ...     print(mx.util.is_np_shape())
    True
    """
    return _np_shape_everywhere or _flags.np_shape


def np_shape_level() -> int:
    """Return 0 if NumPy shape semantics is off, 1 if it is on in this thread, 2 if it is on in all threads."""
    return _GLOBAL if _np_shape_everywhere else int(_flags.np_shape)


def set_np_shape(active: bool | int) -> bool:
    """Switch NumPy shape semantics.

    Parameters
    ----------
    active : bool or int
        False (0): off; True (1): on in this thread; 2: on in all threads.

    Returns
    -------
    bool
        True if it was on before.

    Raises
    ------
    ValueError
        If it would be switched off while NumPy array semantics is on.

    Example
    -------
    >>> before = mx.util.set_np_shape(True)
    >>> mx.util.is_np_shape()
    True
    >>> _ = mx.util.set_np_shape(before)
    """
    before = is_np_shape()
    _shape_level(active)()
    return before


def _shape_level(active):
    """Return a function, written in C, that sets a level."""
    if not active and is_np_array():
        raise ValueError(_NOT_WITH_ARRAYS)
    level = int(active)
    if level not in (_OFF, _THREAD, _GLOBAL):
        raise ValueError(f"set_np_shape: expected False, True or 2 (all threads), received {shortened(active)}")
    if active:
        _announce("shape", "NumPy shape semantics is active: shapes () and sizes of 0 are what they are in NumPy.")
    here = functools.partial(setattr, _flags, "np_shape", level != _OFF)
    return here if level == _THREAD else interrupts.both(here, functools.partial(globals().__setitem__, "_np_shape_everywhere", level == _GLOBAL))


def _shape_back(before):
    """Return a generator that restores NumPy shape semantics when it resumes, inside of its ``try`` and before any call."""
    global _np_shape_everywhere
    try:
        yield
    except GeneratorExit:  # the block was entered and never exited
        before = None
    finally:
        if before is not None:
            everywhere, here, _flags.np_shape = _np_shape_everywhere, _flags.np_shape, before
            if not before:
                _np_shape_everywhere = False
                if is_np_array():
                    _np_shape_everywhere, _flags.np_shape = everywhere, here
                    raise ValueError(_NOT_WITH_ARRAYS)


class _NumpyShapeScope(interrupts.Scope):
    """The context manager of `np_shape`; None changes nothing."""

    _blocks = interrupts.Blocks()

    def __init__(self, is_np_shape):
        self._active = is_np_shape

    def _changes(self):
        if self._active is None:
            return (functools.partial(bool),) * 2
        before = is_np_shape()
        back = _shape_back(before if before != self._active else None)
        next(back)
        return _shape_level(self._active), functools.partial(next, back, None)


def np_shape(active: bool | int = True) -> Any:
    """Return a scope with NumPy shape semantics switched on (or off).

    Example
    -------
    >>> import mxnet as mx
    >>> with mx.np_shape():
    ...     print(mx.nd.ones(()).shape)
    ()
    """
    return _NumpyShapeScope(active)


# -- NumPy arrays --------------------------------------------------------------------------------------------------------

class _Current(threading.local):
    value = None  # `_LEGACY` once it exists: a failed attribute look-up takes ten times as long


class _NumpyArrayScope(interrupts.Scope):
    """The context manager of `np_array`. ``_current.value`` is the scope in force in this thread."""

    _current, _blocks = _Current(), interrupts.Blocks()

    def __init__(self, is_np_array):
        self._is_np_array = is_np_array

    def _changes(self):
        scopes = _NumpyArrayScope._current
        return [functools.partial(setattr, scopes, "value", scope) for scope in (self, getattr(scopes, "value", _LEGACY))]


class ByArgument(_NumpyArrayScope):
    """The scope of a block that receives an ``mx.np`` array while the program is in no scope."""

    def __init__(self) -> None:
        super().__init__(True)

    @staticmethod
    def in_force() -> bool:
        """Return True if this thread's scope is of this class."""
        return type(_NumpyArrayScope._current.value) is ByArgument


_LEGACY = _Current.value = _NumpyArrayScope(False)


def is_np_array() -> bool:
    """Return True if NumPy array semantics is on: Gluon makes and returns ``mx.np.ndarray`` instead of ``mx.nd.NDArray``.

    Example
    -------
    >>> with mx.util.np_array():
    ...     print(mx.util.is_np_array())
    True
    """
    try:
        return _NumpyArrayScope._current.value._is_np_array
    except AttributeError:  # programs may replace `_current` by a scope of their own
        return False


def np_array(active: bool = True) -> Any:
    """Return a scope with NumPy array semantics switched on (or off).

    Example
    -------
    >>> with mx.util.np_array():
    ...     x = mx.gluon.nn.Activation('relu')(mx.np.array([-1, 2]))
    >>> type(x).__name__
    'ndarray'
    """
    return _NumpyArrayScope(active)


def _set_np_array(active):
    if active:
        _announce("array", "NumPy array semantics is active: Gluon makes and returns mx.np.ndarray.")
    before = is_np_array()
    _NumpyArrayScope._current.value = _NumpyArrayScope(active)
    return before


def set_np(shape: bool = True, array: bool = True) -> None:
    """Switch NumPy shape and array semantics in this thread.

    Raises
    ------
    ValueError
        If array semantics is requested without shape semantics.

    Example
    -------
    >>> mx.util.set_np()
    >>> mx.util.is_np_array(), mx.util.is_np_shape()
    (True, True)
    >>> mx.util.reset_np()
    """
    if array and not shape:
        raise ValueError("set_np: NumPy array semantics needs NumPy shape semantics; use set_np(shape=True, array=True)")
    _set_np_array(array)
    set_np_shape(shape)


def reset_np() -> None:
    """Switch NumPy shape and array semantics off.

    Example
    -------
    >>> mx.util.set_np()
    >>> mx.util.reset_np()
    >>> mx.util.is_np_array()
    False
    """
    set_np(shape=False, array=False)


# -- MXNet 1 or 2 --------------------------------------------------------------------------------------------------------

_VERSIONS = ("1.9", "2.0")
_version = _VERSIONS[0]


def version() -> str:
    """Return ``'1.9'`` or ``'2.0'``, the version whose behaviour applies where the two differ and a call is ambiguous.

    Example
    -------
    >>> mx.util.version()
    '1.9'
    """
    return _version


# Not empty after `set_version('2.0')`: fractions beside integer arrays then promote to float64. Hot paths read this list, not `version`.
fractions_widen: list[bool] = []


def set_version(version: str) -> str:
    """Select the behaviour of MXNet 1.9 or 2.0 where they differ and a call is ambiguous; for all threads.

    With ``'2.0'`` NumPy semantics is active in all threads that have not switched it themselves, `Block.collect_params` returns a dict with
    structural names of parameters (``'0.weight'``), and `HybridBlock.export` writes these names.

    Parameters
    ----------
    version : {'1.9', '2.0'}

    Returns
    -------
    str
        The previous version.

    Raises
    ------
    ValueError
        If it is neither of the two.

    Example
    -------
    >>> import mxnet as mx
    >>> before = mx.util.set_version('2.0')
    >>> list(mx.gluon.nn.Dense(2).collect_params())
    ['weight', 'bias']
    >>> mx.util.set_version(before)
    '2.0'
    """
    global _version
    if version not in _VERSIONS:
        raise ValueError(f"set_version: one of {', '.join(_VERSIONS)} expected, received {shortened(version)}")
    before, new = _version, version == _VERSIONS[1]
    if not new:
        _set_np_array(False)
    set_np_shape(_GLOBAL if new else _OFF)
    _Current.value = _NumpyArrayScope(new)
    _set_np_array(new)
    fractions_widen[:] = [True] * new
    _version = version
    return before


# -- decorators ----------------------------------------------------------------------------------------------------------

def _decorate(func, decorator, scope):
    if inspect.isclass(func):
        for name, member in inspect.getmembers(func, lambda m: inspect.isfunction(m) or inspect.ismethod(m) or isinstance(m, property)):
            if name[0] == "_" != name[1] and getattr(member, "__module__", "").partition(".")[0] == __package__:
                continue  # private methods of this package are called by public ones
            defined = inspect.getattr_static(func, name)
            if isinstance(member, property):
                setattr(func, name, property(decorator(member.__get__), member.__set__, member.__delattr__, member.__doc__))
            elif isinstance(defined, (staticmethod, classmethod)):
                setattr(func, name, type(defined)(decorator(defined.__func__)))
            else:
                setattr(func, name, decorator(member))
        return func
    if not callable(func):
        raise TypeError(f"{decorator.__name__} decorates classes and callables, received {type(func)}")

    @functools.wraps(func)
    def scoped(*args, **kwargs):
        with scope():
            return func(*args, **kwargs)
    return scoped


def use_np_shape(func: Callable[..., Any]) -> Callable[..., Any]:
    """Run a function, or all methods of a class, with NumPy shape semantics.

    Example
    -------
    >>> from mxnet import nd, use_np_shape
    >>> @use_np_shape
    ... def scalar():
    ...     return nd.ones(())
    >>> scalar().shape
    ()
    """
    return _decorate(func, use_np_shape, np_shape)


def use_np_array(func: Callable[..., Any]) -> Callable[..., Any]:
    """Run a function, or all methods of a class, with NumPy array semantics.

    Example
    -------
    >>> @mx.util.use_np_array
    ... def semantics():
    ...     return mx.util.is_np_array(), mx.util.is_np_shape()
    >>> semantics()
    (True, False)
    """
    return _decorate(func, use_np_array, np_array)


def use_np(func: Callable[..., Any]) -> Callable[..., Any]:
    """Run a function, or all methods of a class, with NumPy shape and array semantics.

    Example
    -------
    >>> @mx.util.use_np
    ... def semantics():
    ...     return mx.util.is_np_array(), mx.util.is_np_shape()
    >>> semantics()
    (True, True)
    """
    return use_np_shape(use_np_array(func))


def set_module(module: str | None) -> Callable[[Any], Any]:
    """Return a decorator that sets ``__module__`` to the module from which users import a function; None leaves it unchanged.

    Example
    -------
    >>> @mx.util.set_module('mxnet.numpy')
    ... def twice(x):
    ...     return 2 * x
    >>> twice.__module__
    'mxnet.numpy'
    """
    def decorate(func):
        if module is not None:
            func.__module__ = module
        return func
    return decorate


# -- NumPy ufunc arguments -----------------------------------------------------------------------------------------------

_UFUNC_DEFAULTS = {"where": True, "casting": "same_kind", "order": "K", "dtype": None, "subok": True}
_CASTINGS = frozenset(("no", "equiv", "safe", "same_kind", "unsafe"))
_UFUNC_TYPES = frozenset(("int8", "uint8", "int32", "int64", "float16", "float32", "float64"))


def np_ufunc_legal_option(key: str, value: Any) -> bool:
    """Return True if NumPy accepts `value` for the ufunc argument `key`.

    Example
    -------
    >>> mx.util.np_ufunc_legal_option('casting', 'safe'), mx.util.np_ufunc_legal_option('casting', 'any')
    (True, False)
    """
    if key == "casting":
        return value in _CASTINGS
    if key == "dtype":
        return (value if isinstance(value, str) else getattr(value, "__name__", None)) in _UFUNC_TYPES
    if key == "order":
        return isinstance(value, str)
    if key == "subok":
        return isinstance(value, bool)
    return key == "where"


def check_ufunc_arguments(name: str, kwargs: Mapping[str, Any]) -> None:
    for key, value in kwargs.items():
        if key not in _UFUNC_DEFAULTS:
            raise TypeError(f"{key} is an invalid keyword to function '{name}'")
        if value != _UFUNC_DEFAULTS[key]:
            if np_ufunc_legal_option(key, value):
                raise NotImplementedError(f"{name}: {key} must be left at its default, received {value}")
            raise TypeError(f"{key}={value} not understood for operator {name}")


def wrap_np_unary_func(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate ``func(x, out)`` to accept NumPy's ufunc arguments with their default values.

    Example
    -------
    >>> @mx.util.wrap_np_unary_func
    ... def twice(x, out=None):
    ...     return 2 * x
    >>> twice(3, casting='same_kind')
    6
    """
    @functools.wraps(func)
    def unary(x, out=None, **kwargs):
        if kwargs:
            check_ufunc_arguments(func.__name__, kwargs)
        return func(x, out=out)
    return unary


def wrap_np_binary_func(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate ``func(x1, x2, out)`` to accept NumPy's ufunc arguments with their default values.

    Example
    -------
    >>> @mx.util.wrap_np_binary_func
    ... def total(x1, x2, out=None):
    ...     return x1 + x2
    >>> total(1, 2, where=True)
    3
    """
    @functools.wraps(func)
    def binary(x1, x2, out=None, **kwargs):
        if kwargs:
            check_ufunc_arguments(func.__name__, kwargs)
        return func(x1, x2, out=out)
    return binary


def _sanity_check_params(func_name, unsupported_params, param_dict):
    for name in unsupported_params:
        if name in param_dict:
            raise NotImplementedError(f"function {func_name} does not support parameter {name}")


# -- the machine ---------------------------------------------------------------------------------------------------------

def makedirs(d: str) -> None:
    """Create a folder and its parents unless it exists.

    Example
    -------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), 'a', 'b')
    >>> mx.util.makedirs(path)
    >>> os.path.isdir(path)
    True
    """
    os.makedirs(os.path.expanduser(d), exist_ok=True)


def getenv(name: str) -> str | None:
    """Return the value of an environment variable, or None.

    Example
    -------
    >>> mx.util.setenv('MY_SETTING', '1')
    >>> mx.util.getenv('MY_SETTING')
    '1'
    >>> mx.util.setenv('MY_SETTING', None)
    """
    return os.environ.get(name)


def setenv(name: str, value: str | None) -> None:
    """Set an environment variable of this process; None removes it.

    Example
    -------
    >>> mx.util.setenv('MY_SETTING', '1')
    >>> mx.util.setenv('MY_SETTING', None)
    >>> mx.util.getenv('MY_SETTING') is None
    True
    """
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = str(value)


def get_gpu_count() -> int:
    """Return the number of GPUs that torch can use.

    Example
    -------
    >>> mx.util.get_gpu_count() == mx.context.num_gpus()
    True
    """
    import torch
    return torch.cuda.device_count()


def get_gpu_memory(gpu_dev_id: int) -> tuple[int, int]:
    """Return the free and the total memory of a GPU, in bytes.

    Raises
    ------
    MXNetError
        If there is no such GPU.

    Example
    -------
    >>> if mx.util.get_gpu_count():
    ...     free, total = mx.util.get_gpu_memory(0)
    """
    from .context import gpu_memory_info
    return gpu_memory_info(gpu_dev_id)


def get_cuda_compute_capability(ctx: Context) -> int:
    """Return the compute capability of a GPU as one number: 90 for ``sm_90``.

    Raises
    ------
    ValueError
        If `ctx` is not a GPU.
    MXNetError
        If there is no such GPU.

    Example
    -------
    >>> if mx.context.num_gpus():
    ...     capability = mx.util.get_cuda_compute_capability(mx.gpu())
    """
    if ctx.device_type != "gpu":
        raise ValueError(f"expected a gpu context to get the CUDA compute capability of, received {ctx}")
    import torch
    major, minor = torch.cuda.get_device_capability(ctx.torch_device)
    return 10 * major + minor
