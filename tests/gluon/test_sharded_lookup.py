"""Lookups in split tables, and products of csr batches with them."""
import numpy as np
import pytest

import mxnet as mx
from job_checks import outputs
from mxnet.gluon.utils import UsageError

TABLE = np.arange(21).reshape(7, 3)


def _layer(contexts=2):
    layer = mx.gluon.nn.ShardedEmbedding(7, 3)
    layer.initialize(ctx=[mx.cpu(i) for i in range(contexts)])
    layer.weight.set_data(mx.nd.array(TABLE))
    return layer


def test_indices_of_any_shape_in_parts():
    layer = _layer()
    with mx.autograd.record():
        first, second = layer([mx.nd.array([[1, 6], [1, 2]]), mx.nd.array([6], dtype="int64", ctx=mx.cpu(1))])
        total = (first * mx.nd.arange(12).reshape((2, 2, 3))).sum() + second.sum()
    total.backward()
    assert first.asnumpy().tolist() == TABLE[[[1, 6], [1, 2]]].tolist()
    assert (second.asnumpy().tolist(), second.ctx) == ([[18, 19, 20]], mx.cpu(1))
    low, high = layer.weight.list_grad()
    assert (low.indices.asnumpy().tolist(), low.data.asnumpy().tolist()) == ([1, 2], [[6, 8, 10], [9, 10, 11]])
    assert (high.indices.asnumpy().tolist(), high.data.asnumpy().tolist()) == ([3], [[4, 5, 6]])


def test_products_with_csr_batches_in_parts():
    layer = _layer()
    dense = np.float32([[0, 1, 0, 0, 0, 0, 2], [0, 0, 0, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0, 4]])
    parts = [mx.nd.array(dense[:1]).tostype("csr"), mx.nd.array(dense[1:], ctx=mx.cpu(1)).tostype("csr")]
    with mx.autograd.record():
        found = layer(parts)
        total = found[0].sum() + 10 * found[1].sum()
    total.backward()
    assert np.concatenate([part.asnumpy() for part in found]).tolist() == (dense @ TABLE).tolist()
    low, high = layer.weight.list_grad()
    assert (low.indices.asnumpy().tolist(), low.data.asnumpy().tolist()) == ([0, 1], [[30] * 3, [1] * 3])
    assert (high.indices.asnumpy().tolist(), high.data.asnumpy().tolist()) == ([3], [[42] * 3])
    with mx.autograd.record():
        total = layer(mx.nd.array([[5] + [0] * 6]).tostype("csr")).sum()  # nothing for the second part
    total.backward()
    low, high = layer.weight.list_grad()
    assert (low.data.asnumpy().tolist(), high.indices.shape) == ([[5] * 3], (0,))


def test_errors():
    layer = _layer()
    with pytest.raises(UsageError, match="indices are from 0 to 6, received 7"):
        layer(mx.nd.array([1, 7]))
    with pytest.raises(UsageError, match="indices are from 0 to 6, received -2"):
        layer(mx.nd.array([-2]))
    with pytest.raises(UsageError, match=r"csr batches of 7 columns expected, received shape \(1, 6\)"):
        layer(mx.nd.array([[0, 0, 0, 1, 0, 0]]).tostype("csr"))
    with pytest.raises(UsageError, match=r"the parts of a batch are all csr, or all dense, received \['csr', 'default'\]"):
        layer([mx.nd.array([[0, 0, 0, 1, 0, 0, 0]]).tostype("csr"), mx.nd.array([1])])
    outside = mx.nd.sparse.csr_matrix(([1.], [7], [0, 1]), shape=(1, 7))
    with pytest.raises(UsageError, match="columns are from 0 to 6, received 7"):
        layer(outside)


def test_two_ranks():
    found = outputs("""
        layer = mx.gluon.nn.ShardedEmbedding(7, 3)
        layer.initialize()
        layer.weight.set_data(mx.nd.arange(21).reshape((7, 3)))
        with mx.autograd.record():
            out = layer(mx.nd.array([[1, 6, 1], [4]][kv.rank]))
            total = out.sum() * (1 + kv.rank)
        total.backward()
        grad = layer.weight.grad()
        print(out.asnumpy()[:, 0].tolist(), grad.indices.asnumpy().tolist(), grad.data.asnumpy()[:, 0].tolist())
        try:
            layer(mx.nd.array([[3], [-5]][kv.rank]))
        except mx.MXNetError as error:
            print(str(error).split(': ')[1])
    """, kind="dist_sync")
    error = "indices are from 0 to 6, received -5"
    assert found == [["[3.0, 18.0, 3.0] [1] [2.0]", error], ["[12.0] [1, 3] [2.0, 1.0]", error]]
