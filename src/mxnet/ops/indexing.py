"""Operators that pick or place elements by index: take, pick, gather_nd, scatter_nd, one_hot, boolean_mask, ..."""
from typing import Literal, Optional

import torch

from ..base import DelayedError, MXNetError
from ..kernels.memory import gather_scatter
from .axes import normalize_axis
from .bounds import IndexOutOfBoundsError, within
from .elemwise.common import wrap_integer
from .registry import op
from .schema import Axes, DType, Shape
from .shapes import known, product, unify

_MANY = 1 << 10  # rows from which on a position for each is worth computing


def _index_type_rule(position):
    """Type inference for operators whose input `position` is an index, which may have a type of its own."""
    def rule(in_types, out_types, **_):
        first = in_types[0] or out_types[0]
        return [t or (torch.float32 if i == position else first) for i, t in enumerate(in_types)], [first]
    return rule


def _bounded(index, size, mode, operator):
    """`index` as int64 in [0, size), by MXNet's `mode`."""
    index = index.long()
    if mode == "clip":
        return index.clamp(0, size - 1)
    if mode == "wrap":
        return index.remainder(size)
    if index.device.type != "meta" and index.numel() and not 0 <= int(index.min()) <= int(index.max()) < size:
        raise DelayedError(f"{operator}: indices out of bound: expected [0, {size}), received values from {int(index.min())} "
                           f"to {int(index.max())}; mode='clip' or 'wrap' accepts any", {"mode": "clip"})
    return index


@op("take", complete_rule="shape", aliases=("_npi_take",), method=True)
def take(a, indices, *, axis: int = 0, mode: Literal["clip", "raise", "wrap"] = "clip"):
    """The slices of `a` along `axis` that `indices` names; the axis is replaced by the axes of `indices`.

    Parameters
    ----------
    mode : {'clip', 'wrap', 'raise'}
        The treatment of an index outside the axis: the nearest one, the one modulo the size, or an error.

    Example
    -------
    >>> mx.nd.take(mx.nd.array([4, 5, 6]), mx.nd.array([0, 9])).asnumpy().tolist()
    [4.0, 6.0]
    """
    axis = normalize_axis("take", axis, a.dim())
    if axis == 0 and mode == "clip":
        if indices.dim() == 1:
            return gather_scatter.nearest(a, indices)
        return gather_scatter.nearest(a, indices.reshape(-1)).reshape((*indices.shape, *a.shape[1:]))
    index = _bounded(indices, a.shape[axis], mode, "take")
    if axis == 0:
        rows = gather_scatter.select(a, index.reshape(-1))
        return rows if index.dim() == 1 else rows.reshape((*index.shape, *a.shape[1:]))
    if index.dim() == 1:
        return a.index_select(axis, index)
    return a.index_select(axis, index.reshape(-1)).reshape((*a.shape[:axis], *index.shape, *a.shape[axis + 1:]))


@take.shape_rule
def _(in_shapes, out_shapes, *, axis, mode):
    data, index = in_shapes
    out = out_shapes[0]
    if data is not None and known(index):
        at = normalize_axis("take", axis, len(data))
        out = unify(out, (*data[:at], *index, *data[at + 1:]))
    return in_shapes, [out]


take.dtype_rule(_index_type_rule(1))


@op("batch_take", complete_rule="shape", no_gradient=True)
def batch_take(a, indices):
    """One element of each row: ``a[i, indices[i]]`` for `a` of shape (N, M).

    Raises
    ------
    MXNetError
        If `a` has fewer than two axes.

    Example
    -------
    >>> mx.nd.batch_take(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([1, 0])).asnumpy()
    array([2., 3.], dtype=float32)
    """
    _require_rows(tuple(a.shape))
    return gather_scatter.picked(a.reshape(-1, a.shape[-1]), indices.reshape(-1)).reshape(indices.shape)


def _require_rows(shape):
    if len(shape) < 2:
        raise MXNetError(f"batch_take: `a` must be 2-D, received shape {shape}")


@batch_take.shape_rule
def _(in_shapes, out_shapes):
    data = in_shapes[0]
    index = unify(in_shapes[1], out_shapes[0])
    if data is not None:
        _require_rows(data)
        index = unify(index, data[:-1])
    return [data, index], [index]


@batch_take.dtype_rule
def _(in_types, out_types):
    return [in_types[0] or out_types[0], in_types[1] or torch.int32], [in_types[0] or out_types[0]]


@op("pick", complete_rule="shape", aliases=("choose_element_0index", "_npx_pick"), method=True)
def pick(data, index, *, axis: Optional[int] = -1, keepdims: bool = False, mode: Literal["clip", "wrap"] = "clip"):
    """One element along `axis` for each position: ``data[i, index[i]]`` for 2-D data.

    `index` has the shape of `data` without `axis`, or with size 1 there.

    `mode` says what an index outside the axis means: with 'clip' the nearest one, with 'wrap' the one modulo the size. With `keepdims` the
    axis stays with size 1.

    Raises
    ------
    MXNetError
        If `index` has another shape, or `axis` is None.

    Example
    -------
    >>> mx.nd.pick(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([0, 1])).asnumpy()
    array([1., 4.], dtype=float32)
    """
    if axis is None:
        raise MXNetError("pick: an axis expected, received None; name one")
    axis = normalize_axis("pick", axis, data.dim())
    reduced = (*data.shape[:axis], *data.shape[axis + 1:])
    with_axis = (*data.shape[:axis], 1, *data.shape[axis + 1:])
    if tuple(index.shape) not in (reduced, with_axis) and not (data.dim() == 1 and index.numel() == 1):
        raise MXNetError(f"pick: `index` must have shape {reduced or (1,)} or {with_axis} for data of shape {tuple(data.shape)} and "
                         f"axis={axis}, received {tuple(index.shape)}")
    if axis == data.dim() - 1:
        index = index.reshape(-1)
        flat = data if data.dim() == 2 else data.reshape(product(reduced), data.shape[-1])
        out = gather_scatter.picked(flat, index if mode == "clip" else _bounded(index, data.shape[-1], mode, "pick"))
        if data.dim() == 2 and not keepdims:
            return out
    else:
        out = data.gather(axis, _bounded(index.reshape(with_axis), data.shape[axis], mode, "pick"))
    return out.reshape(with_axis if keepdims else reduced or (1,))


@pick.shape_rule
def _(in_shapes, out_shapes, *, axis, keepdims, mode):
    data, index = in_shapes
    out = out_shapes[0]
    if data is None or axis is None:
        return in_shapes, out_shapes
    at = normalize_axis("pick", axis, len(data))
    reduced = (*data[:at], *data[at + 1:]) or (1,)
    with_axis = (*data[:at], 1, *data[at + 1:])
    out = unify(out, with_axis if keepdims else reduced)
    return [data, unify(index, with_axis if index is not None and len(index) == len(data) else reduced)], [out]


pick.dtype_rule(_index_type_rule(1))


def _position(data_shape, indices, operator):
    """`indices` (M, ...) as the tuple of M index tensors that torch indexes with."""
    _check_position(operator, tuple(indices.shape), data_shape)
    return within(operator, indices.long().unbind(0), data_shape)


def _check_position(operator, indices, shape):
    if len(indices) < 2:
        raise MXNetError(f"{operator}: indices must have at least 2 dimensions, one row for each axis, received shape {indices}")
    if indices[0] > len(shape):
        raise MXNetError(f"{operator}: indices of shape {indices} name {indices[0]} axes, but the array has {len(shape)}")


def _flat(data, index):
    """`index` into `data` with its first axes as one, whose rows torch copies whole.

    None for elements, for few rows, for what lies outside, and on other devices.
    """
    if not 0 < len(index) < data.dim() or index[0].numel() < _MANY or data.device.type != "cpu" or not data.numel() or torch.compiler.is_compiling():
        return None
    flat = None
    for i, n in zip(index, data.shape):
        low, high = map(int, torch.aminmax(i))
        if low < -n or high >= n:
            return None
        i = i.remainder(n) if low < 0 else i
        flat = i if flat is None else torch.add(i, flat, alpha=n)
    return flat


@op("gather_nd", complete_rule="shape", aliases=("_npi_gather_nd", "_npx_gather_nd"))
def gather_nd(data, indices):
    """``data[indices[0], indices[1], ...]``: each column of `indices` (M, ...) names one element, or one slice if M is below the number of axes.

    Raises
    ------
    IndexError
        If an index lies outside its axis.

    Example
    -------
    >>> mx.nd.gather_nd(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([[0, 1], [1, 0]])).asnumpy()
    array([2., 3.], dtype=float32)
    """
    index = _position(data.shape, indices, "gather_nd")
    flat = _flat(data, index)
    if flat is not None:
        return gather_scatter.select(data.reshape(-1, *data.shape[len(index):]), flat.view(-1)).view(*indices.shape[1:], *data.shape[len(index):])
    try:
        return data[index]
    except IndexError as error:
        raise IndexOutOfBoundsError(f"gather_nd: {error}") from None


@gather_nd.shape_rule
def _(in_shapes, out_shapes):
    data, index = in_shapes
    out = out_shapes[0]
    if data is not None and index is not None and len(index) > 1 and 0 <= index[0] <= len(data):
        out = unify(out, (*index[1:], *data[index[0]:]))
    return in_shapes, [out]


gather_nd.dtype_rule(_index_type_rule(1))


def _check_scatter(operator, data, indices, shape):
    index = _position(shape, indices, operator)
    _scattered_shape(operator, tuple(data.shape), tuple(indices.shape), shape)
    return index


def _scattered_shape(operator, data, indices, shape):
    """The shape of the values for places of these partial shapes, None where that depends on more.

    Raises
    ------
    MXNetError
        If the values have another one, or there are no such places.
    """
    if indices is None:
        return data
    _check_position(operator, indices, shape)
    if indices[0] < 0:
        return data
    wanted = (*indices[1:], *shape[indices[0]:])
    if data is not None and (len(data) != len(wanted) or any(min(a, b) >= 0 and a != b for a, b in zip(data, wanted))):
        raise MXNetError(f"{operator}: data of shape {wanted} expected for indices of shape {indices} and shape={tuple(shape)}, received {data}")
    return unify(data, wanted)


@op("scatter_nd", complete_rule="shape")
def scatter_nd(data, indices, *, shape: Shape):
    """An array of zeros of `shape` into which `data` is written at `indices`; the inverse of gather_nd.

    `indices` has the shape (M, ...), a row for each of the first M axes of the result. Of several values for one place one is kept.

    Raises
    ------
    IndexError
        If an index lies outside its axis.

    Example
    -------
    >>> mx.nd.scatter_nd(mx.nd.array([7, 8]), mx.nd.array([[0, 1], [1, 0]]), shape=(2, 2)).asnumpy()
    array([[0., 7.],
           [8., 0.]], dtype=float32)
    """
    index = _check_scatter("scatter_nd", data, indices, shape)
    try:
        if len(index) == 1 and data.dim() == 2:
            return gather_scatter.scattered(data, index[0], shape[0])
        return data.new_zeros(shape).index_put(index, data)
    except IndexError as error:
        raise IndexOutOfBoundsError(f"scatter_nd: {error}") from None


@op("_backward_gather_nd", complete_rule="shape", frontend=False, amp=None)
def gather_nd_backward(data, indices, *, shape: Shape):
    """Like scatter_nd, but values at the same place add up: the gradient of gather_nd."""
    index = _check_scatter("_backward_gather_nd", data, indices, shape)
    return data.new_zeros(shape).index_put(index, data, accumulate=True)


@op("_scatter_set_nd", complete_rule="shape", aliases=("_npi_scatter_set_nd",))
def scatter_set_nd(lhs, rhs, indices, *, shape: Shape):
    """A copy of `lhs` with `rhs` written at `indices`."""
    if tuple(lhs.shape) != shape:
        raise MXNetError(f"_scatter_set_nd: `shape` must be that of `lhs`, {tuple(lhs.shape)}; received {shape}")
    return lhs.index_put(_check_scatter("_scatter_set_nd", rhs, indices, shape), rhs)


@scatter_set_nd.shape_rule
def _(in_shapes, out_shapes, *, shape):
    lhs, rhs, indices = in_shapes
    lhs_shape = unify(unify(lhs, out_shapes[0]), shape)
    return [lhs_shape, _scattered_shape("_scatter_set_nd", rhs, indices, shape), indices], [lhs_shape]


scatter_set_nd.dtype_rule(_index_type_rule(2))

def _scatter_rule(operator):
    def rule(in_shapes, out_shapes, *, shape):
        data, indices = in_shapes
        return [_scattered_shape(operator, data, indices, shape), indices], [unify(out_shapes[0], shape)]
    return rule


for _operator in (scatter_nd, gather_nd_backward):
    _operator.dtype_rule(_index_type_rule(1))
    _operator.shape_rule(_scatter_rule(_operator.name))


@op("one_hot", complete_rule="shape", aliases=("_npx_one_hot",), method=True)
def one_hot(indices, *, depth: int, on_value: float = 1.0, off_value: float = 0.0, dtype: DType = torch.float32):
    """Rows of length `depth` that are `on_value` at the index and `off_value` elsewhere (everywhere, if it is out of range).

    Raises
    ------
    MXNetError
        If `depth` is negative.

    Example
    -------
    >>> mx.nd.one_hot(mx.nd.array([1, 0, 5]), depth=3).asnumpy()
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]], dtype=float32)
    """
    if depth < 0:
        raise MXNetError(f"one_hot: `depth` must not be negative, received {depth}")
    if not dtype.is_floating_point and dtype is not torch.bool:
        on_value, off_value = wrap_integer(on_value, dtype), wrap_integer(off_value, dtype)
    if dtype is torch.float32 and depth:
        result = gather_scatter.marked(indices.reshape(-1), depth, on_value, off_value)
        if result is not None:
            return result.view(*indices.shape, depth)
    out = torch.full((*indices.shape, depth), off_value, dtype=dtype, device=indices.device)
    if depth == 0:
        return out
    index = indices.detach().long().unsqueeze(-1)
    inside = index.clamp(0, depth - 1)
    # An index out of range rewrites the existing value.
    return out.scatter_(-1, inside, torch.full_like(index, off_value, dtype=dtype).masked_fill_(index == inside, on_value))


@one_hot.shape_rule
def _(in_shapes, out_shapes, *, depth, **_):
    out = out_shapes[0]
    if in_shapes[0] is not None:
        out = unify(out, (*in_shapes[0], depth))
    return in_shapes, [out]


@one_hot.dtype_rule
def _(in_types, out_types, *, dtype, **_):
    return in_types, [dtype]


@op("_onehot_encode", complete_rule="shape")
def onehot_encode(lhs, rhs):
    """One-hot rows of the indices `lhs`, in the shape and type of `rhs`."""
    if lhs.dim() != 1 or rhs.dim() != 2 or lhs.shape[0] != rhs.shape[0]:
        raise MXNetError(f"_onehot_encode: expected indices (N,) and an array (N, classes), received {tuple(lhs.shape)} and {tuple(rhs.shape)}")
    return (lhs.long().unsqueeze(-1) == torch.arange(rhs.shape[1], device=lhs.device)).to(rhs.dtype)


@onehot_encode.shape_rule
def _(in_shapes, out_shapes):
    lhs, rhs = in_shapes[0], unify(in_shapes[1], out_shapes[0])
    if lhs is None or rhs is None or len(lhs) != 1 or len(rhs) != 2 or min(lhs[0], rhs[0]) >= 0 and lhs[0] != rhs[0]:
        return in_shapes, out_shapes  # the operator's call raises the error
    count = max(lhs[0], rhs[0])
    return [(count,), (count, rhs[1])], [(count, rhs[1])]


@op("fill_element_0index", complete_rule="shape")
def fill_element_0index(lhs, mhs, rhs):
    """A copy of `lhs` (N, M) with ``mhs[i]`` at column ``rhs[i]`` of each row.

    Example
    -------
    >>> mx.nd.fill_element_0index(mx.nd.zeros((2, 3)), mx.nd.array([7, 8]), mx.nd.array([2, 0])).asnumpy()
    array([[0., 0., 7.],
           [8., 0., 0.]], dtype=float32)
    """
    column, = within("fill_element_0index", [rhs.long().reshape(-1, 1)], lhs.shape[1:], negative=False)
    return lhs.scatter(1, column, mhs.reshape(-1, 1).to(lhs.dtype))


@fill_element_0index.shape_rule
def _(in_shapes, out_shapes):
    lhs = unify(in_shapes[0], out_shapes[0])
    if lhs is None or len(lhs) != 2 or None in in_shapes[1:]:
        return in_shapes, out_shapes
    values, columns = (product(s) for s in in_shapes[1:])
    if min(columns, values, lhs[0]) >= 0 and columns > min(values, lhs[0]):
        return in_shapes, out_shapes  # too many inputs: the operator's call raises the error
    return [lhs, *in_shapes[1:]], [lhs]


@op("_ravel_multi_index", aliases=("ravel_multi_index",), complete_rule="shape")
def ravel_multi_index(data, *, shape: Shape):
    """Positions in the flattened array for the positions in an array of `shape` that are the columns of `data` (number of axes, N).

    Raises
    ------
    MXNetError
        If `data` is not 2-D with a row for each axis.

    Example
    -------
    >>> mx.nd.ravel_multi_index(mx.nd.array([[0, 1], [2, 0]]), shape=(2, 3)).asnumpy()
    array([2., 3.], dtype=float32)
    """
    if data.dim() != 2 or data.shape[0] != len(shape):
        raise MXNetError(f"ravel_multi_index: `data` must be 2-D with one row for each axis of shape={shape}, "
                         f"received shape {tuple(data.shape)}")
    out = data.new_zeros(data.shape[1], dtype=torch.int64)
    for row, size in zip(data.long().unbind(0), shape):
        out = out * size + row
    return out.to(data.dtype)


@ravel_multi_index.shape_rule
def _(in_shapes, out_shapes, *, shape):
    data, out = in_shapes[0], out_shapes[0]
    if data is not None and len(data) == 2:
        out = unify(out, (data[1],))
    elif out is not None:
        data = (len(shape), out[0])
    return [data], [out]


@op("_unravel_index", aliases=("unravel_index",), complete_rule="shape")
def unravel_index(data, *, shape: Shape):
    """Positions (columns) in an array of `shape` of the positions `data` in its flattened form; the inverse of ravel_multi_index.

    Example
    -------
    >>> mx.nd.unravel_index(mx.nd.array([2, 3]), shape=(2, 3)).asnumpy()
    array([[0., 1.],
           [2., 0.]], dtype=float32)
    """
    if not shape or any(size is None or size < 1 for size in shape[1:]):
        raise MXNetError(f"unravel_index: `shape` must have a size of at least 1 for every axis but the first, received {shape}")
    rest, rows = data.long(), []
    for size in shape[:0:-1]:
        quotient = torch.div(rest, size, rounding_mode="trunc")
        rows.append(rest - quotient * size)
        rest = quotient
    return torch.stack([rest, *rows[::-1]]).to(data.dtype)


@unravel_index.shape_rule
def _(in_shapes, out_shapes, *, shape):
    data, out = in_shapes[0], out_shapes[0]
    if data is not None:
        out = unify(out, (len(shape), *data))
    elif out is not None:
        data = out[1:]
    return [data], [out]


@op("_contrib_boolean_mask", aliases=("_npi_boolean_mask",), data_dependent_shape=True)
def boolean_mask(data, index, *, axis: int = 0):
    """The rows of `data` where the 1-D `index` is not 0; how many depends on its values.

    Raises
    ------
    MXNetError
        If `index` is not a vector as long as the first axis, or `axis` is not 0.

    Example
    -------
    >>> mx.nd.contrib.boolean_mask(mx.nd.array([[1, 2], [3, 4], [5, 6]]), mx.nd.array([1, 0, 1])).asnumpy()
    array([[1., 2.],
           [5., 6.]], dtype=float32)
    """
    if axis != 0:
        raise MXNetError(f"boolean_mask: only axis=0 is supported, received {axis}")
    if index.dim() != 1 or index.shape[0] != data.shape[0]:
        raise MXNetError(f"boolean_mask: `index` must have shape ({data.shape[0]},) for data of shape {tuple(data.shape)}, "
                         f"received {tuple(index.shape)}")
    if data.is_meta:  # torch would import its compilers for its error message
        raise NotImplementedError("the values say how many rows there are")
    return gather_scatter.chosen(data, index.bool())


@boolean_mask.shape_rule
def _(in_shapes, out_shapes, *, axis):
    data, out = in_shapes[0], out_shapes[0]
    if data is not None:
        out = unify(out, (-1, *data[1:]))
    return in_shapes, [out]


boolean_mask.dtype_rule(_index_type_rule(1))


@op("_contrib_index_copy", complete_rule="shape")
def index_copy(old_tensor, index_vector, new_tensor):
    """A copy of `old_tensor` whose rows ``index_vector[i]`` are the rows of `new_tensor`.

    Raises
    ------
    MXNetError
        If `new_tensor` has not one row for each entry of `index_vector`, or its rows have another shape.

    Example
    -------
    >>> mx.nd.contrib.index_copy(mx.nd.zeros((3, 2)), mx.nd.array([2]), mx.nd.array([[7, 8]])).asnumpy()
    array([[0., 0.],
           [0., 0.],
           [7., 8.]], dtype=float32)
    """
    if index_vector.dim() != 1 or index_vector.shape[0] != new_tensor.shape[0] or new_tensor.shape[1:] != old_tensor.shape[1:]:
        raise MXNetError(f"index_copy: expected a row of `new_tensor` for each entry of the 1-D `index_vector`, received shapes "
                         f"{tuple(old_tensor.shape)}, {tuple(index_vector.shape)} and {tuple(new_tensor.shape)}")
    index, = within("index_copy", [index_vector.long()], old_tensor.shape, negative=False)
    return gather_scatter.replace(old_tensor, index, new_tensor)


@index_copy.shape_rule
def _(in_shapes, out_shapes):
    old, index, new = in_shapes
    old = unify(old, out_shapes[0])
    if old is None or index is None or new is None or not old or not new or len(index) != 1:
        return [old, index, new], out_shapes
    if known(index) and known(new) and known(old) and (index[0] != new[0] or old[1:] != new[1:]):
        return [old, index, new], out_shapes  # the operator's call raises the error
    both = unify(old[1:], new[1:])
    old, new = (old[0], *both), (unify(index, new[:1])[0], *both)
    return [old, new[:1], new], [old]


@index_copy.dtype_rule
def _(in_types, out_types):
    first = in_types[0] or in_types[2] or out_types[0]
    return [first, in_types[1] or torch.int64, first], [first]


@op("_contrib_index_array", complete_rule="shape", names_output=True)
def index_array(data, *, axes: Axes = None):
    """For each element of `data` its own position, along all axes or `axes`: int64 of shape ``data.shape + (number of axes,)``.

    Raises
    ------
    MXNetError
        If `data` has no such axis.

    Example
    -------
    >>> mx.nd.contrib.index_array(mx.nd.zeros((2, 2))).asnumpy().tolist()
    [[[0, 0], [0, 1]], [[1, 0], [1, 1]]]
    >>> mx.nd.contrib.index_array(mx.nd.zeros((2, 2)), axes=(1,)).asnumpy().tolist()
    [[[0], [1]], [[0], [1]]]
    """
    chosen = _chosen_axes(axes, data.dim())
    if not chosen:
        return torch.empty((*data.shape, 0), dtype=torch.int64, device=data.device)
    grids = []
    for a in chosen:
        view = (1,) * a + (-1,) + (1,) * (data.dim() - a - 1)
        grids.append(torch.arange(data.shape[a], device=data.device).reshape(view).expand(data.shape))
    return torch.stack(grids, -1)


def _chosen_axes(axes, ndim):
    if axes is None:
        return list(range(ndim))
    return [normalize_axis("index_array", a, ndim, "axes") for a in ((axes,) if isinstance(axes, int) else axes)]


@index_array.shape_rule
def _(in_shapes, out_shapes, *, axes):
    data = in_shapes[0]
    if data is None:
        return in_shapes, out_shapes
    return in_shapes, [unify(out_shapes[0], (*data, len(_chosen_axes(axes, len(data)))))]


@index_array.dtype_rule
def _(in_types, out_types, *, axes):
    return in_types, [torch.int64]
