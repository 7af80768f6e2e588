"""Operators on graphs stored as CSR matrices, made for DGL: row i holds the edges of vertex i, their values are the edges' numbers.

What they are is declared here; they work on CSRNDArray only, in ``ndarray.sparse.graph_sampling``.
"""
from typing import Optional

from ..base import MXNetError
from .registry import op
from .schema import Shape


def _refuse(name, data):
    if data.device.type == "meta":
        raise NotImplementedError  # what comes out depends on the graph
    raise MXNetError(f"{name} works on graphs stored as CSRNDArray only; convert with x.tostype('csr')")


@op("_contrib_getnnz", no_gradient=True)
def getnnz(data, *, axis: Optional[int] = None):
    """How many values a CSRNDArray stores, int64: in all, or in each row (``axis=1``)."""
    _refuse("_contrib_getnnz", data)


@op("_contrib_edge_id", no_gradient=True, amp="widest")
def edge_id(data, u, v):
    """The values that the CSRNDArray `data` stores at rows `u` (n,) and columns `v` (n,); -1 where it stores none."""
    _refuse("_contrib_edge_id", data)


@op("_contrib_dgl_adjacency", no_gradient=True, amp="widest")
def dgl_adjacency(data):
    """The CSRNDArray `data` with all stored values 1, float32."""
    _refuse("_contrib_dgl_adjacency", data)


@op("_contrib_dgl_subgraph", num_outputs=lambda a: (a["num_args"] - 1) * (2 if a["return_mapping"] else 1), no_gradient=True, amp="widest")
def dgl_subgraph(graph, *data, num_args: int = 2, return_mapping: bool):
    """The subgraphs of the CSRNDArray `graph` (int64) that sets of vertices induce.

    `data` are the sets, sorted int64 arrays. Vertices and edges are numbered anew; with `return_mapping` the subgraphs come a second time,
    with the numbers the edges have in `graph`.
    """
    _refuse("_contrib_dgl_subgraph", graph)


@op("_contrib_dgl_graph_compact", num_outputs=lambda a: a["num_args"] // 2 * (2 if a["return_mapping"] else 1), no_gradient=True, amp="widest")
def dgl_graph_compact(*graph_data, num_args: int = 2, return_mapping: bool, graph_sizes: Shape):
    """Graphs that the sampling operators made, without their empty rows and columns.

    First come the graphs, then for each the vertices that were sampled; `graph_sizes` are their numbers. Edges are numbered anew; with
    `return_mapping` the graphs come a second time, with the numbers the edges had.
    """
    _refuse("_contrib_dgl_graph_compact", graph_data[0])


@op("_contrib_dgl_csr_neighbor_uniform_sample", num_outputs=lambda a: 3 * (a["num_args"] - 1), no_gradient=True, draws=True, amp="widest")
def dgl_csr_neighbor_uniform_sample(csr_matrix, *seed_arrays, num_args: int = 2, num_hops: int = 1, num_neighbor: int = 2,
                                    max_num_vertices: int = 100):
    """Subgraphs around seed vertices: `num_hops` times the sampled vertices' neighbours join, at most `num_neighbor` of each.

    Returns, for all seed arrays (int64) one kind after the other: the vertices (max_num_vertices + 1,), of which the last element says
    how many there are; the sampled edges, a CSRNDArray (max_num_vertices, vertices of the graph) with a row for each of them; and
    the hop at which each vertex joined (max_num_vertices,).
    """
    _refuse("_contrib_dgl_csr_neighbor_uniform_sample", csr_matrix)


@op("_contrib_dgl_csr_neighbor_non_uniform_sample", num_outputs=lambda a: 4 * (a["num_args"] - 2), no_gradient=True, draws=True, amp="widest")
def dgl_csr_neighbor_non_uniform_sample(csr_matrix, probability, *seed_arrays, num_args: int = 3, num_hops: int = 1, num_neighbor: int = 2,
                                        max_num_vertices: int = 100):
    """As ``dgl_csr_neighbor_uniform_sample``, where neighbours are drawn in proportion to `probability` (vertices of the graph,), float32.

    Before the hops come the probabilities of the sampled vertices (max_num_vertices,).
    """
    _refuse("_contrib_dgl_csr_neighbor_non_uniform_sample", csr_matrix)


__all__ = ["dgl_adjacency", "dgl_csr_neighbor_non_uniform_sample", "dgl_csr_neighbor_uniform_sample", "dgl_graph_compact", "dgl_subgraph",
           "edge_id", "getnnz"]
