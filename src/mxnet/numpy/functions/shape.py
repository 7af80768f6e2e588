"""Functions that change shapes and move axes."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as onp

from ...base import MXNetError
from ..frontend import NUMBERS, function

if TYPE_CHECKING:
    from ..argument_types import Sizes
    from ..frontend import Array


@function()
def reshape(F: Any, a: Any, newshape: Sizes, order: str = "C", out: Array | None = None) -> Array:
    """Another shape for the same elements; one size may be -1."""
    return F.call("_np_reshape", a, newshape=newshape, order="C" if order in (None, "F", "A") else order, out=out)


@function()
def ravel(F: Any, x: Any, order: str = "C") -> Array:
    """The elements in one axis.

    Example
    -------
    >>> mx.np.ravel(mx.np.array([[1, 2], [3, 4]]))
    array([1., 2., 3., 4.])
    """
    if order == "F":
        raise NotImplementedError("order F is not supported")
    if isinstance(x, NUMBERS):
        return onp.reshape(x, -1)
    if not F.is_array(x):
        raise TypeError(f"type {type(x)} not supported")
    return F.call("_npx_reshape", x, newshape=-1)


@function()
def squeeze(F: Any, a: Any, axis: Sizes | None = None, out: Array | None = None) -> Array:
    """Without axes of size 1: all, or the ones named."""
    return F.call("_np_squeeze", a, axis=axis, out=out)


@function()
def transpose(F: Any, a: Any, axes: Any = None) -> Array:
    """The axes in another order, by default reversed."""
    return F.call("_np_transpose", a, axes=None if axes is None else tuple(axes))


@function()
def permute_dims(F: Any, a: Any, axes: Any = None) -> Array:
    """As `transpose`.

    Example
    -------
    >>> mx.np.permute_dims(mx.np.zeros((2, 3, 4)), (1, 2, 0)).shape
    (3, 4, 2)
    """
    return transpose(F, a, axes)


@function()
def moveaxis(F: Any, a: Any, source: Any, destination: Any) -> Array:
    """Move axes to new places; the others keep their order."""
    return F.call("_np_moveaxis", a, source=source, destination=destination)


@function()
def swapaxes(F: Any, a: Any, axis1: int, axis2: int) -> Array:
    """Two axes exchanged.

    Example
    -------
    >>> mx.np.swapaxes(mx.np.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    return F.call("_npi_swapaxes", a, dim1=axis1, dim2=axis2)


@function()
def expand_dims(F: Any, a: Any, axis: Sizes) -> Array:
    """A new axis of size 1 at `axis`.

    Example
    -------
    >>> mx.np.expand_dims(mx.np.zeros((2, 3)), 1).shape
    (2, 1, 3)
    """
    return F.call("_npi_expand_dims", a, axis=axis)


@function()
def broadcast_to(F: Any, array: Any, shape: Sizes) -> Array:
    """Axes of size 1, or missing in front, repeated to `shape`."""
    if onp.isscalar(array):
        return F.call("_npi_full", shape=shape, value=array, ctx=F.context(None), dtype="float32")
    return F.call("_npi_broadcast_to", array, shape=shape)


@function()
def roll(F: Any, a: Any, shift: Any, axis: Sizes | None = None) -> Array:
    """Roll elements along axes; those shifted past the end re-enter at the start."""
    return F.call("_np_roll", a, shift=shift, axis=axis)


@function()
def flip(F: Any, m: Any, axis: Sizes | None = None, out: Array | None = None) -> Array:
    """Reversed along axes, by default all."""
    if isinstance(m, NUMBERS):
        return onp.flip(m, axis)
    if not F.is_array(m):
        raise TypeError(f"type {type(m)} not supported")
    return F.call("_npi_flip", m, axis=axis, out=out)


@function()
def flipud(F: Any, m: Any) -> Array:
    """The rows in reverse order.

    Example
    -------
    >>> mx.np.flipud(mx.np.array([[1, 2], [3, 4]]))
    array([[3., 4.],
           [1., 2.]])
    """
    return flip(F, m, 0)


@function()
def fliplr(F: Any, m: Any) -> Array:
    """The columns in reverse order.

    Example
    -------
    >>> mx.np.fliplr(mx.np.array([[1, 2], [3, 4]]))
    array([[2., 1.],
           [4., 3.]])
    """
    return flip(F, m, 1)


@function()
def rot90(F: Any, m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Array:
    """Rotated by `k` times 90 degrees, from the first of `axes` towards the second."""
    return F.call("_npi_rot90", m, k=k, axes=axes)


@function()
def tile(F: Any, A: Any, reps: Any) -> Any:
    """The array repeated along its axes.

    Example
    -------
    >>> mx.np.tile(mx.np.array([1, 2]), (2, 2))
    array([[1., 2., 1., 2.],
           [1., 2., 1., 2.]])
    """
    if isinstance(A, NUMBERS):
        try:
            return onp.tile(A, reps)
        except MemoryError as error:
            raise MXNetError(f"tile: {error}") from error
    if not F.is_array(A):
        raise TypeError(f"type {type(A)} not supported")
    return F.call("_npi_tile", A, reps=reps)


@function()
def repeat(F: Any, a: Any, repeats: Any, axis: int | None = None) -> Array:
    """Each element repeated, along `axis` or of the flattened array.

    Example
    -------
    >>> mx.np.repeat(mx.np.array([[1, 2], [3, 4]]), 2, axis=1)
    array([[1., 1., 2., 2.],
           [3., 3., 4., 4.]])
    """
    return F.call("_np_repeat", a, repeats=repeats, axis=axis)


@function()
def diagonal(F: Any, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonals of the matrices in two axes, along a new last axis."""
    return F.call("_np_diagonal", a, offset=offset, axis1=axis1, axis2=axis2)


@function()
def trace(F: Any, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, out: Array | None = None) -> Array:
    """The sums of the diagonals of the matrices in two axes."""
    return F.call("_np_trace", a, offset=offset, axis1=axis1, axis2=axis2, out=out)


def _at_least(n):
    name = f"atleast_{n}d"

    def fn(F, *arys) -> Any:
        out = F.call(f"_np_{name}", *arys)
        return out

    fn.__name__ = name
    fn.__doc__ = f"The arrays with axes of size 1 added to those that have fewer than {n}."
    function()(fn)


for _n in (1, 2, 3):
    _at_least(_n)

# The arguments of `pad` for each mode; the last three modes are NumPy's but not MXNet's.
_PAD_ARGUMENTS = {"constant": ("constant_values",), "edge": (), "maximum": ("stat_length",), "minimum": ("stat_length",),
                  "reflect": ("reflect_type",), "symmetric": ("reflect_type",)}


@function()
def pad(F: Any, x: Any, pad_width: Any = None, mode: str = "constant", **kwargs: Any) -> Array:
    """The array with further elements before and after each axis.

    Parameters
    ----------
    pad_width : int, (int, int), or ((int, int), ...)
    mode : {'constant', 'edge', 'reflect', 'symmetric', 'maximum', 'minimum'}
    constant_values : float
        The value of 'constant', by default 0.

    Raises
    ------
    ValueError
        If the mode or an argument for it is not supported.
    """
    if mode not in _PAD_ARGUMENTS:
        raise ValueError(f"mode {mode!r} is not supported; use one of {', '.join(_PAD_ARGUMENTS)}")
    unknown = [k for k in kwargs if k not in _PAD_ARGUMENTS[mode]]
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    if kwargs.get("stat_length") is not None or kwargs.get("reflect_type") not in (None, "even"):
        raise ValueError(f"unsupported arguments for mode '{mode}': {kwargs}")
    value = kwargs.get("constant_values", 0)
    if isinstance(value, (tuple, list)):
        raise TypeError(f"unsupported constant_values type: {type(value).__name__}; one number is expected")
    widths = pad_width
    if isinstance(widths, (int, onp.integer)):
        widths = ((int(widths), int(widths)),) * F.ndim(x)
    elif widths and isinstance(widths[0], (int, onp.integer)):
        widths = ((int(widths[0]), int(widths[-1])),) * F.ndim(x)
    elif len(widths) == 1:
        widths = (tuple(widths[0]),) * (F.ndim(x) if F.kind.__name__ == "ndarray" else 1)
    widths = tuple((int(pair[0]), int(pair[-1])) for pair in widths)
    extra = {"constant_value": value} if mode == "constant" else {}
    return F.call("_npi_pad", x, pad_width=str(widths), mode=mode, **extra)


@function()
def diff(F: Any, a: Any, n: int = 1, axis: Sizes | None = -1, prepend: Any = None, append: Any = None) -> Array:
    """The differences between neighbours along `axis`, taken `n` times."""
    if prepend is not None or append is not None:
        raise NotImplementedError("diff: prepend and append must be None; concatenate before")
    return F.call("_npi_diff", a, n=n, axis=axis)


@function()
def ediff1d(F: Any, ary: Any, to_end: Any = None, to_begin: Any = None) -> Array:
    """The differences between neighbours of the flattened array, with `to_begin` before and `to_end` after them."""
    inputs, attrs = [ary], {}
    for name, value in (("begin", to_begin), ("end", to_end)):
        if F.is_array(value):
            inputs.append(value)
            attrs[f"to_{name}_arr_given"] = True
        elif value is not None:
            attrs[f"to_{name}_scalar"] = value
    return F.call("_npi_ediff1d", *inputs, **attrs)


@function()
def resize(F: Any, a: Any, new_shape: Any) -> Array:
    """The elements, repeated as often as needed, in another shape.

    Example
    -------
    >>> mx.np.resize(mx.np.array([1, 2, 3]), (2, 2))
    array([[1., 2.],
           [3., 1.]])
    """
    new_shape = (new_shape,) if isinstance(new_shape, int) else tuple(new_shape)
    if any(n < 0 for n in new_shape):
        raise ValueError(f"all elements of `new_shape` must be non-negative, received {new_shape}")
    return F.call("_npi_resize_fallback", a, new_shape=new_shape)
