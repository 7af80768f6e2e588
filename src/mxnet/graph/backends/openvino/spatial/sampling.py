"""Sampling of images in OpenVINO."""
from openvino import opset15 as ops

from ..conversion import Call, Value, converts, ints


@converts("_contrib_AdaptiveAvgPooling2D")
def adaptive_pooling(call: Call, data: Value) -> Value:
    return ops.adaptive_avg_pool(data, ints(call.out_shape[2:]))


@converts("UpSampling")
def upsampling(call: Call, *inputs: Value) -> Value:
    if call.sample_type != "nearest" or len(inputs) != 1:
        call.refuse("bilinear, or several inputs")
    data = inputs[0]
    return ops.interpolate(data, ints(call.out_shape[2:]), "nearest", "sizes", coordinate_transformation_mode="asymmetric", nearest_mode="floor",
                           axes=ints((2, 3)))
