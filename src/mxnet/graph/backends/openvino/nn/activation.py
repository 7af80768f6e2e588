"""Activations in OpenVINO."""
from openvino import opset15 as ops

from ..conversion import Call, Value, converts
from ..integers import Ranged, arrays, rectified, results


@converts("Activation")
def activation(call: Call, data: Value) -> Value:
    return {"relu": ops.relu, "sigmoid": ops.sigmoid, "tanh": ops.tanh, "softrelu": ops.softplus, "softsign": ops.softsign, "mish": ops.mish,
            "log_sigmoid": lambda x: ops.negative(ops.softplus(ops.negative(x)))}[call.act_type](data)


@converts("LeakyReLU")
def leaky_relu(call: Call, data: Value, gamma: Value = None) -> Value:
    if call.act_type == "prelu":
        slope = gamma if call.in_shapes[1] in ((1,), ()) or len(call.shape) == 1 else call.per_channel(gamma, len(call.shape))
        return ops.prelu(data, call.reshape(gamma, (-1,)) if len(call.in_shapes[1]) == 1 else slope)
    if call.act_type == "leaky":
        return ops.prelu(data, call.float([call.slope]))
    if call.act_type == "elu":
        return ops.elu(data, call.slope)
    if call.act_type == "selu":
        return ops.selu(data, call.float([1.6732632423543772]), call.float([1.0507009873554805]))
    if call.act_type.startswith("gelu"):
        return ops.gelu(data, "tanh" if call.act_type == "gelu_tanh" else "erf")
    return call.refuse(f"act_type {call.act_type}")


@converts("hard_sigmoid")
def hard_sigmoid(call: Call, data: Value) -> Value:
    return ops.hard_sigmoid(data, call.float(call.alpha), call.float(call.beta))


@converts("_contrib_quantized_act", integers=True)
def quantized_act(call: Call, data: Ranged, *ends: Value) -> list:
    array, = arrays(call, (data,), 1)
    return results(rectified(array))
