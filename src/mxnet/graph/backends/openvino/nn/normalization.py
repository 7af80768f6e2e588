"""Normalization in OpenVINO."""
from collections.abc import Iterable

from openvino import opset15 as ops

from ..conversion import Call, Value, converts, ints
from ..integers import Ranged, arrays, calibrated, results


@converts("BatchNorm", "BatchNorm_v1", "_contrib_SyncBatchNorm", "_contrib_BatchNormWithReLU")
def batch_norm(call: Call, data: Value, gamma: Value, beta: Value, mean: Value, var: Value) -> Value:
    if call.output_mean_var:
        call.refuse("output_mean_var")
    ndim, axis = len(call.shape), call.axis(call.attributes.get("axis", 1))
    scale = ops.divide(call.float(1), ops.sqrt(ops.add(var, call.float(call.eps))))
    if not call.fix_gamma:
        scale = ops.multiply(gamma, scale)
    shift = ops.subtract(beta, ops.multiply(mean, scale))
    out = ops.add(ops.multiply(data, call.per_channel(scale, ndim, axis)), call.per_channel(shift, ndim, axis))
    return ops.relu(out) if call.name.endswith("ReLU") else out


@converts("_contrib_quantized_batch_norm", integers=True)
def quantized_batch_norm(call: Call, data: Ranged, gamma: Value, beta: Value, mean: Value, var: Value, *ends: Value) -> list:
    array, = arrays(call, (data,), 1)
    call.attributes = {**call.attributes, "fix_gamma": False, "output_mean_var": False}  # gamma is used in any case
    return results(calibrated(call, batch_norm(call, array.value, gamma, beta, mean, var), call.out_types[0]))


def _standardized(call: Call, data: Value, axes: Iterable[int], eps: float) -> Value:
    return ops.mvn(data, ints(axes), True, eps, "inside_sqrt")


@converts("LayerNorm")
def layer_norm(call: Call, data: Value, gamma: Value, beta: Value) -> Value:
    if call.output_mean_var:
        call.refuse("output_mean_var")
    axis, ndim = call.axis(call.attributes["axis"]), len(call.shape)
    out = _standardized(call, data, [axis], call.eps)
    return ops.add(ops.multiply(out, call.per_channel(gamma, ndim, axis)), call.per_channel(beta, ndim, axis))


@converts("InstanceNorm")
def instance_norm(call: Call, data: Value, gamma: Value, beta: Value) -> Value:
    ndim = len(call.shape)
    if ndim < 3:
        call.refuse("fewer than three axes")
    out = _standardized(call, data, range(2, ndim), call.eps)
    return ops.add(ops.multiply(out, call.per_channel(gamma, ndim)), call.per_channel(beta, ndim))


@converts("GroupNorm")
def group_norm(call: Call, data: Value, gamma: Value, beta: Value) -> Value:
    if call.output_mean_var:
        call.refuse("output_mean_var")
    groups = call.num_groups
    out = _standardized(call, call.reshape(data, (call.shape[0], groups, -1)), [2], call.eps)
    out = ops.add(ops.multiply(out, call.per_channel(gamma, 3)), call.per_channel(beta, 3))
    return call.reshape(out, call.shape)


@converts("L2Normalization")
def l2_normalization(call: Call, data: Value) -> Value:
    axes = {"channel": [1], "instance": range(1, len(call.shape)), "spatial": range(2, len(call.shape))}[call.mode]
    total = ops.reduce_sum(ops.multiply(data, data), ints(axes), True)
    return ops.divide(data, ops.sqrt(ops.add(total, call.float(call.eps))))


@converts("LRN")
def lrn(call: Call, data: Value) -> Value:
    return ops.lrn(data, ints([1]), call.alpha, call.beta, call.knorm, call.nsize)
