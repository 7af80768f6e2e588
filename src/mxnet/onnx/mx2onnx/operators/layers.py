"""Layers with weights, activations, softmax, and the output layers of the symbolic API."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..builder import Unsupported, floating, lowest
from ..registry import exports

if TYPE_CHECKING:
    from ..builder import Builder, Value

_HINTS = ("workspace", "cudnn_tune", "cudnn_off")
_GELU = {"gelu": "none", "gelu_erf": "none", "gelu_tanh": "tanh"}


@exports("FullyConnected", ignores=("num_hidden", "no_bias"))
def fully_connected(on: Builder, x: Value, weight: Value, bias: Value | None = None, *, flatten: bool) -> Value:
    if flatten and x.ndim != 2:
        x = on.Flatten(x, axis=1)
    elif not flatten and x.ndim > 2:
        out = on.MatMul(x, on.Transpose(weight, perm=[1, 0]))
        return out if bias is None else on.Add(out, bias)
    return on.Gemm(x, weight, bias, transB=1)


def channels_first(on: Builder, x: Value, layout: str | None) -> Value:
    """Return `x` with its channels on axis 1; in the layouts that end in C they are last."""
    if layout is None or layout[-1] != "C":
        return x
    return on.transpose(x, (0, x.ndim - 1, *range(1, x.ndim - 1)))


def as_laid_out(on: Builder, x: Value, layout: str | None, ndim: int) -> Value:
    """Undo `channels_first`."""
    if layout is None or layout[-1] != "C":
        return x
    return on.transpose(x, (0, *range(2, ndim), 1))


@exports("Convolution", ignores=(*_HINTS, "num_filter", "no_bias"))
def convolution(on: Builder, x: Value, weight: Value, bias: Value | None = None, *, kernel: Any, stride: Any, dilate: Any, pad: Any, num_group: int,
                layout: str | None) -> Value:
    out = on.Conv(channels_first(on, x, layout), channels_first(on, weight, layout), bias, kernel_shape=list(kernel),
                  strides=list(stride or (1,) * len(kernel)), dilations=list(dilate or (1,) * len(kernel)),
                  pads=list(pad or (0,) * len(kernel)) * 2, group=num_group)
    return as_laid_out(on, out, layout, x.ndim)


@exports("Deconvolution", ignores=(*_HINTS, "num_filter", "no_bias"))
def deconvolution(on: Builder, x: Value, weight: Value, bias: Value | None = None, *, kernel: Any, stride: Any, dilate: Any, pad: Any, adj: Any,
                  target_shape: Any, num_group: int, layout: str | None) -> Value:
    ndim = len(kernel)
    stride, dilate, pad, adj = stride or (1,) * ndim, dilate or (1,) * ndim, pad or (0,) * ndim, adj or (0,) * ndim
    data = channels_first(on, x, layout)
    if any(target_shape):
        if data.shape is None or None in data.shape[2:]:
            raise Unsupported("with target_shape the padding depends on the size of the input, which may vary; give pad and adj")
        excess = [s * (size - 1) + d * (k - 1) + 1 - t for s, size, d, k, t in zip(stride, data.shape[2:], dilate, kernel, target_shape)]
        pad, adj = [(e + 1) // 2 for e in excess], [e % 2 for e in excess]
    out = on.ConvTranspose(data, channels_first(on, weight, layout), bias, kernel_shape=list(kernel), strides=list(stride), dilations=list(dilate),
                           pads=list(pad) * 2, output_padding=list(adj), group=num_group)
    return as_laid_out(on, out, layout, x.ndim)


@exports("Activation")
def activation(on: Builder, x: Value, *, act_type: str) -> Value:
    return {"relu": on.Relu, "sigmoid": on.Sigmoid, "softrelu": on.Softplus, "softsign": on.Softsign, "tanh": on.Tanh}[act_type](x)


@exports("LeakyReLU")
def leaky_relu(on: Builder, x: Value, gamma: Value | None = None, *, act_type: str, slope: float, lower_bound: float, upper_bound: float) -> Value:
    if act_type == "leaky":
        return on.LeakyRelu(x, alpha=float(slope))
    if act_type == "rrelu":  # which draws its slope in training only
        return on.LeakyRelu(x, alpha=(lower_bound + upper_bound) / 2)
    if act_type == "elu":
        return on.Elu(x, alpha=float(slope))
    if act_type == "selu":
        return on.Selu(x)
    if act_type in _GELU and on.opset >= 20:
        return on.Gelu(x, approximate=_GELU[act_type])
    if act_type == "gelu_tanh":
        inner = on.Mul(on.Add(x, on.Mul(on.Pow(x, 3.0), 0.044715)), math.sqrt(2 / math.pi))
        return on.Mul(on.Mul(x, 0.5), on.Add(on.Tanh(inner), 1.0))
    if act_type in ("gelu", "gelu_erf"):
        return on.Mul(on.Mul(x, 0.5), on.Add(on.Erf(on.Div(x, math.sqrt(2))), 1.0))
    if gamma.ndim == 1 and x.ndim > 1 and gamma.shape != (1,):
        gamma = on.per_channel(gamma, x.ndim - 1, 0)
    return on.PRelu(x, gamma)


def softmax_over(on: Builder, x: Value, axis: int | None, kind: str = "Softmax") -> Value:
    """Apply softmax along one axis in any opset; before 13, ONNX's joins all axes from the given one on."""
    axis %= x.ndim
    if on.opset >= 13 or axis == x.ndim - 1:
        return getattr(on, kind)(x, axis=axis)
    order = [*(i for i in range(x.ndim) if i != axis), axis]
    return on.transpose(getattr(on, kind)(on.transpose(x, order), axis=x.ndim - 1), np.argsort(order).tolist())


def within_length(on: Builder, x: Value, length: Value, axis: int | None) -> Value:
    """Return a mask of the positions of `x` along an axis that are below `length`, which has all other axes."""
    positions = on.Range(on.const(0, np.int64), on.squeeze(_as_tensor(on, on.dim(x, axis)), 0), on.const(1, np.int64), dtype=np.int64)
    return on.Less(on.per_channel(positions, x.ndim, axis), on.unsqueeze(on.cast(length, np.int64), axis))


def _as_tensor(on, dim):
    return on.const([dim], np.int64) if isinstance(dim, int) else dim


@exports("softmax", "log_softmax", "softmin", ignores=("dtype",))
def softmax(on: Builder, x: Value, length: Value | None = None, *, axis: int | None, temperature: Any, use_length: bool, operator: str) -> Value:
    kind = "LogSoftmax" if operator == "log_softmax" else "Softmax"
    if use_length and length is None:
        raise Unsupported("use_length takes a second input, the lengths")
    axis %= x.ndim
    x = on.cast(x, on.dtype) if not floating(x.dtype) else x
    if operator == "softmin":
        x = on.Neg(x, out_shape=x.shape)
    if temperature not in (None, 1):
        x = on.Div(x, float(temperature), out_shape=x.shape)
    if length is None:
        return softmax_over(on, x, axis, kind)
    inside = within_length(on, x, length, axis)
    out = softmax_over(on, on.Where(inside, x, on.const(lowest(x.dtype), x.dtype), out_shape=x.shape), axis, kind)
    return on.Where(inside, out, on.const(0, x.dtype))


@exports("SoftmaxActivation")
def softmax_activation(on: Builder, x: Value, *, mode: str) -> Value:
    if mode == "channel":
        return softmax_over(on, x, 1)
    return on.reshape(softmax_over(on, on.Flatten(x, axis=1, out_shape=(None, None)), 1), on.dims(x))


@exports("SoftmaxOutput", ignores=("grad_scale", "ignore_label", "use_ignore", "normalization", "out_grad", "smooth_alpha"))
def softmax_output(on: Builder, x: Value, label: Value, *, multi_output: bool, preserve_shape: bool) -> Value:
    if multi_output:
        return softmax_over(on, x, 1)
    if preserve_shape or x.ndim == 2:
        return softmax_over(on, x, x.ndim - 1)
    return on.reshape(softmax_over(on, on.Flatten(x, axis=1, out_shape=(None, None)), 1), on.dims(x))


@exports("LogisticRegressionOutput", "LinearRegressionOutput", "MAERegressionOutput", "SVMOutput",
         ignores=("grad_scale", "margin", "regularization_coefficient", "use_linear"))
def regression_output(on: Builder, x: Value, label: Value, *, operator: str) -> Value:
    return on.Sigmoid(x) if operator == "LogisticRegressionOutput" else x


@exports("Dropout", ignores=("p", "axes", "cudnn_off"))
def dropout(on: Builder, x: Value, *, mode: str) -> Value:
    if mode == "always":
        raise Unsupported("mode='always' draws at inference too")
    return x


@exports("Embedding", ignores=("output_dim", "dtype", "sparse_grad"))
def embedding(on: Builder, indices: Value, weight: Value, *, input_dim: int) -> Any:
    """Write the rows of the table; positions outside of it are clipped to the first or last row."""
    rows = on.Clip(on.cast(indices, np.int64), 0, input_dim - 1)
    return on.Gather(weight, rows, axis=0)
