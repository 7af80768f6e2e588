"""Work that Ctrl-C neither cuts in half nor gets lost in.

Python raises KeyboardInterrupt wherever the main thread happens to be. In a ``__del__``, in a weak reference's callback and in the hooks of a
fork nobody can catch it: Python prints it and goes on, and the work is left half done.
"""
from __future__ import annotations

import _signal  # `signal` makes enumerations of numbers and handlers, which takes longer than all the rest here
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

_running = True  # None, hence false, when the interpreter has taken this module apart
_numbers = itertools.count()
_at_exit: dict[int, Iterator[None]] = {}  # what must not be left to the end of the interpreter


class deferred:
    """A ``with`` block that Ctrl-C does not interrupt: it comes when the block is left. `came` says whether one waits.

    Blocking the signal would not do: any other thread takes it, and the main thread still learns of it at once.

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
        if _thread.get_ident() == threading.main_thread().ident:  # no other runs handlers
            handler = _signal.getsignal(_signal.SIGINT)
            if callable(handler):
                self._before = handler
                try:
                    _signal.signal(_signal.SIGINT, functools.partial(_note, weakref.ref(self), handler))
                except BaseException:  # that the handler of another signal has raised
                    _signal.signal(_signal.SIGINT, handler)
                    raise
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            _signal.signal(_signal.SIGINT, self._before)
            if self.came:
                self._before(_signal.SIGINT, None)


def _note(block: weakref.ref[deferred], before: Callable[[int, FrameType | None], Any], number: int, frame: FrameType | None) -> None:
    found = block()
    if found is not None:
        found.came = True
    else:  # the handler of another signal has raised something where the block was to be left
        _signal.signal(_signal.SIGINT, before)
        before(number, frame)


class Ending:
    """Calls what its ``__del__`` is set to when it ends.

    Python calls a function written in C there without running any instruction of its own at which an interrupt could be raised.
    """

    __slots__ = ("__del__",)
    __del__: Callable[[], Any]

    def now(self) -> None:
        """Do it at once, and not again if it is done `at_end`."""
        self.__del__()


class Leaving(io.IOBase):
    """Its `__exit__`, for a ``with`` statement, calls what its `close` is set to.

    The ``__exit__`` of a Python class begins with an instruction at which Ctrl-C is raised, before it has put anything back. That of files
    is written in C, which looks up `close`; set that to such a function as `Ending` takes.
    """

    closed = True  # else it would be closed once more at its end


class Blocks(threading.local):
    """The ``with`` blocks of one kind that a thread is in.

    Attributes
    ----------
    backs : list of functools.partial
        For each block what puts back what it has changed, the innermost last.
    leave : callable
        The ``__exit__`` of the innermost. It is C from end to end, so that Ctrl-C is raised before it or after it.
    """

    def __init__(self) -> None:
        self.backs: list[functools.partial[Any]] = []
        leaving = Leaving()
        leaving.close = functools.partial(next, map(functools.partial.__call__, iter(self.backs.pop, None)))  # type: ignore[method-assign]
        self.leave = leaving.__exit__


class _Exit:
    """The ``__exit__`` of a `Scope`: C's where a ``with`` statement looks for it, a function where the class is asked, as ExitStack does."""

    def __get__(self, scope: Scope | None, owner: type[Scope]) -> Callable[..., None]:
        return _leave if scope is None else scope._blocks.leave


def _leave(scope: Scope, *error: object) -> None:
    scope._blocks.leave(*error)


class Scope:
    """What a ``with`` statement enters to change something, which is put back in any case: Ctrl-C comes before or after, never in between.

    A class derived from it has `_blocks`, and `_changes`. It may be entered several times.

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
        """What is called when the block is entered, and what when it is left: functions written in C, which return False or None."""
        raise NotImplementedError(f"{type(self).__name__} must define _changes(self)")

    def __enter__(self) -> Any:
        change, back = self._changes()
        backs = self._blocks.backs
        try:  # Python looks for an interrupt after each call
            backs.append(back)
            change()
        except BaseException:
            if backs and backs[-1] is back:
                backs.pop()
            back()
            raise
        return self


def both(first: functools.partial[Any], second: functools.partial[Any]) -> functools.partial[Any]:
    """Two functions that return None as one, to be called once."""
    return functools.partial(next, filter(None, map(functools.partial.__call__, (first, second))), None)


class _Generated(Scope, contextlib.ContextDecorator):
    """What a function returns that `scope` has decorated."""

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
    """As `contextlib.contextmanager`, for generators that put something back, and do not care for errors.

    The ``yield`` stands in a ``try``, and before what changes something, too; ``finally`` puts back by assignments, and calls what must not be cut
    short by Ctrl-C only if it is written in C.

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
    """An object whose end, or whose `now`, calls a function once; Ctrl-C in the meantime comes afterwards.

    Parameters
    ----------
    function : callable
    *arguments
        Must not lead to who holds the Ending, which would never end.
    exits : bool
        Call the function when the interpreter exits, too; otherwise it is not called from then on.

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
    # A generator goes on inside of its `try`, where a function would first run an instruction outside of any.
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
            # Python sees to it at its next instruction, and this function's last one is over when its variables end.
            interrupt.__del__ = _thread.interrupt_main


_NOTHING = functools.partial(bool)


def _exit() -> None:
    global _running
    for waiting in list(_at_exit.values()):
        next(waiting, None)
    _running = False


atexit.register(_exit)
