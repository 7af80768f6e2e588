"""Ctrl-C in tests."""
import contextlib
import os
import signal
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
