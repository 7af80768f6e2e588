"""Two-dimensional convolution for training on a CPU, with its gradients.

Torch gives every one of the three to oneDNN, which reorders the weights each time: in a step of ResNet-50 with one image, a quarter of the time.
"""
import torch

from ..registry import get
from . import function

# Smaller ones are done before a kernel would have been called (and need no compiler), in multiplications.
_WORTHWHILE = 1 << 20
_LANES = 16  # what the channels must be a multiple of
_MOST_TAPS = 128  # the largest window, in elements
_LAST = torch.channels_last
_POINTERS = {"forward": "pppp", "backward_data": "ppp", "backward_weight": "pppp"}


def convolution(data, weight, bias=None, **attributes):
    """``Convolution`` in two dimensions and one group; the attributes are those of the operator."""
    if not _suits(data, weight, bias):
        return get("Convolution").fn(data, weight, bias, **attributes)
    stride, pad, dilate = attributes.get("stride") or (1, 1), attributes.get("pad") or (0, 0), attributes.get("dilate") or (1, 1)
    sizes = [(size + 2 * p - d * (k - 1) - 1) // s + 1 for size, k, s, p, d in zip(data.shape[2:], weight.shape[2:], stride, pad, dilate)]
    work = weight.numel() * data.shape[0] * sizes[0] * sizes[1]
    if min(sizes) < 1 or work < _WORTHWHILE or _kernel("forward") is None:
        return get("Convolution").fn(data, weight, bias, **attributes)
    shape = (data.shape[0], *data.shape[2:], data.shape[1], weight.shape[0], *weight.shape[2:], *sizes, *stride, *pad, *dilate)
    return _Convolution.apply(data, weight, bias, shape)


def _suits(data, weight, bias):
    """Whether the kernel can do it: single precision with the channels last, in whole vectors."""
    return (data.dtype is weight.dtype is torch.float32 and data.device.type == "cpu" and data.dim() == 4 and data.numel() > 0
            and weight.shape[0] % _LANES == weight.shape[1] % _LANES == 0 and weight.shape[1] == data.shape[1]
            and weight.shape[2] * weight.shape[3] <= _MOST_TAPS
            and data.is_contiguous(memory_format=_LAST) and weight.is_contiguous(memory_format=_LAST)
            and (bias is None or bias.dtype is torch.float32 and bias.is_contiguous()))


def _kernel(entry):
    return function("convolution", entry, _POINTERS[entry] + "l" * 15 + "i")


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, weight, bias, shape):
        n, k, (p, q) = shape[0], shape[4], shape[7:9]
        out = torch.empty((n, k, p, q), memory_format=_LAST)
        _kernel("forward")(data.data_ptr(), weight.data_ptr(), None if bias is None else bias.data_ptr(), out.data_ptr(), *shape,
                           torch.get_num_threads())
        ctx.shape, ctx.biased = shape, bias is not None
        ctx.save_for_backward(data, weight)
        return out

    @staticmethod
    def backward(ctx, dout):
        data, weight = ctx.saved_tensors
        wanted = ctx.needs_input_grad[:3]
        if torch.is_grad_enabled():  # to be differentiated again: torch's own gradient can be
            stride, pad, dilate = ctx.shape[9:11], ctx.shape[11:13], ctx.shape[13:]
            found = torch.ops.aten.convolution_backward(dout, data, weight, [weight.shape[0]] if ctx.biased else None, stride, pad, dilate, False,
                                                        [0, 0], 1, wanted)
            return *found, None
        dout = dout.contiguous(memory_format=_LAST)
        threads = torch.get_num_threads()
        dx = dw = db = None
        if wanted[0]:
            dx = torch.empty_like(data)
            _kernel("backward_data")(dout.data_ptr(), weight.data_ptr(), dx.data_ptr(), *ctx.shape, threads)
        if wanted[1] or wanted[2]:
            dw = torch.empty_like(weight)
            db = torch.empty(weight.shape[0]) if wanted[2] else None
            _kernel("backward_weight")(dout.data_ptr(), data.data_ptr(), dw.data_ptr(), None if db is None else db.data_ptr(), *ctx.shape, threads)
        return dx, dw, db, None
