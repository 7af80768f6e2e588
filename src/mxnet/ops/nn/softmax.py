"""Softmax in its forms."""
from typing import Literal, Optional

import torch

from ...base import MXNetError
from ...kernels.nn import softmax as kernels
from ..dtypes import name_of, same_type
from ..registry import op
from ..shapes import unify
from .common import assign, check_axis, minus_one_hot

_Types = Optional[Literal["float16", "float32", "float64"]]


def _length_inputs(attributes):
    return ("data", "length") if attributes["use_length"] else ("data",)


def _scaled(data, temperature, dtype):
    """Return the data divided by `temperature`, in the type in which the softmax is computed: usually that of the result."""
    if dtype is not None and not (data.dtype == torch.float32 and dtype == "float16") and data.dtype != torch.float64:
        data = data.to(getattr(torch, dtype))
    elif not data.is_floating_point():
        data = data.float()
    return data if temperature is None or temperature == 1 else data / temperature


def _typed(out, dtype):
    return out if dtype is None else out.to(getattr(torch, dtype))


def _beyond(data, length, axis):
    """True where the position along `axis` is not below `length` (data's shape without that axis)."""
    axis = axis % data.dim()
    positions = torch.arange(data.shape[axis], device=data.device)
    return positions.view(-1, *[1] * (data.dim() - 1 - axis)) >= (length.unsqueeze(axis) if data.dim() > 1 else length)


@op("softmax", aliases=("_npx_softmax",), inputs_rule=_length_inputs, compute_bound=True, complete_rule="shape", method=True, names_input=True,
    names_output=True, amp="float32")
def softmax(data, length=None, *, axis: int = -1, temperature: Optional[float] = None, dtype: _Types = None,
            use_length: Optional[bool] = False):
    """``exp(x / temperature)``, normalized to sum 1 along `axis`.

    With `use_length`, only the first `length` positions along the axis take part and the others become 0; `length` has data's shape
    without that axis, and an integer type. `dtype` is the type to return.

    Raises
    ------
    MXNetError
        If `length` is given without `use_length`, or missing, or not of an integer type.

    Example
    -------
    >>> mx.nd.softmax(mx.nd.array([[1, 1], [0, 0]])).asnumpy()
    array([[0.5, 0.5],
           [0.5, 0.5]], dtype=float32)
    """
    if (length is None) is (use_length is True):
        raise MXNetError(f"softmax: `length` and `use_length` belong together, received use_length={use_length} and "
                         f"{'no length' if length is None else f'a length of shape {tuple(length.shape)}'}")
    data = _scaled(data, temperature, dtype)
    if length is None:
        return _typed(kernels.softmax(data, axis), dtype)
    if length.is_floating_point() and not length.is_meta:  # shapes are inferred without types
        raise MXNetError(f"softmax: `length` must be of an integer type, received {name_of(length.dtype)}")
    beyond = _beyond(data, length, axis)
    return _typed(torch.softmax(data.masked_fill(beyond, -torch.inf), axis).masked_fill(beyond, 0), dtype)


def _refuse_length(name, use_length):
    if use_length:
        raise MXNetError(f"{name}: `use_length` is only for softmax, received {use_length}; mask the data instead")


@op("log_softmax", complete_rule="shape", aliases=("_npx_log_softmax",), method=True, names_input=True, amp="float32")
def log_softmax(data, *, axis: int = -1, temperature: Optional[float] = None, dtype: _Types = None, use_length: Optional[bool] = False):
    """The logarithm of `softmax`, computed without losing small values; attributes as there. Only `softmax` itself can use lengths.

    Raises
    ------
    MXNetError
        If `use_length` is set.

    Example
    -------
    >>> mx.nd.log_softmax(mx.nd.array([[0, 1000]])).asnumpy()
    array([[-1000.,     0.]], dtype=float32)
    >>> mx.nd.log(mx.nd.softmax(mx.nd.array([[0, 1000]]))).asnumpy()
    array([[-inf,   0.]], dtype=float32)
    """
    _refuse_length("log_softmax", use_length)
    return _typed(kernels.log_softmax(_scaled(data, temperature, dtype), axis), dtype)


@op("softmin", complete_rule="shape", method=True, names_input=True, names_output=True, amp="float32")
def softmin(data, *, axis: int = -1, temperature: Optional[float] = None, dtype: _Types = None, use_length: Optional[bool] = False):
    """The softmax of ``-x``; attributes as there. Only `softmax` itself can use lengths.

    Raises
    ------
    MXNetError
        If `use_length` is set.

    Example
    -------
    >>> mx.nd.softmin(mx.nd.array([[0, 1, 1000]])).asnumpy().round(2)
    array([[0.73, 0.27, 0.  ]], dtype=float32)
    """
    _refuse_length("softmin", use_length)
    return _typed(torch.softmax(-_scaled(data, temperature, dtype), axis), dtype)


def _softmax_shape_rule(in_shapes, out_shapes, *, axis, **_):
    shape = in_shapes[0] = out_shapes[0] = unify(in_shapes[0], out_shapes[0])
    if shape is not None:
        axis = check_axis(axis, max(len(shape), 1), "softmax")
        if len(in_shapes) > 1:
            assign(in_shapes, 1, shape[:axis] + shape[axis + 1:] if len(shape) > 1 else (1,), "softmax's length")
    return in_shapes, out_shapes


def _softmax_dtype_rule(in_types, out_types, *, dtype, **_):
    if dtype is not None:
        out = getattr(torch, dtype)
        return [in_types[0] or out, *(t or torch.int32 for t in in_types[1:])], [out]
    data, out = same_type(in_types[:1], out_types)
    return [*data, *(t or torch.int32 for t in in_types[1:])], out


for _operator in (softmax, log_softmax, softmin):
    _operator.shape_rule(_softmax_shape_rule)
    _operator.dtype_rule(_softmax_dtype_rule)


def _hidden(name, data, mask):
    """True where the mask is not."""
    try:
        return mask.logical_not().broadcast_to(data.shape)
    except RuntimeError:
        raise MXNetError(f"{name}: `mask` must broadcast to the shape of `data`, received shapes {tuple(mask.shape)} and "
                         f"{tuple(data.shape)}") from None


@op("masked_softmax", aliases=("_npx_masked_softmax",), complete_rule="shape", amp=None)
def masked_softmax(data, mask, *, axis: int = -1, temperature: Optional[float] = 1.0, normalize: Optional[bool] = True):
    """`softmax` of the entries whose `mask` is true; the others become 0. `mask` broadcasts to the shape of `data`.

    With `normalize` the largest entry is subtracted first, which avoids overflow; the result is the same.

    Raises
    ------
    MXNetError
        If `mask` does not broadcast to `data`.

    Example
    -------
    >>> mx.npx.masked_softmax(mx.np.array([[1, 5, 1]]), mx.np.array([[1, 0, 1]]))
    array([[0.5, 0. , 0.5]])
    """
    hidden = _hidden("masked_softmax", data, mask)
    # Where all are hidden torch gives NaN, which becomes 0 at the end.
    return torch.softmax(_scaled(data, temperature, None).masked_fill(hidden, -torch.inf), axis).masked_fill(hidden, 0)


@op("masked_log_softmax", aliases=("_npx_masked_log_softmax",), complete_rule="shape", amp=None)
def masked_log_softmax(data, mask, *, axis: int = -1, temperature: Optional[float] = 1.0, normalize: Optional[bool] = True):
    """The logarithm of `masked_softmax`: minus infinity where `mask` is false; attributes as there.

    Raises
    ------
    MXNetError
        If `mask` does not broadcast to `data`.

    Example
    -------
    >>> mx.npx.masked_log_softmax(mx.np.array([[1, 5, 1]]), mx.np.array([[0, 0, 1]]))
    array([[-inf, -inf,   0.]])
    """
    hidden = _hidden("masked_log_softmax", data, mask)
    return torch.log_softmax(_scaled(data, temperature, None).masked_fill(hidden, -torch.inf), axis).masked_fill(hidden, -torch.inf)


def _masked_softmax_shape_rule(in_shapes, out_shapes, *, axis, **_):
    shape = in_shapes[0] = out_shapes[0] = unify(in_shapes[0], out_shapes[0])
    if shape is not None:
        check_axis(axis, max(len(shape), 1), "masked_softmax")
    return in_shapes, out_shapes


def _masked_softmax_dtype_rule(in_types, out_types, **_):
    data, out = same_type(in_types[:1], out_types)
    return [*data, in_types[1] or torch.bool], out


for _operator in (masked_softmax, masked_log_softmax):
    _operator.shape_rule(_masked_softmax_shape_rule)
    _operator.dtype_rule(_masked_softmax_dtype_rule)


@op("SoftmaxActivation", complete_rule="shape", same_shape=True, names_output=True, amp="float32")
def softmax_activation(data, *, mode: Literal["channel", "instance"] = "instance"):
    """Softmax over the last axis (``instance``) or over axis 1 (``channel``).

    Raises
    ------
    MXNetError
        If `data` has fewer than 3 axes with ``channel``.

    Example
    -------
    >>> x = mx.nd.zeros((1, 4, 2))
    >>> mx.nd.SoftmaxActivation(x).asnumpy()[0, 0], mx.nd.SoftmaxActivation(x, mode="channel").asnumpy()[0, 0]
    (array([0.5, 0.5], dtype=float32), array([0.25, 0.25], dtype=float32))
    """
    if mode == "channel" and data.dim() < 3:
        raise MXNetError(f"SoftmaxActivation: mode='channel' needs data with at least 3 axes, received shape {tuple(data.shape)}")
    return kernels.softmax(data, 1 if mode == "channel" else -1)


@op("softmax_cross_entropy", complete_rule="shape", amp="float32")
def softmax_cross_entropy(data, label):
    """The sum of ``-log(max(softmax(data)[label], 1e-8))`` over the batch, shape (1,), for `data` (N, C) and `label` (N,).

    Example
    -------
    >>> x, label = mx.nd.log(mx.nd.array([[0.5, 0.5], [0.25, 0.75]])), mx.nd.array([0, 0])
    >>> mx.nd.exp(-mx.nd.softmax_cross_entropy(x, label)).asnumpy()      # 0.5 * 0.25
    array([0.125], dtype=float32)
    """
    picked = torch.softmax(data, 1).gather(1, label.long().clamp(0, data.shape[1] - 1).unsqueeze(1))
    return -picked.clamp_(min=1e-8).log_().sum().reshape(1)


@softmax_cross_entropy.gradient
def _softmax_cross_entropy_gradient(out_grads, inputs, outputs):
    data, label = inputs
    return minus_one_hot(torch.softmax(data, 1), label.long().unsqueeze(1), 1) * out_grads[0], None


@softmax_cross_entropy.shape_rule
def _softmax_cross_entropy_shape_rule(in_shapes, out_shapes):
    data = in_shapes[0]
    if data is not None:
        assign(in_shapes, 1, data[:1], "softmax_cross_entropy's label")
        if len(data) == 2 and data[1]:  # for other shapes the operator's call raises the error
            assign(out_shapes, 0, (1,), "softmax_cross_entropy's output")
    return in_shapes, out_shapes
