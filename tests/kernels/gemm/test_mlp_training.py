import contextlib

import numpy as np
import pytest
import torch

from mxnet import kernels, openmp
from mxnet.base import MXNetError
from mxnet.kernels.gemm import mlp_training
from mxnet.ops.nn.training_layers import DenseLayer, DenseLayers

pytestmark = pytest.mark.skipif(kernels.load("gemm/mlp_training") is None, reason="no C++ compiler")


@contextlib.contextmanager
def threads(count):
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def made(rows, inputs, widths, activations, biases=True, seed=0):
    """Return the layers, the rows, the weights and the biases, which need gradients."""
    random = torch.Generator().manual_seed(seed)
    weights, offsets = [], []
    for columns, width in zip((inputs, *widths), widths):
        weights.append(torch.randn(width, columns, generator=random).div(columns ** 0.5).requires_grad_())
        offsets.append(torch.randn(width, generator=random).requires_grad_() if biases else None)
    layers = DenseLayers([DenseLayer({"num_hidden": width, "no_bias": not biases, "flatten": True}, act) for width, act in zip(widths, activations)])
    return layers, torch.randn(rows, inputs, generator=random).requires_grad_(), tuple(weights), tuple(offsets)


def both(function, data, weights, biases, seed):
    """Return the result of a function and the gradients of all arguments."""
    out = function(data, weights, biases)
    return [out, *torch.autograd.grad(out, [t for t in (data, *weights, *biases) if t is not None], seed.to(out.dtype))]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("rows, inputs, widths, activations, biases", [
    (64, 784, (128, 128, 128, 10), ("relu", "relu", "relu", ""), True), (3, 5, (7,), ("tanh",), True), (1, 1, (1, 1), ("sigmoid", "tanh"), False),
    (33, 17, (19, 3, 31), ("sigmoid", "", "relu"), True), (512, 50, (64, 1), ("relu", ""), True),
    (13, 100, (33, 47, 65, 2), ("tanh", "sigmoid", "relu", "sigmoid"), False)])
def test_results_and_gradients_are_as_exact_as_single_precision(count, rows, inputs, widths, activations, biases):
    layers, data, weights, offsets = made(rows, inputs, widths, activations, biases)
    seed = torch.randn(rows, widths[-1], generator=torch.Generator().manual_seed(1))
    with threads(count):
        found = both(layers, data, weights, offsets, seed)
    wide = [None if t is None else t.detach().double().requires_grad_() for t in (data, *weights, *offsets)]
    expected = both(layers.by_operators, wide[0], wide[1:1 + len(weights)], wide[1 + len(weights):], seed)
    for a, b in zip(found, expected):
        assert (a - b).abs().max() <= 5e-6 * b.abs().max()
    assert type(found[0].grad_fn).__name__ == "_ChainBackward"


def test_any_number_of_threads_computes_the_same_bits():
    layers, *arguments = made(50, 200, (130, 70), ("relu", "tanh"))
    seed = torch.ones(50, 70)
    results = []
    for count in (1, 2, 3):
        with threads(count):
            results.append(both(layers, *arguments, seed))
    assert all(torch.equal(a, b) for other in results[1:] for a, b in zip(results[0], other))


def test_it_uses_all_threads_where_small_operators_run_on_one():
    assert mlp_training.forward_kernel.team is mlp_training.backward_kernel.team is openmp.most


def test_a_gradient_that_is_not_wanted_is_not_computed():
    layers, data, weights, biases = made(4, 3, (5, 2), ("relu", ""))
    call, _ = layers.saving(data.detach(), [w.detach() for w in weights], biases)[1]
    found = mlp_training.gradients(call, torch.ones(4, 2), (False, False, True, False, False))
    assert [g is None for g in found] == [True, True, False, True, True]
    expected = torch.autograd.grad(layers(data, weights, biases), weights[1], torch.ones(4, 2))[0]
    assert torch.equal(found[2], expected)


def test_numbers_that_are_none_stay_in_their_row_and_go_through_relu():
    layers, data, weights, biases = made(3, 4, (5, 2), ("relu", ""))
    with torch.no_grad():
        data[1, 2] = float("nan")
    out = layers(data, weights, biases)
    assert torch.isnan(out).tolist() == [[False] * 2, [True] * 2, [False] * 2]
    assert torch.isnan(torch.autograd.grad(out[0].sum(), weights[1])[0]).any() == torch.isnan(torch.autograd.grad(
        layers.by_operators(data, weights, biases)[0].sum(), weights[1])[0]).any()


def test_gradients_can_be_differentiated_again():
    layers, data, weights, biases = made(4, 3, (5, 2), ("tanh", "sigmoid"))

    def second(function):
        first = torch.autograd.grad(function(data, weights, biases).sum(), weights[0], create_graph=True)[0]
        return torch.autograd.grad(first.square().sum(), [data, weights[1], biases[0]])

    for a, b in zip(second(layers), second(layers.by_operators)):
        assert torch.allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape, flatten, result", [((6, 2, 4), True, (6, 3)), ((6, 2, 4), False, (6, 2, 3)), ((0, 8), True, (0, 3))])
def test_data_of_more_axes_and_of_none(shape, flatten, result):
    columns = shape[-1] if not flatten else int(np.prod(shape[1:]))
    layers = DenseLayers([DenseLayer({"num_hidden": 3, "no_bias": True, "flatten": flatten}, "relu")])
    weight = torch.randn(3, columns).requires_grad_()
    out = layers(torch.randn(shape), (weight,), (None,))
    assert out.shape == result
    assert torch.autograd.grad(out.sum(), weight)[0].shape == weight.shape


def test_what_the_kernel_does_not_take_goes_to_the_operators():
    layers, data, weights, biases = made(4, 3, (5, 2), ("relu", ""))
    double = [None if t is None else t.detach().double() for t in (data, *weights, *biases)]
    assert layers(double[0], tuple(double[1:3]), tuple(double[3:])).dtype is torch.float64
    assert layers.saving(double[0], double[1:3], double[3:]) is None
    strided = torch.randn(3, 4).t()
    assert torch.allclose(layers(strided, weights, biases), layers.by_operators(strided, weights, biases))
    with pytest.raises(MXNetError, match="w2"):
        mlp_training.forward_kernel((data, weights[0], *[None] * 7), (5, 2, 0, 0, 0))
    with pytest.raises(MXNetError, match="activations"):
        mlp_training.forward_kernel((data, weights[0], *[None] * 7), (5, 0, 0, 0, 256))
