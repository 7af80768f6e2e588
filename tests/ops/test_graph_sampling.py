"""On dense arrays: what the operators say of themselves. The values are in tests/ndarray/sparse/test_graph_sampling.py."""
import pytest

import mxnet as mx

X = mx.nd.ones((3, 3))


@pytest.mark.parametrize("call", [
    lambda x: mx.nd.contrib.getnnz(x), lambda x: mx.nd.contrib.edge_id(x, mx.nd.array([0]), mx.nd.array([1])),
    lambda x: mx.nd.contrib.dgl_adjacency(x), lambda x: mx.nd.contrib.dgl_subgraph(x, mx.nd.array([0]), return_mapping=False),
    lambda x: mx.nd.contrib.dgl_csr_neighbor_uniform_sample(x, mx.nd.array([0]), num_args=2)])
def test_graphs_must_be_sparse(call):
    with pytest.raises(mx.MXNetError, match="CSRNDArray"):
        call(X)


@pytest.mark.parametrize("name, inputs, attributes, outputs", [
    ("dgl_subgraph", 3, {"num_args": 3, "return_mapping": True}, 4), ("dgl_subgraph", 3, {"num_args": 3, "return_mapping": False}, 2),
    ("dgl_graph_compact", 2, {"num_args": 2, "return_mapping": True, "graph_sizes": (3,)}, 2),
    ("dgl_csr_neighbor_uniform_sample", 3, {"num_args": 3}, 6), ("dgl_csr_neighbor_non_uniform_sample", 4, {"num_args": 4}, 8)])
def test_how_many_outputs_there_are(name, inputs, attributes, outputs):
    symbols = [mx.sym.var(f"x{i}") for i in range(inputs)]
    assert len(getattr(mx.sym.contrib, name)(*symbols, **attributes).list_outputs()) == outputs


def test_samples_are_drawn_each_time():
    assert mx.ops.get("_contrib_dgl_csr_neighbor_uniform_sample").stochastic and not mx.ops.get("_contrib_dgl_subgraph").stochastic
