"""Optimizers of MXNet 2."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from ..kernels.nn.updates_on_gpu import Step
from ..ndarray import zeros
from ..ops.optimizer_update import rules
from . import steps
from .base import Optimizer, register

if TYPE_CHECKING:
    from ..ndarray import NDArray


class _Moments(Optimizer):
    """The base class of optimizers with running averages of the gradient and of a square.

    Parameters
    ----------
    learning_rate : float
    beta1, beta2 : float
        The decay rates of the averages.
    epsilon : float
        Added to the root of the second one.
    """

    def __init__(self, learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-6, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def create_state(self, index: int | str, weight: NDArray) -> tuple[NDArray, ...]:
        """Return the two averages."""
        return tuple(zeros(weight.shape, weight.ctx, dtype=weight.dtype) for _ in range(2))

    def _update_one(self, index: int | str, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, t = self._begin(index, weight, grad)

        def step(w: torch.Tensor, g: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> None:
            self._step(w, g, mean, var, lr, wd, t)

        steps.apply(step, weight, grad, state, rule=(lambda: self._rule(lr, wd, t)) if self._has_kernel else None)

    def _step(self, weight: torch.Tensor, grad: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, lr: float, wd: float, t: int) -> None:
        raise NotImplementedError

    def _rule(self, lr: float, wd: float, t: int) -> Step:
        """Return the same step for the kernel on GPUs."""
        raise NotImplementedError


class _Corrected(_Moments):
    _has_kernel = True

    def __init__(self, learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-6,
                 correct_bias: bool = True, **kwargs: Any):
        super().__init__(learning_rate, beta1, beta2, epsilon, **kwargs)
        self.correct_bias = correct_bias

    def _rate(self, lr: float, t: int) -> float:
        """Return the learning rate with the bias correction of the averages, which start at 0."""
        return lr * math.sqrt(1 - self.beta2 ** t) / (1 - self.beta1 ** t) if self.correct_bias else lr

    def _numbers(self, rate: float) -> tuple[float, ...]:
        return rate, self.beta1, 1 - self.beta1, self.beta2, 1 - self.beta2, self.epsilon


@register
class AdamW(_Corrected):
    """`Adam` with decoupled weight decay: Loshchilov and Hutter, 2019 (arXiv:1711.05101).

    Parameters
    ----------
    learning_rate : float
    beta1, beta2 : float
        The decay rates of the averages.
    epsilon : float
        Added to the root.
    correct_bias : bool
        Apply the bias correction of the averages in the first steps.
    **kwargs
        The arguments of `Optimizer`.

    Example
    -------
    >>> optimizer, weight = mx.optimizer.AdamW(learning_rate=0.1), mx.nd.array([1, 2])
    >>> optimizer.update(0, weight, mx.nd.array([0.1, -0.2]), optimizer.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.9, 2.1], dtype=float32)
    """

    def _step(self, weight: torch.Tensor, grad: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, lr: float, wd: float, t: int) -> None:
        lr = self._rate(lr, t)
        rules.moments(rules.rescaled(grad, self.rescale_grad, self.clip_gradient or -1), mean, var, self.beta1, self.beta2)
        weight.addcdiv_(mean, var.sqrt().add_(self.epsilon), value=-lr).mul_(1 - lr * wd)

    def _rule(self, lr: float, wd: float, t: int) -> Step:
        lr = self._rate(lr, t)
        return Step("adamw", (*self._numbers(lr), 1 - lr * wd), self.rescale_grad, steps.positive(self.clip_gradient))


@register
class AdaBelief(_Corrected):
    """AdaBelief: `Adam` that divides by the deviation of gradients from their average: Zhuang et al., 2020 (arXiv:2010.07468).

    Parameters
    ----------
    learning_rate : float
    beta1, beta2 : float
        The decay rates of the averages.
    epsilon : float
        Added to the average of squared deviations at each step, and to its root.
    correct_bias : bool
        Apply the bias correction of the averages in the first steps.
    **kwargs
        The arguments of `Optimizer`.

    Example
    -------
    >>> optimizer, weight = mx.optimizer.AdaBelief(learning_rate=0.1), mx.nd.array([1, 2])
    >>> optimizer.update(0, weight, mx.nd.array([0.1, -0.2]), optimizer.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.895, 2.109], dtype=float32)
    """

    def _step(self, weight: torch.Tensor, grad: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, lr: float, wd: float, t: int) -> None:
        grad = rules.decayed(grad, weight, wd, self.rescale_grad, self.clip_gradient or -1)
        mean.lerp_(grad, 1 - self.beta1)
        deviation = grad - mean
        var.mul_(self.beta2).addcmul_(deviation, deviation, value=1 - self.beta2).add_(self.epsilon)
        weight.addcdiv_(mean, var.sqrt().add_(self.epsilon), value=-self._rate(lr, t))

    def _rule(self, lr: float, wd: float, t: int) -> Step:
        return Step("adabelief", self._numbers(self._rate(lr, t)), self.rescale_grad, steps.positive(self.clip_gradient), wd)


@register
class LANS(_Moments):
    """`LAMB` with normalized gradients and Nesterov's momentum, for large batches: Zheng et al., 2020 (arXiv:2006.13484).

    Parameters
    ----------
    learning_rate : float
    beta1, beta2, epsilon : float
    lower_bound, upper_bound : float, optional
        Bounds of the norm of a weight.
    **kwargs
        The arguments of `Optimizer`.

    Example
    -------
    >>> optimizer, weight = mx.optimizer.LANS(learning_rate=0.1), mx.nd.array([1, 2])
    >>> optimizer.update(0, weight, mx.nd.array([0.1, -0.2]), optimizer.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.842, 2.158], dtype=float32)
    """

    _scales_by_norms = True

    def __init__(self, learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-6,
                 lower_bound: float | None = None, upper_bound: float | None = None, **kwargs: Any):
        super().__init__(learning_rate, beta1, beta2, epsilon, **kwargs)
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def _step(self, weight: torch.Tensor, grad: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, lr: float, wd: float, t: int) -> None:
        grad = grad * self.rescale_grad
        norm = torch.linalg.vector_norm(grad)
        grad = torch.where(norm > 0, grad / norm, 0.0)
        if self.clip_gradient:
            grad = grad.clamp(-self.clip_gradient, self.clip_gradient)
        rules.moments(grad, mean, var, self.beta1, self.beta2)
        scale = (var / (1 - self.beta2 ** t)).sqrt_().add_(self.epsilon)
        size = torch.linalg.vector_norm(weight)
        if self.lower_bound is not None or self.upper_bound is not None:
            size = size.clamp(self.lower_bound, self.upper_bound)
        for part, share in ((mean / (1 - self.beta1 ** t), self.beta1), (grad, 1 - self.beta1)):
            direction = (part / scale).add_(weight, alpha=wd)
            length = torch.linalg.vector_norm(direction)
            ratio = torch.where((size == 0) | (length == 0), 1.0, size / length)
            weight.sub_(direction.mul_(ratio * (lr * share)))
