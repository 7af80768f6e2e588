"""Activation functions."""
from typing import Literal

import torch

from ...base import MXNetError
from .. import random_state
from ..registry import op
from ..schema import Training
from ..shapes import known, unify

_ACTIVATIONS = {"relu": torch.relu, "sigmoid": torch.sigmoid, "softrelu": torch.nn.functional.softplus,
                "softsign": torch.nn.functional.softsign, "tanh": torch.tanh}


@op("Activation", aliases=("_npx_activation",), same_shape=True)
def activation(data, *, act_type: Literal["relu", "sigmoid", "softrelu", "softsign", "tanh"]):
    """Apply one of the classic activation functions: ``softrelu`` is ``log(1 + exp(x))``, ``softsign`` is ``x / (1 + |x|)``.

    Example
    -------
    >>> import mxnet as mx
    >>> mx.nd.Activation(mx.nd.array([-1, 0, 2]), act_type="relu").asnumpy()
    array([0., 0., 2.], dtype=float32)
    """
    return _ACTIVATIONS[act_type](data)


@op("hard_sigmoid", same_shape=True)
def hard_sigmoid(data, *, alpha: float = 0.2, beta: float = 0.5):
    """``alpha * x + beta``, clipped to the range from 0 to 1."""
    return torch.nn.functional.hardtanh(data * alpha + beta, 0.0, 1.0)  # its gradient is 0 on the border, too


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
        raise MXNetError(f"LeakyReLU: cannot broadcast gamma to data. gamma: {tuple(gamma)}, data: {tuple(data)}")
    return tuple(shape)


@op("LeakyReLU", aliases=("_npx_leaky_relu",), inputs_rule=_leaky_inputs, output_names=("output", "mask"),
    initial={"gamma": ["Constant", {"value": 0.25}]},
    num_outputs=lambda attributes: 2 if attributes["act_type"] == "rrelu" else 1)
def leaky_relu(data, gamma=None, *, act_type: Literal["elu", "gelu", "leaky", "prelu", "rrelu", "selu"] = "leaky", slope: float = 0.25,
               lower_bound: float = 0.125, upper_bound: float = 0.334, training: Training = False):
    """Rectifiers that let something through below zero.

    ``leaky`` multiplies negative values by `slope`; ``prelu`` by the learned `gamma`, one for each channel (axis 1) or one for all;
    ``rrelu`` by a random factor between the bounds while training, by their mean otherwise, and returns the factors, too; ``elu`` is
    ``slope * (exp(x) - 1)`` below zero; ``selu`` and ``gelu`` (the exact one, with erf) are as in their papers.

    Raises
    ------
    MXNetError
        If `gamma` does not broadcast over the data, or is given to another `act_type` than ``prelu``.
    """
    if (gamma is None) is (act_type == "prelu"):
        raise MXNetError(f"LeakyReLU: `gamma` belongs to act_type='prelu' only, received act_type={act_type!r} "
                         f"and {'none' if gamma is None else f'one of shape {tuple(gamma.shape)}'}")
    if act_type == "leaky":
        return torch.nn.functional.leaky_relu(data, slope)
    if act_type == "gelu":
        return torch.nn.functional.gelu(data)
    if act_type == "prelu":
        return torch.where(data > 0, data, data * gamma.view(_slopes_shape(gamma.shape, data.shape)))
    if act_type == "elu":
        return torch.nn.functional.elu(data, slope)
    if act_type == "selu":
        return torch.selu(data)
    if not training:
        return torch.nn.functional.leaky_relu(data, (lower_bound + upper_bound) / 2), torch.zeros_like(data)
    slopes = torch.empty_like(data).uniform_(lower_bound, upper_bound, generator=random_state.generator(data.device))
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
