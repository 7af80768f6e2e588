"""The operators ``_sg_mkldnn_conv`` and ``_sg_mkldnn_fully_connected``: layers fused with the operators after them, in one node.

Such a node holds the graph that it replaces, whose variables are its inputs, in order. On real numbers it computes the same as that graph. With
`quantized` its data (and the input ``sum``) are 8-bit integers, whose ranges are further inputs: low and high of each. ``graph.int8.fused_nodes``
computes these nodes, and ``graph.int8.onednn`` creates them. The attributes and their meaning are those of MXNet's files.
"""
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, Optional

import torch

from ..base import MXNetError
from ..ops.elemwise.unary import clip
from ..ops.nn.activation import activation, leaky_relu
from ..ops.nn.convolution import convolution
from ..ops.nn.dense import fully_connected
from ..ops.nn.normalization import batch_norm
from ..ops.quantization.arithmetic import EIGHT_BITS
from ..ops.quantization.plan import Plan
from ..ops.registry import OPERATORS, Operator, get
from ..ops.schema import Finite
from .control_flow import infer, variables
from .node import Entry, Node, auxiliary, topological

elemwise_add = get("elemwise_add")
# The operators that may follow a product, and a test of the attributes with which they return no negative number.
_FOLLOWING: dict[Operator, Callable[[Mapping], bool]] = {
    activation: lambda a: a["act_type"] in ("relu", "sigmoid", "softrelu"), leaky_relu: lambda a: a["act_type"] == "leaky" and a["slope"] == 0,
    clip: lambda a: a["a_min"] >= 0, elemwise_add: lambda a: False,
    **{get(name): lambda a: True for name in ("square", "sqrt", "exp", "abs")}}
_WEIGHTS = ("weight", "bias", "gamma", "beta", "mean", "var")


class Recipe(NamedTuple):
    """The operators of a fused node: a product, an optional batch norm, and the following ones.

    Attributes
    ----------
    product : Operator
        Of a convolution or a fully connected layer.
    attributes : dict
        Its own, all of them.
    norm : dict or None
        The attributes of the batch norm.
    following : list of (Operator, dict)
        In order; `elemwise_add` adds the node's input ``sum``.
    """

    product: Operator
    attributes: dict[str, Any]
    norm: Optional[dict[str, Any]]
    following: list[tuple[Operator, dict[str, Any]]]

    @property
    def inputs(self) -> list[str]:
        """The names of the inputs before the ranges."""
        names = ["data", "weight", *([] if self.attributes["no_bias"] else ["bias"]), *(_WEIGHTS[2:] if self.norm is not None else ())]
        return [*names, *(["sum"] if self.adds else [])]

    @property
    def adds(self) -> bool:
        """True if there is an input ``sum``."""
        return any(op is elemwise_add for op, _ in self.following)

    @property
    def returns_unsigned(self) -> bool:
        """True if the results are never negative, so that integers need no sign."""
        return bool(self.following) and _FOLLOWING[self.following[-1][0]](self.following[-1][1])


def recipe_of(graph: Sequence[Entry], product: Operator) -> Recipe:
    """Return the operators of a fused node's graph as a `Recipe`.

    Raises
    ------
    MXNetError
        If it is not a chain of a product, an optional batch norm and permitted followers.
    """
    nodes = [n for n in topological(graph) if n.op is not None]
    operators = {n.op for n in nodes}
    if len(graph) != 1 or graph[0] != (nodes[-1] if nodes else None, 0) or not nodes or nodes[0].op is not product or not (
            operators <= {product, batch_norm, *_FOLLOWING}):
        raise MXNetError(f"the graph of a fused node starts with {product.name} and goes on with a batch norm, a sum and an activation, received "
                         f"{', '.join(n.op.name for n in nodes) or 'nothing'}")
    norm: dict[str, Any] | None = None
    following: list[tuple[Operator, dict[str, Any]]] = []
    for before, node in zip(nodes, nodes[1:]):
        if node.inputs[0] != (before, 0) or node.op is product or (node.op is batch_norm and before.op is not product) or (
                node.op is elemwise_add and any(op is elemwise_add for op, _ in following)):
            raise MXNetError(f"the graph of a fused node is a chain, in which '{node.name}' does not follow '{before.name}'")
        attributes = node.op.with_defaults(node.parsed())
        if node.op is batch_norm:
            norm = attributes
        else:
            following.append((node.op, attributes))
    return Recipe(product, nodes[0].op.with_defaults(nodes[0].parsed()), norm, following)


def _raise_unsupported(name: str) -> NoReturn:
    raise MXNetError(f"{name} needs the graph that it stands for; get_backend_symbol('MKLDNN') makes such nodes, and files hold them")


class Fused(Operator):
    """An operator whose uses hold the graph of the fused operators, which its rules receive as the attribute ``subgraphs``.

    Attributes
    ----------
    ends, range_names, true : tuple of str, tuple of str, str
        The names in files of the two ends of an input's range and of the outputs, and the mark of a quantized node.
    quantizes_weights : tuple of str
        The inputs that are int8 with ranges of their own, unless weights have a range for each channel. Where there are none, the node quantizes
        its weights itself.
    """

    ends: tuple[str, str]
    range_names: tuple[str, ...]
    true: str
    quantizes_weights: tuple[str, ...] = ()

    names_inputs = True  # the graph determines which of them are written to
    subgraphs = 1
    weights = (*_WEIGHTS, "min_weight", "max_weight", "min_bias", "max_bias")  # type: ignore[assignment]

    def __init__(self, name: str, declaration: Callable, product: Operator, renamed: Mapping[str, str], **traits: Any):
        super().__init__(name, declaration, num_outputs=self._count, no_gradient=True, amp=None, **traits)
        self.product, self.renamed = product, dict(renamed)
        self.shape_inference, self.dtype_inference, self.quantization = self._shapes, self._types, self._plan

        def run(*tensors: Any, **attributes: Any) -> None:
            if "subgraphs" not in attributes:
                _raise_unsupported(name)
            raise NotImplementedError  # shapes come from the rules; graph.int8.fused_nodes runs the node

        run.__module__, run.__name__, run.__doc__ = __name__, declaration.__name__, declaration.__doc__
        self.fn = self.raw = run

    def recipe(self, parsed: Mapping[str, Any]) -> Recipe:
        """Return the `Recipe` of a use from its parsed attributes."""
        if "subgraphs" not in parsed:
            _raise_unsupported(self.name)
        return recipe_of(parsed["subgraphs"][0], self.product)

    def with_defaults(self, parsed: dict[str, Any]) -> dict[str, Any]:
        return {**super().with_defaults(parsed), **parsed}

    @staticmethod
    def _count(attributes: Mapping[str, Any]) -> int:
        return 3 if attributes["quantized"] and not attributes.get("enable_float_output") else 1

    def list_output_names(self, parsed: dict[str, Any]) -> tuple[str, ...]:
        return self.range_names[:self.outputs(parsed)]

    def ranged(self, parsed: Mapping[str, Any]) -> list[str]:
        """Return the inputs whose ranges are inputs."""
        if not parsed.get("quantized"):
            return []
        return [n for n in self.recipe(parsed).inputs if n in ("data", "sum", *self._int8(parsed.get("channel_wise_quantize")))]

    def _int8(self, channel_wise: object) -> tuple[str, ...]:
        return () if channel_wise else self.quantizes_weights

    def input_names(self, parsed: dict[str, Any], count: int | None = None) -> tuple[str, ...]:
        if "subgraphs" not in parsed:
            _raise_unsupported(self.name)
        return (*self.recipe(parsed).inputs, *(end.format(n) for n in self.ranged(parsed) for end in self.ends))

    def mutated_inputs(self, parsed: dict[str, Any]) -> tuple[str, ...]:
        """Return the moving averages of a fused batch norm."""
        nodes = topological(parsed["subgraphs"][0]) if "subgraphs" in parsed else _raise_unsupported(self.name)
        aux = auxiliary(nodes)
        return tuple(name for name, node in zip(self.recipe(parsed).inputs, variables(nodes)) if id(node) in aux)

    def check(self, parsed: dict[str, Any], count: int) -> None:
        """Raise an error for a node of a file whose graph does not fit its `count` inputs.

        Raises
        ------
        MXNetError
            If it does not.
        """
        names, variable_count = self.input_names(parsed), len(variables(topological(parsed["subgraphs"][0])))
        if count != len(names) or variable_count != len(self.recipe(parsed).inputs):
            raise MXNetError(f"{self.name} has the inputs {', '.join(names)}; received {count}, and a graph of {variable_count} variables")

    def output_type(self, attributes: Mapping[str, Any]) -> torch.dtype:
        """Return the element type of the first output of a quantized use."""
        if attributes.get("enable_float_output"):
            return torch.float32
        if attributes.get("min_calib_range") is None or attributes.get("max_calib_range") is None:
            return torch.int32
        return torch.uint8 if self.recipe(attributes).returns_unsigned else torch.int8

    def _shapes(self, in_shapes: list, out_shapes: list, subgraphs: Sequence = (), **attributes: Any) -> tuple[list, list]:
        if not subgraphs:
            _raise_unsupported(self.name)
        base = len(variables(topological(subgraphs[0])))
        ins, outs = infer(subgraphs[0], in_shapes[:base], out_shapes[:1])
        return [*ins, *[(1,)] * (len(in_shapes) - base)], [*outs, *[(1,)] * (len(out_shapes) - 1)]

    def _types(self, in_types: list, out_types: list, subgraphs: Sequence = (), **attributes: Any) -> tuple[list, list]:
        if not attributes["quantized"]:
            return infer(subgraphs[0], in_types, None, types=True)
        attributes["subgraphs"] = subgraphs
        known = {"data": None, "sum": None, **dict.fromkeys(self._int8(attributes.get("channel_wise_quantize")), torch.int8)}
        ins = [t or known.get(n, torch.float32) for n, t in zip(self.input_names(attributes), in_types)]
        if ins[0] is not None and ins[0] not in EIGHT_BITS:
            raise MXNetError(f"{self.name}: `data` must be int8 or uint8 where it is quantized, received {ins[0]}")
        return ins, [self.output_type(attributes), *[torch.float32] * (len(out_types) - 1)]

    def _plan(self, attributes: dict[str, Any], channel_wise: bool) -> Plan:
        integers = ("data", "sum", *self._int8(channel_wise))
        real = frozenset(i for i, n in enumerate(self.recipe(attributes).inputs) if n not in integers)
        more = {"channel_wise_quantize": "True"} if channel_wise and self.quantizes_weights else {}
        return Plan(self, {"quantized": self.true, **more}, True, real, wide=True)


def _conv(*data, with_bn: bool = False, with_act: bool = False, with_sum: bool = False, with_postsum_act: bool = False, quantized: bool = False,
          min_calib_range: Optional[Finite] = None, max_calib_range: Optional[Finite] = None):
    """A convolution fused with the operators after it; made by ``get_backend_symbol('MKLDNN')``."""


def _fully_connected(*data, quantized: bool = False, enable_float_output: bool = False, with_eltwise: bool = False,
                     min_calib_range: Optional[Finite] = None, max_calib_range: Optional[Finite] = None,
                     channel_wise_quantize: Optional[bool] = None):
    """A fully connected layer fused with the operators after it; made by ``get_backend_symbol('MKLDNN')``."""


class _Convolution(Fused):
    ends, range_names, true = ("{}_min", "{}_max"), ("output", "output_min", "output_max"), "true"


class _FullyConnected(Fused):
    ends, range_names, true = ("min_{}", "max_{}"), ("output", "min_output", "max_output"), "True"
    quantizes_weights = ("weight", "bias")


class CachedGraph(Operator):
    """``_CachedOp``: a graph in one node, ``mx.sym._internal._CachedOp(*inputs, subgraph=json)``; it runs as that graph."""

    names_inputs = True
    subgraphs = 1
    graph_argument = "subgraph"

    def __init__(self) -> None:
        super().__init__("_CachedOp", _cached_op, num_outputs=lambda a: len(self._graph(a)), amp=None)
        self.shape_inference, self.dtype_inference = self._shapes, self._types

        def run(*tensors: Any, **attributes: Any) -> None:
            self._graph(attributes)
            raise NotImplementedError  # its nodes take its place when a graph is lowered

        run.__module__, run.__name__, run.__doc__ = __name__, "_cached_op", _cached_op.__doc__
        self.fn = self.raw = run

    def _graph(self, attributes: Mapping[str, Any]) -> Sequence[Entry]:
        if "subgraphs" not in attributes:
            raise MXNetError("_CachedOp needs the graph that it runs, as JSON: _CachedOp(*inputs, subgraph=net.tojson()); received "
                             f"{sorted(attributes)}")
        return attributes["subgraphs"][0]

    def with_defaults(self, parsed: dict[str, Any]) -> dict[str, Any]:
        return dict(parsed)

    def list_output_names(self, parsed: dict[str, Any]) -> tuple[str, ...]:
        names = [n.output_names()[i] for n, i in self._graph(parsed)]
        return tuple(names) if len(names) > 1 else ("output",)

    def input_names(self, parsed: dict[str, Any], count: int | None = None) -> tuple[str, ...]:
        return tuple(n.name for n in variables(topological(self._graph(parsed))))

    def mutated_inputs(self, parsed: dict[str, Any]) -> tuple[str, ...]:
        """Return the states that an operator of the graph writes to."""
        nodes = topological(self._graph(parsed))
        aux = auxiliary(nodes)
        return tuple(n.name for n in variables(nodes) if id(n) in aux)

    def check(self, parsed: dict[str, Any], count: int) -> None:
        """Raise an error for a node of a file whose graph does not fit its `count` inputs.

        Raises
        ------
        MXNetError
            If it does not.
        """
        names = self.input_names(parsed)
        if count != len(names):
            raise MXNetError(f"_CachedOp: its graph has the inputs {', '.join(names)}; received {count}")

    def _shapes(self, in_shapes: list, out_shapes: list, **attributes: Any) -> tuple[list, list]:
        return infer(self._graph(attributes), in_shapes, out_shapes)

    def _types(self, in_types: list, out_types: list, **attributes: Any) -> tuple[list, list]:
        return infer(self._graph(attributes), in_types, None, types=True)


def _cached_op(*data):
    """A graph that runs as one node; its JSON text is the argument `subgraph`."""


def stands_for(node: Node) -> Sequence[Entry] | None:
    """Return the equivalent graph of a node; None if it has none, as where it computes on integers."""
    if isinstance(node.op, (CachedGraph, Fused)) and not node.parsed().get("quantized"):
        return node.subgraphs[0]
    return None


OPERATORS["_CachedOp"] = CachedGraph()
SG_CONV = OPERATORS["_sg_mkldnn_conv"] = _Convolution("_sg_mkldnn_conv", _conv, convolution,
                                                      {"with_relu": "with_act", "with_postsum_relu": "with_postsum_act"}, compute_bound=True)
SG_FULLY_CONNECTED = OPERATORS["_sg_mkldnn_fully_connected"] = _FullyConnected("_sg_mkldnn_fully_connected", _fully_connected, fully_connected,
                                                                               {"with_relu": "with_eltwise"}, compute_bound=True)
