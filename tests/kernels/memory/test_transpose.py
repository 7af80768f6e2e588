import itertools

import pytest
import torch

from kernel_limits import used_from
from mxnet import kernels
from mxnet.kernels.memory import transpose

needs_compiler = pytest.mark.skipif(kernels.load("memory/transpose") is None, reason="no C++ compiler")


@needs_compiler
@pytest.mark.parametrize("shape", [(5, 7), (33, 70), (3, 17, 65), (2, 3, 4, 5), (130, 1, 67), (2, 1, 3, 1, 18), (4,), (0, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.float64])
def test_every_order_of_the_axes(shape, dtype, monkeypatch):
    used_from(monkeypatch, 0, transpose)
    data = torch.arange(torch.Size(shape).numel()).view(shape).to(dtype)
    for axes in itertools.permutations(range(len(shape))):
        for given in (axes, [a - len(shape) for a in axes]):
            found = transpose.permute_copy(data, given)
            assert found.shape == data.permute(axes).shape and found.tolist() == data.permute(axes).tolist()
    for first, second in itertools.product(range(-len(shape), len(shape)), repeat=2):
        assert transpose.transpose_copy(data, first, second).tolist() == data.transpose(first, second).tolist()


@needs_compiler
def test_the_kernel_is_asked_where_the_last_axis_moves(monkeypatch):
    used_from(monkeypatch, 0, transpose)
    sizes = torch.Size((2, 3, 4, 5))
    chosen = {axes: transpose._choose(sizes, axes) for axes in itertools.permutations(range(4))}
    assert chosen[0, 2, 3, 1] == (transpose._last_two, (2, 3, 20)) and chosen[2, 3, 0, 1] == (transpose._last_two, (1, 6, 20))
    assert chosen[2, 3, 1, 0] == (transpose._reversed, (2, 3, 20)) and chosen[1, 0, 2, 3][0] is None and chosen[3, 2, 1, 0][0] is None


@pytest.mark.parametrize("axes", [(0, 0, 1), (3, 1, 0), (1, 0)])
def test_what_is_no_order_of_the_axes_is_left_to_torch(axes, monkeypatch):
    used_from(monkeypatch, 0, transpose)
    with pytest.raises((RuntimeError, IndexError)):
        transpose.permute_copy(torch.zeros(2, 3, 4), axes)


@needs_compiler
def test_a_gradient_goes_back_and_can_be_differentiated(monkeypatch):
    used_from(monkeypatch, 0, transpose)
    data = torch.arange(24.0).view(2, 3, 4).requires_grad_()
    out = transpose.permute_copy(data, (2, -2, 0))
    weights = torch.arange(24.0).view(4, 3, 2)
    gradient, = torch.autograd.grad((out ** 2 * weights).sum(), data, create_graph=True)
    back = weights.permute(2, 1, 0)
    assert gradient.tolist() == (2 * data * back).tolist()
    assert torch.autograd.grad(gradient.sum(), data)[0].tolist() == (2 * back).tolist()


@needs_compiler
def test_a_recorded_result_can_be_overwritten(monkeypatch):
    used_from(monkeypatch, 0, transpose)
    data = torch.tensor([[1.0, -2.0, 3.0], [-4.0, 5.0, -6.0]], requires_grad=True)
    out = torch.relu_(transpose.permute_copy(data, (1, 0)))
    out.sum().backward()
    assert out.tolist() == [[1, 0], [0, 5], [3, 0]]
    assert data.grad.tolist() == [[1, 0, 1], [0, 1, 0]]
