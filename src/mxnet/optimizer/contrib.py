"""Experimental optimizers, whose interface may change."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base import MXNetError
from ..ndarray import zeros
from ..ops.optimizer_update import rules
from . import steps
from .base import Optimizer, register
from .mxnet2_rules import as_in_mxnet2

if TYPE_CHECKING:
    import torch

    from ..ndarray import NDArray

__all__ = ["GroupAdaGrad"]


@register
@as_in_mxnet2(learning_rate=0.01, epsilon=1e-6)
class GroupAdaGrad(Optimizer):
    """`AdaGrad` with one sum of squares for each row of a matrix, for embeddings; without weight decay.

    Parameters
    ----------
    eps : float
        Added to the sums; `epsilon` is its name in MXNet 2.
    **kwargs
        The arguments of `Optimizer`.
    """

    def __init__(self, eps: float = 1e-5, *, epsilon: float | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.float_stable_eps = eps if epsilon is None else epsilon

    def create_state(self, index: int | str, weight: NDArray) -> NDArray:
        """Return the sums of the rows' mean squares, (rows, 1).

        Raises
        ------
        MXNetError
            If the weight is not a matrix.
        """
        if len(weight.shape) != 2:
            raise MXNetError(f"GroupAdaGrad updates matrices; weight {index} has shape {weight.shape}")
        return zeros((weight.shape[0], 1), weight.ctx, stype=weight.stype)

    def _update_one(self, index: int | str, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, _ = self._begin(index, weight, grad)
        if wd:
            raise MXNetError(f"GroupAdaGrad: wd must be 0, weight {index} has {wd}")
        clip = -1 if self.clip_gradient is None else self.clip_gradient

        def step(w: torch.Tensor, g: torch.Tensor, history: torch.Tensor) -> None:
            w.copy_(rules.group_adagrad(w, g, history, lr, self.rescale_grad, clip, self.float_stable_eps))

        steps.apply(step, weight, grad, (state,), rows=True)
