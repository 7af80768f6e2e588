"""Two-dimensional convolution for training on a CPU, with its gradients.

Torch gives every one of the three to oneDNN, which reorders the weights each time: in a step of ResNet-50 with one image, a quarter of the time.
"""
import ctypes

import torch

from ..registry import get
from . import function

# Smaller ones are done before a kernel would have been called (and need no compiler), in multiplications.
_WORTHWHILE = 1 << 20
_LANES = 16  # what the channels must be a multiple of
_MOST_TAPS = 128  # the largest window, in elements
_LAST = torch.channels_last
_POINTERS = {"forward": "ppppp", "backward_data": "pppp", "backward_weight": "ppppp"}
_SUFFIX = {torch.float32: "float32", torch.bfloat16: "bfloat16"}


def convolution(data, weight, bias=None, **attributes):
    """``Convolution`` in two dimensions and one group; the attributes are those of the operator.

    The weights may be in single precision beside data in half precision, as they are before mixed precision casts them.
    """
    stride, pad, dilate = attributes.get("stride") or (1, 1), attributes.get("pad") or (0, 0), attributes.get("dilate") or (1, 1)
    if _suits(data, weight, bias):
        sizes = [(size + 2 * p - d * (k - 1) - 1) // s + 1 for size, k, s, p, d in zip(data.shape[2:], weight.shape[2:], stride, pad, dilate)]
        work = weight.numel() * data.shape[0] * sizes[0] * sizes[1]
        if min(sizes) >= 1 and work >= _WORTHWHILE and _kernel("forward", data.dtype) is not None:
            shape = (data.shape[0], *data.shape[2:], data.shape[1], weight.shape[0], *weight.shape[2:], *sizes, *stride, *pad, *dilate)
            return _Convolution.apply(data, weight.float(), None if bias is None else bias.float(), shape)
    return get("Convolution").fn(data, weight.to(data.dtype), None if bias is None else bias.to(data.dtype), **attributes)


def _suits(data, weight, bias):
    """Whether the kernel can do it: all channels last, in whole vectors, and a bias for each filter."""
    return (data.dtype in _SUFFIX and weight.dtype in (torch.float32, data.dtype) and data.device.type == "cpu" and data.dim() == 4
            and data.numel() > 0 and weight.shape[0] % _LANES == weight.shape[1] % _LANES == 0 and weight.shape[1] == data.shape[1]
            and weight.dim() == 4 and weight.shape[2] * weight.shape[3] <= _MOST_TAPS and weight.device.type == "cpu"
            and (bias is None or bias.shape == weight.shape[:1] and bias.is_contiguous() and bias.is_floating_point() and bias.device.type == "cpu")
            and data.is_contiguous(memory_format=_LAST) and weight.is_contiguous(memory_format=_LAST))


def _kernel(entry, dtype):
    return function("convolution", f"{entry}_{_SUFFIX[dtype]}", _POINTERS[entry] + "i")


def _pointer(tensor):
    return None if tensor is None else tensor.data_ptr()


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, weight, bias, shape):
        out = torch.empty((shape[0], shape[4], *shape[7:9]), dtype=data.dtype, memory_format=_LAST)
        ctx.shape, ctx.sizes, ctx.biased = shape, (ctypes.c_int64 * 15)(*shape), bias is not None
        _kernel("forward", data.dtype)(data.data_ptr(), weight.data_ptr(), _pointer(bias), out.data_ptr(), ctx.sizes, torch.get_num_threads())
        ctx.save_for_backward(data, weight)
        return out

    @staticmethod
    def backward(ctx, dout):
        data, weight = ctx.saved_tensors
        wanted = ctx.needs_input_grad[:3]
        if torch.is_grad_enabled():  # to be differentiated again: torch's own gradient can be
            stride, pad, dilate = ctx.shape[9:11], ctx.shape[11:13], ctx.shape[13:]
            found = torch.ops.aten.convolution_backward(dout, data, weight.to(data.dtype), [weight.shape[0]] if ctx.biased else None, stride, pad,
                                                        dilate, False, [0, 0], 1, wanted)
            return found[0], *[None if t is None else t.float() for t in found[1:]], None
        dout = dout.contiguous(memory_format=_LAST)
        threads = torch.get_num_threads()
        dx = dw = db = None
        if wanted[0]:
            dx = torch.empty_like(data)
            _kernel("backward_data", data.dtype)(dout.data_ptr(), weight.data_ptr(), dx.data_ptr(), ctx.sizes, threads)
        if wanted[1] or wanted[2]:
            dw = torch.empty_like(weight)
            db = torch.empty(weight.shape[0]) if wanted[2] else None
            _kernel("backward_weight", data.dtype)(dout.data_ptr(), data.data_ptr(), dw.data_ptr(), _pointer(db), ctx.sizes, threads)
        return dx, dw, db, None
