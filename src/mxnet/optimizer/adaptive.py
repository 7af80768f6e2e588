"""Optimizers whose steps adapt to the size of past gradients."""
import math

import torch

from ..base import MXNetError
from ..ndarray import zeros
from ..ops.optimizer_update import rules
from . import steps
from .base import Optimizer, register


def _zeros_like(weight, count, dtype=None, stype="default"):
    return tuple(zeros(weight.shape, weight.ctx, dtype=dtype or weight.dtype, stype=stype) for _ in range(count))


@register
class Adam(Optimizer):
    """Steps along a running average of gradients, divided by the root of that of their squares.

    Parameters
    ----------
    learning_rate : float
    beta1, beta2 : float
        How much of the averages stays from step to step.
    epsilon : float
        Added to the root.
    lazy_update : bool
        Of row sparse gradients update the stored rows only.
    **kwargs
        For `Optimizer`.
    """

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, lazy_update=True, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon, self.lazy_update = beta1, beta2, epsilon, lazy_update

    def create_state(self, index, weight):
        """The averages of the gradient and of its square."""
        return _zeros_like(weight, 2, stype=weight.stype if self.lazy_update else "default")

    def update(self, index, weight, grad, state):
        """Update a weight in place; see `Optimizer.update`."""
        lr, wd, t = self._begin(index, weight, grad)
        lr *= math.sqrt(1.0 - self.beta2 ** t) / (1.0 - self.beta1 ** t)

        def step(w, g, mean, var):
            steps.adam(w, g, mean, var, lr, self.beta1, self.beta2, self.epsilon, wd, self.rescale_grad, self.clip_gradient)

        steps.apply(step, weight, grad, state, rows=self.lazy_update and state[0].stype == weight.stype)


@register
class AdaGrad(Optimizer):
    """Divides the gradient by the root of the sum of all past squares.

    Of row sparse gradients the stored rows are updated only, and weight decay is not possible with them.

    Parameters
    ----------
    eps : float
        Added to the sum.
    **kwargs
        For `Optimizer`.
    """

    def __init__(self, eps=1e-7, **kwargs):
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index, weight):
        """The sum of the gradients' squares."""
        return zeros(weight.shape, weight.ctx, stype=weight.stype)

    def update(self, index, weight, grad, state):
        """Update a weight in place; see `Optimizer.update`.

        Raises
        ------
        MXNetError
            If the gradient is row sparse and the weight decays.
        """
        lr, wd, _ = self._begin(index, weight, grad)
        clip = -1 if self.clip_gradient is None else self.clip_gradient
        if wd and grad.stype == "row_sparse":
            raise MXNetError(f"AdaGrad: wd must be 0 with row_sparse gradients, weight {index} has {wd}")

        def step(w, g, history):
            w.copy_(rules.adagrad(w, g, history, lr, self.float_stable_eps, wd, self.rescale_grad, clip))

        steps.apply(step, weight, grad, (state,), rows=True)


@register
class RMSProp(Optimizer):
    """Divides the gradient by the root of a running average of its squares.

    Parameters
    ----------
    learning_rate : float
    gamma1 : float
        How much of the average stays from step to step.
    gamma2 : float
        The momentum, if `centered`.
    epsilon : float
        Added under the root.
    centered : bool
        Divide by the standard deviation instead, with momentum, after Graves (https://arxiv.org/abs/1308.0850).
    clip_weights : float, optional
        Weights are clipped to between minus this and this.
    **kwargs
        For `Optimizer`.
    """

    def __init__(self, learning_rate=0.001, gamma1=0.9, gamma2=0.9, epsilon=1e-8, centered=False, clip_weights=None, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.gamma1, self.gamma2, self.centered, self.epsilon, self.clip_weights = gamma1, gamma2, centered, epsilon, clip_weights

    def create_state(self, index, weight):
        """The averages: of squares; if `centered` of squares and gradients, and the momentum."""
        return _zeros_like(weight, 3 if self.centered else 1, dtype="float32", stype=weight.stype)

    def update(self, index, weight, grad, state):
        """Update a weight in place; see `Optimizer.update`."""
        lr, wd, _ = self._begin(index, weight, grad)
        rest = self.epsilon, wd, self.rescale_grad, self.clip_gradient or -1, self.clip_weights or -1

        def step(w, g, *s):
            if self.centered:
                w.copy_(rules.rmsprop_centered(w, g, *s, lr, self.gamma1, self.gamma2, *rest))
            else:
                w.copy_(rules.rmsprop(w, g, *s, lr, self.gamma1, *rest))

        steps.apply(step, weight, grad, state)


@register
class AdaDelta(Optimizer):
    """Steps of the size of past steps: gradients, divided by their running size, times that of the steps. Has no learning rate.

    Parameters
    ----------
    rho : float
        How much of the averages stays from step to step.
    epsilon : float
        Added under the roots.
    **kwargs
        For `Optimizer`.
    """

    def __init__(self, rho=0.90, epsilon=1e-5, **kwargs):
        super().__init__(**kwargs)
        self.rho, self.epsilon = rho, epsilon

    def create_state(self, index, weight):
        """The averages of the squares of gradients and of steps."""
        return _zeros_like(weight, 2, dtype="float32")

    def update(self, index, weight, grad, state):
        """Update a weight in place; see `Optimizer.update`."""
        _, wd, _ = self._begin(index, weight, grad)
        rho, epsilon = self.rho, self.epsilon

        def step(w, g, squares, steps_taken):
            g = steps.prepared(g, self.rescale_grad, self.clip_gradient)
            squares.mul_(rho).addcmul_(g, g, value=1 - rho)
            delta = (steps_taken + epsilon).div_(squares + epsilon).sqrt_().mul_(g)
            steps_taken.mul_(rho).addcmul_(delta, delta, value=1 - rho)
            w.mul_(1 - wd).sub_(delta)

        steps.apply(step, weight, grad, state)


@register
class Adamax(Optimizer):
    """`Adam` that divides by the largest past gradient, which fades, instead of a root mean square.

    Parameters
    ----------
    learning_rate : float
    beta1, beta2 : float
    **kwargs
        For `Optimizer`.
    """

    def __init__(self, learning_rate=0.002, beta1=0.9, beta2=0.999, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2 = beta1, beta2

    def create_state(self, index, weight):
        """The average of the gradient, and the largest one."""
        return _zeros_like(weight, 2)

    def update(self, index, weight, grad, state):
        """Update a weight in place; see `Optimizer.update`."""
        lr, wd, t = self._begin(index, weight, grad)
        lr /= 1.0 - self.beta1 ** t

        def step(w, g, mean, largest):
            g = steps.prepared(g, self.rescale_grad, self.clip_gradient, w, wd)
            mean.mul_(self.beta1).add_(g, alpha=1 - self.beta1)
            torch.maximum(largest.mul_(self.beta2), g.abs(), out=largest)
            w.addcdiv_(mean, largest, value=-lr)

        steps.apply(step, weight, grad, state)


@register
class Nadam(Optimizer):
    """`Adam` with Nesterov's momentum, which grows by a schedule.

    Parameters
    ----------
    learning_rate : float
    beta1, beta2, epsilon : float
    schedule_decay : float
        How fast the momentum grows.
    **kwargs
        For `Optimizer`.
    """

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, schedule_decay=0.004, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon, self.schedule_decay = beta1, beta2, epsilon, schedule_decay
        self.m_schedule = 1.0

    def create_state(self, index, weight):
        """The averages of the gradient and of its square."""
        return _zeros_like(weight, 2)

    def update(self, index, weight, grad, state):
        """Update a weight in place; see `Optimizer.update`."""
        lr, wd, t = self._begin(index, weight, grad)
        momentum, momentum_next = (self.beta1 * (1.0 - 0.5 * 0.96 ** (n * self.schedule_decay)) for n in (t, t + 1))
        self.m_schedule *= momentum
        of_grad = (1.0 - momentum) / (1.0 - self.m_schedule)
        of_mean = momentum_next / (1.0 - self.m_schedule * momentum_next)

        def step(w, g, mean, var):
            g = steps.prepared(g, self.rescale_grad, self.clip_gradient, w, wd)
            rules.moments(g, mean, var, self.beta1, self.beta2)
            size = (var / (1.0 - self.beta2 ** t)).sqrt_().add_(self.epsilon)
            w.addcdiv_((mean * of_mean).add_(g, alpha=of_grad), size, value=-lr)

        steps.apply(step, weight, grad, state)
