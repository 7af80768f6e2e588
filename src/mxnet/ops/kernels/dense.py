"""Matrix products, float32 on a CPU, as 1 x 1 convolutions of one row of pixels: ahead of oneDNN where an operand is transposed."""
import ctypes

import torch

from .. import products
from . import convolution

_WORTHWHILE = 1 << 20  # multiplications from which on the kernel is called (and compiled)


def forward(rows, weight, bias):
    """``rows @ weight.T + bias`` for `rows` (N, C) and `weight` (K, C)."""
    if not _suits(len(rows), *weight.shape):
        return products.linear(rows, weight, bias)
    out = torch.empty(len(rows), len(weight))
    _call("forward", rows.contiguous(), weight.contiguous(), bias, out, sizes=(len(rows), *weight.shape))
    return out


def backward_data(dout, weight):
    """``dout @ weight`` for `dout` (N, K) and `weight` (K, C)."""
    if not _suits(len(dout), *weight.shape):
        return products.matmul(dout, weight)
    out = torch.empty(len(dout), weight.shape[1])
    _call("backward_data", dout.contiguous(), weight.contiguous(), out, sizes=(len(dout), *weight.shape))
    return out


def backward_weight(dout, rows):
    """``dout.T @ rows`` for `dout` (N, K) and `rows` (N, C)."""
    if not _suits(len(rows), dout.shape[1], rows.shape[1]):
        return products.matmul(dout.t(), rows)
    out = torch.empty(dout.shape[1], rows.shape[1])
    _call("backward_weight", dout.contiguous(), rows.contiguous(), out, None, sizes=(len(rows), *out.shape))
    return out


def _suits(count, units, width):
    return units % 16 == width % 16 == 0 and count * units * width >= _WORTHWHILE and convolution._kernel("forward", torch.float32) is not None


def _call(entry, *tensors, sizes):
    count, units, width = sizes
    shape = (ctypes.c_int64 * 15)(1, 1, count, width, units, 1, 1, 1, count, 1, 1, 0, 0, 1, 1)
    convolution._kernel(entry, torch.float32)(*(None if t is None else t.data_ptr() for t in tensors), shape, torch.get_num_threads())
