"""The GPU's maximum pooling beside torch's on a processor: in Triton's interpreter, and on a GPU."""
import torch

from batch_norm_checks import arranged
from mxnet.kernels.nn.max_pooling_on_gpu import Window

# Kernel, stride, padding, ceil mode.
WINDOWS = {"2x2": Window((2, 2), (2, 2), (0, 0), False), "overlapping": Window((3, 3), (2, 2), (1, 1), False),
           "overlapping, beyond the data": Window((3, 3), (2, 2), (0, 0), True), "2x2, beyond the data": Window((2, 2), (2, 2), (0, 0), True),
           "every pixel": Window((3, 3), (1, 1), (1, 1), False), "gaps": Window((2, 2), (3, 3), (0, 0), False),
           "gaps, beyond the data": Window((2, 2), (3, 3), (1, 1), True), "asymmetric": Window((3, 2), (1, 3), (1, 0), False),
           "asymmetric, beyond the data": Window((2, 5), (3, 2), (1, 2), True), "one pixel": Window((1, 1), (2, 3), (0, 0), False),
           "more results than data": Window((2, 2), (1, 1), (1, 1), False), "large": Window((7, 7), (4, 4), (3, 3), True)}


def images(shape, dtype):
    """Images of few different numbers, so that windows have ties, with NaN (also several in a window) and windows of -inf."""
    random = torch.Generator().manual_seed(0)
    data = torch.randint(-2, 3, shape, generator=random).to(getattr(torch, dtype))
    data[torch.rand(shape, generator=random) < 0.1] = -float("inf")
    data[torch.rand(shape, generator=random) < 0.05] = float("nan")
    data[0, 0] = -float("inf")
    return arranged(data)


def torchs(data, window, bias=None, relu=False):
    """Return the result of torch's operators."""
    out = torch.max_pool2d(data, *window[:3], 1, window.ceil)
    out = out if bias is None else out + bias.view(-1, 1, 1)
    return torch.relu(out) if relu else out


def pooling_faults(pool, shape, dtype, window, biased=False, relu=False, device="cpu"):
    """What of a pooling, and of its gradients, is not torch's: names. All numbers are whole, so that every type holds them and their sums."""
    data, bias = images(shape, dtype), (torch.arange(shape[1]) % 3 - 1).to(getattr(torch, dtype))
    inputs = [data, bias][:1 + biased]
    leaves, wide = [t.to(device).clone().requires_grad_() for t in inputs], [t.float().contiguous().requires_grad_() for t in inputs]
    out, expected = (f(x[0], window, x[1] if biased else None, relu) for f, x in ((pool, leaves), (torchs, wide)))
    if out is None:
        return ["no kernel fits"]
    dout = torch.randint(-2, 3, expected.shape, generator=torch.Generator().manual_seed(1)).float()
    expected.backward(dout)
    out.backward(arranged(dout.to(out)))
    results = {"result": (out, expected), **{name: (a.grad, b.grad) for name, a, b in zip(("dx", "dbias"), leaves, wide)}}
    wrong = [name for name, pair in results.items() if not torch.equal(*(t.detach().cpu().to(data.dtype).nan_to_num(nan=999) for t in pair))]
    wrong += [f"type of {name}" for name, (t, _) in results.items() if t.dtype is not data.dtype]
    return wrong + [f"order of {name}" for name in ("result", "dx") if not results[name][0].is_contiguous(memory_format=torch.channels_last)]
