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


def pooling_faults(pool, shape, dtype, window, device="cpu"):
    """What of a pooling, and of its gradient, is not torch's: names. Gradients are whole numbers, whose sums every type holds."""
    data = images(shape, dtype)
    leaves = [data.to(device).clone().requires_grad_(), data.float().contiguous().requires_grad_()]
    out, expected = pool(leaves[0], window), torch.max_pool2d(leaves[1], *window[:3], 1, window.ceil)
    if out is None:
        return ["no kernel fits"]
    dout = torch.randint(-8, 9, expected.shape, generator=torch.Generator().manual_seed(1)).float()
    expected.backward(dout)
    out.backward(arranged(dout.to(out)))
    wrong = []
    for name, ours, theirs in ("result", out, expected), ("gradient", leaves[0].grad, leaves[1].grad):
        if not torch.equal(*(t.detach().cpu().float().nan_to_num(nan=1e9) for t in (ours, theirs))):
            wrong.append(name)
        if not ours.is_contiguous(memory_format=torch.channels_last) or ours.dtype is not data.dtype:
            wrong.append(f"order or type of the {name}")
    return wrong
