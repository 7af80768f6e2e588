"""Metrics of classification: predictions are scores of classes, labels are class numbers."""
from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy
import torch

from .base import EvalMetric, alias, check_label_shapes, pairs, register

if TYPE_CHECKING:
    from ..ndarray import NDArray


def _same_length(label: Any, pred: torch.Tensor) -> None:
    if label.shape[:1] != pred.shape[:1]:
        raise ValueError(f"length {len(label)} of the labels and {len(pred)} of the predictions must be equal")


@register
@alias("acc")
class Accuracy(EvalMetric):
    """Accuracy: the fraction of correct predictions.

    Parameters
    ----------
    axis : int
        The axis of the classes. Predictions of the shape of the labels are class numbers themselves.

    Example
    -------
    >>> import mxnet as mx
    >>> acc = mx.metric.Accuracy()
    >>> acc.update([mx.nd.array([0, 1, 1])], [mx.nd.array([[0.3, 0.7], [0, 1.], [0.4, 0.6]])])
    >>> acc.get()
    ('accuracy', 0.6666666666666666)
    """

    def __init__(self, axis: int = 1, name: str = "accuracy", output_names: list[str] | None = None, label_names: list[str] | None = None):
        super().__init__(name, axis=axis, output_names=output_names, label_names=label_names, has_global_stats=True)
        self.axis = axis

    def update(self, labels: Sequence[NDArray] | NDArray, preds: Sequence[NDArray] | NDArray) -> None:
        """Count the correct predictions of a batch."""
        for label, pred in pairs(labels, preds):
            if pred.shape != label.shape:
                pred = pred.argmax(self.axis)
            pred, label = pred.reshape(-1).int(), label.reshape(-1).int()
            _same_length(label, pred)
            self._add(int((pred == label).sum()), pred.shape[0])


@register
@alias("top_k_accuracy", "top_k_acc")
class TopKAccuracy(EvalMetric):
    """Top-k accuracy: the fraction of predictions with the correct class among the `top_k` highest scores.

    Predictions are (batch, classes).

    Raises
    ------
    ValueError
        If `top_k` is 1 or less: `Accuracy` is that metric.

    Example
    -------
    >>> metric = mx.metric.TopKAccuracy(top_k=2)
    >>> metric.update([mx.nd.array([2, 1])], [mx.nd.array([[0.5, 0.1, 0.4], [0.5, 0.1, 0.4]])])
    >>> metric.get()
    ('top_k_accuracy_2', 0.5)
    """

    def __init__(self, top_k: int = 1, name: str = "top_k_accuracy", output_names: list[str] | None = None, label_names: list[str] | None = None):
        if top_k <= 1:
            raise ValueError(f"Please use Accuracy if top_k is no more than 1; received {top_k}")
        super().__init__(name, top_k=top_k, output_names=output_names, label_names=label_names, has_global_stats=True)
        self.top_k = top_k
        self.name += f"_{top_k}"

    def get_config(self) -> dict[str, Any]:
        """Return the configuration from which `create` makes the metric again, as a dict."""
        return {**super().get_config(), "name": self.name.removesuffix(f"_{self.top_k}")}

    def update(self, labels: Sequence[NDArray] | NDArray, preds: Sequence[NDArray] | NDArray) -> None:
        """Count the correct predictions of a batch."""
        for label, pred in pairs(labels, preds):
            if pred.dim() > 2:
                raise ValueError(f"Predictions should be no more than 2 dims, received shape {tuple(pred.shape)}")
            label = label.reshape(-1).int()
            _same_length(label, pred)
            if pred.dim() == 1:  # class numbers in the order of their scores, as in MXNet
                correct = int((pred.float().argsort() == label).sum())
            else:
                best = pred.float().topk(min(self.top_k, pred.shape[1]), sorted=False).indices
                correct = int((best == label[:, None]).sum())
            self._add(correct, len(pred))


class _Counts:
    """The confusion counts of a binary classification."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.true_negatives = self.false_positives = self.false_negatives = self.true_positives = 0

    def add(self, true_negatives: int, false_positives: int, false_negatives: int, true_positives: int) -> None:
        self.true_negatives += true_negatives
        self.false_positives += false_positives
        self.false_negatives += false_negatives
        self.true_positives += true_positives

    @property
    def total_examples(self) -> int:
        return self.false_negatives + self.false_positives + self.true_negatives + self.true_positives

    @property
    def precision(self) -> float:
        predicted = self.true_positives + self.false_positives
        return self.true_positives / predicted if predicted else 0.0

    @property
    def recall(self) -> float:
        actual = self.true_positives + self.false_negatives
        return self.true_positives / actual if actual else 0.0

    @property
    def fscore(self) -> float:
        precision, recall = self.precision, self.recall
        return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0

    @property
    def matthewscc(self) -> float:
        if not self.total_examples:
            return 0.0
        tp, fp, fn, tn = float(self.true_positives), float(self.false_positives), float(self.false_negatives), float(self.true_negatives)
        # A class that never occurs, or is never predicted, makes a factor 0, which is left out.
        return (tp * tn - fp * fn) / math.sqrt(math.prod(t for t in (tp + fp, tp + fn, tn + fp, tn + fn) if t))


class _BinaryClassificationMetrics:
    """The counts of a binary classification since `local_reset_stats` and since `reset_stats`, for user-defined metrics."""

    def __init__(self) -> None:
        self._local, self._whole = _Counts(), _Counts()

    def update_binary_stats(self, label: NDArray, pred: NDArray) -> None:
        """Count the predictions of a batch; the predicted class has the largest output."""
        for one_label, one_pred in pairs(label, pred):
            counts = _count(type(self).__name__, one_label, one_pred)
            self._local.add(*counts)
            self._whole.add(*counts)

    def matthewscc(self, use_global: bool = False) -> float:
        """Return Matthews' correlation coefficient."""
        return (self._whole if use_global else self._local).matthewscc

    def local_reset_stats(self) -> None:
        """Reset the counts except those called ``global_``."""
        self._local.reset()

    def reset_stats(self) -> None:
        """Reset all counts."""
        self._local.reset()
        self._whole.reset()


for _name in ("true_positives", "false_negatives", "false_positives", "true_negatives", "precision", "recall", "fscore", "total_examples"):
    setattr(_BinaryClassificationMetrics, _name, property(attrgetter(f"_local.{_name}")))
    setattr(_BinaryClassificationMetrics, f"global_{_name}", property(attrgetter(f"_whole.{_name}")))


def _count(name: str, label: torch.Tensor, pred: torch.Tensor) -> list[int]:
    """Return the confusion counts of a batch: true negatives, false positives, false negatives, true positives."""
    label, pred = label.reshape(-1).int(), pred.argmax(1).reshape(-1)
    _same_length(label, pred)
    # At most two labels: each is the minimum or the maximum.
    if bool(((label != label.min()) & (label != label.max())).any()):
        raise ValueError(f"{name} currently only supports binary classification.")
    return torch.bincount(2 * (label == 1) + (pred == 1).int(), minlength=4).tolist()


class _BinaryMetric(EvalMetric):
    """The base class of scores of the counts, averaged over batches ('macro') or computed from all counts ('micro')."""

    _value: str  # the name of the value in _Counts

    def __init__(self, name: str, output_names: Any, label_names: Any, average: str):
        self._average, self._local, self._whole = average, _Counts(), _Counts()
        super().__init__(name=name, output_names=output_names, label_names=label_names, average=average, has_global_stats=True)

    def update(self, labels: Any, preds: Any) -> None:
        """Count the predictions of a batch."""
        for label, pred in pairs(labels, preds):
            counts = _count(type(self).__name__, label, pred)
            self._local.add(*counts)
            self._whole.add(*counts)
        if self._average == "macro":
            self._add(getattr(self._local, self._value), 1)
            self._local.reset()
            self._whole.reset()
        else:
            self.num_inst, self.global_num_inst = self._local.total_examples, self._whole.total_examples
            self.sum_metric = getattr(self._local, self._value) * self.num_inst
            self.global_sum_metric = getattr(self._whole, self._value) * self.global_num_inst

    def reset(self) -> None:
        """Reset all counts."""
        super().reset()
        self._local.reset()
        self._whole.reset()

    def reset_local(self) -> None:
        """Reset the local counts of `get`."""
        super().reset_local()
        self._local.reset()


@register
class F1(_BinaryMetric):
    """The F1 score of two classes, 1 being the positive one: the harmonic mean of precision and recall.

    Parameters
    ----------
    average : str
        ``'macro'``: the mean of the batches' scores; ``'micro'``: the score of all predictions together.

    Example
    -------
    >>> import mxnet as mx
    >>> f1 = mx.metric.F1()
    >>> f1.update([mx.nd.array([0., 1., 1.])], [mx.nd.array([[0.3, 0.7], [0., 1.], [0.4, 0.6]])])
    >>> f1.get()
    ('f1', 0.8)
    """

    _value = "fscore"

    def __init__(self, name: str = "f1", output_names: list[str] | None = None, label_names: list[str] | None = None, average: str = "macro"):
        super().__init__(name, output_names, label_names, average)
        self.average = average


@register
class MCC(_BinaryMetric):
    """Matthews' correlation coefficient of two classes, from -1 to 1; suited to imbalanced classes.

    Parameters
    ----------
    average : str
        ``'macro'``: the mean of the batches' coefficients; ``'micro'``: the coefficient of all predictions together.

    Example
    -------
    >>> metric = mx.metric.MCC()
    >>> metric.update([mx.nd.array([0, 1, 1, 0])], [mx.nd.array([[1, 0], [0, 1], [0, 1], [0, 1]])])
    >>> round(metric.get()[1], 3)
    0.577
    """

    _value = "matthewscc"

    def __init__(self, name: str = "mcc", output_names: list[str] | None = None, label_names: list[str] | None = None, average: str = "macro"):
        super().__init__(name, output_names, label_names, average)


@register
class PCC(EvalMetric):
    """Pearson's correlation of predicted and actual classes: the generalization of `MCC` to any number of classes.

    Example
    -------
    >>> import mxnet as mx
    >>> pcc = mx.metric.PCC()
    >>> pcc.update([mx.nd.array([0, 1, 2])], [mx.nd.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])])
    >>> pcc.get()
    ('pcc', 1.0)
    """

    def __init__(self, name: str = "pcc", output_names: list[str] | None = None, label_names: list[str] | None = None, has_global_stats: bool = True):
        self.k = 2
        self.lcm = self.gcm = numpy.zeros((2, 2))  # local and global confusion matrices
        super().__init__(name=name, output_names=output_names, label_names=label_names, has_global_stats=has_global_stats)

    def update(self, labels: Sequence[NDArray] | NDArray, preds: Sequence[NDArray] | NDArray) -> None:
        """Count the predictions of a batch."""
        for label, pred in pairs(labels, preds):
            pred = pred.argmax(1) if pred.shape != label.shape else pred
            label, pred = label.reshape(-1).long(), pred.reshape(-1).long()
            _same_length(label, pred)
            k = max(self.k, int(pred.max()) + 1, int(label.max()) + 1)
            if k > self.k:
                self.lcm, self.gcm = numpy.pad(self.lcm, (0, k - self.k)), numpy.pad(self.gcm, (0, k - self.k))
                self.k = k
            counts = torch.bincount(pred * k + label, minlength=k * k).reshape(k, k).cpu().numpy()
            self.lcm += counts
            self.gcm += counts
        self.num_inst += 1
        self.global_num_inst += 1

    @staticmethod
    def _correlation(counts: numpy.ndarray) -> float:
        n, x, y = counts.sum(), counts.sum(axis=1), counts.sum(axis=0)
        cov_xx, cov_yy = (x * (n - x)).sum(), (y * (n - y)).sum()
        if cov_xx == 0 or cov_yy == 0:
            return float("nan")
        return float((counts.diagonal() * n - x * y).sum() / (cov_xx * cov_yy) ** 0.5)

    @property
    def sum_metric(self) -> float:  # type: ignore[override]  # computed from the counts
        """The correlation since the last reset, times ``num_inst``."""
        return self._correlation(self.lcm) * self.num_inst

    @property
    def global_sum_metric(self) -> float:  # type: ignore[override]
        """The correlation since the last `reset`, times ``global_num_inst``."""
        return self._correlation(self.gcm) * self.global_num_inst

    def reset(self) -> None:
        """Reset all counts."""
        self.global_num_inst = 0
        self.gcm = numpy.zeros((self.k, self.k))
        self.reset_local()

    def reset_local(self) -> None:
        """Reset the local counts of `get`."""
        self.num_inst = 0
        self.lcm = numpy.zeros((self.k, self.k))


@register
class Perplexity(EvalMetric):
    """Perplexity of a language model: the exponential of the mean cross entropy.

    Parameters
    ----------
    ignore_label : int or None
        A label that is ignored, such as that of padding.
    axis : int
        The axis of the classes in the predictions, which are probabilities.

    Example
    -------
    >>> metric = mx.metric.Perplexity(ignore_label=None)
    >>> metric.update([mx.nd.array([0, 1])], [mx.nd.array([[0.5, 0.5], [0.5, 0.5]])])
    >>> round(metric.get()[1], 3)
    2.0
    """

    def __init__(self, ignore_label: int | None, axis: int = -1, name: str = "perplexity", output_names: list[str] | None = None,
                 label_names: list[str] | None = None):
        super().__init__(name, ignore_label=ignore_label, axis=axis, output_names=output_names, label_names=label_names, has_global_stats=True)
        self.ignore_label, self.axis = ignore_label, axis

    def update(self, labels: Sequence[NDArray] | NDArray, preds: Sequence[NDArray] | NDArray) -> None:
        """Add up the cross entropies of a batch."""
        check_label_shapes(labels, preds)
        for label, pred in pairs(labels, preds):
            if label.numel() * pred.shape[self.axis] != pred.numel():
                raise ValueError(f"shape mismatch: {tuple(label.shape)} vs. {tuple(pred.shape)}")
            pred = pred.movedim(self.axis, -1).reshape(-1, pred.shape[self.axis])
            label = label.reshape(-1)
            chosen = label.long().clamp(0, pred.shape[1] - 1)
            losses = -pred.gather(1, chosen[:, None])[:, 0].float().clamp(min=1e-10).log()
            count = len(label)
            if self.ignore_label is not None:
                keep = label != self.ignore_label
                losses, count = losses[keep], int(keep.sum())
            self._add(float(losses.sum()), count)

    def get(self) -> tuple[str, float]:
        """Return name and value since the last reset, local or not."""
        return self.name, math.exp(self.sum_metric / self.num_inst) if self.num_inst else float("nan")

    def get_global(self) -> tuple[str, float]:
        """Return name and value since the last `reset`."""
        return self.name, math.exp(self.global_sum_metric / self.global_num_inst) if self.global_num_inst else float("nan")


class _LogLikelihood(EvalMetric):
    def __init__(self, eps: float, name: str, output_names: Any, label_names: Any):
        super().__init__(name, eps=eps, output_names=output_names, label_names=label_names, has_global_stats=True)
        self.eps = eps

    def update(self, labels: Any, preds: Any) -> None:
        """Add up the negative log likelihoods of a batch: predictions are (batch, classes), probabilities."""
        for label, pred in pairs(labels, preds):
            if pred.is_cpu and label.is_cpu and pred.dtype is torch.float32 and label.dtype is not torch.bfloat16:
                # NumPy's calls cost a third of torch's, which is faster for small batches.
                classes = label.numpy().reshape(-1).astype(numpy.int64)
                _same_length(classes, pred)
                chosen = pred.numpy()[numpy.arange(len(classes)), classes]
                self._add(float(-numpy.log(chosen + numpy.float32(self.eps)).sum()), len(classes))
                continue
            label = label.reshape(-1).long()
            _same_length(label, pred)
            count = label.shape[0]
            probability = pred[torch.arange(count, device=pred.device), label]
            self._add(float(-(probability + self.eps).log().sum()), count)


@register
@alias("ce")
class CrossEntropy(_LogLikelihood):
    """The mean of ``-log(p + eps)``, where p is the predicted probability of the correct class.

    Example
    -------
    >>> import mxnet as mx
    >>> ce = mx.metric.CrossEntropy()
    >>> ce.update([mx.nd.array([0, 1, 1])], [mx.nd.array([[0.3, 0.7], [0, 1.], [0.4, 0.6]])])
    >>> ce.get()
    ('cross-entropy', 0.571599...)
    """

    def __init__(self, eps: float = 1e-12, name: str = "cross-entropy", output_names: list[str] | None = None, label_names: list[str] | None = None):
        super().__init__(eps, name, output_names, label_names)


@register
@alias("nll_loss")
class NegativeLogLikelihood(_LogLikelihood):
    """The mean of ``-log(p + eps)``, where p is the predicted probability of the correct class.

    Example
    -------
    >>> metric = mx.metric.NegativeLogLikelihood()
    >>> metric.update([mx.nd.array([0, 1])], [mx.nd.array([[0.5, 0.5], [0.5, 0.5]])])
    >>> round(metric.get()[1], 3)
    0.693
    """

    def __init__(self, eps: float = 1e-12, name: str = "nll-loss", output_names: list[str] | None = None, label_names: list[str] | None = None):
        super().__init__(eps, name, output_names, label_names)
