"""Operators of linear algebra: dot, batch_dot, khatri_rao and the linalg_* family but for `diagonals`.

Matrices are the last two axes; all axes before them are batches.
"""
from collections.abc import Callable
from typing import Any, Literal, Optional

import torch

from .. import util
from ..base import MXNetError
from ..kernels.gemm import tensor_cores
from ..kernels.gemm.matmul import batched, matmul
from ..kernels.gemm.triangular_solve import inverse as compiled_inverse
from ..kernels.gemm.triangular_solve import multiply_triangular, solve_triangular
from .axes import normalize_axis
from .registry import op
from .shapes import product, unify

_Stype = Optional[Literal["csr", "default", "row_sparse"]]


def _product(a, b):
    """The products of two batches of matrices, on GPUs as TF32, which `dot` is not."""
    return tensor_cores.product(a, b) if a.is_cuda else batched(a, b)


@op("dot", aliases=("_sparse_dot",), compute_bound=True, complete_rule=True, amp="widest")
def dot(lhs, rhs, *, transpose_a: bool = False, transpose_b: bool = False, forward_stype: _Stype = None):
    """The product over the last axis of `lhs` (the first, with `transpose_a`) and the first of `rhs` (the last, with `transpose_b`).

    For matrices the matrix product, for vectors the inner product, as an array of shape (1,). `forward_stype` names the storage
    of the result for sparse inputs.

    Example
    -------
    >>> mx.nd.dot(mx.nd.ones((2, 3, 4)), mx.nd.ones((4, 5))).shape
    (2, 3, 5)
    """
    if lhs.dim() == 2 and rhs.dim() == 2:
        return matmul(lhs.t() if transpose_a else lhs, rhs.t() if transpose_b else rhs)
    shape = _dot_shape(tuple(lhs.shape), tuple(rhs.shape), transpose_a, transpose_b)
    return torch.tensordot(lhs, rhs, ([0 if transpose_a else -1], [-1 if transpose_b else 0])).reshape(shape)


def _dot_shape(lhs, rhs, transpose_a, transpose_b):
    if not lhs or not rhs:
        raise MXNetError(f"dot: scalar tensors are not supported, received shapes {lhs} and {rhs}; multiply instead")
    if len(lhs) == len(rhs) == 1 and (transpose_a or transpose_b):
        raise MXNetError(f"dot: cannot transpose vectors, received shapes {lhs} and {rhs} with transpose_a={transpose_a}, transpose_b={transpose_b}")
    a, b = (lhs[0] if transpose_a else lhs[-1]), (rhs[-1] if transpose_b else rhs[0])
    if a != b and a >= 0 and b >= 0:
        raise MXNetError(f"dot shape error: {lhs} X {rhs} (transpose_a={transpose_a}, transpose_b={transpose_b}): "
                         f"the axes multiplied over have sizes {a} and {b}")
    return (*(lhs[1:] if transpose_a else lhs[:-1]), *(rhs[:-1] if transpose_b else rhs[1:])) or (1,)


@dot.shape_rule
def _(in_shapes, out_shapes, *, transpose_a, transpose_b, forward_stype):
    out = out_shapes[0]
    if in_shapes[0] is not None and in_shapes[1] is not None:
        out = unify(out, _dot_shape(in_shapes[0], in_shapes[1], transpose_a, transpose_b))
    return in_shapes, [out]


@dot.gradient_storage_rule
def _(position, in_stypes, attributes):
    if position == 1 and in_stypes[0] == "csr" and not attributes["transpose_a"] and not attributes["transpose_b"]:
        return "row_sparse"
    return None


@op("batch_dot", complete_rule="shape", aliases=("_npx_batch_dot",), compute_bound=True, amp="widest")
def batch_dot(lhs, rhs, *, transpose_a: bool = False, transpose_b: bool = False, forward_stype: _Stype = None):
    """The matrix products of two batches: (..., n, k) and (..., k, m) to (..., n, m); the transposes swap the last two axes.

    Raises
    ------
    MXNetError
        If the leading axes differ, there are none, or the inner sizes differ.

    Example
    -------
    >>> x, y = mx.nd.array([[[1, 2]], [[3, 4]]]), mx.nd.array([[[5, 6]], [[7, 8]]])
    >>> mx.nd.batch_dot(x, y, transpose_b=True).asnumpy()
    array([[[17.]],
           [[53.]]], dtype=float32)
    """
    if lhs.dim() < 3 or lhs.shape[:-2] != rhs.shape[:-2]:
        raise MXNetError(f"batch_dot shape error: both inputs must be N-D (N >= 3) with equal leading axes, received "
                         f"{tuple(lhs.shape)} and {tuple(rhs.shape)}")
    return _product(lhs.mT if transpose_a else lhs, rhs.mT if transpose_b else rhs)


@batch_dot.shape_rule
def _(in_shapes, out_shapes, *, transpose_a, transpose_b, forward_stype):
    lhs, rhs = in_shapes
    out = out_shapes[0]
    if lhs is None or rhs is None or len(lhs) < 3 or len(lhs) != len(rhs):
        return in_shapes, out_shapes
    # As in MXNet, nothing is inferred before the sizes of the contracted axes are known.
    if lhs[-1] < 0 or rhs[-2] < 0:
        return in_shapes, out_shapes
    n, k = lhs[-2:][::-1] if transpose_a else lhs[-2:]
    other, m = rhs[-2:][::-1] if transpose_b else rhs[-2:]
    if k != other and k >= 0 and other >= 0:
        raise MXNetError(f"batch_dot shape error: {lhs} X {rhs} (transpose_a={transpose_a}, transpose_b={transpose_b})")
    return in_shapes, [unify(out, (*unify(lhs[:-2], rhs[:-2]), n, m))]


@op("khatri_rao", complete_rule="shape", key_var_num_args="num_args", amp="float32")
def khatri_rao(*args):
    """The column-wise Kronecker product of matrices: (n1, k), (n2, k), ... to (n1 * n2 * ..., k).

    Raises
    ------
    MXNetError
        If the numbers of columns differ.

    Example
    -------
    >>> mx.nd.khatri_rao(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([[10, 100]])).asnumpy()
    array([[ 10., 200.],
           [ 30., 400.]], dtype=float32)
    """
    out = args[0]
    for matrix in args[1:]:
        if matrix.shape[1] != out.shape[1]:
            raise MXNetError("khatri_rao: matrices with equally many columns expected, "
                             f"received {out.shape[1]} and {matrix.shape[1]}")
        out = (out.unsqueeze(1) * matrix.unsqueeze(0)).reshape(-1, out.shape[1])
    return out.clone() if len(args) == 1 else out


@khatri_rao.shape_rule
def _(in_shapes, out_shapes):
    if len(in_shapes) == 1:
        return in_shapes, [unify(in_shapes[0], out_shapes[0])]
    columns = {s[1] for s in in_shapes if s is not None and len(s) == 2 and s[1] >= 0}
    if len(columns) > 1 or any(s is None or len(s) != 2 for s in in_shapes):
        return in_shapes, out_shapes  # the operator's call raises the error
    count = columns.pop() if columns else -1
    return [(s[0], count) for s in in_shapes], [unify(out_shapes[0], (product(s[0] for s in in_shapes), count))]


def require_square(operator: str, matrix: torch.Tensor) -> None:
    if matrix.dim() < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise MXNetError(f"{operator}: the last two axes must form square matrices, received shape {tuple(matrix.shape)}")


def _axis_of_rows(operator, a, b, axis):
    """The axis that holds the rows of the matrices of these shapes.

    Raises
    ------
    MXNetError
        If there are too few axes, not equally many, or the axis is the last.
    """
    if len(a) < 2 or len(a) != len(b):
        raise MXNetError(f"{operator}: A and B with equally many axes, at least 2, expected, received {tuple(a)} and {tuple(b)}")
    axis = normalize_axis(operator, axis, len(a))
    if axis == len(a) - 1:
        raise MXNetError(f"{operator}: `axis` names the rows and cannot be the last axis, which holds the columns; received {axis} for {len(a)} axes")
    return axis


def _multiply(operator, a, b, transpose_a, transpose_b, alpha, axis):
    axis = _axis_of_rows(operator, a.shape, b.shape, axis)
    moved = axis != a.dim() - 2
    if moved:
        a, b = a.movedim(axis, -2), b.movedim(axis, -2)
    if a.shape[:-2] != b.shape[:-2]:
        raise MXNetError(f"{operator}: batches of A and B (all axes but the matrix's) must be equal, received {tuple(a.shape)} and "
                         f"{tuple(b.shape)}")
    out = _product(a.mT if transpose_a else a, b.mT if transpose_b else b)
    out = out if alpha == 1 else alpha * out
    return out.movedim(-2, axis).contiguous() if moved else out


@op("_linalg_gemm", aliases=("linalg_gemm",), complete_rule="shape", amp="float32")
def gemm(A, B, C, *, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0, beta: float = 1.0, axis: int = -2):
    """``alpha * op(A) op(B) + beta * C``: (..., n, k), (..., k, m) and (..., n, m) to (..., n, m), where op transposes or not.

    `axis` holds the rows of the matrices; the last axis always holds their columns.

    Raises
    ------
    MXNetError
        If the matrices do not fit, or differ in their batches.

    Example
    -------
    >>> a, b, c = mx.nd.array([[1, 2]]), mx.nd.array([[3], [4]]), mx.nd.array([[100]])
    >>> mx.nd.linalg.gemm(a, b, c, alpha=2, beta=0.5).asnumpy()
    array([[72.]], dtype=float32)
    """
    product = _multiply("linalg_gemm", A, B, transpose_a, transpose_b, alpha, axis)
    if product.shape == C.shape and product.dtype == C.dtype:
        return product.add_(C, alpha=beta)  # in place: no other tensor shares its memory
    return product.add(C, alpha=beta)


@op("_linalg_gemm2", aliases=("linalg_gemm2",), compute_bound=True, complete_rule="shape", amp="float32")
def gemm2(A, B, *, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0, axis: int = -2):
    """``alpha * op(A) op(B)``: (..., n, k) and (..., k, m) to (..., n, m), where op transposes or not.

    `axis` holds the rows of the matrices; the last axis always holds their columns.

    Raises
    ------
    MXNetError
        If the matrices do not fit, or differ in their batches.

    Example
    -------
    >>> mx.nd.linalg.gemm2(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([[1, 1]]), transpose_b=True).asnumpy()
    array([[3.],
           [7.]], dtype=float32)
    """
    return _multiply("linalg_gemm2", A, B, transpose_a, transpose_b, alpha, axis)


def _product_shape(operator, a, b, transpose_a, transpose_b, axis):
    axis = _axis_of_rows(operator, a, b, axis)
    inner, other = a[axis] if transpose_a else a[-1], b[-1] if transpose_b else b[axis]
    if inner != other and min(inner, other) >= 0:
        raise MXNetError(f"{operator}: as many columns of A ({inner}) as rows of B ({other}) expected, received shapes {a} and {b} with "
                         f"transpose_a={transpose_a}, transpose_b={transpose_b}")
    out = [unify((x,), (y,))[0] if i != axis else -1 for i, (x, y) in enumerate(zip(a[:-1], b[:-1]))]
    out[axis] = a[-1] if transpose_a else a[axis]
    return (*out, b[axis] if transpose_b else b[-1])


@gemm.shape_rule
def _(in_shapes, out_shapes, *, transpose_a, transpose_b, alpha, beta, axis):
    a, b, c = in_shapes
    out = unify(out_shapes[0], c)
    if a is not None and b is not None:
        out = unify(out, _product_shape("linalg_gemm", a, b, transpose_a, transpose_b, axis))
    return [a, b, out], [out]


@gemm2.shape_rule
def _(in_shapes, out_shapes, *, transpose_a, transpose_b, alpha, axis):
    a, b = in_shapes
    out = out_shapes[0]
    if a is not None and b is not None:
        out = unify(out, _product_shape("linalg_gemm2", a, b, transpose_a, transpose_b, axis))
    return in_shapes, [out]


@op("_linalg_potrf", aliases=("linalg_potrf",), complete_rule="shape", amp="float32")
def potrf(A, *, lower: bool = True):
    """The Cholesky factor of symmetric positive definite matrices (..., n, n): lower triangular L with L Lᵀ = A, else upper U with Uᵀ U = A.

    Raises
    ------
    MXNetError
        If a matrix is not square, or not positive definite.

    Example
    -------
    >>> mx.nd.linalg.potrf(mx.nd.array([[4, 2], [2, 5]])).asnumpy()
    array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    require_square("linalg_potrf", A)
    return torch.linalg.cholesky(A, upper=not lower).contiguous()  # LAPACK writes columns


def square_rule(in_shapes: list[Any], out_shapes: list[Any], **_: Any) -> Any:
    """Return the shapes of an operator from square matrices to square matrices of the same size."""
    shape = unify(in_shapes[0], out_shapes[0])
    if not _may_be_square(shape):
        return in_shapes, out_shapes
    return [_square(shape)], [_square(shape)]


def _may_be_square(shape):
    """Return False if no square matrices have this partial shape; the shape rule then leaves the error to the operator's call."""
    return shape is not None and len(shape) >= 2 and not -1 < min(shape[-2:]) < max(shape[-2:])


def _square(shape):
    """Return a partial shape of square matrices, whose last two sizes are unified."""
    return unify(shape, (*shape[:-2], shape[-1], shape[-2]))


def of_squares_rule(*results: Any) -> Callable:
    """Return the shape rule of an operator on square matrices: ``result(batches, size, **attributes)`` is the shape of each output, or None."""
    def rule(in_shapes, out_shapes, **attributes):
        data = in_shapes[0]
        if not _may_be_square(data):
            return in_shapes, out_shapes
        data = _square(data)
        return [data], [unify(out, result(data[:-2], data[-1], **attributes)) for out, result in zip(out_shapes, results)]
    return rule


potrf.shape_rule(square_rule)


@potrf.gradient
def _(out_grads, inputs, outputs, *, lower=True):
    # Of P, the lower triangle of Lᵀ dL with half its diagonal, (S + Sᵀ) / 2 with S = L⁻ᵀ P L⁻¹ (Murray, 2016).
    factor, gradient = (t if lower else t.mT for t in (outputs[0], out_grads[0]))
    product = torch.tril(torch.matmul(factor.mT, gradient))
    product = product - torch.diag_embed(product.diagonal(dim1=-2, dim2=-1)) / 2
    both = solve_triangular(factor, solve_triangular(factor.mT, product, upper=True), upper=False, left=False)
    return (both + both.mT) / 2


@op("_linalg_potri", aliases=("linalg_potri",), complete_rule="shape", amp="float32")
def potri(A, *, lower: bool = True):
    """The inverse of the matrix whose Cholesky factor is `A`: (A Aᵀ)⁻¹ of lower, (Aᵀ A)⁻¹ of upper triangular A.

    Raises
    ------
    MXNetError
        If the last two axes differ in size.

    Example
    -------
    >>> factor = mx.nd.linalg.potrf(mx.nd.array([[4, 2], [2, 2]]))
    >>> mx.nd.linalg.potri(factor).asnumpy()
    array([[ 0.5, -0.5],
           [-0.5,  1. ]], dtype=float32)
    """
    require_square("linalg_potri", A)
    return torch.cholesky_inverse(A, upper=not lower).contiguous()


potri.shape_rule(square_rule)


@potri.gradient
def _(out_grads, inputs, outputs, *, lower=True):
    # A is read as triangular, so nothing flows into its other triangle.
    factor, both = inputs[0].mT, out_grads[0] + out_grads[0].mT
    if lower:
        return -torch.tril(solve_triangular(factor, torch.matmul(outputs[0], both), upper=True, left=False))
    return -torch.triu(solve_triangular(factor, torch.matmul(both, outputs[0]), upper=False))


def _require_triangular_system(operator, a, b, rightside):
    require_square(operator, a)
    if a.dim() != b.dim() or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-1 if rightside else -2]:
        raise MXNetError(f"{operator}: A must be square matrices that fit the {'columns' if rightside else 'rows'} of B, in as many batches; "
                         f"received {tuple(a.shape)} and {tuple(b.shape)}")


def _triangle(A, lower):
    return torch.tril(A) if lower else torch.triu(A)


@op("_linalg_trmm", aliases=("linalg_trmm",), complete_rule="shape", amp="float32")
def trmm(A, B, *, transpose: bool = False, rightside: bool = False, lower: bool = True, alpha: float = 1.0):
    """``alpha * op(A) B`` (``alpha * B op(A)`` with `rightside`), where only the `lower` or upper triangle of A (..., n, n) counts.

    Raises
    ------
    MXNetError
        If A is not square or does not fit B.

    Example
    -------
    >>> mx.nd.linalg.trmm(mx.nd.array([[1, 99], [2, 3]]), mx.nd.array([[1], [1]])).asnumpy()
    array([[1.],
           [5.]], dtype=float32)
    """
    _require_triangular_system("linalg_trmm", A, B, rightside)
    out = multiply_triangular(A.mT if transpose else A, B, upper=lower == transpose, left=not rightside)
    if out is None:
        triangle = _triangle(A, lower)
        triangle = triangle.mT if transpose else triangle
        out = batched(B, triangle) if rightside else batched(triangle, B)
    return out if alpha == 1 else alpha * out


@op("_linalg_trsm", aliases=("linalg_trsm",), complete_rule="shape", amp="float32")
def trsm(A, B, *, transpose: bool = False, rightside: bool = False, lower: bool = True, alpha: float = 1.0):
    """The X that solves ``op(A) X = alpha * B`` (``X op(A) = alpha * B`` with `rightside`), for triangular A (..., n, n).

    Raises
    ------
    MXNetError
        If A is not square or does not fit B.

    Example
    -------
    >>> mx.nd.linalg.trsm(mx.nd.array([[2, 0], [1, 1]]), mx.nd.array([[4], [5]])).asnumpy()
    array([[2.],
           [3.]], dtype=float32)
    """
    _require_triangular_system("linalg_trsm", A, B, rightside)
    out = solve_triangular(A.mT if transpose else A, B, upper=lower == transpose, left=not rightside).contiguous()
    return out if alpha == 1 else alpha * out


for _operator in (trmm, trsm):
    @_operator.shape_rule
    def _(in_shapes, out_shapes, *, rightside, **_):
        a, b = in_shapes
        b = unify(b, out_shapes[0])
        if b is not None:
            if len(b) < 2:
                return in_shapes, out_shapes
            n = b[-1] if rightside else b[-2]
            a = unify(a, (*b[:-2], n, n))
        return [a, b], [b]


@op("_linalg_syrk", aliases=("linalg_syrk",), complete_rule="shape", amp="float32")
def syrk(A, *, transpose: bool = False, alpha: float = 1.0):
    """``alpha * A Aᵀ``, or ``alpha * Aᵀ A`` with `transpose`, for A (..., n, k).

    Example
    -------
    >>> mx.nd.linalg.syrk(mx.nd.array([[1, 2], [3, 4]])).asnumpy()
    array([[ 5., 11.],
           [11., 25.]], dtype=float32)
    """
    out = batched(A.mT, A) if transpose else batched(A, A.mT)
    return out if alpha == 1 else alpha * out


@syrk.shape_rule
def _(in_shapes, out_shapes, *, transpose, alpha):
    data = in_shapes[0]
    if data is None or len(data) < 2:
        return in_shapes, out_shapes
    size = data[-1] if transpose else data[-2]
    return in_shapes, [unify(out_shapes[0], (*data[:-2], size, size))]


@op("_linalg_gelqf", aliases=("linalg_gelqf",), complete_rule="shape", num_outputs=2, amp="float32")
def gelqf(A):
    """The LQ factors (Q, L) of matrices of full rank with no more rows than columns: A = L Q, Q Qᵀ = I, L lower triangular.

    Raises
    ------
    MXNetError
        If a matrix has more rows than columns.

    Example
    -------
    >>> q, l = mx.nd.linalg.gelqf(mx.nd.array([[3, 4]]))
    >>> mx.nd.abs(q).asnumpy().round(3), mx.nd.dot(l, q).asnumpy().round(3)
    (array([[0.6, 0.8]], dtype=float32), array([[3., 4.]], dtype=float32))
    """
    if A.dim() < 2 or A.shape[-2] > A.shape[-1]:
        raise MXNetError(f"linalg_gelqf: the last axis must not be smaller than the one before, received shape {tuple(A.shape)}")
    q, r = torch.linalg.qr(A.mT)
    return q.mT.contiguous(), r.mT.contiguous()


@gelqf.shape_rule
def _(in_shapes, out_shapes):
    data = in_shapes[0]
    if data is None or len(data) < 2 or -1 < data[-1] < data[-2]:
        return in_shapes, out_shapes
    return in_shapes, [unify(out_shapes[0], data), unify(out_shapes[1], (*data[:-1], data[-2]))]


@gelqf.gradient
def _(out_grads, inputs, outputs):
    dq, dl = out_grads
    q, lower = outputs
    m = torch.matmul(lower.mT, dl) - torch.matmul(dq, q.mT)
    symmetric = torch.tril(m) + torch.tril(m, -1).mT
    return solve_triangular(lower.mT, dq + torch.matmul(symmetric, q), upper=True)


@op("_linalg_syevd", aliases=("linalg_syevd",), complete_rule="shape", num_outputs=2, amp="float32")
def syevd(A):
    """Eigenvectors (rows of U) and ascending eigenvalues L of symmetric matrices: A = Uᵀ diag(L) U.

    Raises
    ------
    MXNetError
        If the last two axes differ in size.

    Example
    -------
    >>> u, l = mx.nd.linalg.syevd(mx.nd.array([[1, 2], [2, -2]]))
    >>> u.asnumpy().round(3), l.asnumpy().round(3)
    (array([[-0.447,  0.894],
           [ 0.894,  0.447]], dtype=float32), array([-3.,  2.], dtype=float32))
    """
    require_square("linalg_syevd", A)
    values, vectors = torch.linalg.eigh(A)
    rows = vectors.mT
    # MXNet fixes the sign by the element of largest absolute value (la_op-inl.h).
    largest = rows.gather(-1, rows.abs().argmax(-1, keepdim=True))
    return torch.where(largest < 0, -rows, rows).contiguous(), values


syevd.shape_rule(of_squares_rule(lambda batches, n: (*batches, n, n), lambda batches, n: (*batches, n)))


@syevd.gradient
def _(out_grads, inputs, outputs):
    (du, dl), (u, values) = out_grads, outputs
    x = torch.matmul(du, u.mT)
    gaps = values.unsqueeze(-1) - values.unsqueeze(-2)
    # Equal eigenvalues would divide by zero; MXNet bounds the gap from below by these.
    smallest = 1e-30 if values.dtype == torch.float32 else 1e-100
    below = torch.tril((x - x.mT) / (2 * gaps.clamp_min(smallest)), -1)
    return torch.matmul(u.mT, torch.matmul(below + below.mT + torch.diag_embed(dl), u))


def _at_least_1d(tensor):
    return tensor.reshape(1) if tensor.dim() == 0 and not util.is_np_shape() else tensor


def _number_of_each(batches, n):
    """The shape of one number for each of the square matrices, see `_at_least_1d`."""
    return batches if batches or util.is_np_shape() else (1,)


@op("_linalg_inverse", aliases=("linalg_inverse", "_npi_inv"), complete_rule="shape", amp="float32")
def inverse(A):
    """The inverses of square matrices (..., n, n).

    Raises
    ------
    MXNetError
        If a matrix is not square or has no inverse.

    Example
    -------
    >>> mx.nd.linalg.inverse(mx.nd.array([[2, 0], [0, 4]])).asnumpy()
    array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    require_square("linalg_inverse", A)
    return compiled_inverse(A).contiguous()


inverse.shape_rule(square_rule)


@op("_linalg_det", aliases=("linalg_det", "_npi_det"), complete_rule="shape", output_names=("output0",), amp="float32")
def det(A):
    """The determinants of square matrices: (..., n, n) to (...); shape (1,) for one matrix.

    Raises
    ------
    MXNetError
        If the last two axes differ in size.

    Example
    -------
    >>> mx.nd.linalg.det(mx.nd.array([[2, 1], [0, 3]])).asnumpy()
    array([6.], dtype=float32)
    """
    require_square("linalg_det", A)
    return _at_least_1d(torch.linalg.det(A))


det.shape_rule(of_squares_rule(_number_of_each))


@op("_linalg_slogdet", aliases=("linalg_slogdet", "_npi_slogdet"), complete_rule="shape", num_outputs=2, amp="float32")
def slogdet(A):
    """The signs and the logarithms of the absolute values of the determinants; 0 and -inf for a singular matrix.

    Raises
    ------
    MXNetError
        If the last two axes differ in size.

    Example
    -------
    >>> sign, logarithm = mx.nd.linalg.slogdet(mx.nd.array([[-1, 0], [0, 1]]))
    >>> sign.asnumpy(), logarithm.asnumpy()
    (array([-1.], dtype=float32), array([0.], dtype=float32))
    """
    require_square("linalg_slogdet", A)
    sign, logarithm = torch.linalg.slogdet(A)
    return _at_least_1d(sign), _at_least_1d(logarithm)


slogdet.shape_rule(of_squares_rule(_number_of_each, _number_of_each))


@slogdet.gradient
def _(out_grads, inputs, outputs):
    # Of a singular matrix 0, as in MXNet: its logarithm is -inf.
    singular = (outputs[0] == 0).view(inputs[0].shape[:-2])[..., None, None]
    inverse = compiled_inverse(torch.where(singular, torch.eye(inputs[0].shape[-1], dtype=inputs[0].dtype, device=inputs[0].device), inputs[0]))
    return inverse.mT * out_grads[1].view(inputs[0].shape[:-2])[..., None, None].masked_fill(singular, 0)
