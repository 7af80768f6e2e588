"""Operators that keep the elements and change how they are arranged: Reshape, transpose, squeeze, depth_to_space, ..."""
import math
from typing import Optional

import torch

from ...base import MXNetError
from ...kernels.memory import transpose as kernels
from ..axes import normalize_axis, require_ndim
from ..host_arrays import constant
from ..quantization.arithmetic import Quantized
from ..quantization.form import EightBits, quantized_form
from ..registry import op
from ..schema import Axes, Shape
from ..shapes import known, product, unify


def infer_reshape(target: tuple[int, ...], source: tuple[int, ...], reverse: bool = False) -> tuple[int, ...]:
    """The shape that `target`, with MXNet's special codes, means for an array of shape `source` (-1 for an unknown size).

    ``0`` keeps the size of that axis, ``-1`` takes what is left, ``-2`` keeps all remaining axes, ``-3`` joins two axes,
    ``-4, a, b`` splits one axis in two. With `reverse` the codes are read from the right.

    Raises
    ------
    MXNetError
        If a code needs an axis that `source` lacks, two sizes are to be inferred, or the sizes do not multiply up.
    """
    codes, sizes = (target[::-1], source[::-1]) if reverse else (target, source)
    out, position, inferred, i = [], 0, None, 0

    def take(code):
        nonlocal position
        if position >= len(sizes):
            raise MXNetError(f"Reshape: code {code} in shape={target} needs axis {position}, but the data has {len(sizes)} axes "
                             f"{source}; give explicit sizes there")
        position += 1
        return sizes[position - 1]

    while i < len(codes):
        code = codes[i]
        if code == 0:
            out.append(take(0))
        elif code == -1:
            if inferred is not None:
                raise MXNetError(f"Reshape: one and only one -1 can be inferred, received shape={target}")
            inferred = len(out)
            out.append(1)
            position += 1
        elif code == -2:
            out.extend(sizes[position:])
            position = len(sizes)
        elif code == -3:
            out.append(product((take(-3), take(-3))))
        elif code == -4:
            if i + 2 >= len(codes):
                raise MXNetError(f"Reshape: code -4 must be followed by two sizes, received shape={target}")
            size, first, second = take(-4), codes[i + 1], codes[i + 2]
            if first == -1 and second == -1:
                raise MXNetError(f"Reshape: only one of the two sizes after -4 may be -1, received shape={target}")
            if first == -1:
                first = -1 if size < 0 else size // second
            elif second == -1:
                second = -1 if size < 0 else size // first
            if size >= 0 and first * second != size:
                raise MXNetError(f"Reshape: shape={target} splits an axis of size {size} into {first} x {second}")
            out += (first, second)
            i += 2
        elif code > 0:
            out.append(code)
            position += 1
        else:
            raise MXNetError(f"Reshape: unknown code {code} in shape={target}; expected sizes and the codes 0 to -4")
        i += 1
    total = product(source)
    if inferred is not None:
        rest = product(out)
        if total == rest == 0:  # the kept sizes contain 0: compute the inferred size from the other ones
            out[inferred] = math.prod(s for s in source if s) // math.prod(s for s in out if s)
        else:
            out[inferred] = -1 if total < 0 or rest <= 0 else total // rest
    if total >= 0 and min(out, default=0) >= 0 and math.prod(out) != total:
        raise MXNetError(f"Reshape: cannot reshape an array of shape {source} ({total} elements) into "
                         f"{tuple(out[::-1] if reverse else out)} ({math.prod(out)} elements)")
    return tuple(out[::-1] if reverse else out)


def _legacy_target(target_shape, keep_highest, source):
    """The meaning of the deprecated `target_shape`: 0 is the inferred size, the first one stays with `keep_highest`."""
    sizes = [source[0], *target_shape[1:]] if keep_highest else list(target_shape)
    holes = [i for i, s in enumerate(sizes) if s == 0]
    if len(holes) > 1:
        raise MXNetError(f"Reshape: at most one size of target_shape can be 0, received {target_shape}")
    if holes:
        total, rest = product(source), product(s for s in sizes if s != 0)
        sizes[holes[0]] = -1 if total < 0 or rest <= 0 else total // rest
    return tuple(sizes)


def _target(shape, reverse, target_shape, keep_highest, source):
    if shape:
        return infer_reshape(shape, source, reverse)
    if target_shape:
        return _legacy_target(target_shape, keep_highest, source)
    return None


@op("Reshape", complete_rule="shape", aliases=("reshape",), shares_memory=True, result_type="data")
def reshape(data, *, shape: Shape = (), reverse: bool = False, target_shape: Shape = (), keep_highest: bool = False):
    """Give `data` another shape.

    Parameters
    ----------
    shape : tuple of int
        The new sizes. ``0`` keeps the size of that axis, ``-1`` takes what is left, ``-2`` keeps all remaining axes,
        ``-3`` joins two axes, ``-4, a, b`` splits one axis into `a` x `b`.
    reverse : bool
        Read the codes from the right.
    target_shape, keep_highest
        Deprecated forms of `shape`.

    Raises
    ------
    MXNetError
        If the new shape does not hold as many elements.

    Example
    -------
    >>> mx.nd.zeros((2, 3, 4)).reshape((-4, 1, 2, -2)).shape
    (1, 2, 3, 4)
    """
    # torch reads sizes and a single -1 the same way.
    if shape and not reverse and min(shape) >= -1 and 0 not in shape:
        try:
            return data.reshape(shape)
        except RuntimeError:  # an invalid shape raises the error below
            pass
    sizes = _target(shape, reverse, target_shape, keep_highest, tuple(data.shape))
    return data.reshape(tuple(data.shape) if sizes is None else sizes)


@reshape.shape_rule
def _(in_shapes, out_shapes, *, shape, reverse, target_shape, keep_highest):
    source, out = in_shapes[0], out_shapes[0]
    if source is not None:
        target = _target(shape, reverse, target_shape, keep_highest, source)
        out = unify(out, source if target is None and known(source) else target)
        if known(out) and known(source) and math.prod(out) != math.prod(source):
            raise MXNetError(f"Reshape: data of shape {source} have {math.prod(source)} elements, which do not fill the shape {out}")
        # One unknown size of the data follows from the size of the result.
        if known(out) and sum(s < 0 for s in source) == 1:
            rest = math.prod(s for s in source if s >= 0)
            if rest:
                source = tuple(s if s >= 0 else math.prod(out) // rest for s in source)
    elif shape and min(shape) > 0:
        out = unify(out, shape)
    return [source], [out]


def _range(side, ndim, begin, end):
    begin = 0 if begin is None else begin + ndim if begin < 0 else begin
    end = ndim if end is None else end + ndim if end < 0 else end
    if not 0 <= begin <= end <= ndim:
        raise MXNetError(f"reshape_like: [{side}_begin, {side}_end) = [{begin}, {end}) is not a range of axes of {ndim}-D {side}")
    return begin, end


def _like(lhs, rhs, lhs_begin, lhs_end, rhs_begin, rhs_end):
    lb, le = _range("lhs", len(lhs), lhs_begin, lhs_end)
    rb, re = _range("rhs", len(rhs), rhs_begin, rhs_end)
    return (*lhs[:lb], *rhs[rb:re], *lhs[le:])


@op("reshape_like", aliases=("_npx_reshape_like",), shares_memory=True, method=True)
def reshape_like(lhs, rhs, *, lhs_begin: Optional[int] = None, lhs_end: Optional[int] = None,
                 rhs_begin: Optional[int] = None, rhs_end: Optional[int] = None):
    """`lhs` with its axes ``[lhs_begin, lhs_end)`` replaced by the axes ``[rhs_begin, rhs_end)`` of `rhs`.

    Raises
    ------
    MXNetError
        If the numbers of elements differ, or a range names axes that are not there.

    Example
    -------
    >>> mx.nd.reshape_like(mx.nd.zeros((6,)), mx.nd.ones((2, 3))).shape
    (2, 3)
    >>> mx.nd.reshape_like(mx.nd.zeros((30, 7)), mx.nd.ones((15, 2, 4)), lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2).shape
    (15, 2, 7)
    """
    shape = _like(tuple(lhs.shape), tuple(rhs.shape), lhs_begin, lhs_end, rhs_begin, rhs_end)
    if math.prod(shape) != lhs.numel():
        raise MXNetError(f"reshape_like: cannot reshape lhs of shape {tuple(lhs.shape)} to {shape}: the numbers of elements differ")
    return lhs.reshape(shape)


@reshape_like.shape_rule
def _(in_shapes, out_shapes, **ranges):
    lhs, rhs = in_shapes
    out = out_shapes[0]
    if lhs is not None and rhs is not None:
        out = unify(out, _like(lhs, rhs, **ranges))
    return in_shapes, [out]


@reshape_like.dtype_rule
def _(in_types, out_types, **_):
    first = in_types[0] or out_types[0]
    return [first, in_types[1] or first], [first]


@op("Flatten", complete_rule="shape", aliases=("flatten", "_npx_batch_flatten"), shares_memory=True, result_type="data", method="flatten")
def flatten(data):
    """All axes after the first as one: (N, a, b, ...) to (N, a * b * ...).

    Example
    -------
    >>> mx.nd.flatten(mx.nd.zeros((2, 3, 4))).shape
    (2, 12)
    """
    return data.reshape(data.shape[0], math.prod(data.shape[1:]))


@flatten.shape_rule
def _(in_shapes, out_shapes):
    data, out = in_shapes[0], out_shapes[0]
    if data is not None and len(data) > 0:
        out = unify(out, (data[0], product(data[1:])))
    return [data], [out]


@quantized_form(flatten, "_contrib_quantized_flatten")
def quantized_flatten(data: EightBits) -> Quantized:
    """`data` (N, ...) as (N, product of the rest); the range stays.

    Example
    -------
    >>> q, low, high = mx.nd.array([[[1, -2], [7, 5]]], dtype='int8'), mx.nd.array([-1]), mx.nd.array([1])
    >>> mx.nd.contrib.quantized_flatten(q, low, high)[0].asnumpy()
    array([[ 1, -2,  7,  5]], dtype=int8)
    """
    return data.with_values(flatten.raw(data.values).clone())


@op("transpose", complete_rule="shape", result_type="data", method=True)
def transpose(data, *, axes: Shape = ()):
    """Reorder the axes: axis `i` of the result is axis ``axes[i]`` of `data`; reversed if `axes` is empty.

    Raises
    ------
    MXNetError
        If `axes` does not name each axis once.

    Example
    -------
    >>> mx.nd.transpose(mx.nd.array([[1, 2, 3], [4, 5, 6]])).asnumpy()
    array([[1., 4.],
           [2., 5.],
           [3., 6.]], dtype=float32)
    >>> mx.nd.transpose(mx.nd.zeros((2, 3, 4)), axes=(1, 2, 0)).shape
    (3, 4, 2)
    """
    return kernels.permute_copy(data, axes or tuple(range(data.dim() - 1, -1, -1)))


@transpose.shape_rule
def _(in_shapes, out_shapes, *, axes):
    data, out = in_shapes[0], out_shapes[0]
    if data is None and out is None:
        return [data], [out]
    ndim = len(data if data is not None else out)
    if axes and (len(axes) != ndim or sorted(a % ndim if -ndim <= a < ndim else a for a in axes) != list(range(ndim))):
        raise MXNetError(f"transpose: axes={axes} is not an order of the axes of {ndim}-D data")
    order = [a % ndim for a in axes] or list(range(ndim - 1, -1, -1))
    if data is not None:
        out = unify(out, tuple(data[a] for a in order))
    back = [0] * ndim
    for i, a in enumerate(order):
        back[a] = out[i]
    return [unify(data, tuple(back))], [out]


@op("expand_dims", complete_rule="shape", aliases=("_npi_expand_dims",), shares_memory=True, result_type="data", method=True)
def expand_dims(data, *, axis: int):
    """Insert an axis of size 1 at position `axis` of the result; a negative one counts from its end.

    Example
    -------
    >>> mx.nd.expand_dims(mx.nd.zeros((2, 3)), axis=1).shape
    (2, 1, 3)
    """
    return data.unsqueeze(axis)


@expand_dims.shape_rule
def _(in_shapes, out_shapes, *, axis):
    data, out = in_shapes[0], out_shapes[0]
    if data is not None:
        at = normalize_axis("expand_dims", axis, len(data) + 1)
        out = unify(out, (*data[:at], 1, *data[at:]))
    if out is not None:
        at = normalize_axis("expand_dims", axis, len(out))
        data = unify(data, (*out[:at], *out[at + 1:]))
    return [data], [out]


@op("squeeze", complete_rule="shape", aliases=("_npi_squeeze",), shares_memory=True, method=True)
def squeeze(data, *, axis: Axes = None):
    """Drop the axes of size 1, all of them or those named by `axis`.

    Raises
    ------
    MXNetError
        If a named axis has another size.

    Example
    -------
    >>> mx.nd.squeeze(mx.nd.zeros((1, 3, 1))).shape, mx.nd.squeeze(mx.nd.zeros((1, 3, 1)), axis=0).shape
    ((3,), (3, 1))
    """
    return data.reshape(_squeezed(tuple(data.shape), axis))


def _squeezed(shape, axis):
    if axis is None:
        rest = tuple(s for s in shape if s != 1)
    else:
        axes = {normalize_axis("squeeze", a, len(shape)) for a in ((axis,) if isinstance(axis, int) else axis)}
        for a in axes:
            if shape[a] not in (1, -1):
                raise MXNetError(f"squeeze: axis {a} of shape {shape} has {shape[a]} entries; only axes of length 1 can go")
        rest = tuple(s for i, s in enumerate(shape) if i not in axes)
    # The legacy operators have no 0-D arrays.
    return rest or ((1,) if shape else ())


@squeeze.shape_rule
def _(in_shapes, out_shapes, *, axis):
    data, out = in_shapes[0], out_shapes[0]
    if data is not None and (known(data) or axis is not None):
        out = unify(out, _squeezed(data, axis))
    return [data], [out]


@op("SwapAxis", complete_rule="shape", aliases=("swapaxes", "_npi_swapaxes"), method="swapaxes", names_output=True)
def swap_axis(data, *, dim1: int = 0, dim2: int = 0):
    """Exchange the axes `dim1` and `dim2`.

    Example
    -------
    >>> mx.nd.swapaxes(mx.nd.zeros((2, 3, 4)), dim1=0, dim2=2).shape
    (4, 3, 2)
    """
    return kernels.transpose_copy(data, dim1, dim2)


@swap_axis.shape_rule
def _(in_shapes, out_shapes, *, dim1, dim2):
    data, out = in_shapes[0], out_shapes[0]
    if data is None and out is None:
        return [data], [out]
    ndim = len(data if data is not None else out)
    a, b = normalize_axis("SwapAxis", dim1, ndim, "dim1"), normalize_axis("SwapAxis", dim2, ndim, "dim2")

    def swapped(shape):
        sizes = list(shape)
        sizes[a], sizes[b] = sizes[b], sizes[a]
        return tuple(sizes)

    if data is not None:
        out = unify(out, swapped(data))
    return [unify(data, swapped(out))], [out]


def _check_block(operator, data, block_size, divides, what):
    require_ndim(operator, data, 4)
    if block_size <= 0:
        raise MXNetError(f"{operator}: `block_size` must be a positive integer, received {block_size}")
    if 0 in data.shape:
        raise MXNetError(f"{operator}: no size of `data` may be 0, received shape {tuple(data.shape)}")
    if not divides:
        raise MXNetError(f"{operator}: {what}, received shape {tuple(data.shape)} and block_size={block_size}")


@op("depth_to_space", method=True)
def depth_to_space(data, *, block_size: int):
    """Move channels into blocks of pixels: (N, C, H, W) to (N, C / b², H * b, W * b).

    Raises
    ------
    MXNetError
        If `data` is not 4-D, or b² does not divide the number of channels.

    Example
    -------
    >>> mx.nd.depth_to_space(mx.nd.array([1, 2, 3, 4]).reshape((1, 4, 1, 1)), block_size=2).asnumpy()
    array([[[[1., 2.],
             [3., 4.]]]], dtype=float32)
    """
    _check_block("depth_to_space", data, block_size, data.dim() == 4 and block_size > 0 and data.shape[1] % block_size**2 == 0,
                 "the number of channels (axis 1) must be a multiple of block_size²")
    n, c, h, w = data.shape
    b = block_size
    blocks = data.reshape(n, b, b, c // b**2, h, w).permute(0, 3, 4, 1, 5, 2)
    return blocks.clone(memory_format=torch.contiguous_format).view(n, c // b**2, h * b, w * b)


@op("space_to_depth", method=True)
def space_to_depth(data, *, block_size: int):
    """Move blocks of pixels into channels: (N, C, H, W) to (N, C * b², H / b, W / b).

    Raises
    ------
    MXNetError
        If `data` is not 4-D, or b does not divide height and width.

    Example
    -------
    >>> mx.nd.space_to_depth(mx.nd.array([[[[1, 2], [3, 4]]]]), block_size=2).asnumpy().ravel()
    array([1., 2., 3., 4.], dtype=float32)
    """
    b = block_size
    _check_block("space_to_depth", data, b, data.dim() == 4 and b > 0 and data.shape[2] % b == 0 and data.shape[3] % b == 0,
                 "height and width (axes 2 and 3) must be multiples of block_size")
    n, c, h, w = data.shape
    blocks = data.reshape(n, c, h // b, b, w // b, b).permute(0, 3, 5, 1, 2, 4)
    return blocks.clone(memory_format=torch.contiguous_format).view(n, c * b**2, h // b, w // b)


@op("shape_array", aliases=("_npx_shape_array",), complete_rule="shape", method=True)
def shape_array(data):
    """The shape of `data` as a 1-D int64 array.

    Example
    -------
    >>> mx.nd.shape_array(mx.nd.zeros((2, 3))).asnumpy()
    array([2, 3])
    """
    return constant(tuple(data.shape), torch.int64, data.device)


@op("size_array", complete_rule="shape", method=True)
def size_array(data):
    """The number of elements of `data` as an int64 array of shape (1,).

    Example
    -------
    >>> mx.nd.size_array(mx.nd.zeros((2, 3))).asnumpy()
    array([6])
    """
    return torch.full((1,), data.numel(), dtype=torch.int64, device=data.device)


@shape_array.shape_rule
def _(in_shapes, out_shapes):
    return in_shapes, [unify(out_shapes[0], None if in_shapes[0] is None else (len(in_shapes[0]),))]


@size_array.shape_rule
def _(in_shapes, out_shapes):
    return in_shapes, [(1,)]


for _operator in (shape_array, size_array):
    @_operator.dtype_rule
    def _(in_types, out_types):
        return in_types, [torch.int64]
