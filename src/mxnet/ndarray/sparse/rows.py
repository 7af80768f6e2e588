"""Gradients of row_sparse arrays that have only the rows that were used.

Torch differentiates with respect to tensors, and a tensor with all rows would cost as much as the table. A recorded row_sparse array has a token
instead: a tensor of its shape that takes no memory, whose values mean nothing. The functions here take a token in the place of the values, which they
read from the array, and give it a sparse gradient (a dense one where that is to be differentiated again); what they return as row_sparse has a token
of its own.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from ...ops import differentiation
from ...ops.grad_mode import enable_grad
from ...ops.kernels import sparse as kernels

if TYPE_CHECKING:
    from ...ops.registry import Operator


def token(values: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """A tensor of a shape, of the type and on the device of `values`, without memory of its own."""
    return values.new_zeros(()).expand(tuple(shape))


def _by_rows(rows: torch.Tensor, values: torch.Tensor, shape: Sequence[int], unique: bool = True) -> torch.Tensor:
    return torch.sparse_coo_tensor(rows.unsqueeze(0), values, tuple(shape), is_coalesced=unique or None, check_invariants=False)


_FEW = 256  # times as many elements as are stored: so much faster than torch's sparse product is that of dense matrices
_MANY = 16  # times as many: so much faster is a dense product than a kernel of ours for few numbers in a row


def _few(matrix: Any, columns: int) -> torch.Tensor | None:
    """Zeros for the columns of a matrix that store something, if these are few."""
    rows = matrix.shape[0]
    if not matrix._values.is_floating_point() or rows * columns > _FEW * len(matrix._values):
        return None
    return matrix._values.new_zeros((rows, columns))


def times(matrix: Any, number: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """The product of a csr matrix, whose entries have `number` as columns, and of a dense one."""
    if matrix.shape[0] * len(rows) >= _MANY * len(number):
        found = kernels.product(matrix._aux[0], number, matrix._values, rows)
        if found is not None:
            return found
    dense = _few(matrix, len(rows))
    if dense is None:
        dense = torch.sparse_csr_tensor(matrix._aux[0], number, matrix._values, (matrix.shape[0], len(rows)), check_invariants=False)
    else:
        dense[matrix._row_numbers(), number] = matrix._values
    return dense @ rows


def _transposed_times(matrix: Any, number: torch.Tensor, width: int, gradient: torch.Tensor) -> torch.Tensor:
    """The product of the transpose of such a matrix, which has `width` columns, and of a dense one."""
    if matrix.shape[0] * width >= _MANY * len(number):
        found = kernels.transposed_product(matrix._aux[0], number, matrix._values, width, gradient)
        if found is not None:
            return found
    dense = _few(matrix, width)
    if dense is not None:
        dense[matrix._row_numbers(), number] = matrix._values
        return dense.t() @ gradient
    parts = gradient[matrix._row_numbers()] * matrix._values.unsqueeze(1)
    return parts.new_zeros((width, gradient.shape[1])).index_add_(0, number, parts)


class Dense(torch.autograd.Function):
    """All rows, as a tensor."""

    @staticmethod
    def forward(ctx: Any, token: torch.Tensor, array: Any) -> torch.Tensor:
        return array._readable().detach()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient, None


class RowByRow(torch.autograd.Function):
    """The token of what an operator makes of an array whose rows it computes one by one, and of zeros as zeros."""

    @staticmethod
    def forward(ctx: Any, source: torch.Tensor, array: Any, op: Operator, attributes: dict[str, Any], shape: tuple[int, ...]) -> torch.Tensor:
        ctx.source, ctx.array, ctx.op, ctx.attributes = source, array, op, attributes
        return token(source, shape)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        if torch.is_grad_enabled():  # to be differentiated once more: with all rows
            values = Dense.apply(ctx.source, ctx.array)
            return torch.autograd.grad(ctx.op.fn(values, **ctx.attributes), values, gradient, create_graph=True)[0], None, None, None, None
        rows = None
        if gradient.is_sparse:
            gradient = gradient.coalesce()
            rows, gradient = gradient.indices()[0], gradient.values()
        with enable_grad():
            values = (ctx.array._readable() if rows is None else ctx.array._rows(rows)).detach().requires_grad_()
            result = ctx.op.fn(values, **ctx.attributes)
        found, = differentiation.gradients([result], [values], [gradient])
        return found if rows is None else _by_rows(rows, found, ctx.array.shape), None, None, None, None


class Product(torch.autograd.Function):
    """A csr matrix times a row_sparse one, of which it reads and differentiates the rows for columns that store something."""

    @staticmethod
    def forward(ctx: Any, token: torch.Tensor, matrix: Any, array: Any) -> torch.Tensor:
        used, ctx.number = torch.unique(matrix._aux[1].long(), return_inverse=True)
        ctx.used, ctx.matrix, ctx.shape = used, matrix, array.shape
        return times(matrix, ctx.number, array._readable_rows(used))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        if torch.is_grad_enabled():  # to be differentiated once more: with all rows
            parts = gradient[ctx.matrix._row_numbers()] * ctx.matrix._values.unsqueeze(1)
            return parts.new_zeros(ctx.shape).index_add(0, ctx.used[ctx.number], parts), None, None
        return _by_rows(ctx.used, _transposed_times(ctx.matrix, ctx.number, len(ctx.used), gradient), ctx.shape), None, None


class Taken(torch.autograd.Function):
    """The rows of an array that a tensor of integers numbers."""

    @staticmethod
    def forward(ctx: Any, token: torch.Tensor, array: Any, numbers: torch.Tensor) -> torch.Tensor:
        ctx.numbers, ctx.shape = numbers.reshape(-1), array.shape
        return array._rows(ctx.numbers).reshape((*numbers.shape, *array.shape[1:]))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        parts = gradient.reshape(-1, *ctx.shape[1:])
        if torch.is_grad_enabled():
            return parts.new_zeros(ctx.shape).index_add(0, ctx.numbers, parts), None, None
        return _by_rows(ctx.numbers, parts, ctx.shape, False), None, None
