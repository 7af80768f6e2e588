"""Operators on graphs stored as CSR matrices, made for DGL: row i holds the edges of vertex i, their values are the edges' numbers.

This module contains the declarations only; ``ndarray.sparse.graph_sampling`` implements them, for CSRNDArray.
"""
from typing import Optional

from ..base import MXNetError
from .registry import op
from .schema import Shape


def _refuse(name, data):
    if data.device.type == "meta":
        raise NotImplementedError  # the result's shape depends on the graph
    raise MXNetError(f"{name} works on graphs stored as CSRNDArray only; convert with x.tostype('csr')")


@op("_contrib_getnnz", no_gradient=True)
def getnnz(data, *, axis: Optional[int] = None):
    """Count the stored values of a CSRNDArray as int64: in all (1,), or in each row (``axis=1``).

    Raises
    ------
    MXNetError
        If `data` is stored otherwise, or `axis` is not None or 1.

    Example
    -------
    >>> graph = mx.nd.array([[0, 1, 2], [3, 0, 0], [0, 0, 0]]).tostype("csr")
    >>> mx.nd.contrib.getnnz(graph).asnumpy(), mx.nd.contrib.getnnz(graph, axis=1).asnumpy()
    (array([3]), array([2, 1, 0]))
    """
    _refuse("_contrib_getnnz", data)


@op("_contrib_edge_id", no_gradient=True, amp="widest")
def edge_id(data, u, v):
    """The values that the CSRNDArray `data` stores at rows `u` (n,) and columns `v` (n,); -1 where it stores none.

    Raises
    ------
    MXNetError
        If `data` is stored otherwise, `u` and `v` have different lengths, or a row lies outside.

    Example
    -------
    >>> graph = mx.nd.array([[0, 1, 2], [3, 0, 0], [0, 0, 0]]).tostype("csr")
    >>> mx.nd.contrib.edge_id(graph, mx.nd.array([0, 1]), mx.nd.array([2, 1])).asnumpy()
    array([ 2., -1.], dtype=float32)
    """
    _refuse("_contrib_edge_id", data)


@op("_contrib_dgl_adjacency", no_gradient=True, amp="widest")
def dgl_adjacency(data):
    """The CSRNDArray `data` with all stored values 1, float32.

    Raises
    ------
    MXNetError
        If `data` is stored otherwise.

    Example
    -------
    >>> graph = mx.nd.array([[0, 1, 2], [3, 0, 0], [0, 0, 0]]).tostype("csr")
    >>> mx.nd.contrib.dgl_adjacency(graph).asnumpy()
    array([[0., 1., 1.],
           [1., 0., 0.],
           [0., 0., 0.]], dtype=float32)
    """
    _refuse("_contrib_dgl_adjacency", data)


@op("_contrib_dgl_subgraph", num_outputs=lambda a: (a["num_args"] - 1) * (2 if a["return_mapping"] else 1), no_gradient=True, amp="widest")
def dgl_subgraph(graph, *data, num_args: int = 2, return_mapping: bool):
    """The subgraphs of the CSRNDArray `graph` (int64) that sets of vertices induce.

    `data` are the sets, sorted int64 arrays. Vertices and edges are numbered anew; with `return_mapping` the subgraphs come a second time,
    with the numbers the edges have in `graph`. `num_args` counts all inputs, and need not be given.

    Raises
    ------
    MXNetError
        If a set is not sorted, or names a vertex that there is not.

    Example
    -------
    >>> graph = mx.nd.array([[0, 1, 2], [3, 0, 0], [0, 4, 0]], dtype="int64").tostype("csr")     # edges 1 to 4
    >>> new, old = mx.nd.contrib.dgl_subgraph(graph, mx.nd.array([1, 2], dtype="int64"), return_mapping=True)
    >>> old.asnumpy()
    array([[0, 0],
           [4, 0]])
    """
    _refuse("_contrib_dgl_subgraph", graph)


@op("_contrib_dgl_graph_compact", num_outputs=lambda a: a["num_args"] // 2 * (2 if a["return_mapping"] else 1), no_gradient=True, amp="widest")
def dgl_graph_compact(*graph_data, num_args: int = 2, return_mapping: bool, graph_sizes: Shape):
    """Graphs that the sampling operators made, without their empty rows and columns.

    First come the graphs, then for each the vertices that were sampled; `graph_sizes` are their numbers. Edges are numbered anew; with
    `return_mapping` the graphs come a second time, with the numbers the edges had. `num_args` counts all inputs, and need not be given.

    Raises
    ------
    MXNetError
        If `graph_sizes` does not agree with the vertices.

    Example
    -------
    >>> graph = mx.nd.array([[0, 1, 2], [3, 0, 0], [0, 4, 0]], dtype="int64").tostype("csr")     # edges 1 to 4
    >>> one = mx.nd.array([1], dtype="int64")
    >>> vertices, edges, _ = mx.nd.contrib.dgl_csr_neighbor_uniform_sample(graph, one, num_args=2, num_neighbor=2, max_num_vertices=5)
    >>> edges.shape, mx.nd.contrib.dgl_graph_compact(edges, vertices, graph_sizes=(2,), return_mapping=False).shape
    ((5, 3), (2, 2))
    """
    _refuse("_contrib_dgl_graph_compact", graph_data[0])


@op("_contrib_dgl_csr_neighbor_uniform_sample", num_outputs=lambda a: 3 * (a["num_args"] - 1), no_gradient=True, stochastic=True, amp="widest")
def dgl_csr_neighbor_uniform_sample(csr_matrix, *seed_arrays, num_args: int = 2, num_hops: int = 1, num_neighbor: int = 2,
                                    max_num_vertices: int = 100):
    """Subgraphs around seed vertices: `num_hops` times the sampled vertices' neighbours join, at most `num_neighbor` of each.

    Returns, for all seed arrays (int64) one kind after the other: the vertices (max_num_vertices + 1,), of which the last element says
    how many there are; the sampled edges, a CSRNDArray (max_num_vertices, vertices of the graph) with a row for each of them; and
    the hop at which each vertex joined (max_num_vertices,). `num_args` counts all inputs, and need not be given.

    Raises
    ------
    MXNetError
        If there are more seeds than `max_num_vertices`, or a seed is no vertex of the graph.

    Example
    -------
    >>> graph = mx.nd.array([[0, 1, 2], [3, 0, 0], [0, 4, 0]], dtype="int64").tostype("csr")     # edges 1 to 4
    >>> one = mx.nd.array([1], dtype="int64")                # its only neighbour is vertex 0, so nothing is left to chance
    >>> vertices, edges, hops = mx.nd.contrib.dgl_csr_neighbor_uniform_sample(graph, one, num_args=2, num_neighbor=2, max_num_vertices=4)
    >>> vertices.asnumpy(), edges.data.asnumpy(), hops.asnumpy()
    (array([0, 1, 0, 0, 2]), array([3]), array([1, 0, 0, 0]))
    """
    _refuse("_contrib_dgl_csr_neighbor_uniform_sample", csr_matrix)


@op("_contrib_dgl_csr_neighbor_non_uniform_sample", num_outputs=lambda a: 4 * (a["num_args"] - 2), no_gradient=True, stochastic=True, amp="widest")
def dgl_csr_neighbor_non_uniform_sample(csr_matrix, probability, *seed_arrays, num_args: int = 3, num_hops: int = 1, num_neighbor: int = 2,
                                        max_num_vertices: int = 100):
    """As ``dgl_csr_neighbor_uniform_sample``, where neighbours are drawn in proportion to `probability` (vertices of the graph,), float32.

    Before the hops come the probabilities of the sampled vertices (max_num_vertices,).

    Raises
    ------
    MXNetError
        As there, and if there is not one probability for each vertex.

    Example
    -------
    >>> graph = mx.nd.array([[0, 1, 2], [3, 0, 0], [0, 4, 0]], dtype="int64").tostype("csr")     # edges 1 to 4
    >>> zero, chances = mx.nd.array([0], dtype="int64"), mx.nd.array([1, 0, 1])     # vertex 1 never joins
    >>> sample = mx.nd.contrib.dgl_csr_neighbor_non_uniform_sample
    >>> vertices, *_ = sample(graph, chances, zero, num_args=3, num_neighbor=1, max_num_vertices=4)
    >>> vertices.asnumpy()
    array([0, 2, 0, 0, 2])
    """
    _refuse("_contrib_dgl_csr_neighbor_non_uniform_sample", csr_matrix)


__all__ = ["dgl_adjacency", "dgl_csr_neighbor_non_uniform_sample", "dgl_csr_neighbor_uniform_sample", "dgl_graph_compact", "dgl_subgraph",
           "edge_id", "getnnz"]
