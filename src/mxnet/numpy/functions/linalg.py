"""Products and ``mx.np.linalg``."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...base import MXNetError
from ...ops.docstrings import with_example
from ...suggestions import shortened
from ..frontend import NUMBERS, Array, function

if TYPE_CHECKING:
    from ..argument_types import Sizes

_ORDERS = {float("inf"): "inf", float("-inf"): "-inf", "inf": "inf", "-inf": "-inf", "fro": "fro", "f": "fro", "nuc": "nuc"}


@function()
def dot(F: Any, a: Any, b: Any, out: Array | None = None) -> Array:
    """Matrix product: sums over `a`'s last axis and `b`'s last but one."""
    return F.call("_np_dot", a, b, out=out)


@function()
def tensordot(F: Any, a: Any, b: Any, axes: Any = 2) -> Array:
    """Tensor contraction over pairs of axes, or over the last axes of `a` and as many first ones of `b`."""
    if isinstance(axes, int):
        return F.call("_npi_tensordot_int_axes", a, b, axes=axes)
    if len(axes) != 2:
        raise ValueError(f"tensordot: axes must be a number or a pair of lists, received {axes}")
    first, second = ((x,) if isinstance(x, int) else tuple(x) for x in axes)
    if len(first) != len(second):
        raise ValueError(f"Axes length mismatch: as many axes of `a` as of `b` expected, received {len(first)} and {len(second)}")
    return F.call("_npi_tensordot", a, b, a_axes_summed=first, b_axes_summed=second)


@function()
def inner(F: Any, a: Any, b: Any) -> Array:
    """The inner product over the last axes.

    Example
    -------
    >>> mx.np.inner(mx.np.array([1, 2]), mx.np.array([10, 100]))
    array(210.)
    """
    return tensordot(F, a, b, (-1, -1))


@function()
def outer(F: Any, a: Any, b: Any) -> Array:
    """The outer product of the flattened arrays.

    Example
    -------
    >>> mx.np.outer(mx.np.array([1, 2]), mx.np.array([10, 100]))
    array([[ 10., 100.],
           [ 20., 200.]])
    """
    return tensordot(F, a.flatten(), b.flatten(), 0)


@function()
def vdot(F: Any, a: Any, b: Any) -> Array:
    """The dot product of the flattened arrays.

    Example
    -------
    >>> mx.np.vdot(mx.np.array([[1, 2]]), mx.np.array([[10], [100]]))
    array(210.)
    """
    return tensordot(F, a.flatten(), b.flatten(), 1)


@function()
def einsum(F: Any, *operands: Any, **kwargs: Any) -> Array:
    """Einstein's summation: ``einsum('ij,jk->ik', a, b)``.

    Parameters
    ----------
    optimize : bool
        Accepted; the order of the products is always optimized.
    out : ndarray, optional
    """
    optimize, out = kwargs.pop("optimize", False), kwargs.pop("out", None)
    if kwargs:
        raise TypeError(f"Did not understand the following kwargs: {sorted(kwargs)}")
    if not operands or not isinstance(operands[0], str):
        raise TypeError("einsum: the first argument must be the subscripts, such as 'ij,jk->ik'; received "
                        f"{type(operands[0]).__name__ if operands else 'none'}")
    return F.call("_npi_einsum", *operands[1:], subscripts=operands[0], optimize=int(optimize not in (False, None)), out=out)


@function()
def kron(F: Any, a: Any, b: Any) -> Array:
    """The Kronecker product: every element of `a` times the array `b`, as blocks."""
    return F.call("_npi_kron", a, b)


@function()
def cross(F: Any, a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Array:
    """The cross products of the vectors along `axisa` and `axisb`, of 2 or 3 elements, placed along `axisc`; `axis` sets all three."""
    if axis is not None:
        axisa = axisb = axisc = axis
    return F.call("_npi_cross", a, b, a_axis=axisa, b_axis=axisb, c_axis=axisc)


@function()
def polyval(F: Any, p: Any, x: Any) -> Array:
    """The polynomial with the coefficients `p`, that of the highest power first, at the points `x`."""
    if not F.is_array(p) or not F.is_array(x):
        raise TypeError(f"polyval: `p` and `x` must be arrays, received {type(p)} and {type(x)}")
    return F.call("_npi_polyval", p, x)


@function("linalg")
def norm(F: Any, x: Any, ord: Any = None, axis: Sizes | None = None, keepdims: bool = False) -> Array:
    """A norm of vectors (one axis) or matrices (two), by default the root of the sum of squares.

    Parameters
    ----------
    ord : number or str, optional
        ``'inf'``, ``'-inf'``, ``'fro'``, ``'nuc'``, or a number; of matrices 1, -1, 2 or -2. Without `axis`, arrays of more than two axes hold
        matrices in the last two.

    Raises
    ------
    MXNetError
        If there is no such norm, or no such axis.
    """
    if axis is not None and not isinstance(axis, (int, tuple)):
        raise TypeError(f"'axis' must be None, an integer or a tuple of integers, received {shortened(axis)}.")
    ord = _ORDERS.get(ord, ord)
    if isinstance(ord, str) and ord not in _ORDERS.values():
        raise MXNetError(f"linalg.norm: `ord` must be a number, 'inf', '-inf', 'fro' or 'nuc', received {ord!r}")

    def call(number, flag):
        return F.call("_npi_norm", x, ord=number, axis=axis, keepdims=keepdims, flag=flag)

    if ord is None:
        return call(2, -2 if axis is None else 1)
    if ord in ("fro", "nuc"):
        return call(2, 1 if ord == "fro" else 2)
    if axis is None:
        return call(float(ord), -1)
    axis = (axis,) if isinstance(axis, int) else axis
    if not 0 < len(axis) <= 2:
        raise MXNetError(f"linalg.norm: one or two axes expected, received {axis}")
    if len(axis) == 2 and ord in ("inf", "-inf", 1, -1):
        rows, columns = axis
        # The axis that is summed over stays, with size 1: whatever the signs of both are, the other one is not renumbered.
        sums = F.call("_np_sum", F.call("_npi_abs", x), axis=columns if ord in ("inf", "-inf") else rows, keepdims=True)
        return F.call("_np_max" if ord in ("inf", 1) else "_np_min", sums, axis=axis, keepdims=keepdims)
    if ord in ("inf", "-inf"):
        return F.call("_np_max" if ord == "inf" else "_np_min", F.call("_npi_abs", x), axis=axis, keepdims=keepdims)
    return call(ord, 0 if len(axis) == 2 and ord in (2, -2) else -1)


@function("linalg")
def svd(F: Any, a: Any) -> tuple[Array, Array, Array]:
    """The singular value decomposition: UT, L, V with a = UT diag(L) V."""
    return tuple(F.call("_npi_svd", a))


def _matrix_function(name, doc, example=None, pair=False):
    def fn(F, a) -> Array | Any:
        out = F.call(f"_npi_{name}", a)
        return tuple(out) if pair else out

    fn.__name__, fn.__doc__ = name, doc if example is None else with_example(doc, example)
    function("linalg")(fn)




@function("linalg")
def cholesky(F: Any, a: Any, upper: bool = False) -> Array:
    """The lower triangular L with L L^T = a, or the upper triangular U with U^T U = a, for positive definite matrices."""
    return F.call("_npi_cholesky", a, lower=not upper)


_matrix_function("inv", "The inverse of matrices.", "mx.np.linalg.inv(mx.np.array([[2, 0], [0, 4]])) -> array([[0.5 , 0. ], [0. , 0.25]])")
_matrix_function("det", "The determinant of matrices.", "mx.np.linalg.det(mx.np.array([[[2, 1], [0, 3]]])) -> array([6.])")
_matrix_function("slogdet", "The sign of the determinant and the logarithm of its absolute value.",
                 "mx.np.linalg.slogdet(mx.np.array([[[-1, 0], [0, 1]]])) -> [array([-1.]), array([0.])]")
_matrix_function("eigvals", "The eigenvalues of matrices whose eigenvalues are real.")
_matrix_function("eig", "Eigenvalues and eigenvectors, as columns, of matrices whose eigenvalues are real.", pair=True)


@function("linalg")
def eigvalsh(F: Any, a: Any, UPLO: str = "L", upper: bool = False) -> Array:
    """The eigenvalues in ascending order of symmetric matrices given by their lower or upper triangle: ``upper=True`` means ``UPLO='U'``."""
    return F.call("_npi_eigvalsh", a, UPLO="U" if upper else UPLO)


@function("linalg")
def eigh(F: Any, a: Any, UPLO: str = "L", upper: bool = False) -> tuple[Array, Array]:
    """Eigenvalues in ascending order and eigenvectors, as columns, of symmetric matrices given by their lower or upper triangle.

    ``upper=True`` means ``UPLO='U'``.
    """
    return tuple(F.call("_npi_eigh", a, UPLO="U" if upper else UPLO))


@function("linalg")
def solve(F: Any, a: Any, b: Any) -> Array:
    """x with a x = b."""
    return F.call("_npi_solve", a, b)


@function("linalg")
def tensorinv(F: Any, a: Any, ind: int = 2) -> Array:
    """The inverse under tensordot over `ind` axes."""
    return F.call("_npi_tensorinv", a, ind=ind)


@function("linalg")
def tensorsolve(F: Any, a: Any, b: Any, axes: Any = None) -> Array:
    """x with ``tensordot(a, x, x.ndim) = b``; `axes` are moved to the end of `a` before."""
    return F.call("_npi_tensorsolve", a, b, a_axes=axes)


@function("linalg")
def pinv(F: Any, a: Any, rcond: Any = 1e-15, hermitian: bool = False, rtol: Any = None) -> Array:
    """The pseudo-inverse; singular values below `rcond`, or `rtol`, times the largest count as 0."""
    rcond = rcond if rtol is None else rtol
    if hermitian is True:
        raise NotImplementedError("hermitian is not supported yet...")
    if isinstance(rcond, NUMBERS):
        return F.call("_npi_pinv_scalar_rcond", a, rcond=rcond, hermitian=hermitian)
    return F.call("_npi_pinv", a, rcond, hermitian=hermitian)


@function("linalg")
def svdvals(F: Any, a: Any) -> Array:
    """The singular values, the largest first.

    Example
    -------
    >>> mx.np.linalg.svdvals(mx.np.array([[3, 0], [0, 4]]))
    array([4., 3.])
    """
    return svd(F, a)[1]


@function("linalg")
def vector_norm(F: Any, x: Any, ord: Any = None, axis: Sizes | None = None, keepdims: bool = False) -> Array:
    """The norm of the vectors that lie along axes, by default along all: the root of the sum of squares, or that of `ord`.

    Example
    -------
    >>> mx.np.linalg.vector_norm(mx.np.array([[3, 4], [6, 8]]), axis=1)
    array([ 5., 10.])
    """
    ord = 2 if ord is None else ord
    if isinstance(ord, str) and ord not in ("inf", "-inf"):
        raise ValueError(f"linalg.vector_norm: ord must be a number, 'inf' or '-inf', received {ord!r}")
    ord = float(ord)
    if isinstance(axis, int) or axis is None and ord == 2:
        return norm(F, x, None if axis is None else ord, axis, keepdims)
    size = F.call("_npi_abs", x)
    if ord in (float("inf"), float("-inf")):
        return F.call("_np_max" if ord > 0 else "_np_min", size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return F.call("_np_sum", F.call_scalar("_npi_not_equal_scalar", x, 0), axis=axis, keepdims=keepdims, dtype="float32")
    return F.call_scalar("_npi_power_scalar", F.call("_np_sum", F.call_scalar("_npi_power_scalar", size, ord), axis=axis, keepdims=keepdims), 1 / ord)


@function("linalg")
def matrix_norm(F: Any, x: Any, ord: Any = "fro", axis: Any = (-2, -1), keepdims: bool = False) -> Array:
    """The norm of the matrices in two axes; see `norm`.

    Raises
    ------
    ValueError
        If `axis` is no pair.

    Example
    -------
    >>> mx.np.linalg.matrix_norm(mx.np.array([[3, 0], [0, 4]]))
    array(5.)
    """
    if not isinstance(axis, tuple) or len(axis) != 2:
        raise ValueError(f"linalg.matrix_norm: axis must be a pair, received {axis!r}")
    return norm(F, x, ord, axis, keepdims)


@function("linalg")
def matrix_transpose(F: Any, a: Any) -> Array:
    """Exchange rows and columns of matrices.

    Raises
    ------
    ValueError
        If an array has less than two axes.

    Example
    -------
    >>> mx.np.linalg.matrix_transpose(mx.np.array([[1, 2]]))
    array([[1.],
           [2.]])
    """
    if getattr(a, "ndim", 2) < 2:
        raise ValueError(f"linalg.matrix_transpose: an array of at least 2 axes expected, received one of {a.ndim}")
    return F.call("_npi_swapaxes", a, dim1=-1, dim2=-2)


@function("linalg")
def vecdot(F: Any, a: Any, b: Any, axis: Sizes | None = None) -> Array:
    """The sums of products along `axis`; of the flattened arrays if it is None.

    Example
    -------
    >>> mx.np.linalg.vecdot(mx.np.array([[1, 2], [3, 4]]), mx.np.array([[1, 1], [2, 2]]), axis=1)
    array([ 3., 14.])
    """
    return F.call("_np_sum", F.call("_npi_multiply", a, b), axis=axis)


@function("linalg", "diagonal")
def _matrix_diagonal(F, a, offset=0):
    """The diagonals of matrices, along a new last axis.

    Example
    -------
    >>> mx.np.linalg.diagonal(mx.np.array([[[1, 2], [3, 4]]]))
    array([[1., 4.]])
    """
    return F.call("_np_diagonal", a, offset=offset, axis1=-2, axis2=-1)


@function("linalg", "trace")
def _matrix_trace(F, a, offset=0):
    """The sums of the diagonals of matrices.

    Example
    -------
    >>> mx.np.linalg.trace(mx.np.array([[[1, 2], [3, 4]]]))
    array([5.])
    """
    return F.call("_np_trace", a, offset=offset, axis1=-2, axis2=-1)


@function("linalg", "cross")
def _vector_cross(F, a, b, axis=-1):
    """The cross products of the vectors along `axis`.

    Example
    -------
    >>> mx.np.linalg.cross(mx.np.array([1, 0, 0]), mx.np.array([0, 1, 0]))
    array([0., 0., 1.])
    """
    return cross(F, a, b, axis=axis)


@function("linalg", "outer")
def _vector_outer(F, a, b):
    """The outer product of the flattened arrays.

    Example
    -------
    >>> mx.np.linalg.outer(mx.np.array([1, 2]), mx.np.array([10, 100]))
    array([[ 10., 100.],
           [ 20., 200.]])
    """
    return outer(F, a, b)


@function("linalg", "tensordot")
def _tensordot(F, a, b, axes=2):
    """Tensor contraction over pairs of axes, or over the last axes of `a` and as many first ones of `b`.

    Example
    -------
    >>> mx.np.linalg.tensordot(mx.np.array([[1, 2]]), mx.np.array([[3], [4]]), axes=1)
    array([[11.]])
    """
    return tensordot(F, a, b, axes)
