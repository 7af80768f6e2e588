"""NumPy operators that select, find, insert and delete elements."""
from typing import Any

import torch

from ...base import MXNetError
from ..axes import normalize_axis
from ..dtypes import name_of
from ..host_arrays import constant
from ..registry import op
from ..schema import Optional
from ..shapes import product, unify
from .common import InvalidValueError, agree, broadcast, require_one_type, result_is, shape_of_inputs


def _refuse_meta(tensor):
    # How large the result is depends on the values: nothing can be inferred.
    if tensor.device.type == "meta":
        raise NotImplementedError


@op("_npx_nonzero", aliases=("_npi_nonzero",), no_gradient=True, data_dependent_shape=True)
def nonzero(x):
    """The indices of the elements other than 0: one row for each, one column for each axis. A number counts as an array of one.

    Example
    -------
    >>> mx.npx.nonzero(mx.np.array([[1, 0], [0, 2]]))
    array([[0, 0],
           [1, 1]], dtype=int64)
    """
    _refuse_meta(x)
    return torch.nonzero(x if x.dim() else x.reshape(1)).contiguous()


nonzero.dtype_rule(result_is(torch.int64))


@op("_npi_unique", no_gradient=True, data_dependent_shape=True,
    num_outputs=lambda attributes: 1 + attributes["return_index"] + attributes["return_inverse"] + attributes["return_counts"])
def unique(data, *, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: Optional[int] = None):
    """The unique elements in ascending order, or the unique slices along `axis`.

    Optional further results: the index of the first of each, the number among the different ones of each element, and how often
    each occurs.

    Example
    -------
    >>> values, counts = mx.np.unique(mx.np.array([3, 1, 3]), return_counts=True)
    >>> values, counts
    (array([1., 3.]), array([1, 2], dtype=int64))
    """
    _refuse_meta(data)
    if axis is None:
        data, axis = data.reshape(-1), 0
    else:
        axis = normalize_axis("_npi_unique", axis, data.dim())
    size = data.shape[axis]
    if data.dim() == 1:
        values, inverse, counts = torch.unique(data, return_inverse=True, return_counts=True)
    else:
        values, inverse, counts = torch.unique(data, return_inverse=True, return_counts=True, dim=axis)
    out = [values]
    if return_index:
        places = torch.arange(size, device=data.device)
        out.append(torch.full_like(counts, size).scatter_reduce_(0, inverse, places, "amin"))
    if return_inverse:
        out.append(inverse)
    if return_counts:
        out.append(counts)
    return out[0] if len(out) == 1 else tuple(out)


@unique.dtype_rule
def _(in_types, out_types, **_):
    return in_types, [in_types[0]] + [torch.int64] * (len(out_types) - 1)


@op("_npi_bincount", no_gradient=True, data_dependent_shape=True,
    inputs_rule=lambda attributes: ("data", "weights") if attributes["has_weights"] else ("data",))
def bincount(data, weights=None, *, minlength: int = 0, has_weights: bool = False):
    """Count each of 0, 1, 2, ... in `data`, in its type; with `weights`, sum the weights at each of them, in their type.

    Raises
    ------
    MXNetError
        If `data` does not hold non-negative integers in one axis, or `weights` has another shape.

    Example
    -------
    >>> mx.np.bincount(mx.np.array([0, 2, 2], dtype='int32'))
    array([1, 0, 2], dtype=int32)
    >>> mx.np.bincount(mx.np.array([0, 2, 2], dtype='int32'), weights=mx.np.array([1, 10, 20]))
    array([ 1.,  0., 30.])
    """
    _refuse_meta(data)
    if data.is_floating_point() or data.dtype is torch.bool:
        raise MXNetError(f"_npi_bincount: `data` must hold integers, received {name_of(data.dtype)}")
    if data.dim() > 1:
        raise MXNetError(f"_npi_bincount: `data` must have one axis, received shape {tuple(data.shape)}")
    if data.numel() and data.min().item() < 0:
        raise MXNetError(f"_npi_bincount: `data` must not hold negative numbers, received {data.min().item()}")
    minlength = max(minlength, 0)
    if weights is None:
        return torch.bincount(data.reshape(-1), minlength=minlength).to(data.dtype)
    if weights.shape != data.shape:
        raise MXNetError(f"_npi_bincount: `weights` must have the shape of `data`, {tuple(data.shape)}, received {tuple(weights.shape)}")
    return torch.bincount(data.reshape(-1), weights.reshape(-1), minlength).to(weights.dtype)


@bincount.dtype_rule
def _(in_types, out_types, **_):
    return in_types, [in_types[-1]]


@op("_npi_where", complete_rule="shape")
def where(condition, x, y):
    """Elements of `x` where `condition` is not 0, of `y` elsewhere. The arrays broadcast.

    Raises
    ------
    MXNetError
        If `x` and `y` differ in type.

    Example
    -------
    >>> mx.np.where(mx.np.array([True, False]), mx.np.array([1, 2]), mx.np.array([[10], [20]]))
    array([[ 1., 10.],
           [ 1., 20.]])
    """
    require_one_type("_npi_where", x, y)
    return torch.where(condition if condition.dtype is torch.bool else condition != 0, x, y)


_broadcast_all = shape_of_inputs(lambda *shapes, **_: broadcast(*shapes))
where.shape_rule(_broadcast_all)


@where.dtype_rule
def _(in_types, out_types):
    common = in_types[1] or in_types[2] or out_types[0]
    return [in_types[0] or torch.bool, common, common], [common]


def _where_one(name, first, doc):
    def left(condition, x, *, scalar: float = 0.0):
        return torch.where(condition if condition.dtype is torch.bool else condition != 0, x.new_full((), scalar), x)

    def right(condition, y, *, scalar: float = 0.0):
        return torch.where(condition if condition.dtype is torch.bool else condition != 0, y, y.new_full((), scalar))

    operator = op(name, complete_rule="shape")(left if first else right)
    operator.shape_rule(_broadcast_all)
    operator.__doc__ = doc

    @operator.dtype_rule
    def _(in_types, out_types, **_):
        return [in_types[0] or torch.bool, in_types[1]], [in_types[1]]


_where_one("_npi_where_lscalar", True, "`scalar` where `condition` is not 0, elements of the array elsewhere.")
_where_one("_npi_where_rscalar", False, "Elements of the array where `condition` is not 0, `scalar` elsewhere.")


@op("_npi_where_scalar2", same_shape=True, no_gradient=True)
def where_scalars(condition, *, x: float = 0.0, y: float = 0.0):
    """The number `x` where `condition` is not 0, `y` elsewhere, as float32."""
    options = constant([x, y], torch.float32, condition.device)
    return torch.where(condition if condition.dtype is torch.bool else condition != 0, options[0], options[1])


where_scalars.dtype_rule(result_is(torch.float32))


def _require_mask(operator, data, mask, start_axis):
    """Raise a MXNetError unless the mask has the sizes of `data` from `start_axis`; both are shapes, known or partial ones."""
    covered = data[start_axis:start_axis + len(mask)]
    if not 0 <= start_axis <= len(data) or len(covered) != len(mask) or not all(map(agree, covered, mask)):
        raise MXNetError(f"{operator}: the mask has shape {mask}, the axes of `data` {covered}")


@op("_npi_boolean_mask_assign_scalar", complete_rule="shape")
def boolean_mask_assign_scalar(data, mask, *, value: float, start_axis: int = 0):
    """A copy of `data` with `value` where the mask, over the axes from `start_axis`, is true."""
    _require_mask("_npi_boolean_mask_assign_scalar", tuple(data.shape), tuple(mask.shape), start_axis)
    place = (mask if mask.dtype is torch.bool else mask != 0).reshape((*mask.shape, *[1] * (data.dim() - start_axis - mask.dim())))
    return torch.where(place, data.new_full((), value), data)


@op("_npi_boolean_mask_assign_tensor")
def boolean_mask_assign_tensor(data, mask, value, *, start_axis: int = 0):
    """A copy of `data` with the entries of `value` where the mask, over the axes from `start_axis`, is true."""
    _require_mask("_npi_boolean_mask_assign_tensor", tuple(data.shape), tuple(mask.shape), start_axis)
    _refuse_meta(data)
    key = (slice(None),) * start_axis + (mask if mask.dtype is torch.bool else mask != 0,)
    out = data.clone()
    out[key] = value.to(data.dtype)
    return out


def _masked_shape(operator):
    def rule(in_shapes, out_shapes, *, start_axis, **_):
        data, mask = unify(in_shapes[0], out_shapes[0]), in_shapes[1]
        if data is not None and mask is not None:
            _require_mask(operator, data, mask, start_axis)
        return [data, *in_shapes[1:]], [data]
    return rule


boolean_mask_assign_scalar.shape_rule(_masked_shape("_npi_boolean_mask_assign_scalar"))
boolean_mask_assign_tensor.shape_rule(_masked_shape("_npi_boolean_mask_assign_tensor"))


def _masked_types(in_types, out_types, **_):
    common = in_types[0] or out_types[0] or next(iter(in_types[2:]), None)
    return [common, in_types[1] or torch.bool, *[common] * (len(in_types) - 2)], [common]


boolean_mask_assign_scalar.dtype_rule(_masked_types)
boolean_mask_assign_tensor.dtype_rule(_masked_types)


def _positions(operator, size, obj, start, stop, step, int_ind, room=0, ignore_outside=False):
    """The places that an integer, a slice or an array name on an axis of `size`, as a list; `room` more are allowed at the end."""
    if int_ind is not None:
        positions = [int_ind]
    elif obj is not None:
        positions = obj.reshape(-1).tolist()
        if obj.dtype is torch.bool:
            if obj.numel() != size:
                raise MXNetError(f"{operator}: a boolean `obj` must be as long as the axis, {size}, received {obj.numel()}")
            return [i for i, chosen in enumerate(positions) if chosen]
        positions = [int(i) for i in positions]
        if ignore_outside:
            positions = [i for i in positions if 0 <= i < size]
    else:
        return list(range(*slice(start, stop, step).indices(size)))
    for i in positions:
        if not -size <= i < size + room:
            raise MXNetError(f"{operator}: indices must be in [{-size}, {size + room - 1}], received {i}")
    return [i + size if i < 0 else i for i in positions]


@op("_npi_delete", data_dependent_shape=True, complete_rule="shape")
def delete(arr, obj=None, *, start: Optional[int] = None, stop: Optional[int] = None, step: Optional[int] = None,
           int_ind: Optional[int] = None, axis: Optional[int] = None):
    """Without the entries of `axis` that an index, a slice or an array names; flattened if `axis` is None.

    Raises
    ------
    MXNetError
        If a single index lies outside the axis; of several those outside are ignored.

    Example
    -------
    >>> mx.np.delete(mx.np.array([[1, 2, 3], [4, 5, 6]]), 1, axis=1)
    array([[1., 3.],
           [4., 6.]])
    """
    if obj is not None:
        _refuse_meta(obj)
    if step is not None:
        int_ind = None  # a slice is meant
        if step == 0:
            raise MXNetError(f"_npi_delete: `step` must not be 0, received {step}")
    if axis is None:
        arr, axis = arr.reshape(-1), 0
    elif not arr.dim():
        return arr.clone()
    else:
        axis = normalize_axis("_npi_delete", axis, arr.dim())
    size = arr.shape[axis]
    gone = set(_positions("_npi_delete", size, obj, start, stop, step, int_ind, ignore_outside=True))
    remaining = constant([i for i in range(size) if i not in gone], torch.int64, arr.device)
    return arr.index_select(axis, remaining)


@delete.shape_rule
@shape_of_inputs
def _(shape, obj=None, *, start, stop, step, int_ind, axis):
    if obj is not None or step == 0:  # the number of deleted entries depends on the values of `obj`
        return None
    if axis is None:
        shape, axis = (product(shape),), 0
    elif not shape:
        return shape
    else:
        axis = normalize_axis("_npi_delete", axis, len(shape))
    size = shape[axis]
    if size >= 0:
        size -= len(set(_positions("_npi_delete", size, None, start, stop, step, int_ind if step is None else None)))
    return (*shape[:axis], size, *shape[axis + 1:])


def _inserted(operator, arr, values, val, axis, find, moves):
    """`arr` with `values` (or the number `val`) before the places that ``find(size)`` names."""
    if axis is None:
        arr, axis = arr.reshape(-1), 0
    else:
        axis = normalize_axis(operator, axis, arr.dim())
    size = arr.shape[axis]
    places = find(size)
    if values is None:
        values = arr.new_full((), val)
    values = values.to(arr.dtype)
    values = values.reshape((1,) * (arr.dim() - values.dim()) + tuple(values.shape))
    if len(places) == 1:  # a single index takes any number of entries
        if moves:
            values = values.movedim(0, axis)
        places = places * values.shape[axis]
    count = len(places)
    target = list(arr.shape)
    target[axis] = count
    try:
        values = values.expand(target)
    except RuntimeError:
        raise MXNetError(f"{operator}: values of shape {tuple(values.shape)} do not fit the shape {tuple(target)} that is inserted") from None
    order = sorted(range(count), key=places.__getitem__)
    new = [0] * count
    for rank, i in enumerate(order):
        new[i] = places[i] + rank
    taken = set(new)
    old = [i for i in range(size + count) if i not in taken]
    target[axis] = size + count
    out = arr.new_zeros(target)
    out = out.index_copy(axis, constant(old, torch.int64, arr.device), arr)
    return out.index_copy(axis, constant(new, torch.int64, arr.device), values)


def _inserted_shape(operator, moves):
    """The shape rule of `_inserted` for positions in attributes."""
    def shape_of(shape, values=(), *, start, stop, step, int_ind, axis, **_):
        if axis is None:
            shape, axis = (product(shape),), 0
        else:
            axis = normalize_axis(operator, axis, len(shape))
        if len(values) > len(shape) or not moves and step == 0:
            return None
        values = [*(1,) * (len(shape) - len(values)), *values]
        size = shape[axis]
        if moves:  # before one index
            count = len(_positions(operator, size, None, None, None, None, int_ind or 0, room=1)) if size >= 0 else 1
        else:
            count = len(_positions(operator, size, None, start, stop, step, None)) if size >= 0 else -1
        if count == 1:
            values.insert(axis if moves else 0, values.pop(0))
            count = values[axis]
        target = [*shape[:axis], count, *shape[axis + 1:]]
        if not all(n == 1 or agree(n, wanted) for n, wanted in zip(values, target)):
            return None
        target[axis] = -1 if min(size, count) < 0 else size + count
        return tuple(target)
    return shape_of_inputs(shape_of)


def _insert_inputs(*names):
    def rule(attributes):
        return tuple(n for n in names if n != "values" or attributes["val"] is None)
    return rule


@op("_npi_insert_scalar", inputs_rule=_insert_inputs("arr", "values"), complete_rule="shape")
def insert_scalar(arr, values=None, *, val: Optional[float] = None, start: Optional[int] = None, stop: Optional[int] = None,
                  step: Optional[int] = None, int_ind: Optional[int] = None, axis: Optional[int] = None):
    """With `values` (or the number `val`) inserted before the index `int_ind`."""
    return _inserted("_npi_insert_scalar", arr, values, val, axis,
                     lambda size: _positions("_npi_insert_scalar", size, None, None, None, None, int_ind or 0, room=1), True)


@op("_npi_insert_slice", inputs_rule=_insert_inputs("arr", "values"), complete_rule="shape")
def insert_slice(arr, values=None, *, val: Optional[float] = None, start: Optional[int] = None, stop: Optional[int] = None,
                 step: Optional[int] = None, int_ind: Optional[int] = None, axis: Optional[int] = None):
    """With `values` (or the number `val`) inserted before each index of a slice."""
    return _inserted("_npi_insert_slice", arr, values, val, axis,
                     lambda size: _positions("_npi_insert_slice", size, None, start, stop, step, None), False)


insert_scalar.shape_rule(_inserted_shape("_npi_insert_scalar", True))
insert_slice.shape_rule(_inserted_shape("_npi_insert_slice", False))


@op("_npi_insert_tensor", inputs_rule=_insert_inputs("arr", "values", "obj"))
def insert_tensor(arr, values=None, obj=None, *, val: Optional[float] = None, start: Optional[int] = None, stop: Optional[int] = None,
                  step: Optional[int] = None, int_ind: Optional[int] = None, axis: Optional[int] = None):
    """With `values` (or the number `val`) inserted before each index of an array."""
    if obj is None:  # with a number for values the array of indices is the second input
        values, obj = None, values
    _refuse_meta(obj)
    return _inserted("_npi_insert_tensor", arr, values, val, axis,
                     lambda size: _positions("_npi_insert_tensor", size, obj, None, None, None, None, room=1), obj.dim() == 0)


@op("_npi_diag_indices_from", no_gradient=True, complete_rule="shape")
def diag_indices_from(data):
    """The indices of the main diagonal: one row for each axis.

    Example
    -------
    >>> mx.np.diag_indices_from(mx.np.zeros((2, 2)))
    (array([0, 1], dtype=int64), array([0, 1], dtype=int64))
    """
    if data.dim() < 2:
        raise InvalidValueError(f"_npi_diag_indices_from: input array must be at least 2-d, received shape {tuple(data.shape)}")
    if len(set(data.shape)) != 1:
        raise InvalidValueError(f"_npi_diag_indices_from: axes of equal length expected, received {tuple(data.shape)}")
    return torch.arange(data.shape[0], device=data.device).repeat(data.dim(), 1)


diag_indices_from.shape_rule(shape_of_inputs(lambda shape: (len(shape), max(shape)) if len(shape) > 1 and agree(*shape) else None))
diag_indices_from.dtype_rule(result_is(torch.int64))


@op("_npi_share_memory", no_gradient=True)
def share_memory(a, b):
    """Return a boolean scalar, True if the memory ranges of two arrays overlap."""
    return torch.full((), overlaps(a, b), dtype=torch.bool, device=a.device)


def overlaps(a: Any, b: Any) -> bool:
    """Return True if the memory ranges of two tensors overlap."""
    if a.device != b.device or not a.numel() or not b.numel():
        return False

    def limits(t):
        span = sum((n - 1) * abs(s) for n, s in zip(t.shape, t.stride())) + 1
        return t.data_ptr(), t.data_ptr() + span * t.element_size()

    (a0, a1), (b0, b1) = limits(a), limits(b)
    return a0 < b1 and b0 < a1


share_memory.dtype_rule(result_is(torch.bool))
