"""NumPy operators of linear algebra. Matrices are the last two axes; all axes before them are batches."""
import math

import torch

from ...base import MXNetError
from ..axes import normalize_axis
from ..dtypes import name_of
from ..norms import vector_norm
from ..registry import op
from ..schema import Axes, Shape
from ..shapes import product, unify
from .common import agree, broadcast, reduced, require_float, shape_of_inputs


def _require_square(operator, matrix):
    if matrix.dim() < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise MXNetError(f"{operator}: the last two axes must form square matrices, received shape {tuple(matrix.shape)}")


def _square(shape):
    """The batch and the size of square matrices of a partial shape, or None if they are none."""
    return (shape[:-2], max(shape[-2:])) if len(shape) > 1 and agree(*shape[-2:]) else None


def _single(a):
    """Return half precision as float32: torch's CPU solvers do not support float16."""
    return a.float() if a.dtype in (torch.float16, torch.bfloat16) else a


# -- norms -------------------------------------------------------------------------------------------------------------

_MATRIX_ORDERS = (1, -1, 2, -2, math.inf, -math.inf)


@op("_npi_norm", complete_rule="shape")
def norm(data, *, ord: float = 2.0, axis: Axes = None, flag: int = -1, keepdims: bool = False):
    """A norm over axes. Integers are converted to float32.

    `flag` selects it: -2 of all elements, -1 the `ord`-norm of vectors, 0 the largest (`ord` 2) or smallest (-2) singular value, 1 the
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
    axes = _norm_axes(data.dim(), ord, axis, flag)
    if flag in (0, 2):
        out = torch.linalg.matrix_norm(values, "nuc" if flag == 2 else ord, axes, keepdims)
    elif flag == -1 and axes is not None and len(axes) == 2:
        out = torch.linalg.matrix_norm(values, ord, axes, keepdims)
    else:
        out = vector_norm(values, 2 if flag in (-2, 1) else ord, axes, keepdims)
    return out.to(data.dtype) if data.is_floating_point() else out


def _norm_axes(ndim, ord, axis, flag):
    axes = None if axis is None else [normalize_axis("_npi_norm", i, ndim) for i in ((axis,) if isinstance(axis, int) else axis)]
    if axes is None and flag != -2 and ndim > 1:
        axes = [ndim - 2, ndim - 1]
    if axes is not None and (not 0 < len(axes) <= 2 or len(set(axes)) < len(axes)) or flag in (0, 2) and (axes is None or len(axes) != 2):
        expected = "two different axes" if flag in (0, 2) else "one axis, or two different ones,"
        raise MXNetError(f"_npi_norm: {expected} expected, received {axis} for data of {ndim} axes")
    if flag in (-1, 0) and axes is not None and len(axes) == 2 and ord not in _MATRIX_ORDERS:
        raise MXNetError("_npi_norm: the norm of a matrix (two axes) has `ord` 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc', received "
                         f"{ord}; for norms of vectors name one axis")
    return axes


@norm.shape_rule
@shape_of_inputs
def _(shape, *, ord, axis, flag, keepdims):
    axes = _norm_axes(len(shape), ord, axis, flag)
    return None if 0 in shape else reduced(shape, axes, keepdims)  # some norms need an element


# -- decompositions and systems of equations ---------------------------------------------------------------------------

@op("_npi_cholesky", complete_rule="shape")
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
        raise MXNetError(f"_npi_cholesky: the matrix of shape {tuple(A.shape)} is not positive definite") from None


@cholesky.shape_rule
def _(in_shapes, out_shapes, **_):
    shape = unify(in_shapes[0], out_shapes[0])
    if shape is None or _square(shape) is None:
        return in_shapes, out_shapes
    batch, n = _square(shape)
    return [(*batch, n, n)], [(*batch, n, n)]


def _signs(rows):
    """-1 for each row whose element of largest absolute value is negative, 1 for the others.

    So MXNet fixes the signs of singular vectors and of eigenvectors (`GesvdVecSign`, `SyevdEigenVecSigns`).
    """
    if not rows.shape[-1]:
        return rows.new_ones(rows.shape[:-1])
    largest = rows.detach().gather(-1, rows.detach().abs().argmax(-1, keepdim=True)).squeeze(-1)
    return torch.ones_like(largest).masked_fill_(largest < 0, -1)


@op("_npi_svd", num_outputs=3, complete_rule="shape")
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


@svd.shape_rule
@shape_of_inputs
def _(shape):
    if len(shape) < 2 or shape[-2] > shape[-1] >= 0:
        return None
    batch, m = shape[:-2], shape[-2]
    return [(*batch, m, m), (*batch, m), shape]


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


@op("_npi_solve", complete_rule="shape")
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


@solve.shape_rule
@shape_of_inputs
def _(a, b):
    if _square(a) is None or not b:
        return None
    batch, n = _square(a)
    vector = len(b) in (1, len(a) - 1)
    rows = b[-1] if vector else b[-2]
    if not agree(n, rows):
        return None
    return (*broadcast(batch, b[:-1] if vector else b[:-2]), max(n, rows), *(() if vector else b[-1:]))


@op("_npi_tensorinv", complete_rule="shape")
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


@tensorinv.shape_rule
@shape_of_inputs
def _(shape, *, ind):
    return shape[ind:] + shape[:ind] if 0 < ind < len(shape) and agree(product(shape[:ind]), product(shape[ind:])) else None


@op("_npi_tensorsolve", complete_rule="shape")
def tensorsolve(a, b, *, a_axes: Shape = ()):
    """x with ``tensordot(a, x, x.ndim) = b``, in float64 unless both are float32; `a_axes` are moved to the end of `a` before.

    Example
    -------
    >>> mx.np.linalg.tensorsolve(2 * mx.np.eye(4).reshape(2, 2, 4), mx.np.ones((2, 2)))
    array([0.5, 0.5, 0.5, 0.5])
    """
    a, b = _real_system("_npi_tensorsolve", a, b)
    a = a.permute(_with_last(a_axes, a.dim()))
    shape = tuple(a.shape)[-(a.dim() - b.dim()):]
    size = math.prod(shape)
    return torch.linalg.solve(a.reshape(-1, size), b.reshape(-1)).reshape(shape)


def _with_last(axes, ndim):
    """All axes in order, except that some are the last ones."""
    axes = [normalize_axis("_npi_tensorsolve", i, ndim, "a_axes") for i in axes]
    return [i for i in range(ndim) if i not in axes] + axes


@tensorsolve.shape_rule
@shape_of_inputs
def _(a, b, *, a_axes):
    order = _with_last(a_axes, len(a))
    if len(order) > len(a) or len(a) <= len(b):
        return None
    moved = [a[i] for i in order]
    shape = tuple(moved[len(b):])
    return shape if product(shape) and agree(product(shape), product(moved[:len(b)]), product(b)) else None


solve.dtype_rule(_system_types)
tensorsolve.dtype_rule(_system_types)


def _pinv(A, rcond):
    require_float("_npi_pinv", A)
    if A.dim() < 2:
        raise MXNetError(f"_npi_pinv: A must have at least 2 axes, received shape {tuple(A.shape)}")
    return torch.linalg.pinv(A, rtol=rcond)


@op("_npi_pinv", complete_rule="shape")
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


@op("_npi_pinv_scalar_rcond", complete_rule="shape")
def pinv_scalar_rcond(A, *, rcond: float = 1e-15, hermitian: bool = False):
    """The pseudo-inverse; singular values below `rcond` times the largest count as 0. `hermitian` changes nothing, as in MXNet."""
    return _pinv(A, rcond)


def _pinv_shape(shape, rcond=(), /, **_):
    if len(shape) < 2 or rcond and 0 in shape:
        return None
    batch = broadcast(shape[:-2], rcond)
    if -1 in shape and batch != shape[:-2]:  # torch does not check `rcond` for empty arrays
        return None
    return (*batch, shape[-1], shape[-2])


pinv.shape_rule(shape_of_inputs(_pinv_shape))
pinv_scalar_rcond.shape_rule(shape_of_inputs(_pinv_shape))


def _real_eigen(name, A):
    _require_square(name, A)
    if A.dtype in (torch.float16, torch.bool):
        raise MXNetError(f"{name}: {name_of(A.dtype)} is not supported; convert with astype('float32')")
    return A if A.dtype is torch.float32 else A.double()


def _finite(name, A):
    """`A`, which LAPACK would look for eigenvalues in beyond its memory if it held NaN."""
    if A.device.type != "meta" and not bool(A.isfinite().all()):
        raise MXNetError(f"{name}: finite numbers expected, received a matrix that holds infinity or NaN")
    return A


@op("_npi_eig", num_outputs=2, no_gradient=True, complete_rule="shape")
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


@op("_npi_eigvals", no_gradient=True, complete_rule="shape")
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


@op("_npi_eigh", num_outputs=2, complete_rule="shape")
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


@op("_npi_eigvalsh", complete_rule="shape")
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
    dtype = given if given in (None, torch.float32) else torch.float64
    return in_types, [dtype] * len(out_types)


def _eigen_shapes(count):
    """A shape rule: the eigenvalues, and if `count` is 2 the eigenvectors."""
    def shapes(shape, *, UPLO="L"):
        if _square(shape) is None or UPLO.upper() not in ("L", "U"):
            return None
        batch, n = _square(shape)
        return [(*batch, n), (*batch, n, n)][:count]
    return shape_of_inputs(shapes)


for _operator in (eig, eigvals, eigh, eigvalsh):
    _operator.dtype_rule(_eigen_types)
    _operator.shape_rule(_eigen_shapes(_operator.num_outputs))
