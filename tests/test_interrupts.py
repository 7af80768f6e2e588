import _thread
import gc
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from interrupt_checks import interrupt, interrupted, settle
from mxnet import interrupts
from mxnet.interrupts import at_end, deferred


@pytest.fixture(autouse=True)
def python_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with the signal ignored
    yield
    signal.signal(signal.SIGINT, before)


class Owner:
    def __init__(self, function, *arguments):
        self.ending = at_end(function, *arguments)


def test_an_interrupt_waits_for_the_end_of_the_block():
    seen = []
    with pytest.raises(KeyboardInterrupt):
        with deferred() as state:
            seen.append(state.came)
            interrupt()
            seen.append(state.came)
        seen.append("not reached")
    assert seen == [False, True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_blocks_inside_of_blocks():
    seen = []
    with pytest.raises(KeyboardInterrupt):
        with deferred():
            with deferred() as inner:
                interrupt()
            seen.append(inner.came)
    assert seen == [True]


def test_errors_of_a_block_are_raised():
    with pytest.raises(ValueError, match="wrong"), deferred():
        raise ValueError("wrong")
    with pytest.raises(KeyboardInterrupt) as caught:
        with deferred():
            interrupt()
            raise ValueError("wrong")
    assert isinstance(caught.value.__context__, ValueError)


def test_a_handler_of_ones_own_is_called_afterwards():
    seen = []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    with deferred():
        interrupt()
        assert seen == []
    assert seen == [signal.SIGINT]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with deferred() as state:
        interrupt()
    assert not state.came


def test_other_threads_leave_the_handler_alone():
    seen = []

    def work():
        with deferred():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_the_function_is_called_once_when_the_object_ends():
    calls = []
    owner = Owner(calls.append, 1)
    assert calls == []
    owner.ending.now()
    assert calls == [1]
    del owner
    assert calls == [1]
    owner = Owner(calls.append, 2)
    owner.itself = owner
    del owner
    gc.collect()
    assert calls == [1, 2]


def test_an_interrupt_while_an_object_ends_comes_afterwards():
    def close():
        interrupt()
        seen.append("closed")

    seen = []
    owner = Owner(close)
    with interrupted():
        del owner
        settle()
    assert seen == ["closed"]


def test_an_interrupt_just_before_an_object_ends_comes_afterwards():
    # C code that ends an object after the signal came, and before any instruction of Python's: what `del` in a collection, or of many
    # objects at once, is.
    class First:
        __slots__ = ("__del__",)

    seen = []
    first = First()
    first.__del__ = _thread.interrupt_main
    both = [first, Owner(seen.append, "closed")]
    with interrupted():
        del first
        del both
        settle()
    assert seen == ["closed"]


def test_errors_do_not_make_it_call_again(monkeypatch):
    def close():
        calls.append(1)
        raise OSError("full")

    calls, told = [], []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: told.append(str(args.exc_value)))
    owner = Owner(close)
    del owner
    assert (calls, told) == ([1], ["full"])


def test_nothing_of_it_is_left():
    before = len(interrupts._at_exit)
    endings = [at_end(len, (), exits=True) for _ in range(10)]
    assert len(interrupts._at_exit) == before + 10
    del endings
    assert len(interrupts._at_exit) == before


def test_what_is_to_end_with_the_interpreter():
    program = textwrap.dedent("""
        from mxnet.interrupts import at_end
        first, second = at_end(print, "first", exits=True), at_end(print, "second")
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("first\n", "")
