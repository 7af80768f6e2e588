"""NumPy operators on matrices and vectors that MXNet 2.0 added: triangles, cross and Kronecker products; and cumulative products."""
import torch

from ...base import MXNetError
from ..axes import normalize_axis
from ..integers import convert
from ..registry import op
from ..schema import Device, DType, Optional
from ..shapes import product
from . import unsigned
from .common import broadcast, promoted, shape_of_inputs
from .creation import stated_type
from .promotion import promoted_pair


@op("_npi_triu", complete_rule="shape")
def triu(data, *, k: int = 0):
    """Matrices with zeros below the `k`-th diagonal; a vector counts as the rows of a matrix.

    Raises
    ------
    MXNetError
        If `data` has no axis.

    Example
    -------
    >>> mx.np.triu(mx.np.array([[1, 2], [3, 4]]))
    array([[1., 2.],
           [0., 4.]])
    """
    if not data.dim():
        raise MXNetError("_npi_triu: an array with at least one axis expected, received a scalar")
    return unsigned.by_bits(torch.triu, data.expand(data.shape[0], data.shape[0]) if data.dim() == 1 else data, k)


triu.shape_rule(shape_of_inputs(lambda shape, *, k: (shape * 2 if len(shape) == 1 else shape) or None))


@op("_npi_tri", complete_rule="shape")
def tri(*, N: int, M: Optional[int] = None, k: int = 0, dtype: DType = torch.float32, device: Device = None):
    """A matrix (N, M) with ones on and below the `k`-th diagonal, zeros elsewhere. `M` is `N` by default.

    Example
    -------
    >>> mx.np.tri(2, 3, k=1)
    array([[1., 1., 0.],
           [1., 1., 1.]])
    """
    return torch.tril(torch.ones(_tri_shape(N=N, M=M), dtype=torch.uint8, device=device), k).to(dtype)


def _tri_shape(*, N, M, **_):
    return max(N, 0), max(N if M is None else M, 0)


tri.shape_rule(shape_of_inputs(_tri_shape))
tri.dtype_rule(stated_type)


@op("_npi_kron", complete_rule="shape")
def kron(a, b):
    """The Kronecker product: every element of `a` times the array `b`, as blocks.

    Example
    -------
    >>> mx.np.kron(mx.np.array([1, 10]), mx.np.array([[1, 2]]))
    array([[ 1.,  2., 10., 20.]])
    """
    a, b = promoted_pair("_npi_kron", a, b)
    return unsigned.by_bits(torch.kron, a.contiguous(), b.contiguous())


kron.dtype_rule(promoted)


@kron.shape_rule
@shape_of_inputs
def _(a, b):
    ndim = max(len(a), len(b))
    a, b = ((1,) * (ndim - len(s)) + tuple(s) for s in (a, b))
    return tuple(x * y if min(x, y) >= 0 else -1 for x, y in zip(a, b))


@op("_npi_cross", complete_rule="shape")
def cross(a, b, *, a_axis: int = -1, b_axis: int = -1, c_axis: int = -1):
    """The cross products of the vectors along the axes `a_axis` and `b_axis`, of 2 or 3 elements. The other axes broadcast.

    The result has its vectors along `c_axis`; of two vectors of 2 elements it is the number that their third element would be.

    Raises
    ------
    MXNetError
        If the vectors have another length.

    Example
    -------
    >>> mx.np.cross(mx.np.array([1, 0, 0]), mx.np.array([0, 1, 0]))
    array([0., 0., 1.])
    """
    a, b = promoted_pair("_npi_cross", a, b)
    a = a.movedim(normalize_axis("_npi_cross", a_axis, a.dim(), "a_axis"), -1)
    b = b.movedim(normalize_axis("_npi_cross", b_axis, b.dim(), "b_axis"), -1)
    both = _cross_lengths(a.shape, b.shape)
    (a0, a1, *a2), (b0, b1, *b2) = a.unbind(-1), b.unbind(-1)
    third = _difference(_product(a0, b1), _product(a1, b0))
    if both == (2, 2):
        return third
    a2, b2 = a2[0] if a2 else torch.zeros_like(a0), b2[0] if b2 else torch.zeros_like(b0)
    parts = torch.broadcast_tensors(_difference(_product(a1, b2), _product(a2, b1)), _difference(_product(a2, b0), _product(a0, b2)), third)
    return torch.stack(parts, -1).movedim(-1, normalize_axis("_npi_cross", c_axis, parts[0].dim() + 1, "c_axis")).contiguous()


def _product(a, b):
    return unsigned.by_bits(torch.mul, a, b)


def _difference(a, b):
    return unsigned.by_bits(torch.sub, a, b)


def _cross_lengths(a, b):
    lengths = (a[-1], b[-1])
    if not set(lengths) <= {2, 3}:
        raise MXNetError(f"_npi_cross: vectors of 2 or 3 elements expected, received {lengths[0]} and {lengths[1]}")
    return lengths


cross.dtype_rule(promoted)


@cross.shape_rule
@shape_of_inputs
def _(a, b, *, a_axis, b_axis, c_axis):
    axes = normalize_axis("_npi_cross", a_axis, len(a), "a_axis"), normalize_axis("_npi_cross", b_axis, len(b), "b_axis")
    lengths = a[axes[0]], b[axes[1]]
    if -1 in lengths:
        return None
    rest = broadcast(*(tuple(n for i, n in enumerate(s) if i != axis) for s, axis in ((a, axes[0]), (b, axes[1]))))
    if _cross_lengths((lengths[0],), (lengths[1],)) == (2, 2):
        return rest
    where = normalize_axis("_npi_cross", c_axis, len(rest) + 1, "c_axis")
    return (*rest[:where], 3, *rest[where:])


@op("_npi_cumprod", complete_rule="shape")
def cumprod(a, *, axis: Optional[int] = None, dtype: Optional[DType] = None):
    """Cumulative products along `axis`, or over the flattened array.

    Example
    -------
    >>> mx.np.cumprod(mx.np.array([[1, 2], [3, 4]]), axis=0)
    array([[1., 2.],
           [3., 8.]])
    """
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = normalize_axis("_npi_cumprod", axis, max(a.dim(), 1))
    target = dtype or (torch.int64 if a.dtype is torch.bool else a.dtype)
    if target in unsigned.WIDER:
        return unsigned.by_bits(lambda t: torch.cumprod(t, axis, dtype=t.dtype), a.to(target))
    return torch.cumprod(a if a.dtype is target else convert(a, target), axis, dtype=target)


@cumprod.shape_rule
@shape_of_inputs
def _(shape, *, axis, **_):
    if axis is None:
        return (product(shape) if -1 not in shape else -1,)
    return shape if -max(len(shape), 1) <= axis < max(len(shape), 1) else None


@cumprod.dtype_rule
def _(in_types, out_types, *, dtype=None, **_):
    given = in_types[0]
    return [given], [dtype or (torch.int64 if given is torch.bool else given)]
