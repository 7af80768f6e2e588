"""`BatchProcessor`: the estimator's training and evaluation of one batch."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .... import autograd
from ...utils import split_and_load

if TYPE_CHECKING:
    from .estimator import Estimator

__all__ = ["BatchProcessor"]


class BatchProcessor:
    """Trains and evaluates batches of (data, label). Derive from it, and override either method, for networks that take or return something else.

    Example
    -------
    >>> import mxnet as mx
    >>> class Halved(mx.gluon.contrib.estimator.BatchProcessor):
    ...     def evaluate_batch(self, estimator, val_batch, batch_axis=0):
    ...         return super().evaluate_batch(estimator, [val_batch[0] / 2, val_batch[1]], batch_axis)
    """

    def __init__(self) -> None:
        pass

    def _get_data_and_label(self, batch: Any, ctx: Any, batch_axis: int = 0) -> tuple[list[Any], list[Any]]:
        """Data and labels, a slice for each context."""
        data, label = (split_and_load(part, ctx_list=ctx, batch_axis=batch_axis) for part in (batch[0], batch[1]))
        return data, label

    def evaluate_batch(self, estimator: Estimator, val_batch: Any, batch_axis: int = 0) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """Outputs and losses of ``estimator.val_net`` for a batch.

        Parameters
        ----------
        estimator : Estimator
        val_batch : pair of NDArray
            Data and label.
        batch_axis : int
            The axis along which the batch is divided among the contexts.

        Returns
        -------
        tuple of four lists of NDArray
            Data, labels, outputs and losses, one for each context.
        """
        data, label = self._get_data_and_label(val_batch, estimator.context, batch_axis)
        pred = [estimator.val_net(x) for x in data]
        return data, label, pred, [estimator.val_loss(out, y) for out, y in zip(pred, label)]

    def fit_batch(self, estimator: Estimator, train_batch: Any, batch_axis: int = 0) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """Forward and backward of ``estimator.net`` for a batch; a `GradientUpdateHandler` updates the parameters afterwards.

        Parameters and results are those of `evaluate_batch`.
        """
        data, label = self._get_data_and_label(train_batch, estimator.context, batch_axis)
        with autograd.record():
            pred = [estimator.net(x) for x in data]
            loss = [estimator.loss(out, y) for out, y in zip(pred, label)]
        for part in loss:
            part.backward()
        return data, label, pred, loss
