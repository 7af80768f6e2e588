"""Gradients of row_sparse arrays that have only the rows that were used.

Torch differentiates with respect to tensors, and a tensor with all rows would cost as much as the table. A recorded row_sparse array has a token
instead: a tensor of its shape without memory, whose values are meaningless. The functions here take a token in place of the values, which they
read from the array, and give it a sparse gradient (a dense one where that is to be differentiated again). Row_sparse results have a token
of their own.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from ...base import MXNetError
from ...kernels.gemm import csr as kernels
from ...ops import differentiation
from ...ops.grad_mode import enable_grad
from ...ops.unique import unique_inverse

if TYPE_CHECKING:
    from ...ops.registry import Operator


def token(values: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """Return a tensor of a shape, of the type and on the device of `values`, without memory of its own."""
    return values.new_zeros(()).expand(tuple(shape))


def by_rows(rows: torch.Tensor, values: torch.Tensor, shape: Sequence[int], unique: bool = True) -> torch.Tensor:
    """Return a gradient of some rows as a sparse tensor; `unique` says that the rows are in order, each once."""
    return torch.sparse_coo_tensor(rows.unsqueeze(0), values, tuple(shape), is_coalesced=unique or None, check_invariants=False)


_TORCHS = torch.float32, torch.float64  # the types of torch's sparse products on a CPU
# A dense product costs for each element, stored or not, a * (b + width), a sparse one for each stored one c * width (nanoseconds of one core).
_FILL, _SPARSE = 150, 6  # b, c / a
_MANY = 16  # times as many elements as are stored: from here on a kernel of ours is faster than torch's products
_NARROW = 8  # columns of the factor below which adding up products is faster than to sort the transpose first


def _filled(matrix: Any, number: torch.Tensor, columns: int, width: int) -> torch.Tensor | None:
    """Return a csr matrix, whose entries have `number` as columns, as a dense one; None if the sparse product with `width` columns is faster."""
    dtype, elements = matrix._values.dtype, matrix.shape[0] * columns
    if dtype in _TORCHS:
        if elements * (_FILL + width) > _SPARSE * width * len(number):
            return None
    elif not dtype.is_floating_point:
        return None
    dense = matrix._values.new_zeros((matrix.shape[0], columns))
    dense[matrix._row_numbers(), number] = matrix._values
    return dense


def times(matrix: Any, number: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Return the product of a csr matrix, whose entries have `number` as columns, and of a dense one."""
    if matrix.shape[0] * len(rows) >= _MANY * len(number):
        result = kernels.product(matrix._aux[0], number, matrix._values, rows)
        if result is not None:
            return result
    dense = _filled(matrix, number, len(rows), rows.shape[1])
    if dense is None:
        return _product(matrix, number, rows)
    return dense @ rows


def _product(matrix: Any, number: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """`times` by torch's product of sparse matrices, or by adding up where it has none."""
    if matrix._values.dtype in _TORCHS or matrix._values.dtype is not rows.dtype:
        _check_starts(matrix)
        return torch.sparse_csr_tensor(matrix._aux[0], number, matrix._values, (matrix.shape[0], len(rows)), check_invariants=False) @ rows
    return _added(matrix._row_numbers(), rows[number] * matrix._values.unsqueeze(1), matrix.shape[0])


def _check_starts(matrix: Any) -> None:
    """Raise an MXNetError unless a csr matrix on a CPU has the starts of rows within its values: torch's product believes them."""
    starts, count = matrix._aux[0], len(matrix._values)
    if starts.is_cpu and (int(starts[0]) != 0 or int(starts[-1]) != count or bool((starts.diff() < 0).any())):
        raise MXNetError(f"dot: indptr of the csr matrix must rise from 0 to the number of its values, {count}")


def _added(numbers: torch.Tensor, parts: torch.Tensor, count: int) -> torch.Tensor:
    """Return `count` rows, each the sum of the parts with its number."""
    return parts.new_zeros((count, parts.shape[1])).index_add_(0, numbers, parts)


def transposed_times(matrix: Any, number: torch.Tensor, columns: int, gradient: torch.Tensor) -> torch.Tensor:
    """Return the product of the transpose of such a matrix, which has so many columns, and of a dense one."""
    if matrix.shape[0] * columns >= _MANY * len(number):
        result = kernels.transposed_product(matrix._aux[0], number, matrix._values, columns, gradient)
        if result is not None:
            return result
    dense = _filled(matrix, number, columns, gradient.shape[1])
    if dense is not None:
        return dense.t() @ gradient
    if gradient.dtype in _TORCHS and gradient.shape[1] >= _NARROW:
        places = torch.stack([number, matrix._row_numbers()])
        return torch.sparse.mm(torch.sparse_coo_tensor(places, matrix._values, (columns, matrix.shape[0]), check_invariants=False), gradient)
    return _added(number, gradient[matrix._row_numbers()] * matrix._values.unsqueeze(1), columns)


class Dense(torch.autograd.Function):
    """All rows, as a tensor."""

    @staticmethod
    def forward(ctx: Any, token: torch.Tensor, array: Any) -> torch.Tensor:
        return array._readable().detach()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient, None


class RowByRow(torch.autograd.Function):
    """The token of the result of an operator that works row by row and maps zeros to zeros."""

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
        gradient_of_values, = differentiation.gradients([result], [values], [gradient])
        return gradient_of_values if rows is None else by_rows(rows, gradient_of_values, ctx.array.shape), None, None, None, None


class Product(torch.autograd.Function):
    """A csr matrix times a row_sparse one, of which it reads and differentiates the rows for columns that store something."""

    @staticmethod
    def forward(ctx: Any, token: torch.Tensor, matrix: Any, array: Any) -> torch.Tensor:
        used, ctx.number = unique_inverse(matrix._aux[1].long())
        ctx.used, ctx.matrix, ctx.shape = used, matrix, array.shape
        return times(matrix, ctx.number, array._readable_rows(used))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        if torch.is_grad_enabled():  # to be differentiated once more: with all rows
            parts = gradient[ctx.matrix._row_numbers()] * ctx.matrix._values.unsqueeze(1)
            return parts.new_zeros(ctx.shape).index_add(0, ctx.used[ctx.number], parts), None, None
        return by_rows(ctx.used, transposed_times(ctx.matrix, ctx.number, len(ctx.used), gradient), ctx.shape), None, None


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
        return by_rows(ctx.numbers, parts, ctx.shape, False), None, None
