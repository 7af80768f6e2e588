"""NumPy operators that multiply arrays and sum over axes: dot, matmul, tensordot, einsum."""
import torch

from ...base import MXNetError
from ...kernels.gemm import matmul as kernels
from ..axes import normalize_axis
from ..integers import convert
from ..registry import op
from ..schema import Shape
from ..shapes import unify
from . import unsigned
from .common import agree, broadcast, promoted, reduced, require_float, require_one_type, shape_of_inputs
from .promotion import promoted_pair


@op("_np_dot", compute_bound=True, complete_rule="shape")
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
        return kernels.matmul(a, b)
    if a.dim() == 0 or b.dim() == 0:
        return a * b
    if a.shape[-1] != b.shape[max(b.dim() - 2, 0)]:
        raise MXNetError(f"_np_dot: shapes {tuple(a.shape)} and {tuple(b.shape)} not aligned: {a.shape[-1]} against "
                         f"{b.shape[max(b.dim() - 2, 0)]}")
    return torch.tensordot(a, b, ([-1], [max(b.dim() - 2, 0)]))


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


@op("_npi_matmul", compute_bound=True, complete_rule="shape")
def matmul(a, b):
    """The matrix products: (..., n, k) and (..., k, m) to (..., n, m). Batches broadcast; a vector counts as a row or a column.

    Raises
    ------
    MXNetError
        If an input is a scalar, or sizes do not fit.

    Example
    -------
    >>> mx.np.matmul(mx.np.array([[1, 2], [3, 4]]), mx.np.array([[0, 1], [1, 0]]))
    array([[2., 1.],
           [4., 3.]])
    """
    if a.dtype is not b.dtype:
        a, b = promoted_pair("_npi_matmul", a, b)
    if a.dim() == 0 or b.dim() == 0:
        raise MXNetError("_npi_matmul: arrays with at least one axis expected, received a scalar; use multiply")
    if not a.is_floating_point():
        return integer_product(a, b)
    return kernels.matmul(a, b) if a.dim() == b.dim() == 2 else kernels.batched(a, b)


def integer_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The matrix product of integers, modulo their range, of booleans or of complex numbers."""
    if a.is_complex() or a.is_cpu and a.dtype not in unsigned.WIDER and a.dtype is not torch.bool:
        return torch.matmul(a, b)
    if a.dtype is torch.bool:
        return torch.matmul(a.double() if a.is_cuda else a.long(), b.double() if a.is_cuda else b.long()) != 0
    if a.is_cpu:
        return unsigned.by_bits(torch.matmul, a, b)
    # GPUs multiply no matrices of integers: the sum of products, element by element.
    rows, columns = (a if a.dim() > 1 else a[None]).unsqueeze(-1), (b if b.dim() > 1 else b[:, None]).unsqueeze(-3)
    out = unsigned.by_bits(lambda x, y: (x * y).sum(-2, dtype=x.dtype), rows, columns)
    return out[..., 0, 0] if a.dim() == b.dim() == 1 else out[..., 0, :] if a.dim() == 1 else out[..., 0] if b.dim() == 1 else out


@matmul.shape_rule
def _(in_shapes, out_shapes):
    a, b = in_shapes
    if a and b:
        inner = -1 if len(b) == 1 else -2
        if a[-1] < 0:
            a = (*a[:-1], b[inner])
        elif b[inner] < 0:
            b = (*b[:-1], a[-1]) if inner == -1 else (*b[:-2], a[-1], b[-1])
        if a[-1] == b[inner]:
            out_shapes = [unify(out_shapes[0], (*broadcast(a[:-2], b[:-2]), *a[-2:-1], *b[inner:][1:]))]
    return [a, b], out_shapes


def _summed_axes(operator, a, b, a_axes, b_axes):
    """The axes counted from the front, for arrays of the shapes `a` and `b`."""
    if len(a_axes) != len(b_axes):
        raise MXNetError(f"{operator}: as many axes of `a` as of `b` must be summed over, received {a_axes} and {b_axes}")
    a_axes = [normalize_axis(operator, i, len(a), "a_axes_summed") for i in a_axes]
    b_axes = [normalize_axis(operator, i, len(b), "b_axes_summed") for i in b_axes]
    for i, j in zip(a_axes, b_axes):
        if not agree(a[i], b[j]):
            raise MXNetError(f"{operator}: the axes summed over differ in size: {a[i]} (axis {i} of {a}) and {b[j]} (axis {j} of {b})")
    return a_axes, b_axes


def _tensordot(operator, a, b, a_axes, b_axes):
    require_float(operator, a, b)
    require_one_type(operator, a, b)
    return torch.tensordot(a, b, _summed_axes(operator, tuple(a.shape), tuple(b.shape), a_axes, b_axes))


def _tensordot_shape(operator, a, b, a_axes, b_axes):
    a_axes, b_axes = _summed_axes(operator, a, b, a_axes, b_axes)
    if len(set(a_axes)) < len(a_axes) or len(set(b_axes)) < len(b_axes):
        return None
    return reduced(a, a_axes) + reduced(b, b_axes)


@op("_npi_tensordot", complete_rule="shape")
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


@tensordot.shape_rule
@shape_of_inputs
def _(a, b, *, a_axes_summed, b_axes_summed):
    return _tensordot_shape("_npi_tensordot", a, b, a_axes_summed, b_axes_summed)


@op("_npi_tensordot_int_axes", complete_rule="shape")
def tensordot_int_axes(a, b, *, axes: int):
    """Tensor contraction over the last `axes` axes of `a` and as many first ones of `b`."""
    return _tensordot("_npi_tensordot_int_axes", a, b, *_last_and_first(axes, a.dim(), b.dim()))


def _last_and_first(axes, a_ndim, b_ndim):
    if not 0 <= axes <= min(a_ndim, b_ndim):
        raise MXNetError(f"_npi_tensordot_int_axes: `axes` must be in [0, {min(a_ndim, b_ndim)}], received {axes}")
    return range(a_ndim - axes, a_ndim), range(axes)


@tensordot_int_axes.shape_rule
@shape_of_inputs
def _(a, b, *, axes):
    return _tensordot_shape("_npi_tensordot_int_axes", a, b, *_last_and_first(axes, len(a), len(b)))


@op("_npi_einsum", key_var_num_args="num_args", complete_rule="shape")
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
    subscripts = _with_result(subscripts, len(data))
    require_one_type("_npi_einsum", *data)
    if data[0].dtype is torch.bool:  # torch multiplies no booleans
        return torch.einsum(subscripts, *(t.float() for t in data)).contiguous() != 0
    if not data[0].is_floating_point() and data[0].device.type != "cpu":  # CUDA multiplies matrices of floating-point numbers only
        return convert(torch.einsum(subscripts, *(t.double() for t in data)), data[0].dtype)
    out = torch.einsum(subscripts, *data).to(data[0].dtype)
    shared = any(out.data_ptr() == t.data_ptr() for t in data)
    return out.clone(memory_format=torch.contiguous_format) if shared else out.contiguous()


def _with_result(subscripts, count):
    """The subscripts for `count` operands with those of the result, which may be left out."""
    if not count:
        raise MXNetError(f"_npi_einsum: must specify the subscripts and at least one operand, received {subscripts!r:.40} and {count} operands")
    terms = subscripts.split("->")[0].count(",") + 1
    if terms != count:
        raise MXNetError(f"_npi_einsum: the subscripts {subscripts!r} are for {terms} operands, received {count}")
    if "->" in subscripts:
        return subscripts
    # NumPy orders letters by the alphabet, with capitals first; torch does too but only among those it keeps.
    letters = subscripts.replace(",", "").replace(".", "").replace(" ", "")
    free_letters = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    return f"{subscripts}->{'...' if '...' in subscripts else ''}{free_letters}"


@einsum.shape_rule
@shape_of_inputs
def _(*shapes, subscripts, **_):
    terms, result = _with_result(subscripts, len(shapes)).replace(" ", "").split("->", 1)
    sizes: dict[str | int, int] = {}  # by letter; the axes of an ellipsis are counted from the last one
    for term, shape in zip(terms.split(","), shapes):
        before, dots, after = term.partition("...")
        hidden = len(shape) - len(before) - len(after)
        if not all(c.isascii() and c.isalpha() for c in before + after) or hidden < 0 or hidden and not dots:
            return None
        own: dict[str | int, int] = {}
        for label, n in zip((*before, *range(-hidden, 0), *after), shape):
            if not agree(own.get(label, n), n):
                return None
            own[label] = max(own.get(label, n), n)
        for label, n in own.items():
            sizes[label], = broadcast((sizes.get(label, 1),), (n,))
    before, dots, after = result.partition("...")
    labels = (*before, *(sorted(i for i in sizes if isinstance(i, int)) if dots else ()), *after)
    return tuple(sizes[i] for i in labels) if len(set(labels)) == len(labels) and sizes.keys() >= set(labels) else None
