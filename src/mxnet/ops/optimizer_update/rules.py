"""The arithmetic of the optimizers: functions of tensors and numbers that write states in place and return the new weight.

A `clip` below zero means none. Names follow MXNet's attributes: `rescale` and `clip` act on the gradient, `wd` is the weight decay.
"""
from typing import Any

import torch


def rescaled(grad: torch.Tensor, rescale: float, clip: float) -> torch.Tensor:
    """The gradient times `rescale`, clipped. May be `grad` itself, so it is not to be written to."""
    if rescale != 1:
        grad = grad * rescale
    return grad.clamp(-clip, clip) if clip >= 0 else grad


def decayed(grad: torch.Tensor, weight: torch.Tensor, wd: float, rescale: float, clip: float) -> torch.Tensor:
    """``rescale * grad + wd * weight``, clipped. May be `grad` itself, so it is not to be written to."""
    if rescale != 1:
        grad = grad * rescale
    if wd:
        grad = torch.add(grad, weight, alpha=wd)
    return grad.clamp(-clip, clip) if clip >= 0 else grad


def sgd(weight: torch.Tensor, grad: torch.Tensor, lr: Any, wd: float, rescale: float, clip: float) -> torch.Tensor:
    if clip >= 0:
        grad, rescale = rescaled(grad, rescale, clip), 1
    if wd:
        return (weight * (1 - lr * wd)).add_(grad, alpha=-lr * rescale)
    return torch.add(weight, grad, alpha=-lr * rescale)


def sgd_by_tensors(weight: torch.Tensor, grad: torch.Tensor, lr: Any, wd: Any, rescale: Any, clip: float) -> torch.Tensor:
    """`sgd` with a rate and a decay in tensors on a GPU, whose values are not read on the host."""
    return weight - lr * (rescaled(grad, rescale, clip) + wd * weight)


def sgd_momentum_by_tensors(weight: torch.Tensor, grad: torch.Tensor, mom: torch.Tensor, lr: Any, momentum: float, wd: Any, rescale: Any,
                            clip: float) -> torch.Tensor:
    mom.mul_(momentum).sub_(lr * (rescaled(grad, rescale, clip) + wd * weight))
    return weight + mom


def sgd_momentum(weight: torch.Tensor, grad: torch.Tensor, mom: torch.Tensor, lr: Any, momentum: float, wd: float, rescale: float,
                 clip: float) -> torch.Tensor:
    if clip >= 0:
        grad, rescale = rescaled(grad, rescale, clip), 1
    mom.mul_(momentum)
    if wd:
        mom.add_(weight, alpha=-lr * wd)
    mom.add_(grad, alpha=-lr * rescale)
    return weight + mom


def nag_momentum(weight: torch.Tensor, grad: torch.Tensor, mom: torch.Tensor, lr: Any, momentum: float, wd: float, rescale: float,
                 clip: float) -> torch.Tensor:
    mom.mul_(momentum)
    new = weight - mom
    mom.add_(rescaled(grad, rescale, clip), alpha=-lr)
    if wd:
        mom.add_(weight, alpha=-lr * wd)
    return new.add_(mom, alpha=1 + momentum)


def moments(grad: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, beta1: float, beta2: float) -> None:
    """Move the running averages of the gradient and its square."""
    mean.mul_(beta1).add_(grad, alpha=1 - beta1)
    var.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)


def adam(weight: torch.Tensor, grad: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, lr: Any, beta1: float, beta2: float, epsilon: float,
         wd: float, rescale: float, clip: float) -> torch.Tensor:
    moments(decayed(grad, weight, wd, rescale, clip), mean, var, beta1, beta2)
    return torch.addcdiv(weight, mean, var.sqrt().add_(epsilon), value=-lr)


def adamw(weight: torch.Tensor, grad: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, lr: Any, eta: Any, beta1: float, beta2: float,
          epsilon: float, wd: float, rescale: float, clip: float) -> torch.Tensor:
    moments(rescaled(grad, rescale, clip), mean, var, beta1, beta2)
    return (weight * (1 - eta * wd)).addcdiv_(mean, var.sqrt().add_(epsilon), value=-eta * lr)


def lamb_direction(weight: torch.Tensor, grad: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, beta1: float, beta2: float, epsilon: float,
                   t: Any, bias_correction: bool, wd: float, rescale: float, clip: float) -> torch.Tensor:
    moments(rescaled(grad, rescale, clip), mean, var, beta1, beta2)
    size, scale = var, 1
    if bias_correction:
        size, scale = var / (1 - beta2 ** t), 1 - beta1 ** t
    direction = (mean / scale).div_(size.sqrt().add_(epsilon))
    return direction.add_(weight, alpha=wd)


def lamb_step(weight: torch.Tensor, direction: torch.Tensor, weight_norm: torch.Tensor, direction_norm: torch.Tensor, lr: Any, lower_bound: float,
              upper_bound: float) -> torch.Tensor:
    if lower_bound >= 0:
        weight_norm = weight_norm.clamp_min(lower_bound)
    if upper_bound >= 0:
        weight_norm = weight_norm.clamp_max(upper_bound)
    ratio = torch.where((weight_norm == 0) | (direction_norm == 0), 1.0, weight_norm / direction_norm).to(weight.dtype)
    return weight - direction * (ratio * lr)


def rmsprop(weight: torch.Tensor, grad: torch.Tensor, n: torch.Tensor, lr: Any, gamma1: float, epsilon: float, wd: float, rescale: float, clip: float,
            clip_weights: float) -> torch.Tensor:
    grad = decayed(grad, weight, wd, rescale, clip)
    n.mul_(gamma1).addcmul_(grad, grad, value=1 - gamma1)
    new = torch.addcdiv(weight, grad, (n + epsilon).sqrt_(), value=-lr)
    return new.clamp_(-clip_weights, clip_weights) if clip_weights >= 0 else new


def rmsprop_centered(weight: torch.Tensor, grad: torch.Tensor, n: torch.Tensor, g: torch.Tensor, delta: torch.Tensor, lr: Any, gamma1: float,
                     gamma2: float, epsilon: float, wd: float, rescale: float, clip: float, clip_weights: float) -> torch.Tensor:
    grad = decayed(grad, weight, wd, rescale, clip)
    moments(grad, g, n, gamma1, gamma1)
    delta.mul_(gamma2).addcdiv_(grad, torch.addcmul(n, g, g, value=-1).add_(epsilon).sqrt_(), value=-lr)
    new = weight + delta
    return new.clamp_(-clip_weights, clip_weights) if clip_weights >= 0 else new


def ftrl(weight: torch.Tensor, grad: torch.Tensor, z: torch.Tensor, n: torch.Tensor, lr: Any, lamda1: float, beta: float, wd: float, rescale: float,
         clip: float) -> torch.Tensor:
    grad = rescaled(grad, rescale, clip)
    before = n.sqrt()
    n.addcmul_(grad, grad)
    after = n.sqrt()
    z.add_(grad).addcmul_(after - before, weight, value=-1 / lr)
    # Where |z| stays below lamda1 the weight is exactly 0.
    return torch.nn.functional.softshrink(z, lamda1).neg_().div_(after.add_(beta).div_(lr).add_(wd))


def ftml(weight: torch.Tensor, grad: torch.Tensor, d: torch.Tensor, v: torch.Tensor, z: torch.Tensor, lr: Any, beta1: float, beta2: float,
         epsilon: float, t: Any, wd: float, rescale: float, clip: float) -> torch.Tensor:
    grad = decayed(grad, weight, wd, rescale, clip)
    v.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    d_t = (v / (1 - beta2 ** t)).sqrt_().add_(epsilon).mul_((1 - beta1 ** t) / lr)
    z.mul_(beta1).add_(grad, alpha=1 - beta1).addcmul_(torch.sub(d_t, d, alpha=beta1), weight, value=-1)
    d.copy_(d_t)
    return torch.div(z, d_t).neg_()


def signsgd(weight: torch.Tensor, grad: torch.Tensor, lr: Any, wd: float) -> torch.Tensor:
    return (weight * (1 - lr * wd)).add_(grad.sign(), alpha=-lr)


def signum(weight: torch.Tensor, grad: torch.Tensor, mom: torch.Tensor, lr: Any, momentum: float, wd: float, rescale: float, clip: float,
           wd_lh: float) -> torch.Tensor:
    mom.mul_(momentum).add_(rescaled(grad, rescale, clip), alpha=momentum - 1)
    if wd:
        mom.add_(weight, alpha=(momentum - 1) * wd)
    return (weight * (1 - lr * wd_lh)).add_(mom.sign(), alpha=lr)


def adagrad(weight: torch.Tensor, grad: torch.Tensor, history: torch.Tensor, lr: Any, epsilon: float, wd: float, rescale: float,
            clip: float) -> torch.Tensor:
    grad = rescaled(grad, rescale, clip)
    history.addcmul_(grad, grad)
    new = torch.addcdiv(weight, grad, (history + epsilon).sqrt_(), value=-lr)
    return new.add_(weight, alpha=-lr * wd) if wd else new


def group_adagrad(weight: torch.Tensor, grad: torch.Tensor, history: torch.Tensor, lr: Any, rescale: float, clip: float,
                  epsilon: float) -> torch.Tensor:
    grad = rescaled(grad, rescale, clip)
    squares = grad.square().reshape(grad.shape[0], -1).mean(1)
    history.add_(squares.reshape(history.shape))
    size = (history + epsilon).sqrt_().reshape(-1, *[1] * (grad.dim() - 1))
    return torch.addcdiv(weight, grad, size.to(grad.dtype), value=-lr)
