"""NumPy operators that change shapes, move axes, or take diagonals and differences."""
import ast
import math
from typing import Literal

import numpy as np
import torch

from ...base import MXNetError
from ...suggestions import shortened
from ..axes import normalize_axis
from ..docstrings import with_example
from ..host_arrays import constant, sent
from ..registry import op
from ..schema import Axes, Optional, Shape
from ..shapes import known, product, unify
from .common import reduced, require_one_type, shape_of_inputs


@op("_np_reshape", complete_rule="shape", shares_memory=True)
def reshape(a, *, newshape: Shape, order: str = "C"):
    """Another shape for the same elements; one size may be -1.

    Raises
    ------
    MXNetError
        If a size is below -1, or the sizes do not multiply up.

    Example
    -------
    >>> mx.np.reshape(mx.np.array([1, 2, 3, 4]), (2, -1))
    array([[1., 2.],
           [3., 4.]])
    """
    if order != "C":
        raise MXNetError(f"_np_reshape: only order 'C' is supported, received {shortened(order)}")
    if any(n < -1 for n in newshape):
        raise MXNetError(f"_np_reshape: sizes must be at least 0, or -1 for one to be inferred, received {newshape}; npx.reshape knows further codes")
    return a.reshape(newshape)


@reshape.shape_rule
def _(in_shapes, out_shapes, *, newshape, order):
    source, out = in_shapes[0], unify(out_shapes[0], newshape) if newshape.count(-1) < 2 else out_shapes[0]
    total, rest = product(source) if source is not None else -1, math.prod(n for n in newshape if n >= 0)
    if total >= 0:
        if total % rest if rest and -1 in newshape else total != rest:
            raise MXNetError(f"_np_reshape: an array of shape {source} has {total} elements, which do not fill the shape {newshape}")
        if rest:
            out = unify(out, tuple(total // rest if n < 0 else n for n in newshape))
    elif source is not None and known(out):
        out_total, in_total = math.prod(out), math.prod(n for n in source if n >= 0)
        if in_total and sum(n < 0 for n in source) == 1:  # its one unknown size follows from the result
            source = tuple(out_total // in_total if n < 0 else n for n in source)
    return [source], [out]


@op("_npx_reshape", aliases=("_npi_reshape",), shares_memory=True)
def reshape_with_codes(a, *, newshape: Shape, reverse: bool = False, order: str = "C"):
    """Change the shape, with codes that refer to the old one.

    ``-1`` is inferred, ``-2`` keeps a size, ``-3`` drops an axis of size 1, ``-4`` keeps all remaining sizes, ``-5`` joins two axes,
    ``-6`` splits one into the two sizes that follow (one of them may be -1). With `reverse` sizes are matched from the right.

    Raises
    ------
    MXNetError
        If a code finds no axis, or one that it cannot apply to.

    Example
    -------
    >>> mx.npx.reshape(mx.np.zeros((2, 3, 8)), (-2, -6, -1, 3, -4)).shape
    (2, 1, 3, 8)
    >>> mx.npx.reshape(mx.np.zeros((2, 3, 8)), (-5, -4)).shape
    (6, 8)
    """
    if order != "C":
        raise MXNetError(f"_npx_reshape: only order 'C' is supported, received {shortened(order)}")
    return a.reshape(decoded_shape(tuple(a.shape), newshape, reverse))


def decoded_shape(source: tuple[int, ...], target: tuple[int, ...], reverse: bool = False) -> tuple[int, ...]:
    """The shape that `_npx_reshape` makes of `source`, with at most one -1 left.

    Raises
    ------
    MXNetError
        If a code finds no axis, or one that it cannot apply to.
    """
    if reverse:
        # A split names its parts from left to right even when read backwards.
        groups, i = [], 0
        while i < len(target):
            width = 3 if target[i] == -6 else 1
            groups.append(target[i:i + width])
            i += width
        turned = tuple(n for group in reversed(groups) for n in (group if len(group) == 1 else (group[0], group[2], group[1])))
        return tuple(reversed(decoded_shape(tuple(reversed(source)), turned)))
    out, axis, i = [], 0, 0

    def take(count=1):
        nonlocal axis
        if axis + count > len(source):
            raise MXNetError(f"_npx_reshape: `newshape` {target} asks for more axes than the shape {source} has")
        axis += count
        return source[axis - count:axis]

    while i < len(target):
        code = target[i]
        if code >= 0 or code == -1:
            out.append(code)
            axis += 1
        elif code == -2:
            out.extend(take())
        elif code == -3:
            if take() != (1,):
                raise MXNetError(f"_npx_reshape: -3 drops an axis of size 1, but axis {axis - 1} of {source} has size {source[axis - 1]}")
        elif code == -4:
            out.extend(source[axis:])
            axis = len(source)
        elif code == -5:
            first, second = take(2)
            out.append(first * second)
        elif code == -6:
            size, (left, right) = take()[0], target[i + 1:i + 3]
            if left == -1:
                left = size // right
            elif right == -1:
                right = size // left
            if left * right != size:
                raise MXNetError(f"_npx_reshape: cannot split axis {axis - 1} of size {size} into {target[i + 1:i + 3]}")
            out += [left, right]
            i += 2
        else:
            raise MXNetError(f"_npx_reshape: {code} is no code for a size; use -1 to -6")
        i += 1
    return tuple(out)


@op("_np_squeeze", shares_memory=True)
def squeeze(a, *, axis: Axes = None):
    """Without axes of size 1: all, or the ones named.

    Raises
    ------
    MXNetError
        If a named axis has another size.

    Example
    -------
    >>> mx.np.squeeze(mx.np.zeros((1, 3, 1))).shape, mx.np.squeeze(mx.np.zeros((1, 3, 1)), axis=0).shape
    ((3,), (3, 1))
    """
    if axis is None:
        return a.squeeze()
    axes = [normalize_axis("_np_squeeze", i, max(a.dim(), 1)) for i in ((axis,) if isinstance(axis, int) else axis)]
    if not a.dim():
        return a.view(())
    for i in axes:
        if a.shape[i] != 1:
            raise MXNetError(f"squeeze: axis {i} has {a.shape[i]} entries; only axes of length 1 can go")
    return a.squeeze(axes) if axes else a.view(a.shape)


@op("_np_transpose")
def transpose(a, *, axes: Optional[Shape] = None):
    """The axes in another order, by default reversed.

    Example
    -------
    >>> mx.np.transpose(mx.np.zeros((2, 3, 4))).shape, mx.np.transpose(mx.np.zeros((2, 3, 4)), (0, 2, 1)).shape
    ((4, 3, 2), (2, 4, 3))
    """
    if not axes:
        axes = tuple(range(a.dim()))[::-1]
    return a.permute(axes).clone(memory_format=torch.contiguous_format)


@op("_np_moveaxis")
def moveaxis(a, *, source: Shape, destination: Shape):
    """Move axes to new places; the others keep their order.

    Example
    -------
    >>> mx.np.moveaxis(mx.np.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    return torch.movedim(a, source, destination).clone(memory_format=torch.contiguous_format)


@op("_np_roll", complete_rule="shape")
def roll(data, *, shift: Optional[Shape] = None, axis: Optional[Shape] = None):
    """Roll elements along axes: elements beyond the end reappear at the start. Without `axis` the array counts as flat.

    Raises
    ------
    MXNetError
        If `shift` is missing, or has not one number for each of `axis`.

    Example
    -------
    >>> mx.np.roll(mx.np.array([1, 2, 3, 4]), 1)
    array([4., 1., 2., 3.])
    >>> mx.np.roll(mx.np.array([[1, 2], [3, 4]]), 1, axis=0)
    array([[3., 4.],
           [1., 2.]])
    """
    shift, axes = _roll(data.dim(), shift, axis)
    return torch.roll(data, shift, axes)


def _roll(ndim, shift, axis):
    """Return the steps to roll by, and the axes; no axis for the flat array."""
    if shift is None:
        raise MXNetError("_np_roll: `shift` must be given, received None")
    if axis is None:
        return sum(shift), ()
    if len(shift) == 1:
        shift = shift * len(axis)
    if len(shift) != len(axis):
        raise MXNetError(f"_np_roll: `shift` and `axis` must be as long as each other, received {shift} and {axis}")
    if not ndim:
        raise MXNetError(f"_np_roll: an array without axes has none to roll along, received axis={axis}")
    return shift, [normalize_axis("_np_roll", i, ndim) for i in axis]


@roll.shape_rule
@shape_of_inputs
def _(shape, *, shift, axis):
    _roll(len(shape), shift, axis)
    return shape


@op("_npi_flip", complete_rule="shape")
def flip(data, *, axis: Axes = None):
    """Reversed along axes, by default all.

    Example
    -------
    >>> mx.np.flip(mx.np.array([[1, 2], [3, 4]]), axis=1)
    array([[2., 1.],
           [4., 3.]])
    """
    return torch.flip(data, _flipped(data.dim(), axis))


def _flipped(ndim, axis):
    axes = range(ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    return [normalize_axis("_npi_flip", i, ndim) for i in axes]


@flip.shape_rule
@shape_of_inputs
def _(shape, *, axis):
    axes = _flipped(len(shape), axis)
    return shape if len(set(axes)) == len(axes) else None


@op("_npi_rot90", complete_rule="shape")
def rot90(data, *, k: int = 1, axes: Optional[Shape] = (0, 1)):
    """Rotated `k` times by 90 degrees, from the first of `axes` towards the second.

    Example
    -------
    >>> mx.np.rot90(mx.np.array([[1, 2], [3, 4]]))
    array([[2., 4.],
           [1., 3.]])
    """
    return torch.rot90(data, k, (0, 1) if axes is None else axes).contiguous()


@rot90.shape_rule
@shape_of_inputs
def _(shape, *, k, axes):
    axes = (0, 1) if axes is None else axes
    if len(axes) != 2 or not _are_axes(shape, *axes):
        return None
    first, second = (i % len(shape) for i in axes)
    turned = {first: shape[second], second: shape[first]} if k % 2 else {}
    return tuple(turned.get(i, n) for i, n in enumerate(shape))


def _are_axes(shape, first, second):
    """True if these are two axes of arrays of this shape."""
    ndim = len(shape)
    return -ndim <= first < ndim and -ndim <= second < ndim and (first - second) % ndim != 0


@op("_npi_broadcast_to")
def broadcast_to(array, *, shape: Shape = ()):
    """A copy with axes of size 1, or missing in front, repeated to `shape`.

    Raises
    ------
    MXNetError
        If a size other than 1 would have to change.

    Example
    -------
    >>> mx.np.broadcast_to(mx.np.array([1, 2]), (2, 2))
    array([[1., 2.],
           [1., 2.]])
    """
    target = tuple(array.shape[i - len(shape) + array.dim()] if n == -2 else n for i, n in enumerate(shape))
    try:
        return array.expand(target).clone(memory_format=torch.contiguous_format)
    except RuntimeError:
        raise MXNetError(f"cannot broadcast shape {tuple(array.shape)} to {target}") from None


def _at_least(n, function, shape):
    def fn(*arys, num_args: Optional[int] = None):
        if not arys:
            raise MXNetError(f"_np_atleast_{n}d: one array or more expected, received none")
        out = tuple(function(a).clone(memory_format=torch.contiguous_format) for a in arys)
        return out[0] if len(out) == 1 else out

    fn.__name__ = fn.__qualname__ = f"atleast_{n}d"
    fn.__doc__ = with_example(f"The arrays with axes of size 1 added to those that have fewer than {n}.",
                              f"mx.np.atleast_{n}d(mx.np.zeros({'()' if n == 1 else '(3,)'})).shape -> {shape}")
    op(f"_np_atleast_{n}d", key_var_num_args="num_args", num_outputs=lambda attributes: attributes["num_args"] or 1)(fn)


_at_least(1, torch.atleast_1d, "(1,)")
_at_least(2, torch.atleast_2d, "(1, 3)")
_at_least(3, torch.atleast_3d, "(1, 3, 1)")


@op("_np_diag", complete_rule="shape")
def diag(data, *, k: int = 0):
    """The `k`-th diagonal of a matrix, or a matrix with a vector as its `k`-th diagonal.

    Raises
    ------
    MXNetError
        If `data` has neither one nor two axes.

    Example
    -------
    >>> mx.np.diag(mx.np.array([[1, 2], [3, 4]]))
    array([1., 4.])
    >>> mx.np.diag(mx.np.array([1, 2]))
    array([[1., 0.],
           [0., 2.]])
    """
    if data.dim() not in (1, 2):
        raise MXNetError(f"_np_diag: input must be 1- or 2-d, received shape {tuple(data.shape)}")
    return torch.diag(data, k).clone() if data.dim() == 2 else torch.diag_embed(data, k)


@diag.shape_rule
@shape_of_inputs
def _(shape, *, k):
    if len(shape) == 2:
        return (-1 if min(shape) < 0 else max(min(shape[0] + min(k, 0), shape[1] - max(k, 0)), 0),)
    return _matrix_around(shape, k) if len(shape) == 1 else None


def _matrix_around(shape, k):
    """The shape of the matrix with this many elements on its `k`-th diagonal."""
    count = product(shape)
    return (-1 if count < 0 else count + abs(k),) * 2


@op("_np_diagflat", complete_rule="shape")
def diagflat(data, *, k: int = 0):
    """A matrix with the flattened array as its `k`-th diagonal.

    Example
    -------
    >>> mx.np.diagflat(mx.np.array([[1, 2]]), k=1)
    array([[0., 1., 0.],
           [0., 0., 2.],
           [0., 0., 0.]])
    """
    return torch.diagflat(data, k)


diagflat.shape_rule(shape_of_inputs(lambda shape, *, k: _matrix_around(shape, k)))


@op("_np_diagonal")
def diagonal(data, *, offset: int = 0, axis1: int = 0, axis2: int = 1):
    """The diagonals of the matrices in two axes, along a new last axis.

    Example
    -------
    >>> mx.np.diagonal(mx.np.array([[1, 2], [3, 4]]), offset=1)
    array([2.])
    """
    return torch.diagonal(data, offset, axis1, axis2).clone(memory_format=torch.contiguous_format)


@op("_np_trace", complete_rule="shape")
def trace(data, *, offset: int = 0, axis1: int = 0, axis2: int = 1):
    """The sums of the diagonals of the matrices in two axes.

    Example
    -------
    >>> mx.np.trace(mx.np.array([[1, 2], [3, 4]]))
    array(5.)
    """
    return torch.diagonal(data, offset, axis1, axis2).sum(-1, dtype=data.dtype)


@trace.shape_rule
@shape_of_inputs
def _(shape, *, offset, axis1, axis2):
    return reduced(shape, (axis1 % len(shape), axis2 % len(shape))) if _are_axes(shape, axis1, axis2) else None


@op("_npi_tril", complete_rule="shape")
def tril(data, *, k: int = 0):
    """Matrices with zeros above the `k`-th diagonal; a vector counts as the rows of a matrix.

    Raises
    ------
    MXNetError
        If `data` has no axis.

    Example
    -------
    >>> mx.np.tril(mx.np.array([[1, 2], [3, 4]]))
    array([[1., 0.],
           [3., 4.]])
    """
    if not data.dim():
        raise MXNetError("_npi_tril: input must have at least one axis, received a scalar")
    return torch.tril(data.expand(data.shape[0], data.shape[0]) if data.dim() == 1 else data, k)


tril.shape_rule(shape_of_inputs(lambda shape, *, k: (shape * 2 if len(shape) == 1 else shape) or None))


_PAD_MODES = Literal["constant", "edge", "reflect", "symmetric", "maximum", "minimum"]


@op("_npi_pad", complete_rule="shape")
def pad(data, *, pad_width: str, mode: _PAD_MODES = "constant", constant_value: float = 0.0, reflect_type: str = "even"):
    """The array with further elements before and after each axis.

    Parameters
    ----------
    pad_width : tuple of (int, int)
        The numbers of elements before and after, for each axis. For vectors also two pairs, whose first numbers count: ``((before,), (after,))``.
    mode : str
        A constant, the nearest element, the array mirrored with (``symmetric``) or without its border, or the extremes of the axis.

    Raises
    ------
    MXNetError
        If `pad_width` does not fit the axes, or `reflect_type` is not 'even'.

    Example
    -------
    >>> mx.np.pad(mx.np.array([1, 2, 3]), (1, 2), mode='reflect')
    array([2., 1., 2., 3., 2., 1.])
    """
    widths = _pad_widths(data.dim(), pad_width)
    if mode == "constant":
        return torch.nn.functional.pad(data, [n for pair in reversed(widths) for n in pair], value=constant_value)
    if reflect_type != "even":
        raise MXNetError(f"_npi_pad: only reflect_type='even' is supported, received {shortened(reflect_type)}")
    for axis, (before, after) in enumerate(widths):
        if not (before or after):
            continue
        if mode in ("maximum", "minimum"):
            extreme = (torch.amax if mode == "maximum" else torch.amin)(data, axis, keepdim=True)
            parts = [extreme.expand(*data.shape[:axis], n, *data.shape[axis + 1:]) for n in (before, after)]
            data = torch.cat([parts[0], data, parts[1]], axis)
        else:
            index = np.pad(np.arange(data.shape[axis]), (before, after), mode)
            data = data.index_select(axis, sent(torch.from_numpy(index), data.device))
    return data.clone() if not any(n for pair in widths for n in pair) else data


def _pad_widths(ndim, pad_width):
    """Return the numbers of elements before and after each axis."""
    try:
        widths = ast.literal_eval(pad_width)
        if ndim == 1 and len(widths) == 2:
            widths = ((widths[0][0], widths[1][0]),)
        if len(widths) == ndim and all(len(pair) == 2 and min(pair) >= 0 for pair in widths):
            return widths
    except (ValueError, SyntaxError, TypeError, IndexError):
        pass
    raise MXNetError(f"_npi_pad: `pad_width` must hold a pair of sizes for each of the {ndim} axes, received {shortened(pad_width)}")


@pad.shape_rule
@shape_of_inputs
def _(shape, *, pad_width, mode, reflect_type, **_):
    if mode != "constant" and (reflect_type != "even" or 0 in shape):  # elements are added to none by a constant only
        return None
    return tuple(n if n < 0 else before + n + after for n, (before, after) in zip(shape, _pad_widths(len(shape), pad_width)))


@op("_npi_diff", complete_rule="shape")
def diff(a, *, n: int = 1, axis: int = -1):
    """The differences between neighbours along `axis`, taken `n` times.

    Raises
    ------
    MXNetError
        If `n` is negative, or `a` has no such axis.

    Example
    -------
    >>> mx.np.diff(mx.np.array([1, 2, 4, 7])), mx.np.diff(mx.np.array([1, 2, 4, 7]), n=2)
    (array([1., 2., 3.]), array([1., 1.]))
    """
    if n < 0:
        raise MXNetError(f"_npi_diff: `n` must be at least 0, received {n}")
    return torch.diff(a, n=n, dim=normalize_axis("_npi_diff", axis, a.dim())) if n else a.clone()


@diff.shape_rule
@shape_of_inputs
def _(shape, *, n, axis):
    if n <= 0:
        return None if n else shape
    axis = normalize_axis("_npi_diff", axis, len(shape))
    return (*shape[:axis], max(shape[axis] - n, min(shape[axis], 0)), *shape[axis + 1:])


def _one(like, value):
    """A vector of one number; integers are truncated and wrap around."""
    number, dtype = (value, torch.float32) if like.is_floating_point() else (int(value), torch.int64)
    return constant([number], dtype, like.device).to(like.dtype)


def _ediff_inputs(attributes):
    given = attributes["to_begin_arr_given"] + attributes["to_end_arr_given"]
    return ("input1", "input2", "input3")[:1 + given]


@op("_npi_ediff1d", inputs_rule=_ediff_inputs, complete_rule="shape")
def ediff1d(input1, input2=None, input3=None, *, to_begin_arr_given: bool = False, to_end_arr_given: bool = False,
            to_begin_scalar: Optional[float] = None, to_end_scalar: Optional[float] = None):
    """The differences between neighbours of the flattened array, with optional elements before and after them.

    Raises
    ------
    MXNetError
        If the types differ.

    Example
    -------
    >>> mx.np.ediff1d(mx.np.array([1, 2, 4]), to_begin=-99, to_end=mx.np.array([88, 99]))
    array([-99.,   1.,   2.,  88.,  99.])
    """
    extra = [t for t in (input2, input3) if t is not None]
    require_one_type("_npi_ediff1d", input1, *extra)
    begin = extra.pop(0).reshape(-1) if to_begin_arr_given else None
    end = extra.pop(0).reshape(-1) if to_end_arr_given else None
    if to_begin_scalar is not None:
        begin = _one(input1, to_begin_scalar)
    if to_end_scalar is not None:
        end = _one(input1, to_end_scalar)
    middle = torch.diff(input1.reshape(-1)) if input1.numel() else input1.reshape(-1)
    return torch.cat([t for t in (begin, middle, end) if t is not None])


@ediff1d.shape_rule
@shape_of_inputs
def _(shape, *extra, to_begin_arr_given, to_end_arr_given, to_begin_scalar, to_end_scalar):
    count, ends = product(shape), [product(s) for s in extra]
    begin = ends.pop(0) if to_begin_arr_given else 0
    end = ends.pop(0) if to_end_arr_given else 0
    begin, end = begin if to_begin_scalar is None else 1, end if to_end_scalar is None else 1
    return (-1 if min(count, begin, end) < 0 else begin + max(count - 1, 0) + end,)


@op("_npi_resize_fallback")
def resize(a, *, new_shape: Shape):
    """The elements, repeated as often as needed, in another shape."""
    size = math.prod(new_shape)
    if min(new_shape, default=0) < 0:
        raise MXNetError(f"_npi_resize_fallback: sizes must not be negative, received {new_shape}")
    flat = a.reshape(-1)
    if not flat.shape[0] or not size:
        return a.new_zeros(new_shape)
    return flat.repeat(-(-size // flat.shape[0]))[:size].reshape(new_shape).clone()
