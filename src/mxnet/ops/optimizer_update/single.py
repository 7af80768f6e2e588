"""Updates of one weight. The ``mp_*`` twins keep a float32 copy of a half-precision weight and compute with that."""
import functools
import math
from collections.abc import Callable
from typing import Any

import torch

from ...base import MXNetError
from ..registry import op
from ..schema import Fraction
from ..shapes import known, product, unify
from . import rules


def require_one_shape(name: str, weight: torch.Tensor, others: Any) -> None:
    """Raise an error for a gradient or a state of another shape than the weight's, which torch would broadcast."""
    for t in others:
        if t.shape != weight.shape:
            raise MXNetError(f"{name}: the gradient and the states must have the shape of the weight, {tuple(weight.shape)}; "
                             f"received {tuple(t.shape)}")


def _update(name, *states, aliases=(), same_shape=True, unlike=(), **traits):
    """Register an update; all inputs but those at the positions `unlike` have the shape of the weight."""
    def register(fn):
        @functools.wraps(fn)
        def update(weight, *others, **attributes):
            require_one_shape(name, weight, [t for i, t in enumerate(others, 1) if i not in unlike])
            return fn(weight, *others, **attributes)

        return op(name, aliases=aliases, mutates=states, same_shape=same_shape, no_gradient=True, **traits)(update)
    return register


def _half_types(in_types, out_types, **_):
    """Weight and gradient have one type, all states float32."""
    common = in_types[0] or in_types[1] or out_types[0]
    return [common, common, *[torch.float32] * (len(in_types) - 2)], [common]


def _mixed(name, *states, **options):
    """Like `_update`, for an operator whose states are float32 whatever the weight is."""
    def register(fn):
        operator = _update(name, *states, **options)(fn)
        operator.dtype_rule(_half_types)
        return operator
    return register


def store(weight: torch.Tensor, weight32: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """Store the new float32 weight; return its half-precision copy."""
    weight32.copy_(new)
    return new.to(weight.dtype)


@_update("sgd_update", aliases=("_sparse_sgd_update",))
def sgd_update(weight, grad, *, lr: float, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
               lazy_update: bool = True):
    """Stochastic gradient descent: ``weight - lr * (clip(rescale_grad * grad) + wd * weight)``.

    As in all updates the gradient and the states have the shape of the weight, states change in place, and the result is the new weight:
    ``out=weight`` writes it where the old one was. A negative `clip_gradient` is none. `lazy_update` leaves rows alone that a row-sparse
    gradient lacks; to a dense one it makes no difference.

    Raises
    ------
    MXNetError
        If the shapes differ.

    Example
    -------
    >>> w = mx.nd.ones(2)
    >>> mx.nd.sgd_update(w, mx.nd.array([1, 2]), lr=0.5, out=w).asnumpy()
    array([0.5, 0. ], dtype=float32)
    """
    return rules.sgd(weight, grad, lr, wd, rescale_grad, clip_gradient)


@_update("sgd_mom_update", "mom", aliases=("_sparse_sgd_mom_update",))
def sgd_mom_update(weight, grad, mom, *, lr: float, momentum: float = 0.0, wd: float = 0.0, rescale_grad: float = 1.0,
                   clip_gradient: float = -1.0, lazy_update: bool = True):
    """SGD with momentum: ``mom = momentum * mom - lr * (clip(rescale_grad * grad) + wd * weight)``, the weight moves by ``mom``.

    `clip_gradient` and `lazy_update` are those of `sgd_update`.

    Example
    -------
    >>> w, mom = mx.nd.ones(1), mx.nd.zeros(1)
    >>> [mx.nd.sgd_mom_update(w, mx.nd.ones(1), mom, lr=0.5, momentum=0.5, out=w).asscalar().item() for _ in range(3)]
    [0.5, -0.25, -1.125]
    >>> mom.asnumpy()
    array([-0.875], dtype=float32)
    """
    return rules.sgd_momentum(weight, grad, mom, lr, momentum, wd, rescale_grad, clip_gradient)


@_mixed("mp_sgd_update", "weight32")
def mp_sgd_update(weight, grad, weight32, *, lr: float, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
                  lazy_update: bool = True):
    """`sgd_update` of a half-precision weight with a float32 copy, `weight32`, which accumulates the steps.

    The gradient has the weight's type; attributes are those of `sgd_update`.

    Example
    -------
    >>> w, w32 = mx.nd.ones(1, dtype="float16"), mx.nd.ones(1)
    >>> for _ in range(4):                                   # each step is too small for float16
    ...     w = mx.nd.mp_sgd_update(w, mx.nd.ones(1, dtype="float16"), w32, lr=2 ** -12)
    >>> w.asnumpy(), w32.asnumpy()
    (array([0.999], dtype=float16), array([0.99902344], dtype=float32))
    """
    return store(weight, weight32, rules.sgd(weight32, grad.float(), lr, wd, rescale_grad, clip_gradient))


@_mixed("mp_sgd_mom_update", "mom", "weight32")
def mp_sgd_mom_update(weight, grad, mom, weight32, *, lr: float, momentum: float = 0.0, wd: float = 0.0, rescale_grad: float = 1.0,
                      clip_gradient: float = -1.0, lazy_update: bool = True):
    """`sgd_mom_update` of a half-precision weight with a float32 copy, `weight32`; `mom` is float32, too. Attributes are the same.

    Example
    -------
    >>> w, w32, mom = mx.nd.ones(1, dtype="float16"), mx.nd.ones(1), mx.nd.zeros(1)
    >>> for _ in range(2):
    ...     w = mx.nd.mp_sgd_mom_update(w, mx.nd.ones(1, dtype="float16"), mom, w32, lr=2 ** -12, momentum=0.5)
    >>> w.asnumpy(), w32.asnumpy()
    (array([0.9995], dtype=float16), array([0.99938965], dtype=float32))
    """
    return store(weight, weight32, rules.sgd_momentum(weight32, grad.float(), mom, lr, momentum, wd, rescale_grad, clip_gradient))


@_update("nag_mom_update", "mom", amp=None)
def nag_mom_update(weight, grad, mom, *, lr: float, momentum: float = 0.0, wd: float = 0.0, rescale_grad: float = 1.0,
                   clip_gradient: float = -1.0):
    """Nesterov's accelerated gradient: `mom` moves as in `sgd_mom_update`, the weight by ``mom + momentum * (mom - old mom)``.

    Attributes are those of `sgd_mom_update`.

    Example
    -------
    >>> w, mom = mx.nd.ones(1), mx.nd.zeros(1)
    >>> [mx.nd.nag_mom_update(w, mx.nd.ones(1), mom, lr=0.5, momentum=0.5, out=w).asscalar().item() for _ in range(3)]
    [0.25, -0.625, -1.5625]
    """
    return rules.nag_momentum(weight, grad, mom, lr, momentum, wd, rescale_grad, clip_gradient)


@_mixed("mp_nag_mom_update", "mom", "weight32", amp=None)
def mp_nag_mom_update(weight, grad, mom, weight32, *, lr: float, momentum: float = 0.0, wd: float = 0.0, rescale_grad: float = 1.0,
                      clip_gradient: float = -1.0):
    """`nag_mom_update` of a half-precision weight with a float32 copy, `weight32`; `mom` is float32, too. Attributes are the same.

    Example
    -------
    >>> w, w32, mom = mx.nd.ones(1, dtype="float16"), mx.nd.ones(1), mx.nd.zeros(1)
    >>> for _ in range(2):
    ...     w = mx.nd.mp_nag_mom_update(w, mx.nd.ones(1, dtype="float16"), mom, w32, lr=2 ** -12, momentum=0.5)
    >>> w.asnumpy(), w32.asnumpy()
    (array([0.999], dtype=float16), array([0.99920654], dtype=float32))
    """
    return store(weight, weight32, rules.nag_momentum(weight32, grad.float(), mom, lr, momentum, wd, rescale_grad, clip_gradient))


@_update("adam_update", "mean", "var", aliases=("_sparse_adam_update",))
def adam_update(weight, grad, mean, var, *, lr: float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, wd: float = 0.0,
                rescale_grad: float = 1.0, clip_gradient: float = -1.0, lazy_update: bool = True):
    """Adam (Kingma, Ba 2015): ``weight - lr * mean / (sqrt(var) + epsilon)`` with running averages of the gradient and its square.

    ``mean = beta1 * mean + (1 - beta1) * g`` and ``var = beta2 * var + (1 - beta2) * g ** 2``, where
    ``g = clip(rescale_grad * grad + wd * weight)``; the correction for the first steps is the caller's, in `lr`. `clip_gradient` and
    `lazy_update` are those of `sgd_update`.

    Example
    -------
    >>> g, mean, var = mx.nd.array([4, -0.25]), mx.nd.zeros(2), mx.nd.zeros(2)      # the step is lr for large and small gradients
    >>> mx.nd.adam_update(mx.nd.ones(2), g, mean, var, lr=0.5, beta1=0.5, beta2=0.75).asnumpy()
    array([0.5, 1.5], dtype=float32)
    """
    return rules.adam(weight, grad, mean, var, lr, beta1, beta2, epsilon, wd, rescale_grad, clip_gradient)


def require_one_number(shape: tuple[int, ...]) -> None:
    """Raise an error unless a scale of this partial shape may hold a single number."""
    if shape is not None and product(shape) not in (1, -1):
        raise MXNetError(f"`rescale_grad` must hold one number, received shape {shape}")


def usable_scale(rescale_grad: torch.Tensor) -> Any:
    """The number that a scale array holds, None if an update with it is to be left out (0, infinite or nan, as after an overflow).

    On a GPU the array itself, (), so that the host does not wait for it: see `if_usable`.

    Raises
    ------
    MXNetError
        If it is not a single number.
    """
    require_one_number(tuple(rescale_grad.shape))
    if rescale_grad.device.type == "meta":
        return None
    if not rescale_grad.is_cpu:
        return rescale_grad.reshape(())
    scale = float(rescale_grad)
    return scale if scale != 0 and math.isfinite(scale) else None


def if_usable(scale: Any, weight: torch.Tensor, grad: torch.Tensor, states: Any, update: Callable) -> torch.Tensor:
    """The new weight ``update(grad, scale)``; where the scale is not usable a copy of the weight, with the states as they were."""
    if not isinstance(scale, torch.Tensor):
        return weight.clone() if scale is None else update(grad, scale)
    usable = scale.isfinite() & (scale != 0)
    before = [s.clone() for s in states]
    new = update(grad * scale, 1)
    for state, old in zip(states, before):
        state.copy_(torch.where(usable, state, old))
    return torch.where(usable, new, weight)


def _scaled_rule(in_shapes, out_shapes, **_):
    """All but the last input, which is a number, have the shape of the weight."""
    shape = out_shapes[0]
    for s in in_shapes[:-1]:
        shape = unify(shape, s)
    return [shape] * (len(in_shapes) - 1) + [in_shapes[-1]], [shape]


@_update("_adamw_update", "mean", "var", same_shape=False, unlike=(4,))
def adamw_update(weight, grad, mean, var, rescale_grad, *, lr: float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
                 wd: float = 0.0, eta: float, clip_gradient: float = -1.0):
    """Adam with decoupled weight decay (Loshchilov, Hutter 2019): ``weight - eta * (lr * mean / (sqrt(var) + epsilon) + wd * weight)``.

    `mean` and `var` average ``clip(rescale_grad * grad)`` as in `adam_update`. `rescale_grad` is an array of one number; where it is 0,
    infinite or nan nothing changes.

    Raises
    ------
    MXNetError
        If the shapes differ, or `rescale_grad` does not hold one number.

    Example
    -------
    >>> g, mean, var = mx.nd.array([4, -0.25]), mx.nd.zeros(2), mx.nd.zeros(2)
    >>> mx.nd.contrib.adamw_update(mx.nd.ones(2), g, mean, var, mx.nd.ones(1), lr=0.5, beta1=0.5, beta2=0.75, eta=1, wd=0.25).asnumpy()
    array([0.25, 1.25], dtype=float32)
    """
    return if_usable(usable_scale(rescale_grad), weight, grad, (mean, var), lambda grad, scale: rules.adamw(
        weight, grad, mean, var, lr, eta, beta1, beta2, epsilon, wd, scale, clip_gradient))


@_mixed("_mp_adamw_update", "mean", "var", "weight32", same_shape=False, unlike=(5,))
def mp_adamw_update(weight, grad, mean, var, weight32, rescale_grad, *, lr: float, beta1: float = 0.9, beta2: float = 0.999,
                    epsilon: float = 1e-8, wd: float = 0.0, eta: float, clip_gradient: float = -1.0):
    """`adamw_update` of a half-precision weight with a float32 copy, `weight32`; `mean` and `var` are float32, too. Attributes are the same.

    Example
    -------
    >>> w, g, w32 = mx.nd.ones(1, dtype="float16"), mx.nd.ones(1, dtype="float16"), mx.nd.ones(1)
    >>> overflow = mx.nd.array([float("inf")])
    >>> mx.nd.contrib.mp_adamw_update(w, g, mx.nd.zeros(1), mx.nd.zeros(1), w32, overflow, lr=0.5, eta=1).asnumpy()      # left out
    array([1.], dtype=float16)
    >>> mx.nd.contrib.mp_adamw_update(w, g, mx.nd.zeros(1), mx.nd.zeros(1), w32, 1, lr=0.5, beta1=0.5, beta2=0.75, eta=1).asnumpy()
    array([0.5], dtype=float16)
    """
    return if_usable(usable_scale(rescale_grad), weight, grad.float(), (mean, var, weight32), lambda grad, scale: store(
        weight, weight32, rules.adamw(weight32, grad, mean, var, lr, eta, beta1, beta2, epsilon, wd, scale, clip_gradient)))


@adamw_update.dtype_rule
def _(in_types, out_types, **_):
    common = next((t for t in (*in_types[:4], *out_types) if t is not None), None)
    return [*[common] * 4, torch.float32], [common]


adamw_update.shape_rule(_scaled_rule)
mp_adamw_update.shape_rule(_scaled_rule)


@_update("lamb_update_phase1", "mean", "var", amp=None)
def lamb_update_phase1(weight, grad, mean, var, *, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-6, t: int,
                       bias_correction: bool = True, wd: float, rescale_grad: float = 1.0, clip_gradient: float = -1.0):
    """The direction of a LAMB step (You et al. 2020): Adam's, plus the weight decay. `t` counts the steps from 1.

    `mean` and `var` average ``clip(rescale_grad * grad)`` as in `adam_update`; with `bias_correction` they are divided by
    ``1 - beta1 ** t`` and ``1 - beta2 ** t``. The direction is ``mean / (sqrt(var) + epsilon) + wd * weight``; `lamb_update_phase2` goes this
    way, as far as the norms of weight and direction allow.

    Example
    -------
    >>> w, g, mean, var = mx.nd.array([3, 4]), mx.nd.array([4, -0.25]), mx.nd.zeros(2), mx.nd.zeros(2)
    >>> mx.nd.lamb_update_phase1(w, g, mean, var, t=1, wd=0.5).asnumpy().round(2)       # the gradient's signs, and half the weight
    array([2.5, 1. ], dtype=float32)
    """
    return rules.lamb_direction(weight, grad, mean, var, beta1, beta2, epsilon, t, bias_correction, wd, rescale_grad, clip_gradient)


def _norms_rule(in_shapes, out_shapes, **_):
    """Weight and direction have one shape, and so has a float32 copy; the two norms are single numbers."""
    shape = out_shapes[0]
    for s in (*in_shapes[:2], *in_shapes[4:]):
        shape = unify(shape, s)
    several = any(known(s) and (product(s) != 1 or len(s) > len(shape or ())) for s in in_shapes[2:4])  # the operator's call checks the rest
    return [shape, shape, *in_shapes[2:4], *[shape] * (len(in_shapes) - 4)], out_shapes if several else [shape]


@_update("lamb_update_phase2", same_shape=False, unlike=(2, 3), complete_rule="shape", amp=None)
def lamb_update_phase2(weight, g, r1, r2, *, lr: float, lower_bound: float = -1.0, upper_bound: float = -1.0):
    """The step of LAMB: ``weight - lr * r1 / r2 * g``.

    `g` is what `lamb_update_phase1` returned, `r1` the norm of the weight, kept from `lower_bound` to `upper_bound` where these are not
    negative, `r2` that of `g`; both are arrays of one number. If one of them is 0 their ratio counts as 1.

    Example
    -------
    >>> w, direction = mx.nd.array([3, 4]), mx.nd.array([60, 80])     # however long the direction: the step is lr times the weight's norm
    >>> mx.nd.lamb_update_phase2(w, direction, w.norm(), direction.norm(), lr=0.5).asnumpy()
    array([1.5, 2. ], dtype=float32)
    """
    return rules.lamb_step(weight, g, r1, r2, lr, lower_bound, upper_bound)


@_update("mp_lamb_update_phase1", "mean", "var", amp=None)
def mp_lamb_update_phase1(weight, grad, mean, var, weight32, *, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-6, t: int,
                          bias_correction: bool = True, wd: float, rescale_grad: float = 1.0, clip_gradient: float = -1.0):
    """`lamb_update_phase1` of a half-precision weight with a float32 copy, `weight32`; the direction is float32. Attributes are the same.

    Example
    -------
    >>> w, g, w32 = mx.nd.ones(1, dtype="float16"), mx.nd.ones(1, dtype="float16"), mx.nd.ones(1)
    >>> mx.nd.mp_lamb_update_phase1(w, g, mx.nd.zeros(1), mx.nd.zeros(1), w32, t=1, wd=0.5).asnumpy().round(2)
    array([1.5], dtype=float32)
    """
    return rules.lamb_direction(weight32, grad.float(), mean, var, beta1, beta2, epsilon, t, bias_correction, wd, rescale_grad,
                                clip_gradient)


@mp_lamb_update_phase1.dtype_rule
def _(in_types, out_types, **_):
    return _half_types(in_types, [None])[0], [torch.float32]


@_update("mp_lamb_update_phase2", "weight32", same_shape=False, unlike=(2, 3), complete_rule="shape", amp=None)
def mp_lamb_update_phase2(weight, g, r1, r2, weight32, *, lr: float, lower_bound: float = -1.0, upper_bound: float = -1.0):
    """`lamb_update_phase2` of a half-precision weight with a float32 copy, `weight32`, which moves, too (in MXNet 1.9.1 it stays behind).

    Attributes are the same; `g`, `r1` and `r2` are float32.

    Example
    -------
    >>> w, w32, direction, norm = mx.nd.ones(1, dtype="float16"), mx.nd.ones(1), mx.nd.array([2]), mx.nd.ones(1)
    >>> mx.nd.mp_lamb_update_phase2(w, direction, norm, 2 * norm, w32, lr=0.5).asnumpy(), w32.asnumpy()
    (array([0.5], dtype=float16), array([0.5], dtype=float32))
    """
    return store(weight, weight32, rules.lamb_step(weight32, g, r1, r2, lr, lower_bound, upper_bound))


@mp_lamb_update_phase2.dtype_rule
def _(in_types, out_types, **_):
    common = in_types[0] or out_types[0]
    return [common, *[torch.float32] * 4], [common]


lamb_update_phase2.shape_rule(_norms_rule)
mp_lamb_update_phase2.shape_rule(_norms_rule)


@_update("rmsprop_update", "n")
def rmsprop_update(weight, grad, n, *, lr: float, gamma1: float = 0.95, epsilon: float = 1e-8, wd: float = 0.0, rescale_grad: float = 1.0,
                   clip_gradient: float = -1.0, clip_weights: float = -1.0):
    """RMSProp (Tieleman, Hinton 2012): ``weight - lr * grad / sqrt(n + epsilon)`` with the running average `n` of squared gradients.

    ``n = gamma1 * n + (1 - gamma1) * grad ** 2``. The gradient is ``clip(rescale_grad * grad + wd * weight)``, with the bound
    `clip_gradient`; the new weight is clipped to `clip_weights`. A negative bound is none.

    Example
    -------
    >>> n = mx.nd.zeros(2)
    >>> mx.nd.rmsprop_update(mx.nd.ones(2), mx.nd.array([4, -2]), n, lr=0.25, gamma1=0.75).asnumpy(), n.asnumpy()
    (array([0.5, 1.5], dtype=float32), array([4., 1.], dtype=float32))
    """
    return rules.rmsprop(weight, grad, n, lr, gamma1, epsilon, wd, rescale_grad, clip_gradient, clip_weights)


@_update("rmspropalex_update", "n", "g", "delta")
def rmspropalex_update(weight, grad, n, g, delta, *, lr: float, gamma1: float = 0.95, gamma2: float = 0.9, epsilon: float = 1e-8,
                       wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, clip_weights: float = -1.0):
    """Centred RMSProp with momentum (Graves 2013): the variance ``n - g ** 2`` of the gradients scales the step.

    `n` and `g` are running averages of the squared gradient and of the gradient, which `gamma1` weighs as in `rmsprop_update`;
    ``delta = gamma2 * delta - lr * grad / sqrt(n - g ** 2 + epsilon)`` is added to the weight. `wd`, `rescale_grad` and the bounds are those
    of `rmsprop_update`.

    Example
    -------
    >>> n, g, delta = mx.nd.zeros(2), mx.nd.zeros(2), mx.nd.zeros(2)
    >>> mx.nd.rmspropalex_update(mx.nd.ones(2), mx.nd.array([4, -2]), n, g, delta, lr=0.25, gamma1=0.5).asnumpy(), delta.asnumpy()
    (array([0.5, 1.5], dtype=float32), array([-0.5,  0.5], dtype=float32))
    """
    return rules.rmsprop_centered(weight, grad, n, g, delta, lr, gamma1, gamma2, epsilon, wd, rescale_grad, clip_gradient, clip_weights)


@_update("ftrl_update", "z", "n", aliases=("_sparse_ftrl_update",))
def ftrl_update(weight, grad, z, n, *, lr: float, lamda1: float = 0.01, beta: float = 1.0, wd: float = 0.0, rescale_grad: float = 1.0,
                clip_gradient: float = -1.0):
    """Follow the regularized leader (McMahan et al. 2013): weights whose accumulated gradient `z` stays below `lamda1` are exactly 0.

    `n` sums up squared gradients. ``z += grad - (sqrt(n) - sqrt(old n)) / lr * weight``, and the new weight is
    ``-sign(z) * max(|z| - lamda1, 0) / ((beta + sqrt(n)) / lr + wd)``. The gradient is rescaled and clipped as in `sgd_update`.

    Example
    -------
    >>> z, n = mx.nd.zeros(2), mx.nd.zeros(2)
    >>> mx.nd.ftrl_update(mx.nd.zeros(2), mx.nd.array([0.25, -1]), z, n, lr=1, lamda1=0.5).asnumpy() + 0
    array([0.  , 0.25], dtype=float32)
    """
    return rules.ftrl(weight, grad, z, n, lr, lamda1, beta, wd, rescale_grad, clip_gradient)


@_update("ftml_update", "d", "v", "z")
def ftml_update(weight, grad, d, v, z, *, lr: float, beta1: Fraction = 0.6, beta2: Fraction = 0.999, epsilon: float = 1e-8, t: int,
                wd: float = 0.0, rescale_grad: float = 1.0, clip_grad: float = -1.0):
    """Follow the moving leader (FTML, Zheng, Kwok 2017). `t` counts the steps from 1; `d`, `v` and `z` start at 0.

    With ``g = clip(rescale_grad * grad + wd * weight)``, clipped to `clip_grad` unless that is negative, and
    ``v = beta2 * v + (1 - beta2) * g ** 2``: ``new_d = (1 - beta1 ** t) / lr * (sqrt(v / (1 - beta2 ** t)) + epsilon)``,
    ``z = beta1 * z + (1 - beta1) * g - (new_d - beta1 * d) * weight``, and the new weight is ``-z / new_d``.

    Example
    -------
    >>> d, v, z = mx.nd.zeros(2), mx.nd.zeros(2), mx.nd.zeros(2)
    >>> mx.nd.ftml_update(mx.nd.ones(2), mx.nd.array([4, -0.25]), d, v, z, lr=0.5, t=1).asnumpy()    # the first step is lr
    array([0.5, 1.5], dtype=float32)
    """
    return rules.ftml(weight, grad, d, v, z, lr, beta1, beta2, epsilon, t, wd, rescale_grad, clip_grad)


@_update("signsgd_update")
def signsgd_update(weight, grad, *, lr: float, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0):
    """``weight - lr * (sign(grad) + wd * weight)`` (Bernstein et al. 2018). Rescaling and clipping leave a sign as it is.

    Example
    -------
    >>> mx.nd.signsgd_update(mx.nd.ones(3), mx.nd.array([100, -0.01, 0]), lr=0.5).asnumpy()
    array([0.5, 1.5, 1. ], dtype=float32)
    """
    return rules.signsgd(weight, grad, lr, wd)


@_update("signum_update", "mom")
def signum_update(weight, grad, mom, *, lr: float, momentum: float = 0.0, wd: float = 0.0, rescale_grad: float = 1.0,
                  clip_gradient: float = -1.0, wd_lh: float = 0.0):
    """SignSGD with momentum (Bernstein et al. 2018); `wd` decays through the momentum, `wd_lh` the weight directly.

    ``mom = momentum * mom - (1 - momentum) * (grad + wd * weight)``, and the new weight is ``(1 - lr * wd_lh) * weight + lr * sign(mom)``.
    The gradient is rescaled and clipped as in `sgd_update`.

    Example
    -------
    >>> mom = mx.nd.array([-1])                              # so far gradients were positive: one that is not changes little
    >>> mx.nd.signum_update(mx.nd.ones(1), mx.nd.array([-0.5]), mom, lr=0.5, momentum=0.5).asnumpy(), mom.asnumpy()
    (array([0.5], dtype=float32), array([-0.25], dtype=float32))
    """
    return rules.signum(weight, grad, mom, lr, momentum, wd, rescale_grad, clip_gradient, wd_lh)


@_update("_sparse_adagrad_update", "history")
def adagrad_update(weight, grad, history, *, lr: float, epsilon: float = 1e-7, wd: float = 0.0, rescale_grad: float = 1.0,
                   clip_gradient: float = -1.0):
    """AdaGrad (Duchi et al. 2011): ``weight - lr * grad / sqrt(history + epsilon)`` with the sum `history` of squared gradients.

    The gradient is rescaled and clipped as in `sgd_update`; `wd` takes ``lr * wd * weight`` off beside that.

    Example
    -------
    >>> history = mx.nd.array([16])
    >>> mx.nd.sparse.adagrad_update(mx.nd.ones(1), mx.nd.array([3]), history, lr=2.5).asnumpy(), history.asnumpy()
    (array([-0.5], dtype=float32), array([25.], dtype=float32))
    """
    return rules.adagrad(weight, grad, history, lr, epsilon, wd, rescale_grad, clip_gradient)


@_update("_contrib_group_adagrad_update", "history", same_shape=False, unlike=(2,), complete_rule="shape")
def group_adagrad_update(weight, grad, history, *, lr: float, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
                         epsilon: float = 1e-5):
    """AdaGrad with one `history` for each row: the mean of its squared gradients, of shape (rows, 1) or (rows,).

    ``history += mean(grad ** 2)`` of the row, and the new weight is ``weight - lr * grad / sqrt(history + epsilon)``. The gradient is
    rescaled and clipped as in `sgd_update`.

    Example
    -------
    >>> history = mx.nd.zeros((2, 1))
    >>> mx.nd.contrib.group_adagrad_update(mx.nd.ones((2, 2)), mx.nd.array([[1, 7], [0, 0]]), history, lr=2.5).asnumpy().round(3)
    array([[ 0.5, -2.5],
           [ 1. ,  1. ]], dtype=float32)
    >>> history.asnumpy()
    array([[25.],
           [ 0.]], dtype=float32)
    """
    return rules.group_adagrad(weight, grad, history, lr, rescale_grad, clip_gradient, epsilon)


@group_adagrad_update.shape_rule
def _(in_shapes, out_shapes, **_):
    shape, history = unify(unify(in_shapes[0], in_shapes[1]), out_shapes[0]), in_shapes[2]
    if shape is not None and (shape[:1] in ((), (0,)) or known(history) and product(history) != shape[0] >= 0):
        return [shape, shape, history], out_shapes  # the operator's call raises the error
    return [shape, shape, history], [shape]
