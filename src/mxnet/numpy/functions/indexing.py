"""Functions that select, find, insert and sort elements."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as onp

from ...base import integer_types
from ...suggestions import shortened
from ..frontend import NUMBERS, Array, function

if TYPE_CHECKING:
    from ..argument_types import Sizes


@function()
def take(F: Any, a: Any, indices: Any, axis: Sizes | None = None, mode: str = "raise", out: Array | None = None) -> Array:
    """The slices of `a` along `axis` (or elements of the flattened array) that `indices` names.

    Parameters
    ----------
    mode : {'raise', 'clip', 'wrap'}
        The treatment of an index outside the axis.

    Example
    -------
    >>> x = mx.np.array([4, 5, 6])
    >>> mx.np.take(x, mx.np.array([2, 0])), mx.np.take(x, mx.np.array([-1, 9]), mode='clip')
    (array([6., 4.]), array([4., 6.]))
    """
    if mode not in ("wrap", "clip", "raise"):
        raise NotImplementedError(f"take: mode must be 'clip', 'wrap' or 'raise', received {shortened(mode)}")
    if axis is None:
        a, axis = F.call("_npx_reshape", a, newshape=-1), 0
    return F.call("_npi_take", a, indices, axis=axis, mode=mode, out=out)


@function()
def where(F: Any, condition: Any, x: Any = None, y: Any = None) -> Array | Any:
    """Elements of `x` where `condition` is not 0, of `y` elsewhere; without both the indices where it is not 0."""
    if (x is None) != (y is None):
        raise ValueError(f"either both or neither of x and y should be given, received only {'y' if x is None else 'x'}")
    if x is None:
        return nonzero(F, condition)
    if isinstance(condition, NUMBERS):
        return x if condition != 0 else y
    x, y = (v.item() if isinstance(v, onp.ndarray) and v.size == 1 else v for v in (x, y))
    x_number, y_number = isinstance(x, NUMBERS), isinstance(y, NUMBERS)
    if x_number and y_number:
        return F.call("_npi_where_scalar2", condition, x=float(x), y=float(y))
    if x_number:
        return F.call("_npi_where_lscalar", condition, y, scalar=float(x))
    if y_number:
        return F.call("_npi_where_rscalar", condition, x, scalar=float(y))
    for value in (condition, x, y):
        if not F.is_array(value):
            raise TypeError(f"type {type(value)} not supported")
    return F.call("_npi_where", condition, x, y)


@function()
def nonzero(F: Any, a: Any) -> tuple[Array, ...]:
    """The indices of the elements other than 0: a tuple with one array for each axis; a number counts as an array of one.

    Example
    -------
    >>> mx.np.nonzero(mx.np.array([[1, 0], [0, 2]]))
    (array([0, 1], dtype=int64), array([0, 1], dtype=int64))
    """
    rows = F.call("_npi_nonzero", a)
    return tuple(rows[:, i] for i in range(max(F.ndim(a), 1)))


@function()
def unique(F: Any, ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: Sizes | None = None) -> Any:
    """The unique elements in ascending order; further results on request, in the order of the parameters."""
    result = F.call("_npi_unique", ar, return_index=return_index, return_inverse=return_inverse, return_counts=return_counts, axis=axis)
    return tuple(result) if isinstance(result, list) else result


@function()
def argsort(F: Any, a: Any, axis: Sizes | None = -1, kind: Any = None, order: str | None = None, descending: bool = False,
            stable: bool = True) -> Array:
    """The indices, as int64, that sort `a` along `axis`, the largest first if `descending`. The sort is stable, with or without `stable`.

    Example
    -------
    >>> mx.np.argsort(mx.np.array([30, 10, 20]))
    array([1, 2, 0], dtype=int64)
    """
    descending = _is_descending(kind, order, descending)
    return F.call("_npi_argsort", a, axis="None" if axis is None else axis, is_ascend=not descending, dtype="int64")


@function()
def sort(F: Any, a: Any, axis: Sizes | None = -1, kind: Any = None, order: str | None = None, descending: bool = False,
         stable: bool = True) -> Array:
    """`a` sorted along `axis`, the largest first if `descending`. The sort is stable, with or without `stable`.

    Example
    -------
    >>> mx.np.sort(mx.np.array([[3, 1, 2], [5, 6, 4]]))
    array([[1., 2., 3.],
           [4., 5., 6.]])
    """
    descending = _is_descending(kind, order, descending)
    return F.call("_npi_sort", a, axis="None" if axis is None else axis, is_ascend=not descending)


def _is_descending(kind, order, descending):
    """Return True for descending order in `sort` and `argsort`: MXNet 2.0 has `descending` in the place where NumPy has the name of an algorithm."""
    if order is not None:
        raise NotImplementedError("order not supported here")
    return kind if isinstance(kind, bool) else descending


def _slice(obj):
    return {"start": obj.start, "stop": obj.stop, "step": 1 if obj.step is None else obj.step}


@function()
def delete(F: Any, arr: Any, obj: Any, axis: Sizes | None = None) -> Array:
    """Return `arr` without the entries of `axis` (or of the flattened array) that an index, a slice or an array names."""
    if not F.is_array(arr):
        raise TypeError(f"'arr' can not support type {type(arr)}")
    if isinstance(obj, slice):
        return F.call("_npi_delete", arr, axis=axis, **_slice(obj))
    if isinstance(obj, integer_types):
        return F.call("_npi_delete", arr, int_ind=obj, axis=axis)
    if F.is_array(obj):
        return F.call("_npi_delete", arr, obj, axis=axis)
    raise TypeError(f"'obj' can not support type {type(obj)}")


@function()
def insert(F: Any, arr: Any, obj: Any, values: Any, axis: Sizes | None = None) -> Array:
    """With `values` inserted before an index, or each index of a slice or an array, of `axis` (or of the flattened array).

    Example
    -------
    >>> mx.np.insert(mx.np.array([1, 2, 3]), 1, 9), mx.np.insert(mx.np.array([[1, 2], [3, 4]]), 2, 9, axis=1)
    (array([1., 9., 2., 3.]), array([[1., 2., 9.],
           [3., 4., 9.]]))
    """
    if not F.is_array(arr):
        raise TypeError(f"'arr' can not support type {type(arr)}")
    inputs, attrs = [arr], {"axis": axis}
    if isinstance(values, NUMBERS):
        attrs["val"] = values
    elif F.is_array(values):
        inputs.append(values)
    else:
        raise TypeError(f"'values' can not support type {type(values)}")
    if isinstance(obj, slice):
        return F.call("_npi_insert_slice", *inputs, **_slice(obj), **attrs)
    if isinstance(obj, integer_types):
        return F.call("_npi_insert_scalar", *inputs, int_ind=obj, **attrs)
    if F.is_array(obj):
        return F.call("_npi_insert_tensor", *inputs, obj, **attrs)
    raise TypeError(f"'obj' can not support type {type(obj)}")


@function()
def unravel_index(F: Any, indices: Any, shape: Sizes, order: str = "C") -> tuple[Array, ...]:
    """For each index into the flattened array its indices along the axes: a tuple with one array for each.

    Example
    -------
    >>> mx.np.unravel_index(mx.np.array([2, 3], dtype='int64'), (2, 3))
    (array([0, 1], dtype=int64), array([2, 0], dtype=int64))
    """
    if order != "C":
        raise NotImplementedError(f"unravel_index: order must be 'C', received {shortened(order)}")
    if isinstance(indices, NUMBERS):
        return onp.unravel_index(indices, shape)
    rows = F.call("_unravel_index", indices, shape=shape)
    return tuple(rows[i] for i in range(1 if isinstance(shape, int) else len(shape)))


@function()
def diag_indices_from(F: Any, arr: Any) -> tuple[Array, ...]:
    """The indices of the main diagonal: a tuple with one array for each axis."""
    rows = F.call("_npi_diag_indices_from", arr)
    return tuple(rows[i] for i in range(arr.ndim)) if hasattr(arr, "ndim") else rows


@function()
def shares_memory(F: Any, a: Any, b: Any, max_work: Any = None) -> Any:
    """Return True if two arrays use overlapping memory.

    Example
    -------
    >>> x = mx.np.zeros(4)
    >>> mx.np.shares_memory(x, x[1:3]), mx.np.shares_memory(x, x.copy())
    (True, False)
    """
    return F.truth(F.call("_npi_share_memory", a, b))


@function()
def may_share_memory(F: Any, a: Any, b: Any, max_work: Any = None) -> Any:
    """As `shares_memory`.

    Example
    -------
    >>> x = mx.np.zeros(4)
    >>> mx.np.may_share_memory(x, x[1:3]), mx.np.may_share_memory(x, x.copy())
    (True, False)
    """
    return shares_memory(F, a, b)
