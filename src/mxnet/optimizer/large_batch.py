"""Optimizers for large batches: learning rates by layer (LARS, LAMB), or warmed up with the batch (LBSGD)."""
from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from .. import environment
from ..ndarray import zeros
from ..ops.optimizer_update import rules
from . import steps
from .base import Optimizer, check_arrays, is_half, register
from .mxnet2_rules import as_in_mxnet2
from .sgd import MasterAfterState, as_lists, descend

if TYPE_CHECKING:
    from ..ndarray import NDArray


@register
@as_in_mxnet2(learning_rate=0.1, momentum=0.0, eta=0.001, epsilon=1e-8, lazy_update=False, momentum_correction=False)
class LARS(MasterAfterState):
    """SGD with momentum whose learning rate is scaled, for each weight, by the weight's norm over the gradient's norm.

    Biases, betas and gammas, identified by their names, have the unscaled learning rate.

    Parameters
    ----------
    momentum : float
    lazy_update : bool
        For row sparse gradients update only the stored rows.
    eta : float
        The scaling coefficient.
    eps : float
        Added to the norm of the gradient; `epsilon` is its name in MXNet 2.
    momentum_correction : bool
        Scale the momentum when the learning rate changes.
    **kwargs
        The arguments of `Optimizer`.

    Example
    -------
    >>> optimizer, weight = mx.optimizer.LARS(learning_rate=0.1, momentum=0.9), mx.nd.array([1, 2])
    >>> optimizer.update(0, weight, mx.nd.array([0.1, -0.2]), optimizer.create_state(0, weight))
    >>> weight.asnumpy().round(5)
    array([0.9999, 2.0002], dtype=float32)
    """

    _scales_by_norms = True

    def __init__(self, momentum: float = 0.0, lazy_update: bool = True, eta: float = 0.001, eps: float = 0, momentum_correction: bool = True, *,
                 epsilon: float | None = None, **kwargs: Any):
        kwargs.setdefault("aggregate_num", environment.get_int("MXNET_OPTIMIZER_AGGREGATION_SIZE"))
        super().__init__(**kwargs)
        self.momentum, self.momentum_correction, self.lazy_update, self.eta = momentum, momentum_correction, lazy_update, eta
        self.eps = eps if epsilon is None else epsilon
        self.skip = 0
        self.last_lr: Any = None  # the learning rates of the last update and of this one
        self.cur_lr: Any = None

    _decaying: tuple[str, ...] = ("_weight",)

    def create_state(self, index: int | str, weight: NDArray) -> NDArray | None:
        """Return the momentum; None without one."""
        if self.momentum == 0.0:
            return None
        return zeros(weight.shape, weight.ctx, dtype=weight.dtype, stype=weight.stype if self.lazy_update else "default")

    def _get_lrs(self, indices: Sequence[int | str]) -> list[float]:
        lr = self.learning_rate
        self.last_lr = lr if self.cur_lr is None else self.cur_lr
        self.cur_lr = lr
        return self._scaled(lr, indices, self.lr_mult, "lr_mult")

    def _adapted(self, indices: Sequence[int | str], weights: Sequence[NDArray], grads: Sequence[NDArray], lrs: list[float],
                 wds: list[float]) -> list[float]:
        """Return the learning rates, each times ``eta * |w| / (|g| + wd * |w| + eps)`` unless a norm is 0."""
        chosen = [k for k, i in enumerate(indices) if not self.idx2name.get(i, str(i)).endswith(("gamma", "beta", "bias"))]
        if not chosen:
            return lrs
        tensors = [a[k]._raw() for k in chosen for a in (weights, grads)]
        on_device = [torch.linalg.vector_norm(t, dtype=torch.promote_types(t.dtype, torch.float32)) for t in tensors]
        norms = torch.stack(on_device).tolist()  # the only synchronization with the device
        lrs = list(lrs)
        for k, weight_norm, grad_norm in zip(chosen, norms[::2], norms[1::2]):
            if weight_norm > 0 and grad_norm > 0:
                lrs[k] *= self.eta * weight_norm / (grad_norm * abs(self.rescale_grad) + wds[k] * weight_norm + self.eps)
        return lrs

    def _update_impl(self, index: Any, weight: Any, grad: Any, state: Any, multi_precision: bool = False) -> None:
        indices, weights, grads, states = as_lists(index, weight, grad, state)
        for w, g in zip(weights, grads):
            check_arrays(w, g)
        self._update_count(indices)
        lrs, wds = self._get_lrs(indices), self._get_wds(indices)
        momentum = max(self.momentum, 0.0)
        if self.momentum_correction and self.last_lr != 0:
            momentum *= self.cur_lr / self.last_lr
        descend(weights, grads, states, self._adapted(indices, weights, grads, lrs, wds), wds, momentum, self.rescale_grad, self.clip_gradient,
                multi_precision, self.lazy_update)


@register
class LAMB(Optimizer):
    """`Adam` whose steps are scaled by the norm of each weight.

    Parameters
    ----------
    learning_rate : float
    beta1, beta2, epsilon : float
    lower_bound, upper_bound : float, optional
        Bounds of the norm of a weight.
    bias_correction : bool
        Apply the bias correction of the averages in the first steps.
    **kwargs
        The arguments of `Optimizer`.

    Example
    -------
    >>> optimizer, weight = mx.optimizer.LAMB(learning_rate=0.1), mx.nd.array([1, 2])
    >>> optimizer.update(0, weight, mx.nd.array([0.1, -0.2]), optimizer.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.842, 2.158], dtype=float32)
    """

    _scales_by_norms = True

    def __init__(self, learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-6,
                 lower_bound: float | None = None, upper_bound: float | None = None, bias_correction: bool = True, **kwargs: Any):
        kwargs.setdefault("aggregate_num", max(1, min(45, environment.get_int("MXNET_OPTIMIZER_AGGREGATION_SIZE"))))
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon
        self.lower_bound, self.upper_bound, self.bias_correction = lower_bound, upper_bound, bias_correction

    def create_state(self, index: int | str, weight: NDArray) -> tuple[NDArray, ...]:
        """Return the averages of the gradient and of its square."""
        return tuple(zeros(weight.shape, weight.ctx, dtype=weight.dtype, stype=weight.stype) for _ in range(2))

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Update a weight, or several in lists; see `Optimizer.update`."""
        self._update_impl(index, weight, grad, state, multi_precision=False)

    def step(self, indices: Sequence[int | str], weights: Sequence[NDArray], grads: Sequence[NDArray], states: Sequence[Any]) -> None:
        """Update several weights in place; see `Optimizer.step`."""
        self._update_impl(indices, weights, grads, states, multi_precision=False)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Update as `update` does; with `multi_precision`, half-precision weights through their float32 copies."""
        first = weight[0] if isinstance(index, (list, tuple)) else weight
        self._update_impl(index, weight, grad, state, multi_precision=self.multi_precision and is_half(first))

    def _update_impl(self, index: Any, weight: Any, grad: Any, state: Any, multi_precision: bool = False) -> None:
        for i, w, g, s in zip(*as_lists(index, weight, grad, state)):
            lr, wd, t = self._begin(i, w, g)
            master, moments = s if multi_precision else (w, s)

            def step(w: torch.Tensor, g: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, lr: float = lr, wd: float = wd, t: int = t) -> None:
                direction = rules.lamb_direction(w, g.to(w.dtype), mean, var, self.beta1, self.beta2, self.epsilon, t, self.bias_correction, wd,
                                                 self.rescale_grad, self.clip_gradient or -1)
                w.copy_(rules.lamb_step(w, direction, torch.linalg.vector_norm(w), torch.linalg.vector_norm(direction), lr,
                                        self.lower_bound or -1, self.upper_bound or -1))

            steps.apply(step, master, g, moments)
            if multi_precision:
                w[:] = master


@register
class LBSGD(Optimizer):
    """SGD that accumulates the gradients of several batches, and warms the learning rate up to the larger batch.

    Parameters
    ----------
    momentum : float
    multi_precision : bool
    warmup_strategy : str
        The warm-up of the learning rate: ``'linear'``, ``'power2'``, ``'sqrt'``, or ``'lars'`` for a rate by norms instead.
    warmup_epochs : int
        The number of epochs of the warm-up.
    batch_scale : int
        The number of batches to accumulate.
    updates_per_epoch : int
    begin_epoch, num_epochs : int
    **kwargs
        The arguments of `Optimizer`.

    Example
    -------
    >>> optimizer, weight = mx.optimizer.LBSGD(learning_rate=0.1, momentum=0.9), mx.nd.array([1, 2])
    >>> optimizer.update(0, weight, mx.nd.array([0.1, -0.2]), optimizer.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.99, 2.02], dtype=float32)
    """

    def __init__(self, momentum: float = 0.0, multi_precision: bool = False, warmup_strategy: str = "linear", warmup_epochs: int = 5,
                 batch_scale: float = 1, updates_per_epoch: int = 32, begin_epoch: int = 0, num_epochs: int = 60, **kwargs: Any):
        super().__init__(**kwargs)
        logging.info("Running Large-Batch SGD Algorithm")
        logging.info("(warmup_strategy=%s, warmup_epochs=%d, batch_scale=%f, updates_per_epoch=%d)", warmup_strategy, warmup_epochs, batch_scale,
                     updates_per_epoch)
        self.momentum, self.multi_precision, self._scales_by_norms = momentum, multi_precision, warmup_strategy == "lars"
        self.warmup_strategy, self.warmup_epochs, self.batch_scale = warmup_strategy, warmup_epochs, batch_scale
        self.updates_per_epoch, self.init_updates, self.num_epochs = updates_per_epoch, begin_epoch * updates_per_epoch, num_epochs
        self.cumgrads: dict[Any, dict[str, Any]] = {}  # index -> {'cum_grad': the sum, 'num_cums': the number of batches since the start}
        self.lbmult, self.admult, self.adaptive = 1, 1, False

    def create_state(self, index: int | str, weight: NDArray) -> NDArray | None:
        """Return the momentum; None without one."""
        return zeros(weight.shape, weight.ctx, dtype=weight.dtype, stype=weight.stype) if self.momentum != 0.0 else None

    def _get_lbmult(self, nup: int) -> float:
        """Return the factor of the learning rate after `nup` batches."""
        warmup = self.warmup_epochs * self.updates_per_epoch
        if nup >= warmup:
            return float(self.batch_scale)
        if warmup <= 1:
            return 1.0
        done = nup / warmup
        height = {"linear": done, "power2": done * done, "sqrt": math.sqrt(done)}.get(self.warmup_strategy, 0.0)
        return 1.0 + (self.batch_scale - 1) * height

    def _get_lars(self, weight: NDArray, grad: NDArray, wd: float) -> float:
        """Return the factor of the learning rate by norms, from 0.01 to 100."""
        weight_square, grad_square = (float(a._raw().double().square().sum()) for a in (weight, grad))
        return min(max(math.sqrt(weight_square / (grad_square + wd * weight_square + 1e-18)), 0.01), 100)

    def _cumulate_gradient(self, grad: NDArray, index: int | str) -> dict[str, Any]:
        """Accumulate a gradient, and return its entry of `cumgrads`."""
        entry = self.cumgrads.get(index)
        if entry is None:
            # A copy: the array will be overwritten by the next gradient.
            entry = self.cumgrads[index] = {"cum_grad": grad.copy(), "num_cums": self.init_updates + 1}
        else:
            entry["cum_grad"] = entry["cum_grad"] + grad
            entry["num_cums"] += 1
        return entry

    def _update_one(self, index: int | str, weight: NDArray, grad: NDArray, state: Any) -> None:
        """Update a weight in place if this is the last batch to accumulate; see `Optimizer.update`."""
        check_arrays(weight, grad)
        lr, wd = self._get_lr(index), self._get_wd(index)
        self._update_count(index)
        entry = self._cumulate_gradient(grad, index)
        if entry["num_cums"] % self.batch_scale:
            return
        grad = entry["cum_grad"] / self.batch_scale
        lr *= self._get_lars(weight, grad, wd) if self.warmup_strategy == "lars" else self._get_lbmult(entry["num_cums"])
        descend([weight], [grad], [state], [lr], [wd], max(self.momentum, 0.0), self.rescale_grad, self.clip_gradient, False, True)
        entry["cum_grad"] = 0
