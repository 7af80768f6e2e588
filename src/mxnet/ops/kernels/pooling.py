"""Maximum pooling in two dimensions. Torch looks at each window element by element: 14 times as long as MXNet on large arrays."""
import torch

from . import function

# Smaller arrays are done before a kernel would have been called (and need no compiler).
_WORTHWHILE = 1 << 15
_LARGEST_WINDOW = 256  # elements: a byte says which was the largest
_POINTERS = {"forward": "pp", "forward_marked": "ppp", "backward": "ppp"}


def max_pool2d(data, kernel, stride, pad, ceil):
    """`torch.max_pool2d` without dilation, for windows none of which lies in the padding alone."""
    if data.numel() < _WORTHWHILE or data.dim() != 4 or data.dtype is not torch.float32 or type(data) is not torch.Tensor \
            or data.device.type != "cpu" or not data.is_contiguous() or kernel[0] * kernel[1] > _LARGEST_WINDOW \
            or torch.compiler.is_compiling() or _kernel("forward") is None:
        return torch.max_pool2d(data, kernel, stride, pad, 1, ceil)
    sizes = [(size + 2 * p - k + (s - 1 if ceil else 0)) // s + 1 for size, k, s, p in zip(data.shape[2:], kernel, stride, pad)]
    if min(sizes) < 1:
        return torch.max_pool2d(data, kernel, stride, pad, 1, ceil)  # says what is wrong
    shape = (data.shape[0] * data.shape[1], *data.shape[2:], *sizes, *kernel, *stride, *pad)
    if data.requires_grad and torch.is_grad_enabled():
        return _MaxPool.apply(data, shape, ceil)
    return _run(data, shape)


def _kernel(entry):
    return function("pooling", entry, _POINTERS[entry] + "l" * 11 + "i")


def _run(data, shape):
    out = data.new_empty((*data.shape[:2], *shape[3:5]))
    _kernel("forward")(data.data_ptr(), out.data_ptr(), *shape, torch.get_num_threads())
    return out


class _MaxPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, shape, ceil):
        out = data.new_empty((*data.shape[:2], *shape[3:5]))
        where = torch.empty(out.shape, dtype=torch.uint8)
        _kernel("forward_marked")(data.data_ptr(), out.data_ptr(), where.data_ptr(), *shape, torch.get_num_threads())
        ctx.shape, ctx.ceil = shape, ceil
        ctx.save_for_backward(data, where)
        return out

    @staticmethod
    def backward(ctx, dout):
        data, where = ctx.saved_tensors
        if torch.is_grad_enabled():  # to be differentiated again: torch's own gradient can be
            kernel, stride, pad = ctx.shape[5:7], ctx.shape[7:9], ctx.shape[9:]
            again = torch.max_pool2d(data, kernel, stride, pad, 1, ctx.ceil)
            return *torch.autograd.grad(again, data, dout, create_graph=True), None, None
        dout, gradient = dout.contiguous(), torch.zeros_like(data)
        _kernel("backward")(where.data_ptr(), dout.data_ptr(), gradient.data_ptr(), *ctx.shape, torch.get_num_threads())
        return gradient, None, None
