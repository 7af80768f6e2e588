import pytest
import torch

from kernel_limits import used_from
from mxnet import kernels
from mxnet.kernels.nn import lrn
from mxnet.ops.nn.normalization import _local_response

needs_compiler = pytest.mark.skipif(kernels.load("nn/lrn") is None, reason="no C++ compiler")


def responses(function, data):
    data = data.clone().requires_grad_()
    out = function(data)
    out.backward(torch.arange(1.0, out.numel() + 1, dtype=data.dtype).view(out.shape) / out.numel())
    return out.detach(), data.grad


@needs_compiler
@pytest.mark.parametrize("shape", [(2, 7, 5, 9), (1, 3, 1, 1), (2, 16, 17, 31), (2, 1, 17, 19), (1, 5, 47, 47), (0, 3, 2, 2), (2, 3, 0, 2)])
@pytest.mark.parametrize("reach, beta, knorm", [(2, 0.75, 2.0), (1, 0.5, 1.0), (0, 0.75, 1e-3), (4, 0.75, 1e35)])
def test_the_kernel_is_as_good_as_torch_in_double_precision(shape, reach, beta, knorm, monkeypatch):
    used_from(monkeypatch, 0, lrn)
    reach = min(reach, shape[1] - 1)
    data = torch.linspace(-2, 3, torch.Size(shape).numel(), dtype=torch.float64).view(shape)
    rule = (0.02, beta, knorm)
    found = responses(lambda x: lrn.normalize(x, reach, *rule, None), data.float())
    for f, e in zip(found, responses(lambda x: _local_response(x, reach, *rule), data)):
        torch.testing.assert_close(f.double(), e, rtol=2e-6, atol=2e-6 * float(e.abs().max()) if e.numel() else 0)


@needs_compiler
def test_numbers_without_an_inverse(monkeypatch):
    used_from(monkeypatch, 0, lrn)
    data = torch.tensor([1e-30, float("inf"), float("nan"), 3.0]).view(1, 1, 1, 4)
    out = lrn.normalize(data, 0, 1.0, 0.75, 0.0, None).flatten()
    assert out[0] == float("inf") and out[1:3].isnan().all() and out[3] == pytest.approx(3 ** -0.5, rel=1e-6)


@needs_compiler
def test_the_gradient_can_be_differentiated(monkeypatch):
    used_from(monkeypatch, 0, lrn)

    def second(function):
        x = torch.linspace(-1, 1, 12).view(1, 3, 2, 2).requires_grad_()
        gradient, = torch.autograd.grad((function(x) ** 2).sum(), x, create_graph=True)
        return torch.autograd.grad(gradient.sum(), x)[0]

    def in_torch(x):
        return _local_response(x, 1, 0.5, 0.75, 1.0)

    torch.testing.assert_close(second(lambda x: lrn.normalize(x, 1, 0.5, 0.75, 1.0, in_torch)), second(in_torch))


def test_small_arrays_are_left_to_torch():
    assert lrn.normalize(torch.zeros(1, 3, 2, 2), 1, 0.5, 0.75, 1.0, lambda x: "torch") == "torch"
