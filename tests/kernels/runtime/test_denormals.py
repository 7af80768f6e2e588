"""Large products take denormal numbers for zero, and nothing else does."""
import pytest
import torch

import mxnet as mx
from mxnet import kernels
from mxnet.kernels.conv import convolution, winograd
from mxnet.kernels.gemm import conv_gemm, matmul
from mxnet.kernels.nn import recurrent
from mxnet.kernels.runtime import denormals

pytestmark = pytest.mark.skipif(kernels.load("runtime/denormals") is None, reason="no C++ compiler")

TINY = 1e-30 * torch.ones(64, 1024)  # times SMALL, 1024 of them added up: 1.02e-39, below the 1.18e-38 that are normal
SMALL = 1e-12 * torch.ones(1024, 1024)


@pytest.fixture(autouse=True)
def team(monkeypatch):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)
    assert keeps(), "a block left threads that take denormal numbers for zero"


def keeps():
    """Whether this thread and those that it computes with keep denormal numbers."""
    found = torch.full((1 << 20,), 1e-30) * 1e-10
    return bool(found.all())


def test_of_large_products_only():
    assert not matmul.matmul(TINY, SMALL).any() and keeps()
    assert not matmul.linear(TINY, SMALL, torch.zeros(1024)).any() and keeps()
    assert matmul.matmul(TINY[:2], SMALL).all()


def test_gradients_too():
    x, w = torch.ones(64, 1024, requires_grad=True), SMALL.clone().requires_grad_()
    matmul.linear(x, w).backward(TINY / 64)
    assert not x.grad.any() and bool((w.grad - 1e-30 < 1e-33).all()) and w.grad.all()
    x.grad = None
    mx_x, mx_w = mx.nd.from_torch(x.detach()), mx.nd.from_torch(SMALL.clone())
    mx_x.attach_grad()
    with mx.autograd.record():
        out = mx.nd.FullyConnected(mx_x, mx_w, num_hidden=1024, no_bias=True)
    out.backward(mx.nd.from_torch(TINY / 64))
    assert not mx_x.grad.asnumpy().any()


def test_batches():
    a, b = TINY.view(8, 8, 1024), SMALL.expand(8, 1024, 1024)
    assert not matmul.batched(a, b).any()
    a, b = a.clone().requires_grad_(), b.clone().requires_grad_()
    matmul.batched(a, b).backward(torch.ones(8, 8, 1024))
    assert a.grad.all() and bool((b.grad / 8e-30 - 1 < 1e-4).all()) and b.grad.all()


def test_the_result_is_written_to_memory_that_is_given():
    memory = torch.ones(64, 1024)
    found = matmul.matmul(TINY, SMALL, memory)
    assert not found.any() and (matmul._prefers_onednn() or found.data_ptr() == memory.data_ptr())


def test_a_program_that_wants_zeros_everywhere_keeps_them():
    torch.set_flush_denormal(True)
    try:
        assert not matmul.matmul(TINY, SMALL).any() and not keeps()
    finally:
        torch.set_flush_denormal(False)


def test_an_error_switches_back():
    with pytest.raises(ValueError), denormals.zeroed(denormals.HEAVY):
        assert not keeps()
        raise ValueError
    assert keeps()


def images(n, value):
    return torch.full((n, 64, 28, 28), value).contiguous(memory_format=torch.channels_last)


STEPS = (1, 1, 1, 1, 1, 1)
WEIGHT = torch.full((64, 64, 3, 3), 1e-9).contiguous(memory_format=torch.channels_last)  # 1e-30 times it is 1e-39, too small to be added up
CONVOLUTIONS = {
    "forward": lambda n: convolution.forward((images(n, 1e-30), WEIGHT, None), STEPS),
    "gradient of data": lambda n: convolution.backward_data((images(n, 1e-30), WEIGHT), (28, 28, *STEPS)),
    "gradient of weights": lambda n: convolution.backward_weight((images(n, 1e-36), images(n, 1e-6)), (3, 3, 0, *STEPS))[:1],
    "Winograd F(2x2)": lambda n: [winograd.run("Winograd F(2x2)", images(n, 1e-34), WEIGHT, None, (1, 1))],
    "Winograd F(4x4)": lambda n: [winograd.run("Winograd F(4x4)", images(n, 1e-34), WEIGHT, None, (1, 1))],
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.skipif(kernels.load("conv/convolution") is None or kernels.load("conv/winograd") is None, reason="no C++ compiler")
def test_convolutions_of_our_own(name, monkeypatch):
    convolve = CONVOLUTIONS[name]
    found, = convolve(2)  # 5.8e7 multiplications
    assert not found.any() and keeps()
    found, = convolve(1)  # 2.9e7, fewer than 2**25
    assert found.any()
    monkeypatch.setattr(denormals, "_functions", lambda: None)
    found, = convolve(2)
    assert found.any()


@pytest.mark.skipif(kernels.load("conv/convolution") is None, reason="no C++ compiler")
def test_products_by_the_kernel_of_convolutions():
    rows, weight = TINY.contiguous(), SMALL.contiguous()
    found, = conv_gemm._forward((rows, weight, None))
    assert not found.any() and keeps()
    found, = conv_gemm._forward((rows[:16].contiguous(), weight, None))
    assert found.all()


@pytest.mark.parametrize("mode, gates", [("lstm", 4), ("rnn_tanh", 1)])
@pytest.mark.skipif(kernels.load("nn/recurrent") is None, reason="no C++ compiler")
def test_gradients_of_recurrent_layers(mode, gates):
    def gradient(steps):
        units = 256
        zeros = torch.zeros(gates * units)
        weights = [torch.zeros(gates * units, units), torch.full((gates * units, units), 1e-9), zeros, zeros]
        hidden = torch.zeros(1, 32, units, requires_grad=True)
        states = [hidden] + ([torch.zeros(1, 32, units)] if mode == "lstm" else [])
        out, _ = recurrent.run(mode, torch.zeros(steps, 32, units), states, [weights], 1, 1)
        return torch.autograd.grad(out[0].sum() * 1e-31, hidden)[0]
    assert not gradient(32).any() and keeps()  # 6.7e7 multiplications at least
    assert mode == "lstm" or gradient(2).all()  # 4.2e6


def test_without_the_kernel_nothing_changes(monkeypatch):
    monkeypatch.setattr(denormals, "_functions", lambda: None)
    with denormals.zeroed(denormals.HEAVY):
        assert keeps()
