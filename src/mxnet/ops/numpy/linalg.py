"""NumPy operators of linear algebra. Matrices are the last two axes; all axes before them are batches."""
import math

import torch

from ...base import MXNetError
from ..axes import normalize_axis
from ..dtypes import name_of
from ..kernels import products
from ..linalg import square_rule
from ..norms import vector_norm
from ..registry import op
from ..schema import Axes, Shape
from ..shapes import unify
from ._common import promoted, require_float, require_one_type


def _require_square(operator, matrix):
    if matrix.dim() < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise MXNetError(f"{operator}: the last two axes must form square matrices, received shape {tuple(matrix.shape)}")


def _single(a):
    """Half precision as single: torch's CPU solvers know no float16."""
    return a.float() if a.dtype in (torch.float16, torch.bfloat16) else a


# -- products ------------------------------------------------------------------------------------------------------------

@op("_np_dot", heavy=True, complete_rule="shape")
def dot(a, b):
    """Matrix product: sums over `a`'s last axis and `b`'s last but one (its only one, for vectors); numbers multiply.

    Raises
    ------
    MXNetError
        If the axes differ in size, or the inputs are not floating-point arrays of one type.

    Example
    -------
    >>> mx.np.dot(mx.np.array([[1, 2], [3, 4]]), mx.np.array([1, 10]))
    array([21., 43.])
    """
    require_float("_np_dot", a, b)
    if a.dtype is not b.dtype:
        require_one_type("_np_dot", a, b)
    if a.dim() == 2 and b.dim() == 2:
        return products.matmul(a, b)
    if a.dim() == 0 or b.dim() == 0:
        return a * b
    if a.shape[-1] != b.shape[max(b.dim() - 2, 0)]:
        raise MXNetError(f"_np_dot: shapes {tuple(a.shape)} and {tuple(b.shape)} not aligned: {a.shape[-1]} against "
                         f"{b.shape[max(b.dim() - 2, 0)]}")
    return torch.tensordot(a, b, ([-1], [max(b.dim() - 2, 0)]))


@op("_npi_matmul", heavy=True)
def matmul(a, b):
    """The matrix products: (..., n, k) and (..., k, m) to (..., n, m). Batches broadcast; a vector counts as a row or a column.

    Raises
    ------
    MXNetError
        If an input is a scalar, sizes do not fit, or the inputs are not floating-point arrays of one type.

    Example
    -------
    >>> mx.np.matmul(mx.np.array([[1, 2], [3, 4]]), mx.np.array([[0, 1], [1, 0]]))
    array([[2., 1.],
           [4., 3.]])
    """
    require_float("_npi_matmul", a, b)
    if a.dtype is not b.dtype:
        require_one_type("_npi_matmul", a, b)
    if a.dim() == 0 or b.dim() == 0:
        raise MXNetError("_npi_matmul: arrays with at least one axis expected, received a scalar; use multiply")
    return products.matmul(a, b) if a.dim() == b.dim() == 2 else products.batched(a, b)


@matmul.shape_rule
def _(in_shapes, out_shapes):
    a, b = in_shapes
    if a and b:
        inner = -1 if len(b) == 1 else -2
        if a[-1] < 0:
            a = (*a[:-1], b[inner])
        elif b[inner] < 0:
            b = (*b[:-1], a[-1]) if inner == -1 else (*b[:-2], a[-1], b[-1])
    return [a, b], out_shapes


def _tensordot(operator, a, b, a_axes, b_axes):
    require_float(operator, a, b)
    require_one_type(operator, a, b)
    if len(a_axes) != len(b_axes):
        raise MXNetError(f"{operator}: as many axes of `a` as of `b` must be summed over, received {a_axes} and {b_axes}")
    a_axes = [normalize_axis(operator, i, a.dim(), "a_axes_summed") for i in a_axes]
    b_axes = [normalize_axis(operator, i, b.dim(), "b_axes_summed") for i in b_axes]
    for i, j in zip(a_axes, b_axes):
        if a.shape[i] != b.shape[j]:
            raise MXNetError(f"{operator}: the axes summed over differ in size: {a.shape[i]} (axis {i} of {tuple(a.shape)}) and {b.shape[j]} "
                             f"(axis {j} of {tuple(b.shape)})")
    return torch.tensordot(a, b, (a_axes, b_axes))


@op("_npi_tensordot")
def tensordot(a, b, *, a_axes_summed: Shape, b_axes_summed: Shape):
    """Tensor contraction over pairs of axes of two arrays.

    Raises
    ------
    MXNetError
        If the axes differ in number or size, or the inputs are not floating-point arrays of one type.

    Example
    -------
    >>> mx.np.tensordot(mx.np.ones((2, 3, 4)), mx.np.ones((4, 3, 5)), axes=([1, 2], [1, 0])).shape
    (2, 5)
    """
    return _tensordot("_npi_tensordot", a, b, a_axes_summed, b_axes_summed)


@op("_npi_tensordot_int_axes")
def tensordot_int_axes(a, b, *, axes: int):
    """Tensor contraction over the last `axes` axes of `a` and as many first ones of `b`."""
    if not 0 <= axes <= min(a.dim(), b.dim()):
        raise MXNetError(f"_npi_tensordot_int_axes: `axes` must be in [0, {min(a.dim(), b.dim())}], received {axes}")
    return _tensordot("_npi_tensordot_int_axes", a, b, range(a.dim() - axes, a.dim()), range(axes))


@op("_npi_einsum", key_var_num_args="num_args")
def einsum(*data, subscripts: str = "", optimize: int = 0):
    """Einstein's summation over the operands, such as ``ij,jk->ik``; the best order is found by torch whatever `optimize` is.

    Raises
    ------
    MXNetError
        If the subscripts name another number of operands than there are, or types differ.

    Example
    -------
    >>> mx.np.einsum('ij,j->i', mx.np.array([[1, 2], [3, 4]]), mx.np.array([1, 10]))
    array([21., 43.])
    """
    if not data:
        raise MXNetError("_npi_einsum: must specify the subscripts and at least one operand")
    require_one_type("_npi_einsum", *data)
    terms = subscripts.split("->")[0].count(",") + 1
    if terms != len(data):
        raise MXNetError(f"_npi_einsum: the subscripts {subscripts!r} are for {terms} operands, received {len(data)}")
    if "->" not in subscripts:
        # NumPy orders letters by the alphabet, with capitals first; torch does too but only among those it keeps.
        letters = subscripts.replace(",", "").replace(".", "").replace(" ", "")
        kept = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
        subscripts = f"{subscripts}->{'...' if '...' in subscripts else ''}{kept}"
    if data[0].dtype is torch.bool:  # torch multiplies no booleans
        return torch.einsum(subscripts, *(t.float() for t in data)).contiguous() != 0
    if not data[0].is_floating_point() and data[0].device.type != "cpu":  # CUDA multiplies matrices of floating-point numbers only
        return torch.einsum(subscripts, *(t.double() for t in data)).to(data[0].dtype)
    out = torch.einsum(subscripts, *data).to(data[0].dtype)
    shared = any(out.data_ptr() == t.data_ptr() for t in data)
    return out.clone(memory_format=torch.contiguous_format) if shared else out.contiguous()


# -- norms -------------------------------------------------------------------------------------------------------------

_MATRIX_ORDERS = (1, -1, 2, -2, math.inf, -math.inf)


@op("_npi_norm")
def norm(data, *, ord: float = 2.0, axis: Axes = None, flag: int = -1, keepdims: bool = False):
    """A norm over axes. Integers are converted to float32.

    `flag` tells which: -2 of all elements, -1 the `ord`-norm of vectors, 0 the largest (`ord` 2) or smallest (-2) singular value, 1 the
    root of the sum of squares, 2 the sum of the singular values. Without `axis`, arrays of more than two axes hold matrices in the last two.

    Raises
    ------
    MXNetError
        If `data` has no such axis, one is named twice, there are more than two, or `ord` is no norm of matrices although two axes are named.

    Example
    -------
    >>> mx.np.linalg.norm(mx.np.array([[3, 4], [6, 8]]), axis=1)
    array([ 5., 10.])
    """
    values = _single(data) if data.is_floating_point() else data.float()
    axes = None if axis is None else [normalize_axis("_npi_norm", i, data.dim()) for i in ((axis,) if isinstance(axis, int) else axis)]
    if axes is None and flag != -2 and data.dim() > 1:
        axes = [data.dim() - 2, data.dim() - 1]
    if axes is not None and (not 0 < len(axes) <= 2 or len(set(axes)) < len(axes)) or flag in (0, 2) and (axes is None or len(axes) != 2):
        expected = "two different axes" if flag in (0, 2) else "one axis, or two different ones,"
        raise MXNetError(f"_npi_norm: {expected} expected, received {axis} for data of {data.dim()} axes")
    if flag in (0, 2):
        out = torch.linalg.matrix_norm(values, "nuc" if flag == 2 else ord, axes, keepdims)
    elif flag == -1 and axes is not None and len(axes) == 2:
        if ord not in _MATRIX_ORDERS:
            raise MXNetError("_npi_norm: the norm of a matrix (two axes) has `ord` 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc', received "
                             f"{ord}; for norms of vectors name one axis")
        out = torch.linalg.matrix_norm(values, ord, axes, keepdims)
    else:
        out = vector_norm(values, 2 if flag in (-2, 1) else ord, axes, keepdims)
    return out.to(data.dtype) if data.is_floating_point() else out


# -- decompositions and systems of equations ---------------------------------------------------------------------------

@op("_npi_cholesky")
def cholesky(A, *, lower: bool = True):
    """The lower triangular L with L L^T = A, for positive definite A; unless `lower` the upper triangular L^T.

    Raises
    ------
    MXNetError
        If a matrix is not square, or not positive definite.

    Example
    -------
    >>> mx.np.linalg.cholesky(mx.np.array([[4, 2], [2, 5]]))
    array([[2., 0.],
           [1., 2.]])
    """
    _require_square("_npi_cholesky", A)
    require_float("_npi_cholesky", A)
    try:
        return torch.linalg.cholesky(A, upper=not lower).contiguous()  # LAPACK writes columns
    except torch.linalg.LinAlgError:
        raise MXNetError("_npi_cholesky: the matrix is not positive definite") from None


cholesky.shape_rule(square_rule)


def _signs(rows):
    """-1 for each row whose element of largest absolute value is negative, 1 for the others.

    So MXNet fixes the signs of singular vectors and of eigenvectors (`GesvdVecSign`, `SyevdEigenVecSigns`).
    """
    if not rows.shape[-1]:
        return rows.new_ones(rows.shape[:-1])
    largest = rows.detach().gather(-1, rows.detach().abs().argmax(-1, keepdim=True)).squeeze(-1)
    return torch.ones_like(largest).masked_fill_(largest < 0, -1)


@op("_npi_svd", num_outputs=3)
def svd(A):
    """The singular value decomposition UT, L, V with A = UT diag(L) V, for matrices with at most as many rows as columns.

    Raises
    ------
    MXNetError
        If a matrix has more rows than columns.

    Example
    -------
    >>> ut, l, v = mx.np.linalg.svd(mx.np.array([[1, 2], [2, -2]]))
    >>> l.round(3), mx.np.dot(ut * l, v).round(3)
    (array([3., 2.]), array([[ 1.,  2.],
           [ 2., -2.]]))
    """
    require_float("_npi_svd", A)
    if A.dim() < 2 or A.shape[-2] > A.shape[-1]:
        raise MXNetError(f"_npi_svd: A must have at least 2 axes and at most as many rows as columns, received shape {tuple(A.shape)}")
    u, s, vh = torch.linalg.svd(A, full_matrices=False)
    signs = _signs(vh)
    return (u * signs.unsqueeze(-2)).contiguous(), s, (vh * signs.unsqueeze(-1)).contiguous()


def _real_system(name, a, b):
    """Both sides of a system of equations as MXNet solves it: in float32 if that is their type, otherwise in float64."""
    for t in (a, b):
        if t.dtype in (torch.float16, torch.bool):
            raise MXNetError(f"{name}: {name_of(t.dtype)} is not supported; convert with astype('float32')")
    return (a, b) if a.dtype is b.dtype is torch.float32 else (a.double(), b.double())


def _system_types(in_types, out_types, **_):
    if None in in_types:
        return in_types, out_types
    return in_types, [torch.float32 if all(t is torch.float32 for t in in_types) else torch.float64]


@op("_npi_solve")
def solve(A, B):
    """X with A X = B, in float64 unless both are float32.

    Raises
    ------
    MXNetError
        If the matrices are not square, or singular.

    Example
    -------
    >>> mx.np.linalg.solve(mx.np.array([[2, 0], [1, 1]]), mx.np.array([4, 5]))
    array([2., 3.])
    """
    _require_square("_npi_solve", A)
    A, B = _real_system("_npi_solve", A, B)
    if B.dim() == A.dim() - 1:
        return torch.linalg.solve(A, B.unsqueeze(-1)).squeeze(-1)
    return torch.linalg.solve(A, B).contiguous()


@op("_npi_tensorinv")
def tensorinv(a, *, ind: int = 2):
    """The inverse under tensordot over `ind` axes: ``tensordot(tensorinv(a, ind), a, ind)`` is the identity.

    Raises
    ------
    MXNetError
        If the first `ind` axes do not hold as many elements as the others.

    Example
    -------
    >>> mx.np.linalg.tensorinv(mx.np.eye(6).reshape(6, 2, 3), ind=1).shape
    (2, 3, 6)
    """
    if ind <= 0:
        raise MXNetError(f"_npi_tensorinv: `ind` must be positive, received {ind}")
    require_float("_npi_tensorinv", a)
    if math.prod(a.shape[:ind]) != math.prod(a.shape[ind:]):
        raise MXNetError(f"_npi_tensorinv: the first {ind} axes and the others must hold as many elements, received {tuple(a.shape)}")
    return torch.linalg.tensorinv(a, ind).contiguous()


@op("_npi_tensorsolve")
def tensorsolve(a, b, *, a_axes: Shape = ()):
    """x with ``tensordot(a, x, x.ndim) = b``, in float64 unless both are float32; `a_axes` are moved to the end of `a` before.

    Example
    -------
    >>> mx.np.linalg.tensorsolve(2 * mx.np.eye(4).reshape(2, 2, 4), mx.np.ones((2, 2)))
    array([0.5, 0.5, 0.5, 0.5])
    """
    a, b = _real_system("_npi_tensorsolve", a, b)
    axes = [normalize_axis("_npi_tensorsolve", i, a.dim(), "a_axes") for i in a_axes]
    a = a.permute([i for i in range(a.dim()) if i not in axes] + axes)
    shape = tuple(a.shape)[-(a.dim() - b.dim()):]
    size = math.prod(shape)
    return torch.linalg.solve(a.reshape(-1, size), b.reshape(-1)).reshape(shape)


solve.dtype_rule(_system_types)
tensorsolve.dtype_rule(_system_types)


def _pinv(A, rcond):
    require_float("_npi_pinv", A)
    if A.dim() < 2:
        raise MXNetError(f"_npi_pinv: A must have at least 2 axes, received shape {tuple(A.shape)}")
    return torch.linalg.pinv(A, rtol=rcond)


@op("_npi_pinv")
def pinv(A, rcond, *, hermitian: bool = False):
    """The pseudo-inverse; singular values below `rcond` times the largest count as 0. `hermitian` changes nothing, as in MXNet.

    Raises
    ------
    MXNetError
        If `A` has fewer than two axes, or is not a floating-point array.

    Example
    -------
    >>> mx.np.linalg.pinv(mx.np.array([[1], [1]])).round(3)
    array([[0.5, 0.5]])
    """
    return _pinv(A, rcond.detach().to(A.dtype))


@op("_npi_pinv_scalar_rcond")
def pinv_scalar_rcond(A, *, rcond: float = 1e-15, hermitian: bool = False):
    """The pseudo-inverse; singular values below `rcond` times the largest count as 0. `hermitian` changes nothing, as in MXNet."""
    return _pinv(A, rcond)


def _real_eigen(name, A):
    _require_square(name, A)
    if A.dtype in (torch.float16, torch.bool):
        raise MXNetError(f"{name}: {name_of(A.dtype)} is not supported; convert with astype('float32')")
    return A if A.dtype is torch.float32 else A.double()


def _finite(name, A):
    """`A`, which LAPACK would look for eigenvalues in beyond its memory if it held NaN."""
    if A.device.type != "meta" and not bool(A.isfinite().all()):
        raise MXNetError(f"{name}: a matrix holds infinity or NaN")
    return A


@op("_npi_eig", num_outputs=2, no_gradient=True)
def eig(A):
    """Eigenvalues and eigenvectors, as columns, of matrices whose eigenvalues are real.

    Raises
    ------
    MXNetError
        If the last two axes differ in size, the type is float16 or bool, or a value is not finite.

    Example
    -------
    >>> values, vectors = mx.np.linalg.eig(mx.np.array([[2, 0], [0, 1]]))
    >>> values, vectors
    (array([2., 1.]), array([[1., 0.],
           [0., 1.]]))
    """
    values, vectors = torch.linalg.eig(_finite("_npi_eig", _real_eigen("_npi_eig", A)))
    return values.real.contiguous(), vectors.real.contiguous()


@op("_npi_eigvals", no_gradient=True)
def eigvals(A):
    """The eigenvalues of matrices whose eigenvalues are real.

    Raises
    ------
    MXNetError
        If the last two axes differ in size, the type is float16 or bool, or a value is not finite.

    Example
    -------
    >>> mx.np.linalg.eigvals(mx.np.array([[2, 1], [0, 1]]))
    array([2., 1.])
    """
    return torch.linalg.eigvals(_finite("_npi_eigvals", _real_eigen("_npi_eigvals", A))).real.contiguous()


@op("_npi_eigh", num_outputs=2)
def eigh(A, *, UPLO: str = "L"):
    """Eigenvalues in ascending order and eigenvectors, as columns, of symmetric matrices given by their lower or upper triangle.

    Raises
    ------
    MXNetError
        If the last two axes differ in size, or the type is float16 or bool.

    Example
    -------
    >>> values, vectors = mx.np.linalg.eigh(mx.np.array([[1, 2], [2, -2]]))
    >>> values.round(3), vectors.round(3)
    (array([-3.,  2.]), array([[-0.447,  0.894],
           [ 0.894,  0.447]]))
    """
    values, vectors = torch.linalg.eigh(_real_eigen("_npi_eigh", A), UPLO)
    return values, (vectors * _signs(vectors.mT).unsqueeze(-2)).contiguous()


@op("_npi_eigvalsh")
def eigvalsh(A, *, UPLO: str = "L"):
    """The eigenvalues in ascending order of symmetric matrices given by their lower or upper triangle.

    Raises
    ------
    MXNetError
        If the last two axes differ in size, or the type is float16 or bool.

    Example
    -------
    >>> mx.np.linalg.eigvalsh(mx.np.array([[1, 2], [2, -2]])).round(3)
    array([-3.,  2.])
    """
    return torch.linalg.eigvalsh(_real_eigen("_npi_eigvalsh", A), UPLO)


def _eigen_types(in_types, out_types, **_):
    given = in_types[0]
    found = given if given in (None, torch.float32) else torch.float64
    return in_types, [found] * len(out_types)


for _operator in (eig, eigvals, eigh, eigvalsh):
    _operator.dtype_rule(_eigen_types)
dot.dtype_rule(promoted)


@dot.shape_rule
def _(in_shapes, out_shapes):
    a, b = in_shapes
    if a is None or b is None:
        return in_shapes, out_shapes
    if not a or not b:
        return in_shapes, [unify(out_shapes[0], a or b)]
    summed = max(len(b) - 2, 0)
    # A parameter on either side gets its size from the other, as in the tests of Gluon with deferred initialization.
    size = unify((a[-1],), (b[summed],))[0]
    a, b = (*a[:-1], size), (*b[:summed], size, *b[summed + 1:])
    return [a, b], [unify(out_shapes[0], (*a[:-1], *b[:summed], *b[summed + 1:]))]
