"""Products on integers in OpenVINO: fused nodes, and the quantized operators without what follows."""
import math

import torch
from openvino import opset15 as ops

from ...ops.nn.convolution import convolution
from ...ops.quantization.arithmetic import levels
from ...symbol.fused import elemwise_add
from ..fused import Integers
from .conversion import CONVERTERS, Call, Value, converts
from .integers import Ranged, arrays, calibrated, results, weights


def _product(call: Call, integers: Integers, data: Ranged, values: torch.Tensor, unit: torch.Tensor) -> Value:
    """The product of data and weights, real numbers, without a bias."""
    attributes = integers.recipe.attributes
    if integers.recipe.product is not convolution:
        rows = call.reshape(data.value, (call.shape[0], math.prod(call.shape[1:]))) if attributes["flatten"] and len(call.shape) != 2 else data.value
        return ops.matmul(rows, weights(values, unit.reshape(-1, 1)), False, True)
    if attributes["layout"] is not None and attributes["layout"][1] != "C":
        call.refuse(f"layout {attributes['layout']}")
    n, groups = len(attributes["kernel"]), attributes["num_group"]
    strides, dilations, pads = attributes["stride"] or (1,) * n, attributes["dilate"] or (1,) * n, attributes["pad"] or (0,) * n
    if groups == 1:
        return ops.convolution(data.value, weights(values, unit.reshape(-1, *[1] * (n + 1))), strides, pads, pads, dilations)
    kernels = values.reshape(groups, -1, *values.shape[1:])
    each = unit.reshape(groups, -1, *[1] * (n + 1)) if unit.numel() > 1 else unit.reshape([1] * (n + 3))
    return ops.group_convolution(data.value, weights(kernels, each), strides, pads, pads, dilations)


@converts("_sg_mkldnn_conv", "_sg_mkldnn_fully_connected", integers=True)
def fused(call: Call, *inputs: Value) -> list | Value:
    integers: Integers | None = getattr(call.target, "integers", None)
    if integers is None:
        return call.refuse("a fused node on real numbers that was not replaced")
    given, known = dict(zip(integers.names, inputs)), dict(zip(integers.names, call.constants))
    needed = [n for n in integers.names if n not in ("data", "sum") and not any(n in integers.ranges[k] for k in ("data", "sum") if k in integers.ranges)]
    if any(known[n] is None for n in needed):
        call.refuse("weights that are computed")
    if integers.dtype is torch.int32:
        call.refuse("its range is not calibrated")
    data, = arrays(call, (given["data"],), 1)
    found = integers.weights(known, torch.tensor([data.unit]))
    out = _product(call, integers, data, found.values, found.unit)
    if found.bias is not None:
        shape = (1, -1, *[1] * (len(call.out_shape) - 2)) if integers.recipe.product is convolution else (-1,)
        out = ops.add(out, call.float(found.bias.reshape(shape).numpy()))
    like = torch.empty(call.out_shape, device="meta")
    for op, attributes in integers.recipe.following:
        if op is elemwise_add:
            out = ops.add(out, arrays(call, (given["sum"],), 1)[0].value)
        else:
            out = CONVERTERS[op.name](Call(op.name, attributes, [like], [like], [None]), out)
    if integers.dtype is torch.float32:
        return out
    call.attributes = dict(zip(("min_calib_range", "max_calib_range"), integers.ends or (None, None)))
    return results(calibrated(call, out, integers.dtype))
