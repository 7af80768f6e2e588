"""Variants of gradient descent: with momentum, Nesterov's, by signs, with noise, with delay compensation."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from .. import environment, random
from ..kernels.nn import updates_on_gpu
from ..kernels.nn.updates_on_gpu import Step
from ..ndarray import memory_format, zeros
from ..ops.optimizer_update import rules
from . import multi_tensor, mxnet2_rules, steps
from .base import Optimizer, check_arrays, is_half, register
from .mxnet2_rules import as_in_mxnet2

if TYPE_CHECKING:
    from ..ndarray import NDArray


class MasterAfterState(Optimizer):
    """The base class of optimizers that keep ``(state, float32 copy)`` of half-precision weights (MXNet 2: reversed) for `_update_impl`."""

    def create_state_multi_precision(self, index: int | str, weight: NDArray) -> Any:
        """Return `create_state`'s result; with `multi_precision` for half-precision weights ``(state, float32 copy)``, in MXNet 2 reversed."""
        if self._wants_master(weight):
            master = weight.astype("float32")
            state = self.create_state(index, master)
            return (master, state) if self._as_mxnet2 else (state, master)
        return self.create_state(index, weight)

    create_state_multi_precision.master_position = 1  # type: ignore[attr-defined]

    def _update_impl(self, index: Any, weight: Any, grad: Any, state: Any, multi_precision: bool = False) -> None:
        raise NotImplementedError

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Update a weight, or several in lists; see `Optimizer.update`."""
        self._update_impl(index, weight, grad, state, multi_precision=False)

    def step(self, indices: Sequence[int | str], weights: Sequence[NDArray], grads: Sequence[NDArray], states: Sequence[Any]) -> None:
        """Update several weights in place; see `Optimizer.step`."""
        self._update_impl(indices, weights, grads, states, multi_precision=False)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Update as `update` does; with `multi_precision`, half-precision weights through their float32 copies."""
        several = isinstance(index, (list, tuple))
        through = self.multi_precision and is_half(weight[0] if several else weight)
        if through and self._as_mxnet2:
            state = [s[::-1] for s in state] if several else state[::-1]
        self._update_impl(index, weight, grad, state, multi_precision=through)


def as_lists(index: Any, weight: Any, grad: Any, state: Any) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """Return the arguments of an update as lists, for one weight or several."""
    if isinstance(index, (list, tuple)):
        return list(index), list(weight), list(grad), list(state)
    return [index], [weight], [grad], [state]


def descend(weights: Sequence[NDArray], grads: Sequence[NDArray], states: Sequence[Any], lrs: Sequence[float], wds: Sequence[float], momentum: float,
            rescale: float, clip: float | None, multi_precision: bool, lazy: bool = False) -> None:
    """Update several weights by SGD in as few calls as possible, each with its own learning rate and weight decay.

    States are the momentum (or None), with `multi_precision` ``(momentum, float32 copy)``.
    """
    groups: dict[Any, Any] = {}  # the weights of one call
    for weight, grad, state, lr, wd in zip(weights, grads, states, lrs, wds):
        mom, master = state if multi_precision else (state, None)
        if weight._is_sparse or grad._is_sparse:
            _descend_sparse(weight, grad, mom, master, lr, wd, momentum, rescale, clip, lazy)
            continue
        for s in (mom, master):
            if s is not None:
                memory_format.like(s, weight)
        w, g = weight._writable(), grad._data.data
        target = master._writable() if master is not None else w
        group = groups.setdefault((lr, wd, mom is None), ([], [], [], []))
        for entries, entry in zip(group, (target, g, None if mom is None else mom._writable(), w)):
            entries.append(entry)
    for (lr, wd, plain), (targets, gs, moms, ws) in groups.items():
        steps.sgd(targets, gs, None if plain else moms, lr, wd, momentum, rescale, clip, ws if multi_precision else None)


def _descend_sparse(weight: NDArray, grad: NDArray, mom: NDArray | None, master: NDArray | None, lr: float, wd: float, momentum: float,
                    rescale: float, clip: float | None, lazy: bool) -> None:
    target = weight if master is None else master
    # A dense momentum of a sparse weight means that all rows are updated at each step.
    rows = lazy and (mom is None or mom.stype == weight.stype)

    def step(w: torch.Tensor, g: torch.Tensor, *m: torch.Tensor) -> None:
        steps.sgd([w], [g.to(w.dtype)], list(m) or None, lr, wd, momentum, rescale, clip)

    steps.apply(step, target, grad, () if mom is None else (mom,), rows)
    if master is not None:
        weight[:] = master


@register
@as_in_mxnet2(learning_rate=0.1, momentum=0.0, lazy_update=False, multi_precision=False)
class SGD(MasterAfterState):
    """Stochastic gradient descent: ``weight += mom``, ``mom = momentum * mom - lr * (clip(rescale_grad * grad) + wd * weight)``.

    Up to ``MXNET_OPTIMIZER_AGGREGATION_SIZE`` weights are updated at once.

    Parameters
    ----------
    momentum : float
    lazy_update : bool
        For row sparse gradients update only the stored rows; the other rows have no momentum step and no weight decay.
    **kwargs
        The arguments of `Optimizer`.

    Example
    -------
    >>> import mxnet as mx
    >>> sgd, weight = mx.optimizer.SGD(learning_rate=0.1, momentum=0.9), mx.nd.ones((2,))
    >>> state = sgd.create_state(0, weight)
    >>> for _ in range(2):
    ...     sgd.update(0, weight, mx.nd.ones((2,)), state)
    >>> weight.asnumpy()
    array([0.71, 0.71], dtype=float32)
    """

    def __init__(self, momentum: float = 0.0, lazy_update: bool = True, **kwargs: Any):
        kwargs.setdefault("aggregate_num", environment.get_int("MXNET_OPTIMIZER_AGGREGATION_SIZE"))
        super().__init__(**kwargs)
        self.momentum, self.lazy_update = momentum, lazy_update

    def create_state(self, index: int | str, weight: NDArray) -> NDArray | None:
        """Return the momentum; None without one."""
        if self.momentum == 0.0:
            return None
        return zeros(weight.shape, weight.ctx, dtype=weight.dtype, stype=weight.stype if self.lazy_update else "default")

    def _update_impl(self, index: Any, weight: Any, grad: Any, state: Any, multi_precision: bool = False) -> None:
        indices, weights, grads, states = as_lists(index, weight, grad, state)
        for w, g in zip(weights, grads):
            check_arrays(w, g)
        self._update_count(indices)
        descend(weights, grads, states, self._get_lrs(indices), self._get_wds(indices), max(self.momentum, 0.0), self.rescale_grad,
                self.clip_gradient, multi_precision, self.lazy_update)


@register
class ccSGD(SGD):
    """The old name of `SGD`.

    Example
    -------
    >>> optimizer, weight = mx.optimizer.ccSGD(learning_rate=0.1, momentum=0.9), mx.nd.array([1, 2])
    >>> optimizer.update(0, weight, mx.nd.array([0.1, -0.2]), optimizer.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.99, 2.02], dtype=float32)
    """


@register
@as_in_mxnet2(learning_rate=0.1, momentum=0.9, multi_precision=False)
class NAG(MasterAfterState):
    """Nesterov's accelerated gradient.

    Parameters
    ----------
    momentum : float
    **kwargs
        The arguments of `Optimizer`.

    Example
    -------
    >>> optimizer, weight = mx.optimizer.NAG(learning_rate=0.1, momentum=0.9), mx.nd.array([1, 2])
    >>> optimizer.update(0, weight, mx.nd.array([0.1, -0.2]), optimizer.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.981, 2.038], dtype=float32)
    """

    def __init__(self, momentum: float = 0.0, **kwargs: Any):
        super().__init__(**kwargs)
        self.momentum = momentum

    def create_state(self, index: int | str, weight: NDArray) -> NDArray | None:
        """Return the momentum; None without one."""
        return zeros(weight.shape, weight.ctx, dtype=weight.dtype) if self.momentum != 0.0 else None

    def _update_impl(self, index: Any, weight: Any, grad: Any, state: Any, multi_precision: bool = False) -> None:
        for entry in zip(*as_lists(index, weight, grad, state)):
            self._descend(*entry, multi_precision)

    def _update_each(self, indices: Sequence[int | str], weights: Sequence[NDArray], grads: Sequence[NDArray], states: Sequence[Any]) -> None:
        kind = type(self)
        own = kind._update_impl is NAG._update_impl and kind._descend is NAG._descend and kind.update_multi_precision is NAG.update_multi_precision \
            and multi_tensor.unpatched(kind, ("_update_impl", "_descend", "update_multi_precision"))
        alone = len(indices) == 1 or len(set(map(id, weights))) < len(weights)
        if not own or self._as_mxnet2 or not self.momentum or alone or not updates_on_gpu.on_gpu(weights[0]._data):
            super()._update_each(indices, weights, grads, states)
            return
        for weight, grad in zip(weights, grads):
            check_arrays(weight, grad)
        groups: dict[Any, Any] = {}  # the weights of one call
        halves = []  # those that are rounded afterwards
        for index, weight, grad, state in zip(indices, weights, grads, states):
            through = self.multi_precision and is_half(weight)
            mom, target = state if through else (state, weight)
            if through:
                memory_format.like(target, weight)
            tensors = None if mom is None else steps.small(target, grad, mom)
            if tensors is None:
                self._descend(index, weight, grad, state, through)
                continue
            lr, wd, _ = self._begin(index, weight, grad)
            copy = steps.copy_target(weight, target) if through else None
            if through and copy is None:
                halves.append((weight, target))
            types = tensors[0].dtype, tensors[1].dtype, None if copy is None else copy.dtype
            for entries, tensor in zip(groups.setdefault((lr, wd, types), ([], [], [], [])), (*tensors, copy)):
                entries.append(tensor)
        for (lr, wd, types), (ws, gs, moms, copies) in groups.items():
            steps.nag_together(ws, gs, moms, copies if types[2] else None, lr, wd, max(self.momentum, 0.0), self.rescale_grad, self.clip_gradient)
        if halves:
            torch._foreach_copy_([weight._writable() for weight, _ in halves], [master._data.data for _, master in halves])

    def _descend(self, index: int | str, weight: NDArray, grad: NDArray, state: Any, multi_precision: bool) -> None:
        lr, wd, _ = self._begin(index, weight, grad)
        momentum = max(self.momentum, 0.0)
        mom, master = state if multi_precision else (state, None)
        if mom is None:
            descend([weight], [grad], [state], [lr], [wd], momentum, self.rescale_grad, self.clip_gradient, multi_precision)
            return
        move = mxnet2_rules.nag if self._as_mxnet2 else steps.nag

        def step(w: torch.Tensor, g: torch.Tensor, m: torch.Tensor) -> None:
            move(w, g.to(w.dtype), m, lr, wd, momentum, self.rescale_grad, self.clip_gradient)

        numbers = lr, wd, momentum, self.rescale_grad, self.clip_gradient
        steps.apply(step, weight if master is None else master, grad, (mom,), rule=None if self._as_mxnet2 else lambda: steps.nag_rule(*numbers))
        if master is not None:
            weight[:] = master


@register
class Signum(Optimizer):
    """Signum: steps of constant size in the direction of the sign of the gradient or of its momentum.

    Parameters
    ----------
    learning_rate : float
    momentum : float
        0 for the sign of the gradient itself.
    wd_lh : float
        A decoupled weight decay, which is not part of the momentum.
    **kwargs
        The arguments of `Optimizer`.

    Example
    -------
    >>> optimizer, weight = mx.optimizer.Signum(learning_rate=0.1), mx.nd.array([1, 2])
    >>> optimizer.update(0, weight, mx.nd.array([0.1, -0.2]), optimizer.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.9, 2.1], dtype=float32)
    """

    _has_kernel = True

    def __init__(self, learning_rate: float = 0.01, momentum: float = 0.9, wd_lh: float = 0.0, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum, self.wd_lh = momentum, wd_lh

    def create_state(self, index: int | str, weight: NDArray) -> NDArray | None:
        """Return the momentum; None without one."""
        return zeros(weight.shape, weight.ctx, dtype=weight.dtype, stype=weight.stype) if self.momentum != 0.0 else None

    def _update_one(self, index: int | str, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, _ = self._begin(index, weight, grad)

        def step(w: torch.Tensor, g: torch.Tensor, *mom: torch.Tensor) -> None:
            if mom:
                w.copy_(rules.signum(w, g, mom[0], lr, max(self.momentum, 0.0), wd, self.rescale_grad, self.clip_gradient or -1, self.wd_lh))
            else:
                w.copy_(rules.signsgd(w, g, lr, wd))

        def rule() -> Step:
            if state is None:
                return Step("signum", (lr, 0, 0, 1 - lr * wd), 1, None)
            momentum = max(self.momentum, 0.0)
            return Step("signum", (lr, momentum, 1 - momentum, 1 - lr * self.wd_lh), self.rescale_grad, steps.positive(self.clip_gradient),
                        decay=(1 - momentum) * wd)

        steps.apply(step, weight, grad, () if state is None else (state,), rule=rule)


@register
@as_in_mxnet2(learning_rate=0.1)
class SGLD(Optimizer):
    """Stochastic gradient Langevin dynamics: steps with Gaussian noise, so that the weights are samples of the posterior distribution.

    Example
    -------
    >>> mx.random.seed(7)
    >>> optimizer, weight = mx.optimizer.SGLD(learning_rate=1e-4), mx.nd.zeros(10000)
    >>> optimizer.update(0, weight, mx.nd.zeros(10000), optimizer.create_state(0, weight))
    >>> round(float(weight.asnumpy().std()), 3)   # of the noise: the root of the learning rate
    0.01
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)

    def create_state(self, index: int | str, weight: NDArray) -> None:
        """Return None: there is no state."""

    def _update_one(self, index: int | str, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, _ = self._begin(index, weight, grad)
        noise = random.normal(0, math.sqrt(lr), shape=weight.shape, dtype=weight.dtype, ctx=weight.ctx)

        def step(w: torch.Tensor, g: torch.Tensor) -> None:
            g = steps.prepared(g, self.rescale_grad, self.clip_gradient)
            w.mul_(1 - lr / 2 * wd).add_(g, alpha=-lr / 2).add_(noise._raw())

        steps.apply(step, weight, grad)


@register
@as_in_mxnet2(mxnet2_rules.dcasgd, learning_rate=0.1, momentum=0.0, lamda=0.04)
class DCASGD(Optimizer):
    """Asynchronous SGD that compensates the delay of gradients by the weights' change since the gradients were computed.

    Parameters
    ----------
    momentum : float
    lamda : float
        The strength of the compensation.
    **kwargs
        The arguments of `Optimizer`.

    Example
    -------
    >>> optimizer, weight = mx.optimizer.DCASGD(learning_rate=0.1, momentum=0.9), mx.nd.array([1, 2])
    >>> optimizer.update(0, weight, mx.nd.array([0.1, -0.2]), optimizer.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.99, 2.02], dtype=float32)
    """

    _has_kernel = True

    def __init__(self, momentum: float = 0.0, lamda: float = 0.04, **kwargs: Any):
        super().__init__(**kwargs)
        self.momentum, self.lamda = momentum, lamda
        self.weight_previous: dict[Any, Any] = {}

    def create_state(self, index: int | str, weight: NDArray) -> tuple[NDArray | None, NDArray]:
        """Return the momentum (None without one) and the weight before the last step."""
        return zeros(weight.shape, weight.ctx, dtype=weight.dtype) if self.momentum != 0.0 else None, weight.copy()

    def _update_one(self, index: int | str, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, _ = self._begin(index, weight, grad)
        mom, previous = state

        def step(w: torch.Tensor, g: torch.Tensor, before: torch.Tensor, *m: torch.Tensor) -> None:
            g = steps.prepared(g, self.rescale_grad, self.clip_gradient)
            move = (w - before).mul_(g).mul_(g).mul_(self.lamda).add_(g).add_(w, alpha=wd).mul_(-lr)
            if m:
                move = m[0].mul_(self.momentum).add_(move)
            before.copy_(w)
            w.add_(move)

        steps.apply(step, weight, grad, (previous,) if mom is None else (previous, mom),
                    rule=lambda: Step("dcasgd", (lr, self.lamda, wd, self.momentum), self.rescale_grad, self.clip_gradient))


@register
class Test(Optimizer):
    """Adds the gradient to the weight; for tests of the code around optimizers.

    Example
    -------
    >>> optimizer, weight = mx.optimizer.Test(), mx.nd.array([1, 2])
    >>> optimizer.update(0, weight, mx.nd.array([0.1, -0.2]), optimizer.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([1.1, 1.8], dtype=float32)
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)

    def create_state(self, index: int | str, weight: NDArray) -> NDArray:
        """Return an array that receives the weight at each update."""
        return zeros(weight.shape, weight.ctx)

    def _update_one(self, index: int | str, weight: NDArray, grad: NDArray, state: Any) -> None:
        weight[:] += grad * self.rescale_grad
        state[:] = weight
