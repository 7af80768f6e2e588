import math

import pytest
import torch

from kernel_limits import used_from
from mxnet import kernels
from mxnet.kernels.nn import softmax

needs_compiler = pytest.mark.skipif(kernels.load("nn/softmax") is None, reason="no C++ compiler")


@needs_compiler
@pytest.mark.parametrize("width", [1, 5, 15, 16, 17, 64, 100, 129, 1000])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_the_kernel_is_as_good_as_torch(name, width, monkeypatch):
    used_from(monkeypatch, 0, softmax)
    function = getattr(softmax, name)
    data = (torch.linspace(-1, 1, 7 * width).view(7, width) * 37).sin() * 40
    wide = data.double().requires_grad_()
    expected = getattr(torch, name)(wide, -1)
    data.requires_grad_()
    dout = torch.linspace(-1, 2, 7 * width).view(7, width)
    found = function(data, 1)
    # Torch's own is off by as much: the differences are rounded.
    torch.testing.assert_close(found.double(), expected, rtol=8e-6, atol=1e-44 if name == "softmax" else 1e-6)
    found.backward(dout)
    expected.backward(dout.double())
    torch.testing.assert_close(data.grad.double(), wide.grad, rtol=1e-4, atol=1e-6)
    with torch.no_grad():
        assert torch.equal(function(data, -1), found)


@needs_compiler
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_what_is_larger_than_the_caches(name):
    data = torch.linspace(-3, 3, 24_000_000).view(-1, 1500)[:, torch.arange(1500) * 7 % 1500]
    torch.testing.assert_close(getattr(softmax, name)(data, -1), getattr(torch, name)(data, -1), rtol=1e-5, atol=1e-6)


@needs_compiler
def test_numbers_without_a_softmax(monkeypatch):
    used_from(monkeypatch, 0, softmax)
    inf, nan = math.inf, math.nan
    rows = torch.tensor([[1, inf, 0], [nan, 2, 1], [-inf, -inf, -inf], [-inf, 3, -inf], [0, -100, -200]])
    found = softmax.softmax(rows, -1)
    assert found[:3].isnan().all() and found[3].tolist() == [0, 1, 0] and found[4].tolist() == torch.softmax(rows[4], -1).tolist()
    found = softmax.log_softmax(rows, -1)
    assert found[:3].isnan().all() and found[3].tolist() == [-inf, 0, -inf] and found[4].tolist() == [0, -100, -200]


@needs_compiler
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_the_gradient_can_be_differentiated(name, monkeypatch):
    used_from(monkeypatch, 0, softmax)

    def second(function):
        x = torch.linspace(-1, 1, 12).view(3, 4).requires_grad_()
        gradient, = torch.autograd.grad((function(x, -1) ** 2).sum(), x, create_graph=True)
        return torch.autograd.grad(gradient.sum() + gradient.square().sum(), x)[0]

    torch.testing.assert_close(second(getattr(softmax, name)), second(getattr(torch, name)))


@pytest.mark.parametrize("shape, axis", [((3, 4), 0), ((2, 3, 4), 1), ((0, 4), 1), ((4, 0), 1), ((), 0)])
def test_other_axes_and_no_numbers_are_left_to_torch(shape, axis, monkeypatch):
    used_from(monkeypatch, 0, softmax)
    data = torch.ones(shape)
    assert torch.equal(softmax.softmax(data, axis), torch.softmax(data, axis))


@needs_compiler
@pytest.mark.parametrize("n, w", [(1, 1), (3, 5), (64, 10), (7, 100), (5, 1000), (2, 70001)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int32, torch.uint8])
def test_log_likelihoods_and_their_gradient(n, w, dtype):
    random = torch.Generator().manual_seed(0)
    data = torch.randn(n, w, generator=random).mul_(5).requires_grad_()
    classes = torch.randint(0, min(w, 200), (n,), generator=random).to(dtype)
    dout = torch.randn(n, generator=random)
    out = softmax.log_likelihood(data, classes)
    double = data.detach().double().requires_grad_()
    expected = torch.log_softmax(double, 1).gather(1, classes.long().view(-1, 1)).view(-1)
    assert torch.allclose(out.double(), expected, rtol=1e-6, atol=1e-6)
    gradient, right = torch.autograd.grad(out, data, dout)[0], torch.autograd.grad(expected, double, dout.double())[0]
    assert torch.allclose(gradient.double(), right, rtol=2e-6, atol=1e-6)


@needs_compiler
def test_classes_outside_of_a_line_are_the_nearest_ones():
    data = torch.tensor([[0.0, 1.0, 3.0]]).expand(7, 3).contiguous()
    classes = torch.tensor([-5, -0.5, 1.9, 2.0, 7.0, float("inf"), float("nan")])
    expected = torch.log_softmax(data, 1)[0][torch.tensor([0, 0, 1, 2, 2, 2, 0])]
    assert torch.allclose(softmax.log_likelihood(data, classes), expected)
    assert torch.allclose(softmax.log_likelihood(data[:2], torch.tensor([-1, 9])), expected[[0, 3]])


@needs_compiler
def test_log_likelihoods_of_large_and_of_infinite_numbers():
    data = torch.tensor([[1e30, 0.0], [-1000.0, 0.0], [float("-inf"), 0.0], [float("nan"), 0.0]]).requires_grad_()
    out = softmax.log_likelihood(data, torch.zeros(4))
    assert out.tolist()[:3] == [0.0, -1000.0, float("-inf")] and torch.isnan(out[3])
    gradient = torch.autograd.grad(out.sum(), data)[0]
    assert gradient[:3].tolist() == [[0.0, 0.0], [1.0, -1.0], [1.0, -1.0]] and torch.isnan(gradient[3]).all()


@needs_compiler
def test_the_gradient_of_log_likelihoods_can_be_differentiated():
    data = torch.randn(3, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float32).requires_grad_()
    classes = torch.tensor([0.0, 2.0, 3.0])

    def second(function):
        first = torch.autograd.grad(function().sum(), data, create_graph=True)[0]
        return torch.autograd.grad(first.square().sum(), data)[0]

    right = second(lambda: torch.log_softmax(data, 1).gather(1, classes.long().view(-1, 1)))
    assert torch.allclose(second(lambda: softmax.log_likelihood(data, classes)), right, atol=1e-6)


@needs_compiler
@pytest.mark.parametrize("data", [torch.ones(2, 3, dtype=torch.float64), torch.ones(3, 2).t(), torch.ones(3, 3)])
def test_log_likelihoods_of_what_the_kernel_does_not_take(data):
    assert softmax.log_likelihood(data, torch.zeros(2)) is None


@pytest.mark.parametrize("n, w", [(1, 1), (3, 10), (70, 1000)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int32])
def test_minus_one_hot(n, w, dtype):
    data = torch.rand(n, w)
    classes = (torch.arange(n) * 7 % (w + 2) - 1).to(dtype)  # some of them out of range
    expected = data.double()
    for i, c in enumerate(classes.long().tolist()):
        if 0 <= c < w:
            expected[i, c] -= 1
    assert torch.allclose(softmax.minus_one_hot(data, classes, 0.25).double(), expected / 4, atol=1e-6)


def test_minus_one_hot_of_fractions_and_of_what_the_kernel_does_not_take():
    data = torch.ones(4, 2)
    found = softmax.minus_one_hot(data, torch.tensor([1.9, -0.5, float("nan"), 2.0]), 2.0)
    assert found.tolist() == [[2, 0], [0, 2], [2, 2], [2, 2]]
    assert softmax.minus_one_hot(data.double(), torch.zeros(4), 1.0) is None
    assert softmax.minus_one_hot(data, torch.zeros(3), 1.0) is None


def test_scaled_log_likelihoods_and_their_gradient():
    data, classes = torch.rand(5, 7, requires_grad=True), torch.tensor([0, 1, 2, 3, 6])
    out = softmax.log_likelihood(data, classes, -3.0)
    right = torch.nn.functional.cross_entropy(data, classes, reduction="none") * 3
    seeds = torch.arange(5.0)
    assert torch.allclose(out, right, atol=1e-5)
    found, = torch.autograd.grad(out, data, seeds)
    expected, = torch.autograd.grad(right, data, seeds)
    assert torch.allclose(found, expected, atol=1e-5)
    saved = softmax.log_likelihood_saving(data.detach(), classes, -3.0)
    assert torch.equal(saved[0], out) and torch.equal(softmax.log_likelihood_gradient(saved[1], seeds), found)
