"""The rules of optimizers made after ``mx.util.set_version("2.0")``: MXNet 2's defaults, and its updates where they differ from MXNet 1.9's.

In MXNet 2 every optimizer rescales the gradient, clips it, and adds the weight decay, in this order. A rule gets the gradient after that.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from ..ops.optimizer_update.rules import moments
from ..util import version
from . import steps

if TYPE_CHECKING:
    from ..ndarray import NDArray

_OLD_NAMES = {"rho": "gamma1", "momentum": "gamma2", "epsilon": "eps"}  # MXNet 1.9's names of arguments


def as_in_mxnet2(rule: Callable[..., None] | None = None, **defaults: Any) -> Callable[[type[Any]], type[Any]]:
    """Return a decorator of optimizer classes.

    Parameters
    ----------
    rule : callable, optional
        ``rule(optimizer, weight, grad, *states, lr, t)`` updates tensors instead of the class's ``_update_one``. `t` is the number of the
        update, counted from 1. A class may exclude calls from the rule by a method ``_follows_rule(index, grad)``.
    **defaults
        The constructor's parameters in MXNet 2's order, each with its default.
    """
    def decorate(kind: type[Any]) -> type[Any]:
        kind.__init__ = _with_defaults(kind.__init__, defaults)
        if rule is not None:
            kind._update_one = _by_rule(kind._update_one, rule)
        return kind

    return decorate


def _with_defaults(init: Callable[..., None], defaults: dict[str, Any]) -> Callable[..., None]:
    @functools.wraps(init)
    def initialize(self: Any, *args: Any, **kwargs: Any) -> None:
        if version() != "2.0":
            init(self, *args, **kwargs)
            return
        if len(args) > len(defaults):
            raise TypeError(f"{type(self).__name__} takes at most {len(defaults)} positional arguments in MXNet 2 ({', '.join(defaults)}), "
                            f"received {len(args)}")
        positional = dict(zip(defaults, args))
        twice = [name for name in positional if name in kwargs]
        if twice:
            raise TypeError(f"{type(self).__name__} got multiple values for argument '{twice[0]}'")
        chosen = {name: value for name, value in defaults.items() if _OLD_NAMES.get(name) not in kwargs} | positional | kwargs
        if kwargs.get("lr_scheduler") is not None and "learning_rate" not in positional | kwargs:
            chosen.pop("learning_rate", None)  # the scheduler has its own
        self._as_mxnet2 = True
        init(self, **chosen)

    return initialize


def _by_rule(update_one: Callable[..., None], rule: Callable[..., Any]) -> Callable[..., None]:
    @functools.wraps(update_one)
    def update(self: Any, index: int | str, weight: NDArray, grad: NDArray, state: Any) -> None:
        if not (self._as_mxnet2 and self._follows_rule(index, grad)):
            update_one(self, index, weight, grad, state)
            return
        lr, wd, t = self._begin(index, weight, grad)

        def step(w: torch.Tensor, g: torch.Tensor, *states: torch.Tensor) -> None:
            rule(self, w, decayed(w, g, wd, self.rescale_grad, self.clip_gradient), *states, lr=lr, t=t)

        states = state if isinstance(state, (tuple, list)) else (state,)
        rows = getattr(self, "lazy_update", False) and states[0].stype == weight.stype
        steps.apply(step, weight, grad, [s for s in states if s is not None], rows=rows)

    return update


def decayed(weight: torch.Tensor, grad: torch.Tensor, wd: float, rescale: float, clip: float | None) -> torch.Tensor:
    """Return ``clip(rescale * grad) + wd * weight``. The result may be `grad` itself and must not be written to."""
    grad = steps.prepared(grad, rescale, clip or None)
    return torch.add(grad, weight, alpha=wd) if wd else grad


def adam(optimizer: Any, weight: torch.Tensor, grad: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, *, lr: float, t: int) -> None:
    """Update a weight by Adam's rule."""
    moments(grad, mean, var, optimizer.beta1, optimizer.beta2)
    lr *= math.sqrt(1 - optimizer.beta2 ** t) / (1 - optimizer.beta1 ** t)
    weight.addcdiv_(mean, var.sqrt().add_(optimizer.epsilon), value=-lr)


def adamax(optimizer: Any, weight: torch.Tensor, grad: torch.Tensor, mean: torch.Tensor, largest: torch.Tensor, *, lr: float, t: int) -> None:
    """Update a weight by Adamax's rule; `epsilon` is added to the divisor."""
    mean.mul_(optimizer.beta1).add_(grad, alpha=1 - optimizer.beta1)
    torch.maximum(largest.mul_(optimizer.beta2), grad.abs(), out=largest)
    weight.addcdiv_(mean, largest + optimizer.epsilon, value=-lr / (1 - optimizer.beta1 ** t))


def nadam(optimizer: Any, weight: torch.Tensor, grad: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, *, lr: float, t: int) -> None:
    """Update a weight by Nadam's rule."""
    of_grad, of_mean = optimizer._shares(t)
    moments(grad, mean, var, optimizer.beta1, optimizer.beta2)
    size = (var / (1 - optimizer.beta2 ** t)).sqrt_().add_(optimizer.epsilon)
    weight.addcdiv_((mean * of_mean).add_(grad, alpha=of_grad), size, value=-lr)


def adagrad(optimizer: Any, weight: torch.Tensor, grad: torch.Tensor, history: torch.Tensor, *, lr: float, t: int | None) -> None:
    """Update a weight by AdaGrad's rule; `epsilon` is added to the root."""
    history.addcmul_(grad, grad)
    weight.addcdiv_(grad, history.sqrt().add_(optimizer.float_stable_eps), value=-lr)


def adadelta(optimizer: Any, weight: torch.Tensor, grad: torch.Tensor, squares: torch.Tensor, steps_taken: torch.Tensor, *, lr: float,
             t: int) -> None:
    """Update a weight by AdaDelta's rule, times a learning rate."""
    rho, epsilon = optimizer.rho, optimizer.epsilon
    squares.mul_(rho).addcmul_(grad, grad, value=1 - rho)
    delta = (steps_taken + epsilon).sqrt_().div_((squares + epsilon).sqrt_()).mul_(grad)
    steps_taken.mul_(rho).addcmul_(delta, delta, value=1 - rho)
    weight.sub_(delta, alpha=lr)


def rmsprop(optimizer: Any, weight: torch.Tensor, grad: torch.Tensor, squares: torch.Tensor, mean: torch.Tensor | None = None,
            delta: torch.Tensor | None = None, *, lr: float, t: int) -> None:
    """Update a weight by RMSProp's rule; unless `centered`, `epsilon` is added to the root."""
    rho = optimizer.gamma1
    squares.mul_(rho).addcmul_(grad, grad, value=1 - rho)
    if mean is None or delta is None:
        weight.addcdiv_(grad, squares.sqrt().add_(optimizer.epsilon), value=-lr)
    else:
        mean.mul_(rho).add_(grad, alpha=1 - rho)
        size = torch.addcmul(squares, mean, mean, value=-1).add_(optimizer.epsilon).sqrt_()
        weight.add_(delta.mul_(optimizer.gamma2).addcdiv_(grad, size, value=-lr))
    if optimizer.clip_weights:
        weight.clamp_(-optimizer.clip_weights, optimizer.clip_weights)


def ftml(optimizer: Any, weight: torch.Tensor, grad: torch.Tensor, d: torch.Tensor, v: torch.Tensor, z: torch.Tensor, *, lr: float, t: int) -> None:
    """Update a weight by FTML's rule."""
    v.mul_(optimizer.beta2).addcmul_(grad, grad, value=1 - optimizer.beta2)
    new = (v / (1 - optimizer.beta2 ** t)).sqrt_().add_(optimizer.epsilon).mul_((1 - optimizer.beta1 ** t) / lr)
    z.mul_(optimizer.beta1).add_(grad, alpha=1 - optimizer.beta1).addcmul_(torch.sub(new, d, alpha=optimizer.beta1), weight, value=-1)
    d.copy_(new)
    weight.copy_(torch.div(z, new).neg_())


def dcasgd(optimizer: Any, weight: torch.Tensor, grad: torch.Tensor, *states: torch.Tensor, lr: float, t: int) -> None:
    """Update a weight by DCASGD's rule; the delay compensation uses the gradient with the weight decay."""
    *momentum, previous = states
    move = (weight - previous).mul_(grad).mul_(grad).mul_(optimizer.lamda).add_(grad).mul_(-lr)
    if momentum:
        move = momentum[0].mul_(optimizer.momentum).add_(move)
    previous.copy_(weight)
    weight.add_(move)


def nag(weight: torch.Tensor, grad: torch.Tensor, mom: torch.Tensor, lr: float, wd: float, momentum: float, rescale: float,
        clip: float | None) -> None:
    """Update a weight by Nesterov's accelerated gradient: ``mom = momentum * mom - lr * grad``, ``weight += momentum * mom - lr * grad``."""
    grad = decayed(weight, grad, wd, rescale, clip)
    mom.mul_(momentum).add_(grad, alpha=-lr)
    weight.add_(mom, alpha=momentum).add_(grad, alpha=-lr)
