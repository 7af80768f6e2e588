"""Batch tiling, a pass of the `kernels` backend: the first layers of a graph run on a few images at a time.

Early layers of a large batch compute arrays that exceed the caches, so that each layer waits for the memory, to read and to write. Layers process
images independently: in a run of all these layers on a few images, each layer finds its input in the cache. Later layers, whose arrays
are small and whose weights are large, run on the whole batch.
"""
import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import fx

from .... import processor
from ....kernels.conv.prepacked_conv import PrepackedConv
from ....kernels.runtime.strided_output import StridedOutputLayer, new_images
from ...instrumentation import record_origins
from ...passes import layout
from ...program import FxNode, GraphModule, Program, holds
from .concat_in_place import ConcatBuffer, complete, copy_into


class Limits(NamedTuple):
    """The sizes from which on, and up to which, layers run on tiles.

    Attributes
    ----------
    large : int
        Bytes read and written by a layer that do not stay in the last-level cache for the next one.
    tile : int
        Bytes of the largest array of a tile: such arrays stay in the last-level cache, and larger tiles read weights less often. With 480 MB 16 MB
        were faster than 4 by a tenth.
    work_per_byte : int
        Multiplications for each byte read and written: with more, the computation hides memory latency.
    image : int
        Least bytes of one image for a separate call, four times as many without multiplications, so that calls are short.
    rereads : int
        Least number of bytes for each byte of weights, which every call reads again.
    """

    large: int = min(max(processor.last_cache() // 4, 4 << 20), 24 << 20)
    tile: int = min(max(processor.last_cache() // 8, 4 << 20), 16 << 20)
    work_per_byte: int = 32
    image: int = 768 << 10
    rereads: int = 4


limits = Limits()  # replaced by tests, and by measurements of other sizes


class BatchTiles:
    """A layer that runs a subgraph on tiles of a batch.

    Parameters
    ----------
    module : torch.fx.GraphModule
        From images to one array; if `writes`, it also takes the array for its result.
    images : int
        The number of images of a tile; the batch is a multiple of it.
    shape : tuple of int
        The result's, (N, C, H, W).
    writes : bool
    """

    __name__ = "batch_tiling"  # in generated code and profiles

    def __init__(self, module: fx.GraphModule, images: int, shape: tuple[int, ...], writes: bool):
        self.module, self.images, self.shape, self.writes = module, images, shape, writes

    def __call__(self, data: torch.Tensor) -> torch.Tensor:
        out = new_images(self.shape)
        for part, to in zip(data.split(self.images), out.split(self.images)):
            if self.writes:
                self.module(part, to)
            else:
                to.copy_(self.module(part))
        return out


def targets(graph: fx.Graph) -> Iterator[Any]:
    """Yield the targets of a graph's nodes, including those of tiled subgraphs."""
    for node in graph.nodes:
        yield node.target
        if isinstance(node.target, BatchTiles):
            yield from targets(node.target.module.graph)


def apply(program: Program) -> list[str]:
    """Tile the first layers of a program, if they are large; return the lines of a report."""
    data = next((n for n in program.placeholders if n not in program.constants and n.users), None)
    shape = None if data is None else program.shape(data)
    if shape is None or len(shape) != 4 or shape[0] < 2:
        return []
    nodes = _beginning(program, data)
    last = _cut(program, nodes, data, shape[0])
    if last is None:
        return []
    nodes = nodes[:nodes.index(last) + 1]
    if sum(_work(program, n) for n in nodes) > limits.work_per_byte * sum(_traffic(program, n) for n in nodes):
        return []
    largest = max(_bytes(program, n) for n in nodes) // shape[0]
    images = max((n for n in range(1, shape[0] + 1) if shape[0] % n == 0 and n * largest <= limits.tile), default=1)
    if images == shape[0]:
        return []
    graph, tiles = program.graph, _part(program, nodes, data, images)
    with graph.inserting_after(last):
        new = graph.call_function(tiles, (data,))
    record_origins(new, *nodes)
    program.values[new] = program.values[last]
    last.replace_all_uses_with(new)
    for node in reversed(nodes):
        graph.erase_node(node)
    calls = len(nodes) - 1 + sum(n.op == "call_function" for n in graph.nodes)
    return [f"kernels: the first {len(nodes)} of {calls} calls on {images} of {shape[0]} images at a time"]


def _beginning(program: Program, data: FxNode) -> list[FxNode]:
    """Return the nodes before the first one that may combine several images."""
    nodes: dict[FxNode, None] = {}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            continue
        inputs = node.all_input_nodes
        if not (_alone(program, node, data) and all(n is data or n in nodes for n in inputs) and (inputs or isinstance(node.target, ConcatBuffer))):
            break
        nodes[node] = None
    return list(nodes)


def _alone(program: Program, node: FxNode, data: FxNode) -> bool:
    """Return True if a node processes each image independently."""
    if isinstance(node.target, (StridedOutputLayer, ConcatBuffer)) or node.target in (copy_into, complete):
        return True
    value, shape = program.values.get(node), program.shape(data) or ()
    if not isinstance(value, torch.Tensor) or value.dim() != 4 or value.shape[0] != shape[0] or value.dtype is not torch.float32:
        return False
    return node.target is layout.channels_last or holds(node, "layout_agnostic")


def _bytes(program: Program, node: FxNode) -> int:
    value = program.values.get(node)
    return value.numel() * value.element_size() if isinstance(value, torch.Tensor) else 0


def _traffic(program: Program, node: FxNode) -> int:
    """Return the bytes that a node reads and writes."""
    return 0 if isinstance(node.target, ConcatBuffer) else _bytes(program, node) + sum(_bytes(program, n) for n in node.all_input_nodes)


def _work(program: Program, node: FxNode) -> int:
    """Return the multiplications of a convolution; 0 for other nodes."""
    return node.target.work(program.shape(node.args[0]) or ()) if isinstance(node.target, PrepackedConv) else 0


def _large(program: Program, node: FxNode, images: int) -> bool:
    """Return True if a node is slower on the whole batch than on tiles of `images`, for each of which its weights are read again."""
    traffic, work, shape = _traffic(program, node), _work(program, node), program.shape(node)
    if shape is None or traffic < limits.large or work > limits.work_per_byte * traffic:
        return False
    batch, _, *sizes = shape
    weights = 4 * work // (batch * math.prod(sizes))
    return traffic >= batch * max(limits.image if work else 4 * limits.image, limits.rereads * weights // images)


def _cut(program: Program, nodes: list[FxNode], data: FxNode, batch: int) -> FxNode | None:
    """Return the node where the tiled part ends: the rest reads only its result, and it lies behind the last large node, if possible."""
    place = {n: i for i, n in enumerate(nodes)}
    largest = itertools.accumulate((_bytes(program, n) for n in nodes), max)
    large = [i for i, (n, most) in enumerate(zip(nodes, largest)) if _large(program, n, max(limits.tile * batch // max(most, 1), 1))]
    if not large or any(user not in place for user in data.users):
        return None
    behind = [max((place.get(user, len(nodes)) for user in n.users), default=len(nodes)) for n in nodes]  # where each is read last
    cuts = [i for i, n in enumerate(nodes) if not isinstance(n.target, ConcatBuffer) and all(end <= i for end in behind[:i]) and _bytes(program, n)
            and not n.kwargs.get("into") and all(place.get(user, i) <= i for user in data.users)]
    cut = next((i for i in cuts if i >= large[-1]), max(cuts, default=-1))
    return nodes[cut] if cut >= large[0] else None


def _part(program: Program, nodes: list[FxNode], data: FxNode, images: int) -> BatchTiles:
    """Return these nodes as a tiled layer."""
    graph, last = fx.Graph(), nodes[-1]
    env = {data: graph.placeholder("data")}
    writes = isinstance(last.target, StridedOutputLayer)
    to = graph.placeholder("to") if writes else None
    for node in nodes:
        new = env[node] = graph.node_copy(node, lambda n: env[n])
        if isinstance(node.target, ConcatBuffer):
            new.target = ConcatBuffer((images, *node.target.shape[1:]))
        elif isinstance(program.values.get(node), torch.Tensor):
            new.meta["shape"] = (images, *program.values[node].shape[1:])
    if writes:
        env[last].kwargs = {**last.kwargs, "into": to, "first": 0}
    graph.output(env[last])
    return BatchTiles(GraphModule(torch.nn.Module(), graph), images, tuple(program.values[last].shape), writes)
