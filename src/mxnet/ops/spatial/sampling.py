"""Operators that resample feature maps (N, C, H, W): grids, up-sampling, resizing, im2col and col2im."""
import math
from itertools import product
from typing import Any, Literal, Optional

import torch
import torch.nn.functional as F

from ...base import MXNetError
from ..axes import require_ndim
from ..host_arrays import constant
from ..registry import op
from ..schema import AtLeast1, Shape
from ..shapes import known, unify
from .on_gpu import on_gpu


@op("BilinearSampler", complete_rule="shape", names_output=True)
def bilinear_sampler(data, grid, *, cudnn_off: Optional[bool] = None):
    """Values of `data` (N, C, H, W) at the points of `grid` (N, 2, H', W'), (N, C, H', W'), by bilinear interpolation; zero outside.

    The grid holds x in its first and y in its second channel, both in [-1, 1] from border to border. `cudnn_off` is a hint that nothing
    needs here.

    Raises
    ------
    MXNetError
        If one of the inputs is not 4-D.

    Example
    -------
    >>> x = mx.nd.array([[[[0, 1, 2], [3, 4, 5]]]])
    >>> grid = mx.nd.array([[[[-1, 0.5, 1]], [[-1, 0, 1]]]])        # top left, right of the middle, bottom right
    >>> mx.nd.BilinearSampler(x, grid).asnumpy()
    array([[[[0., 3., 5.]]]], dtype=float32)
    """
    require_ndim("BilinearSampler", data, 4)
    require_ndim("BilinearSampler", grid, 4, name="grid")
    return F.grid_sample(data, grid.permute(0, 2, 3, 1), mode="bilinear", padding_mode="zeros", align_corners=True)


@bilinear_sampler.shape_rule
def _(in_shapes, out_shapes, *, cudnn_off):
    data, grid = in_shapes
    out = out_shapes[0]
    if data is not None and grid is not None and len(data) == len(grid) == 4:
        out = unify(out, (*data[:2], *grid[2:]))
    return in_shapes, [out]


def _affine_grid(matrix, target_shape):
    """The grid (N, 2, H, W) that the affine matrices (N, 6) lay over an image of `target_shape`."""
    height, width = target_shape
    x = torch.linspace(-1, 1, width, dtype=matrix.dtype, device=matrix.device).expand(height, width)
    y = torch.linspace(-1, 1, height, dtype=matrix.dtype, device=matrix.device).unsqueeze(1).expand(height, width)
    points = torch.stack([x, y, torch.ones_like(x)]).reshape(3, -1)
    return torch.matmul(matrix.reshape(-1, 2, 3), points).reshape(-1, 2, height, width)


def _check_affine(operator, matrix, target_shape, name):
    """Raise an error for a partial shape of no affine matrices (N, 6), and for sizes of no grid."""
    if len(matrix) != 2 or matrix[1] not in (6, -1):
        raise MXNetError(f"{operator}: `{name}` must have shape (N, 6) for affine transforms, received {tuple(matrix)}")
    if len(target_shape) != 2 or min(target_shape) <= 0:
        raise MXNetError(f"{operator}: `target_shape` must be (height, width) above 0, received {target_shape}")


def _check_flow(data):
    if len(data) != 4 or data[1] not in (2, -1):
        raise MXNetError(f"GridGenerator: `data` must have shape (N, 2, H, W) for transform_type='warp', received {tuple(data)}")


@op("GridGenerator", complete_rule="shape", names_output=True)
def grid_generator(data, *, transform_type: Literal["affine", "warp"], target_shape: Shape = (0, 0)):
    """A grid (N, 2, H, W) for `BilinearSampler`.

    With ``affine``, `data` holds matrices (N, 6), each the two rows that map (x, y, 1) of the `target_shape` (H, W) to a point of the source.
    With ``warp`` it is the optical flow (N, 2, H, W) in pixels: each pixel is fetched that far (right, down) from its place.

    Raises
    ------
    MXNetError
        If `data` has another shape, or `target_shape` is not two sizes above 0 with ``affine``.

    Example
    -------
    >>> swap_axes = mx.nd.array([[0, 1, 0, 1, 0, 0]])
    >>> mx.nd.GridGenerator(swap_axes, transform_type="affine", target_shape=(2, 2)).asnumpy()
    array([[[[-1., -1.],
             [ 1.,  1.]],
    <BLANKLINE>
            [[-1.,  1.],
             [-1.,  1.]]]], dtype=float32)
    >>> x, one_right = mx.nd.array([[[[1, 2, 3]]]]), mx.nd.array([[[[1, 1, 1]], [[0, 0, 0]]]])
    >>> mx.nd.BilinearSampler(x, mx.nd.GridGenerator(one_right, transform_type="warp")).asnumpy()
    array([[[[nan, nan, nan]]]], dtype=float32)
    """
    if transform_type == "affine":
        _check_affine("GridGenerator", data.shape, target_shape, "data")
        return _affine_grid(data, target_shape)
    _check_flow(data.shape)
    height, width = data.shape[2:]
    x = torch.arange(width, dtype=data.dtype, device=data.device).expand(height, width)
    y = torch.arange(height, dtype=data.dtype, device=data.device).unsqueeze(1).expand(height, width)
    half = constant([(width - 1) / 2, (height - 1) / 2], data.dtype, data.device).reshape(1, 2, 1, 1)
    return (data + torch.stack([x, y])) / half - 1


@grid_generator.shape_rule
def _(in_shapes, out_shapes, *, transform_type, target_shape):
    data, out = in_shapes[0], out_shapes[0]
    if transform_type == "warp":
        data = out = unify(data, out)
        if data is not None:
            _check_flow(data)
    elif data is not None:
        _check_affine("GridGenerator", data, target_shape, "data")
        out = unify(out, (data[0], 2, *target_shape))
    return [data], [out]


@op("SpatialTransformer", complete_rule="shape", names_output=True)
def spatial_transformer(data, loc, *, target_shape: Shape = (0, 0), transform_type: Literal["affine"],
                        sampler_type: Literal["bilinear"], cudnn_off: Optional[bool] = None):
    """`data` (N, C, H, W) seen through the affine matrices `loc` (N, 6), at `target_shape` (H', W') points: (N, C, H', W') (Jaderberg et al. 2015).

    It is `GridGenerator` followed by `BilinearSampler`. `cudnn_off` is a hint that nothing needs here.

    Raises
    ------
    MXNetError
        If `data` is not 4-D, `loc` not (N, 6) with its N, or `target_shape` not two sizes above 0.

    Example
    -------
    >>> x, mirror = mx.nd.array([[[[1, 2], [3, 4]]]]), mx.nd.array([[-1, 0, 0, 0, 1, 0]])
    >>> mx.nd.SpatialTransformer(x, mirror, target_shape=(2, 2), transform_type="affine", sampler_type="bilinear").asnumpy()
    array([[[[2., 1.],
             [4., 3.]]]], dtype=float32)
    """
    require_ndim("SpatialTransformer", data, 4)
    _check_affine("SpatialTransformer", loc.shape, target_shape, "loc")
    if len(loc) != len(data):  # before a grid is made, which may be large
        raise MXNetError(f"SpatialTransformer: `loc` must have a matrix for each of the {len(data)} images, received {len(loc)}")
    if not len(data):  # no grid for no image, however large
        return data.new_empty((*data.shape[:2], *target_shape))
    return bilinear_sampler.raw(data, _affine_grid(loc, target_shape))


@spatial_transformer.shape_rule
def _(in_shapes, out_shapes, *, target_shape, **_):
    data, loc = in_shapes
    out = out_shapes[0]
    if data is not None and len(data) == 4:
        out = unify(out, (*data[:2], *target_shape))
        loc = unify(loc, (data[0], 6))
    return [data, loc], [out]


def _up_sampling_inputs(attributes):
    if attributes["sample_type"] == "bilinear":
        return ("data", "weight")
    return tuple(f"arg{i}" for i in range(attributes["num_args"] or 1))


@op("UpSampling", key_var_num_args="num_args", inputs_rule=_up_sampling_inputs, initial={"weight": ["bilinear", {}]}, result_type="data",
    complete_rule="shape", names_input=True, names_output=True)
def up_sampling(*data, scale: AtLeast1, num_filter: int = 0, sample_type: Literal["bilinear", "nearest"],
                multi_input_mode: Literal["concat", "sum"] = "concat", num_args: Optional[AtLeast1] = None, workspace: int = 512):
    """Enlarge feature maps (N, C, H, W) by `scale`.

    Parameters
    ----------
    *data
        With ``sample_type='nearest'`` one or more maps; all are brought to `scale` times the size of the first, then
        joined along the channels or summed. With ``'bilinear'`` the map and the weight (C, 1, k, k) of the deconvolution, where
        k is ``2 * scale - scale % 2``; it has C groups.
    multi_input_mode : {'concat', 'sum'}
        The treatment of several maps.
    num_args : int
        The number of inputs, 2 for ``'bilinear'``.
    num_filter, workspace
        No effect: the weight's shape determines the former, and the latter is a hint for MXNet.

    Raises
    ------
    MXNetError
        If the number of inputs is another, or their sizes do not fit.

    Example
    -------
    >>> mx.nd.UpSampling(mx.nd.array([[[[1, 2]]]]), scale=2, sample_type="nearest").asnumpy()
    array([[[[1., 1., 2., 2.],
             [1., 1., 2., 2.]]]], dtype=float32)
    """
    expected = 2 if sample_type == "bilinear" else num_args or len(data)
    if len(data) != expected:
        raise MXNetError(f"UpSampling expects {expected} inputs with sample_type={sample_type!r} and num_args={num_args}, "
                         f"received {len(data)}")
    _up_sampling_shape_rule([tuple(one.shape) for one in data], [None], scale=scale, sample_type=sample_type, multi_input_mode=multi_input_mode)
    first = data[0]
    if sample_type == "bilinear":
        return F.conv_transpose2d(first, data[1], stride=scale, padding=math.ceil((scale - 1) / 2), groups=first.shape[1])
    maps = []
    for one in data:
        times = first.shape[2] * scale // one.shape[2]
        maps.append(_Enlarged.apply(one, times))
    if len(maps) == 1:
        return maps[0]
    return sum(maps[1:], maps[0]) if multi_input_mode == "sum" else torch.cat(maps, 1)


class _Enlarged(torch.autograd.Function):
    """Each number of maps (N, C, H, W) becomes a square of `times` x `times`."""

    @staticmethod
    def forward(ctx, data, times):
        ctx.times = times
        if data.dtype in (torch.float32, torch.float64, torch.uint8):
            return F.interpolate(data, scale_factor=times, mode="nearest-exact")
        return data.repeat_interleave(times, 2).repeat_interleave(times, 3)

    @staticmethod
    def backward(ctx, dout):
        n, channels, height, width = dout.shape
        rows = dout.reshape(n, channels, height // ctx.times, ctx.times, width).sum(3)  # whole lines, before numbers that lie apart
        return sum((rows[..., i::ctx.times] for i in range(1, ctx.times)), rows[..., ::ctx.times]), None


@up_sampling.shape_rule
def _up_sampling_shape_rule(in_shapes, out_shapes, *, scale, sample_type, multi_input_mode, **_):
    data, out = in_shapes[0], out_shapes[0]
    for i, shape in enumerate(in_shapes):
        if shape is not None and len(shape) != 4:
            raise MXNetError(f"UpSampling: arrays (N, C, H, W) expected, received shape {shape} for input {i}")
    if data is None:
        return in_shapes, out_shapes
    channels, spatial = data[1], tuple(s * scale if s >= 0 else -1 for s in data[2:])
    if sample_type == "bilinear":
        kernel = 2 * scale - scale % 2
        wanted = data[1], 1, kernel, kernel
        if known(wanted) and in_shapes[1] is not None and known(in_shapes[1]) and in_shapes[1] != wanted:
            raise MXNetError(f"UpSampling: for scale={scale} and {data[1]} channels the weight must have the shape {wanted}, "
                             f"received {in_shapes[1]}")
        in_shapes = [data, unify(in_shapes[1], wanted)]
    else:
        for i, shape in enumerate(in_shapes):
            if known(data) and shape is not None and known(shape):
                _check_enlarged(i, shape, data, spatial, multi_input_mode)
        if multi_input_mode == "concat":
            sizes = [-1 if s is None else s[1] for s in in_shapes]
            channels = -1 if min(sizes) < 0 else sum(sizes)
    return in_shapes, [unify(out, (data[0], channels, *spatial))]


def _check_enlarged(i, shape, first, spatial, multi_input_mode):
    """Raise an error for an input that no single factor enlarges to maps of the size `spatial`."""
    height, width = spatial
    if not min(shape[2:]) or height % shape[2] or width % shape[3]:
        raise MXNetError(f"UpSampling: input {i} of shape {shape} does not divide the output of {height} x {width}")
    if height // shape[2] * shape[3] != width or shape[0] != first[0]:
        raise MXNetError(f"UpSampling: input {i} must become {first[0]} maps of {height} x {width} when enlarged by one factor, "
                         f"received shape {shape}")
    if multi_input_mode == "sum" and shape[1] != first[1]:
        raise MXNetError(f"UpSampling: the number of channels must be {first[1]} in each input where multi_input_mode='sum', "
                         f"received {shape[1]} in input {i}")


def _resized(data, like, height, width, scale_height, scale_width, mode):
    """(height, width) that BilinearResize2D makes of maps of shape `data`."""
    for shape in (data, like):
        if shape is not None and len(shape) != 4:
            raise MXNetError(f"BilinearResize2D: arrays (N, C, H, W) expected, received shape {tuple(shape)}")
    size = _new_size(data[2:], like, height, width, scale_height, scale_width, mode)
    if min(size) <= 0:
        raise MXNetError(f"BilinearResize2D: the new size must be above 0, received {size}")
    return size


def _new_size(sizes, like, height, width, scale_height, scale_width, mode):
    scales = (scale_height, scale_width)
    if mode == "size":
        # As MXNet (bilinear_resize-inl.h): scale_height decides for both.
        if scale_height is None:
            return height, width
        if scale_width is None:
            raise MXNetError(f"BilinearResize2D: `scale_width` must be given with `scale_height`={scale_height}, received None")
        return tuple(int(s * k) for s, k in zip(sizes, scales))
    if mode == "like":
        return tuple(like[2:])
    if mode == "odd_scale":
        if None in scales:
            raise MXNetError(f"BilinearResize2D: mode='odd_scale' needs scale_height and scale_width, received {scales}")
        return tuple(int(s * k) if s % 2 == 0 else int((s - 1) * k) + 1 for s, k in zip(sizes, scales))
    parity = 0 if "even" in mode else 1
    step = -1 if mode.endswith("down") else 1
    return tuple(s if s % 2 == parity else s + step for s in sizes)


@op("_contrib_BilinearResize2D", complete_rule="shape", inputs_rule=lambda a: ("data", "like") if a["mode"] == "like" else ("data",))
def bilinear_resize(data, like=None, *, height: AtLeast1 = 1, width: AtLeast1 = 1, scale_height: Optional[float] = None,
                    scale_width: Optional[float] = None,
                    mode: Literal["like", "odd_scale", "size", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up"] = "size",
                    align_corners: bool = True):
    """Resize feature maps (N, C, H, W) by bilinear interpolation.

    Parameters
    ----------
    like : (N', C', H', W'), optional
        Where to take the size from with ``mode='like'``.
    mode : str
        ``'size'``: to `height` x `width`, or by `scale_height` and `scale_width`; ``'like'``: to the size of the second input;
        ``'odd_scale'``: scale, keeping odd sizes odd; ``'to_even_up'`` and so on: to the next even or odd size.
    align_corners : bool
        Let the centres of the corner pixels coincide rather than their outer borders.

    Raises
    ------
    MXNetError
        If `data` is not 4-D, the second input does not go with the mode, or the new size is not above 0.

    Example
    -------
    >>> x = mx.nd.array([[[[0, 3]]]])
    >>> mx.nd.contrib.BilinearResize2D(x, height=1, width=4).asnumpy()
    array([[[[0., 1., 2., 3.]]]], dtype=float32)
    >>> mx.nd.contrib.BilinearResize2D(x, height=1, width=4, align_corners=False).asnumpy()
    array([[[[0.  , 0.75, 2.25, 3.  ]]]], dtype=float32)
    """
    if (mode == "like") != (like is not None):
        raise MXNetError(f"BilinearResize2D: a second input belongs to mode='like', received mode={mode!r}")
    size = _resized(data.shape, None if like is None else like.shape, height, width, scale_height, scale_width, mode)
    if not align_corners:  # MXNet takes the first pixel, not the middle, where one is left
        data = data[:, :, :1] if size[0] == 1 else data
        data = data[..., :1] if size[1] == 1 else data
    return F.interpolate(data, size, mode="bilinear", align_corners=align_corners)


@bilinear_resize.shape_rule
def _(in_shapes, out_shapes, *, align_corners, **attributes):
    data, out = in_shapes[0], out_shapes[0]
    like = in_shapes[1] if len(in_shapes) > 1 else None
    if data is not None and known(data[2:]) and (like is not None and known(like[2:]) or attributes["mode"] != "like"):
        out = unify(out, (*data[:2], *_resized(data, like, **attributes)))
    return in_shapes, [out]


@op("_contrib_AdaptiveAvgPooling2D", complete_rule="shape")
def adaptive_avg_pooling(data, *, output_size: Shape = ()):
    """Average feature maps (N, C, H, W) over areas of (nearly) equal size, `output_size` of them: (h, w), or one number for both.

    Without `output_size` there is one area, the whole map.

    Raises
    ------
    MXNetError
        If `data` is not 4-D.

    Example
    -------
    >>> x = mx.nd.arange(16).reshape((1, 1, 4, 4))
    >>> mx.nd.contrib.AdaptiveAvgPooling2D(x, output_size=(2, 1)).asnumpy()
    array([[[[ 3.5],
             [11.5]]]], dtype=float32)
    """
    require_ndim("AdaptiveAvgPooling2D", data, 4)
    return F.adaptive_avg_pool2d(data, _areas(output_size))


def _areas(output_size):
    return output_size if len(output_size) == 2 else output_size[:1] * 2 or (1, 1)


@adaptive_avg_pooling.shape_rule
def _(in_shapes, out_shapes, *, output_size):
    data, areas = in_shapes[0], _areas(output_size)
    if data is None or len(data) != 4 or 0 in data[1:] or min(areas) < 0:
        return in_shapes, out_shapes  # the operator's call raises the error
    return in_shapes, [unify(out_shapes[0], (*data[:2], *areas))]


def _per_axis(operator, name, value, ndim, least):
    """`value` with one entry for each spatial axis, by default the least that there may be."""
    value = value or (least,) * ndim
    if len(value) != ndim:
        raise MXNetError(f"{operator}: `{name}` must have {ndim} entries as `kernel` has, received {value}")
    if min(value, default=least) < least:
        raise MXNetError(f"{operator}: entries of `{name}` must be at least {least}, received {value}")
    return value


def _all_per_axis(operator, kernel, stride, dilate, pad):
    """The last three with one entry for each entry of `kernel`."""
    _per_axis(operator, "kernel", kernel, len(kernel), 1)
    return (_per_axis(operator, name, value, len(kernel), least)
            for name, value, least in (("stride", stride, 1), ("dilate", dilate, 1), ("pad", pad, 0)))


def _windows(padded, kernel, stride, dilate):
    """All windows of (N, C, *spatial): (N, C * prod(kernel), number of windows)."""
    n = len(kernel)
    view = padded
    for axis, (k, s, d) in enumerate(zip(kernel, stride, dilate), 2):
        view = view.unfold(axis, (k - 1) * d + 1, s)[..., ::d]
    count = math.prod(view.shape[2:2 + n])
    return view.permute(0, 1, *range(2 + n, 2 + 2 * n), *range(2, 2 + n)).reshape(
        padded.shape[0], padded.shape[1] * math.prod(kernel), count)


def _add_windows(columns, kernel, stride, dilate, padded):
    """The adjoint of `_windows`: an image (N, C, *padded) of the sums of what the columns hold for each place."""
    batch, channels = columns.shape[0], columns.shape[1] // math.prod(kernel)
    counts = [(size - (k - 1) * d - 1) // s + 1 for size, k, s, d in zip(padded, kernel, stride, dilate)]
    columns = columns.reshape(batch, channels, math.prod(kernel), *counts)
    image = columns.new_zeros(batch, channels, *padded)
    for k, position in enumerate(product(*map(range, kernel))):
        place = _within(slice(p * d, p * d + (c - 1) * s + 1, s) for p, d, c, s in zip(position, dilate, counts, stride))
        image[place] += columns[:, :, k]
    return image


def _inner(image, sizes, pad):
    """`image` without its margins."""
    return image[_within(slice(p, p + s) for p, s in zip(pad, sizes))].contiguous()


def _within(slices):
    """The index that takes these slices of the spatial axes."""
    return (slice(None), slice(None), *slices)


def _margins(pad):
    return [p for p in reversed(pad) for _ in (0, 1)]


@op("im2col", complete_rule="shape", names_input=True, names_output=True, amp=None)
def im2col(data, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = ()):
    """The windows that a convolution sees, as columns: (N, C, *spatial) to (N, C * prod(kernel), number of windows).

    `kernel`, `stride`, `dilate` and `pad` are those of `Convolution`.

    Raises
    ------
    MXNetError
        If the attributes and the data have different numbers of axes, or the kernel does not fit the padded data.

    Example
    -------
    >>> mx.nd.im2col(mx.nd.array([[[1, 2, 3, 4]]]), kernel=(2,)).asnumpy()
    array([[[1., 2., 3.],
            [2., 3., 4.]]], dtype=float32)
    """
    n = len(kernel)
    if data.dim() != n + 2:
        raise MXNetError(f"im2col: `data` must be {n + 2}-D for kernel={kernel}, received shape {tuple(data.shape)}")
    stride, dilate, pad = _all_per_axis("im2col", kernel, stride, dilate, pad)
    if any(s + 2 * p < (k - 1) * d + 1 for s, p, k, d in zip(data.shape[2:], pad, kernel, dilate)):
        raise MXNetError(f"im2col: kernel size exceeds input: kernel={kernel}, dilate={dilate}, pad={pad}, shape {tuple(data.shape)}")
    return _windows(F.pad(data, _margins(pad)), kernel, stride, dilate)


@im2col.gradient
def _(out_grads, inputs, outputs, *, kernel, stride=(), dilate=(), pad=()):
    n, sizes = len(kernel), inputs[0].shape[2:]
    stride, dilate, pad = stride or (1,) * n, dilate or (1,) * n, pad or (0,) * n
    return _inner(_add_windows(out_grads[0], kernel, stride, dilate, [s + 2 * p for s, p in zip(sizes, pad)]), sizes, pad)


@op("col2im", complete_rule="shape", names_output=True, amp=None)
def col2im(data, *, output_size: Shape, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = ()):
    """Add the columns back into an image of `output_size`: (N, C * prod(kernel), number of windows) to (N, C, *output_size).

    It is the adjoint of `im2col`, with the same attributes, so where windows overlap their values add up.

    Raises
    ------
    MXNetError
        If the image does not have as many windows as there are columns.

    Example
    -------
    >>> columns = mx.nd.im2col(mx.nd.array([[[1, 2, 3, 4]]]), kernel=(2,))
    >>> mx.nd.col2im(columns, output_size=(4,), kernel=(2,)).asnumpy()
    array([[[1., 4., 6., 4.]]], dtype=float32)
    """
    stride, dilate, pad, padded = _check_columns(tuple(data.shape), output_size, kernel, stride, dilate, pad)
    return _inner(_add_windows(data, kernel, stride, dilate, padded), output_size, pad)


def _check_columns(data, output_size, kernel, stride, dilate, pad):
    """The attributes with a number for each axis, and the padded sizes of the image, for columns of this partial shape."""
    n, area = len(kernel), math.prod(kernel)
    stride, dilate, pad = _all_per_axis("col2im", kernel, stride, dilate, pad)
    if len(output_size) != n or len(data) != 3 or data[1] >= 0 and data[1] % area:
        raise MXNetError(f"col2im: expected columns (N, C * {area}, windows) and an output_size of {n} entries, received shape {data} and "
                         f"output_size={output_size}")
    padded = tuple(s + 2 * p for s, p in zip(output_size, pad))
    count = math.prod(max((size - (k - 1) * d - 1) // s + 1, 0) for size, k, s, d in zip(padded, kernel, stride, dilate))
    if data[2] not in (count, -1):
        raise MXNetError(f"col2im: an image of {output_size} has {count} windows, received {data[2]}")
    return stride, dilate, pad, padded


@col2im.shape_rule
def _(in_shapes, out_shapes, *, output_size, kernel, **attributes):
    data = in_shapes[0]
    if data is None:
        return in_shapes, out_shapes
    _check_columns(data, output_size, kernel, **attributes)
    if not data[2] or min(output_size) < 0:
        return in_shapes, out_shapes  # an image without windows: left to the operator's call
    return in_shapes, [unify(out_shapes[0], (data[0], data[1] // math.prod(kernel) if data[1] >= 0 else -1, *output_size))]


@col2im.gradient
def _(out_grads, inputs, outputs, *, output_size, kernel, stride=(), dilate=(), pad=()):
    n = len(kernel)
    return _windows(F.pad(out_grads[0], _margins(pad or (0,) * n)), kernel, stride or (1,) * n, dilate or (1,) * n)


def bilinear_gather(flat: torch.Tensor, base: torch.Tensor, y: torch.Tensor, x: torch.Tensor, height: int, width: int, outside: Any) -> torch.Tensor:
    """Bilinear samples of images stored one after another in the 1-D `flat`.

    Parameters
    ----------
    base : int64 tensor
        Where the image of each point begins; broadcasts with `y` and `x`.
    outside : {'zero', 'edge'}
        The values beyond the border: zeros, or the border's own values.
    """
    if outside == "edge":
        y, x = y.clamp(0, height - 1), x.clamp(0, width - 1)
    top, left = y.floor(), x.floor()
    dy, dx = y - top, x - left
    top, left = top.long(), left.long()
    total: Any = 0
    for down, right in product((0, 1), (0, 1)):
        row, column = top + down, left + right
        weight = (dy if down else 1 - dy) * (dx if right else 1 - dx)
        if outside == "zero":
            weight = weight * ((row >= 0) & (row < height) & (column >= 0) & (column < width))
        index = base + row.clamp(0, height - 1) * width + column.clamp(0, width - 1)
        # On a GPU the gradient of `take` is one sum by atomic additions, that of indexing sorts the indices first.
        total = total + (flat.take(index) if on_gpu(flat) else flat[index]) * weight
    return total


@im2col.shape_rule
def _(in_shapes, out_shapes, **attributes):
    data, out = in_shapes[0], out_shapes[0]
    if known(data):
        out = unify(out, tuple(im2col.raw(torch.empty(data, device="meta"), **attributes).shape))
    return [data], [out]
