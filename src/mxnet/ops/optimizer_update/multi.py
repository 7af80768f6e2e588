"""Updates of many weights in one call. The inputs of the weights follow each other: ``w0, g0, mom0, w1, g1, mom1, ...``."""
import torch

from ...base import MXNetError
from ..registry import MAX_OUTPUTS, op
from ..schema import Floats, Shape
from ..shapes import product, unify
from . import rules
from .single import if_usable, require_one_number, require_one_shape, store, usable_scale

_RATES = ("lrs", "wds")  # the inputs that all preloaded weights share
_PER_WEIGHT = ("lrs", "learning_rates", "wds", "etas", "step_count")  # attributes with an entry for each weight


def _multi(name, *states, count="num_weights", single_precision=False, shared=(), **traits):
    """Register an update of ``attributes[count]`` weights.

    The inputs of each are weight, gradient and `states`, which the update writes to; the inputs `shared` by all weights come after these.
    With `single_precision` the states are float32.
    """
    kinds = ("weight", "grad", *states)
    stride, extra = len(kinds), len(shared)

    def register(fn):
        operator = op(name, num_outputs=lambda attributes: attributes[count], mutates=("data",), no_gradient=True,
                      complete_rule="shape", inputs_rule=lambda attributes: [*_numbered(kinds, attributes[count]), *shared],
                      mutates_rule=lambda attributes: _numbered(states, attributes[count]), **traits)(fn)

        @operator.shape_rule
        def _(in_shapes, out_shapes, **attributes):
            n = attributes[count]
            _require_count(name, in_shapes, n, stride, extra)
            _require_entries(name, n, {attribute: attributes[attribute] for attribute in _PER_WEIGHT if attribute in attributes})
            if shared == _RATES:
                _require_rates(name, n, *in_shapes[-2:])
            elif shared:
                require_one_number(in_shapes[-1])
            shapes, outs = [], []
            for i, out in enumerate(out_shapes[:n]):
                for s in in_shapes[i * stride:(i + 1) * stride]:
                    out = unify(out, s)
                shapes += [out] * stride
                outs.append(out)
            return shapes + in_shapes[n * stride:], outs

        @operator.dtype_rule
        def _(in_types, out_types, **attributes):
            n = attributes[count]
            common = next((t for k, t in enumerate(in_types[:n * stride]) if t is not None and not (single_precision and k % stride > 1)), None) \
                or next((t for t in out_types if t is not None), None)
            of_states = torch.float32 if single_precision else common
            return [*[common, common, *[of_states] * len(states)] * n, *[torch.float32] * extra], [common] * n

        return operator
    return register


def _numbered(names, count):
    count = min(count, MAX_OUTPUTS)  # `Operator.outputs` raises the error for more
    return [f"{name}_{i}" for i in range(count) for name in names]


def _require_count(name, data, n, stride, extra=0):
    if len(data) != n * stride + extra:
        shared = f" and {extra} for all" if extra else ""
        raise MXNetError(f"{name}: {n} weights take {n * stride + extra} inputs, {stride} for each{shared}; received {len(data)}")


def _require_entries(name, n, per_weight):
    for attribute, values in per_weight.items():
        if len(values) != n:
            raise MXNetError(f"{name}: `{attribute}` must have one entry for each of the {n} weights, received {len(values)}")


def _require_rates(name, n, lrs, wds):
    """Raise an error unless rates and decays of these partial shapes may match the number of weights."""
    counts = [-1 if s is None else product(s) for s in (lrs, wds)]
    if min(counts) >= 0 and counts != [n, n]:
        raise MXNetError(f"{name}: the last two inputs must hold one learning rate and one weight decay for each of the {n} weights, "
                         f"received {counts[0]} and {counts[1]}")


def _groups(name, data, n, stride, extra=0, **per_weight):
    """The inputs of each weight.

    Raises
    ------
    MXNetError
        If the number of inputs, or of the values that each weight has one of, does not fit.
    """
    _require_count(name, data, n, stride, extra)
    _require_entries(name, n, per_weight)
    groups = [data[i * stride:(i + 1) * stride] for i in range(n)]
    for weight, *others in groups:
        require_one_shape(name, weight, others)
    return groups


def _results(new):
    return new if len(new) > 1 else new[0]


@_multi("multi_sgd_update")
def multi_sgd_update(*data, lrs: Floats, wds: Floats, rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int = 1):
    """`sgd_update` of each (weight, gradient), with a learning rate of `lrs` and a weight decay of `wds`.

    Inputs are ordered by weight, ``w0, g0, w1, g1, ...``; the new weights are returned, and written to `out`. Other
    attributes hold for all weights.

    Raises
    ------
    MXNetError
        If the number of inputs, or of rates or decays, does not match `num_weights`.

    Example
    -------
    >>> w, v, g = mx.nd.ones(1), mx.nd.ones(2), mx.nd.ones(2)
    >>> found = mx.nd.multi_sgd_update(w, g[:1], v, g, lrs=(0.5, 0.25), wds=(0, 0), num_weights=2, out=[w, v])
    >>> w.asnumpy(), v.asnumpy()
    (array([0.5], dtype=float32), array([0.75, 0.75], dtype=float32))
    """
    groups = _groups("multi_sgd_update", data, num_weights, 2, lrs=lrs, wds=wds)
    return _results([rules.sgd(w, g, lr, wd, rescale_grad, clip_gradient) for (w, g), lr, wd in zip(groups, lrs, wds)])


@_multi("multi_sgd_mom_update", "mom")
def multi_sgd_mom_update(*data, lrs: Floats, wds: Floats, momentum: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
                         num_weights: int = 1):
    """`sgd_mom_update` of each (weight, gradient, momentum), with a learning rate of `lrs` and a weight decay of `wds`.

    Inputs are ordered by weight, ``w0, g0, mom0, w1, ...``.

    Raises
    ------
    MXNetError
        If the number of inputs, or of rates or decays, does not match `num_weights`.

    Example
    -------
    >>> w, v, g, mom = mx.nd.ones(1), mx.nd.ones(1), mx.nd.ones(1), mx.nd.ones(1)
    >>> new = mx.nd.multi_sgd_mom_update(w, g, mom, v, g, mx.nd.zeros(1), lrs=(0.5, 0.5), wds=(0, 0), momentum=0.25, num_weights=2)
    >>> new[0].asnumpy(), mom.asnumpy(), new[1].asnumpy()
    (array([0.75], dtype=float32), array([-0.25], dtype=float32), array([0.5], dtype=float32))
    """
    groups = _groups("multi_sgd_mom_update", data, num_weights, 3, lrs=lrs, wds=wds)
    return _results([rules.sgd_momentum(w, g, m, lr, momentum, wd, rescale_grad, clip_gradient)
                     for (w, g, m), lr, wd in zip(groups, lrs, wds)])


@_multi("multi_mp_sgd_update", "weight32", single_precision=True)
def multi_mp_sgd_update(*data, lrs: Floats, wds: Floats, rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int = 1):
    """`mp_sgd_update` of each (weight, gradient, float32 weight), with a learning rate of `lrs` and a weight decay of `wds`.

    Inputs are ordered by weight, ``w0, g0, w32_0, w1, ...``.

    Raises
    ------
    MXNetError
        If the number of inputs, or of rates or decays, does not match `num_weights`.

    Example
    -------
    >>> w, w32 = mx.nd.ones(1, dtype="float16"), mx.nd.ones(1)
    >>> w = mx.nd.multi_mp_sgd_update(w, w.copy(), w32, lrs=(2 ** -12,), wds=(0,), num_weights=1)
    >>> w.asnumpy(), w32.asnumpy()
    (array([1.], dtype=float16), array([0.99975586], dtype=float32))
    """
    groups = _groups("multi_mp_sgd_update", data, num_weights, 3, lrs=lrs, wds=wds)
    return _results([store(w, w32, rules.sgd(w32, g.float(), lr, wd, rescale_grad, clip_gradient))
                     for (w, g, w32), lr, wd in zip(groups, lrs, wds)])


@_multi("multi_mp_sgd_mom_update", "mom", "weight32", single_precision=True)
def multi_mp_sgd_mom_update(*data, lrs: Floats, wds: Floats, momentum: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
                            num_weights: int = 1):
    """`mp_sgd_mom_update` of each (weight, gradient, momentum, float32 weight), with a learning rate of `lrs` and a weight decay of `wds`.

    Inputs are ordered by weight, ``w0, g0, mom0, w32_0, w1, ...``.

    Raises
    ------
    MXNetError
        If the number of inputs, or of rates or decays, does not match `num_weights`.

    Example
    -------
    >>> w, mom, w32 = mx.nd.ones(1, dtype="float16"), mx.nd.zeros(1), mx.nd.ones(1)
    >>> w = mx.nd.multi_mp_sgd_mom_update(w, w.copy(), mom, w32, lrs=(2 ** -12,), wds=(0,), num_weights=1)
    >>> w.asnumpy(), w32.asnumpy()
    (array([1.], dtype=float16), array([0.99975586], dtype=float32))
    """
    groups = _groups("multi_mp_sgd_mom_update", data, num_weights, 4, lrs=lrs, wds=wds)
    return _results([store(w, w32, rules.sgd_momentum(w32, g.float(), m, lr, momentum, wd, rescale_grad, clip_gradient))
                     for (w, g, m, w32), lr, wd in zip(groups, lrs, wds)])


def _preloaded(name, data, n, stride):
    """The inputs of each weight, and the rates and decays that the last two inputs hold: numbers, or, on a GPU, tensors of one number."""
    groups = _groups(name, data, n, stride, 2)
    lrs, wds = data[-2], data[-1]
    _require_rates(name, n, lrs.shape, wds.shape)
    if lrs.device.type == "meta":
        return groups, [0.0] * n, [0.0] * n
    return (groups, lrs.tolist(), wds.tolist()) if lrs.is_cpu else (groups, lrs.reshape(-1).unbind(), wds.reshape(-1).unbind())


def _sgd(rate):
    return rules.sgd_by_tensors if isinstance(rate, torch.Tensor) else rules.sgd


def _sgd_momentum(rate):
    return rules.sgd_momentum_by_tensors if isinstance(rate, torch.Tensor) else rules.sgd_momentum


@_multi("preloaded_multi_sgd_update", shared=_RATES, amp=None)
def preloaded_multi_sgd_update(*data, rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int = 1):
    """`multi_sgd_update` with the learning rates and the weight decays as the last two inputs, (num_weights,) each.

    Raises
    ------
    MXNetError
        If the number of inputs, or of rates or decays, does not match `num_weights`.

    Example
    -------
    >>> w, v, g, lrs = mx.nd.ones(1), mx.nd.ones(2), mx.nd.ones(2), mx.nd.array([0.5, 0.25])
    >>> new = mx.nd.preloaded_multi_sgd_update(w, g[:1], v, g, lrs, mx.nd.zeros(2), num_weights=2)
    >>> new[0].asnumpy(), new[1].asnumpy()
    (array([0.5], dtype=float32), array([0.75, 0.75], dtype=float32))
    """
    groups, lrs, wds = _preloaded("preloaded_multi_sgd_update", data, num_weights, 2)
    return _results([_sgd(lr)(w, g, lr, wd, rescale_grad, clip_gradient) for (w, g), lr, wd in zip(groups, lrs, wds)])


@_multi("preloaded_multi_sgd_mom_update", "mom", shared=_RATES, amp=None)
def preloaded_multi_sgd_mom_update(*data, momentum: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
                                   num_weights: int = 1):
    """`multi_sgd_mom_update` with the learning rates and the weight decays as the last two inputs, (num_weights,) each.

    Raises
    ------
    MXNetError
        If the number of inputs, or of rates or decays, does not match `num_weights`.

    Example
    -------
    >>> w, mom, lrs = mx.nd.ones(1), mx.nd.ones(1), mx.nd.array([0.5])
    >>> mx.nd.preloaded_multi_sgd_mom_update(w, w.copy(), mom, lrs, mx.nd.zeros(1), momentum=0.25, num_weights=1).asnumpy(), mom.asnumpy()
    (array([0.75], dtype=float32), array([-0.25], dtype=float32))
    """
    groups, lrs, wds = _preloaded("preloaded_multi_sgd_mom_update", data, num_weights, 3)
    return _results([_sgd_momentum(lr)(w, g, m, lr, momentum, wd, rescale_grad, clip_gradient)
                     for (w, g, m), lr, wd in zip(groups, lrs, wds)])


@_multi("preloaded_multi_mp_sgd_update", "weight32", single_precision=True, shared=_RATES, amp=None)
def preloaded_multi_mp_sgd_update(*data, rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int = 1):
    """`multi_mp_sgd_update` with the learning rates and the weight decays as the last two inputs, (num_weights,) each.

    Raises
    ------
    MXNetError
        If the number of inputs, or of rates or decays, does not match `num_weights`.

    Example
    -------
    >>> w, w32, lrs = mx.nd.ones(1, dtype="float16"), mx.nd.ones(1), mx.nd.array([2 ** -12])
    >>> mx.nd.preloaded_multi_mp_sgd_update(w, w.copy(), w32, lrs, mx.nd.zeros(1), num_weights=1).asnumpy(), w32.asnumpy()
    (array([1.], dtype=float16), array([0.99975586], dtype=float32))
    """
    groups, lrs, wds = _preloaded("preloaded_multi_mp_sgd_update", data, num_weights, 3)
    return _results([store(w, w32, _sgd(lr)(w32, g.float(), lr, wd, rescale_grad, clip_gradient))
                     for (w, g, w32), lr, wd in zip(groups, lrs, wds)])


@_multi("preloaded_multi_mp_sgd_mom_update", "mom", "weight32", single_precision=True, shared=_RATES, amp=None)
def preloaded_multi_mp_sgd_mom_update(*data, momentum: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
                                      num_weights: int = 1):
    """`multi_mp_sgd_mom_update` with the learning rates and the weight decays as the last two inputs, (num_weights,) each.

    Raises
    ------
    MXNetError
        If the number of inputs, or of rates or decays, does not match `num_weights`.

    Example
    -------
    >>> w, mom, w32, lrs = mx.nd.ones(1, dtype="float16"), mx.nd.zeros(1), mx.nd.ones(1), mx.nd.array([2 ** -12])
    >>> mx.nd.preloaded_multi_mp_sgd_mom_update(w, w.copy(), mom, w32, lrs, mx.nd.zeros(1), num_weights=1).asnumpy(), w32.asnumpy()
    (array([1.], dtype=float16), array([0.99975586], dtype=float32))
    """
    groups, lrs, wds = _preloaded("preloaded_multi_mp_sgd_mom_update", data, num_weights, 4)
    return _results([store(w, w32, _sgd_momentum(lr)(w32, g.float(), m, lr, momentum, wd, rescale_grad, clip_gradient))
                     for (w, g, m, w32), lr, wd in zip(groups, lrs, wds)])


@_multi("_multi_adamw_update", "mean", "var", shared=("rescale_grad",), amp=None)
def multi_adamw_update(*data, lrs: Floats, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, wds: Floats, etas: Floats,
                       clip_gradient: float = -1.0, num_weights: int = 1):
    """`adamw_update` of each (weight, gradient, mean, variance); the last input is the scale of the gradients, one number for all.

    `lrs`, `wds` and `etas` have a number for each weight; ``mx.nd.contrib.multi_adamw_update`` takes lists of each kind of array, too.

    Raises
    ------
    MXNetError
        If the number of inputs, or of rates or decays, does not match `num_weights`.

    Example
    -------
    >>> weights, grads = [mx.nd.ones(1), mx.nd.ones(1)], [mx.nd.array([4]), mx.nd.array([-0.25])]
    >>> mean, var = [mx.nd.zeros(1), mx.nd.zeros(1)], [mx.nd.zeros(1), mx.nd.zeros(1)]
    >>> rates = {"lrs": (0.5, 0.25), "wds": (0, 0), "etas": (1, 1), "beta1": 0.5, "beta2": 0.75}
    >>> [new.asscalar().item() for new in mx.nd.contrib.multi_adamw_update(weights, grads, mean, var, mx.nd.ones(1), **rates)]
    [0.5, 1.25]
    """
    groups = _groups("_multi_adamw_update", data, num_weights, 4, 1, lrs=lrs, wds=wds, etas=etas)
    scale = usable_scale(data[-1])
    return _results([if_usable(scale, w, g, (m, v), lambda g, scale, w=w, m=m, v=v, lr=lr, wd=wd, eta=eta: rules.adamw(
        w, g, m, v, lr, eta, beta1, beta2, epsilon, wd, scale, clip_gradient)) for (w, g, m, v), lr, wd, eta in zip(groups, lrs, wds, etas)])


@_multi("_multi_mp_adamw_update", "mean", "var", "weight32", single_precision=True, shared=("rescale_grad",), amp=None)
def multi_mp_adamw_update(*data, lrs: Floats, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, wds: Floats, etas: Floats,
                          clip_gradient: float = -1.0, num_weights: int = 1):
    """`mp_adamw_update` of each (weight, gradient, mean, variance, float32 weight); the last input is the scale of the gradients.

    `lrs`, `wds` and `etas` have a number for each weight; ``mx.nd.contrib.multi_mp_adamw_update`` takes lists of each kind of array, too.

    Raises
    ------
    MXNetError
        If the number of inputs, or of rates or decays, does not match `num_weights`.

    Example
    -------
    >>> weights, weights32 = [mx.nd.ones(1, dtype="float16")], [mx.nd.ones(1)]
    >>> mean, var, rates = [mx.nd.zeros(1)], [mx.nd.zeros(1)], {"lrs": (0.5,), "wds": (0,), "etas": (1,), "beta1": 0.5, "beta2": 0.75}
    >>> mx.nd.contrib.multi_mp_adamw_update(weights, weights, mean, var, weights32, mx.nd.ones(1), **rates).asnumpy(), weights32[0].asnumpy()
    (array([0.5], dtype=float16), array([0.5], dtype=float32))
    """
    groups = _groups("_multi_mp_adamw_update", data, num_weights, 5, 1, lrs=lrs, wds=wds, etas=etas)
    scale = usable_scale(data[-1])
    return _results([if_usable(scale, w, g.float(), (m, v, w32), lambda g, scale, w=w, m=m, v=v, w32=w32, lr=lr, wd=wd, eta=eta: store(
        w, w32, rules.adamw(w32, g, m, v, lr, eta, beta1, beta2, epsilon, wd, scale, clip_gradient)))
        for (w, g, m, v, w32), lr, wd, eta in zip(groups, lrs, wds, etas)])


def _lamb(weight, weight_norm, grad, mean, var, lr, wd, t, beta1, beta2, epsilon, bias_correction, rescale, clip, lower_bound, upper_bound):
    direction = rules.lamb_direction(weight, grad, mean, var, beta1, beta2, epsilon, t, bias_correction, wd, rescale, clip)
    return rules.lamb_step(weight, direction, weight_norm, _norm(direction), lr, lower_bound, upper_bound)


def _norm(data):
    return torch.linalg.vector_norm(data, dtype=torch.float64 if data.dtype is torch.float64 else torch.float32)


@_multi("_multi_lamb_update", "mean", "var", count="num_tensors", amp=None)
def multi_lamb_update(*data, learning_rates: Floats, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-6, wds: Floats,
                      rescale_grad: float = 1.0, lower_bound: float = -1.0, upper_bound: float = -1.0, clip_gradient: float = -1.0,
                      bias_correction: bool = True, step_count: Shape, num_tensors: int = 1):
    """Both phases of LAMB of each (weight, gradient, mean, variance); `step_count` holds the number of each one's step, from 1.

    `learning_rates` and `wds` have a number for each weight, too; the other attributes are those of `lamb_update_phase1` and
    `lamb_update_phase2`.
    ``mx.nd.contrib.multi_lamb_update`` takes lists of each kind of array.

    Raises
    ------
    MXNetError
        If the number of inputs, or of rates or decays, does not match `num_tensors`.

    Example
    -------
    >>> weights, grads = [mx.nd.array([3, 4]), mx.nd.ones(2)], [mx.nd.array([100, 0]), mx.nd.ones(2)]
    >>> mean, var = [mx.nd.zeros(2), mx.nd.zeros(2)], [mx.nd.zeros(2), mx.nd.zeros(2)]
    >>> steps = mx.nd.contrib.multi_lamb_update(weights, grads, mean, var, step_count=(1, 1), lrs=(0.5, 0.5), wds=(0, 0))
    >>> [new.asnumpy().round(2) for new in steps]            # each step is as long as half of its weight
    [array([0.5, 4. ], dtype=float32), array([0.5, 0.5], dtype=float32)]
    """
    groups = _groups("_multi_lamb_update", data, num_tensors, 4, learning_rates=learning_rates, wds=wds, step_count=step_count)
    shared = beta1, beta2, epsilon, bias_correction, rescale_grad, clip_gradient, lower_bound, upper_bound
    return _results([_lamb(w, _norm(w), g, m, v, lr, wd, t, *shared)
                     for (w, g, m, v), lr, wd, t in zip(groups, learning_rates, wds, step_count)])


@_multi("_multi_mp_lamb_update", "mean", "var", "weight32", count="num_tensors", single_precision=True, amp=None)
def multi_mp_lamb_update(*data, learning_rates: Floats, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-6, wds: Floats,
                         rescale_grad: float = 1.0, lower_bound: float = -1.0, upper_bound: float = -1.0, clip_gradient: float = -1.0,
                         bias_correction: bool = True, step_count: Shape, num_tensors: int = 1):
    """Both phases of LAMB of each (weight, gradient, mean, variance, float32 weight); the norm of the weight is that of the half-precision one.

    Attributes are those of `_multi_lamb_update`; ``mx.nd.contrib.multi_mp_lamb_update`` takes lists of each kind of array.

    Raises
    ------
    MXNetError
        If the number of inputs, or of rates or decays, does not match `num_tensors`.

    Example
    -------
    >>> weights, weights32 = [mx.nd.array([3, 4], dtype="float16")], [mx.nd.array([3, 4])]
    >>> grads, mean, var = [mx.nd.array([1, 0], dtype="float16")], [mx.nd.zeros(2)], [mx.nd.zeros(2)]
    >>> mx.nd.contrib.multi_mp_lamb_update(weights, grads, mean, var, weights32, step_count=(1,), lrs=(0.5,), wds=(0,)).asnumpy()
    array([0.5, 4. ], dtype=float16)
    """
    groups = _groups("_multi_mp_lamb_update", data, num_tensors, 5, learning_rates=learning_rates, wds=wds, step_count=step_count)
    shared = beta1, beta2, epsilon, bias_correction, rescale_grad, clip_gradient, lower_bound, upper_bound
    return _results([store(w, w32, _lamb(w32, _norm(w), g.float(), m, v, lr, wd, t, *shared))
                     for (w, g, m, v, w32), lr, wd, t in zip(groups, learning_rates, wds, step_count)])
