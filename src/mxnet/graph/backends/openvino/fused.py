"""Fused nodes in OpenVINO."""
import torch
from openvino import opset15 as ops

from ....ops.nn.convolution import convolution
from ....ops.nn.normalization import quantized_batch_norm
from ....symbol.fused import elemwise_add
from ...int8.fused_nodes import Integers
from .conversion import CONVERTERS, Call, Value, converts
from .integers import arrays, calibrated, clipped, in_units, product, results


@converts("_sg_mkldnn_conv", "_sg_mkldnn_fully_connected", integers=True)
def fused(call: Call, *inputs: Value) -> list | Value:
    integers: Integers | None = getattr(call.target, "integers", None)
    if integers is None:
        return call.refuse("a fused node on real numbers that was not replaced")
    given, known = dict(zip(integers.names, inputs)), dict(zip(integers.names, call.constants))
    flowing = {name for n in ("data", "sum") if n in integers.ranges for name in (n, *integers.ranges[n])}
    if any(known[n] is None for n in integers.names if n not in flowing):
        call.refuse("weights that are computed")
    if integers.dtype is torch.int32:
        call.refuse("its range is not calibrated")
    data, = arrays(call, (given["data"],), 1)
    weights = integers.weights(known, torch.tensor([data.unit]))
    out = product(call, integers.recipe.attributes, data, weights.values, weights.unit)
    if weights.bias is not None:
        shape = (1, -1, *[1] * (len(call.out_shape) - 2)) if integers.recipe.product is convolution else (-1,)
        out = ops.add(out, call.float(weights.bias.reshape(shape).numpy()))
    like = torch.empty(call.out_shape, device="meta")
    # Its single reader is a batch norm: the kernel continues with real numbers, and stores the result behind it.
    between = integers.recipe.adds and integers.ends is not None and call.reader is quantized_batch_norm
    for i, (op, attributes) in enumerate(integers.recipe.following):
        if op is elemwise_add:
            added, = arrays(call, (given["sum"],), 1)
            rest = integers.recipe.following[i + 1:]
            if integers.ends is not None and not between and all(after.holds("is_relu", values) for after, values in rest):
                out = in_units(out, added, max(map(abs, integers.ends)))
            out = ops.add(out, added.value)
        else:
            out = CONVERTERS[op.name](Call(op.name, attributes, [like], [like], [None]), out)
    if integers.dtype is torch.float32:
        return out
    if between and integers.ends is not None:
        return results(clipped(out, integers.dtype, *integers.ends))
    call.attributes = dict(zip(("min_calib_range", "max_calib_range"), integers.ends or (None, None)))
    return results(calibrated(call, out, integers.dtype))
