"""The module of metrics of MXNet 2: those of `mx.metric`, and the ones that MXNet 2 added."""
from __future__ import annotations

import json
import math
from typing import Any

import torch

from ..metric import (
    MAE,
    MSE,
    PCC,
    RMSE,
    Accuracy,
    CompositeEvalMetric,
    CustomMetric,
    EvalMetric,
    Loss,
    NegativeLogLikelihood,
    TopKAccuracy,
    Torch,
    check_label_shapes,
    np,
    register,
)
from ..metric import MCC as _MCC
from ..metric import PearsonCorrelation as _PearsonCorrelation
from ..metric import create as _create
from ..metric.base import pairs, tensor
from ..suggestions import shortened

__all__ = ["Accuracy", "BinaryAccuracy", "CompositeEvalMetric", "CrossEntropy", "CustomMetric", "EvalMetric", "F1", "Fbeta", "Loss", "MAE", "MCC",
           "MSE", "MeanCosineSimilarity", "MeanPairwiseDistance", "NegativeLogLikelihood", "PCC", "PearsonCorrelation", "Perplexity", "RMSE",
           "TopKAccuracy", "Torch", "check_label_shapes", "create", "np", "predict_with_threshold", "register"]

_TINY = 1e-12


class _Average(EvalMetric):
    """The base: the mean of a value over samples."""

    def __init__(self, name: str, output_names: list[str] | None, label_names: list[str] | None, **kwargs: Any) -> None:
        super().__init__(name, output_names=output_names, label_names=label_names, has_global_stats=True, **kwargs)


class BinaryAccuracy(_Average):
    """The share of correct binary decisions.

    Parameters
    ----------
    name, output_names, label_names
        As for `EvalMetric`.
    threshold : float or array
        Above it a prediction is a yes; an array has one for each class along the last axis.

    Example
    -------
    >>> import mxnet as mx
    >>> metric = mx.gluon.metric.BinaryAccuracy(threshold=0.6)
    >>> metric.update([mx.np.array([0, 1, 0])], [mx.np.array([0.7, 1, 0.55])])
    >>> round(metric.get()[1], 4)
    0.6667
    """

    def __init__(self, name: str = "binary_accuracy", output_names: list[str] | None = None, label_names: list[str] | None = None,
                 threshold: Any = 0.5) -> None:
        self.threshold = threshold
        super().__init__(name, output_names, label_names, threshold=threshold)

    def update(self, labels: Any, preds: Any) -> None:
        """Take in a batch: labels 0 and 1, and predictions of the same shape."""
        for label, pred in pairs(labels, preds):
            decided = (pred > _limit(self.threshold, pred)).reshape(-1)
            label = label.reshape(-1)
            check_label_shapes(label, decided)
            self._add(int((decided == (label.int() == 1)).sum()), len(label))


def _limit(threshold: Any, pred: torch.Tensor) -> Any:
    if isinstance(threshold, (int, float)):
        return threshold
    limit = tensor(threshold, pred)
    if limit.shape[-1] != pred.shape[-1]:
        raise ValueError(f"a threshold for each of {pred.shape[-1]} classes expected, received {limit.shape[-1]}")
    return limit


class F1(EvalMetric):
    """The harmonic mean of precision and recall.

    Parameters
    ----------
    name, output_names, label_names
        As for `EvalMetric`.
    class_type : str
        'binary' for labels 0 and 1 with a prediction for 1, or for both; 'multiclass' for numbers of classes with a prediction for each;
        'multilabel' for a label 0 or 1 of each class.
    threshold : float or array
        Above it a prediction is a yes; not for 'multiclass'.
    average : str, optional
        'micro' counts all classes together, 'macro' gives the mean of the classes' values, None the array of them.

    Raises
    ------
    ValueError
        For another `class_type` or `average`.

    Example
    -------
    >>> import mxnet as mx
    >>> metric = mx.gluon.metric.F1()
    >>> metric.update([mx.np.array([0, 1, 1])], [mx.np.array([[0.3, 0.7], [0, 1], [0.4, 0.6]])])
    >>> round(metric.get()[1], 4)
    0.8
    """

    _beta = 1.0
    _counts: torch.Tensor | None  # for each class: right, wrong, missed

    def __init__(self, name: str = "f1", output_names: list[str] | None = None, label_names: list[str] | None = None, class_type: str = "binary",
                 threshold: Any = 0.5, average: str | None = "micro") -> None:
        for argument, value, known in (("class_type", class_type, ("binary", "multiclass", "multilabel")),
                                       ("average", average, ("micro", "macro", None))):
            if value not in known:
                raise ValueError(f"{type(self).__name__}: {argument} must be one of {known}, received {shortened(value)}")
        self.class_type, self.threshold, self.average = class_type, threshold, average
        super().__init__(name, output_names=output_names, label_names=label_names, class_type=class_type, threshold=threshold, average=average)

    def _decisions(self, label: torch.Tensor, pred: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the true and the predicted memberships of samples in classes: two boolean tensors (samples, classes)."""
        label = label.long()
        if self.class_type == "binary":
            if label.max() > 1:
                raise ValueError(f"{type(self).__name__}: labels 0 and 1 expected, received {int(label.max())}")
            if pred.shape != label.shape:
                if pred.shape[-1] > 2:
                    raise ValueError(f"{type(self).__name__}: a prediction for one class or two expected, received shape {tuple(pred.shape)}")
                pred = pred[..., -1]
            return label.reshape(-1, 1) == 1, (pred > self.threshold).reshape(-1, 1)
        classes = pred.shape[-1]
        if self.class_type == "multilabel":
            if pred.shape != label.shape:
                raise ValueError(f"{type(self).__name__}: a label for each prediction expected, received shapes {tuple(label.shape)} and "
                                 f"{tuple(pred.shape)}")
            return label.reshape(-1, classes) == 1, (pred > _limit(self.threshold, pred)).reshape(-1, classes)
        if label.max() >= classes:
            raise ValueError(f"{type(self).__name__}: labels below {classes} expected, the number of predictions, received {int(label.max())}")
        numbers = torch.arange(classes, device=pred.device)
        return label.reshape(-1, 1) == numbers, pred.argmax(-1).reshape(-1, 1) == numbers

    def update(self, labels: Any, preds: Any) -> None:
        """Take in a batch."""
        for label, pred in pairs(labels, preds):
            actual, predicted = self._decisions(label, pred)
            check_label_shapes(actual, predicted)
            counts = torch.stack([(actual & predicted).sum(0), (~actual & predicted).sum(0), (actual & ~predicted).sum(0)]).double()
            self._counts = counts if self._counts is None else self._counts + counts
            self.num_inst += len(actual)

    def reset(self) -> None:
        """Reset the counts."""
        super().reset()
        self._counts = None

    def get(self) -> tuple[str, Any]:
        """Name and value; NaN for the value if there was nothing to count."""
        if self._counts is None:
            return self.name, float("nan")
        right, wrong, missed = self._counts.sum(1) if self.average == "micro" else self._counts
        square = self._beta ** 2
        value = (1 + square) * right / ((1 + square) * right + square * missed + wrong).clamp_min(_TINY)
        return self.name, value.numpy() if self.average is None else value.mean().item()


class Fbeta(F1):
    """`F1` where recall counts `beta` times as much as precision.

    Parameters
    ----------
    beta : float
    name, output_names, label_names, class_type, threshold, average
        As for `F1`.
    """

    def __init__(self, name: str = "fbeta", output_names: list[str] | None = None, label_names: list[str] | None = None,
                 class_type: str = "binary", beta: float = 1, threshold: Any = 0.5, average: str | None = "micro") -> None:
        self._beta = beta
        super().__init__(name, output_names, label_names, class_type, threshold, average)
        self._kwargs["beta"] = beta


class MeanPairwiseDistance(_Average):
    """The mean distance between labels and predictions, by the p-norm.

    Parameters
    ----------
    name, output_names, label_names
        As for `EvalMetric`.
    p : float
    """

    def __init__(self, name: str = "mpd", output_names: list[str] | None = None, label_names: list[str] | None = None, p: float = 2) -> None:
        self.p = p
        super().__init__(name, output_names, label_names, p=p)

    def update(self, labels: Any, preds: Any) -> None:
        """Take in a batch."""
        for label, pred in pairs(labels, preds):
            difference = (label - pred).double().reshape(len(label), -1)
            self._add(torch.linalg.vector_norm(difference, self.p, dim=1).sum().item(), len(label))


class MeanCosineSimilarity(_Average):
    """The mean cosine of the angle between labels and predictions, vectors along the last axis.

    Parameters
    ----------
    name, output_names, label_names
        As for `EvalMetric`.
    eps : float
        The least product of their lengths to divide by.
    """

    def __init__(self, name: str = "cos_sim", output_names: list[str] | None = None, label_names: list[str] | None = None,
                 eps: float = 1e-8) -> None:
        self.eps = eps
        super().__init__(name, output_names, label_names, eps=eps)

    def update(self, labels: Any, preds: Any) -> None:
        """Take in a batch."""
        for label, pred in pairs(labels, preds):
            label, pred = label.double(), pred.double()
            lengths = torch.linalg.vector_norm(label, dim=-1) * torch.linalg.vector_norm(pred, dim=-1)
            cosines = (label * pred).sum(-1) / lengths.clamp_min(self.eps)
            self._add(cosines.sum().item(), cosines.numel())


class CrossEntropy(_Average):
    """The mean of ``-log(prediction of the label's class)`` over samples.

    Parameters
    ----------
    eps : float
        The least prediction to take the logarithm of.
    ignore_label : int, optional
        Samples with this label are left out.
    axis : int
        Where the classes lie.
    from_logits : bool
        True if predictions are logits, of which softmax makes probabilities.
    name, output_names, label_names
        As for `EvalMetric`.

    Example
    -------
    >>> import mxnet as mx
    >>> metric = mx.gluon.metric.CrossEntropy()
    >>> metric.update([mx.np.array([0, 1, 1])], [mx.np.array([[0.3, 0.7], [0, 1], [0.4, 0.6]])])
    >>> round(metric.get()[1], 4)
    0.5716
    """

    def __init__(self, eps: float = 1e-12, ignore_label: int | None = None, axis: int = -1, from_logits: bool = False, name: str = "cross-entropy",
                 output_names: list[str] | None = None, label_names: list[str] | None = None) -> None:
        self.eps, self.ignore_label, self.axis, self.from_logits = eps, ignore_label, axis, from_logits
        super().__init__(name, output_names, label_names, eps=eps, ignore_label=ignore_label, axis=axis, from_logits=from_logits)

    def update(self, labels: Any, preds: Any) -> None:
        """Take in a batch: numbers of classes, and a prediction for each class."""
        for label, pred in pairs(labels, preds):
            pred, label = pred.double().movedim(self.axis, -1).reshape(-1, pred.shape[self.axis]), label.reshape(-1)
            check_label_shapes(label, pred)
            counted = torch.ones_like(label, dtype=torch.bool) if self.ignore_label is None else label != self.ignore_label
            chances = pred.softmax(-1) if self.from_logits else pred
            chosen = chances.gather(1, label.long().clamp(0, pred.shape[1] - 1).unsqueeze(1)).squeeze(1)[counted]
            self._add(-chosen.clamp_min(self.eps).log().sum().item(), len(chosen))


class Perplexity(CrossEntropy):
    """The exponential of `CrossEntropy`.

    Parameters
    ----------
    eps, ignore_label, axis, from_logits, name, output_names, label_names
        As for `CrossEntropy`.

    Example
    -------
    >>> import mxnet as mx
    >>> metric = mx.gluon.metric.Perplexity()
    >>> metric.update([mx.np.array([0, 1, 1])], [mx.np.array([[0.3, 0.7], [0, 1], [0.4, 0.6]])])
    >>> round(metric.get()[1], 4)
    1.7711
    """

    def __init__(self, eps: float = 1e-12, ignore_label: int | None = None, axis: int = -1, from_logits: bool = False, name: str = "perplexity",
                 output_names: list[str] | None = None, label_names: list[str] | None = None) -> None:
        super().__init__(eps, ignore_label, axis, from_logits, name, output_names, label_names)

    def get(self) -> tuple[str, Any]:
        """Name and value; NaN for the value if there was nothing to count."""
        name, value = super().get()
        return name, math.exp(value) if not math.isnan(value) else value


class MCC(_MCC):
    """`mxnet.metric.MCC` of all samples together.

    Parameters
    ----------
    name, output_names, label_names
        As for `EvalMetric`.
    average : str
        ``'micro'``, or ``'macro'`` for the mean of the batches' coefficients.
    """

    def __init__(self, name: str = "mcc", output_names: list[str] | None = None, label_names: list[str] | None = None,
                 average: str = "micro") -> None:
        super().__init__(name, output_names, label_names, average)


class PearsonCorrelation(_PearsonCorrelation):
    """`mxnet.metric.PearsonCorrelation` of all samples together.

    Parameters
    ----------
    name, output_names, label_names
        As for `EvalMetric`.
    average : str
        ``'micro'``, or ``'macro'`` for the mean of the batches' correlations.
    """

    def __init__(self, name: str = "pearsonr", output_names: list[str] | None = None, label_names: list[str] | None = None,
                 average: str = "micro") -> None:
        super().__init__(name, output_names, label_names, average)


def predict_with_threshold(pred: Any, threshold: Any = 0.5) -> Any:
    """Return where predictions are above a threshold, or above one for each class along the last axis.

    Raises
    ------
    ValueError
        If there is no threshold for each class.

    Example
    -------
    >>> import mxnet as mx
    >>> mx.gluon.metric.predict_with_threshold(mx.np.array([0.2, 0.7]), 0.5)
    array([False,  True])
    """
    if not isinstance(threshold, (int, float)) and threshold.shape[-1] != pred.shape[-1]:
        raise ValueError(f"a threshold for each of {pred.shape[-1]} classes expected, received {threshold.shape[-1]}")
    return pred > threshold


_OWN: dict[str, type[EvalMetric]] = {
    "f1": F1, "fbeta": Fbeta, "binaryaccuracy": BinaryAccuracy, "binary_accuracy": BinaryAccuracy, "meanpairwisedistance": MeanPairwiseDistance,
    "mpd": MeanPairwiseDistance, "meancosinesimilarity": MeanCosineSimilarity, "cos_sim": MeanCosineSimilarity, "crossentropy": CrossEntropy,
    "ce": CrossEntropy, "perplexity": Perplexity, "mcc": MCC, "pearsoncorrelation": PearsonCorrelation, "pearsonr": PearsonCorrelation}


def create(metric: Any, *args: Any, **kwargs: Any) -> EvalMetric:
    """Return a metric as `mx.metric.create` makes it; the names of this module's own classes stand for these.

    Example
    -------
    >>> import mxnet as mx
    >>> type(mx.gluon.metric.create('fbeta', beta=2)).__name__
    'Fbeta'
    """
    if isinstance(metric, str) and metric.startswith("{") and not args and not kwargs:  # the result of `get_config`, as JSON
        try:
            config = json.loads(metric)
            metric, kwargs = config.pop("metric"), config
            if "metrics" in kwargs:  # of a CompositeEvalMetric
                kwargs["metrics"] = [create(json.dumps(one)) for one in kwargs["metrics"]]
        except (ValueError, KeyError) as error:
            raise ValueError(f"create: the JSON text of a metric's get_config() expected, received {shortened(metric)}: {error!r}") from None
    if isinstance(metric, str) and metric.lower() in _OWN:
        return _OWN[metric.lower()](*args, **kwargs)
    if isinstance(metric, (list, tuple)):
        return CompositeEvalMetric([create(one, *args, **kwargs) for one in metric])
    return _create(metric, *args, **kwargs)
