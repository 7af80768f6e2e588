"""Which products of a GPU may be TF32: seen on simulated GPUs, by torch's switch at the moment of each product."""
import pytest
import torch

import mxnet as mx
import simulated_gpus
from mxnet import autograd, nd
from mxnet.kernels.gemm import tensor_cores
from mxnet.ops import sparse_input_linear
from simulated_gpus import gpus

PRODUCTS = ("mm", "addmm", "bmm", "mv", "dot")


@pytest.fixture
def switches(monkeypatch):
    """The switch's positions at each product."""
    found, ordinary = [], simulated_gpus.run

    def run(func, args, kwargs):
        if func._schema.name.removeprefix("aten::") in PRODUCTS:
            found.append(torch.backends.cuda.matmul.allow_tf32)
        return ordinary(func, args, kwargs)

    monkeypatch.setattr(simulated_gpus, "run", run)
    return found


def trained(function, *shapes):
    with gpus() as (gpu, _):
        inputs = [nd.random.normal(shape=shape, ctx=gpu) for shape in shapes]
        for x in inputs:
            x.attach_grad()
        with autograd.record():
            out = function(*inputs)
        out.backward()
        return [a.asnumpy() for a in (*inputs, out, *(x.grad for x in inputs))]


@pytest.mark.parametrize("function, shapes, count", [
    (lambda x, w, b: nd.FullyConnected(x, w, b, num_hidden=4), [(2, 3), (4, 3), (4,)], 3),
    (lambda x, w: nd.FullyConnected(x, w, num_hidden=4, no_bias=True, flatten=False), [(2, 5, 3), (4, 3)], 3),
    (nd.batch_dot, [(2, 3, 4), (2, 4, 5)], 3),
    (nd.linalg.gemm2, [(2, 3, 4), (2, 4, 5)], 3)])
def test_layers_and_batches_may_be_forward_and_backward(switches, function, shapes, count):
    trained(function, *shapes)
    assert switches == [True] * count and not torch.backends.cuda.matmul.allow_tf32


def test_so_may_those_of_large_fully_connected_layers(switches, monkeypatch):
    monkeypatch.setattr(sparse_input_linear, "LARGE", 1)
    trained(lambda x, w, b: nd.FullyConnected(x, w, b, num_hidden=4), (2, 3), (4, 3), (4,))
    assert switches == [True] * 3


@pytest.mark.parametrize("function, shapes", [(nd.dot, [(3, 4), (4, 5)]), (nd.dot, [(2, 3, 4), (4, 5)]), (nd.dot, [(3,), (3,)])])
def test_dot_is_not(switches, function, shapes):
    trained(function, *shapes)
    assert switches and not any(switches)


def test_functions_of_numpy_are_not(switches):
    with gpus() as (gpu, _):
        a, b = mx.np.ones((3, 4), ctx=gpu), mx.np.ones((4, 5), ctx=gpu)
        mx.np.dot(a, b), mx.np.matmul(mx.np.ones((2, 3, 4), ctx=gpu), b), mx.np.einsum("ij,jk->ik", a, b), mx.np.tensordot(a, b, 1)
    assert len(switches) == 4 and not any(switches)


def test_full_precision_on_demand(switches, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    trained(nd.batch_dot, (2, 3, 4), (2, 4, 5))
    assert switches == [False] * 3


def test_types_other_than_float32_keep_the_switch(switches):
    with gpus() as (gpu, _):
        x = nd.ones((2, 3), ctx=gpu, dtype="float64")
        nd.FullyConnected(x, nd.ones((4, 3), ctx=gpu, dtype="float64"), num_hidden=4, no_bias=True)
    assert switches == [False]


def test_gradients_are_those_of_the_product():
    """On a CPU, as the functions themselves ask for no device."""
    generator = torch.Generator().manual_seed(0)
    x, w, b = (torch.randn(*shape, generator=generator, dtype=torch.float64, requires_grad=True) for shape in ((2, 5, 3), (4, 3), (4,)))
    assert torch.autograd.gradcheck(tensor_cores._Linear.apply, (x, w, b)) and torch.autograd.gradgradcheck(tensor_cores._Linear.apply, (x, w, b))
    a, c = torch.randn(2, 3, 4, generator=generator, dtype=torch.float64, requires_grad=True), torch.randn(
        2, 4, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(tensor_cores._Product.apply, (a, c)) and torch.autograd.gradgradcheck(tensor_cores._Product.apply, (a, c))


def test_an_error_puts_the_switch_back():
    def fails():
        assert torch.backends.cuda.matmul.allow_tf32
        raise ValueError("as planned")

    with pytest.raises(ValueError, match="as planned"):
        tensor_cores.switched(fails)
    assert not torch.backends.cuda.matmul.allow_tf32
