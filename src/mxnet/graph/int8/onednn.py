"""MXNet's subgraph backends for CPUs: passes over a Symbol's graph that fuse layers with what follows them.

``MKLDNN`` (``ONEDNN``) makes fused nodes of convolutions and fully connected layers (`symbol.fused`), and of the products of interleaved attention.
``MKLDNN_QUANTIZE`` does so where quantization is possible, and, for a graph that was quantized and calibrated afterwards, lets such layers return
integers of their calibrated range, or real numbers, directly. Nodes, names and attributes are MXNet's.

Fused nodes on real numbers run as their subgraph, which later passes fuse in any case; on integers they save the conversion to real numbers.
"""
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ... import environment
from ...ops.elemwise.binary import quantized_elemwise_add, quantized_elemwise_mul
from ...ops.elemwise.unary import clip, identity
from ...ops.nn.activation import activation, leaky_relu
from ...ops.nn.attention import interleaved_matmul_selfatt_qk, interleaved_matmul_selfatt_valatt, selfatt_qk, selfatt_valatt
from ...ops.nn.common import channels_last
from ...ops.nn.convolution import convolution
from ...ops.nn.dense import fully_connected
from ...ops.nn.dropout import dropout
from ...ops.nn.normalization import batch_norm
from ...ops.nn.pooling import quantized_pooling
from ...ops.quantization.conversion import dequantize, requantize
from ...ops.registry import Operator, get
from ...ops.shape.joining import quantized_concat
from ...symbol.fused import SG_CONV, SG_FULLY_CONNECTED, elemwise_add
from ...symbol.node import Entry, Node, copy_graph, topological
from .quantize import text

_SIMPLE = {get(name) for name in ("square", "sqrt", "exp")}
_ABS = get("abs")


def partition(outputs: Sequence[Entry], quantize: bool = False) -> list[Entry]:
    """Return a copy of a graph with fused nodes."""
    graph = _Graph(copy_graph(outputs))
    graph.drop_identities()
    if not environment.get_bool("MXNET_DISABLE_MKLDNN_CONV_OPT"):
        graph.replace(_convolutions(graph, quantize))
    if not environment.get_bool("MXNET_DISABLE_MKLDNN_FC_OPT"):
        graph.replace(_fully_connected(graph, quantize))
    if not environment.get_bool("MXNET_DISABLE_MKLDNN_TRANSFORMER_OPT"):
        graph.replace(_attention(graph))
    if quantize:
        graph.absorb((selfatt_qk, selfatt_valatt), "MXNET_DISABLE_MKLDNN_QTRANSFORMER_FUSE_ALL", "MXNET_DISABLE_MKLDNN_QTRANSFORMER_FLOAT_OUTPUT")
        graph.absorb((SG_CONV, quantized_elemwise_add))
        graph.absorb((SG_FULLY_CONNECTED,), "MXNET_DISABLE_MKLDNN_QFC_FUSE_ALL", "MXNET_DISABLE_MKLDNN_QFC_FLOAT_OUTPUT")
        graph.absorb((quantized_elemwise_mul,), "MXNET_DISABLE_MKLDNN_QEM_FUSE_ALL", "MXNET_DISABLE_MKLDNN_QEM_FLOAT_OUTPUT")
        graph.align()
    return graph.outputs


class _Graph:
    """A graph with an index of the users of each node, for rewrites."""

    def __init__(self, outputs: list[Entry]):
        self.outputs = outputs
        self.nodes: list[Node] = []
        self.users: dict[int, list[Node]] = {}
        self.refresh()

    def refresh(self) -> None:
        """Compute the nodes and their users again, after a rewrite."""
        self.nodes, self.users = topological(self.outputs), {}
        for node in self.nodes:
            for child in {id(n): n for n, _ in node.inputs}.values():
                self.users.setdefault(id(child), []).append(node)

    def follower(self, node: Node) -> Node | None:
        """Return the single user of a node that is no output; None if there are none, or several."""
        users = self.users.get(id(node), [])
        return users[0] if len(users) == 1 and all(n is not node for n, _ in self.outputs) else None

    def redirect(self, moved: Mapping[tuple[int, int], Entry]) -> None:
        """Replace entries by others for all their users."""
        def resolved(entry: Entry) -> Entry:
            while (id(entry[0]), entry[1]) in moved:
                entry = moved[id(entry[0]), entry[1]]
            return entry

        for node in self.nodes:
            node.inputs = [resolved(e) for e in node.inputs]
        self.outputs = [resolved(e) for e in self.outputs]
        self.refresh()

    def drop_identities(self) -> None:
        """Remove identities and dropout in inference, behind operators."""
        self.redirect({(id(n), 0): n.inputs[0] for n in self.nodes if n.inputs and n.inputs[0][0].op is not None and (
            n.op is identity or n.op is dropout and n.parsed().get("mode", "training") == "training")})

    def replace(self, chains: Iterator["_Chain"]) -> None:
        """Replace each chain by a fused node."""
        for i, chain in enumerate(list(chains)):
            node = chain.fused(i)
            self.redirect({(id(chain.nodes[-1]), 0): (node, 0)})

    def absorb(self, kinds: tuple[Operator, ...], off: str = "", never_real: str = "") -> None:
        """Fuse requantization and dequantization into quantized nodes, which then return calibrated integers or real numbers instead of int32.

        `off` and `never_real` are environment variables that disable this; without `never_real` there are no real results.
        """
        if off and environment.get_bool(off):
            return
        keeps_integers = not never_real or environment.get_bool(never_real)
        for node in [n for n in self.nodes if n.op in kinds and n.op.is_quantized(n.parsed())]:
            narrow = self.follower(node)
            if narrow is None or narrow.op is not requantize or None in map(narrow.parsed().get, ("min_calib_range", "max_calib_range")):
                continue
            real = None if keeps_integers else self.follower(narrow)
            last = real if real is not None and real.op is dequantize else narrow
            node.attrs.update({"enable_float_output": "True"} if last is real else {
                end: text(narrow.parsed()[end]) for end in ("min_calib_range", "max_calib_range")})
            node._parsed = None
            self.redirect({(id(last), i): (node, i) for i in range(3)})

    def align(self) -> None:
        """Give all inputs of a quantized concatenation one range, so that none has to be rescaled."""
        for head in [n for n in self.nodes if n.op is quantized_concat]:
            joined = {id(head)}
            queue, ranged = [head], []
            while queue:
                node = queue.pop(0)
                for child in {id(n): n for n, _ in node.inputs}.values():
                    if child.op is None or id(child) in joined or any(id(user) not in joined for user in self.users[id(child)]):
                        continue
                    if {"min_calib_range", "max_calib_range"} <= set(child.attrs):
                        joined.add(id(child))
                        ranged.append(child)
                    elif child.op in (quantized_concat, quantized_pooling):
                        joined.add(id(child))
                        queue.append(child)
                if len(self.users.get(id(head), ())) == 1:
                    for user in self.users.get(id(node), ()):
                        if user.op in (quantized_concat, quantized_pooling) and id(user) not in joined:
                            joined.add(id(user))
                            queue.append(user)
            if len(ranged) < 2:
                continue
            ends = [(float(n.attrs["min_calib_range"]), float(n.attrs["max_calib_range"])) for n in ranged]
            low, high = min(0.0, *(e[0] for e in ends)), max(0.0, *(e[1] for e in ends))
            for node in ranged:
                node.attrs.update(min_calib_range=text(low), max_calib_range=text(high))
                node._parsed = None


class _Chain(NamedTuple):
    """The nodes of a future fused node; the first one is the product.

    Attributes
    ----------
    nodes : list of Node
    operator : Operator
        The fused node's operator.
    words : list of str
        The parts of its name, between ``sg_mkldnn`` and a number.
    attrs : dict of str to str
    """

    nodes: list[Node]
    operator: Operator
    words: list[str]
    attrs: dict[str, str]

    def fused(self, number: int) -> Node:
        """Return the fused node; its inputs are the chain's external inputs, in the topological order of its subgraph."""
        inner = {id(n) for n in self.nodes}
        entries = list(_outside(self.nodes[-1], inner))
        variables, counts = [], dict[str, int]()
        for (node, i), _ in entries:
            name = node.output_names()[i]
            counts[name] = counts.get(name, -1) + 1
            variables.append(Node(None, f"{name}{counts[name]}", {}))
        stands = {key: (variable, 0) for (_, key), variable in zip(entries, variables)}
        copies: dict[int, Node] = {}
        for node in self.nodes:
            inputs = [(copies[id(n)], i) if id(n) in copies else stands[id(node), k] for k, (n, i) in enumerate(node.inputs)]
            copies[id(node)] = Node(node.op, node.name, dict(node.attrs), inputs)
            if node.op is elemwise_add and inputs[1][0] in copies.values():
                copies[id(node)].inputs.reverse()  # the added array is the last input
        graph = [(copies[id(self.nodes[-1])], 0)]
        order = {id(variable): entry for (entry, _), variable in zip(entries, variables)}
        inputs = [order[id(n)] for n in topological(graph) if n.op is None]
        return Node(self.operator, "_".join(["sg_mkldnn", *self.words, str(number)]), dict(self.attrs), inputs, [graph])


def _outside(node: Node, inner: set[int]) -> Iterator[tuple[Entry, tuple[int, int]]]:
    """Yield a chain's external inputs: the entry, the id of the node that reads it, and the input's number."""
    for k, (child, i) in enumerate(node.inputs):
        if id(child) in inner:
            yield from _outside(child, inner)
        else:
            yield (child, i), (id(node), k)


def _takes(node: Node, source: Node) -> bool:
    """Return True if a node uses another exactly once, by its first output."""
    return [e for e in node.inputs if e[0] is source] == [(source, 0)]


def _chains(graph: _Graph, start: Callable[[Node], bool], accepts: Callable[[list[Node], Node], bool]) -> Iterator[list[Node]]:
    """Yield chains of nodes that begin where `start` is True, and continue while ``accepts(chain, node)`` is; no node is in two."""
    taken: set[int] = set()
    for node in graph.nodes:
        if node.op is None or not start(node):
            continue
        chain = [node]
        while (following := graph.follower(chain[-1])) is not None and id(following) not in taken and _takes(following, chain[-1]) and (
                accepts(chain, following)):
            chain.append(following)
        taken.update(map(id, chain))
        yield chain


def _attributes(node: Node) -> dict[str, Any]:
    return node.op.with_defaults(node.parsed())


def _activates(node: Node, quantize: bool, leaky: tuple[str, ...]) -> bool:
    """Return True if a node is an activation that oneDNN computes behind a product."""
    attributes = _attributes(node)
    if node.op is activation:
        return attributes["act_type"] in (("relu",) if quantize else ("relu", "sigmoid", "softrelu", "tanh"))
    return node.op is leaky_relu and attributes["act_type"] in leaky or node.op is clip and attributes["a_min"] == 0


def _convolutions(graph: _Graph, quantize: bool) -> Iterator[_Chain]:
    no_norm, no_sum, no_activation = map(environment.get_bool, (
        "MXNET_DISABLE_MKLDNN_FUSE_CONV_BN", "MXNET_DISABLE_MKLDNN_FUSE_CONV_SUM", "MXNET_DISABLE_MKLDNN_FUSE_CONV_RELU"))

    def start(node: Node) -> bool:
        return node.op is convolution and len(_attributes(node)["kernel"]) in (2, 3) and not channels_last(_attributes(node)["layout"])

    def accepts(chain: list[Node], node: Node) -> bool:
        if node.op is batch_norm:
            return not no_norm and len(chain) == 1 and node.inputs[0][0] is chain[0] and _attributes(node)["axis"] == 1
        if node.op is elemwise_add:
            return not no_sum and chain[-1].op in (convolution, batch_norm)
        if no_activation or chain[-1].op not in (convolution, batch_norm, elemwise_add):
            return False
        return not (quantize and node.op is clip and chain[-1].op is elemwise_add) and _activates(node, quantize, ("leaky", "gelu"))

    for nodes in _chains(graph, start, accepts):
        words, attrs = [], {}
        for node in nodes:
            if node.op is convolution:
                words.append("conv")
            elif node.op is batch_norm:
                words.append("bn")
                attrs["with_bn"] = "true"
            elif node.op is elemwise_add:
                words.append("add")
                attrs["with_sum"] = "true"
            else:
                words.append("act")
                attrs["with_postsum_act" if "with_sum" in attrs else "with_act"] = "true"
        yield _Chain(nodes, SG_CONV, words, attrs)


def _fully_connected(graph: _Graph, quantize: bool) -> Iterator[_Chain]:
    alone = environment.get_bool("MXNET_DISABLE_MKLDNN_FUSE_FC_ELTWISE")

    def accepts(chain: list[Node], node: Node) -> bool:
        return not alone and len(chain) == 1 and (node.op is _ABS or node.op in _SIMPLE and not quantize or
                                                  _activates(node, quantize, ("leaky", "elu", "gelu")))

    for nodes in _chains(graph, lambda node: node.op is fully_connected, accepts):
        more = len(nodes) > 1
        yield _Chain(nodes, SG_FULLY_CONNECTED, ["fully_connected", *["eltwise"] * more], {"with_eltwise": "True"} if more else {})


def _attention(graph: _Graph) -> Iterator[_Chain]:
    kinds = {interleaved_matmul_selfatt_qk: (selfatt_qk, "selfatt_qk"), interleaved_matmul_selfatt_valatt: (selfatt_valatt, "selfatt_valatt")}
    for node in graph.nodes:
        if node.op in kinds:
            operator, word = kinds[node.op]
            yield _Chain([node], operator, [word], {"heads": str(node.parsed()["heads"]), "quantized": "False", "enable_float_output": "False"})
