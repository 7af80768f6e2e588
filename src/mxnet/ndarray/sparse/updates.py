"""The update operators of optimizers on row_sparse gradients: only the rows that are stored are touched."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from .arrays import RowSparseNDArray
from .dispatch import Update, kernel

if TYPE_CHECKING:
    from ...ops.registry import Operator


@kernel("sgd_update", "sgd_mom_update", "adam_update", "ftrl_update", "_sparse_adagrad_update", "_contrib_group_adagrad_update")
def update_rows(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    weight, gradient, *states = arrays
    weight_and_states = [weight, *states]
    by_rows = all(isinstance(a, RowSparseNDArray) for a in weight_and_states)
    if not isinstance(gradient, RowSparseNDArray) or not by_rows and (any(a._is_sparse for a in weight_and_states) or op.name == "ftrl_update"):
        return NotImplemented
    if not attributes.get("lazy_update", True):
        # Weight decay and momentum move every row: all that is sparse about this is the gradient.
        return _every_row(op, arrays, attributes)
    rows = gradient._aux[0].to(torch.int64)
    tensors = [a._all_rows() if a._is_sparse else a._writable() for a in weight_and_states[1:]]
    source = weight._all_rows() if by_rows else weight._raw()
    parts = [t[rows] for t in tensors]
    new = op.raw(source[rows], gradient._values, *parts, **attributes) if len(rows) else gradient._values
    for array, tensor, part in zip(states, tensors, parts):
        tensor[rows] = part
        if array._is_sparse:
            array._refresh_leaf()
    return Update(weight, rows, new)


def _every_row(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    weight, gradient, *states = arrays
    tensors = [a._all_rows() if a._is_sparse else a._writable() for a in states]
    source = weight._all_rows() if weight._is_sparse else weight._raw()
    new = op.raw(source, gradient._dense(), *tensors, **attributes)
    for array in states:
        if array._is_sparse:
            array._refresh_leaf()
    return Update(weight, slice(None), new)
