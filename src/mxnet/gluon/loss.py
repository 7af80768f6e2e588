"""Losses: blocks that compare predictions with labels, giving one number for each sample."""
import math
from typing import Any

from .. import ndarray
from ..base import numeric_types
from ..suggestions import shortened
from ..util import version
from .block import Block
from .hybrid_block import HybridBlock
from .sharded_inputs import is_number, sample_factors
from .sharded_parameter import ranks
from .sharded_softmax import Margin, ShardedLogits, labels_of, loss_name, softmax_loss
from .utils import UsageError

__all__ = ["Loss", "L2Loss", "L1Loss", "SigmoidBinaryCrossEntropyLoss", "SigmoidBCELoss", "SoftmaxCrossEntropyLoss", "SoftmaxCELoss",
           "KLDivLoss", "CTCLoss", "HuberLoss", "HingeLoss", "SquaredHingeLoss", "LogisticLoss", "TripletLoss", "PoissonNLLLoss",
           "CosineEmbeddingLoss", "SDMLLoss", "ShardedSoftmaxCELoss"]


def _apply_weighting(F: Any, loss: Any, weight: Any = None, sample_weight: Any = None):
    """`loss` times `sample_weight`, which is broadcast, times the number `weight`; each only if given.

    Raises
    ------
    UsageError
        If `weight` is no number.
    """
    if weight is not None and not isinstance(weight, numeric_types):
        raise UsageError(f"weight must be a number, received {shortened(weight)}")
    if sample_weight is not None:
        loss = F.broadcast_mul(loss, sample_weight)
    return loss if weight is None else loss * weight


def _reshape_like(F: Any, x: Any, y):
    """`x` in the shape of `y`."""
    return x.reshape(y.shape) if F is ndarray else F.reshape_like(x, y)


class Loss(HybridBlock):
    """The base of losses.

    Parameters
    ----------
    weight : float or None
        A factor for the loss.
    batch_axis : int
        The axis of the samples; the loss is averaged (in some classes summed) over all others.
    prefix, params
        As for `Block`.

    Notes
    -----
    Where a loss takes a `sample_weight`, this is an array that is broadcast to the shape of the element-wise loss: with predictions
    of shape (64, 10), one of shape (64, 1) weighs the samples.

    Example
    -------
    >>> class Cubic(mx.gluon.loss.Loss):
    ...     def hybrid_forward(self, F, pred, label):
    ...         return F.mean(F.abs(pred - label) ** 3, axis=self._batch_axis, exclude=True)
    >>> Cubic(weight=None, batch_axis=0)(mx.nd.array([[1], [2]]), mx.nd.zeros((2, 1))).asnumpy()
    array([1., 8.], dtype=float32)
    """

    def __init__(self, weight: float | None, batch_axis: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._weight: Any = weight
        self._batch_axis = batch_axis

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch_axis={self._batch_axis}, w={self._weight})"

    def _weighted_mean(self, F: Any, loss: Any, sample_weight: Any, weight: Any = None):
        loss = _apply_weighting(F, loss, self._weight if weight is None else weight, sample_weight)
        return F.mean(loss, axis=self._batch_axis, exclude=True)


class L2Loss(Loss):
    """Half the mean of (label - pred)².

    Parameters
    ----------
    weight, batch_axis, prefix, params
        As for `Loss`.

    Example
    -------
    >>> import mxnet as mx
    >>> mx.gluon.loss.L2Loss()(mx.nd.array([[1., 3.]]), mx.nd.array([[0., 0.]])).asnumpy()
    array([2.5], dtype=float32)
    """

    def __init__(self, weight: Any = 1., batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Return the loss of each sample; `label` has as many elements as `pred`."""
        return self._weighted_mean(F, F.square(_reshape_like(F, label, pred) - pred), sample_weight, self._weight / 2)


class L1Loss(Loss):
    """The mean of \\|label - pred\\|.

    Parameters
    ----------
    weight, batch_axis, prefix, params
        As for `Loss`.

    Example
    -------
    >>> mx.gluon.loss.L1Loss()(mx.nd.array([[1, 2], [3, 5]]), mx.nd.zeros((2, 2))).asnumpy()
    array([1.5, 4. ], dtype=float32)
    """

    def __init__(self, weight: Any = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Return the loss of each sample; `label` has as many elements as `pred`."""
        return self._weighted_mean(F, F.abs(_reshape_like(F, label, pred) - pred), sample_weight)


def _softplus_of_minus_abs(F: Any, x: Any):
    # log(1 + exp(-|x|)) never overflows; the losses below add a linear term to it.
    return F.Activation(-F.abs(x), act_type="softrelu")


class SigmoidBinaryCrossEntropyLoss(Loss):
    """The mean of -(label log p · pos_weight + (1 - label) log(1 - p)), with p = sigmoid(pred).

    Parameters
    ----------
    from_sigmoid : bool
        `pred` is p already. Passing the input of the sigmoid is more accurate.
    weight, batch_axis, prefix, params
        As for `Loss`.

    Example
    -------
    >>> loss = mx.gluon.loss.SigmoidBCELoss()
    >>> loss(mx.nd.array([[0], [2]]), mx.nd.array([[1], [1]])).asnumpy().round(3)
    array([0.693, 0.127], dtype=float32)
    """

    def __init__(self, from_sigmoid: bool = False, weight: Any = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_sigmoid = from_sigmoid

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None, pos_weight: Any = None) -> Any:
        """Return the loss of each sample; `label` in [0, 1], `pos_weight` broadcast (for classes: (1, classes))."""
        label = _reshape_like(F, label, pred)
        if self._from_sigmoid:
            positive = F.log(pred + 1e-12) * label
            if pos_weight is not None:
                positive = F.broadcast_mul(positive, pos_weight)
            loss = -(positive + F.log(1. - pred + 1e-12) * (1. - label))
        elif pos_weight is None:
            loss = F.relu(pred) - pred * label + _softplus_of_minus_abs(F, pred)
        else:
            factor = 1 + F.broadcast_mul(pos_weight - 1, label)
            loss = pred - pred * label + factor * (_softplus_of_minus_abs(F, pred) + F.relu(-pred))
        return self._weighted_mean(F, loss, sample_weight)


SigmoidBCELoss = SigmoidBinaryCrossEntropyLoss


class SoftmaxCrossEntropyLoss(Loss):
    """-log of the probability that softmax gives the labelled class.

    Parameters
    ----------
    axis : int
        The axis of the classes.
    sparse_label : bool
        Labels are class numbers, in the shape of `pred` without `axis`; otherwise probabilities, in the shape of `pred`.
    from_logits : bool
        `pred` holds logarithms of probabilities already.
    weight, batch_axis, prefix, params
        As for `Loss`.

    Example
    -------
    >>> import mxnet as mx
    >>> loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    >>> loss(mx.nd.array([[0., 0.], [100., 0.]]), mx.nd.array([1, 0])).asnumpy().round(4)
    array([0.6931, 0.    ], dtype=float32)
    """

    def __init__(self, axis: int = -1, sparse_label: bool = True, from_logits: bool = False, weight: Any = None, batch_axis: int = 0,
                 **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._axis, self._sparse_label, self._from_logits = axis, sparse_label, from_logits

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Return the loss of each sample."""
        if not self._from_logits:
            pred = F.log_softmax(pred, axis=self._axis)
        if self._sparse_label:
            loss = -F.pick(pred, label, axis=self._axis, keepdims=True)
        else:
            loss = -F.sum(pred * _reshape_like(F, label, pred), axis=self._axis, keepdims=True)
        return self._weighted_mean(F, loss, sample_weight)


SoftmaxCELoss = SoftmaxCrossEntropyLoss


class KLDivLoss(Loss):
    """The Kullback-Leibler divergence: the sum of label · (log label - pred).

    Parameters
    ----------
    from_logits : bool
        `pred` holds logarithms of probabilities; otherwise softmax makes them.
    axis : int
        The axis of that softmax.
    weight, batch_axis, prefix, params
        As for `Loss`.

    Example
    -------
    >>> loss = mx.gluon.loss.KLDivLoss(from_logits=False)
    >>> loss(mx.nd.zeros((1, 2)), mx.nd.array([[1, 0]])).asnumpy().round(3)
    array([0.693], dtype=float32)
    """

    def __init__(self, from_logits: bool = True, axis: int = -1, weight: Any = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits, self._axis = from_logits, axis

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Return the loss of each sample; `label` holds probabilities."""
        if not self._from_logits:
            pred = F.log_softmax(pred, axis=self._axis)
        loss = _apply_weighting(F, label * (F.log(label + 1e-12) - pred), self._weight, sample_weight)
        return F.sum(loss, axis=self._batch_axis, exclude=True)


class CTCLoss(Loss):
    """Connectionist temporal classification: labels without times, for sequences.

    Parameters
    ----------
    layout : {'NTC', 'TNC'}
        The axes of `pred`: batch, time, alphabet. The last letter of the alphabet is the blank.
    label_layout : {'NT', 'TN'}
        The axes of `label`. Labels count from 0; shorter ones end with -1.
    weight, prefix, params
        As for `Loss`.

    Raises
    ------
    UsageError
        If a layout is another one.

    Example
    -------
    >>> loss = mx.gluon.loss.CTCLoss()
    >>> predictions = mx.nd.zeros((1, 3, 4))
    >>> loss(predictions, mx.nd.array([[1, 2]])).asnumpy().round(3)
    array([2.549], dtype=float32)
    """

    def __init__(self, layout: str = "NTC", label_layout: str = "NT", weight: Any = None, **kwargs: Any) -> None:
        if layout not in ("NTC", "TNC"):
            raise UsageError(f"CTCLoss: layout must be 'NTC' or 'TNC', received {shortened(layout)}")
        if label_layout not in ("NT", "TN"):
            raise UsageError(f"CTCLoss: label_layout must be 'NT' or 'TN', received {shortened(label_layout)}")
        self._layout, self._label_layout = layout, label_layout
        super().__init__(weight, label_layout.find("N"), **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, pred_lengths: Any = None, label_lengths: Any = None, sample_weight: Any = None) -> Any:
        """Return the loss of each sample; `pred` before softmax, the lengths of shape (batch,)."""
        if self._layout == "NTC":
            pred = F.swapaxes(pred, dim1=0, dim2=1)
        if self._batch_axis == 1:
            label = F.swapaxes(label, dim1=0, dim2=1)
        # By name: one may be left out without the other.
        lengths = {name: value for name, value in (("data_lengths", pred_lengths), ("label_lengths", label_lengths)) if value is not None}
        loss = F.CTCLoss(pred, label, use_data_lengths=pred_lengths is not None, use_label_lengths=label_lengths is not None,
                         blank_label="last", **lengths)
        return _apply_weighting(F, loss, self._weight, sample_weight)


class HuberLoss(Loss):
    """The mean of e² / 2ρ where the error e = \\|label - pred\\| is up to ρ, and of e - ρ/2 beyond.

    Parameters
    ----------
    rho : float
    weight, batch_axis, prefix, params
        As for `Loss`.

    Example
    -------
    >>> mx.gluon.loss.HuberLoss(rho=1)(mx.nd.array([[0.5], [3]]), mx.nd.zeros((2, 1))).asnumpy()
    array([0.125, 2.5  ], dtype=float32)
    """

    def __init__(self, rho: float = 1, weight: Any = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._rho = rho

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Return the loss of each sample; `label` has as many elements as `pred`."""
        error = F.abs(_reshape_like(F, label, pred) - pred)
        loss = F.where(error > self._rho, error - 0.5 * self._rho, (0.5 / self._rho) * F.square(error))
        return self._weighted_mean(F, loss, sample_weight)


class HingeLoss(Loss):
    """The mean of max(0, margin - pred · label), for labels -1 and 1.

    Parameters
    ----------
    margin : float
    weight, batch_axis, prefix, params
        As for `Loss`.

    Example
    -------
    >>> mx.gluon.loss.HingeLoss()(mx.nd.array([[0.5], [2]]), mx.nd.array([[1], [1]])).asnumpy()
    array([0.5, 0. ], dtype=float32)
    """

    def __init__(self, margin: float = 1, weight: Any = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Return the loss of each sample; `label` has as many elements as `pred`."""
        return self._weighted_mean(F, F.relu(self._margin - pred * _reshape_like(F, label, pred)), sample_weight)


class SquaredHingeLoss(Loss):
    """The mean of max(0, margin - pred · label)², for labels -1 and 1.

    Parameters
    ----------
    margin : float
    weight, batch_axis, prefix, params
        As for `Loss`.

    Example
    -------
    >>> mx.gluon.loss.SquaredHingeLoss()(mx.nd.array([[0.5], [2]]), mx.nd.array([[1], [1]])).asnumpy()
    array([0.25, 0.  ], dtype=float32)
    """

    def __init__(self, margin: float = 1, weight: Any = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Return the loss of each sample; `label` has as many elements as `pred`."""
        return self._weighted_mean(F, F.square(F.relu(self._margin - pred * _reshape_like(F, label, pred))), sample_weight)


class LogisticLoss(Loss):
    """The mean of log(1 + exp(-pred · label)).

    Parameters
    ----------
    weight, batch_axis, prefix, params
        As for `Loss`.
    label_format : {'signed', 'binary'}
        Labels are -1 and 1, or 0 and 1.

    Raises
    ------
    ValueError
        If `label_format` is another one.

    Example
    -------
    >>> loss = mx.gluon.loss.LogisticLoss()
    >>> loss(mx.nd.array([[0], [2]]), mx.nd.array([[1], [1]])).asnumpy().round(3)
    array([0.693, 0.127], dtype=float32)
    """

    def __init__(self, weight: Any = None, batch_axis: int = 0, label_format: str = "signed", **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        if label_format not in ("signed", "binary"):
            raise ValueError(f"label_format must be 'signed' or 'binary', received {shortened(label_format)}")
        self._label_format = label_format

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Return the loss of each sample; `label` has as many elements as `pred`."""
        label = _reshape_like(F, label, pred)
        if self._label_format == "signed":
            label = (label + 1.0) / 2.0
        return self._weighted_mean(F, F.relu(pred) - pred * label + _softplus_of_minus_abs(F, pred), sample_weight)


class TripletLoss(Loss):
    """max(0, \\|positive - pred\\|² - \\|negative - pred\\|² + margin).

    Parameters
    ----------
    margin : float
    weight, batch_axis, prefix, params
        As for `Loss`.

    Example
    -------
    >>> anchor, near, far = mx.nd.array([[0, 0]]), mx.nd.array([[1, 0]]), mx.nd.array([[0, 1.5]])
    >>> mx.gluon.loss.TripletLoss(margin=2)(anchor, near, far).asnumpy()
    array([0.75], dtype=float32)
    """

    def __init__(self, margin: float = 1, weight: Any = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, positive: Any, negative: Any, sample_weight: Any = None) -> Any:
        """Compute the loss of each sample, times `sample_weight` if there is one (which MXNet 1.9.1 has not for this loss)."""
        positive, negative = _reshape_like(F, positive, pred), _reshape_like(F, negative, pred)
        distance = F.sum(F.square(positive - pred) - F.square(negative - pred), axis=self._batch_axis, exclude=True)
        return _apply_weighting(F, F.relu(distance + self._margin), self._weight, sample_weight)


class PoissonNLLLoss(Loss):
    """The negative log likelihood of counts under a Poisson distribution: the mean, over all samples too, of pred - target log(pred).

    After ``mx.util.set_version('2.0')`` it is the mean of each sample, as in MXNet 2.

    Parameters
    ----------
    weight, batch_axis, prefix, params
        As for `Loss`.
    from_logits : bool
        `pred` is the logarithm of the rate; then the loss is exp(pred) - target · pred.
    compute_full : bool
        Add Stirling's approximation of log(target!) for targets above 1.

    Example
    -------
    >>> loss = mx.gluon.loss.PoissonNLLLoss()
    >>> loss(mx.nd.zeros((2, 1)), mx.nd.array([[1], [3]])).asnumpy()
    array([1.], dtype=float32)
    """

    def __init__(self, weight: Any = None, from_logits: bool = True, batch_axis: int = 0, compute_full: bool = False, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits, self._compute_full, self._by_sample = from_logits, compute_full, version() == "2.0"

    def hybrid_forward(self, F: Any, pred: Any, target: Any, sample_weight: Any = None, epsilon: Any = 1e-08) -> Any:
        """Return the loss, of shape (1,) (MXNet 2: (batch,)); `epsilon` keeps the logarithm finite."""
        target = _reshape_like(F, target, pred)
        loss = F.exp(pred) - target * pred if self._from_logits else pred - target * F.log(pred + epsilon)
        if self._compute_full:
            stirling = target * F.log(target) - target + 0.5 * F.log(2 * target * math.pi)
            loss = loss + stirling * (target > 1)
        if self._by_sample:
            return self._weighted_mean(F, loss, sample_weight)
        return F.mean(_apply_weighting(F, loss, self._weight, sample_weight))


class CosineEmbeddingLoss(Loss):
    """1 - cos(input1, input2) for pairs of label 1, max(0, cos - margin) for pairs of label -1.

    Its shape is (batch, 1); after ``mx.util.set_version('2.0')`` it is (batch,), as in MXNet 2.

    Parameters
    ----------
    weight, batch_axis, prefix, params
        As for `Loss`.
    margin : float

    Example
    -------
    >>> loss = mx.gluon.loss.CosineEmbeddingLoss()
    >>> a, b = mx.nd.array([[1, 0], [1, 0]]), mx.nd.array([[0, 1], [1, 0]])
    >>> loss(a, b, mx.nd.array([1, 1])).asnumpy()
    array([[1.],
           [0.]], dtype=float32)
    """

    def __init__(self, weight: Any = None, batch_axis: int = 0, margin: float = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin, self._by_sample = margin, version() == "2.0"

    def hybrid_forward(self, F: Any, input1: Any, input2: Any, label: Any, sample_weight: Any = None) -> Any:
        """Return the loss of each sample; `label` of shape (batch,)."""
        input1 = _reshape_like(F, input1, input2)
        label = label.reshape((-1, 1))
        cosine = self._cosine_similarity(F, input1, input2)
        alike = (1 - cosine) * (label == 1)
        unlike = F.relu((label == -1) * (cosine - self._margin))
        if self._by_sample:
            return self._weighted_mean(F, alike + unlike, sample_weight)
        return _apply_weighting(F, alike + unlike, self._weight, sample_weight)

    def _cosine_similarity(self, F: Any, x: Any, y, axis: int = -1):
        norms = F.norm(x, axis=axis).reshape((-1, 1)) * F.norm(y, axis=axis).reshape((-1, 1))
        return F.sum(x * y, axis=axis).reshape((-1, 1)) / F._internal._maximum_scalar(norms, scalar=1e-12)


class SDMLLoss(Loss):
    """Smoothed deep metric learning (arXiv:1905.12786): row i of one batch belongs to row i of the other and to no other row.

    Parameters
    ----------
    smoothing_parameter : float
        The probability that is spread over the other rows; below 1.
    weight, batch_axis, prefix, params
        As for `Loss`.

    Example
    -------
    >>> loss = mx.gluon.loss.SDMLLoss(smoothing_parameter=0.1)
    >>> x = mx.nd.array([[0, 0], [3, 0], [0, 3]])
    >>> loss(x, x).asnumpy().round(3)
    array([0.506, 0.956, 0.956], dtype=float32)
    """

    def __init__(self, smoothing_parameter: float = 0.3, weight: Any = 1., batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self.kl_loss = KLDivLoss(from_logits=True)
        self.smoothing_parameter = smoothing_parameter

    def _compute_distances(self, F: Any, x1: Any, x2: Any):
        """Return the squared distances between all rows of both batches."""
        if F is ndarray and x1.shape != x2.shape:
            raise UsageError(f"SDMLLoss: both batches must have one shape, received {x1.shape} and {x2.shape}")
        return (F.broadcast_sub(F.expand_dims(x1, 1), F.expand_dims(x2, 0)) ** 2).sum(axis=2)

    def _compute_labels(self, F: Any, x: Any):
        """Return the identity matrix of as many rows as `x`, smoothed."""
        rows = F.contrib.arange_like(x, axis=0)
        same = F.broadcast_equal(F.expand_dims(rows, 1), F.expand_dims(rows, 0))
        return same * (1 - self.smoothing_parameter) + F.broadcast_div((1 - same) * self.smoothing_parameter, F.max(rows))

    def hybrid_forward(self, F: Any, x1: Any, x2: Any) -> Any:
        """Return the loss of each row; both inputs of shape (batch, size)."""
        distances = self._compute_distances(F, x1, x2)
        return self.kl_loss(F.log_softmax(-distances, axis=1), self._compute_labels(F, x1))


class ShardedSoftmaxCELoss(Block):
    """The softmax cross-entropy of the logits of a `nn.ShardedDense`, whose classes are on several ranks and contexts.

    The ranks exchange the features, and the largest logit, the sum of exponentials and the label's logit of each sample; nobody gathers logits.
    Margins make the label's logit ``scale * (cos(angle + angular_margin) - cosine_margin)``, which need a layer with ``normalize=True``: ArcFace is
    ``scale=64, angular_margin=0.5``, CosFace is ``scale=64, cosine_margin=0.35``.

    Parameters
    ----------
    scale : float
        A factor of all logits, above 0.
    angular_margin : float
        Added to the angle to the label's class, in radians from 0 to pi.
    cosine_margin : float
        Subtracted from the cosine of that angle, from 0 on.
    weight : float, optional
        A factor for the loss.
    prefix, params
        As for `Block`.

    Raises
    ------
    UsageError
        If an argument is out of range; at a call, if margins meet a layer without ``normalize=True``, labels are no classes, or `sample_weight`
        does not fit the samples.
    MXNetError
        At a call, on all ranks: if one has another layer, type or number of features, margin or scale, or fails.

    Example
    -------
    >>> import mxnet as mx
    >>> layer = mx.gluon.nn.ShardedDense(1000, in_units=8, use_bias=False, normalize=True, sampled=0.1)
    >>> layer.initialize()
    >>> arcface = mx.gluon.loss.ShardedSoftmaxCELoss(scale=64, angular_margin=0.5)
    >>> with mx.autograd.record():
    ...     loss = arcface(layer(mx.nd.ones((2, 8))), mx.nd.array([3, 5]))
    >>> loss.backward()
    >>> loss.shape, layer.weight.grad().indices.shape
    ((2,), (100,))
    """

    _exchanges_rows = True

    def __init__(self, scale: float = 1.0, angular_margin: float = 0.0, cosine_margin: float = 0.0, weight: float | None = None,
                 **kwargs: Any) -> None:
        super().__init__(**kwargs)
        checks = (("scale", scale, lambda value: 0 < value < math.inf, "above 0"),
                  ("angular_margin", angular_margin, lambda value: 0 <= value <= math.pi, "from 0 to pi"),
                  ("cosine_margin", cosine_margin, lambda value: 0 <= value < math.inf, "from 0 on"))
        for name, value, valid, limits in checks:
            if not is_number(value) or not valid(value):
                raise UsageError(f"ShardedSoftmaxCELoss: {name} is a number {limits}, received {shortened(value)}")
        if weight is not None and not isinstance(weight, numeric_types):
            raise UsageError(f"ShardedSoftmaxCELoss: weight is a number, or None, received {shortened(weight)}")
        self._margin, self._weight = Margin(float(scale), float(angular_margin), float(cosine_margin)), weight

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Return the loss of each sample of this rank.

        Parameters
        ----------
        pred : ShardedLogits
            The output of the layer.
        label : NDArray, or list of them
            The classes of this rank's samples, of shape (batch,) and any type; a list where the features were one.
        sample_weight : NDArray or list of them, optional
            A factor for each sample, of shape (batch,) or (batch, 1), or one for all of them; of the features' type. A list where they were one.

        Returns
        -------
        NDArray, or list of them
            Of shape (batch,), of the features' type.
        """
        if not isinstance(pred, ShardedLogits):
            raise UsageError(f"ShardedSoftmaxCELoss: the result of a ShardedDense expected, received {type(pred).__name__}; "
                             "SoftmaxCELoss is for arrays")
        try:
            if (self._margin.angular or self._margin.cosine) and not pred.layer.normalizes:
                raise UsageError("ShardedSoftmaxCELoss: margins are for cosines; make the ShardedDense with normalize=True")
            labels = labels_of(pred, label)
            factors = sample_factors("ShardedSoftmaxCELoss", sample_weight, pred._features)
        except UsageError as error:
            ranks().fail(loss_name(pred.layer), error)
        losses = softmax_loss(pred, labels, self._margin)
        losses = [_apply_weighting(ndarray, loss, self._weight, factor) for loss, factor in zip(losses, factors)]
        return losses[0] if pred._single else losses
