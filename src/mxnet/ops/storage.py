"""Operators about how arrays are stored. On dense tensors they hardly do anything; the sparse forms are in ``ndarray.sparse.dispatch``."""
from typing import Literal

import torch

from .registry import op


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
    keep = torch.zeros(data.shape[0], dtype=torch.bool, device=data.device).index_fill_(0, indices.long(), True)
    return data * keep.reshape(-1, *[1] * (data.dim() - 1)).to(data.dtype)
