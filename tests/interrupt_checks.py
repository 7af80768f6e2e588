"""Ctrl-C in tests."""
import contextlib
import dis
import functools
import os
import signal
import sys
import time

import pytest


def interrupt():
    """Ctrl-C, now."""
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)


def settle():
    """Give Python an instruction at which it looks for signals."""
    for _ in range(3):
        pass


@contextlib.contextmanager
def interrupted():
    """A block that must raise KeyboardInterrupt, by its last instruction."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with the signal ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGINT, before)


@functools.cache
def _points(code):
    """Where Python looks for signals in a function: as it begins or goes on, after calls, and where it jumps back."""
    found, before = set(), None
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name == "RESUME":
            look = instruction.arg & 3 < 2  # not while it waits for another generator
        else:
            look = (name.startswith("JUMP_BACKWARD") and not name.endswith("NO_INTERRUPT")
                    or name == "JUMP_ABSOLUTE" and instruction.argval < instruction.offset
                    or before is None and sys.version_info < (3, 11)
                    or before is not None and before.startswith("CALL") and "INTRINSIC" not in before
                    or before == "YIELD_VALUE" and sys.version_info < (3, 11))
        if look:
            found.add(instruction.offset)
        before = name
    return found


def at_each_point(work, check, step=1):
    """Interrupt some work where Python looks for signals, at one place after the other, or at every so many, and check something afterwards.

    How often that was. No signal is sent, so that nothing depends on time.
    """
    number = 0
    while True:
        left = number * step

        def trace(frame, event, _):
            nonlocal left
            frame.f_trace_opcodes = True
            if event == "opcode" and frame.f_lasti in _points(frame.f_code):
                left -= 1
                if left < 0:
                    raise KeyboardInterrupt
            return trace

        outer = sys.gettrace()
        sys._getframe().f_trace_opcodes = True  # Python 3.12 looks at it in settrace: set later only, it has no effect
        try:
            sys.settrace(trace)
            work()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(outer)
        if left >= 0:
            return number
        check()
        number += 1
