"""Linear algebra."""
import builtins
import math
from typing import Any, NamedTuple

import torch

from ...base import MXNetError
from ...ops.numpy import unsigned
from ...ops.numpy.contraction import integer_product
from ...ops.numpy.matrices import cross as _cross_product
from ..multiarray import ndarray
from .calls import apply, pair, require_arrays
from .manipulation import axes_of, matrix_transpose
from .statistics import sum_type

__all__ = ["cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power", "matrix_rank",
           "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm"]


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: ndarray
    eigenvectors: ndarray


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: ndarray
    R: ndarray


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: ndarray
    logabsdet: ndarray


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: ndarray
    S: ndarray
    Vh: ndarray


def matmul(x1: ndarray, x2: ndarray, /) -> ndarray:
    """Return the matrix products; batches broadcast, a vector counts as a row or a column.

    Raises
    ------
    MXNetError
        If one is a scalar, or sizes do not fit.
    """
    x1, x2, dtype = pair("matmul", x1, x2)
    if not x1.ndim or not x2.ndim:
        raise MXNetError("matmul: arrays with at least one axis expected, received a scalar; use multiply")
    return apply("matmul", lambda a, b: _product(a.to(dtype), b.to(dtype)), x1, x2)


def _product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.matmul(a, b) if a.is_floating_point() or a.is_complex() else integer_product(a, b)


def vecdot(x1: ndarray, x2: ndarray, /, *, axis: int = -1) -> ndarray:
    """Return the sums of conj(x1) * x2 along `axis`; the other axes broadcast.

    Raises
    ------
    ValueError
        If the axis differs in size.
    """
    x1, x2, dtype = pair("vecdot", x1, x2)
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: axis {axis} of both must have one size, received shapes {x1.shape} and {x2.shape}")

    def dot(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return unsigned.by_bits(lambda s, t: (s.conj() * t).sum(axis, dtype=s.dtype), a.to(dtype), b.to(dtype))

    return apply("vecdot", dot, x1, x2)


def tensordot(x1: ndarray, x2: ndarray, /, *, axes: Any = 2) -> ndarray:
    """Return the sums over pairs of axes, or over the last `axes` of `x1` and as many first ones of `x2`."""
    x1, x2, dtype = pair("tensordot", x1, x2)
    if isinstance(axes, int):
        first, second = tuple(range(x1.ndim - axes, x1.ndim)), tuple(range(axes))
    else:
        first, second = axes_of("tensordot", tuple(axes[0]), x1.ndim), axes_of("tensordot", tuple(axes[1]), x2.ndim)
    rows, columns = [i for i in range(x1.ndim) if i not in first], [i for i in range(x2.ndim) if i not in second]
    sizes = [x1.shape[i] for i in first]
    if sizes != [x2.shape[i] for i in second]:
        raise ValueError(f"tensordot: the axes {first} of shape {x1.shape} and {second} of shape {x2.shape} must have the same sizes")
    count = math.prod(sizes)
    shape = [x1.shape[i] for i in rows] + [x2.shape[i] for i in columns]

    def contracted(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a = a.to(dtype).permute([*rows, *first]).reshape(math.prod(shape[:len(rows)]), count)
        b = b.to(dtype).permute([*second, *columns]).reshape(count, math.prod(shape[len(rows):]))
        return _product(a, b).reshape(shape)

    return apply("tensordot", contracted, x1, x2)


def outer(x1: ndarray, x2: ndarray, /) -> ndarray:
    """Return the products of each element of one vector with each of the other."""
    x1, x2, dtype = pair("outer", x1, x2)
    return apply("outer", lambda a, b: unsigned.by_bits(torch.mul, a.to(dtype)[:, None], b.to(dtype)[None]), x1, x2)


def cross(x1: ndarray, x2: ndarray, /, *, axis: int = -1) -> ndarray:
    """Return the cross products of the vectors of three elements along `axis`; the other axes broadcast.

    Raises
    ------
    ValueError
        If the vectors have another length.
    """
    x1, x2, dtype = pair("cross", x1, x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"cross: vectors of 3 elements expected along axis {axis}, received shapes {x1.shape} and {x2.shape}")
    return apply("cross", lambda a, b: _cross_product(a.to(dtype), b.to(dtype), a_axis=axis, b_axis=axis, c_axis=axis), x1, x2)


def diagonal(x: ndarray, /, *, offset: int = 0) -> ndarray:
    """Return the diagonals of matrices."""
    return apply("diagonal", lambda t: torch.diagonal(t, offset, -2, -1).clone(memory_format=torch.contiguous_format), x)


def trace(x: ndarray, /, *, offset: int = 0, dtype: Any = None) -> ndarray:
    """Return the sums of the diagonals of matrices; those of integers have 64 bits."""
    require_arrays("trace", x)
    target = sum_type(dtype, x._data.dtype)
    return apply("trace", lambda t: unsigned.by_bits(lambda s: s.sum(-1, dtype=s.dtype), torch.diagonal(t, offset, -2, -1).to(target)), x)


def matrix_power(x: ndarray, n: int, /) -> ndarray:
    """Return the product of `n` times the same square matrix; of its inverse for a negative `n`."""
    return apply("matrix_power", torch.linalg.matrix_power, x, n=n)


def cholesky(x: ndarray, /, *, upper: builtins.bool = False) -> ndarray:
    """Return the lower triangular L with L L^H = x, or the upper triangular U with U^H U = x."""
    return apply("cholesky", torch.linalg.cholesky, x, upper=upper)


def det(x: ndarray, /) -> ndarray:
    """Return the determinants of matrices."""
    return apply("det", torch.linalg.det, x)


def slogdet(x: ndarray, /) -> SlogdetResult:
    """Return the signs of the determinants, and the logarithms of their absolute values."""
    return SlogdetResult(*apply("slogdet", torch.linalg.slogdet, x))


def inv(x: ndarray, /) -> ndarray:
    """Return the inverses of matrices."""
    return apply("inv", torch.linalg.inv, x)


def pinv(x: ndarray, /, *, rtol: Any = None) -> ndarray:
    """Return the pseudo-inverses; singular values below `rtol` times the largest count as 0."""
    return _with_tolerance("pinv", lambda t, tolerance: torch.linalg.pinv(t, rtol=tolerance), x, rtol)


def matrix_rank(x: ndarray, /, *, rtol: Any = None) -> ndarray:
    """Return how many singular values are above `rtol` times the largest.

    Raises
    ------
    MXNetError
        If `x` has fewer than two axes.
    """
    require_arrays("matrix_rank", x)
    if x.ndim < 2:
        raise MXNetError(f"matrix_rank: matrices expected, received an array of shape {x.shape}")
    return _with_tolerance("matrix_rank", lambda t, tolerance: torch.linalg.matrix_rank(t, rtol=tolerance), x, rtol)


def _with_tolerance(name: str, function: Any, x: ndarray, rtol: Any) -> ndarray:
    if isinstance(rtol, ndarray):
        return apply(name, function, x, rtol)
    tolerance = max(x.shape[-2:], default=0) * torch.finfo(x._data.dtype).eps if rtol is None else rtol
    return apply(name, lambda t: function(t, tolerance), x)


def qr(x: ndarray, /, *, mode: str = "reduced") -> QRResult:
    """Return Q, with orthonormal columns, and the upper triangular R with Q R = x; with ``mode='complete'`` a square Q."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode must be 'reduced' or 'complete', received {mode!r}")
    return QRResult(*apply("qr", torch.linalg.qr, x, mode=mode))


def solve(x1: ndarray, x2: ndarray, /) -> ndarray:
    """Return the x with x1 x = x2; `x2` is a vector only if it has one axis, else matrices, and batches broadcast."""
    x1, x2, dtype = pair("solve", x1, x2)

    def solved(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a, b = a.to(dtype), b.to(dtype)
        if b.dim() == 1:
            return torch.linalg.solve(a, b[:, None])[..., 0]
        batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        return torch.linalg.solve(a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:]))

    return apply("solve", solved, x1, x2)


def svd(x: ndarray, /, *, full_matrices: builtins.bool = True) -> SVDResult:
    """Return the singular value decompositions: U, S and Vh with x = U diag(S) Vh."""
    return SVDResult(*apply("svd", torch.linalg.svd, x, full_matrices=full_matrices))


def svdvals(x: ndarray, /) -> ndarray:
    """Return the singular values, the largest first."""
    return apply("svdvals", torch.linalg.svdvals, x)


def eigh(x: ndarray, /) -> EighResult:
    """Return the eigenvalues of symmetric matrices in ascending order, and the eigenvectors as columns."""
    return EighResult(*apply("eigh", torch.linalg.eigh, x))


def eigvalsh(x: ndarray, /) -> ndarray:
    """Return the eigenvalues of symmetric matrices in ascending order."""
    return apply("eigvalsh", torch.linalg.eigvalsh, x)


def matrix_norm(x: ndarray, /, *, keepdims: builtins.bool = False, ord: Any = "fro") -> ndarray:
    """Return the norms of matrices: ``'fro'``, ``'nuc'``, or that of 1, 2, inf or their negatives; None is ``'fro'``."""
    return apply("matrix_norm", lambda t: torch.linalg.matrix_norm(t, "fro" if ord is None else ord, keepdim=keepdims), x)


def vector_norm(x: ndarray, /, *, axis: Any = None, keepdims: builtins.bool = False, ord: Any = 2) -> ndarray:
    """Return the norms of the vectors that lie along axes, by default along all."""
    require_arrays("vector_norm", x)
    axes = axes_of("vector_norm", axis, x.ndim)
    if not axes:
        return apply("vector_norm", lambda t: (t != 0).to(t.abs().dtype) if ord == 0 else t.abs(), x)
    return apply("vector_norm", lambda t: torch.linalg.vector_norm(t, ord, axes, keepdims), x)
