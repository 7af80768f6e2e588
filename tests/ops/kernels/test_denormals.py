"""Large products take denormal numbers for zero, and nothing else does."""
import pytest
import torch

import mxnet as mx
from mxnet.ops import kernels
from mxnet.ops.kernels import denormals, products

pytestmark = pytest.mark.skipif(kernels.load("denormals") is None, reason="no C++ compiler")

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
    assert not products.matmul(TINY, SMALL).any() and keeps()
    assert not products.linear(TINY, SMALL, torch.zeros(1024)).any() and keeps()
    assert products.matmul(TINY[:2], SMALL).all()


def test_gradients_too():
    x, w = torch.ones(64, 1024, requires_grad=True), SMALL.clone().requires_grad_()
    products.linear(x, w).backward(TINY / 64)
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
    assert not products.batched(a, b).any()
    a, b = a.clone().requires_grad_(), b.clone().requires_grad_()
    products.batched(a, b).backward(torch.ones(8, 8, 1024))
    assert a.grad.all() and bool((b.grad / 8e-30 - 1 < 1e-4).all()) and b.grad.all()


def test_the_result_is_written_to_memory_that_is_given():
    memory = torch.ones(64, 1024)
    found = products.matmul(TINY, SMALL, memory)
    assert not found.any() and (products._prefers_onednn() or found.data_ptr() == memory.data_ptr())


def test_a_program_that_wants_zeros_everywhere_keeps_them():
    torch.set_flush_denormal(True)
    try:
        assert not products.matmul(TINY, SMALL).any() and not keeps()
    finally:
        torch.set_flush_denormal(False)


def test_an_error_switches_back():
    with pytest.raises(ValueError), denormals.zeroed(denormals.HEAVY):
        assert not keeps()
        raise ValueError
    assert keeps()


def test_without_the_kernel_nothing_changes(monkeypatch):
    monkeypatch.setattr(denormals, "_functions", lambda: None)
    with denormals.zeroed(denormals.HEAVY):
        assert keeps()
