"""Reductions in OpenVINO."""
from collections.abc import Callable

import torch
from openvino import opset15 as ops

from .conversion import Call, Converter, Value, constant, converts, ints, magnitude

REDUCTIONS = {"sum": ops.reduce_sum, "mean": ops.reduce_mean, "max": ops.reduce_max, "min": ops.reduce_min, "prod": ops.reduce_prod}


def _axes(call: Call) -> list[int]:
    ndim = len(call.shape)
    axis = call.attributes.get("axis")
    given = () if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [a % ndim for a in given] or list(range(ndim))
    return [a for a in range(ndim) if a not in axes] if call.attributes.get("exclude") else axes


def reduction(function: Callable) -> Converter:
    """Return the converter of an operator that is one of OpenVINO's reductions."""
    def convert(call: Call, data: Value) -> Value:
        call.floats()
        if call.attributes.get("dtype") is not None or call.attributes.get("initial") is not None:
            call.refuse("dtype or initial")
        return call.reshape(function(data, ints(_axes(call)), True).output(0), call.out_shape)
    return convert


for _name, _function in REDUCTIONS.items():
    converts(_name)(reduction(_function))


@converts("norm")
def norm(call: Call, data: Value) -> Value:
    call.floats()
    if call.out_dtype is not None:
        call.refuse("another type")
    axes = ints(_axes(call))
    if call.ord == 1:
        return call.reshape(ops.reduce_l1(data, axes, True).output(0), call.out_shape)
    scale = magnitude(ops.reduce_max(ops.abs(data), axes, True).output(0), call.in_types[0])
    return call.reshape(ops.multiply(ops.reduce_l2(ops.divide(data, scale), axes, True), scale).output(0), call.out_shape)


@converts("argmax", "argmin")
def arg_extreme(call: Call, data: Value) -> Value:
    call.floats()
    axis = call.attributes.get("axis")
    if axis is None:
        data, axis = call.reshape(data, (-1,)), 0
    else:
        axis = call.axis(axis)
    indices = ops.topk(data, constant(1, torch.int64), axis, call.name.removeprefix("arg"), "value", "i64", stable=True).output(1)
    return call.reshape(call.cast(indices, call.out_types[0]), call.out_shape)
