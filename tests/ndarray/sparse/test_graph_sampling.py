"""Operators on graphs stored as CSRNDArray; values are those of MXNet 1.9.1."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import nd

C = nd.contrib
COLUMNS = [1, 2, 3, 4, 0, 2, 3, 4, 0, 1, 3, 4, 0, 1, 2, 4, 0, 1, 2, 3]


@pytest.fixture
def graph():
    """All edges between five vertices, numbered 1 to 20."""
    return nd.sparse.csr_matrix((np.arange(1, 21), np.array(COLUMNS), np.arange(0, 21, 4)), shape=(5, 5), dtype="int64")


def ids(*values):
    return nd.array(values, dtype="int64")


def parts(csr):
    return csr.indptr.asnumpy().tolist(), csr.indices.asnumpy().tolist(), csr.data.asnumpy().tolist()


def test_getnnz(graph):
    assert C.getnnz(graph).asnumpy().tolist() == [20] and C.getnnz(graph, axis=1).asnumpy().tolist() == [4] * 5
    with pytest.raises(mx.MXNetError, match="`axis` must be None or 1"):
        C.getnnz(graph, axis=0)
    with pytest.raises(mx.MXNetError, match="works on graphs stored as CSRNDArray only"):
        C.getnnz(nd.ones((2, 2)))


def test_edge_id(graph):
    found = C.edge_id(graph, nd.array([0, 1, 4]), nd.array([0, 2, 3]))
    assert found.dtype == np.int64 and found.asnumpy().tolist() == [-1, 6, 20]
    assert C.edge_id(graph.astype("float32"), ids(2), ids(4)).asnumpy().tolist() == [12.0]
    with pytest.raises(mx.MXNetError, match="outside of a matrix with 5"):
        C.edge_id(graph, ids(5), ids(0))


def test_adjacency(graph):
    found = C.dgl_adjacency(graph)
    assert found.dtype == np.float32 and parts(found) == (list(range(0, 21, 4)), COLUMNS, [1.0] * 20)


def test_subgraph(graph):
    new, old = C.dgl_subgraph(graph, ids(0, 2, 3), return_mapping=True)
    assert parts(new) == ([0, 2, 4, 6], [1, 2, 0, 2, 0, 1], [0, 1, 2, 3, 4, 5])
    assert parts(old) == ([0, 2, 4, 6], [1, 2, 0, 2, 0, 1], [2, 3, 9, 11, 13, 15])
    assert [g.shape for g in C.dgl_subgraph(graph, ids(0, 2, 3), ids(1, 4), return_mapping=False)] == [(3, 3), (2, 2)]
    with pytest.raises(mx.MXNetError, match="in ascending order expected"):
        C.dgl_subgraph(graph, ids(3, 2), return_mapping=False)
    with pytest.raises(mx.MXNetError, match="from 2 to 7, the graph has 5 vertices"):
        C.dgl_subgraph(graph, ids(2, 7), return_mapping=False)


def test_sample_of_all_neighbours(graph):
    vertices, edges, hops = C.dgl_csr_neighbor_uniform_sample(graph, ids(0, 3), num_args=2, num_hops=1, num_neighbor=4, max_num_vertices=6)
    assert vertices.asnumpy().tolist() == [0, 1, 2, 3, 4, 0, 5]
    assert edges.shape == (6, 5) and parts(edges) == ([0, 4, 4, 4, 8, 8, 8], [1, 2, 3, 4, 0, 1, 2, 4], [1, 2, 3, 4, 13, 14, 15, 16])
    assert hops.asnumpy().tolist() == [0, 1, 1, 0, 1, 0]
    compact = C.dgl_graph_compact(edges, vertices, graph_sizes=(5,), return_mapping=False)
    assert parts(compact) == ([0, 4, 4, 4, 8, 8], [1, 2, 3, 4, 0, 1, 2, 4], list(range(8)))
    with pytest.raises(mx.MXNetError, match="`graph_sizes` says 4"):
        C.dgl_graph_compact(edges, vertices, graph_sizes=(4,), return_mapping=False)


def test_sample_cut_short_and_of_several_seeds(graph):
    out = C.dgl_csr_neighbor_uniform_sample(graph, ids(0), ids(1), num_args=3, num_hops=1, num_neighbor=5, max_num_vertices=3)
    assert [o.asnumpy().tolist() for o in out[:2] + out[4:]] == [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 1], [1, 0, 1]]
    assert parts(out[3]) == ([0, 0, 4, 4], [0, 2, 3, 4], [5, 6, 7, 8])
    with pytest.raises(mx.MXNetError, match="3 seed vertices are more than max_num_vertices=2"):
        C.dgl_csr_neighbor_uniform_sample(graph, ids(0, 1, 2), num_args=2, max_num_vertices=2)


def test_sample_draws_some_neighbours(graph):
    mx.random.seed(1)
    seen = set()
    for _ in range(30):
        _, edges, _ = C.dgl_csr_neighbor_uniform_sample(graph, ids(2), num_args=2, num_hops=1, num_neighbor=2, max_num_vertices=5)
        columns = edges.indices.asnumpy().tolist()
        assert len(columns) == 2 and columns == sorted(columns) and edges.data.asnumpy().tolist() == [{0: 9, 1: 10, 3: 11, 4: 12}[c] for c in columns]
        seen.update(columns)
    assert seen == {0, 1, 3, 4}


def test_sample_in_proportion(graph):
    chances = nd.array([0.9, 0.8, 0.2, 0.4, 0.0])
    for _ in range(10):
        vertices, edges, weights, hops = C.dgl_csr_neighbor_non_uniform_sample(graph, chances, ids(0), num_args=3, num_hops=1, num_neighbor=3,
                                                                               max_num_vertices=6)
        assert vertices.asnumpy().tolist() == [0, 1, 2, 3, 0, 0, 4] and edges.indices.asnumpy().tolist() == [1, 2, 3]
    np.testing.assert_allclose(weights.asnumpy(), [0.9, 0.8, 0.2, 0.4, 0, 0], rtol=1e-6)
    assert hops.asnumpy().tolist() == [0, 1, 1, 1, 0, 0]
    with pytest.raises(mx.MXNetError, match=r"one value for each of the 5 vertices, received shape \(2,\)"):
        C.dgl_csr_neighbor_non_uniform_sample(graph, nd.ones((2,)), ids(0), num_args=3)
