"""Connectionist temporal classification."""
from typing import Literal

import torch

from ...base import MXNetError
from ..registry import op
from .common import assign


def _input_names(attributes):
    return ["data", "label", *(n for n in ("data_lengths", "label_lengths") if attributes["use_" + n])]


@op("CTCLoss", complete_rule="shape", aliases=("ctc_loss", "_contrib_CTCLoss", "_contrib_ctc_loss", "_npx_ctc_loss"), inputs_rule=_input_names,
    output_names=("output0",), amp="float32")
def ctc_loss(data, label, data_lengths=None, label_lengths=None, *, use_data_lengths: bool = False, use_label_lengths: bool = False,
             blank_label: Literal["first", "last"] = "first"):
    """The negative log likelihood (N,) of each label sequence, for activations `data` (T, N, classes) before the softmax (Graves et al. 2006).

    `label` (N, L) holds class numbers; `blank_label` says whether the blank is class 0 (``first``) or the last one. Without `label_lengths` (N,),
    required by `use_label_lengths`, a label ends before its first 0 (``first``) or -1 (``last``); without `data_lengths` (N,), which
    `use_data_lengths` requires, all T steps count. Numbers of no class count as the nearest one. A label that does not fit its data has
    neither loss nor gradient.

    Raises
    ------
    MXNetError
        If the batch sizes differ, there are more labels than steps, or lengths are given without their attribute.

    Example
    -------
    >>> x = mx.nd.zeros((2, 1, 3))      # 9 equally likely paths, of which blank-1, 1-blank and 1-1 spell the label
    >>> mx.nd.exp(-mx.nd.CTCLoss(x, mx.nd.array([[1, 0]]))).asnumpy().round(3)
    array([0.333], dtype=float32)
    """
    given = [t for t in (data, label, data_lengths, label_lengths) if t is not None]
    names = _input_names({"use_data_lengths": use_data_lengths, "use_label_lengths": use_label_lengths})
    if len(given) != len(names):
        raise MXNetError(f"CTCLoss expects {len(names)} inputs ({', '.join(names)}) with use_data_lengths={use_data_lengths} and "
                         f"use_label_lengths={use_label_lengths}, received {len(given)}")
    _ctc_loss_shape_rule([tuple(t.shape) for t in given], [None])
    if use_label_lengths and label_lengths is None:
        data_lengths, label_lengths = None, data_lengths  # given as the third input where the data have no lengths
    label = label.long()
    if label_lengths is None:
        padding = 0 if blank_label == "first" else -1
        label_lengths = (label != padding).cumprod(1).sum(1)
    else:
        label_lengths = label_lengths.long()
    if data_lengths is None:
        data_lengths = torch.full((data.shape[1],), data.shape[0], dtype=torch.int64, device=data.device)
    else:
        data_lengths = data_lengths.long()
        # Elements behind the end may be NaN, and get no gradient.
        data = torch.where((torch.arange(data.shape[0], device=data.device).unsqueeze(1) < data_lengths).unsqueeze(2), data, 0)
    kind = data.dtype
    logits = data.float() if kind == torch.float16 else data
    blank = 0 if blank_label == "first" else data.shape[2] - 1
    # A loss of 0, where a label does not fit, is what MXNet gives.
    loss = torch.ctc_loss(torch.log_softmax(logits, 2), label.clamp(0, data.shape[2] - 1), data_lengths, label_lengths, blank, 0, True)
    return loss if loss.dtype == kind else loss.to(kind)


@ctc_loss.shape_rule
def _ctc_loss_shape_rule(in_shapes, out_shapes, **_):
    data, label = in_shapes[:2]
    if data is None:
        return in_shapes, out_shapes
    if len(data) != 3 or label is not None and len(label) != 2:
        raise MXNetError(f"CTCLoss: data must be (steps, batch, classes) and label (batch, labels), received shapes {data} and {label}")
    assign(in_shapes, 1, (data[1], -1), "CTCLoss's label")
    if label is not None and 0 <= data[0] < label[1]:
        raise MXNetError(f"CTCLoss: at most {data[0]} labels, one for each step, expected, received {label[1]}")
    for i in range(2, len(in_shapes)):
        assign(in_shapes, i, (data[1],), "CTCLoss's lengths")
    assign(out_shapes, 0, (data[1],), "CTCLoss's output")
    return in_shapes, out_shapes


@ctc_loss.dtype_rule
def _ctc_loss_dtype_rule(in_types, out_types, **_):
    data = in_types[0] or out_types[0]
    return [data, *(t or data for t in in_types[1:])], [data]
