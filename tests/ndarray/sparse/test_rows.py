"""Gradients of row_sparse arrays, whose cost is that of the rows in use; values from MXNet 1.9.1."""
import numpy as np
import pytest
import torch

import mxnet as mx
from kernel_limits import used_from
from mxnet import nd
from mxnet.ndarray.sparse import RowSparseNDArray, rows

DATA = nd.sparse.csr_matrix(([1, 2, 3], [0, 4, 0], [0, 2, 3]), shape=(2, 6))


def weight(stored=(0, 1, 2, 3, 4, 5)):
    values = np.arange(1.0, 1 + 2 * len(stored), dtype="float32").reshape(-1, 2)
    array = nd.sparse.row_sparse_array((values, list(stored)), shape=(6, 2))
    array.attach_grad()
    return array


@pytest.fixture
def no_table(monkeypatch):
    def refuse(self):
        raise AssertionError("all rows were made a dense tensor")
    monkeypatch.setattr(RowSparseNDArray, "_dense", refuse)


def test_a_token_takes_no_memory():
    made = rows.token(torch.ones(1, dtype=torch.float64), (10 ** 9, 16))
    assert made.shape == (10 ** 9, 16) and made.dtype is torch.float64 and made.untyped_storage().nbytes() == 8


@pytest.mark.parametrize("stored", [(0, 1, 2, 3, 4, 5), (0, 4), (1,), ()])
def test_a_product_gives_the_rows_of_the_matrix_a_gradient(no_table, stored):
    w = weight(stored)
    with mx.autograd.record():
        y = nd.sparse.dot(DATA, w)
    y.backward(nd.array([[1, 10], [100, 1000]]))
    assert w.grad.indices.asnumpy().tolist() == [0, 4] and w.grad.data.asnumpy().tolist() == [[301, 3010], [2, 20]]


def test_gradients_go_on_row_by_row(no_table):
    w = weight()
    with mx.autograd.record():
        y = nd.sparse.dot(DATA, nd.sparse.square(w) * 2) + nd.sparse.dot(DATA, nd._internal._square_sum(w, axis=1, keepdims=True))
    assert y.asnumpy().tolist() == [[2 + 4 * 81 + 5 + 2 * 181, 8 + 4 * 100 + 5 + 2 * 181], [6 + 15, 24 + 15]]
    y.backward()
    assert w.grad.indices.asnumpy().tolist() == [0, 4]
    assert w.grad.data.asnumpy().tolist() == [[4 * 4 * 1 + 2 * 1 * 8, 4 * 4 * 2 + 2 * 2 * 8], [4 * 2 * 9 + 2 * 9 * 4, 4 * 2 * 10 + 2 * 10 * 4]]


def test_rows_that_are_taken(no_table):
    w = weight((0, 4))
    with mx.autograd.record():
        y = nd.contrib.SparseEmbedding(nd.array([[4, 1], [4, 0]]), w, input_dim=6, output_dim=2)
    assert y.asnumpy().tolist() == [[[3, 4], [0, 0]], [[3, 4], [1, 2]]]
    y.backward(nd.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]))
    assert w.grad.indices.asnumpy().tolist() == [0, 1, 4] and w.grad.data.asnumpy().tolist() == [[7, 8], [3, 4], [6, 8]]


def test_dense_operators_get_all_rows():
    w = weight((0, 4))
    with mx.autograd.record():
        y = nd.sparse.square(w).tostype("default") + 1
    y.backward()
    assert w.grad.asnumpy().tolist() == [[2, 4], [0, 0], [0, 0], [0, 0], [6, 8], [0, 0]]
    with mx.autograd.record():
        z = (w + 1).sum()
    z.backward()
    assert z.asscalar() == 22 and w.grad.asnumpy().tolist() == [[1, 1]] * 6


def test_gradients_add_up(no_table):
    w = weight()
    w.attach_grad("add", "row_sparse")
    for _ in range(2):
        with mx.autograd.record():
            y = nd.sparse.dot(DATA, w)
        y.backward()
    assert w.grad.data.asnumpy().tolist() == [[8, 8], [4, 4]]


def test_gradients_that_are_asked_for(no_table):
    w = weight()
    with mx.autograd.record():
        y = nd.sparse.dot(DATA, w)
    gradient, = mx.autograd.grad(y, [w])
    assert gradient.stype == "row_sparse" and gradient.indices.asnumpy().tolist() == [0, 4]


@pytest.mark.parametrize("make, expected", [
    (lambda w: nd.sparse.dot(DATA, nd.sparse.square(w)), [[8, 8], [0, 0], [0, 0], [0, 0], [4, 4], [0, 0]]),
    (lambda w: nd.sparse.dot(DATA, w) ** 2, [[24, 24], [0, 0], [0, 0], [0, 0], [12, 12], [0, 0]]),
    (lambda w: nd.contrib.SparseEmbedding(nd.array([1]), w, input_dim=6, output_dim=2) ** 2, [[0, 0], [2, 2], [0, 0], [0, 0], [0, 0], [0, 0]])])
def test_gradients_of_gradients(make, expected):
    w = weight()
    with mx.autograd.record():
        gradient, = mx.autograd.grad(make(w), [w], create_graph=True)
        total = gradient.sum()
    total.backward()
    assert w.grad.asnumpy().tolist() == expected


def test_a_row_sparse_result_may_be_the_head():
    w = weight((0, 4))
    with mx.autograd.record():
        y = nd.sparse.square(w)
    y.backward()
    assert y.stype == "row_sparse" and w.grad.asnumpy()[[0, 4]].tolist() == [[2, 4], [6, 8]]


@pytest.mark.parametrize("per_row", [1, 40])  # few numbers in each row, for which there is a kernel, and many
def test_a_product_does_not_depend_on_how_it_is_computed(per_row, monkeypatch):
    random = np.random.RandomState(3)
    dense = np.zeros((60, 80), "float32")
    for row in dense:
        row[random.choice(80, per_row, replace=False)] = random.randint(1, 9, per_row)
    table = random.randint(-9, 9, (80, 64)).astype("float32")
    found = []
    for kernels_worth in (0, 1 << 62):
        used_from(monkeypatch, kernels_worth, rows.kernels)
        w = nd.sparse.row_sparse_array((table, list(range(80))), shape=(80, 64))
        w.attach_grad()
        with mx.autograd.record():
            y = nd.sparse.dot(nd.array(dense).tostype("csr"), w)
        y.backward(y)
        found.append((y.asnumpy(), w.grad.asnumpy(), nd.sparse.dot(nd.array(dense).tostype("csr"), w).asnumpy()))
    for one in found:
        assert (one[0] == dense @ table).all() and (one[1] == dense.T @ (dense @ table)).all() and (one[2] == one[0]).all()


@pytest.mark.parametrize("columns, width, per_row, dtype, ways", [
    (80, 2, 1, "float32", {"csr", "added"}), (80, 64, 1, "float64", {"csr", "coo"}), (80, 512, 40, "float32", {"dense"}),
    (80, 2, 1, "float16", {"dense"})])
def test_a_product_reads_no_more_than_pays_off(columns, width, per_row, dtype, ways, monkeypatch):
    """A dense copy of the matrix is made only where its elements are few beside the products."""
    seen = set()

    def watch(owner, name, way):
        call = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args, **kwargs: (seen.add(way), call(*args, **kwargs))[1])

    watch(rows.torch, "sparse_csr_tensor", "csr")
    watch(rows, "_added", "added")
    watch(rows.torch.sparse, "mm", "coo")
    filled = rows._filled
    monkeypatch.setattr(rows, "_filled", lambda *args: (found := filled(*args), seen.update(() if found is None else ["dense"]))[0])
    random = np.random.RandomState(4)
    dense = np.zeros((60, columns), dtype)
    for row in dense:
        row[random.choice(columns, per_row, replace=False)] = random.randint(1, 9, per_row)
    table = random.randint(-9, 9, (columns, width)).astype(dtype)
    w = nd.sparse.row_sparse_array((table, list(range(columns))), shape=table.shape)
    w.attach_grad()
    with mx.autograd.record():
        y = nd.sparse.dot(nd.array(dense, dtype=dtype).tostype("csr"), w)
    y.backward()
    assert (y.asnumpy() == dense @ table).all() and (w.grad.asnumpy() == dense.T @ np.ones_like(dense @ table)).all() and seen == ways


@pytest.mark.parametrize("starts", [[0, 1, 9], [1, 2, 3], [0, 3, 2]])
def test_rows_that_start_outside_of_the_values_are_refused(starts):
    matrix = nd.sparse.csr_matrix(([1.0, 2.0], [0, 4], [0, 1, 2]), shape=(2, 6))
    matrix._aux[0] = torch.tensor(starts)
    with pytest.raises(mx.MXNetError, match="dot: indptr of the csr matrix must rise from 0 to the number of its values, 2"):
        nd.sparse.dot(matrix, weight())
