"""Tests of kernels in Triton without a GPU: a test's file runs as a program, in which Triton's interpreter computes."""
import importlib.util
import json
import os
import subprocess
import sys

import pytest

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed, which torch for CUDA brings")


def interpreted_results(path):
    """Return the JSON that a file prints when it runs as a program; the interpreter is chosen when triton is imported."""
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    run = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=env, timeout=240)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def repair_interpreter():
    """NumPy 2.4 makes no number of an array with one axis, as the interpreter of triton 3.6 asks."""
    from triton.runtime import interpreter

    patch = interpreter._patch_lang_tensor

    def patched(tensor, *rest):
        patch(tensor, *rest)
        tensor.__index__ = lambda self: self.handle.data.item()

    interpreter._patch_lang_tensor = patched
