"""Activation functions."""
from typing import Literal

import torch

from ...base import MXNetError
from ...kernels.elementwise import pointwise
from ...suggestions import shortened
from .. import random_state
from ..quantization.arithmetic import Quantized
from ..quantization.form import EightBits, quantized_form
from ..registry import op
from ..schema import Training
from ..shapes import known, unify

_ACTIVATIONS = {"relu": torch.relu, "sigmoid": torch.sigmoid, "softrelu": torch.nn.functional.softplus, "softsign": torch.nn.functional.softsign,
                "tanh": torch.tanh, "log_sigmoid": torch.nn.functional.logsigmoid, "mish": torch.nn.functional.mish}


@op("Activation", aliases=("_npx_activation",), same_shape=True, is_relu=lambda a: a["act_type"] == "relu",
    float32_when=("act_type", ("softrelu",)), layout_agnostic=True, result_type="data", complete_rule=True, names_output=True)
def activation(data, *, act_type: Literal["relu", "sigmoid", "softrelu", "softsign", "tanh", "log_sigmoid", "mish"]):
    """Apply one of the classic activation functions to each element.

    `act_type` names it: ``relu`` is ``max(x, 0)``, ``sigmoid`` ``1 / (1 + exp(-x))``, ``tanh`` the hyperbolic tangent, ``softrelu``
    ``log(1 + exp(x))``, ``softsign`` ``x / (1 + |x|)``, and, of MXNet 2.0, ``log_sigmoid`` ``log(sigmoid(x))``, ``mish`` ``x * tanh(softrelu(x))``.

    Example
    -------
    >>> mx.nd.Activation(mx.nd.array([-1, 0, 2]), act_type="relu").asnumpy()
    array([0., 0., 2.], dtype=float32)
    """
    return _ACTIVATIONS[act_type](data)


@quantized_form(activation, "_contrib_quantized_act", when=lambda attributes: attributes["act_type"] == "relu")
def quantized_act(data: EightBits, *, act_type) -> Quantized:
    """``relu`` of int8 or uint8 `data`; the range stays. Other functions are not supported.

    Example
    -------
    >>> q, low, high = mx.nd.array([1, -2, 7], dtype='int8'), mx.nd.array([-1]), mx.nd.array([1])
    >>> mx.nd.contrib.quantized_act(q, low, high, act_type='relu')[0].asnumpy()
    array([1, 0, 7], dtype=int8)
    """
    if act_type != "relu":
        raise MXNetError(f"_contrib_quantized_act: `act_type` must be 'relu', received {shortened(act_type)}")
    return data.with_values(data.values.clamp(min=0))


@op("hard_sigmoid", complete_rule="shape", same_shape=True, layout_agnostic=True, result_type="data")
def hard_sigmoid(data, *, alpha: float = 0.2, beta: float = 0.5):
    """``alpha * x + beta``, clipped to the range from 0 to 1: a piecewise linear sigmoid.

    Example
    -------
    >>> mx.nd.hard_sigmoid(mx.nd.array([-4, -1, 0, 4])).asnumpy()
    array([0. , 0.3, 0.5, 1. ], dtype=float32)
    """
    return pointwise.hard_sigmoid(data, alpha, beta)


_GELU = {"gelu": "none", "gelu_erf": "none", "gelu_tanh": "tanh"}


def _leaky_inputs(attributes):
    return ("data", "gamma") if attributes["act_type"] == "prelu" else ("data",)


def _slopes_shape(gamma, data):
    """The shape in which slopes broadcast over data: their axes belong to the first two of the data, the last one first.

    Raises
    ------
    MXNetError
        If they do not fit.
    """
    if gamma == data:
        return gamma
    shape, left = [1] * len(data), list(gamma)
    for axis in range(min(1, len(data) - 1), -1, -1):
        if left and left[-1] in (1, data[axis]):
            shape[axis] = left.pop()
    if left:
        raise MXNetError(f"LeakyReLU: gamma must broadcast to data, received shapes {tuple(gamma)} and {tuple(data)}")
    return tuple(shape)


def _random_slopes(data, lower, upper):
    bank = None if data.device.type == "meta" else random_state.source(data.device)
    if bank is None:
        return torch.empty_like(data).uniform_(lower, upper, generator=random_state.generator(data.device))
    numbers = bank.draw("uniform", data.numel(), torch.float64 if data.dtype in (torch.float16, torch.float64) else torch.float32, 0.0, 1.0)
    # In three steps, each rounded, as MXNet computes them.
    return numbers.view(data.shape).to(data.dtype).mul_(upper - lower).add_(lower)


@op("LeakyReLU", complete_rule="shape", aliases=("_npx_leaky_relu",), inputs_rule=_leaky_inputs, output_names=("output", "mask"),
    initial={"gamma": ["Constant", {"value": 0.25}]},
    num_outputs=lambda attributes: 2 if attributes["act_type"] == "rrelu" else 1, stochastic=lambda a: a["act_type"] == "rrelu" and a["training"],
    layout_agnostic=True, result_type="data", names_input=True, names_output=True, float32_when=("act_type", ("elu", "selu")))
def leaky_relu(data, gamma=None, *, act_type: Literal["elu", "gelu", "gelu_erf", "gelu_tanh", "leaky", "prelu", "rrelu", "selu"] = "leaky",
               slope: float = 0.25, lower_bound: float = 0.125, upper_bound: float = 0.334, training: Training = False):
    """Variants of ReLU that let something through below zero. The result has the shape of `data` (N, C, ...).

    ``leaky``
        ``slope * x`` below zero (Maas et al. 2013).
    ``prelu``
        ``gamma * x``, with `gamma` learned: (C,), a slope for each channel, or (1,) (He et al. 2015).
    ``rrelu``
        ``r * x``, each r drawn from `lower_bound` to `upper_bound` in training, their mean otherwise; the second output holds them (Xu et al. 2015).
    ``elu``
        ``slope * (exp(x) - 1)`` (Clevert et al. 2015).
    ``selu``
        ``1.0507 * 1.6733 * (exp(x) - 1)``, and above zero ``1.0507 * x`` (Klambauer et al. 2017).
    ``gelu``
        ``x * (1 + erf(x / sqrt(2))) / 2``, above zero as well (Hendrycks, Gimpel 2016); MXNet 2 calls it ``gelu_erf``.
    ``gelu_tanh``
        ``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2``, which approximates it.

    Raises
    ------
    MXNetError
        If `gamma` does not broadcast over the data, or is given to another `act_type` than ``prelu``.

    Example
    -------
    >>> x = mx.nd.array([[-2, 2], [-4, 4]])
    >>> mx.nd.LeakyReLU(x, act_type="leaky", slope=0.5).asnumpy()
    array([[-1.,  2.],
           [-2.,  4.]], dtype=float32)
    >>> mx.nd.LeakyReLU(x, mx.nd.array([0.25, 1]), act_type="prelu").asnumpy()
    array([[-0.5,  2. ],
           [-1. ,  4. ]], dtype=float32)
    """
    if (gamma is None) is (act_type == "prelu"):
        raise MXNetError(f"LeakyReLU: `gamma` belongs to act_type='prelu' only, received act_type={act_type!r} "
                         f"and {'none' if gamma is None else f'one of shape {tuple(gamma.shape)}'}")
    if act_type == "leaky":
        return torch.nn.functional.leaky_relu(data, slope)
    if act_type in _GELU:
        return torch.nn.functional.gelu(data, approximate=_GELU[act_type])
    if act_type == "prelu":
        return torch.where(data > 0, data, data * gamma.view(_slopes_shape(gamma.shape, data.shape)))
    if act_type == "elu":
        return torch.nn.functional.elu(data, slope)
    if act_type == "selu":
        return torch.selu(data)
    if not training:
        return torch.nn.functional.leaky_relu(data, (lower_bound + upper_bound) / 2), torch.zeros_like(data)
    slopes = _random_slopes(data, lower_bound, upper_bound)
    return torch.where(data > 0, data, data * slopes), slopes


@leaky_relu.shape_rule
def _leaky_relu_shape_rule(in_shapes, out_shapes, *, act_type, **_):
    shape = unify(in_shapes[0], out_shapes[0])
    in_shapes[0], out_shapes = shape, [shape] * len(out_shapes)
    if act_type == "prelu" and shape is not None:
        channels = shape[min(1, len(shape) - 1)] if shape else 1
        gamma = in_shapes[1]
        if gamma is None:
            in_shapes[1] = (channels,)
        elif known(gamma) and known(shape):
            _slopes_shape(gamma, shape)
    return in_shapes, out_shapes
