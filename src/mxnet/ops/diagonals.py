"""Operators that extract, insert or sum diagonals and triangles of matrices.

Matrices are the last two axes; all axes before them are batches.
"""
import torch

from ..base import MXNetError
from .linalg import of_squares_rule, require_square
from .registry import op
from .shapes import unify


@op("_linalg_sumlogdiag", aliases=("linalg_sumlogdiag",), complete_rule="shape", amp="float32")
def sumlogdiag(A):
    """The sum of the logarithms of the diagonal of square matrices (..., n, n); shape (1,) for one matrix.

    Of a Cholesky factor it is half the logarithm of the determinant.

    Raises
    ------
    MXNetError
        If the last two axes differ in size.

    Example
    -------
    >>> mx.nd.linalg.sumlogdiag(mx.nd.array([[1, 7], [0, 10]])).asnumpy().round(3)
    array([2.303], dtype=float32)
    """
    require_square("linalg_sumlogdiag", A)
    total = A.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return total if total.dim() else total.reshape(1)


sumlogdiag.shape_rule(of_squares_rule(lambda batches, n: batches or (1,)))


def _check_offset(operator, A, offset):
    require_square(operator, A)
    if abs(offset) >= A.shape[-1]:
        raise MXNetError(f"{operator}: illegal offset {offset} for matrices of size {A.shape[-1]}")


@op("_linalg_extractdiag", aliases=("linalg_extractdiag",), complete_rule="shape", amp="float32")
def extractdiag(A, *, offset: int = 0):
    """The diagonal `offset` (above the main one if positive) of square matrices: (..., n, n) to (..., n - abs(offset)).

    Raises
    ------
    MXNetError
        If the last two axes differ in size, or there is no such diagonal.

    Example
    -------
    >>> mx.nd.linalg.extractdiag(mx.nd.array([[1, 2], [3, 4]]), offset=1).asnumpy()
    array([2.], dtype=float32)
    """
    _check_offset("linalg_extractdiag", A, offset)
    return torch.diagonal_copy(A, offset, -2, -1)


def _extracted(count):
    """The shape rule of an operator that takes vectors from square matrices, of ``count(n - abs(offset))`` numbers."""
    def vectors(batches, n, *, offset, **_):
        if n < 0:
            return (*batches, -1)
        return (*batches, count(n - abs(offset))) if abs(offset) < n else None
    return of_squares_rule(vectors)


extractdiag.shape_rule(_extracted(lambda rest: rest))


@op("_linalg_makediag", aliases=("linalg_makediag",), complete_rule="shape", amp="float32")
def makediag(A, *, offset: int = 0):
    """Square matrices of zeros with `A` as the diagonal `offset` (above the main one if positive): (..., n) to (..., m, m), m = n + abs(offset).

    Example
    -------
    >>> mx.nd.linalg.makediag(mx.nd.array([1, 2])).asnumpy()
    array([[1., 0.],
           [0., 2.]], dtype=float32)
    """
    return torch.diag_embed(A, offset)


@makediag.shape_rule
def _(in_shapes, out_shapes, *, offset):
    data = in_shapes[0]
    if not data:
        return in_shapes, out_shapes
    size = data[-1] + abs(offset) if data[-1] >= 0 else -1
    return in_shapes, [unify(out_shapes[0], (*data[:-1], size, size))]


def _triangle_positions(size, offset, lower, device):
    """Rows and columns of the triangle of a `size` x `size` matrix that starts at diagonal `offset`.

    A lower triangle is read row by row, an upper one column by column, as MXNet does (la_op-inl.h).
    """
    rows, columns = torch.tril_indices(size, size, -abs(offset), device=device)
    return (rows, columns) if offset < 0 or offset == 0 and lower else (columns, rows)


@op("_linalg_extracttrian", aliases=("linalg_extracttrian",), complete_rule="shape", amp="float32")
def extracttrian(A, *, offset: int = 0, lower: bool = True):
    """The elements of a triangle, as a vector: from diagonal `offset` up if it is positive, down if negative, else by `lower`.

    Raises
    ------
    MXNetError
        If the last two axes differ in size, or there is no such diagonal.

    Example
    -------
    >>> mx.nd.linalg.extracttrian(mx.nd.array([[1, 2], [3, 4]])).asnumpy()
    array([1., 3., 4.], dtype=float32)
    >>> mx.nd.linalg.extracttrian(mx.nd.array([[1, 2], [3, 4]]), lower=False).asnumpy()
    array([1., 2., 4.], dtype=float32)
    """
    _check_offset("linalg_extracttrian", A, offset)
    rows, columns = _triangle_positions(A.shape[-1], offset, lower, A.device)
    return A[..., rows, columns]


extracttrian.shape_rule(_extracted(lambda rest: rest * (rest + 1) // 2))


@op("_linalg_maketrian", aliases=("linalg_maketrian",), complete_rule="shape", amp="float32")
def maketrian(A, *, offset: int = 0, lower: bool = True):
    """Square matrices of zeros with the elements `A` in a triangle; the inverse of extracttrian.

    Raises
    ------
    MXNetError
        If the last axis does not hold as many elements as a triangle.

    Example
    -------
    >>> mx.nd.linalg.maketrian(mx.nd.array([1, 3, 4])).asnumpy()
    array([[1., 0.],
           [3., 4.]], dtype=float32)
    """
    size = _side(A.shape[-1]) + abs(offset)
    rows, columns = _triangle_positions(size, offset, lower, A.device)
    flat = A.new_zeros((*A.shape[:-1], size * size))
    return flat.index_copy(-1, rows * size + columns, A).reshape(*A.shape[:-1], size, size)


def _side(count):
    """The side of a triangle of `count` elements."""
    side = round(((8 * count + 1) ** 0.5 - 1) / 2)
    if side * (side + 1) // 2 != count:
        raise MXNetError(f"linalg_maketrian: the last axis must hold n (n + 1) / 2 elements, received {count}")
    return side


@maketrian.shape_rule
def _(in_shapes, out_shapes, *, offset, lower):
    data = in_shapes[0]
    if not data:
        return in_shapes, out_shapes
    size = _side(data[-1]) + abs(offset) if data[-1] >= 0 else -1
    return in_shapes, [unify(out_shapes[0], (*data[:-1], size, size))]
