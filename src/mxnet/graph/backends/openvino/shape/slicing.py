"""Slices in OpenVINO."""
from collections.abc import Iterable, Sequence

import torch
from openvino import opset15 as ops

from ..conversion import Call, Value, constant, converts, ints


def strided(call: Call, data: Value, starts: Sequence[int], stops: Sequence[int], steps: Sequence[int], axes: Iterable[int]) -> Value:
    """Return the slice [start, stop) along each of `axes`; all in range and from the front."""
    return ops.slice(data, ints(starts), ints(stops), ints(steps), ints(axes)).output(0)


@converts("slice")
def slice_(call: Call, data: Value) -> Value:
    starts, stops, steps, axes = [], [], [], []
    for axis, (begin, end) in enumerate(zip(call.begin, call.end)):
        step = call.step[axis] if call.step and axis < len(call.step) and call.step[axis] is not None else 1
        if step < 1:
            call.refuse("a negative step")
        start, stop, _ = slice(begin, end, step).indices(call.shape[axis])
        starts.append(start)
        stops.append(stop)
        steps.append(step)
        axes.append(axis)
    return strided(call, data, starts, stops, steps, axes)


@converts("slice_axis")
def slice_axis(call: Call, data: Value) -> Value:
    axis = call.axis(call.attributes["axis"])
    start, stop, _ = slice(call.begin, call.end).indices(call.shape[axis])
    return strided(call, data, [start], [stop], [1], [axis])


@converts("slice_like")
def slice_like(call: Call, data: Value, other: Value) -> Value:
    axes = range(len(call.shape))
    return strided(call, data, [0 for _ in axes], call.out_shape, [1 for _ in axes], axes)


@converts("SliceChannel")
def slice_channel(call: Call, data: Value) -> Value:
    parts = ops.split(data, constant(call.axis(call.attributes["axis"]), torch.int64), call.num_outputs).outputs()
    return [call.reshape(f, call.out_shape) for f in parts] if call.squeeze_axis else parts


@converts("_split_v2")
def split(call: Call, data: Value) -> Value:
    axis = call.axis(call.attributes["axis"])
    sizes = [1] * len(call.out_shapes) if call.squeeze_axis else [s[axis] for s in call.out_shapes]
    parts = ops.variadic_split(data, constant(axis, torch.int64), ints(sizes)).outputs()
    return [call.reshape(f, s) for f, s in zip(parts, call.out_shapes)]
