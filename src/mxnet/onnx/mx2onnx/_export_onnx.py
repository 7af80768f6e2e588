"""`MXNetGraph`: conversion of a Symbol to the graph of an ONNX model."""
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from ...base import MXNetError
from ...ops import dtypes
from ...suggestions import shortened
from ...symbol import Symbol
from .builder import numpy_type
from .network import Network, parameter_arrays, variables
from .registry import CONVERTERS

OPSETS = range(12, 29)
OPSET = 13  # by default: every runtime since 2020 reads it
_OF_BFLOAT16 = 22  # from which on convolutions, pooling, and recurrent layers take it


class MissingONNX(MXNetError, ImportError):
    """Raised if the package `onnx` is not installed."""


def onnx_package() -> Any:
    """Return the package `onnx`, which is imported when a file is written.

    Raises
    ------
    MissingONNX
        If it cannot be imported; the text names the command that installs it.
    """
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise MissingONNX(f"ONNX files need the packages onnx and protobuf: pip install 'remexnet[onnx]' ({error})") from error
    return onnx


class MXNetGraph:
    """Makes the graph of an ONNX model.

    Attributes
    ----------
    registry_ : dict
        The converters by name, for each version of ONNX's operators.
    """

    registry_: ClassVar = dict.fromkeys(OPSETS, CONVERTERS)

    def create_onnx_graph_proto(self, sym: Symbol, params: Mapping[str, Any], in_shapes: Any, in_types: Any, verbose: bool = False,
                                opset_version: int | None = None, dynamic: bool = True, dynamic_input_shapes: Any = None) -> Any:
        """Return the graph, with its parameters, as an ``onnx.GraphProto``.

        Arguments and errors are those of `export_model`; `in_types` may also be ONNX's numbers of types.
        """
        onnx = onnx_package()
        types = [onnx.helper.tensor_dtype_to_np_dtype(t) if isinstance(t, int) else t
                 for t in (in_types if isinstance(in_types, (list, tuple)) else [in_types])]
        network = described(sym, params, in_shapes, types if isinstance(in_types, (list, tuple)) else types[0], dynamic, dynamic_input_shapes)
        graph, parameters = graph_proto(network, chosen_opset(network, opset_version), verbose)
        graph.initializer.extend(onnx.numpy_helper.from_array(v.array, v.name) for v in parameters)
        return graph

    @staticmethod
    def convert_weights_to_numpy(weights_dict: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Parameters as NumPy arrays by name, without the prefixes of files."""
        return parameter_arrays(weights_dict)

    @staticmethod
    def split_params(sym: Symbol, params: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the parameters that are arguments of a Symbol, and those that are auxiliary states."""
        return tuple({n: params[n] for n in names if n in params} for names in (sym.list_arguments(), sym.list_auxiliary_states()))  # type: ignore


def chosen_opset(network: Network, opset: int | None) -> int:
    """Return the opset version for a network: the requested one, or the least from `OPSET` on that has its types.

    Raises
    ------
    MXNetError
        If the requested version is not one of `OPSETS`, or the package onnx does not support it.
    """
    if opset is None:
        types = [dtype for _, dtype in network.inputs.values()] + [array.dtype for array in network.parameters.values()]
        return _OF_BFLOAT16 if any(dtype.name == "bfloat16" for dtype in types) else OPSET
    if opset not in OPSETS:
        raise MXNetError(f"opset_version must be from {OPSETS[0]} to {OPSETS[-1]}, received {shortened(opset)}")
    known = onnx_package().defs.onnx_opset_version()
    if opset > known:
        raise MXNetError(f"opset_version={opset} is newer than the package onnx, which knows versions up to {known}; update it")
    return opset


def graph_proto(network: Network, opset: int, verbose: bool) -> tuple[Any, Iterable[Any]]:
    """Return the graph without its parameters, and an iterable of the parameters.

    Raises
    ------
    MXNetError
        If an operator cannot be written.
    """
    onnx = onnx_package()
    helper = onnx.helper
    on, inputs, outputs = network.convert(opset, verbose)

    def plain(value: Any) -> Any:
        if isinstance(value, np.dtype):
            return helper.np_dtype_to_tensor_dtype(value)
        return onnx.numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value

    def declared(value: Any, shape: Any) -> Any:
        return helper.make_tensor_value_info(value.name, helper.np_dtype_to_tensor_dtype(value.dtype), shape)

    nodes = [helper.make_node(n.kind, [v.name if v is not None else "" for v in n.inputs], [v.name for v in n.outputs], name=n.name,
                              **{k: plain(a) for k, a in n.attributes.items()}) for n in on.nodes]
    graph = helper.make_graph(nodes, "mxnet_converted_model", [declared(v, network.inputs[v.name][0]) for v in inputs],
                              [declared(v, v.shape) for v in outputs])
    return graph, {v.name: v for node in on.nodes for v in node.inputs if v is not None and v.array is not None}.values()


def described(sym: Symbol, params: Mapping[str, Any], shapes: Any, types: Any, dynamic: bool, dynamic_shapes: Any) -> Network:
    """Return the network to write, after a check of the given descriptions of its inputs.

    Raises
    ------
    MXNetError
        If there are more or fewer shapes or types than inputs, or `dynamic_shapes` does not fit them.
    """
    outputs = sym._outputs
    arrays = parameter_arrays(params)
    nodes = variables(outputs)
    label = f"{outputs[-1][0].name}_label"
    names = list(dict.fromkeys(n.name for n in nodes if n.name not in arrays and n.name != label))
    if shapes is None:
        raise MXNetError(f"in_shapes must give the shape of each input: {', '.join(names)}")
    shapes = [_shape(s) for s in ([shapes] if shapes and isinstance(shapes[0], int) else shapes)]
    if len(shapes) != len(names):
        losses = _labels(sym)
        unlabelled = [n for n in names if n not in losses]
        if len(shapes) != len(unlabelled):
            raise MXNetError(f"in_shapes must have {len(names)} shapes, one for each variable that is no parameter ({', '.join(names)}), "
                             f"received {len(shapes)}: {shapes}")
        names = unlabelled
    types = list(types) if isinstance(types, (list, tuple)) else [types] * len(names)
    if len(types) != len(names):
        raise MXNetError(f"in_types must be one type, or {len(names)} of them, one for each input ({', '.join(names)}); "
                         f"received {len(types)}: {types}")
    types = [numpy_type(dtypes.TORCH_TO_NAME[dtypes.to_torch(t)]) for t in types]
    if not dynamic:
        if dynamic_shapes is not None:
            raise MXNetError("dynamic_input_shapes has no effect without dynamic=True; pass that too, or leave it out")
        declared = shapes
    elif dynamic_shapes is None:
        declared = [(None,) * len(s) for s in shapes]
    else:
        declared = [tuple(s) for s in dynamic_shapes]
        if [len(s) for s in declared] != [len(s) for s in shapes]:
            raise MXNetError(f"dynamic_input_shapes must have a shape for each of in_shapes, with as many sizes: expected the lengths "
                             f"{[len(s) for s in shapes]}, received {declared}")
    return Network(outputs, {n: (d, t) for n, d, t in zip(names, declared, types)}, dict(zip(names, shapes)),
                   {n.name: arrays[n.name] for n in nodes if n.name in arrays})


def _shape(shape: Any) -> tuple[int, ...]:
    try:
        return tuple(int(s) for s in shape)
    except (TypeError, ValueError):
        raise MXNetError(f"in_shapes must be a list of tuples of integers, one for each input; received {shortened(shape)} as one of them") from None


def _labels(sym: Symbol) -> set[str]:
    """Return the variables that output layers created for their labels."""
    return {n.name for node in sym._nodes() if node.op is not None and node.op.is_loss(node.parsed())
            for n, _ in node.inputs[1:] if n.op is None and n.name == f"{node.name}_label"}
