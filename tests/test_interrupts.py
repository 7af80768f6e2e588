import _thread
import contextlib
import functools
import gc
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

import mxnet as mx
from forked import python
from interrupt_checks import at_each_point, interrupt, interrupted, settle
from mxnet import _deferred_compute, attribute, autograd, engine, interrupts, name, util
from mxnet.gluon import nn
from mxnet.gluon.block import _BlockScope
from mxnet.interrupts import at_end, deferred
from mxnet.ndarray.dispatch import mode


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
    done = subprocess.run([*python(), "-c", program], capture_output=True, text=True, timeout=200)
    assert (done.stdout, done.stderr) == ("first\n", "")


def around():
    """What blocks change."""
    return (mode.recording, mode.training, mode.tracing, mx.current_context(), util.np_shape_level(), util.is_np_array(), name.current(),
            attribute.current(), _BlockScope._current.value, engine._settings.bulk_size)


BLOCKS = [autograd.record, lambda: autograd.pause(train_mode=True), autograd.train_mode, mx.contrib.autograd.train_section, lambda: mx.cpu(3),
          mx.np_shape, lambda: mx.np_shape(2), util.np_array, lambda: mx.AttrScope(a="b"), mx.name.NameManager, lambda: mx.name.Prefix("a_"),
          nn.HybridSequential(prefix="a_").name_scope, lambda: mx.engine.bulk(4), _deferred_compute.context]


@pytest.mark.parametrize("block", BLOCKS)
def test_blocks_are_left_wherever_ctrl_c_comes(block):
    before = around()

    def work():
        with block():
            inside.append(around() != before)

    def check():
        assert around() == before
        inside.append(False)

    inside = []
    assert at_each_point(work, check) > 10 and inside[-1]
    assert [len(kind._blocks.backs) for kind in (autograd.Scope, mx.Context, mx.AttrScope, mx.name.NameManager, _BlockScope)] == [0] * 5


class Change(interrupts.Scope):
    _blocks, seen = interrupts.Blocks(), []

    def _changes(self):
        return [functools.partial(self.seen.append, what) for what in ("in", "out")]


def test_scopes_inside_of_themselves_in_stacks_and_by_hand():
    Change.seen.clear()
    scope = Change()
    with scope, scope, contextlib.ExitStack() as stack:
        assert stack.enter_context(scope) is scope
        assert Change.seen == ["in"] * 3
    scope.__enter__()
    assert Change.__exit__(scope, None, None, None) is None
    assert Change.seen == ["in"] * 3 + ["out"] * 3 + ["in", "out"]
    with pytest.raises(ValueError, match="wrong"), scope:
        raise ValueError("wrong")
    assert Change.seen[-2:] == ["in", "out"] and not Change._blocks.backs


def test_a_change_that_fails_is_put_back():
    class Failing(interrupts.Scope):
        _blocks = interrupts.Blocks()

        def _changes(self):
            return functools.partial(int, "x"), functools.partial(seen.append, "out")

    seen = []
    with pytest.raises(ValueError, match="invalid literal"), Failing():
        seen.append("in")
    assert seen == ["out"] and not Failing._blocks.backs


def test_generators_as_blocks():
    @interrupts.scope
    def noted(what):
        try:
            seen.append(what)
            yield what.upper()
        finally:
            seen.append("end")

    seen = []
    with noted("a") as first, noted(what="b") as second:
        assert (first, second) == ("A", "B")
    decorated = noted("c")(len)
    assert (decorated("abc"), decorated("ab")) == (3, 2)
    with pytest.raises(KeyError), noted("d"):
        raise KeyError
    assert seen == ["a", "b", "end", "end"] + ["c", "end"] * 2 + ["d", "end"]


def test_threads_leave_their_own_blocks():
    def other():
        with autograd.record():
            seen.append(len(autograd.Scope._blocks.backs))

    seen = []
    with autograd.pause(), autograd.record():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert autograd.is_recording() and len(autograd.Scope._blocks.backs) == 2
    assert seen == [1] and not autograd.is_recording()


def test_both():
    seen = []
    interrupts.both(functools.partial(seen.append, 1), functools.partial(seen.append, 2))()
    assert seen == [1, 2]


def test_another_signal_does_not_leave_it_switched_on(monkeypatch):
    """A time limit, say, whose handler raises something: later interrupts were noted by a block that was long gone."""
    class Raising:
        SIGINT, getsignal = signal.SIGINT, signal.getsignal
        limit = TimeoutError

        @classmethod
        def signal(cls, number, handler):
            signal.signal(number, handler)
            limit, cls.limit = cls.limit, None
            if limit is not None:
                raise limit

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with monkeypatch.context() as patched, pytest.raises(TimeoutError):
            patched.setattr(interrupts, "_signal", Raising)
            with interrupts.deferred():
                pass
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        interrupts.deferred().__enter__()  # and is never left
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
