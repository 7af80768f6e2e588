"""Functions that join arrays or split one."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...base import integer_types
from ...suggestions import shortened
from ..frontend import Array, function

if TYPE_CHECKING:
    from ..argument_types import Sizes


def _listed(arrays):
    if not hasattr(arrays, "__getitem__") and hasattr(arrays, "__iter__"):
        raise ValueError(f"expected a sequence of arrays but got {type(arrays)}")
    return list(arrays)


@function("", "concatenate", "concat")
def concatenate(F: Any, seq: Any, axis: Sizes | None = 0, out: Array | None = None) -> Array:
    """The arrays one after another along `axis`; flattened ones if it is None."""
    return F.call("_npi_concatenate", *_listed(seq), axis="None" if axis is None else axis, out=out)


@function()
def append(F: Any, arr: Any, values: Any, axis: Sizes | None = None) -> Array:
    """`values` behind `arr` along `axis`; both flattened if it is None.

    Example
    -------
    >>> mx.np.append(mx.np.array([[1, 2]]), mx.np.array([[3, 4]])), mx.np.append(mx.np.zeros((1, 2)), mx.np.ones((3, 2)), axis=0).shape
    (array([1., 2., 3., 4.]), (4, 2))
    """
    return concatenate(F, (arr, values), axis)


@function()
def stack(F: Any, arrays: Any, axis: Sizes | None = 0, out: Array | None = None) -> Array:
    """The arrays along a new axis.

    Example
    -------
    >>> mx.np.stack([mx.np.array([1, 2]), mx.np.array([3, 4])], axis=1)
    array([[1., 3.],
           [2., 4.]])
    """
    return F.call("_npi_stack", *_listed(arrays), axis=axis, out=out)


@function()
def vstack(F: Any, arrays: Any, out: Array | None = None) -> Array:
    """The arrays one below the other; vectors count as rows."""
    return F.call("_npi_vstack", *_listed(arrays), out=out)


@function()
def row_stack(F: Any, arrays: Any) -> Array:
    """As `vstack`.

    Example
    -------
    >>> mx.np.row_stack([mx.np.array([1, 2]), mx.np.array([3, 4])])
    array([[1., 2.],
           [3., 4.]])
    """
    return vstack(F, arrays)


@function()
def hstack(F: Any, arrays: Any) -> Array:
    """The arrays one after another along the second axis; vectors along their only one."""
    return F.call("_npi_hstack", *_listed(arrays))


@function()
def dstack(F: Any, arrays: Any) -> Array:
    """The arrays one behind the other, along the third axis."""
    return F.call("_npi_dstack", *_listed(arrays))


@function()
def column_stack(F: Any, tup: Any) -> Array:
    """Vectors as the columns of a matrix; matrices side by side."""
    return F.call("_npi_column_stack", *_listed(tup))


def _as_list(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


def _parts(indices_or_sections):
    """Return the attributes `indices` and `sections` for an argument that is either."""
    if isinstance(indices_or_sections, integer_types):
        return {"indices": (), "sections": int(indices_or_sections)}
    if isinstance(indices_or_sections, (list, set, tuple)):
        return {"indices": (0, *indices_or_sections), "sections": 0}
    raise ValueError(f"indices_or_sections must be a number of parts or a list of indices, received {shortened(indices_or_sections)}")


@function()
def array_split(F: Any, ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Cut into pieces of nearly equal size, or before the given indices, along `axis`.

    Example
    -------
    >>> mx.np.array_split(mx.np.array([1, 2, 3]), 2)
    [array([1., 2.]), array([3.])]
    """
    return _as_list(F.call("_npi_split", ary, axis=axis, squeeze_axis=False, **_parts(indices_or_sections)))


@function()
def split(F: Any, ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Cut into pieces of equal size, or before the given indices, along `axis`.

    Raises
    ------
    ValueError
        If the axis cannot be cut into so many equal pieces.

    Example
    -------
    >>> mx.np.split(mx.np.array([1, 2, 3, 4]), 2), mx.np.split(mx.np.array([1, 2, 3, 4]), (1,))
    ([array([1., 2.]), array([3., 4.])], [array([1.]), array([2., 3., 4.])])
    """
    parts = _parts(indices_or_sections)
    shape = getattr(ary, "shape", None)
    if parts["sections"] and shape is not None and shape[axis] % parts["sections"]:
        raise ValueError(f"split: {shape[axis]} entries of axis {axis} make no {parts['sections']} equal parts; array_split allows unequal ones")
    return array_split(F, ary, indices_or_sections, axis)


def _require_axes(F, ary, n, name):
    shape = getattr(ary, "shape", None)
    if shape is not None and len(shape) < n:
        raise ValueError(f"{name} only works on arrays of {n} or more dimensions")


@function()
def hsplit(F: Any, ary: Any, indices_or_sections: Any) -> list[Array]:
    """Cut along the second axis; a vector along its only one."""
    _require_axes(F, ary, 1, "hsplit")
    return _as_list(F.call("_npi_hsplit", ary, axis=1, squeeze_axis=False, **_parts(indices_or_sections)))


@function()
def vsplit(F: Any, ary: Any, indices_or_sections: Any) -> list[Array]:
    """Cut along the first axis.

    Example
    -------
    >>> mx.np.vsplit(mx.np.array([[1, 2], [3, 4]]), 2)
    [array([[1., 2.]]), array([[3., 4.]])]
    """
    _require_axes(F, ary, 2, "vsplit")
    return split(F, ary, indices_or_sections, 0)


@function()
def dsplit(F: Any, ary: Any, indices_or_sections: Any) -> list[Array]:
    """Cut along the third axis."""
    _require_axes(F, ary, 3, "dsplit")
    return split(F, ary, indices_or_sections, 2)
