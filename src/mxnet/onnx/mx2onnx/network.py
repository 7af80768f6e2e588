"""A Symbol and its parameters as an ONNX model."""
import inspect
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...base import MXNetError
from ...ndarray import NDArray
from ...ops import dtypes
from ...symbol.node import Entry, Node, topological
from . import operators  # noqa: F401  (registers the converters)
from .builder import Builder, Integers, Unsupported, Value, numpy_type
from .registry import arguments, find
from .sizes import entry_shapes, entry_types

LOG = logging.getLogger(__name__)


class Network:
    """The network to write: the graph, its parameters, and the shapes and types of its inputs.

    Attributes
    ----------
    outputs : list of (Node, int)
    inputs : dict of str to (shape, numpy.dtype)
        The variables that are no parameters, in order. A shape may have None, or a name, for a size that may vary.
    example : dict of str to tuple of int
        Shapes of these with a number for each size.
    parameters : dict of str to numpy.ndarray
    """

    def __init__(self, outputs: Sequence[Entry], inputs: Mapping[str, tuple], example: Mapping[str, tuple[int, ...]],
                 parameters: Mapping[str, np.ndarray]):
        self.outputs, self.inputs, self.example, self.parameters = list(outputs), inputs, example, parameters

    def convert(self, opset: int, verbose: bool = False) -> tuple[Builder, list[Value], list[Value]]:
        """Convert the network to an ONNX graph; return its nodes, its inputs and its outputs.

        Raises
        ------
        MXNetError
            If an operator has no converter, or cannot be expressed with these attributes, shapes or types; the message names the node.
        """
        shapes = entry_shapes(self.outputs, self.example, {k: v.shape for k, v in self.parameters.items()},
                              {name: shape for name, (shape, _) in self.inputs.items()})
        types = entry_types(self.outputs, {name: dtype for name, (_, dtype) in self.inputs.items()}, self.parameters)
        on, values, inputs = Builder(opset), {}, []
        for name in self.inputs:
            on.unique(name)
        for position, node in enumerate(topological(self.outputs)):
            if verbose:
                LOG.info("node %d: %s %s", position, "variable" if node.op is None else node.op.name, node.name)
            if node.op is None:
                entry = (id(node), 0)
                if node.name in self.parameters:
                    values[entry] = on.given(node.name, self.parameters[node.name])
                elif node.name in self.inputs:
                    values[entry] = Value(node.name, self.inputs[node.name][1], shapes[entry])
                    inputs.append(values[entry])
                continue
            out = [Value("", types[id(node), i], shapes[id(node), i]) for i in range(node.num_outputs())]
            for source, i in node.inputs:
                if source.op is not None and (id(source), i) not in values:
                    raise MXNetError(f"{node.op.name} '{node.name}' needs output {i} of {source.op.name} '{source.name}', which has no counterpart "
                                     "in ONNX; export a network without it")
            given = [values.get((id(n), i)) for n, i in node.inputs]
            for i, output in enumerate(convert_node(on, node, given, out)):
                values[id(node), i] = output
        results = self._results(on, values, inputs)
        on.keep_only(results)
        return on, inputs, results

    def _results(self, on: Builder, values: Mapping[tuple[int, int], Value], inputs: Sequence[Value]) -> list[Value]:
        """Return the outputs of the graph, each the result of a separate node, under MXNet's name for it."""
        results: list[Value] = []
        for node, i in self.outputs:
            if (id(node), i) not in values:
                raise MXNetError(f"output {i} of {node.op.name} '{node.name}' has no counterpart in ONNX; export a network without it: "
                                 "sym = sym[0], or mx.sym.Group of the others")
            value = values[id(node), i]
            if isinstance(value, Integers) and value.dtype == np.int32:
                raise MXNetError(f"output {i} of {node.op.name} '{node.name}' is int32 sums of products, which are written where they are "
                                 "requantized only; calibrate the network, or export one that ends in real numbers")
            if value.array is not None or any(value is v for v in (*inputs, *results)):
                value = on.Identity(value, out_shape=value.shape)
                value.name = on.unique(output_name(node, i))
            results.append(value)
        return results


def output_name(node: Node, i: int) -> str:
    """MXNet's name for an output in an ONNX file: the node's, with a number where there are several."""
    if node.op is None:
        return f"{node.name}_output"
    return node.name if node.num_outputs() == 1 or (i == 0 and node.output_names()[0] == f"{node.name}_output") else f"{node.name}{i}"


def convert_node(on: Builder, node: Node, inputs: Sequence[Value | None], out: list[Value]) -> list[Value]:
    """Convert one use of an operator; return its outputs.

    Raises
    ------
    MXNetError
        If it cannot be expressed.
    """
    known = find(node.op)
    where = f"{node.op.name} '{node.name}'"
    if known is None:
        raise MXNetError(f"{where} cannot be written to an ONNX file: there is no conversion function for this operator. "
                         "mx.onnx.get_operator_support() lists those that there are: replace it, or export the part of the network in front of it "
                         "(sym.get_internals()['..._output'])")
    name, converter = known
    op = node.op
    given, dropped = arguments(converter, name, op.with_defaults(node.parsed()), {n: a.default for n, a in op.attributes.items()})
    if converter.node:
        given["node"] = node
    on.scope, on.out, begun = node.name, out, len(on.nodes)
    try:
        if dropped:
            parsed = op.with_defaults(node.parsed())
            raise Unsupported(f"ONNX has no counterpart for {', '.join(f'{k}={parsed[k]!r}' for k in dropped)}")
        try:  # files of networks may give an operator any number of inputs
            inspect.signature(converter.function).bind(on, *inputs, **given)
        except TypeError as error:
            raise Unsupported(f"with {len(inputs)} inputs it is none that can run: {error}") from None
        outputs = converter.function(on, *inputs, **given)
        results = []
        for i, (value, expected) in enumerate(zip([outputs] if isinstance(outputs, Value) else outputs, out)):
            value = on.cast(value, expected.dtype)
            if value.shape is None:
                value.shape = expected.shape
            if any(value is made for new in on.nodes[begun:] for made in new.outputs):
                value.name = on.unique(output_name(node, i))
            results.append(value)
    except Unsupported as reason:
        raise MXNetError(f"{where} cannot be written to an ONNX file: {reason}") from None
    return results


def parameter_arrays(params: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return parameters by name, without the prefixes of files."""
    arrays = {}
    for key, value in params.items():
        name = key[4:] if key[:4] in ("arg:", "aux:") else key
        arrays[name] = _host_array(value)
    return arrays


def _host_array(value: Any) -> np.ndarray:
    """Return a parameter's values, on its own memory where that can be read: weights are not copied."""
    if isinstance(value, NDArray) and value.stype == "default" and value.context.device_type != "gpu" and value.dtype != dtypes.BFLOAT16_BITS:
        return np.asarray(value._raw().numpy(force=True), order="C")
    array = value.asnumpy() if hasattr(value, "asnumpy") else np.asarray(value)
    return array.view(np.uint16).view(numpy_type("bfloat16")) if array.dtype == dtypes.BFLOAT16_BITS else array


def variables(outputs: Iterable[Entry]) -> list[Node]:
    return [n for n in topological(list(outputs)) if n.op is None]
