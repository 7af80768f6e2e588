"""Output layers: the forward pass returns a prediction, the backward pass the gradient of a loss."""
import functools
from typing import Literal

import torch

from ...base import MXNetError
from ...kernels.nn import softmax as softmax_kernels
from ..dtypes import same_type
from ..elemwise.common import truth
from ..registry import op
from ..schema import Fraction
from ..shapes import known, product, unify
from .common import assign, minus_one_hot


def _log_loss_gradient(out, label, ignore_label, smooth_alpha):
    """The probabilities minus the one-hot (or smoothed) labels; zero where the label is `ignore_label` (None for nowhere)."""
    # Labels beyond the number of instances are not read.
    index = (label if label.shape[0] <= out.shape[0] else label[:out.shape[0]]).long().unsqueeze(1)
    spread = smooth_alpha / max(out.shape[1] - 1, 1)
    grad = minus_one_hot(out - spread if smooth_alpha else out, index, 1, spread + smooth_alpha - 1)
    if ignore_label is not None:
        grad.masked_fill_(index == int(ignore_label), 0)
    return grad


@op("SoftmaxOutput", aliases=("Softmax",), loss=True, complete_rule=True, names_output=True, amp="float32")
def softmax_output(data, label, *, grad_scale: float = 1.0, ignore_label: float = -1.0, multi_output: bool = False,
                   use_ignore: bool = False, preserve_shape: bool = False, normalization: Literal["batch", "null", "valid"] = "null",
                   out_grad: bool = False, smooth_alpha: Fraction = 0.0):
    """Softmax whose gradient is that of the cross entropy with `label`; the incoming gradient is ignored.

    The softmax runs over all of an instance, over the last axis with `preserve_shape`, or over axis 1 with `multi_output`. `label` holds
    class numbers (data's shape without the last axis; with `multi_output`, without axis 1), or probabilities in data's own shape. The
    gradient is scaled by `grad_scale` and, depending on `normalization`, divided by the number of labels (``batch``), by that of labels which
    are not `ignore_label` (``valid``), or by nothing (``null``); with `use_ignore` it is zero where the label is `ignore_label`; with
    `out_grad` it is multiplied by the incoming gradient. `smooth_alpha` moves that share of each label's probability to the other
    classes.

    Raises
    ------
    MXNetError
        If the shapes of `data` and `label` do not fit.

    Example
    -------
    >>> x = mx.nd.array([[0, 0]])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     mx.nd.SoftmaxOutput(x, mx.nd.array([1])).backward()
    >>> x.grad.asnumpy()
    array([[ 0.5, -0.5]], dtype=float32)
    """
    if multi_output or label.shape != data.shape[:-1]:
        _softmax_output_shape_rule([tuple(data.shape), tuple(label.shape)], [None], multi_output=multi_output)
    if multi_output:
        return torch.softmax(data, 1)
    if preserve_shape or data.dim() == 2:
        return torch.softmax(data, -1)
    return torch.softmax(data.flatten(1), 1).view(data.shape)


@softmax_output.gradient
def _softmax_output_gradient(out_grads, inputs, outputs, *, grad_scale=1.0, ignore_label=-1.0, multi_output=False, use_ignore=False,
                             preserve_shape=False, normalization="null", out_grad=False, smooth_alpha=0.0):
    out, label = outputs[0], inputs[1]
    if label.shape == out.shape:
        grad = (out - label.to(out.dtype)) * grad_scale
        return (grad * out_grads[0] if out_grad else grad), None
    ignored = ignore_label if use_ignore else None
    if multi_output:
        flat = out.reshape(*out.shape[:2], -1)
        label = label.reshape(flat.shape[0], flat.shape[2])
        grad = _log_loss_gradient(flat, label, ignored, 0.0)
        scale = grad_scale / (1 if normalization == "valid" else flat.shape[2])
        batch = label.shape[0]
    else:
        flat = out if out.dim() == 2 else out.reshape(-1, out.shape[-1]) if preserve_shape else out.flatten(1)
        label = label if label.dim() == 1 else label.reshape(-1)
        if ignored is None and not smooth_alpha and normalization != "valid":
            factor = grad_scale / label.shape[0] if normalization == "batch" and label.shape[0] else grad_scale
            gradient = softmax_kernels.minus_one_hot(flat, label, factor)
            if gradient is not None:
                gradient = gradient if out.dim() == 2 else gradient.view(out.shape)
                return (gradient * out_grads[0] if out_grad else gradient), None
        grad = _log_loss_gradient(flat, label, ignored, smooth_alpha)
        scale, batch = grad_scale, label.shape[0]
    if normalization == "valid":
        # Stays a tensor, so that a GPU need not be waited for.
        grad.mul_(scale / (label.to(torch.int32) != int(ignore_label)).sum().clamp_(min=1).to(grad.dtype))
    else:
        if normalization == "batch":
            scale /= batch
        if scale != 1:
            grad.mul_(scale)
    grad = grad if grad.dim() == out.dim() else grad.view(out.shape)
    return (grad * out_grads[0] if out_grad else grad), None


@softmax_output.shape_rule
def _softmax_output_shape_rule(in_shapes, out_shapes, *, multi_output, **_):
    data = in_shapes[0] = out_shapes[0] = unify(in_shapes[0], out_shapes[0])
    label = in_shapes[1]
    if data is None or data == label:
        return in_shapes, out_shapes
    if not multi_output:
        assign(in_shapes, 1, data[:-1], "SoftmaxOutput's label")
        return in_shapes, out_shapes
    flat = (data[0], product(data[2:]))
    if label is None:
        in_shapes[1] = flat
    elif known(label) and known(data) and label not in (flat, (data[0], *data[2:]), (data[0], 1, *data[2:])):
        raise MXNetError(f"SoftmaxOutput: label must have the shape {flat} or {(data[0], *data[2:])} for data {data}, received {label}")
    return in_shapes, out_shapes


softmax_output.dtype_rule(same_type)


def _regression_shape_rule(in_shapes, out_shapes, *, name, **_):
    data = in_shapes[0] = out_shapes[0] = unify(in_shapes[0], out_shapes[0])
    label = in_shapes[1]
    if data is None:
        return in_shapes, out_shapes
    if label is None:
        # One value for each instance: labels are a plain vector, as iterators deliver them.
        in_shapes[1] = data[:1] if len(data) == 2 and data[1] == 1 else data
    elif known(label) and known(data) and (label[:1] != data[:1] or product(label) != product(data)):
        raise MXNetError(f"{name}: the label's shape must be {data}, or have as many values for each of the {data[0]} instances, "
                         f"received {label}")
    return in_shapes, out_shapes


def _regression(name, aliases, predict, residual, doc, shown, sent):
    """Register an output layer that predicts by one function of the data and sends back another of prediction and label.

    The example in its docstring ends with the prediction `shown` and the gradient `sent`.
    """
    def forward(data, label, *, grad_scale: float = 1.0):
        if data.shape != label.shape:
            _regression_shape_rule([tuple(data.shape), tuple(label.shape)], [None], name=name)
        return predict(data)

    forward.__name__ = forward.__qualname__ = name
    forward.__doc__ = f"""{doc}

    `data` and `label` are (N, ...), with as many values in each of the N labels as in an instance of the data. The gradient that comes
    coming in is ignored; the one sent on is scaled by `grad_scale` and divided by the number of values in a label.

    Raises
    ------
    MXNetError
        If the label does not fit the data.

    Example
    -------
    >>> x, label = mx.nd.array([[0, 2]]), mx.nd.array([[0.5, 0]])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     prediction = mx.nd.{name}(x, label)
    >>> prediction.backward()
    >>> prediction.asnumpy().round(2), x.grad.asnumpy().round(2)
    (array([[{shown}]], dtype=float32), array([[{sent}]], dtype=float32))
    """
    layer = op(name, aliases=aliases, loss=True, complete_rule=True, amp="float32")(forward)

    @layer.gradient
    def gradient(out_grads, inputs, outputs, *, grad_scale=1.0):
        out, label = outputs[0], inputs[1]
        values = label.numel() // label.shape[0] if label.dim() and label.shape[0] else 1
        grad = residual(out, label.reshape(out.shape).to(out.dtype))
        scale = grad_scale / max(values, 1)
        return (grad if scale == 1 else grad * scale), None

    layer.shape_rule(functools.partial(_regression_shape_rule, name=name))
    layer.dtype_rule(same_type)
    return layer


linear_regression_output = _regression(
    "LinearRegressionOutput", ("_sparse_LinearRegressionOutput",), torch.clone, torch.sub,
    "Pass `data` on; the gradient is that of half the squared difference to `label`.", "0., 2.", "-0.25,  1.  ")
mae_regression_output = _regression(
    "MAERegressionOutput", ("_sparse_MAERegressionOutput",), torch.clone, lambda out, label: torch.sign(out - label),
    "Pass `data` on; the gradient is that of the absolute difference to `label`.", "0., 2.", "-0.5,  0.5")
logistic_regression_output = _regression(
    "LogisticRegressionOutput", ("_sparse_LogisticRegressionOutput",), torch.sigmoid, torch.sub,
    "The sigmoid of `data`; the gradient is that of the binary cross entropy with `label`.", "0.5 , 0.88", "0.  , 0.44")


@op("SVMOutput", complete_rule="shape", loss=True, names_output=True, amp="float32")
def svm_output(data, label, *, margin: float = 1.0, regularization_coefficient: float = 1.0, use_linear: bool = False):
    """Pass the scores `data` (N, C) on; the gradient is that of a one-against-all hinge loss with the class numbers `label` (N,).

    The score of the class is to be above `margin`, every other one below ``-margin``; what is missing is the loss, squared unless
    `use_linear`. `regularization_coefficient` scales the gradient.

    Raises
    ------
    MXNetError
        If `label` does not have the shape of `data` without its last axis.

    Example
    -------
    >>> scores = mx.nd.array([[0.5, 0.2, -3]])              # only class 2 keeps its distance of 1
    >>> scores.attach_grad()
    >>> with mx.autograd.record():
    ...     out = mx.nd.SVMOutput(scores, mx.nd.array([0]), use_linear=True)
    >>> out.backward()
    >>> scores.grad.asnumpy()
    array([[-1.,  1.,  0.]], dtype=float32)
    """
    if label.shape != data.shape[:-1]:
        raise MXNetError(f"SVMOutput: `label` must have shape {tuple(data.shape[:-1])} for data {tuple(data.shape)}, received {tuple(label.shape)}")
    return data.clone()


@svm_output.gradient
def _svm_output_gradient(out_grads, inputs, outputs, *, margin=1.0, regularization_coefficient=1.0, use_linear=False):
    scores, label = outputs[0], inputs[1]
    flat, label = scores.flatten(1), label.reshape(-1, 1).long()

    def slope(shortfall):
        return truth(torch.gt, shortfall, 0) if use_linear else shortfall.clamp_(min=0).mul_(2)

    # All classes as the wrong ones that they nearly all are, then the right one of each row; a label may name none.
    gradient = slope(flat + margin).mul_(regularization_coefficient)
    named, right = (label >= 0) & (label < flat.shape[1]), label.clamp(0, flat.shape[1] - 1)
    of_right = slope(margin - flat.gather(1, right)).mul_(-regularization_coefficient)
    return gradient.scatter_(1, right, torch.where(named, of_right, gradient.gather(1, right))).view(scores.shape), None


@svm_output.shape_rule
def _svm_output_shape_rule(in_shapes, out_shapes, **_):
    data = in_shapes[0] = out_shapes[0] = unify(in_shapes[0], out_shapes[0])
    if data is not None:
        assign(in_shapes, 1, data[:-1], "SVMOutput's label")
    return in_shapes, out_shapes


svm_output.dtype_rule(same_type)


@op("MakeLoss", complete_rule="shape", loss=True, same_shape=True, names_output=True, amp="float32")
def make_loss_output(data, *, grad_scale: float = 1.0, valid_thresh: float = 0.0,
                     normalization: Literal["batch", "null", "valid"] = "null"):
    """Return `data` as a loss: its gradient is `grad_scale`, and the incoming gradient is ignored.

    `normalization` divides it by the batch size (``batch``), by the number of elements above `valid_thresh` (``valid``), or by nothing.

    Example
    -------
    >>> x = mx.nd.array([1, 2])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     loss = mx.nd.MakeLoss(x ** 2, grad_scale=10)
    >>> loss.backward()
    >>> x.grad.asnumpy()
    array([20., 40.], dtype=float32)
    """
    return data.clone()


@make_loss_output.gradient
def _make_loss_gradient(out_grads, inputs, outputs, *, grad_scale=1.0, valid_thresh=0.0, normalization="null"):
    data = inputs[0]
    if normalization == "valid":
        return (grad_scale / (data > valid_thresh).sum().clamp_(min=1).to(data.dtype)).expand(data.shape).contiguous()
    # MXNet's batch is what remains when only the last axis is a row.
    return torch.full_like(data, grad_scale * data.shape[-1] / data.numel() if normalization == "batch" else grad_scale)


@op("IdentityAttachKLSparseReg", mutates=("moving_avg",), initial={"moving_avg": ["zero", {}]}, complete_rule="shape", names_output=True,
    amp="float32")
def identity_attach_kl_sparse_reg(data, moving_avg, *, sparseness_target: Fraction = 0.1, penalty: float = 0.001, momentum: Fraction = 0.9):
    """Pass `data` (N, C, ...), activations between 0 and 1, on; the gradient gains a penalty that draws their mean to `sparseness_target`.

    The penalty is `penalty` times the derivative of the KL divergence between the target and `moving_avg` (C,), the running mean of each
    unit, which backward updates with `momentum`.

    Raises
    ------
    MXNetError
        If `moving_avg` does not have one value for each unit.

    Example
    -------
    >>> x, average = mx.nd.array([[0.1, 0.5]]), mx.nd.zeros(2)
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = mx.nd.IdentityAttachKLSparseReg(x, average, sparseness_target=0.1, penalty=1, momentum=0)
    >>> y.backward(mx.nd.zeros_like(y))
    >>> x.grad.asnumpy().round(2)                           # the second unit is too active
    array([[0. , 1.6]], dtype=float32)
    """
    if data.dim() < 2 or moving_avg.shape != data.shape[1:2]:
        raise MXNetError("IdentityAttachKLSparseReg: expected `data` (N, C, ...) and `moving_avg` (C,), "
                         f"received {tuple(data.shape)} and {tuple(moving_avg.shape)}")
    return data.clone()


@identity_attach_kl_sparse_reg.gradient
def _identity_attach_kl_sparse_reg_gradient(out_grads, inputs, outputs, *, sparseness_target=0.1, penalty=0.001, momentum=0.9):
    data, average = inputs
    with torch.no_grad():
        average.mul_(momentum).add_(data.mean([a for a in range(data.dim()) if a != 1]), alpha=1 - momentum)
    pull = penalty * ((1 - sparseness_target) / (1 - average) - sparseness_target / average)
    return out_grads[0] + pull.view(-1, *[1] * (data.dim() - 2)), None


@identity_attach_kl_sparse_reg.shape_rule
def _identity_attach_kl_sparse_reg_shape_rule(in_shapes, out_shapes, **_):
    data = in_shapes[0] = out_shapes[0] = unify(in_shapes[0], out_shapes[0])
    if data is not None:
        assign(in_shapes, 1, data[1:2], "IdentityAttachKLSparseReg's moving_avg")
    return in_shapes, out_shapes
