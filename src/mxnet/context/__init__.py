"""Devices: ``mx.cpu(0)``, ``mx.gpu(1)``, and the current one.

This is a package, not a module, because Apache MXNet's ``__init__.py`` imports ``context`` first: where its files were installed over this package's,
Python prefers the folder ``context/`` to Apache's file ``context.py``, so that the check below runs before anything else fails.
"""
from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch

from .. import installation

installation.check()

from .. import interrupts, memory  # noqa: E402
from ..base import ClassPropertyType, MXNetError, classproperty  # noqa: E402
from ..suggestions import did_you_mean, shortened  # noqa: E402

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Current(threading.local):
    value = None  # cpu(0) once it exists: a failed attribute look-up takes ten times as long


class Context(interrupts.Scope, metaclass=ClassPropertyType):
    """A device, by type and number.

    Parameters
    ----------
    device_type : str or Context
        ``'cpu'``, ``'gpu'``, ``'cpu_pinned'`` or ``'cpu_shared'``.
    device_id : int
        The number of the device. Every ``cpu(i)`` computes on the same processor but counts as a device of its own,
        so that programs for several devices run on a machine without any.

    Example
    -------
    >>> import mxnet as mx
    >>> with mx.Context('cpu', 1):
    ...     print(mx.nd.ones((2,)).context)
    cpu(1)
    """

    devtype2str = {1: "cpu", 2: "gpu", 3: "cpu_pinned", 5: "cpu_shared"}
    devstr2type = {name: number for number, name in devtype2str.items()}
    _blocks = interrupts.Blocks()
    _default_ctx = _Current()  # its `value` is the current context of a thread; programs read and set it

    def __init__(self, device_type: str | Context, device_id: int = 0):
        if isinstance(device_type, Context):
            self.device_typeid, self.device_id = device_type.device_typeid, device_type.device_id
        else:
            if device_type not in self.devstr2type:
                raise MXNetError(f"Context: unknown device type {device_type!r}; expected one of {sorted(self.devstr2type)}"
                                 f"{did_you_mean(device_type, self.devstr2type)}")
            self.device_typeid, self.device_id = self.devstr2type[device_type], device_id

    @classproperty
    def default_ctx(cls) -> Context:
        """The current context of this thread; it can be set."""
        return current_context()

    @default_ctx.setter
    def default_ctx(cls, ctx: Context) -> None:
        cls._default_ctx.value = intern_context(ctx)

    @property
    def _old_ctx(self):
        """The context that was current before this context's innermost ``with`` block; None outside of any."""
        return next((back.args[2] for back in reversed(self._blocks.backs) if back.entered is self), None)

    @property
    def device_type(self) -> str:
        """``'cpu'``, ``'gpu'``, ``'cpu_pinned'`` or ``'cpu_shared'``."""
        return self.devtype2str[self.device_typeid]

    @property
    def torch_device(self) -> torch.device:
        """The torch device that holds this context's arrays."""
        return _torch_device(self.device_typeid, self.device_id)

    def __hash__(self) -> int:
        return hash((self.device_typeid, self.device_id))

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Context) and self.device_typeid == other.device_typeid
                and self.device_id == other.device_id)

    def __str__(self) -> str:
        return f"{self.device_type}({self.device_id})"

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return Context, (self.device_type, self.device_id)

    def _changes(self):
        back = functools.partial(setattr, current, "value", current_context())
        back.entered = self
        return functools.partial(setattr, current, "value", intern_context(self)), back

    def empty_cache(self) -> None:
        """Return memory that the device's allocator caches and no array uses to the device."""
        if self.device_type == "gpu":
            torch.cuda.empty_cache()
        else:
            memory.trim()


@functools.cache
def _torch_device(typeid, device_id):
    if typeid != 2:
        return torch.device("cpu")
    if not torch.cuda.is_available() or device_id >= torch.cuda.device_count():
        raise MXNetError(f"gpu({device_id}) is not available: torch sees {torch.cuda.device_count()} GPU(s); "
                         "use mx.cpu(), or install a torch build for your GPU")
    return torch.device("cuda", device_id)


@functools.cache
def _interned(typeid, device_id):
    return Context(Context.devtype2str[typeid], device_id)


def intern_context(ctx: Context | str) -> Context:
    """Return the canonical Context object equal to `ctx`, so that arrays can compare contexts by identity."""
    if not isinstance(ctx, Context):
        if isinstance(ctx, str):
            return parse_context(ctx)
        raise TypeError(f"expected a Context such as mx.cpu() or mx.gpu(0), received {shortened(ctx)}")
    return _interned(ctx.device_typeid, ctx.device_id)


def parse_context(text: str) -> Context:
    """Return the Context for a text such as ``'gpu(1)'`` or ``'cpu'``."""
    name, _, rest = text.partition("(")
    try:
        return _interned(Context.devstr2type[name.strip()], int(rest.rstrip(") ") or 0))
    except (KeyError, ValueError):
        raise MXNetError(f"unknown context {text!r}; expected a form such as 'cpu(0)' or 'gpu(1)'"
                         f"{did_you_mean(name.strip(), Context.devstr2type)}") from None


def cpu(device_id: int = 0) -> Context:
    """Return the Context of the processor. ``cpu(1)``, ``cpu(2)``, ... are further devices on the same processor.

    Example
    -------
    >>> mx.nd.ones(2, ctx=mx.cpu()).context
    cpu(0)
    """
    return _interned(1, device_id)


def cpu_pinned(device_id: int = 0) -> Context:
    """Return the Context of page-locked host memory, which a GPU can access directly.

    Example
    -------
    >>> mx.cpu_pinned()
    cpu_pinned(0)
    """
    return _interned(3, device_id)


def gpu(device_id: int = 0) -> Context:
    """Return the Context of the GPU with torch's number `device_id`.

    Example
    -------
    >>> mx.gpu(1)
    gpu(1)
    """
    return _interned(2, device_id)


def num_gpus() -> int:
    """Return the number of GPUs that torch can use.

    Example
    -------
    >>> ctx = mx.gpu(0) if mx.context.num_gpus() > 0 else mx.cpu()
    """
    return torch.cuda.device_count()


def gpu_memory_info(device_id: int = 0) -> tuple[int, int]:
    """Return the free and the total memory of a GPU, in bytes.

    Raises
    ------
    MXNetError
        If there is no such GPU.

    Example
    -------
    >>> if mx.context.num_gpus():
    ...     free, total = mx.context.gpu_memory_info(0)
    """
    return torch.cuda.mem_get_info(gpu(device_id).torch_device)


def ctx_or_device(ctx: Any, device: Any) -> Any:
    """Return the one of two arguments that was given: `ctx` is MXNet 1's name of what MXNet 2 calls `device`.

    Raises
    ------
    TypeError
        If both are given.
    """
    if device is None:
        return ctx
    if ctx is not None:
        raise TypeError(f"ctx and device are two names of one argument, received both: {shortened(ctx)} and {shortened(device)}")
    return device


def takes_device(fn: _Function) -> _Function:
    """Decorate a function with the argument `ctx` so that it also accepts it as `device`, MXNet 2's name."""
    @functools.wraps(fn)
    def call(*args, **kwargs):
        if "device" in kwargs:
            kwargs["ctx"] = ctx_or_device(kwargs.get("ctx"), kwargs.pop("device"))
        return fn(*args, **kwargs)
    return cast("_Function", call)


def current_context() -> Context:
    """Return the default context of new arrays: that of the innermost ``with ctx:``, else ``cpu(0)``.

    Example
    -------
    >>> with mx.cpu(1):
    ...     print(mx.context.current_context())
    cpu(1)
    """
    return current.value or _default


_default, current = _interned(1, 0), Context._default_ctx
_Current.value = _default
