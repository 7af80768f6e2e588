"""Follow-the-leader optimizers: FTRL and FTML, whose weights minimize the accumulated, regularized loss."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..kernels.nn.updates_on_gpu import Step
from ..ndarray import zeros
from ..ops.optimizer_update import rules
from . import mxnet2_rules, steps
from .base import Optimizer, register
from .mxnet2_rules import as_in_mxnet2

if TYPE_CHECKING:
    import torch

    from ..ndarray import NDArray


@register
@as_in_mxnet2(learning_rate=0.1, lamda1=0.01, beta=1.0)
class Ftrl(Optimizer):
    """FTRL (follow the regularized leader): weights with a small accumulated gradient are exactly 0.

    If weight, state and gradient are row sparse, only the gradient's rows are updated.

    Parameters
    ----------
    lamda1 : float
        The L1 regularization: a weight is 0 unless its accumulated gradient exceeds this.
    learning_rate : float
    beta : float
        Added to the roots of the sums of squares.
    **kwargs
        The arguments of `Optimizer`.

    Example
    -------
    >>> optimizer, weight = mx.optimizer.Ftrl(learning_rate=0.1), mx.nd.array([1, 2])
    >>> optimizer.update(0, weight, mx.nd.array([0.1, -0.2]), optimizer.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.081, 0.349], dtype=float32)
    """

    _has_kernel = True

    def __init__(self, lamda1: float = 0.01, learning_rate: float = 0.1, beta: float = 1, **kwargs: Any):
        super().__init__(**kwargs)
        self.lamda1, self.beta = lamda1, beta
        self.lr = learning_rate

    def create_state(self, index: int | str, weight: NDArray) -> tuple[NDArray, ...]:
        """Return the accumulated gradient, and the sum of the gradients' squares."""
        return tuple(zeros(weight.shape, weight.ctx, stype=weight.stype) for _ in range(2))

    def _update_one(self, index: int | str, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, _ = self._begin(index, weight, grad)

        def step(w: torch.Tensor, g: torch.Tensor, z: torch.Tensor, n: torch.Tensor) -> None:
            w.copy_(rules.ftrl(w, g, z, n, lr, self.lamda1, self.beta, wd, self.rescale_grad, self.clip_gradient or -1))

        def rule() -> Step:
            return Step("ftrl", (lr, self.lamda1, self.beta, wd, 1 / lr), self.rescale_grad, steps.positive(self.clip_gradient))

        steps.apply(step, weight, grad, state, rows=weight.stype == "row_sparse", rule=rule)


@register
@as_in_mxnet2(mxnet2_rules.ftml, learning_rate=0.0025, beta1=0.6, beta2=0.999, epsilon=1e-8)
class FTML(Optimizer):
    """FTML (follow the moving leader): recent gradients have a larger weight.

    Parameters
    ----------
    beta1, beta2 : float
        The decay rates of the averages.
    epsilon : float
        Added to the root.
    **kwargs
        The arguments of `Optimizer`.

    Example
    -------
    >>> optimizer, weight = mx.optimizer.FTML(learning_rate=0.1), mx.nd.array([1, 2])
    >>> optimizer.update(0, weight, mx.nd.array([0.1, -0.2]), optimizer.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.9, 2.1], dtype=float32)
    """

    _has_kernel = True

    def __init__(self, beta1: float = 0.6, beta2: float = 0.999, epsilon: float = 1e-8, **kwargs: Any):
        super().__init__(**kwargs)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def create_state(self, index: int | str, weight: NDArray) -> tuple[NDArray, ...]:
        """Return the states d, v and z of the paper."""
        return tuple(zeros(weight.shape, weight.ctx, dtype=weight.dtype) for _ in range(3))

    def _update_one(self, index: int | str, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, t = self._begin(index, weight, grad)

        def step(w: torch.Tensor, g: torch.Tensor, d: torch.Tensor, v: torch.Tensor, z: torch.Tensor) -> None:
            w.copy_(rules.ftml(w, g, d, v, z, lr, self.beta1, self.beta2, self.epsilon, t, wd, self.rescale_grad, self.clip_gradient or -1))

        def rule() -> Step:
            numbers = self.beta1, 1 - self.beta1, self.beta2, 1 - self.beta2, self.epsilon, 1 - self.beta2 ** t, (1 - self.beta1 ** t) / lr
            return Step("ftml", numbers, self.rescale_grad, steps.positive(self.clip_gradient), wd)

        steps.apply(step, weight, grad, state, rule=rule)
