"""Torch's threads are ended, and started again when they are needed."""
import pathlib
import subprocess
import sys
import threading

import pytest
import torch

from mxnet import openmp

PROGRAM = """
import os, pathlib, threading, torch
from mxnet import openmp

def count():
    return len(list(pathlib.Path("/proc/self/task").iterdir()))

torch.set_num_threads(3)
x = torch.rand(1 << 20)
for _ in range(2):
    assert torch.equal(torch.relu(x), x)
    running = count()
    openmp.rest()
    for _ in range(1000):
        if count() == running - 2:
            break
        threading.Event().wait(0.01)
    print(running - count())
    openmp.rest()
"""


@pytest.mark.skipif(not pathlib.Path("/proc/self/task").exists(), reason="counts threads as Linux shows them")
def test_threads_go_and_come_back():
    if openmp.pause_function() is None:
        pytest.skip("torch's OpenMP can't end its threads")
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.returncode) == ("2\n2\n", 0), done.stderr


def test_alone_holds_for_the_call_and_for_this_thread_only():
    if openmp.library() is None:
        pytest.skip("torch brings no OpenMP along")
    get, before = openmp.num_threads, torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        seen = []

        def elsewhere():
            torch.relu(torch.ones(1 << 16))
            seen.append(torch.get_num_threads())

        def call(*arguments):
            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join()
            return arguments, get()

        assert openmp.alone(call, 1, 2) == ((1, 2), 1) and seen == [3]
        with pytest.raises(KeyboardInterrupt):
            openmp.alone(_interrupted)
        assert get() == 3
    finally:
        torch.set_num_threads(before)


def _interrupted():
    raise KeyboardInterrupt


def test_a_kernel_that_limits_its_threads_may_use_those_of_the_caller_outside():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert openmp.alone(lambda: (openmp.num_threads(), openmp.most())) == (1, 3)
        assert openmp.most() == 3
        with pytest.raises(ZeroDivisionError):
            openmp.alone(lambda: 1 // 0)
        torch.set_num_threads(1)
        assert openmp.most() == openmp.alone(openmp.most) == 1
    finally:
        torch.set_num_threads(before)
