import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.kernels.gemm import matmul


@pytest.fixture
def onednn(monkeypatch):
    """As if the processor were one that prefers oneDNN, and every product large."""
    if not torch.backends.mkldnn.is_available():
        pytest.skip("torch without oneDNN")
    monkeypatch.setattr(matmul, "_prefers_onednn", lambda: True)
    monkeypatch.setattr(matmul, "_WEIGHT", 0)
    monkeypatch.setattr(matmul, "_least_work", lambda: 0)
    monkeypatch.setattr(matmul, "_WORK_IN_BATCH", 0)
    calls, original = [], matmul._onednn
    monkeypatch.setattr(matmul, "_onednn", lambda *a: calls.append(a) or original(*a))
    return calls


def numbers(*shape, seed=0):
    return torch.from_numpy(np.random.RandomState(seed).normal(size=shape).astype("float32"))


@pytest.mark.parametrize("shape", [(5, 7), (2, 3, 7), (1, 7)])
@pytest.mark.parametrize("with_bias", [True, False])
def test_linear_and_its_gradients(onednn, shape, with_bias):
    found = []
    for function in (matmul.linear, torch.nn.functional.linear):
        x, w, b = (numbers(*s, seed=i).requires_grad_() for i, s in enumerate((shape, (4, 7), (4,))))
        y = function(x, w, b if with_bias else None)
        y.backward(numbers(*shape[:-1], 4, seed=9))
        found.append([y.detach(), x.grad, w.grad, *([b.grad] if with_bias else [])])
    assert onednn
    for f, e in zip(*found):
        torch.testing.assert_close(f, e, rtol=1e-4, atol=1e-5)


def test_a_bias_of_very_many_outputs_is_left_to_onednn(onednn, monkeypatch):
    monkeypatch.setattr(matmul, "_prefers_onednn", lambda: False)
    monkeypatch.setattr(matmul, "_OUTPUTS", 4)
    monkeypatch.setattr(matmul, "HEAVY", 0)
    x, w, b = numbers(16, 7), numbers(4, 7, seed=1), numbers(4, seed=2)
    for rows, outputs, bias, asked in ((x, w, b, 1), (x, w, None, 0), (x[:15], w, b, 0), (x, w[:3], b[:3], 0)):
        onednn.clear()
        torch.testing.assert_close(matmul.linear(rows, outputs, bias), torch.nn.functional.linear(rows, outputs, bias), rtol=1e-5, atol=1e-5)
        assert len(onednn) == asked


def test_a_product_is_written_to_given_memory_in_blocks(onednn, monkeypatch):
    monkeypatch.setattr(matmul, "_BLOCK", 80)  # 20 rows of 4
    a, b, memory = numbers(7, 50).t(), numbers(7, 4, seed=1), torch.full((50, 4), 7.0)
    assert matmul.matmul(a, b, memory) is memory
    assert [len(rows) for rows, *_ in onednn] == [20, 20, 10]
    torch.testing.assert_close(memory, torch.mm(a, b), rtol=1e-5, atol=1e-5)


def test_a_transposed_matrix_is_put_in_order_only_for_many_columns(onednn, monkeypatch):
    monkeypatch.setattr(matmul, "_least_columns", lambda: 5)
    for a, columns, asked in ((numbers(7, 50).t(), 4, 0), (numbers(7, 50).t(), 5, 1), (numbers(50, 7), 4, 1)):
        onednn.clear()
        b = numbers(7, columns, seed=1)
        with torch.no_grad():  # as where gradients are computed
            torch.testing.assert_close(matmul.matmul(a, b), torch.mm(a, b), rtol=1e-5, atol=1e-5)
        assert len(onednn) == asked


def test_gradients_can_be_differentiated(onednn):
    x, w = numbers(5, 7).requires_grad_(), numbers(7, 4, seed=1).requires_grad_()
    found = []
    for function in (matmul.matmul, torch.mm):
        g, = torch.autograd.grad((function(x, w) ** 3).sum(), w, create_graph=True)
        found.append(torch.autograd.grad(g.square().sum(), (x, w)))
    for f, e in zip(*found):
        torch.testing.assert_close(f, e, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("transpose_a", [True, False])
@pytest.mark.parametrize("transpose_b", [True, False])
def test_dot_of_transposed_matrices(onednn, transpose_a, transpose_b):
    a, b = numbers(*((7, 5) if transpose_a else (5, 7))), numbers(*((4, 7) if transpose_b else (7, 4)), seed=1)
    found = mx.nd.dot(mx.nd.from_torch(a), mx.nd.from_torch(b), transpose_a=transpose_a, transpose_b=transpose_b).as_torch()
    torch.testing.assert_close(found, (a.t() if transpose_a else a) @ (b.t() if transpose_b else b), rtol=1e-4, atol=1e-5)
    assert len(onednn) == 1


@pytest.mark.parametrize("transpose_a", [True, False])
@pytest.mark.parametrize("transpose_b", [True, False])
def test_batches_and_their_gradients(onednn, transpose_a, transpose_b):
    arrays = numbers(2, 3, *((7, 5) if transpose_a else (5, 7))), numbers(2, 3, *((4, 7) if transpose_b else (7, 4)), seed=1)
    found = []
    for function in (matmul.batched, torch.matmul):
        a, b = (t.clone().requires_grad_() for t in arrays)
        y = function(a.mT if transpose_a else a, b.mT if transpose_b else b)
        y.backward(numbers(2, 3, 5, 4, seed=9))
        found.append((y.detach(), a.grad, b.grad))
    for f, e in zip(*found):
        torch.testing.assert_close(f, e, rtol=1e-4, atol=1e-5)
    assert len(onednn) == 18


def test_batches_that_do_not_match_stay_with_torch(onednn):
    assert matmul.batched(numbers(1, 5, 7), numbers(3, 7, 4)).shape == (3, 5, 4)
    assert matmul.batched(numbers(0, 5, 7), numbers(0, 7, 4)).shape == (0, 5, 4)
    assert not onednn


def test_other_types_and_small_products_stay_with_torch(onednn, monkeypatch):
    matmul.linear(numbers(5, 7).double(), numbers(4, 7).double())
    matmul.matmul(numbers(5, 7).to("meta"), numbers(7, 4).to("meta"))
    monkeypatch.setattr(matmul, "_WEIGHT", 1 << 14)
    matmul.matmul(numbers(5, 7), numbers(7, 4))
    assert not onednn


@pytest.mark.parametrize("maker, family, least, columns", [("AuthenticAMD", 25, 1 << 25, 512), ("AuthenticAMD", 26, 1 << 21, 64),
                                                            ("GenuineIntel", 6, 1 << 21, 64)])
def test_where_wide_vectors_come_in_halves_fewer_products_gain(monkeypatch, maker, family, least, columns):
    monkeypatch.setattr(matmul.processor, "maker", lambda: maker)
    monkeypatch.setattr(matmul.processor, "family", lambda: family)
    assert (matmul._least_work.__wrapped__(), matmul._least_columns.__wrapped__()) == (least, columns)


def test_shapes_that_do_not_fit_are_an_error(onednn):
    with pytest.raises(mx.MXNetError, match="dot"):
        mx.nd.dot(mx.nd.ones((5, 7)), mx.nd.ones((6, 4)))
    with pytest.raises(mx.MXNetError, match="FullyConnected"):
        mx.nd.FullyConnected(mx.nd.ones((5, 7)), mx.nd.ones((4, 6)), num_hidden=4, no_bias=True)


def test_matrices_with_gaps_are_copied_first(onednn, monkeypatch):
    seen, product = [], torch.ops.mkldnn._linear_pointwise
    monkeypatch.setattr(matmul.torch.ops.mkldnn, "_linear_pointwise", lambda *a: seen.append(a) or product(*a))
    queries, keys = numbers(6, 2, 2, 5).unbind(2)
    a, b = queries.transpose(0, 1), keys.transpose(0, 1).mT  # batches of interleaved matrices
    torch.testing.assert_close(matmul.batched(a, b), torch.matmul(a, b), rtol=1e-5, atol=1e-5)
    assert len(seen) == 2 and all(t.is_contiguous() or t.t().is_contiguous() for call in seen for t in call[:2])
