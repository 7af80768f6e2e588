"""OpenCV's threads: those of an operator, unless the user has decided."""
import os
import pathlib
import subprocess
import sys

import pytest

from mxnet import opencv, threads

SOURCE = pathlib.Path(opencv.__file__).parents[1]
PROGRAM = """
import sys{first}
import torch, mxnet as mx
torch.set_num_threads(3)
print("cv2" in sys.modules, mx.runtime.threads().opencv)
mx.image.imresize(mx.nd.zeros((4, 4, 3)), 2, 2)
import cv2
print(cv2.getNumThreads(), mx.runtime.threads().opencv)
"""


@pytest.mark.parametrize("first, variables, told", [
    ("", {}, "False 3 3 3"),
    ("", {"OPENCV_FOR_THREADS_NUM": "2"}, "False 2 2 2"),
    (", cv2; cv2.setNumThreads(2)", {}, "True 2 2 2")])
def test_the_first_image_gives_opencv_the_threads_of_an_operator(first, variables, told):
    env = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "OPENCV_"))}
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(first=first)], env={**env, "PYTHONPATH": str(SOURCE), **variables},
                          capture_output=True, text=True, timeout=200)
    assert done.stdout.split() == told.split(), done.stderr


@pytest.mark.parametrize("value, count", [("5", 5), ("0", 7), ("many", 7)])
def test_the_number_before_the_first_image(monkeypatch, value, count):
    monkeypatch.delitem(sys.modules, "cv2", raising=False)
    monkeypatch.setattr(threads, "usual", lambda: 7)
    monkeypatch.setenv("OPENCV_FOR_THREADS_NUM", value)
    assert opencv.count() == count
