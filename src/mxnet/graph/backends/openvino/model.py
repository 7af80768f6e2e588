"""Construction of OpenVINO's model of a program."""
import importlib
import os
import pkgutil
from collections.abc import Callable
from typing import Any

import openvino as ov
import torch
from openvino import opset15 as ops

from ....kernels.image import nchw_to_nhwc
from ...passes.layout import convolves
from ...program import Program, item
from . import layers
from .conversion import TYPES, Unsupported, convert_node, ints, plain

for _module in pkgutil.walk_packages([os.path.dirname(__file__)], f"{__package__}."):
    importlib.import_module(_module.name)  # registers its converters


def build(program: Program) -> tuple[Any, dict[torch.fx.Node, str]]:
    """Return OpenVINO's model of a program, and the reasons for nodes that cannot be converted.

    Returns
    -------
    (openvino.Model, dict of int to int) or None
        None if any node was rejected. The dict maps positions of outputs that are inputs to these; they are no outputs of the model.
    dict of fx.Node to str
        Reasons.
    """
    converted, refused, parameters = {}, {}, []

    def parameter(node: torch.fx.Node) -> Any:
        value = program.values[node]
        shape = value.permute(0, 2, 3, 1).shape if images(program, node) else value.shape
        return ops.parameter(list(shape), TYPES[value.dtype]).output(0)

    for node in program.graph.nodes:
        value: Any = program.values.get(node)
        if node.op == "placeholder" and node not in program.constants:
            if value.dtype not in TYPES:
                refused[node] = f"its type {value.dtype} is not OpenVINO's"
                continue
            model_input = parameter(node)
            parameters.append(model_input.get_node())
            # OpenVINO takes ten times as long to reorder images for their first convolution as our kernel does, which `_Request` calls.
            converted[node] = [ops.transpose(model_input, ints((0, 3, 1, 2))).output(0) if images(program, node) else model_input]
        elif node in program.constants:
            constant = program.constants[node]
            tensors = (constant,) if isinstance(constant, torch.Tensor) else constant
            if any(t.dtype not in TYPES for t in tensors):
                if node.op != "placeholder":
                    refused[node] = "its type is not OpenVINO's"
                continue
            converted[node] = [_constant(t) for t in tensors]
        elif node.op == "call_function":
            _convert(program, node, value, converted, refused, parameter)
        elif node.op == "call_method":
            refused[node] = f"a call of {node.target}"
    # Unused nodes of unsupported types do not prevent a conversion.
    refused = {n: r for n, r in refused.items() if n.users}
    if refused:
        return None, refused
    positions = {converted[n][0]: i for i, n in enumerate(program.placeholders) if n in converted}
    try:
        outputs = [plain(converted[n][0]) for n in program.outputs]
    except Unsupported as reason:
        return None, {n: str(reason) for n in program.outputs}
    handed_on = {k: positions[out] for k, out in enumerate(outputs) if out in positions}
    return (ov.Model([ops.result(out) for k, out in enumerate(outputs) if k not in handed_on], parameters), handed_on), {}


def images(program: Program, node: torch.fx.Node) -> bool:
    """Return True if an input is a batch of images that only convolutions read: OpenVINO gets it with channels last."""
    value = program.values[node]
    return (node.op == "placeholder" and value.dim() == 4 and value.dtype is torch.float32 and nchw_to_nhwc.available(value.shape[1])
            and all(convolves(user) and user.args[0] is node for user in node.users) and node not in program.outputs)


def _convert(program: Program, node: torch.fx.Node, value: Any, converted: dict, refused: dict[torch.fx.Node, str], parameter: Callable) -> None:
    if node.target is item:
        source, index = node.args
        if source in converted:
            converted[node] = [converted[source][index if len(converted[source]) > 1 else 0]]
        else:
            refused[node] = "what it is part of is not here"
        return
    inputs = []
    for argument in node.args:
        if argument in converted:
            inputs.append(converted[argument][0])
        elif isinstance(argument, torch.fx.Node) and isinstance(program.values.get(argument), torch.Tensor) and \
                program.values[argument].dtype in TYPES:
            inputs.append(parameter(argument))  # computed by a node outside of the model; this one may still be converted
        else:
            value = program.values.get(argument)
            refused[node] = f"an input is of type {value.dtype}" if isinstance(value, torch.Tensor) else "an input has no known shape"
            return
    try:
        converted[node] = convert_node(program, node, inputs)
        layers.mark(node, *([getattr(v, "value", v) for v in values] for values in (converted[node], inputs)))
    except Unsupported as reason:
        refused[node] = str(reason)
    except RuntimeError as error:  # OpenVINO's own checks of an operation
        refused[node] = str(error).strip().splitlines()[-1]


def _constant(tensor: torch.Tensor) -> Any:
    t = tensor.contiguous()
    if t.dtype is torch.bfloat16:
        return ops.convert(ops.constant(t.float().numpy(), shared_memory=False), "bf16").output(0)
    return ops.constant(t.numpy(), shared_memory=t.dim() > 0).output(0)
