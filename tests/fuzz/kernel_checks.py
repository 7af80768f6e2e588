"""What the targets for kernels have in common: kernels on, off, and compared with torch."""
import contextlib

import torch

from mxnet import MXNetError
from mxnet.kernels.conv import convolution, deformable
from mxnet.kernels.elementwise import histogram, pointwise
from mxnet.kernels.gemm import conv_gemm, prepacked_skinny, triangular_solve
from mxnet.kernels.image import color_jitter
from mxnet.kernels.memory import gather_scatter, transpose
from mxnet.kernels.nn import batch_norm, lrn, max_pooling, recurrent, softmax

from . import sanitizer

sanitizer.prepare()
# Modules that leave small arrays to torch.
SMALL = (batch_norm, color_jitter, convolution, deformable, conv_gemm, prepacked_skinny, histogram, lrn, pointwise, max_pooling,
         recurrent, gather_scatter, softmax, triangular_solve, transpose)
# An operator's call makes MXNetErrors of torch's errors, and takes no None for an array.
TORCHS = (MXNetError, RuntimeError, ValueError, TypeError, IndexError, AttributeError)


@contextlib.contextmanager
def kernels_for_all(threads, least=0):
    """Kernels work on the smallest arrays, with so many threads."""
    before, torch.get_num_threads = [m._WORTHWHILE for m in SMALL] + [conv_gemm._leaves, torch.get_num_threads], lambda: threads
    conv_gemm._leaves = lambda: False
    for module in SMALL:
        module._WORTHWHILE = least
    try:
        yield
    finally:
        *limits, conv_gemm._leaves, torch.get_num_threads = before
        for module, limit in zip(SMALL, limits):
            module._WORTHWHILE = limit


def on_torch():
    """Torch computes everything."""
    return kernels_for_all(1, 1 << 62)


class Wrong(Exception):
    """A result that is not torch's, or a right case that was refused."""


def compare(found, expected, what, tolerance=1e-4):
    """Raise `Wrong` where results are not torch's."""
    for i, (f, e) in enumerate(zip(found, expected)):  # torch has no gradient where no region counts
        if f is None and e is None:
            continue
        if f.shape != e.shape:
            raise Wrong(f"{what}: result {i} has shape {tuple(f.shape)}, torch's {tuple(e.shape)}")
        f, e = f.detach().double(), e.detach().double()
        finite = e.isfinite() & f.isfinite()
        if not finite.any():
            continue
        limit = tolerance * max(1.0, float(e[finite].abs().max()))
        if ((f - e)[finite].abs() > limit).any():
            raise Wrong(f"{what}: result {i} differs from torch's by {float((f - e)[finite].abs().max())}, allowed are {limit}")


def usual(*descriptions):
    """Whether no array holds special values."""
    return all(d is None or "special" not in d for d in descriptions)
