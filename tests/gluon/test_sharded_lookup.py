"""Lookups in split tables, and products of csr batches with them."""
import re

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
    for number in "nan", "inf", "-inf", "1e+30":
        with pytest.raises(UsageError, match=f"indices are from 0 to 6, received {re.escape(number)}"):
            layer(mx.nd.array([1, float(number)], dtype="float64"))
    for batch in np.ones(1), [], [np.ones(1)], 3:
        with pytest.raises(UsageError, match="an NDArray expected, or a list of them for parts of the batch on several contexts, received"):
            layer(batch)
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


def test_failures_of_one_rank_are_errors_on_all():
    """Without the check Gloo ends a rank with SIGABRT, or the others wait until this one ends."""
    found = outputs("""
        second = kv.rank == 1
        layer = mx.gluon.nn.ShardedEmbedding(7, 3, prefix='table_')
        layer.initialize()
        other = mx.gluon.nn.ShardedEmbedding(7, 3, prefix='other_')
        other.initialize()
        if second:
            other.cast('float64')
        indices, csr = mx.nd.array([3]), mx.nd.array([[0, 1, 0, 0, 0, 0, 0]]).tostype('csr')
        calls = [lambda: layer(mx.nd.array([float('nan') if second else 1])), lambda: layer(mx.nd.array([1, float('-inf') if second else 1])),
                 lambda: layer(csr if second else indices), lambda: other(indices), lambda: other(csr),
                 lambda: layer(np.ones(1) if second else indices), lambda: layer(mx.nd.ones((1, 5)).tostype('csr') if second else csr)]
        for call in calls:
            try:
                call()
            except mx.MXNetError as error:
                print(type(error).__name__, str(error).removesuffix('. All ranks make the same calls in the same order, with the same arguments'))
        print(layer(indices).shape)
    """, kind="dist_sync")
    calls, types = ["lookup in table_weight", "product with table_weight"], ["float32", "float64"]
    arrays = ("table: an NDArray expected, or a list of them for parts of the batch on several contexts, received an array of shape (1,) and type "
              "float64")
    columns = "product with table_weight: csr batches of 7 columns expected, received shape (1, 5)"
    for rank, lines in enumerate(found):
        unlike, other = f"worker {rank} and worker {1 - rank} do not do the same", 1 - rank
        different = f"{unlike}: its dtype is {types[rank]} on worker {rank} and {types[other]} on worker {other}"
        failed = "worker 1 has failed with the error: "
        assert lines == ["UsageError lookup in table_weight: indices are from 0 to 6, received nan",
                         "UsageError lookup in table_weight: indices are from 0 to 6, received -inf",
                         f"MXNetError {calls[rank]}: {unlike}: worker {other} calls {calls[other]}",
                         f"MXNetError lookup in other_weight: {different}", f"MXNetError product with other_weight: {different}",
                         f"UsageError {arrays}" if rank else f"MXNetError {calls[0]}: {failed}{arrays}",
                         f"UsageError {columns}" if rank else f"MXNetError {calls[1]}: {failed}{columns}", "(1, 3)"]
