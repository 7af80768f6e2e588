"""ONNX graphs on arrays, node by node: the operator ``_contrib_onnx_graph``, which holds nodes that can be imported only at run time."""
import base64
import binascii
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from .... import util
from ....base import MXNetError
from ....graph.ownership import distinct
from ....ops import dtypes, host_arrays
from ....ops.registry import get, op
from ....ops.schema import Device, Training
from . import _op_translations  # noqa: F401  (fills the table)
from .deferring import OPERATOR
from .reading import BFLOAT16, UnsupportedFeature, onnx_package, stored_type
from .values import Value
from .walking import Walker, all_nodes

_RANDOM = {"RandomUniform", "RandomNormal", "RandomUniformLike", "RandomNormalLike", "Multinomial", "Bernoulli", "Dropout"}


class Runner(Walker):
    """Computes nodes on tensors; parameters are those of `Walker`.

    Parameters
    ----------
    device : torch.device
    training : bool
    """

    nodes_left, iterations_left = 1 << 22, 1 << 16

    def __init__(self, opset: int, functions: Sequence[Any], device: Any, training: bool):
        super().__init__(opset, None, functions)
        self.device, self.training = device, training

    def run(self, graph: Any, tensors: Any) -> list[Any]:
        """Compute a graph.

        Parameters
        ----------
        graph : onnx.GraphProto
        tensors : sequence of torch.Tensor
            Its inputs.

        Returns
        -------
        list of torch.Tensor
        """
        for info, tensor in zip(graph.input, tensors):
            kind = info.type.tensor_type
            scalar = kind.HasField("shape") and not kind.shape.dim
            self._scope[info.name] = self.value(tensor, scalar or not tensor.dim(), kind.elem_type == onnx_package().TensorProto.BOOL, info.name)
        self.initializers(graph.initializer)
        self.nodes(graph.node)
        return [self._output(info) for info in graph.output]

    def too_many_iterations(self) -> Exception:
        raise MXNetError(f"loops took more than {Runner.iterations_left} iterations")

    def _output(self, info):
        value = self._scope.get(info.name)
        if value is None or value.sequence is not None:
            raise UnsupportedFeature(f"the output '{info.name}' is no array")
        tensor = self.entry(value)
        wanted = _type(info)
        if wanted is not None:
            tensor = tensor.to(wanted)
        return tensor.reshape(()) if value.scalar and util.is_np_shape() else tensor.contiguous()

    def value(self, tensor: Any, scalar: bool = False, boolean: bool = False, name: str = "") -> Value:
        """Return the `Value` of a tensor: of one axis of size 1, if it has none in ONNX."""
        scalar = scalar and tensor.numel() == 1
        made = tensor.reshape(1) if scalar else tensor
        return Value(name, entry=made, scalar=scalar, boolean=boolean or tensor.dtype == torch.bool, reader=lambda: _read(made, scalar, boolean))

    def entry(self, value: Value) -> Any:
        if value.entry is None:
            if value.arrays is None:
                raise MXNetError(f"the value '{value.name}' is a sequence or an optional value, where an array was expected")
            array = value.arrays[0]
            tensor = host_arrays.sent(host_arrays.as_tensor(array, copy=True), self.device)
            value.entry, value.scalar, value.boolean = tensor.reshape(array.shape or (1,)), not array.shape, array.dtype.kind == "b"
        return value.entry

    def op(self, name: str, *inputs: Any, is_scalar: bool = False, is_boolean: bool = False, **attributes: Any) -> Any:
        operator = get(name)
        given = {}
        for key, value in attributes.items():
            attribute = operator.attributes.get(key)
            if value is not None or attribute is not None and attribute.optional:
                given[key] = value
        if operator.variadic and operator.key_var_num_args:
            given.setdefault(operator.key_var_num_args, len(inputs))
        parsed = operator.parse(given)
        if operator.wants_training:
            parsed[operator.wants_training] = self.training
        if operator.wants_device:
            parsed[operator.wants_device] = self.device
        results = operator.fn(*map(self.entry, inputs), **parsed)
        values = tuple(self.value(tensor, is_scalar, is_boolean) for tensor in ([results] if isinstance(results, torch.Tensor) else results))
        return values[0] if len(values) == 1 else values

    def dtype(self, value: Value) -> np.dtype[Any] | None:
        if value.entry is None and value.arrays is not None:
            return value.arrays[0].dtype
        torch_type = self.entry(value).dtype
        return None if torch_type == torch.bfloat16 else np.dtype(dtypes.to_numpy(torch_type))

    def known_shapes(self, value: Value) -> list[Any] | None:
        if value.arrays is not None:
            return [value.arrays[0].shape]
        return [() if value.scalar else tuple(self.entry(value).shape)]


def _type(info):
    """Return the torch type of an output in the file, or None if the file has none."""
    number = info.type.tensor_type.elem_type
    wanted = "bfloat16" if number == BFLOAT16 else stored_type(number)
    return None if wanted is None else dtypes.to_torch(wanted)


def _read(tensor, scalar, boolean):
    array = tensor.detach().float() if tensor.dtype == torch.bfloat16 else tensor.detach()
    array = array.cpu().numpy()
    return (array.astype(bool) if boolean else array).reshape(() if scalar else array.shape)


@functools.lru_cache(maxsize=64)
def _parsed(text):
    """Return the model in the attribute of a node."""
    from google.protobuf.message import DecodeError
    model = onnx_package().ModelProto()
    try:
        model.ParseFromString(base64.b64decode(text, validate=True))
    except (DecodeError, binascii.Error, ValueError) as error:
        raise MXNetError(f"{OPERATOR}: `graph` must be an ONNX model in base64, received {text!r:.40} ({error})") from error
    if not model.opset_import:
        raise MXNetError(f"{OPERATOR}: the model in `graph` does not say for which version of ONNX's operators it was written")
    return model


def _is_stochastic(attributes):
    model = _parsed(attributes["graph"])
    return any(node.op_type in _RANDOM for nodes in (all_nodes(model.graph), *(function.node for function in model.functions)) for node in nodes)


@op(OPERATOR, num_outputs=lambda attributes: attributes["num_outputs"], key_var_num_args="num_args", data_dependent_shape=True, data_dependent=True,
    stochastic=_is_stochastic, amp=None)
def onnx_graph(*data, graph: str, num_outputs: int = 1, training: Training = False, device: Device = None):
    """Compute a graph of ONNX's operators whose shapes follow from values, node by node.

    `mx.contrib.onnx.import_model` makes it of the part of a model that it cannot translate before sizes and values are known.

    Parameters
    ----------
    *data : arrays
        The inputs of the graph, in its order.
    graph : str
        An ``onnx.ModelProto`` in base64.
    num_outputs : int
        The number of outputs of the graph.

    Raises
    ------
    MXNetError
        If `graph` holds no model, or a node of it is not sound; the text names the node.
    ImportError
        If the package onnx is not installed.

    Example
    -------
    >>> import base64, onnx
    >>> x, axes, y = (onnx.helper.make_empty_tensor_value_info(name) for name in ('x', 'axes', 'y'))
    >>> graph = onnx.helper.make_graph([onnx.helper.make_node('ReduceSum', ['x', 'axes'], ['y'])], 'g', [x, axes], [y])
    >>> model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid('', 13)])
    >>> text = base64.b64encode(model.SerializeToString()).decode()
    >>> mx.nd.contrib.onnx_graph(mx.nd.ones((2, 3)), mx.nd.array([1], dtype='int64'), graph=text).asnumpy()
    array([[3.],
           [3.]], dtype=float32)
    """
    if any(tensor.device.type == "meta" for tensor in data):
        raise NotImplementedError("shapes follow from values")
    model = _parsed(graph)
    if len(model.graph.input) != len(data) or len(model.graph.output) != num_outputs:
        raise MXNetError(f"{OPERATOR}: the model in `graph` has {len(model.graph.input)} inputs and {len(model.graph.output)} outputs, received "
                         f"{len(data)} arrays and num_outputs={num_outputs}")
    place = data[0].device if data else device or torch.device("cpu")
    runner = Runner(max(entry.version for entry in model.opset_import), model.functions, place, training)
    results = distinct(runner.run(model.graph, data), data)
    return results if len(results) != 1 else results[0]


@onnx_graph.dtype_rule
def _(in_types, out_types, *, graph, **_):
    return in_types, [_type(info) or known for info, known in zip(_parsed(graph).graph.output, out_types)]
