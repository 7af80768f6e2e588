"""Optimizers whose steps adapt to the size of past gradients."""
from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from ..base import MXNetError
from ..kernels.nn import optimizer_update as kernels
from ..kernels.nn import updates_on_gpu
from ..kernels.nn.updates_on_gpu import Step
from ..ndarray import memory_format, zeros
from ..ndarray.sparse import BaseSparseNDArray
from ..ops.optimizer_update import rules
from . import multi_tensor, mxnet2_rules, steps
from .base import Optimizer, is_half, register
from .mxnet2_rules import as_in_mxnet2

if TYPE_CHECKING:
    from ..ndarray import NDArray


def _zeros_like(weight: NDArray, count: int, dtype: Any = None, stype: str = "default") -> tuple[NDArray, ...]:
    return tuple(zeros(weight.shape, weight.ctx, dtype=dtype or weight.dtype, stype=stype) for _ in range(count))


_AT_A_TIME = 1 << 22  # elements
_PLAIN = "update", "step", "fused_step", "update_multi_precision"  # methods of `Optimizer` that Adam does not override


def _warn_of_zeros(optimizer: Optimizer, index: int | str, weight: NDArray, divisor: NDArray, name: str = "epsilon") -> None:
    """Warn if a weight's first step, divided by a state tensor without an epsilon, has made NaN (0 / 0) of some of its elements.

    It can only happen in the first step, and NaN stays NaN.
    """
    if optimizer._index_update_count[index] != optimizer.begin_num_update + 1:
        return
    multi_tensor.finish()
    # A row sparse array stores all of its rows once it was updated.
    tensors = [a._values if isinstance(a, BaseSparseNDArray) else a._raw() for a in (divisor, weight)]
    if tensors[0].numel() != tensors[1].numel():
        return
    parts = (t.reshape(-1).split(_AT_A_TIME) for t in tensors)
    count = sum(int(((d == 0) & w.isnan()).sum()) for d, w in zip(*parts))
    if count:
        warnings.warn(f"{type(optimizer).__name__}: {count} of the {weight.size} elements of weight {optimizer.idx2name.get(index, index)!r} had a "
                      "gradient of 0 in their first step, so that this was 0 / 0 and they are NaN from now on; pass "
                      f"{name}=1e-8, which leaves such elements as they are", RuntimeWarning, stacklevel=4)


@register
@as_in_mxnet2(mxnet2_rules.adam, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, lazy_update=False)
class Adam(Optimizer):
    """Adam: steps along a running average of gradients, divided by the root of the running average of their squares.

    Parameters
    ----------
    learning_rate : float
    beta1, beta2 : float
        The decay rates of the averages.
    epsilon : float
        Added to the root.
    lazy_update : bool
        For row sparse gradients update only the stored rows.
    **kwargs
        The arguments of `Optimizer`.

    Example
    -------
    >>> optimizer, weight = mx.optimizer.Adam(learning_rate=0.1), mx.nd.array([1, 2])
    >>> optimizer.update(0, weight, mx.nd.array([0.1, -0.2]), optimizer.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.9, 2.1], dtype=float32)
    """

    _has_kernel = True

    def __init__(self, learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, lazy_update: bool = True,
                 **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon, self.lazy_update = beta1, beta2, epsilon, lazy_update

    def create_state(self, index: int | str, weight: NDArray) -> tuple[NDArray, ...]:
        """Return the averages of the gradient and of its square."""
        return _zeros_like(weight, 2, stype=weight.stype if self.lazy_update else "default")

    def _follows_rule(self, index: int | str, grad: NDArray) -> bool:
        return bool(self.clip_gradient and self._get_wd(index))  # the rules differ only in the order of these two

    def _update_one(self, index: int | str, weight: NDArray, grad: NDArray, state: Any) -> None:
        self._move(weight, grad, state, *self._rates(index, weight, grad))
        if not self.epsilon:
            _warn_of_zeros(self, index, weight, state[1])

    def _rates(self, index: int | str, weight: NDArray, grad: NDArray) -> tuple[float, float]:
        """Count an update; return its learning rate, corrected for the first steps, and its weight decay."""
        lr, wd, t = self._begin(index, weight, grad)
        return lr * self._correction(t), wd

    def _correction(self, t: int) -> float:
        return math.sqrt(1.0 - self.beta2 ** t) / (1.0 - self.beta1 ** t)

    def _move(self, weight: NDArray, grad: NDArray, state: Any, lr: float, wd: float) -> None:
        numbers = lr, self.beta1, self.beta2, self.epsilon, wd, self.rescale_grad, self.clip_gradient

        def step(w: torch.Tensor, g: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> None:
            steps.adam(w, g, mean, var, *numbers)

        def in_place(w: torch.Tensor, g: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, rows: torch.Tensor | None) -> bool:
            return kernels.adam(w, g, mean, var, rows, *numbers[:-1], self.clip_gradient or None)

        rows = self.lazy_update and state[0].stype == weight.stype
        steps.apply(step, weight, grad, state, rows=rows, in_place=in_place, rule=lambda: steps.adam_rule(*numbers))

    def _update_each(self, indices: Sequence[int | str], weights: Sequence[NDArray], grads: Sequence[NDArray], states: Sequence[Any]) -> None:
        kind = type(self)
        own = kind._update_one is Adam._update_one and all(
            getattr(kind, name) is getattr(Optimizer, name) for name in _PLAIN) and multi_tensor.unpatched(kind, ("_update_one", *_PLAIN))
        alone = self.multi_precision and not updates_on_gpu.on_gpu(weights[0]._data)
        if not own or alone or not self.epsilon or len(indices) == 1 or self._as_mxnet2 and self.clip_gradient:
            super()._update_each(indices, weights, grads, states)
            return
        rates = self._begin_each(indices, weights, grads)
        lr, wd, t = rates[0]
        if not self.multi_precision and rates.count(rates[0]) == len(rates) and steps.adam_of_arrays(
                weights, grads, states, lr * self._correction(t), self.beta1, self.beta2, self.epsilon, wd, self.rescale_grad,
                self.clip_gradient):
            return
        groups: dict[Any, Any] = {}  # the weights of one call
        halves = []  # those that are rounded afterwards
        for weight, grad, state, (lr, wd, t) in zip(weights, grads, states, rates):
            lr *= self._correction(t)
            target = weight
            if self.multi_precision and is_half(weight):
                target, state = state
                memory_format.like(target, weight)
            tensors = steps.small(target, grad, *state)
            copy = None if target is weight or tensors is None else steps.copy_target(weight, target)
            if copy is None and target is not weight:
                halves.append((weight, target))
            if tensors is None:
                self._move(target, grad if target is weight else grad.astype(target.dtype), state, lr, wd)
                continue
            types = tensors[0].dtype, tensors[1].dtype, None if copy is None else copy.dtype
            for entries, tensor in zip(groups.setdefault((lr, wd, types), ([], [], [], [], [])), (*tensors, copy)):
                entries.append(tensor)
        for (lr, wd, types), (ws, gs, means, variances, copies) in groups.items():
            steps.adam_together(ws, gs, means, variances, copies if types[2] else None, lr, self.beta1, self.beta2, self.epsilon, wd,
                                self.rescale_grad, self.clip_gradient)
        if halves:
            torch._foreach_copy_([weight._writable() for weight, _ in halves], [master._data.data for _, master in halves])


@register
@as_in_mxnet2(mxnet2_rules.adagrad, learning_rate=0.01, epsilon=1e-6)
class AdaGrad(Optimizer):
    """Divides the gradient by the root of the sum of all past squares.

    For row sparse gradients only the stored rows are updated, and weight decay is not supported.

    Parameters
    ----------
    eps : float
        Added to the sum; `epsilon` is its name in MXNet 2.
    **kwargs
        The arguments of `Optimizer`.

    Example
    -------
    >>> optimizer, weight = mx.optimizer.AdaGrad(learning_rate=0.1), mx.nd.array([1, 2])
    >>> optimizer.update(0, weight, mx.nd.array([0.1, -0.2]), optimizer.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.9, 2.1], dtype=float32)
    """

    _has_kernel = True

    def __init__(self, eps: float = 1e-7, *, epsilon: float | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.float_stable_eps = eps if epsilon is None else epsilon

    def create_state(self, index: int | str, weight: NDArray) -> NDArray:
        """Return the sum of the gradients' squares."""
        return zeros(weight.shape, weight.ctx, stype=weight.stype)

    def _follows_rule(self, index: int | str, grad: NDArray) -> bool:
        return not grad._is_sparse

    def _update_one(self, index: int | str, weight: NDArray, grad: NDArray, state: Any) -> None:
        """Update a weight in place; see `Optimizer.update`.

        Raises
        ------
        MXNetError
            If the gradient is row sparse and the weight has a weight decay.
        """
        lr, wd, _ = self._begin(index, weight, grad)
        clip = -1 if self.clip_gradient is None else self.clip_gradient
        if wd and grad.stype == "row_sparse":
            raise MXNetError(f"AdaGrad: wd must be 0 with row_sparse gradients, weight {index} has {wd}")

        def step(w: torch.Tensor, g: torch.Tensor, history: torch.Tensor) -> None:
            if self._as_mxnet2:
                mxnet2_rules.adagrad(self, w, rules.rescaled(g, self.rescale_grad, clip), history, lr=lr, t=None)
            else:
                w.copy_(rules.adagrad(w, g, history, lr, self.float_stable_eps, wd, self.rescale_grad, clip))

        def rule() -> Step:
            return Step("adagrad", (lr, self.float_stable_eps), self.rescale_grad, self.clip_gradient, decay=lr * wd)

        steps.apply(step, weight, grad, (state,), rows=True, rule=None if self._as_mxnet2 else rule)
        if not self.float_stable_eps:
            _warn_of_zeros(self, index, weight, state, "eps")


@register
@as_in_mxnet2(mxnet2_rules.rmsprop, learning_rate=0.001, rho=0.9, momentum=0.9, epsilon=1e-8, centered=False, clip_weights=None)
class RMSProp(Optimizer):
    """Divides the gradient by the root of a running average of its squares.

    Parameters
    ----------
    learning_rate : float
    gamma1 : float
        The decay rate of the average; `rho` is its name in MXNet 2.
    gamma2 : float
        The momentum, if `centered`; `momentum` is its name in MXNet 2.
    epsilon : float
        Added under the root.
    centered : bool
        Divide by the standard deviation instead, with momentum, after Graves (https://arxiv.org/abs/1308.0850).
    clip_weights : float, optional
        Weights are clipped to between minus this and this.
    **kwargs
        The arguments of `Optimizer`.

    Example
    -------
    >>> optimizer, weight = mx.optimizer.RMSProp(learning_rate=0.1), mx.nd.array([1, 2])
    >>> optimizer.update(0, weight, mx.nd.array([0.1, -0.2]), optimizer.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.684, 2.316], dtype=float32)
    """

    _has_kernel = True

    def __init__(self, learning_rate: float = 0.001, gamma1: float = 0.9, gamma2: float = 0.9, epsilon: float = 1e-8, centered: bool = False,
                 clip_weights: float | None = None, *, rho: float | None = None, momentum: float | None = None, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        gamma1, gamma2 = gamma1 if rho is None else rho, gamma2 if momentum is None else momentum
        self.gamma1, self.gamma2, self.centered, self.epsilon, self.clip_weights = gamma1, gamma2, centered, epsilon, clip_weights

    def create_state(self, index: int | str, weight: NDArray) -> Any:
        """Return the averages: of squares; if `centered` of squares and gradients, and the momentum."""
        return _zeros_like(weight, 3 if self.centered else 1, dtype="float32", stype=weight.stype)

    def _update_one(self, index: int | str, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, _ = self._begin(index, weight, grad)
        rest = self.epsilon, wd, self.rescale_grad, self.clip_gradient or -1, self.clip_weights or -1

        def step(w: torch.Tensor, g: torch.Tensor, *s: torch.Tensor) -> None:
            if self.centered:
                w.copy_(rules.rmsprop_centered(w, g, s[0], s[1], s[2], lr, self.gamma1, self.gamma2, *rest))
            else:
                w.copy_(rules.rmsprop(w, g, s[0], lr, self.gamma1, *rest))

        def rule() -> Step:
            most = steps.positive(self.clip_weights) or math.inf
            numbers = lr, self.gamma1, 1 - self.gamma1, self.epsilon, most
            if self.centered:
                return Step("rmsprop_centered", (*numbers, self.gamma2), self.rescale_grad, steps.positive(self.clip_gradient), wd)
            return Step("rmsprop", numbers, self.rescale_grad, steps.positive(self.clip_gradient), wd)

        steps.apply(step, weight, grad, state, rule=rule)
        if not self.epsilon and not self.centered:
            _warn_of_zeros(self, index, weight, state[0])


@register
@as_in_mxnet2(mxnet2_rules.adadelta, learning_rate=1.0, rho=0.9, epsilon=1e-6)
class AdaDelta(Optimizer):
    """AdaDelta: gradients times the running root mean square of steps, divided by that of gradients. It has no learning rate.

    Parameters
    ----------
    rho : float
        The decay rates of the averages.
    epsilon : float
        Added under the roots.
    **kwargs
        The arguments of `Optimizer`.

    Example
    -------
    >>> optimizer, weight = mx.optimizer.AdaDelta(), mx.nd.array([1, 2])
    >>> optimizer.update(0, weight, mx.nd.array([0.1, -0.2]), optimizer.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.99, 2.01], dtype=float32)
    """

    _has_kernel = True

    def __init__(self, rho: float = 0.90, epsilon: float = 1e-5, **kwargs: Any):
        super().__init__(**kwargs)
        self.rho, self.epsilon = rho, epsilon

    def create_state(self, index: int | str, weight: NDArray) -> tuple[NDArray, ...]:
        """Return the averages of the squares of gradients and of steps."""
        return _zeros_like(weight, 2, dtype="float32")

    def _update_one(self, index: int | str, weight: NDArray, grad: NDArray, state: Any) -> None:
        _, wd, _ = self._begin(index, weight, grad)
        rho, epsilon = self.rho, self.epsilon

        def step(w: torch.Tensor, g: torch.Tensor, squares: torch.Tensor, steps_taken: torch.Tensor) -> None:
            g = steps.prepared(g, self.rescale_grad, self.clip_gradient)
            squares.mul_(rho).addcmul_(g, g, value=1 - rho)
            delta = (steps_taken + epsilon).div_(squares + epsilon).sqrt_().mul_(g)
            steps_taken.mul_(rho).addcmul_(delta, delta, value=1 - rho)
            w.mul_(1 - wd).sub_(delta)

        steps.apply(step, weight, grad, state,
                    rule=lambda: Step("adadelta", (rho, 1 - rho, epsilon, 1 - wd), self.rescale_grad, self.clip_gradient))
        if not epsilon:
            _warn_of_zeros(self, index, weight, state[0])


@register
@as_in_mxnet2(mxnet2_rules.adamax, learning_rate=0.002, beta1=0.9, beta2=0.999, epsilon=1e-8)
class Adamax(Optimizer):
    """`Adam` that divides by the decayed maximum of past gradients instead of a root mean square.

    As in MXNet no epsilon is added to the divisor by default: a weight whose gradient has always been 0 becomes 0 / 0, which is NaN. This occurs with
    features that are missing in a batch, or inactive ReLUs; a warning is issued once. With an `epsilon` such a weight does not change.

    Parameters
    ----------
    learning_rate : float
    beta1, beta2 : float
    epsilon : float
        Added to the size of each gradient, before the largest is chosen. MXNet has none, which is 0.
    **kwargs
        The arguments of `Optimizer`.

    Example
    -------
    >>> import mxnet as mx
    >>> weight, optimizer = mx.nd.ones((2,)), mx.optimizer.Adamax(epsilon=1e-8)
    >>> optimizer.update(0, weight, mx.nd.array([1, 0]), optimizer.create_state(0, weight))
    >>> weight.asnumpy()
    array([0.998, 1.   ], dtype=float32)
    """

    _has_kernel = True

    def __init__(self, learning_rate: float = 0.002, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 0, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def create_state(self, index: int | str, weight: NDArray) -> tuple[NDArray, ...]:
        """Return the average of the gradient, and the largest one."""
        return _zeros_like(weight, 2)

    def _update_one(self, index: int | str, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, t = self._begin(index, weight, grad)
        lr /= 1.0 - self.beta1 ** t
        # An optimizer saved by MXNet has no epsilon.
        numbers = lr, self.beta1, self.beta2, getattr(self, "epsilon", 0), wd, self.rescale_grad, self.clip_gradient

        def step(w: torch.Tensor, g: torch.Tensor, mean: torch.Tensor, largest: torch.Tensor) -> None:
            steps.adamax(w, g, mean, largest, *numbers)

        steps.apply(step, weight, grad, state, rule=lambda: steps.adamax_rule(*numbers))
        if not numbers[3]:
            _warn_of_zeros(self, index, weight, state[1])


@register
@as_in_mxnet2(mxnet2_rules.nadam, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, schedule_decay=0.004)
class Nadam(Optimizer):
    """`Adam` with Nesterov's momentum, which grows by a schedule.

    Parameters
    ----------
    learning_rate : float
    beta1, beta2, epsilon : float
    schedule_decay : float
        The growth rate of the momentum.
    **kwargs
        The arguments of `Optimizer`.

    Example
    -------
    >>> optimizer, weight = mx.optimizer.Nadam(learning_rate=0.1), mx.nd.array([1, 2])
    >>> optimizer.update(0, weight, mx.nd.array([0.1, -0.2]), optimizer.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.894, 2.106], dtype=float32)
    """

    _has_kernel = True

    def __init__(self, learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, schedule_decay: float = 0.004,
                 **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon, self.schedule_decay = beta1, beta2, epsilon, schedule_decay
        self.m_schedule = 1.0

    def create_state(self, index: int | str, weight: NDArray) -> tuple[NDArray, ...]:
        """Return the averages of the gradient and of its square."""
        return _zeros_like(weight, 2)

    def _shares(self, t: int) -> tuple[float, float]:
        """Advance the schedule to update `t`; return the factors of the gradient and of its average."""
        momentum, momentum_next = (self.beta1 * (1.0 - 0.5 * 0.96 ** (n * self.schedule_decay)) for n in (t, t + 1))
        self.m_schedule *= momentum
        return (1.0 - momentum) / (1.0 - self.m_schedule), momentum_next / (1.0 - self.m_schedule * momentum_next)

    def _update_one(self, index: int | str, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, t = self._begin(index, weight, grad)
        of_grad, of_mean = self._shares(t)

        def step(w: torch.Tensor, g: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> None:
            g = steps.prepared(g, self.rescale_grad, self.clip_gradient, w, wd)
            rules.moments(g, mean, var, self.beta1, self.beta2)
            size = (var / (1.0 - self.beta2 ** t)).sqrt_().add_(self.epsilon)
            w.addcdiv_((mean * of_mean).add_(g, alpha=of_grad), size, value=-lr)

        def rule() -> Step:
            numbers = lr, self.beta1, 1 - self.beta1, self.beta2, 1 - self.beta2, self.epsilon, 1.0 - self.beta2 ** t, of_grad, of_mean
            return Step("nadam", numbers, self.rescale_grad, self.clip_gradient, wd)

        steps.apply(step, weight, grad, state, rule=rule)
        if not self.epsilon:
            _warn_of_zeros(self, index, weight, state[1])
