"""Updates of many weights in one call. The inputs of the weights follow each other: ``w0, g0, mom0, w1, g1, mom1, ...``."""
import torch

from ...base import MXNetError
from ..registry import op
from ..schema import Floats, Shape
from ..shapes import unify
from . import rules
from .single import require_one_shape, store, usable_scale


def _multi(name, stride, *, count="num_weights", single_precision=False, extra=0, **traits):
    """Register an update of ``attributes[count]`` weights with `stride` inputs each, and `extra` inputs for all of them after these.

    With `single_precision` what follows weight and gradient is float32.
    """
    def register(fn):
        operator = op(name, num_outputs=lambda attributes: attributes[count], mutates=("data",), no_gradient=True, **traits)(fn)

        @operator.shape_rule
        def _(in_shapes, out_shapes, **attributes):
            n = attributes[count]
            _require_count(name, in_shapes, n, stride, extra)
            shapes, outs = [], []
            for i, out in enumerate(out_shapes[:n]):
                for s in in_shapes[i * stride:(i + 1) * stride]:
                    out = unify(out, s)
                shapes += [out] * stride
                outs.append(out)
            return shapes + in_shapes[n * stride:], outs

        @operator.dtype_rule
        def _(in_types, out_types, **attributes):
            common = next((t for t in (*in_types[:2], *out_types) if t is not None), None)
            n = attributes[count]
            states = torch.float32 if single_precision else common
            return [*[common, common, *[states] * (stride - 2)] * n, *[torch.float32] * extra], [common] * n

        return operator
    return register


def _require_count(name, data, n, stride, extra=0):
    if len(data) != n * stride + extra:
        shared = f" and {extra} for all" if extra else ""
        raise MXNetError(f"{name}: {n} weights take {n * stride + extra} inputs, {stride} for each{shared}; received {len(data)}")


def _groups(name, data, n, stride, extra=0, **per_weight):
    """The inputs of each weight.

    Raises
    ------
    MXNetError
        If the number of inputs, or of the values that each weight has one of, does not fit.
    """
    _require_count(name, data, n, stride, extra)
    for what, values in per_weight.items():
        if len(values) != n:
            raise MXNetError(f"{name}: `{what}` must have one entry for each of the {n} weights, received {len(values)}")
    groups = [data[i * stride:(i + 1) * stride] for i in range(n)]
    for weight, *others in groups:
        require_one_shape(name, weight, others)
    return groups


def _results(new):
    return new if len(new) > 1 else new[0]


@_multi("multi_sgd_update", 2)
def multi_sgd_update(*data, lrs: Floats, wds: Floats, rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int = 1):
    """`sgd_update` of each (weight, gradient), with a learning rate and a weight decay of its own."""
    groups = _groups("multi_sgd_update", data, num_weights, 2, lrs=lrs, wds=wds)
    return _results([rules.sgd(w, g, lr, wd, rescale_grad, clip_gradient) for (w, g), lr, wd in zip(groups, lrs, wds)])


@_multi("multi_sgd_mom_update", 3)
def multi_sgd_mom_update(*data, lrs: Floats, wds: Floats, momentum: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
                         num_weights: int = 1):
    """`sgd_mom_update` of each (weight, gradient, momentum)."""
    groups = _groups("multi_sgd_mom_update", data, num_weights, 3, lrs=lrs, wds=wds)
    return _results([rules.sgd_momentum(w, g, m, lr, momentum, wd, rescale_grad, clip_gradient)
                     for (w, g, m), lr, wd in zip(groups, lrs, wds)])


@_multi("multi_mp_sgd_update", 3, single_precision=True)
def multi_mp_sgd_update(*data, lrs: Floats, wds: Floats, rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int = 1):
    """`mp_sgd_update` of each (weight, gradient, float32 weight)."""
    groups = _groups("multi_mp_sgd_update", data, num_weights, 3, lrs=lrs, wds=wds)
    return _results([store(w, w32, rules.sgd(w32, g.float(), lr, wd, rescale_grad, clip_gradient))
                     for (w, g, w32), lr, wd in zip(groups, lrs, wds)])


@_multi("multi_mp_sgd_mom_update", 4, single_precision=True)
def multi_mp_sgd_mom_update(*data, lrs: Floats, wds: Floats, momentum: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
                            num_weights: int = 1):
    """`mp_sgd_mom_update` of each (weight, gradient, momentum, float32 weight)."""
    groups = _groups("multi_mp_sgd_mom_update", data, num_weights, 4, lrs=lrs, wds=wds)
    return _results([store(w, w32, rules.sgd_momentum(w32, g.float(), m, lr, momentum, wd, rescale_grad, clip_gradient))
                     for (w, g, m, w32), lr, wd in zip(groups, lrs, wds)])


def _preloaded(name, data, n, stride):
    """The inputs of each weight, and the rates and decays that the last two inputs hold, read once."""
    groups = _groups(name, data, n, stride, 2)
    lrs, wds = data[-2], data[-1]
    if lrs.numel() != n or wds.numel() != n:
        raise MXNetError(f"{name}: the last two inputs must hold one learning rate and one weight decay for each of the {n} weights, "
                         f"received {lrs.numel()} and {wds.numel()}")
    if lrs.device.type == "meta":
        return groups, [0.0] * n, [0.0] * n
    return groups, lrs.tolist(), wds.tolist()


@_multi("preloaded_multi_sgd_update", 2, extra=2, amp=None)
def preloaded_multi_sgd_update(*data, rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int = 1):
    """`multi_sgd_update` with the learning rates and the weight decays as the last two inputs."""
    groups, lrs, wds = _preloaded("preloaded_multi_sgd_update", data, num_weights, 2)
    return _results([rules.sgd(w, g, lr, wd, rescale_grad, clip_gradient) for (w, g), lr, wd in zip(groups, lrs, wds)])


@_multi("preloaded_multi_sgd_mom_update", 3, extra=2, amp=None)
def preloaded_multi_sgd_mom_update(*data, momentum: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
                                   num_weights: int = 1):
    """`multi_sgd_mom_update` with the learning rates and the weight decays as the last two inputs."""
    groups, lrs, wds = _preloaded("preloaded_multi_sgd_mom_update", data, num_weights, 3)
    return _results([rules.sgd_momentum(w, g, m, lr, momentum, wd, rescale_grad, clip_gradient)
                     for (w, g, m), lr, wd in zip(groups, lrs, wds)])


@_multi("preloaded_multi_mp_sgd_update", 3, single_precision=True, extra=2, amp=None)
def preloaded_multi_mp_sgd_update(*data, rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int = 1):
    """`multi_mp_sgd_update` with the learning rates and the weight decays as the last two inputs."""
    groups, lrs, wds = _preloaded("preloaded_multi_mp_sgd_update", data, num_weights, 3)
    return _results([store(w, w32, rules.sgd(w32, g.float(), lr, wd, rescale_grad, clip_gradient))
                     for (w, g, w32), lr, wd in zip(groups, lrs, wds)])


@_multi("preloaded_multi_mp_sgd_mom_update", 4, single_precision=True, extra=2, amp=None)
def preloaded_multi_mp_sgd_mom_update(*data, momentum: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
                                      num_weights: int = 1):
    """`multi_mp_sgd_mom_update` with the learning rates and the weight decays as the last two inputs."""
    groups, lrs, wds = _preloaded("preloaded_multi_mp_sgd_mom_update", data, num_weights, 4)
    return _results([store(w, w32, rules.sgd_momentum(w32, g.float(), m, lr, momentum, wd, rescale_grad, clip_gradient))
                     for (w, g, m, w32), lr, wd in zip(groups, lrs, wds)])


@_multi("_multi_adamw_update", 4, extra=1, amp=None)
def multi_adamw_update(*data, lrs: Floats, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, wds: Floats, etas: Floats,
                       clip_gradient: float = -1.0, num_weights: int = 1):
    """`_adamw_update` of each (weight, gradient, mean, variance); the last input is the scale of the gradients."""
    groups = _groups("_multi_adamw_update", data, num_weights, 4, 1, lrs=lrs, wds=wds, etas=etas)
    scale = usable_scale(data[-1])
    if scale is None:
        return _results([group[0].clone() for group in groups])
    return _results([rules.adamw(w, g, m, v, lr, eta, beta1, beta2, epsilon, wd, scale, clip_gradient)
                     for (w, g, m, v), lr, wd, eta in zip(groups, lrs, wds, etas)])


@_multi("_multi_mp_adamw_update", 5, single_precision=True, extra=1, amp=None)
def multi_mp_adamw_update(*data, lrs: Floats, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, wds: Floats, etas: Floats,
                          clip_gradient: float = -1.0, num_weights: int = 1):
    """`_mp_adamw_update` of each (weight, gradient, mean, variance, float32 weight); the last input is the scale of the gradients."""
    groups = _groups("_multi_mp_adamw_update", data, num_weights, 5, 1, lrs=lrs, wds=wds, etas=etas)
    scale = usable_scale(data[-1])
    if scale is None:
        return _results([group[0].clone() for group in groups])
    return _results([store(w, w32, rules.adamw(w32, g.float(), m, v, lr, eta, beta1, beta2, epsilon, wd, scale, clip_gradient))
                     for (w, g, m, v, w32), lr, wd, eta in zip(groups, lrs, wds, etas)])


def _lamb(weight, weight_norm, grad, mean, var, lr, wd, t, beta1, beta2, epsilon, bias_correction, rescale, clip, lower_bound, upper_bound):
    direction = rules.lamb_direction(weight, grad, mean, var, beta1, beta2, epsilon, t, bias_correction, wd, rescale, clip)
    return rules.lamb_step(weight, direction, weight_norm, _norm(direction), lr, lower_bound, upper_bound)


def _norm(data):
    return torch.linalg.vector_norm(data, dtype=torch.float64 if data.dtype is torch.float64 else torch.float32)


@_multi("_multi_lamb_update", 4, count="num_tensors", amp=None)
def multi_lamb_update(*data, learning_rates: Floats, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-6, wds: Floats,
                      rescale_grad: float = 1.0, lower_bound: float = -1.0, upper_bound: float = -1.0, clip_gradient: float = -1.0,
                      bias_correction: bool = True, step_count: Shape, num_tensors: int = 1):
    """Both phases of LAMB of each (weight, gradient, mean, variance); `step_count` holds the number of each one's step, from 1."""
    groups = _groups("_multi_lamb_update", data, num_tensors, 4, learning_rates=learning_rates, wds=wds, step_count=step_count)
    shared = beta1, beta2, epsilon, bias_correction, rescale_grad, clip_gradient, lower_bound, upper_bound
    return _results([_lamb(w, _norm(w), g, m, v, lr, wd, t, *shared)
                     for (w, g, m, v), lr, wd, t in zip(groups, learning_rates, wds, step_count)])


@_multi("_multi_mp_lamb_update", 5, count="num_tensors", single_precision=True, amp=None)
def multi_mp_lamb_update(*data, learning_rates: Floats, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-6, wds: Floats,
                         rescale_grad: float = 1.0, lower_bound: float = -1.0, upper_bound: float = -1.0, clip_gradient: float = -1.0,
                         bias_correction: bool = True, step_count: Shape, num_tensors: int = 1):
    """Both phases of LAMB of each (weight, gradient, mean, variance, float32 weight)."""
    groups = _groups("_multi_mp_lamb_update", data, num_tensors, 5, learning_rates=learning_rates, wds=wds, step_count=step_count)
    shared = beta1, beta2, epsilon, bias_correction, rescale_grad, clip_gradient, lower_bound, upper_bound
    return _results([store(w, w32, _lamb(w32, _norm(w), g.float(), m, v, lr, wd, t, *shared))
                     for (w, g, m, v, w32), lr, wd, t in zip(groups, learning_rates, wds, step_count)])
