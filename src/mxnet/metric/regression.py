"""Metrics of regression, and means of losses that the network computes itself."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy
import torch

from ..ndarray import NDArray
from .base import EvalMetric, alias, check_label_shapes, pairs, register, tensor


def _difference(label: torch.Tensor, pred: torch.Tensor) -> torch.Tensor:
    """Return labels minus predictions; vectors are handled as columns. Integer labels are not rounded."""
    label, pred = (t[:, None] if t.dim() == 1 else t for t in (label, pred))
    if not (label.is_floating_point() and pred.is_floating_point()):
        label, pred = label.double(), pred.double()
    return label - pred


class _ErrorMetric(EvalMetric):
    """The base class of errors that are averaged over batches."""

    def __init__(self, name: str, output_names: Any = None, label_names: Any = None):
        super().__init__(name, output_names=output_names, label_names=label_names, has_global_stats=True)

    def _error(self, difference: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def update(self, labels: Any, preds: Any) -> None:
        """Update the metric with the error of a batch."""
        for label, pred in pairs(labels, preds):
            self._add(float(self._error(_difference(label, pred))), 1)


@register
class MAE(_ErrorMetric):
    """The mean absolute error.

    Example
    -------
    >>> import mxnet as mx
    >>> mae = mx.metric.MAE()
    >>> mae.update([mx.nd.array([3, -0.5, 2, 7])], [mx.nd.array([2.5, 0.0, 2, 8])])
    >>> mae.get()
    ('mae', 0.5)
    """

    def __init__(self, name: str = "mae", output_names: list[str] | None = None, label_names: list[str] | None = None):
        super().__init__(name, output_names, label_names)

    def _error(self, difference: torch.Tensor) -> torch.Tensor:
        return difference.abs().mean()


@register
class MSE(_ErrorMetric):
    """The mean squared error."""

    def __init__(self, name: str = "mse", output_names: list[str] | None = None, label_names: list[str] | None = None):
        super().__init__(name, output_names, label_names)

    def _error(self, difference: torch.Tensor) -> torch.Tensor:
        return difference.square().mean()


@register
class RMSE(_ErrorMetric):
    """The root of the mean squared error of each batch, averaged over batches."""

    def __init__(self, name: str = "rmse", output_names: list[str] | None = None, label_names: list[str] | None = None):
        super().__init__(name, output_names, label_names)

    def _error(self, difference: torch.Tensor) -> torch.Tensor:
        return difference.square().mean().sqrt()


@register
@alias("pearsonr")
class PearsonCorrelation(EvalMetric):
    """Pearson's correlation of labels and predictions.

    Parameters
    ----------
    average : str
        ``'macro'``: the mean of the batches' correlations; ``'micro'``: the correlation of all values together.
    """

    def __init__(self, name: str = "pearsonr", output_names: list[str] | None = None, label_names: list[str] | None = None, average: str = "macro"):
        self.average = average
        super().__init__(name, output_names=output_names, label_names=label_names, average=average, has_global_stats=True)

    def reset_micro(self) -> None:
        """Reset the sums of the 'micro' average."""
        self._count, self._means, self._products = 0, numpy.zeros(2), numpy.zeros((2, 2))

    def reset(self) -> None:
        """Reset all sums and counts."""
        super().reset()
        self.reset_micro()

    def update(self, labels: Sequence[NDArray] | NDArray, preds: Sequence[NDArray] | NDArray) -> None:
        """Update the metric with a batch."""
        for label, pred in pairs(labels, preds):
            check_label_shapes(label, pred, False, True)
            values = torch.stack([label.reshape(-1).double(), pred.reshape(-1).double()]).cpu().numpy()
            if self.average == "macro":
                self._add(float(numpy.corrcoef(values[1], values[0])[0, 1]), 1)
            else:
                self._merge(values)
                self._add(0.0, 1)

    def _merge(self, values: numpy.ndarray) -> None:
        # Combine the moments of two samples: sums of squares would lose precision.
        n, means = values.shape[1], values.mean(axis=1)
        centred = values - means[:, None]
        shift = means - self._means
        total = self._count + n
        self._products += centred @ centred.T + numpy.outer(shift, shift) * (self._count * n / total)
        self._means += shift * (n / total)
        self._count = total

    def _micro(self, count: int) -> tuple[str, float]:
        (ll, lp), (_, pp) = self._products
        return self.name, float(lp / math.sqrt(ll * pp)) if count and ll * pp else float("nan")

    def update_variance(self, new_values: Any, *aggregate: Any) -> tuple[Any, Any, Any]:
        """Return count, mean and sum of squared deviations of a sample with `new_values` added.

        Parameters
        ----------
        new_values : numpy.ndarray
        *aggregate : int, float, float
            Count, mean and sum of squared deviations before.
        """
        count, mean, squares = aggregate
        shift, n = new_values.mean() - mean, len(new_values)
        total = count + n
        return total, mean + shift * n / total, squares + numpy.square(new_values - new_values.mean()).sum() + shift * shift * count * n / total

    def update_cov(self, label: Any, pred: Any) -> None:
        """Add values to the sums of the 'micro' average, as `update` does."""
        self._merge(numpy.stack([numpy.ravel(label), numpy.ravel(pred)]).astype(numpy.float64))

    def get(self) -> tuple[str, float]:
        """Return name and value since the last reset; the 'micro' average is always of all values since the last `reset`."""
        return super().get() if self.average == "macro" else self._micro(self.num_inst)

    def get_global(self) -> tuple[str, float]:
        """Return name and value since the last `reset`."""
        return super().get_global() if self.average == "macro" else self._micro(self.global_num_inst)


@register
class Loss(EvalMetric):
    """The mean of the outputs themselves, for networks that compute their loss. Labels are ignored.

    Example
    -------
    >>> import mxnet as mx
    >>> loss = mx.metric.Loss()
    >>> loss.update(None, mx.nd.array([1, 2, 6]))
    >>> loss.get()
    ('loss', 3.0)
    """

    def __init__(self, name: str = "loss", output_names: list[str] | None = None, label_names: list[str] | None = None):
        super().__init__(name, output_names=output_names, label_names=label_names, has_global_stats=True)

    def update(self, _: Any, preds: Sequence[NDArray] | NDArray) -> None:
        """Add up the outputs of a batch."""
        for pred in [preds] if isinstance(preds, NDArray) else preds:
            values = tensor(pred)
            self._add(float(values.sum()), values.numel())


@register
class Torch(Loss):
    """The old name of `Loss` for criteria of Lua Torch."""

    def __init__(self, name: str = "torch", output_names: list[str] | None = None, label_names: list[str] | None = None):
        super().__init__(name, output_names, label_names)


@register
class Caffe(Loss):
    """The old name of `Loss` for losses of Caffe."""

    def __init__(self, name: str = "caffe", output_names: list[str] | None = None, label_names: list[str] | None = None):
        super().__init__(name, output_names, label_names)
