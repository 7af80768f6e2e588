"""Layers of networks in OpenVINO: convolutions, pooling, normalization, activations, output layers, attention."""
import math

import numpy as np
import torch
from openvino import opset15 as ops

from .conversion import constant, converts, ints

_INT = torch.int64


def _per_channel(call, x, ndim, axis=1):
    """A vector with one value a channel, shaped to broadcast along `axis`."""
    shape = [1] * ndim
    shape[axis] = -1
    return call.reshape(x, shape)


def _windows(call):
    n = len(call.kernel)
    return call.stride or (1,) * n, call.dilate or (1,) * n, call.pad or (0,) * n


@converts("Convolution", "Convolution_v1")
def convolution(call, data, weight, bias=None):
    if call.layout is not None and call.layout[1] != "C":
        call.refuse(f"layout {call.layout}")
    strides, dilations, pads = _windows(call)
    groups, shape = call.num_group, call.in_shapes[1]
    if groups == 1:
        out = ops.convolution(data, weight, strides, pads, pads, dilations)
    else:
        weight = call.reshape(weight, (groups, shape[0] // groups, *shape[1:]))
        out = ops.group_convolution(data, weight, strides, pads, pads, dilations)
    return out if bias is None else ops.add(out, _per_channel(call, bias, len(shape)))


@converts("Deconvolution")
def deconvolution(call, data, weight, bias=None):
    if call.layout is not None and call.layout[1] != "C" or any(call.target_shape):
        call.refuse("layout or target_shape")
    strides, dilations, pads = _windows(call)
    groups, shape = call.num_group, call.in_shapes[1]
    more = {"output_padding": list(call.adj)} if call.adj else {}
    if groups == 1:
        out = ops.convolution_backprop_data(data, weight, strides, pads_begin=pads, pads_end=pads, dilations=dilations, **more)
    else:
        weight = call.reshape(weight, (groups, shape[0] // groups, *shape[1:]))
        out = ops.group_convolution_backprop_data(data, weight, strides, pads_begin=pads, pads_end=pads, dilations=dilations, **more)
    return out if bias is None else ops.add(out, _per_channel(call, bias, len(shape)))


@converts("FullyConnected")
def fully_connected(call, data, weight, bias=None):
    if call.flatten and len(call.shape) != 2:
        data = call.reshape(data, (call.shape[0], math.prod(call.shape[1:])))
    out = ops.matmul(data, weight, False, True)
    return out if bias is None else ops.add(out, bias)


@converts("BatchNorm", "BatchNorm_v1", "_contrib_SyncBatchNorm", "_contrib_BatchNormWithReLU")
def batch_norm(call, data, gamma, beta, mean, var):
    if call.output_mean_var:
        call.refuse("output_mean_var")
    ndim, axis = len(call.shape), call.axis(call.attributes.get("axis", 1))
    scale = ops.divide(call.float(1), ops.sqrt(ops.add(var, call.float(call.eps))))
    if not call.fix_gamma:
        scale = ops.multiply(gamma, scale)
    shift = ops.subtract(beta, ops.multiply(mean, scale))
    out = ops.add(ops.multiply(data, _per_channel(call, scale, ndim, axis)), _per_channel(call, shift, ndim, axis))
    return ops.relu(out) if call.name.endswith("ReLU") else out


@converts("Dropout")
def dropout(call, data):
    if call.mode == "always":
        call.refuse("draws random numbers")
    return data


# -- activations ---------------------------------------------------------------------------------------------------------
@converts("Activation")
def activation(call, data):
    return {"relu": ops.relu, "sigmoid": ops.sigmoid, "tanh": ops.tanh, "softrelu": ops.softplus, "softsign": ops.softsign}[call.act_type](data)


@converts("LeakyReLU")
def leaky_relu(call, data, gamma=None):
    if call.act_type == "prelu":
        slope = gamma if call.in_shapes[1] in ((1,), ()) or len(call.shape) == 1 else _per_channel(call, gamma, len(call.shape))
        return ops.prelu(data, call.reshape(gamma, (-1,)) if len(call.in_shapes[1]) == 1 else slope)
    if call.act_type == "leaky":
        return ops.prelu(data, call.float([call.slope]))
    if call.act_type == "elu":
        return ops.elu(data, call.slope)
    if call.act_type == "selu":
        return ops.selu(data, call.float([1.6732632423543772]), call.float([1.0507009873554805]))
    if call.act_type == "gelu":
        return ops.gelu(data, "erf")
    return call.refuse(f"act_type {call.act_type}")


@converts("hard_sigmoid")
def hard_sigmoid(call, data):
    return ops.hard_sigmoid(data, call.float(call.alpha), call.float(call.beta))


# -- pooling -------------------------------------------------------------------------------------------------------------
@converts("Pooling")
def pooling(call, data):
    if call.layout is not None and call.layout[1] != "C":
        call.refuse(f"layout {call.layout}")
    kind, sizes = call.pool_type, call.shape[2:]
    if kind not in ("max", "avg"):
        call.refuse(f"pool_type {kind}")
    axes = ints(range(2, len(call.shape)))
    if call.global_pool:
        return (ops.reduce_max if kind == "max" else ops.reduce_mean)(data, axes, True)
    n = len(call.kernel)
    # As in MXNet, numbers beyond the axes count for nothing.
    kernel, strides, pads = call.kernel, (call.stride or (1,) * n)[:n], (call.pad or (0,) * n)[:n]
    # Padding behind the data that makes the number of windows, rounded down, the one MXNet has.
    needed = [(o - 1) * s + k - size - p for o, s, k, size, p in zip(call.out_shape[2:], strides, kernel, sizes, pads)]
    ends = [max(e, p) if e > p else p for e, p in zip(needed, pads)]
    if any(2 * p > k for p, k in zip(pads, kernel)) or any(e >= k for e, k in zip(ends, kernel)):
        call.refuse("windows that lie outside of the data")
    if kind == "max":
        return ops.max_pool(data, strides, [1] * n, pads, ends, kernel, "floor", "explicit", "i64", 0)
    exclude = call.count_include_pad is False or not any((*pads, *ends))
    if not exclude and any(e > p for e, p in zip(ends, pads)):
        call.refuse("an average over windows that reach behind the padding")
    return ops.avg_pool(data, strides, pads, ends, kernel, exclude, "floor", "explicit")


@converts("_contrib_AdaptiveAvgPooling2D")
def adaptive_pooling(call, data):
    return ops.adaptive_avg_pool(data, ints(call.out_shape[2:]))


@converts("UpSampling")
def upsampling(call, *inputs):
    if call.sample_type != "nearest" or len(inputs) != 1:
        call.refuse("bilinear, or several inputs")
    data = inputs[0]
    return ops.interpolate(data, ints(call.out_shape[2:]), "nearest", "sizes", coordinate_transformation_mode="asymmetric", nearest_mode="floor",
                           axes=ints((2, 3)))


@converts("LRN")
def lrn(call, data):
    return ops.lrn(data, ints([1]), call.alpha, call.beta, call.knorm, call.nsize)


# -- normalization ---------------------------------------------------------------------------------------------------------
def _standardized(call, data, axes, eps):
    return ops.mvn(data, ints(axes), True, eps, "inside_sqrt")


@converts("LayerNorm")
def layer_norm(call, data, gamma, beta):
    if call.output_mean_var:
        call.refuse("output_mean_var")
    axis, ndim = call.axis(call.attributes["axis"]), len(call.shape)
    out = _standardized(call, data, [axis], call.eps)
    return ops.add(ops.multiply(out, _per_channel(call, gamma, ndim, axis)), _per_channel(call, beta, ndim, axis))


@converts("InstanceNorm")
def instance_norm(call, data, gamma, beta):
    ndim = len(call.shape)
    if ndim < 3:
        call.refuse("fewer than three axes")
    out = _standardized(call, data, range(2, ndim), call.eps)
    return ops.add(ops.multiply(out, _per_channel(call, gamma, ndim)), _per_channel(call, beta, ndim))


@converts("GroupNorm")
def group_norm(call, data, gamma, beta):
    if call.output_mean_var:
        call.refuse("output_mean_var")
    groups = call.num_groups
    out = _standardized(call, call.reshape(data, (call.shape[0], groups, -1)), [2], call.eps)
    out = ops.add(ops.multiply(out, _per_channel(call, gamma, 3)), _per_channel(call, beta, 3))
    return call.reshape(out, call.shape)


@converts("L2Normalization")
def l2_normalization(call, data):
    axes = {"channel": [1], "instance": range(1, len(call.shape)), "spatial": range(2, len(call.shape))}[call.mode]
    total = ops.reduce_sum(ops.multiply(data, data), ints(axes), True)
    return ops.divide(data, ops.sqrt(ops.add(total, call.float(call.eps))))


# -- output layers -----------------------------------------------------------------------------------------------------------
def _scaled(call, data):
    if call.attributes.get("use_length") or call.attributes.get("dtype") is not None:
        call.refuse("a length or another type")
    return ops.divide(data, call.float(call.temperature)) if call.temperature not in (None, 1.0) else data


@converts("softmax")
def softmax(call, data, length=None):
    return ops.softmax(_scaled(call, data), call.axis(call.attributes["axis"]))


@converts("log_softmax")
def log_softmax(call, data):
    return ops.log_softmax(_scaled(call, data), call.axis(call.attributes["axis"]))


@converts("softmin")
def softmin(call, data):
    return ops.softmax(ops.negative(_scaled(call, data)), call.axis(call.attributes["axis"]))


@converts("SoftmaxActivation")
def softmax_activation(call, data):
    return ops.softmax(data, 1 if call.mode == "channel" else len(call.shape) - 1)


@converts("SoftmaxOutput")
def softmax_output(call, data, label):
    ndim = len(call.shape)
    if call.multi_output:
        return ops.softmax(data, 1)
    if call.preserve_shape or ndim == 2:
        return ops.softmax(data, ndim - 1)
    flat = call.reshape(data, (call.shape[0], math.prod(call.shape[1:])))
    return call.reshape(ops.softmax(flat, 1), call.shape)


@converts("LinearRegressionOutput", "MAERegressionOutput", "SVMOutput")
def regression_output(call, data, label):
    return data


@converts("LogisticRegressionOutput")
def logistic_output(call, data, label):
    return ops.sigmoid(data)


# -- attention -----------------------------------------------------------------------------------------------------------------
@converts("_contrib_div_sqrt_dim")
def div_sqrt_dim(call, data):
    return ops.divide(data, call.float(math.sqrt(call.shape[-1])))


def _heads(call, data, shape, heads, parts):
    """(T, N, heads * parts * size) to `parts` arrays of (N * heads, T, size)."""
    length, batch, width = shape
    size = width // (heads * parts)
    split = ops.split(call.reshape(data, (length, batch * heads, parts, size)), constant(2, _INT), parts).outputs()
    return [call.transpose(call.reshape(s, (length, batch * heads, size)), (1, 0, 2)) for s in split], size


def _attention_scores(call, queries, keys, size):
    scale = call.float(1 / math.sqrt(size))
    return ops.matmul(ops.multiply(queries, scale), keys, False, True)


def _mixed(call, attention, values):
    return call.reshape(call.transpose(ops.matmul(attention, values, False, False), (1, 0, 2)), call.out_shape)


@converts("_contrib_interleaved_matmul_selfatt_qk")
def selfatt_qk(call, data):
    (queries, keys, _), size = _heads(call, data, call.shape, call.heads, 3)
    return _attention_scores(call, queries, keys, size)


@converts("_contrib_interleaved_matmul_selfatt_valatt")
def selfatt_valatt(call, data, attention):
    return _mixed(call, attention, _heads(call, data, call.shape, call.heads, 3)[0][2])


@converts("_contrib_interleaved_matmul_encdec_qk")
def encdec_qk(call, queries, keys_values):
    (queries,), size = _heads(call, queries, call.in_shapes[0], call.heads, 1)
    return _attention_scores(call, queries, _heads(call, keys_values, call.in_shapes[1], call.heads, 2)[0][0], size)


@converts("_contrib_interleaved_matmul_encdec_valatt")
def encdec_valatt(call, keys_values, attention):
    return _mixed(call, attention, _heads(call, keys_values, call.shape, call.heads, 2)[0][1])


# -- recurrent layers ------------------------------------------------------------------------------------------------------------
# The order of the gates in OpenVINO's cells, as positions in MXNet's: forget, input, candidate, output; update, reset, candidate.
_GATES = {"lstm": (1, 0, 2, 3), "gru": (1, 0, 2), "rnn_relu": (0,), "rnn_tanh": (0,)}


@converts("RNN")
def rnn(call, data, parameters, state, cell=None):
    if call.projection_size or call.lstm_state_clip_min is not None or call.use_sequence_length:
        call.refuse("projection, clipping or lengths")
    length, batch, width = call.shape
    size, directions = call.state_size, 2 if call.bidirectional else 1
    gates = _GATES[call.attributes["mode"]]
    values = call.known(1)
    if values is None:
        call.refuse("its parameters are not known ahead")
    weights, biases = _unpacked(values, len(gates), width, size, call.num_layers, directions)
    x = data
    lengths = ops.constant(np.full(batch, length, np.int32))
    hiddens, cells = [], []
    for layer in range(call.num_layers):
        of_layer = slice(layer * directions, (layer + 1) * directions)
        w, r = (np.stack([_ordered(m[k], gates, size) for m in weights[of_layer]]) for k in (0, 1))
        b = np.stack([_bias(call, i, h, gates, size) for i, h in biases[of_layer]])
        initial = [call.transpose(ops.strided_slice(s, ints([of_layer.start]), ints([of_layer.stop]), ints([1]), [0], [0]).output(0), (1, 0, 2))
                   for s in ((state, cell) if cell is not None else (state,))]
        # OpenVINO's sequences have the batch first; between two transpositions like these they run in the order of time, without any.
        by_batch = call.transpose(x, (1, 0, 2))
        out = _sequence(call, by_batch, initial, lengths, w, r, b, size, "bidirectional" if directions == 2 else "forward").outputs()
        x = call.transpose(out[0], (2, 1, 0, 3))  # (length, directions, batch, size)
        if directions == 2:
            x = call.transpose(x, (0, 2, 1, 3))
        x = call.reshape(x, (length, batch, directions * size))
        hiddens.append(call.transpose(out[1], (1, 0, 2)))
        if cell is not None:
            cells.append(call.transpose(out[2], (1, 0, 2)))
    found = [x]
    if call.state_outputs:
        found += [ops.concat(h, 0).output(0) for h in (hiddens, cells) if h]
    return found


def _sequence(call, x, initial, lengths, w, r, b, size, direction):
    w, r, b = (ops.constant(a) for a in (w, r, b))
    mode = call.attributes["mode"]
    if mode == "lstm":
        return ops.lstm_sequence(x, *initial, lengths, w, r, b, size, direction)
    if mode == "gru":
        return ops.gru_sequence(x, *initial, lengths, w, r, b, size, direction, linear_before_reset=True)
    return ops.rnn_sequence(x, *initial, lengths, w, r, b, size, direction, [mode.removeprefix("rnn_")] * (2 if direction != "forward" else 1))


def _unpacked(vector, gates, width, size, layers, directions):
    """The weights (from input, from state) and biases of every layer and direction, out of MXNet's one vector."""
    weights, biases, at = [], [], 0

    def take(*shape):
        nonlocal at
        at += math.prod(shape)
        return vector[at - math.prod(shape):at].reshape(shape)

    for layer in range(layers):
        for _ in range(directions):
            weights.append((take(gates * size, width if layer == 0 else directions * size), take(gates * size, size)))
    for _ in range(layers * directions):
        biases.append((take(gates * size), take(gates * size)))
    return weights, biases


def _ordered(matrix, gates, size):
    return matrix.reshape(len(gates), size, -1)[list(gates)].reshape(len(gates) * size, -1)


def _bias(call, from_input, from_state, gates, size):
    i, h = (v.reshape(len(gates), size)[list(gates)] for v in (from_input, from_state))
    if call.attributes["mode"] == "gru":  # the candidate's two biases act apart, before and after the reset
        return np.concatenate([(i + h)[:2].ravel(), i[2], h[2]])
    return (i + h).ravel()
