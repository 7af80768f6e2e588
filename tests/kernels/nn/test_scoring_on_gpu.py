"""The GPU's kernels for scoring without a GPU: this file run as a program computes layers in Triton's interpreter, which is chosen when triton is
imported. Real GPUs compare them with torch's operators whenever they are chosen; see tests/gpu/test_scoring.py.
"""
import importlib.util
import itertools
import json
import math
import os
import pathlib
import subprocess
import sys

import pytest
import torch

from mxnet.kernels.nn import scoring_on_gpu as on_gpu
from mxnet.kernels.runtime.strided_output import ANY

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed, which torch for CUDA brings")
TYPES = {"float32": 1e-6, "float16": 1e-3, "bfloat16": 1.6e-2}  # the interpreter cuts bfloat16 off
WINDOWS = [((3, 3), (2, 2), (1, 1)), ((2, 2), (2, 2), (0, 0)), ((3, 2), (1, 2), (0, 1)), ((1, 1), (2, 3), (0, 0)), ((7, 7), (1, 1), (3, 3))]


def images(dtype, channels=7):
    data = torch.randn(2, channels, 9, 11, generator=torch.Generator().manual_seed(channels)).to(getattr(torch, dtype))
    data[0, 0, 0, 0] = math.nan
    return data.contiguous(memory_format=torch.channels_last)


def far(found, expected, tolerance):
    """Whether results differ; NaN has to be where it is expected."""
    same = found.shape == expected.shape and found.is_contiguous(memory_format=torch.channels_last)
    return not (same and torch.allclose(found.float(), expected.float(), rtol=tolerance, atol=tolerance, equal_nan=True))


def pooled():
    """The cases of maximum pooling that give other results than torch."""
    found = []
    for dtype, window, channels in itertools.product(TYPES, WINDOWS, (7, 16)):
        data = images(dtype, channels)
        expected = torch.max_pool2d(data, *window)
        if far(on_gpu.max_pool(data, expected.shape[2:], *window), expected, 0.0):
            found.append([dtype, window, channels])
    return found


def finished():
    """The cases of what stands behind a convolution that give other results than torch."""
    found = []
    for dtype, scales, adds, ceiling, in_place in itertools.product(TYPES, (False, True), (False, True), (ANY, math.inf, 0.5), (False, True)):
        data, other = images(dtype), images(dtype).flip(2)
        scale, shift = torch.linspace(-1, 1, 7) if scales else None, torch.linspace(2, -2, 7)
        expected = data.float() * (scale.view(-1, 1, 1) if scales else 1) + shift.view(-1, 1, 1) + (other.float() if adds else 0)
        expected = expected if ceiling < 0 else expected.clamp(0, ceiling)
        given = data.clone()
        out = on_gpu.finish(given, shift, scale, other if adds else None, ceiling, in_place)
        if far(out, expected, TYPES[dtype]) or (out is given) is not in_place or not in_place and far(given, data, 0.0):
            found.append([dtype, scales, adds, ceiling, in_place])
    return found


@needs_triton
def test_in_tritons_interpreter():
    source = pathlib.Path(on_gpu.__file__).parents[3]
    variables = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join([str(source), *sys.path[1:]])}
    run = subprocess.run([sys.executable, __file__], env=variables, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2000:]
    assert json.loads(run.stdout.splitlines()[-1]) == {"fits": True, "pooled": [], "finished": []}


def test_processors_do_not_take_them():
    data = images("float32")
    assert not on_gpu.available(data.device) and not on_gpu.fits(data)
    assert on_gpu.fits_window((7, 7)) and not on_gpu.fits_window((8, 8))


if __name__ == "__main__":
    print(json.dumps({"fits": on_gpu.fits(images("float16")) and not on_gpu.fits(images("float16").contiguous()), "pooled": pooled(),
                      "finished": finished()}))
