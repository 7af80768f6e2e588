"""Looking up rows of a table."""
from typing import Literal

import torch

from ...base import MXNetError
from ...kernels.memory import gather_scatter
from ..quantization.arithmetic import Quantized
from ..quantization.form import Int8, quantized_form
from ..registry import op
from .common import assign

_Types = Literal["bfloat16", "float16", "float32", "float64", "int32", "int64", "int8", "uint8"]


def _lookup(data, weight, *, input_dim: int, output_dim: int, dtype: _Types = "float32", sparse_grad: bool = False):
    """Return the rows of `weight` (input_dim, output_dim) at the indices `data`, clamped to the valid range.

    The result has the shape of `data` and one more axis of `output_dim`. `dtype` is the weight's type for type inference;
    `sparse_grad` requests a row-sparse gradient.

    Example
    -------
    >>> import mxnet as mx
    >>> table = mx.nd.array([[0, 1], [2, 3], [4, 5]])
    >>> mx.nd.Embedding(mx.nd.array([2, 0]), table, input_dim=3, output_dim=2).asnumpy()
    array([[4., 5.],
           [0., 1.]], dtype=float32)
    """
    if weight.shape != (input_dim, output_dim):
        raise MXNetError(f"Embedding: `weight` must have shape ({input_dim}, {output_dim}), received {tuple(weight.shape)}")
    if not (torch.is_grad_enabled() and weight.requires_grad):
        return gather_scatter.nearest(weight, data.reshape(-1)).view(*data.shape, output_dim)
    index = data.long().clamp_(0, weight.shape[0] - 1) if data.dtype != torch.int64 else data.clamp(0, weight.shape[0] - 1)
    # Only a leaf may get a row-sparse gradient: operators behind another tensor expect all rows.
    return torch.embedding(weight, index, -1, False, sparse_grad and weight.is_leaf and weight.requires_grad)


def _shape_rule(in_shapes, out_shapes, *, input_dim, output_dim, **_):
    if in_shapes[0] is not None:
        assign(in_shapes, 1, (input_dim, output_dim), "Embedding's weight")
        assign(out_shapes, 0, (*in_shapes[0], output_dim), "Embedding's output")
    return in_shapes, out_shapes


def _dtype_rule(in_types, out_types, *, dtype, **_):
    weight = in_types[1] or out_types[0] or getattr(torch, dtype)
    return [in_types[0] or torch.float32, weight], [weight]


def _sparse_lookup(data, weight, *, input_dim: int, output_dim: int, dtype: _Types = "float32", sparse_grad: bool = True,
                   deterministic: bool = False):
    """`Embedding` with a row-sparse gradient for any `sparse_grad`; `deterministic` requests sums in a fixed order, which they
    always have here.

    Example
    -------
    >>> import mxnet as mx
    >>> table = mx.nd.ones((1000, 2))
    >>> table.attach_grad(stype="row_sparse")
    >>> with mx.autograd.record():
    ...     rows = mx.nd.contrib.SparseEmbedding(mx.nd.array([7, 3]), table, input_dim=1000, output_dim=2)
    >>> rows.backward()
    >>> table.grad.indices.asnumpy()
    array([3, 7])
    """
    return _lookup(data, weight, input_dim=input_dim, output_dim=output_dim, dtype=dtype, sparse_grad=True)


embedding = op("Embedding", aliases=("_npx_embedding", "_sparse_Embedding"), complete_rule=True)(_lookup)
sparse_embedding = op("_contrib_SparseEmbedding", complete_rule=True)(_sparse_lookup)
for _operator in (embedding, sparse_embedding):
    _operator.shape_rule(_shape_rule)
    _operator.dtype_rule(_dtype_rule)


@embedding.gradient_storage_rule
def _(position, in_stypes, attributes):
    return ("row_sparse" if attributes["sparse_grad"] else "default") if position == 1 else None


@sparse_embedding.gradient_storage_rule
def _(position, in_stypes, attributes):
    return "row_sparse" if position == 1 else None


@quantized_form(embedding, "_contrib_quantized_embedding", result=torch.int8, amp=None,
                when=lambda attributes: attributes["dtype"] == "float32")
def quantized_embedding(data: torch.Tensor, weight: Int8, *, input_dim, output_dim, **attributes) -> Quantized:
    """The rows of int8 `weight` (input_dim, output_dim) that `data` names; the range stays.

    Example
    -------
    >>> q, low, high = mx.nd.array([[1, 2], [3, 4]], dtype='int8'), mx.nd.array([-1]), mx.nd.array([1])
    >>> mx.nd.contrib.quantized_embedding(mx.nd.array([1, 0]), q, low, high, input_dim=2, output_dim=2)[0].asnumpy()
    array([[3, 4],
           [1, 2]], dtype=int8)
    """
    rows = weight.values
    if tuple(rows.shape) != (input_dim, output_dim):
        raise MXNetError(f"_contrib_quantized_embedding: `weight` must have shape {(input_dim, output_dim)}, received {tuple(rows.shape)}")
    return weight.with_values(torch.nn.functional.embedding(data.to(torch.int64).clamp(0, input_dim - 1), rows))
