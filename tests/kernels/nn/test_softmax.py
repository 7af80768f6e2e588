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
