"""Optimizer updates of ONNX's domain ``ai.onnx.preview.training``."""
import math

from .....base import MXNetError
from ..registry import translates
from .elemwise import arithmetic, binary, with_number


def _groups(data, count):
    """Split the inputs into parameters, gradients and states."""
    each, rest = divmod(len(data), count)
    if rest:
        raise MXNetError(f"{len(data)} arrays do not make {count} lists of equal length")
    return zip(*(data[i * each:(i + 1) * each] for i in range(count)))


def _regularized(g, parameter, gradient, norm):
    return gradient if not norm else binary(g, "broadcast_add", with_number(g, "_mul_scalar", parameter, norm), gradient)


def _mixed(g, a, a_share, b, b_share):
    return binary(g, "broadcast_add", with_number(g, "_mul_scalar", a, a_share), with_number(g, "_mul_scalar", b, b_share))


@translates("ai.onnx.preview.training.Adagrad")
def adagrad(g, rate, step, *data, decay_factor=0.0, epsilon=1e-6, norm_coefficient=0.0):
    """Steps divided by the root of all squares of gradients so far."""
    rate = rate.number("R") / (1 + step.number("T") * decay_factor)
    parameters, histories = [], []
    for parameter, gradient, history in _groups(data, 3):
        gradient = _regularized(g, parameter, gradient, norm_coefficient)
        history = binary(g, "broadcast_add", history, g.op("square", gradient))
        root = with_number(g, "_plus_scalar", g.op("sqrt", history), epsilon)
        moved = with_number(g, "_mul_scalar", binary(g, "broadcast_div", gradient, root), rate)
        parameters.append(binary(g, "broadcast_sub", parameter, moved))
        histories.append(history)
    return [*parameters, *histories]


@translates("ai.onnx.preview.training.Adam")
def adam(g, rate, step, *data, alpha=0.9, beta=0.999, epsilon=1e-6, norm_coefficient=0.0, norm_coefficient_post=0.0):
    """Steps by moving averages of gradients, divided by the root of those of their squares."""
    rate, time = rate.number("R"), step.number("T")
    if time > 0:
        rate *= math.sqrt(1 - beta ** time) / (1 - alpha ** time)
    results = []
    for parameter, gradient, first, second in _groups(data, 4):
        gradient = _regularized(g, parameter, gradient, norm_coefficient)
        first = _mixed(g, first, alpha, gradient, 1 - alpha)
        second = _mixed(g, second, beta, g.op("square", gradient), 1 - beta)
        root = with_number(g, "_plus_scalar", g.op("sqrt", second), epsilon)
        moved = with_number(g, "_mul_scalar", binary(g, "broadcast_div", first, root), rate)
        parameter = binary(g, "broadcast_sub", parameter, moved)
        results.append((with_number(g, "_mul_scalar", parameter, 1 - norm_coefficient_post), first, second))
    return [value for column in zip(*results) for value in column]


@translates("ai.onnx.preview.training.Momentum")
def momentum(g, rate, step, *data, alpha, beta, mode="standard", norm_coefficient=0.0):
    """Steps by a moving sum of gradients."""
    if mode not in ("standard", "nesterov"):
        raise MXNetError(f"`mode` must be standard or nesterov, received {mode!r:.40}")
    rate, share = rate.number("R"), beta if step.number("T") > 0 else 1.0
    results = []
    for parameter, gradient, speed in _groups(data, 3):
        gradient = _regularized(g, parameter, gradient, norm_coefficient)
        speed = _mixed(g, speed, alpha, gradient, share)
        direction = speed if mode == "standard" else _mixed(g, gradient, 1.0, speed, alpha)
        results.append((arithmetic(g, "Sub", parameter, with_number(g, "_mul_scalar", direction, rate)), speed))
    return [value for column in zip(*results) for value in column]
