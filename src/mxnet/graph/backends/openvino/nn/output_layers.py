"""Output layers in OpenVINO, without their losses."""
import math

from openvino import opset15 as ops

from ..conversion import Call, Value, converts


@converts("SoftmaxOutput")
def softmax_output(call: Call, data: Value, label: Value) -> Value:
    ndim = len(call.shape)
    if call.multi_output:
        return ops.softmax(data, 1)
    if call.preserve_shape or ndim == 2:
        return ops.softmax(data, ndim - 1)
    flat = call.reshape(data, (call.shape[0], math.prod(call.shape[1:])))
    return call.reshape(ops.softmax(flat, 1), call.shape)


@converts("LinearRegressionOutput", "MAERegressionOutput", "SVMOutput", "MakeLoss")
def unchanged(call: Call, data: Value, label: Value = None) -> Value:
    return data


@converts("LogisticRegressionOutput")
def logistic_output(call: Call, data: Value, label: Value) -> Value:
    return ops.sigmoid(data)
