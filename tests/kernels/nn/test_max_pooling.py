import numpy as np
import pytest
import torch

from kernel_limits import used_from
from mxnet import kernels
from mxnet.kernels.nn import max_pooling

needs_compiler = pytest.mark.skipif(kernels.load("nn/max_pooling") is None, reason="no C++ compiler")


def pooled(function, data, *arguments):
    x = data.clone().requires_grad_()
    y = function(x, *arguments)
    y.backward(torch.arange(1.0, y.numel() + 1).reshape(y.shape))
    return y.detach(), x.grad


@needs_compiler
@pytest.mark.parametrize("kernel, stride, pad", [((3, 3), (2, 2), (1, 1)), ((2, 2), (2, 2), (0, 0)), ((3, 2), (1, 3), (1, 0)),
                                                 ((5, 5), (4, 4), (2, 2))])
@pytest.mark.parametrize("ceil", [True, False])
@pytest.mark.parametrize("channels, order", [(3, torch.contiguous_format), (3, torch.channels_last), (37, torch.channels_last)])
def test_the_kernel_computes_what_torch_does(kernel, stride, pad, ceil, channels, order, monkeypatch):
    used_from(monkeypatch, 0, max_pooling)
    # Few different values, so that windows have ties.
    data = torch.from_numpy(np.random.RandomState(0).randint(0, 5, (2, channels, 13, 17)).astype("float32")).contiguous(memory_format=order)
    data[0, 0, 3, 4] = float("nan")
    data[1, 2] = float("-inf")
    found = pooled(max_pooling.max_pool2d, data, kernel, stride, pad, ceil)
    expected = pooled(lambda x, k, s, p, c: torch.max_pool2d(x, k, s, p, 1, c), data, kernel, stride, pad, ceil)
    for f, e in zip(found, expected):
        torch.testing.assert_close(f, e, rtol=0, atol=0, equal_nan=True)


@needs_compiler
@pytest.mark.parametrize("width", [3, 5, 7, 8, 9, 13, 15, 16, 17, 31, 33, 50])
@pytest.mark.parametrize("kernel, stride, pad", [(2, 2, 0), (3, 2, 1), (3, 1, 1), (5, 2, 2), (3, 3, 0)])
def test_rows_of_any_length_hold_whole_vectors_or_less(monkeypatch, width, kernel, stride, pad):
    used_from(monkeypatch, 0, max_pooling)
    generator = torch.Generator().manual_seed(width)
    x = torch.randint(-3, 3, (2, 2, 9, width), generator=generator).float()  # with many equal numbers
    x[torch.rand(x.shape, generator=generator) < 0.05] = float("nan")
    x[torch.rand(x.shape, generator=generator) < 0.1] = -float("inf")
    window = (kernel, kernel), (stride, stride), (pad, pad)
    found, expected = [], []
    for results, pool in (found, lambda t: max_pooling.max_pool2d(t, *window, False)), (expected, lambda t: torch.max_pool2d(t, *window)):
        leaf = x.clone().requires_grad_()
        out = pool(leaf)
        out.backward(torch.arange(out.numel(), dtype=torch.float32).reshape(out.shape))
        results += [pool(x), out.detach(), leaf.grad]
    for f, e in zip(found, expected):
        torch.testing.assert_close(f, e, rtol=0, atol=0, equal_nan=True)


@needs_compiler
def test_the_gradient_can_be_differentiated(monkeypatch):
    used_from(monkeypatch, 0, max_pooling)
    x = torch.linspace(-1, 1, 64).reshape(1, 1, 8, 8).requires_grad_()
    g, = torch.autograd.grad((max_pooling.max_pool2d(x, (2, 2), (2, 2), (0, 0), False) ** 3).sum(), x, create_graph=True)
    second, = torch.autograd.grad(g.sum(), x)
    largest = torch.zeros(8, 8, dtype=torch.bool)
    largest[1::2, 1::2] = True
    torch.testing.assert_close(second[0, 0], torch.where(largest, 6 * x[0, 0].detach(), 0))


def test_without_a_compiler_torch_computes(monkeypatch, without_kernels):
    used_from(monkeypatch, 0, max_pooling)
    x = torch.arange(16.0).reshape(1, 1, 4, 4)
    with without_kernels():
        assert max_pooling.max_pool2d(x, (2, 2), (2, 2), (0, 0), False).tolist() == [[[[5, 7], [13, 15]]]]
