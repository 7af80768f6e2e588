"""Building OpenVINO's model of a program."""
import openvino as ov
import torch
from openvino import opset15 as ops

from . import arithmetic, arrays, layers  # noqa: F401  (they register their converters)
from .conversion import TYPES, Unsupported, convert_node


def build(program):
    """OpenVINO's model of a program, and why which nodes are not in it.

    Returns
    -------
    (openvino.Model, dict of int to int) or None
        None if any node was refused. The dict says which outputs are inputs handed on, by position; they are no outputs of the model.
    dict of fx.Node to str
        Reasons.
    """
    converted, refused, parameters = {}, {}, []

    def parameter(node):
        value = program.values[node]
        found = ops.parameter(list(value.shape), TYPES[value.dtype])
        return found.output(0)

    for node in program.graph.nodes:
        value = program.values.get(node)
        if node.op == "placeholder" and node not in program.constants:
            if value.dtype not in TYPES:
                refused[node] = f"its type {value.dtype} is not OpenVINO's"
                continue
            converted[node] = [parameter(node)]
            parameters.append(converted[node][0].get_node())
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
    # A type that only matters where it is used does not keep the rest from being converted.
    refused = {n: r for n, r in refused.items() if n.users}
    if refused:
        return None, refused
    positions = {converted[n][0]: i for i, n in enumerate(program.placeholders) if n in converted}
    outputs = [converted[n][0] for n in program.outputs]
    handed_on = {k: positions[out] for k, out in enumerate(outputs) if out in positions}
    return (ov.Model([ops.result(out) for k, out in enumerate(outputs) if k not in handed_on], parameters), handed_on), {}


def _convert(program, node, value, converted, refused, parameter):
    from ..lower import _item
    if node.target is _item:
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
            inputs.append(parameter(argument))  # comes from a node that stays outside; this one may still be converted
        else:
            value = program.values.get(argument)
            refused[node] = f"an input is of type {value.dtype}" if isinstance(value, torch.Tensor) else "an input has no known shape"
            return
    try:
        converted[node] = convert_node(program, node, inputs)
    except Unsupported as reason:
        refused[node] = str(reason)
    except RuntimeError as error:  # OpenVINO checks what a converter hands it
        refused[node] = str(error).strip().splitlines()[-1]


def _constant(tensor):
    t = tensor.contiguous()
    if t.dtype is torch.bfloat16:
        return ops.convert(ops.constant(t.float().numpy(), shared_memory=False), "bf16").output(0)
    return ops.constant(t.numpy(), shared_memory=t.dim() > 0).output(0)
