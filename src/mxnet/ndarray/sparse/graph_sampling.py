"""Operators on graphs stored as CSRNDArray, declared in ``ops.graph_sampling``."""
from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from ...base import MXNetError
from ...context import cpu
from ...ops import random_state
from ..ndarray import NDArray
from .arrays import CSRNDArray
from .dispatch import kernel

if TYPE_CHECKING:
    from ...context import Context
    from ...ops.registry import Operator
    from .dispatch import Kernel

_log = logging.getLogger("mxnet")


def _graph(op: Operator, array: NDArray) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    if not isinstance(array, CSRNDArray):
        raise MXNetError(f"{op.name}: the graph must be a CSRNDArray, received {array.stype}")
    return array._values, array._aux[0], array._aux[1]


def _dense(tensor: torch.Tensor, ctx: Context) -> NDArray:
    return NDArray._new(tensor, ctx)


def _single(results: list[Any]) -> Any:
    return results[0] if len(results) == 1 else results


def _on_host(compute: Kernel) -> Kernel:
    """Return a kernel that walks through graphs on the host, for graphs on a GPU, too; the results go there."""
    @functools.wraps(compute)
    def walk(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
        ctx = arrays[0]._ctx
        if ctx.device_type != "gpu":
            return compute(op, arrays, attributes)
        results = compute(op, [a._on(cpu()) for a in arrays], attributes)
        return [r._on(ctx) for r in results] if isinstance(results, list) else results._on(ctx)
    return walk


@kernel("_contrib_getnnz")
def _getnnz(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    values, indptr, _ = _graph(op, arrays[0])
    axis = attributes.get("axis")
    if axis is None:
        return _dense(indptr[-1:].clone(), arrays[0]._ctx)
    if axis != 1:
        raise MXNetError(f"{op.name}: `axis` must be None or 1 (0 is not supported), received {axis}")
    return _dense(indptr.diff(), arrays[0]._ctx)


@kernel("_contrib_edge_id")
def _edge_id(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    values, indptr, columns = _graph(op, arrays[0])
    u, v = (a._data.to(torch.int64) for a in arrays[1:])
    rows, width = arrays[0].shape
    if u.shape != v.shape or u.dim() != 1:
        raise MXNetError(f"{op.name}: `u` and `v` must be vectors of one length, received {tuple(u.shape)} and {tuple(v.shape)}")
    if u.numel() and (int(u.min()) < 0 or int(u.max()) >= rows):
        raise MXNetError(f"{op.name}: `u` names rows outside of a matrix with {rows}")
    # Each stored place as one number, in order, so that the wanted ones can be searched for.
    keys, order = (arrays[0]._row_numbers() * width + columns).sort()
    missing = torch.full_like(u, -1, dtype=values.dtype)
    if len(keys) == 0:
        return _dense(missing, arrays[0]._ctx)
    wanted = u * width + v
    at = torch.searchsorted(keys, wanted).clamp_(max=len(keys) - 1)
    present = (keys[at] == wanted) & (v >= 0) & (v < width)
    return _dense(torch.where(present, values[order[at]], missing), arrays[0]._ctx)


@kernel("_contrib_dgl_adjacency")
def _adjacency(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    values, indptr, columns = _graph(op, arrays[0])
    return CSRNDArray._make(torch.ones(len(values), device=values.device), [indptr.clone(), columns.clone()], arrays[0].shape, arrays[0]._ctx)


@kernel("_contrib_dgl_subgraph")
@_on_host
def _subgraph(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    graph, *sets = arrays
    values, indptr, columns = _graph(op, graph)
    renumbered: list[CSRNDArray] = []
    original: list[CSRNDArray] = []
    for s in sets:
        vertices = s._data.to(torch.int64)
        if len(vertices) > 1 and not bool((vertices.diff() >= 0).all()):
            raise MXNetError(f"{op.name}: vertices in ascending order expected")
        if len(vertices) and (int(vertices[0]) < 0 or int(vertices[-1]) >= graph.shape[0]):
            raise MXNetError(f"{op.name}: a vertex list goes from {int(vertices[0])} to {int(vertices[-1])}, the graph has {graph.shape[0]} vertices")
        number = torch.full((max(graph.shape),), -1)
        number[vertices] = torch.arange(len(vertices))
        rows = number[graph._row_numbers()]
        edges = ((rows >= 0) & (number[columns] >= 0)).nonzero().flatten()
        counts = torch.bincount(rows[edges], minlength=len(vertices))
        starts = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        shape = (len(vertices), len(vertices))
        for graphs, data in ((renumbered, torch.arange(len(edges), dtype=values.dtype)), (original, values[edges])):
            graphs.append(CSRNDArray._make(data, [starts.clone(), number[columns[edges]]], shape, graph._ctx))
    return _single(renumbered + original if attributes["return_mapping"] else renumbered)


@kernel("_contrib_dgl_graph_compact")
@_on_host
def _compact(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    n = len(arrays) // 2
    sizes = attributes["graph_sizes"]
    if len(arrays) != 2 * n or len(sizes) != n:
        raise MXNetError(f"{op.name}: {n} graphs need as many vertex lists and `graph_sizes`; received {len(arrays)} arrays and {len(sizes)} sizes")
    renumbered: list[CSRNDArray] = []
    original: list[CSRNDArray] = []
    for graph, listed, size in zip(arrays[:n], arrays[n:], sizes):
        values, indptr, columns = _graph(op, graph)
        vertices = listed._data.to(torch.int64)
        if int(vertices[-1]) != size or len(vertices) != len(indptr):
            raise MXNetError(f"{op.name}: the vertex list says it has {int(vertices[-1])} vertices and room for {len(vertices) - 1}; "
                             f"`graph_sizes` says {size}, and the graph has {len(indptr) - 1} rows")
        number = torch.full((graph.shape[1],), -1)
        number[vertices[:size]] = torch.arange(size)
        columns = number[columns]
        if len(columns) and int(columns.min()) < 0:
            raise MXNetError(f"{op.name}: the graph has edges to vertices that are not in the vertex list, received {size} vertices")
        for graphs, data in ((renumbered, torch.arange(len(values), dtype=values.dtype)), (original, values.clone())):
            graphs.append(CSRNDArray._make(data, [indptr[:size + 1].clone(), columns.clone()], (size, size), graph._ctx))
    return _single(renumbered + original if attributes["return_mapping"] else renumbered)


@kernel("_contrib_dgl_csr_neighbor_uniform_sample")
@_on_host
def _uniform(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    graph, *seeds = arrays
    samples = [_sample(op, graph, None, s, **attributes) for s in seeds]
    return [f[i] for i in (0, 1, 3) for f in samples]


@kernel("_contrib_dgl_csr_neighbor_non_uniform_sample")
@_on_host
def _non_uniform(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    graph, probability, *seeds = arrays
    if probability.shape != (graph.shape[0],):
        raise MXNetError(f"{op.name}: `probability` must have one value for each of the {graph.shape[0]} vertices, "
                         f"received shape {probability.shape}")
    samples = [_sample(op, graph, probability._data, s, **attributes) for s in seeds]
    return [f[i] for i in range(4) for f in samples]


def _sample(op: Operator, graph: CSRNDArray, probability: torch.Tensor | None, seed: NDArray, num_args: int = 0, num_hops: int = 1,
            num_neighbor: int = 2, max_num_vertices: int = 100) -> tuple[Any, ...]:
    """Vertices, edges, probabilities and hops of one sample; a breadth-first walk."""
    values, indptr, columns = _graph(op, graph)
    starts = indptr.tolist()
    hops = dict.fromkeys(seed._data.to(torch.int64).tolist(), 0)  # vertex -> hop, in the order of joining
    if len(hops) > max_num_vertices:
        raise MXNetError(f"{op.name}: {len(hops)} seed vertices are more than max_num_vertices={max_num_vertices}")
    outside = [v for v in hops if not 0 <= v < graph.shape[0]]
    if outside:
        raise MXNetError(f"{op.name}: seed vertex {outside[0]} is not in a graph of {graph.shape[0]} vertices")
    queue, edges, position = list(hops), {}, 0
    while position < len(queue) and len(hops) < max_num_vertices:
        vertex = queue[position]
        position += 1
        if hops[vertex] >= num_hops:
            continue
        chosen = edges[vertex] = starts[vertex] + _draw(starts[vertex + 1] - starts[vertex], num_neighbor, probability,
                                                        columns[starts[vertex]:starts[vertex + 1]])
        for neighbour in columns[chosen].tolist():
            if len(hops) >= max_num_vertices:
                break
            if neighbour not in hops:
                hops[neighbour] = hops[vertex] + 1
                queue.append(neighbour)
    if any(hops[v] < num_hops for v in queue[position:]):
        _log.warning("%s: the sample is cut short at max_num_vertices=%d; take fewer seeds or neighbours", op.name, max_num_vertices)
    members = sorted(hops)
    none = torch.empty(0, dtype=torch.int64)
    edge_numbers = torch.cat([none, *(edges.get(v, none) for v in members)])
    counts = torch.tensor([len(edges.get(v, none)) for v in members] + [0] * (max_num_vertices - len(members)), dtype=torch.int64)
    vertices = torch.zeros(max_num_vertices + 1, dtype=torch.int64)
    vertices[:len(members)], vertices[-1] = torch.tensor(members, dtype=torch.int64), len(members)
    levels = torch.zeros(max_num_vertices, dtype=torch.int64)
    levels[:len(members)] = torch.tensor([hops[v] for v in members], dtype=torch.int64)
    sampled = CSRNDArray._make(values[edge_numbers], [torch.cat([counts.new_zeros(1), counts.cumsum(0)]), columns[edge_numbers]],
                               (max_num_vertices, graph.shape[1]), graph._ctx)
    weights = None
    if probability is not None:
        weights = probability.new_zeros(max_num_vertices)
        weights[:len(members)] = probability[vertices[:len(members)]]
    return _dense(vertices, graph._ctx), sampled, None if weights is None else _dense(weights, graph._ctx), _dense(levels, graph._ctx)


def _draw(count: int, wanted: int, probability: torch.Tensor | None, columns: torch.Tensor) -> torch.Tensor:
    """`wanted` different numbers below `count`, or all, in order."""
    if count <= wanted:
        return torch.arange(count)
    generator = random_state.generator(torch.device("cpu"))
    if probability is None:
        return torch.randperm(count, generator=generator)[:wanted].sort().values
    # Where too few vertices have a chance the others are drawn after them.
    weights = probability[columns].double().clamp(min=1e-300)
    return torch.multinomial(weights, wanted, generator=generator).sort().values
