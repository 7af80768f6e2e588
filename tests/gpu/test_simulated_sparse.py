"""Sparse arrays on simulated GPUs: what the CPU stores, and all of it on the GPU."""
import numpy as np
import pytest

import mxnet as mx
from gpu_operator_runs import check_same
from mxnet.gluon import nn
from simulated_gpus import gpus, lies_on

DENSE = np.array([[0, 1.5, 0], [0, 0, 0], [-2, 0, 3], [0, 4, 0]])
OTHER = np.array([[1, 0, 2], [0, 0, 0], [0, 5, 0], [0, 0, 0]])


def check_stored(found, expected, ctx):
    assert (found.stype, found.shape, found.dtype, found.context) == (expected.stype, expected.shape, expected.dtype, ctx)
    for part in (found._values, *found._aux):
        assert lies_on(part, ctx.torch_device)
    for name in ("data", "indices", *["indptr"] * (found.stype == "csr")):
        np.testing.assert_allclose(getattr(found, name).asnumpy(), getattr(expected, name).asnumpy(), rtol=1e-6)


def check(compute, *stypes):
    """`compute` of arrays of these storage types gives the same on both."""
    expected = compute(*(mx.nd.array(v).tostype(s) for v, s in zip((DENSE, OTHER), stypes)))
    with gpus() as (gpu, _), gpu:
        found = compute(*(mx.nd.array(v, ctx=gpu).tostype(s) for v, s in zip((DENSE, OTHER), stypes)))
        if isinstance(expected, mx.nd.NDArray):
            (check_same if expected.stype == "default" else check_stored)(found, expected, gpu)
        else:
            np.testing.assert_array_equal(found, expected)


BOTH = pytest.mark.parametrize("stype", ["csr", "row_sparse"])


@BOTH
@pytest.mark.parametrize("compute", [
    lambda a: a, lambda a: a.tostype("default"), lambda a: a.copy(), lambda a: a * 2, lambda a: -a, lambda a: a.abs(), lambda a: a.square(),
    lambda a: a.astype("float64"), lambda a: a.asnumpy(), lambda a: a[1:3] if a.stype == "csr" else a.data,
    lambda a: mx.nd.cast_storage(a, "default"),
    lambda a: a.sum(), lambda a: mx.nd.sum(a, axis=0), lambda a: a.norm(), lambda a: a.as_in_context(mx.cpu()).as_in_context(a.context),
    lambda a: a + 1, lambda a: mx.nd.relu(a), lambda a: mx.nd.zeros_like(a), lambda a: mx.nd.clip(a, -1, 2), lambda a: (a > 1).asnumpy()])
def test_one_array(stype, compute):
    check(compute, stype)


@pytest.mark.parametrize("compute", [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: mx.nd.elemwise_add(a, b)])
@pytest.mark.parametrize("stypes", [("csr", "csr"), ("row_sparse", "row_sparse"), ("csr", "default"), ("default", "row_sparse")])
def test_two_arrays(stypes, compute):
    check(compute, *stypes)


@pytest.mark.parametrize("compute, stypes", [
    (lambda a, b: mx.nd.dot(a, b, transpose_a=True), ("csr", "default")), (lambda a, b: mx.nd.dot(a, b.T), ("csr", "default")),
    (lambda a, b: mx.nd.dot(a, b, transpose_a=True, forward_stype="row_sparse"), ("csr", "default")),
    (lambda a, b: mx.nd.sparse.retain(a, mx.nd.array([0, 2])), ("row_sparse", "default")),
    (lambda a, b: mx.nd.contrib.getnnz(a), ("csr", "default")), (lambda a, b: mx.nd.contrib.getnnz(a, axis=1), ("csr", "default")),
    (lambda a, b: mx.nd.contrib.edge_id(a[0:3], mx.nd.array([0, 2]), mx.nd.array([1, 1])), ("csr", "default")),
    (lambda a, b: mx.nd.cast_storage(b, "csr"), ("csr", "default")), (lambda a, b: mx.nd.cast_storage(b, "row_sparse"), ("csr", "default")),
    (lambda a, b: mx.nd.concat(a, a, dim=0), ("csr", "default")),
    (lambda a, b: mx.nd.add_n(a, a, b.tostype("row_sparse")), ("row_sparse", "default")),
    (lambda a, b: mx.nd.take(a, mx.nd.array([2, 0])), ("csr", "default")), (lambda a, b: a.slice(begin=(1,), end=(3,)), ("csr", "default"))])
def test_operators(compute, stypes):
    check(compute, *stypes)


def test_creation():
    with gpus() as (gpu, _):
        rows = mx.nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [0, 3]), shape=(5, 2), ctx=gpu)
        check_stored(rows, mx.nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [0, 3]), shape=(5, 2)), gpu)
        csr = mx.nd.sparse.csr_matrix(([1, 2, 3], [0, 2, 1], [0, 2, 2, 3]), shape=(3, 3), ctx=gpu)
        check_stored(csr, mx.nd.sparse.csr_matrix(([1, 2, 3], [0, 2, 1], [0, 2, 2, 3]), shape=(3, 3)), gpu)
        check_stored(mx.nd.sparse.csr_matrix(([5, 6], ([0, 1], [2, 0])), shape=(2, 3), ctx=gpu),
                     mx.nd.sparse.csr_matrix(([5, 6], ([0, 1], [2, 0])), shape=(2, 3)), gpu)
        for stype in ("csr", "row_sparse"):
            check_stored(mx.nd.sparse.zeros(stype, (2, 3), ctx=gpu), mx.nd.sparse.zeros(stype, (2, 3)), gpu)


@BOTH
@pytest.mark.parametrize("value", [2, np.array([[0, 0, 1], [1, 0, 0], [0, 0, 0], [0, 2, 0]])])
def test_assignment(stype, value):
    def assigned(a):
        a[:] = value
        return a

    check(assigned, stype)


def test_graphs():
    def sampled(ctx):
        contrib = mx.nd.contrib
        columns = np.array([j for i in range(5) for j in range(5) if i != j])
        graph = mx.nd.sparse.csr_matrix((np.arange(1, 21), columns, np.arange(0, 21, 4)), shape=(5, 5), dtype="int64", ctx=ctx)
        ids = mx.nd.array([0, 2, 3], dtype="int64", ctx=ctx)
        vertices, edges, hops = contrib.dgl_csr_neighbor_uniform_sample(graph, ids, num_args=2, num_hops=1, num_neighbor=4, max_num_vertices=6)
        more = contrib.dgl_csr_neighbor_non_uniform_sample(graph, mx.nd.ones(5, ctx=ctx), ids, num_args=3, num_hops=1, num_neighbor=4,
                                                           max_num_vertices=6)
        compact = contrib.dgl_graph_compact(edges, vertices, graph_sizes=(5,), return_mapping=True)
        return [contrib.dgl_adjacency(graph), *contrib.dgl_subgraph(graph, ids, return_mapping=True), vertices, edges, hops, *more, *compact]

    expected = sampled(mx.cpu())
    with gpus() as (gpu, _):
        for a, b in zip(sampled(gpu), expected, strict=True):
            (check_same if b.stype == "default" else check_stored)(a, b, gpu)


def test_files(tmp_path):
    path = str(tmp_path / "sparse.params")
    with gpus() as (gpu, _):
        arrays = [mx.nd.array(DENSE, ctx=gpu).tostype(s) for s in ("csr", "row_sparse")]
        mx.nd.save(path, arrays)
        for found, saved in zip(mx.nd.load(path), arrays):
            np.testing.assert_array_equal(found.asnumpy(), saved.asnumpy())


@pytest.mark.parametrize("kind", ["local", "device"])
def test_rows_from_a_store(kind):
    with gpus() as both:
        store = mx.kv.create(kind)
        store.init("w", mx.nd.array(DENSE, ctx=both[0]).tostype("row_sparse"))
        store.push("w", [mx.nd.array(OTHER, ctx=g).tostype("row_sparse") for g in both])
        for g in both:
            out = mx.nd.sparse.zeros("row_sparse", (4, 3), ctx=g)
            store.row_sparse_pull("w", out=out, row_ids=mx.nd.array([0, 2], ctx=g))
            assert out.context == g and lies_on(out._values, g.torch_device)
            assert out.asnumpy().tolist() == [[2, 0, 4], [0, 0, 0], [0, 10, 0], [0, 0, 0]]


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adagrad"])
def test_training_an_embedding(optimizer):
    def run(contexts):
        net = nn.Embedding(6, 3, sparse_grad=True)
        net.initialize(mx.init.One(), ctx=contexts)
        trainer = mx.gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.1})
        for words in ([1, 4], [4, 4]):
            with mx.autograd.record():
                losses = [(net(mx.nd.array([w], ctx=c)) * (1 + i)).sum() for i, (w, c) in enumerate(zip(words, contexts * 2))]
            mx.autograd.backward(losses)
            trainer.step(1)
        return net.weight.data(contexts[0])

    for two in (False, True):
        expected = run([mx.cpu(0), mx.cpu(1)][:1 + two])
        with gpus() as both:
            check_same(run(list(both[:1 + two])), expected, both[0])
