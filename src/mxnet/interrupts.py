"""Critical sections that Ctrl-C neither interrupts halfway nor is lost in.

Python raises KeyboardInterrupt at any instruction of the main thread. In a ``__del__``, in a weak reference's callback and in the hooks of a
fork it can't be caught: Python prints it and continues, and the function stays half executed.
"""
from __future__ import annotations

import _signal  # importing `signal` creates enumerations, which takes longer than the rest of this module
import _thread
import atexit
import contextlib
import functools
import io
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, ParamSpec, TypeVar

_T = TypeVar("_T")
_P = ParamSpec("_P")

_running = True  # None, hence false, when the interpreter has cleared this module at its exit
_numbers = itertools.count()
_at_exit: dict[int, Iterator[None]] = {}  # functions that must run before the interpreter exits


class deferred:
    """A ``with`` block that Ctrl-C does not interrupt: KeyboardInterrupt is raised at its end. `came` is True if one is pending.

    Blocking the signal does not work: another thread receives it, and Python still raises the exception in the main thread.

    Example
    -------
    >>> import signal
    >>> from mxnet.interrupts import deferred
    >>> try:
    ...     with deferred() as interrupt:
    ...         signal.raise_signal(signal.SIGINT)
    ...         print('whole', interrupt.came)
    ... except KeyboardInterrupt:
    ...     print('and interrupted')
    whole True
    and interrupted
    """

    __slots__ = ("_before", "came", "__weakref__")

    def __enter__(self) -> deferred:
        self.came, self._before = False, None
        if _thread.get_ident() == threading.main_thread().ident:  # only the main thread runs handlers
            handler = _signal.getsignal(_signal.SIGINT)
            if callable(handler):
                self._before = handler
                try:
                    _signal.signal(_signal.SIGINT, functools.partial(_note, weakref.ref(self), handler))
                except BaseException:  # raised by the handler of another signal
                    _signal.signal(_signal.SIGINT, handler)
                    raise
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            _signal.signal(_signal.SIGINT, self._before)
            if self.came:
                self._before(_signal.SIGINT, None)


def _note(block: weakref.ref[deferred], before: Callable[[int, FrameType | None], Any], number: int, frame: FrameType | None) -> None:
    pending = block()
    if pending is not None:
        pending.came = True
    else:  # the handler of another signal has raised an exception at the end of the block
        _signal.signal(_signal.SIGINT, before)
        before(number, frame)


class Ending:
    """An object that calls the function set as its ``__del__`` when it is finalized.

    A function written in C is called there without a Python instruction at which KeyboardInterrupt could be raised.
    """

    __slots__ = ("__del__",)
    __del__: Callable[[], Any]

    def now(self) -> None:
        """Call the function now; with `at_end` it is not called again later."""
        self.__del__()


class Leaving(io.IOBase):
    """A context manager whose `__exit__` calls the function set as `close`.

    The ``__exit__`` of a Python class begins with an instruction at which KeyboardInterrupt can be raised before anything is restored. That of
    files is written in C and looks up `close`, which must be such a function as `Ending` takes.
    """

    closed = True  # otherwise `close` would be called again when it is finalized


class Blocks(threading.local):
    """The stack of a thread's active ``with`` blocks of one kind.

    Attributes
    ----------
    backs : list of functools.partial
        For each block the function that restores the previous state, the innermost last.
    leave : callable
        The ``__exit__`` of the innermost block. It is C code throughout, so that KeyboardInterrupt is raised before or after it.
    """

    def __init__(self) -> None:
        self.backs: list[functools.partial[Any]] = []
        leaving = Leaving()
        leaving.close = functools.partial(next, map(functools.partial.__call__, iter(self.backs.pop, None)))  # type: ignore[method-assign]
        self.leave = leaving.__exit__


class _Exit:
    """The descriptor of a `Scope`'s ``__exit__``: a C function for a ``with`` statement, a Python function for look-ups on the class (ExitStack)."""

    def __get__(self, scope: Scope | None, owner: type[Scope]) -> Callable[..., None]:
        return _leave if scope is None else scope._blocks.leave


def _leave(scope: Scope, *error: object) -> None:
    scope._blocks.leave(*error)


class Scope:
    """The base class of context managers that change state and always restore it: Ctrl-C takes effect before or after, never in between.

    A derived class defines `_blocks` and `_changes`. Its objects may be entered several times.

    Example
    -------
    >>> import functools
    >>> from mxnet import interrupts
    >>> class Spoken(interrupts.Scope):
    ...     language, _blocks = 'English', interrupts.Blocks()
    ...     def _changes(self):
    ...         return [functools.partial(setattr, Spoken, 'language', language) for language in ('French', Spoken.language)]
    >>> with Spoken():
    ...     print(Spoken.language)
    French
    >>> Spoken.language
    'English'
    """

    __slots__ = ()
    _blocks: Blocks
    __exit__ = _Exit()

    def _changes(self) -> Sequence[functools.partial[Any]]:
        """Return the two functions to call at the start and at the end of the block: written in C, returning False or None."""
        raise NotImplementedError(f"{type(self).__name__} must define _changes(self)")

    def __enter__(self) -> Any:
        change, back = self._changes()
        backs = self._blocks.backs
        try:  # Python checks for interrupts after each call
            backs.append(back)
            change()
        except BaseException:
            if backs and backs[-1] is back:
                backs.pop()
            back()
            raise
        return self


def both(first: functools.partial[Any], second: functools.partial[Any]) -> functools.partial[Any]:
    """Combine two functions that return None into one, which can be called once."""
    return functools.partial(next, filter(None, map(functools.partial.__call__, (first, second))), None)


class _Generated(Scope, contextlib.ContextDecorator):
    """The context manager returned by a function decorated with `scope`."""

    def __init__(self, blocks: Blocks, make: Callable[[], Any]) -> None:
        self._blocks, self._make = blocks, make

    def _recreate_cm(self) -> _Generated:
        return _Generated(self._blocks, self._make)

    def __enter__(self) -> Any:
        block = self._make()
        back, backs = functools.partial(next, block, None), self._blocks.backs
        try:
            backs.append(back)
            value = next(block)
        except BaseException:
            if backs and backs[-1] is back:
                backs.pop()
            block.close()
            raise
        return value


def scope(function: Callable[_P, Iterator[_T]]) -> Callable[_P, contextlib.AbstractContextManager[_T]]:
    """Decorate a generator as `contextlib.contextmanager` does; for generators that restore state and ignore errors.

    The ``try`` must enclose the ``yield`` and the changes before it; ``finally`` restores by assignments, and by functions written in C only, since
    Ctrl-C could interrupt others.

    Example
    -------
    >>> import types
    >>> from mxnet.interrupts import scope
    >>> here = types.SimpleNamespace(language='English')
    >>> @scope
    ... def speaking(language):
    ...     before = here.language
    ...     try:
    ...         here.language = language
    ...         yield
    ...     finally:
    ...         here.language = before
    >>> with speaking('French'):
    ...     print(here.language)
    French
    >>> here.language
    'English'
    """
    blocks = Blocks()

    @functools.wraps(function)
    def made(*args: Any, **kwargs: Any) -> Any:
        return _Generated(blocks, functools.partial(function, *args, **kwargs))
    return made


def at_end(function: Callable[..., object], *arguments: object, exits: bool = False) -> Ending:
    """Return an object that calls a function once, when it is finalized or by `now`; Ctrl-C is deferred meanwhile.

    Parameters
    ----------
    function : callable
    *arguments
        The arguments. They must not refer to the owner of the Ending, which would never be finalized.
    exits : bool
        Call the function also when the interpreter exits; otherwise it is not called after that.

    Example
    -------
    >>> from mxnet.interrupts import at_end
    >>> ending = at_end(print, 'closed')
    >>> del ending
    closed
    """
    ending, number = Ending(), next(_numbers)
    waiting = _called_once(function, arguments, number)
    next(waiting)
    if exits:
        _at_exit[number] = waiting
    # A generator resumes inside of its `try`, whereas a function would first run an instruction outside of it.
    ending.__del__ = functools.partial(next, waiting, None)
    return ending


def _called_once(function: Callable[..., object], arguments: tuple[object, ...], number: int) -> Iterator[None]:
    interrupt, begun, done = Ending(), False, False
    interrupt.__del__ = _NOTHING
    while not done:
        try:
            if not begun:
                yield
                begun = True
            if not _running:
                return
            with deferred():
                done = True  # even if it fails
                _at_exit.pop(number, None)
                function(*arguments)
        except KeyboardInterrupt:
            begun = True
            # Python raises it at the next instruction: this function has none left when its variables are finalized.
            interrupt.__del__ = _thread.interrupt_main


_NOTHING = functools.partial(bool)


def _exit() -> None:
    global _running
    for waiting in list(_at_exit.values()):
        next(waiting, None)
    _running = False


atexit.register(_exit)
