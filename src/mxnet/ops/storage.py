"""Operators on the storage type of arrays. For dense tensors they are nearly trivial; the sparse forms are in ``ndarray.sparse.dispatch``."""
from typing import Literal

import torch

from ..base import MXNetError
from .registry import op


def check_rows(rows: torch.Tensor, count: int) -> None:
    """Raise an MXNetError unless all numbers of rows to retain are from 0 to `count` - 1."""
    if rows.numel() and not rows.is_meta and not torch.compiler.is_compiling():
        low, high = int(rows.min()), int(rows.max())
        if low < 0 or high >= count:
            raise MXNetError(f"retain: row numbers from 0 to {count - 1} expected, received {low if low < 0 else high}")


@op("cast_storage", aliases=("_sparse_cast_storage",), same_shape=True, changes_storage=True)
def cast_storage(data, *, stype: Literal["default", "csr", "row_sparse"]):
    """The values of `data`, stored as `stype`. Graphs compute on dense tensors, where the values are all there is.

    Example
    -------
    >>> x = mx.nd.cast_storage(mx.nd.array([[0, 0], [3, 4]]), "row_sparse")
    >>> x.stype, x.indices.asnumpy(), x.data.asnumpy()
    ('row_sparse', array([1]), array([[3., 4.]], dtype=float32))
    """
    return data.clone()


@op("_sparse_retain")
def sparse_retain(data, indices):
    """`data` (rows, ...) with all rows set to zero but those listed in `indices` (n,).

    Example
    -------
    >>> x = mx.nd.array([[1, 2], [3, 4], [5, 6]]).tostype("row_sparse")
    >>> mx.nd.sparse.retain(x, mx.nd.array([0, 2])).asnumpy()
    array([[1., 2.],
           [0., 0.],
           [5., 6.]], dtype=float32)
    """
    rows = indices.long()
    check_rows(rows, data.shape[0])
    keep = torch.zeros(data.shape[0], dtype=torch.bool, device=data.device).index_fill_(0, rows, True)
    return data * keep.reshape(-1, *[1] * (data.dim() - 1)).to(data.dtype)
