"""Torch's threads are ended, and started again when they are needed."""
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("openvino")

PROGRAM = """
import os, pathlib, threading, torch
from mxnet.graph.openvino import threads

def count():
    return len(list(pathlib.Path("/proc/self/task").iterdir()))

torch.set_num_threads(3)
x = torch.rand(1 << 20)
for _ in range(2):
    assert torch.equal(torch.relu(x), x)
    running = count()
    threads.rest()
    for _ in range(1000):
        if count() == running - 2:
            break
        threading.Event().wait(0.01)
    print(running - count())
    threads.rest()
"""


@pytest.mark.skipif(not pathlib.Path("/proc/self/task").exists(), reason="counts threads as Linux shows them")
def test_threads_go_and_come_back():
    from mxnet.graph.openvino import threads
    if threads._pause() is None:
        pytest.skip("torch's OpenMP can't end its threads")
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.returncode) == ("2\n2\n", 0), done.stderr
