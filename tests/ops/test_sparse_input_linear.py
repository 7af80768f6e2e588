import logging

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.ops import sparse_input_linear

COLUMNS = [3, 17, 200]


@pytest.fixture(autouse=True)
def all_are_large(monkeypatch):
    monkeypatch.setattr(sparse_input_linear, "LARGE", 1)
    monkeypatch.setattr(sparse_input_linear, "_told", set())


def inputs(sparse, rows=8):
    random = np.random.RandomState(0)
    data = random.randn(rows, 400).astype("float32")
    if sparse:
        data[:, np.setdiff1d(np.arange(400), COLUMNS)] = 0
    return torch.from_numpy(data), torch.from_numpy(random.randn(6, 400).astype("float32")), torch.from_numpy(random.randn(6).astype("float32"))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_product_and_gradients_are_torchs(sparse, biased):
    data, weight, bias = inputs(sparse)
    dout = torch.randn(8, 6)
    results = []
    for function in (sparse_input_linear.linear, torch.nn.functional.linear):
        w, b = weight.clone().requires_grad_(), bias.clone().requires_grad_() if biased else None
        out = function(data, w, b)
        out.backward(dout)
        results.append([out.detach(), w.grad, b.grad if biased else None])
    for found, expected in zip(*results):
        if expected is not None:
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_columns_that_meet_zeros_only_are_not_multiplied():
    data, weight, bias = inputs(True)
    expected = sparse_input_linear.linear(data, weight, bias)
    weight[:, 5] = float("nan")
    assert torch.equal(sparse_input_linear.linear(data, weight, bias), expected)
    data[0, 5] = float("nan")  # no zero
    assert sparse_input_linear.linear(data, weight, bias)[0].isnan().all()


def test_data_with_a_gradient_is_multiplied_as_it_is():
    data, weight, bias = inputs(True)
    data.requires_grad_()
    sparse_input_linear.linear(data, weight, bias).sum().backward()
    np.testing.assert_allclose(data.grad[0], weight.sum(0), rtol=1e-5, atol=1e-5)


def test_gradients_can_be_differentiated_again():
    for sparse in (False, True):
        data, weight, _ = (t.double() if sparse is None else t for t in inputs(sparse))
        weight.requires_grad_()
        gradient, = torch.autograd.grad(sparse_input_linear.linear(data, weight, None).square().sum(), weight, create_graph=True)
        gradient.square().sum().backward()
        other = weight.detach().clone().requires_grad_()
        expected, = torch.autograd.grad((data @ other.t()).square().sum(), other, create_graph=True)
        expected.square().sum().backward()
        np.testing.assert_allclose(weight.grad, other.grad, rtol=1e-4)


def test_more_axes_stay():
    data, weight, bias = inputs(True)
    assert torch.equal(sparse_input_linear.linear(data.view(2, 4, 400), weight, bias), sparse_input_linear.linear(data, weight, bias).view(2, 4, 6))


def test_it_is_said_once_that_data_is_mostly_zeros(caplog):
    with caplog.at_level(logging.WARNING, "mxnet"):
        for _ in range(2):
            sparse_input_linear.linear(*inputs(True))
    assert len(caplog.records) == 1
    assert "99.25 % of its data (8, 400) are zeros" in caplog.text and "tostype('csr')" in caplog.text
    sparse_input_linear.linear(*inputs(False))
    assert len(caplog.records) == 1


@pytest.mark.parametrize("sparse", [False, True])
def test_a_gradient_is_written_to_memory_that_was_lent_and_only_the_first(sparse):
    data, weight, _ = inputs(sparse)
    weight, memory = weight.requires_grad_(), torch.full((6, 400), 7.0)
    sparse_input_linear.lend_memory(weight, memory)
    first, = torch.autograd.grad(sparse_input_linear.linear(data, weight, None).sum(), weight)
    second, = torch.autograd.grad(sparse_input_linear.linear(data, weight, None).sum(), weight)
    assert first.data_ptr() == memory.data_ptr() != second.data_ptr()
    np.testing.assert_allclose(first, data.sum(0).expand(6, -1), rtol=1e-5, atol=1e-5)
    assert torch.equal(first, second)


@pytest.mark.parametrize("sparse", [False, True])
def test_an_executor_keeps_its_gradients_where_they_are(sparse):
    data, weight, bias = inputs(sparse)
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=6, name="fc")
    args = {"data": mx.nd.array(data), "fc_weight": mx.nd.array(weight), "fc_bias": mx.nd.array(bias)}
    grads = {"fc_weight": mx.nd.ones((6, 400)), "fc_bias": mx.nd.ones((6,))}
    memory = grads["fc_weight"]._data
    exe = net.bind(mx.cpu(), args, args_grad=grads, grad_req={"data": "null", "fc_weight": "write", "fc_bias": "write"})
    for _ in range(2):
        exe.forward(is_train=True)
        exe.backward(mx.nd.ones((8, 6)))
        np.testing.assert_allclose(memory, data.sum(0).expand(6, -1), rtol=1e-5, atol=1e-5)
        assert grads["fc_weight"]._data is memory


def test_a_gradient_beside_sparse_arguments_stays_where_it_is(monkeypatch):
    data, weight, _ = inputs(False)
    net = mx.sym.FullyConnected(mx.sym.sparse.dot(mx.sym.var("data", stype="csr"), mx.sym.var("first", stype="row_sparse")), num_hidden=6,
                                no_bias=True, name="fc")
    rows = mx.nd.array(np.eye(400, dtype="float32"))
    args = {"data": mx.nd.array(data).tostype("csr"), "first": rows.tostype("row_sparse"), "fc_weight": mx.nd.array(weight)}
    gradient = mx.nd.ones((6, 400))
    memory, lent, lend = gradient._data, [], sparse_input_linear.lend_memory
    monkeypatch.setattr(sparse_input_linear, "lend_memory", lambda leaf, its: lent.append(its.data_ptr()) or lend(leaf, its))
    exe = net.bind(mx.cpu(), args, args_grad={"fc_weight": gradient}, grad_req={"data": "null", "first": "null", "fc_weight": "write"})
    exe.forward(is_train=True)
    exe.backward(mx.nd.ones((8, 6)))
    assert lent == [memory.data_ptr()] and gradient._data is memory
    np.testing.assert_allclose(memory, data.sum(0).expand(6, -1), rtol=1e-5, atol=1e-5)


def test_a_weight_of_two_layers_gets_the_sum():
    data, weight, _ = inputs(True)
    shared = mx.sym.var("w")
    net = mx.sym.FullyConnected(mx.sym.var("data"), shared, num_hidden=6, no_bias=True) + \
        2 * mx.sym.FullyConnected(mx.sym.var("data"), shared, num_hidden=6, no_bias=True)
    gradient = mx.nd.zeros((6, 400))
    exe = net.bind(mx.cpu(), {"data": mx.nd.array(data), "w": mx.nd.array(weight)}, args_grad={"w": gradient})
    exe.forward(is_train=True)
    exe.backward(mx.nd.ones((8, 6)))
    np.testing.assert_allclose(gradient.asnumpy(), 3 * data.sum(0).expand(6, -1), rtol=1e-5, atol=1e-5)
