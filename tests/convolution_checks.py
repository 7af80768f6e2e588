"""Arrays and comparisons for the tests of convolutions and their gradients."""
import numpy as np
import torch


def numbers(*shape, seed):
    return torch.from_numpy(np.random.RandomState(seed).normal(size=shape).astype("float32"))


def last(t):
    return t.contiguous(memory_format=torch.channels_last)


def run(function, arrays, dtype, rounded=None):
    """The result and the gradients of the arrays, in single precision; the gradient they begin with may be rounded first."""
    arrays = [None if a is None else (last(a) if a.dim() == 4 else a).detach().to(dtype).clone().requires_grad_() for a in arrays]
    out = function(*arrays)
    out.backward(last(numbers(*out.shape, seed=3).to(rounded or dtype).to(dtype)))
    return [out.detach().float()] + [a.grad.float() for a in arrays if a is not None]


def compare(found, expected):
    for f, e in zip(found, expected, strict=True):
        torch.testing.assert_close(f, e, rtol=1e-4, atol=2e-6 * max(1.0, float(e.abs().max())))
