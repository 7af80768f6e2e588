"""Operators that pool regions of interest (ROIs) of feature maps (N, C, H, W): ROIPooling, ROIAlign and the like.

A region is a row [number of the image, x1, y1, x2, y2] in the coordinates of the input image; `spatial_scale` converts these to
those of the feature map. Gradients flow to the feature maps only. ``.cpu()`` before numbers are read tells shape inference, which has
no data, that the data is needed. Paths for a GPU are in `regions_on_gpu`; there regions of images that do not exist give zeros, and no error.
"""
import itertools
import math
from typing import Annotated

import torch

from ...base import MXNetError
from ...kernels.nn import roi_pooling as kernels
from ..elemwise.common import quotient
from ..registry import op
from ..schema import Between, Fraction, Shape
from ..shapes import unify
from . import regions_on_gpu
from .on_gpu import on_gpu, per_chunk
from .sampling import bilinear_gather

MOST_SAMPLES = 1024  # along one axis of a bin; networks use two
_Samples = Annotated[int, Between(None, MOST_SAMPLES)]


def _round(values):
    """Round halves away from zero, as C does; torch rounds them to even."""
    return torch.sign(values) * torch.floor(values.abs() + 0.5)


def _check(operator, data, rois, *columns):
    """Raise an error for partial shapes of no maps and regions."""
    if len(data) != 4:
        raise MXNetError(f"{operator}: `data` must be 4-D, received shape {tuple(data)}")
    if len(rois) != 2 or rois[1] not in (-1, *columns):
        raise MXNetError(f"{operator}: `rois` must be a 2-D tensor of shape (number of rois, {' or '.join(map(str, columns))}), "
                         f"received {tuple(rois)}")


def _check_size(operator, pooled_size):
    if len(pooled_size) != 2 or not all(s is not None and s > 0 for s in pooled_size):
        raise MXNetError(f"{operator}: `pooled_size` must be two sizes above 0, received {pooled_size}")


def _check_images(operator, images, count):
    """Raise an error for regions of missing images; the image numbers are integers.

    Raises
    ------
    MXNetError
    """
    if images.numel():
        low, high = (int(v) for v in torch.stack(images.aminmax()).cpu())
        if low < 0 or high >= count:
            raise MXNetError(f"{operator}: the first number of each region must be that of an image, from 0 to {count - 1}, "
                             f"received {low if low < 0 else high}")


def _pooled_rule(check, channels=None):
    """Return a shape rule: (R, channels of the data, or what `channels` makes of them, pooled height, pooled width).

    ``check(data, rois, trans, **attributes)`` raises the same errors as the call.
    """
    def rule(in_shapes, out_shapes, **attributes):
        data, rois, trans = (*in_shapes, None)[:3]
        if data is None or rois is None:
            return in_shapes, out_shapes
        check(data, rois, trans, **attributes)
        size = attributes["pooled_size"]
        size = (size, size) if isinstance(size, int) else size
        depth = data[1] if channels is None else channels(data[1], size, attributes)
        return in_shapes, [unify(out_shapes[0], (rois[0], depth, *size))]
    return rule


def _types_of_data(in_types, out_types, **_):
    first = in_types[0] or out_types[0]
    return [t or first for t in in_types], [first]


@op("ROIPooling", complete_rule="shape", aliases=("_npx_roi_pooling",), names_output=True)
def roi_pooling(data, rois, *, pooled_size: Shape, spatial_scale: Fraction):
    """The largest value in each of `pooled_size` (h, w) parts of each region, (R, C, h, w); 0 where a part is empty (Girshick 2015).

    Parameters
    ----------
    data : (N, C, H, W)
    rois : (R, 5)
        [number of the image, x1, y1, x2, y2], whose scaled corners are rounded to pixels that belong to the region.
    spatial_scale : float
        Size of the feature map over that of the image, from 0 to 1.

    Raises
    ------
    MXNetError
        If `data` or `rois` has another shape.

    Example
    -------
    >>> x = mx.nd.arange(16).reshape((1, 1, 4, 4))
    >>> mx.nd.ROIPooling(x, mx.nd.array([[0, 0, 0, 1, 3]]), pooled_size=(2, 1), spatial_scale=1).asnumpy()
    array([[[[ 5.],
             [13.]]]], dtype=float32)
    """
    _check_pooling(data.shape, rois.shape, None, pooled_size=pooled_size)
    pooled_height, pooled_width = pooled_size
    height, width = data.shape[2:]
    corners = _round(rois[:, 1:].detach().float() * spatial_scale)
    rows = _bins(corners[:, 1], corners[:, 3], pooled_height, height)
    columns = _bins(corners[:, 0], corners[:, 2], pooled_width, width)
    images = rois[:, 0].detach().long()
    if on_gpu(data):
        return regions_on_gpu.pool_largest(data, images, rows, columns)
    return kernels.largest(data, images, (*rows, *columns), lambda maps: _pool_largest(maps, images, rows, columns))


def _pool_largest(data, images, rows, columns):
    """Compute ROIPooling of bins whose begins and ends are in `rows` and `columns`, each a pair of (R, bins)."""
    lowest = torch.finfo(data.dtype).min
    shape = data.shape[1], rows[0].shape[1], columns[0].shape[1]
    out = []
    # One region after another: their sizes differ, and all at once would need R copies of a feature map.
    ys, xs = _positions(rows[0], rows[1], data.shape[2]), _positions(columns[0], columns[1], data.shape[3])
    for image, (y, y_inside), (x, x_inside) in zip(images.cpu().tolist(), ys, xs):
        if not 0 <= image < data.shape[0]:
            out.append(data.new_zeros(shape))
            continue
        # Columns first: among equal values the first in reading order gets the gradient.
        across = data[image][:, :, x].masked_fill(~x_inside, lowest).max(-1)[0]
        out.append(across[:, y].masked_fill(~y_inside.unsqueeze(-1), lowest).max(2)[0])
    if not out:
        return data.new_zeros(0, *shape)
    empty = (rows[1] <= rows[0]).unsqueeze(2) | (columns[1] <= columns[0]).unsqueeze(1)
    return torch.stack(out).masked_fill(empty.unsqueeze(1), 0)


def _bins(start, end, count, size):
    """Return the begin and end of each of the `count` bins of each region along one axis: two of (R, count)."""
    length = (end - start + 1).clamp_min(1)
    step = quotient(length, count).unsqueeze(1)
    number = torch.arange(count, device=start.device, dtype=start.dtype)
    first = (torch.floor(number * step) + start.unsqueeze(1)).clamp(0, size).long()
    last = (torch.ceil((number + 1) * step) + start.unsqueeze(1)).clamp(0, size).long()
    return first, last


def _positions(first, last, size):
    """For each region the positions in each of its bins, and which of them are real."""
    for begin, end, widest in zip(first, last, (last - first).amax(1).clamp_min(1).cpu().tolist()):
        positions = begin.unsqueeze(1) + torch.arange(widest, device=first.device)
        yield positions.clamp_max(size - 1), positions < end.unsqueeze(1)


def _check_pooling(data, rois, trans, *, pooled_size, **_):
    _check("ROIPooling", data, rois, 5)
    _check_size("ROIPooling", pooled_size)


roi_pooling.shape_rule(_pooled_rule(_check_pooling))
roi_pooling.dtype_rule(_types_of_data)


def _interpolation_weights(start, bin_size, bins, samples, size, most=None):
    """Return the weight of each position along one axis in each bin of each region: (R, bins, size).

    Each bin averages `samples` (one number a region) evenly spaced linear interpolations. Those beyond the map have weight 0: of a bin that
    reaches far beyond only those near the map are computed. `most` is an upper bound of `samples`, maybe infinite; without it the
    samples are read on the host.
    """
    # A region without extent, with a negative side or with NaN has no samples, and gives zeros.
    samples = samples.nan_to_num(0, 0, 0)
    # Samples are at most MOST_SAMPLES, or a pixel apart and then at least half a pixel.
    window = 2 * size + 8 if most == math.inf else max(MOST_SAMPLES, 2 * size + 8)
    if most is None:
        most = max(int(samples.max().cpu()), 1) if samples.numel() else 1
    step = (bin_size / samples.clamp_min(1)).reshape(-1, 1, 1)
    begin = (start.unsqueeze(1) + torch.arange(bins, device=start.device) * bin_size.unsqueeze(1)).unsqueeze(2)
    first = ((-1 - begin) / step - 0.5).floor().nan_to_num(0, 0, 0).clamp_min(0) if most > window else torch.zeros_like(begin)
    number = torch.arange(min(most, window), device=start.device, dtype=start.dtype)
    samples = samples.reshape(-1, 1, 1)
    weights = torch.zeros(*begin.shape[:2], size, dtype=start.dtype, device=start.device)
    if not weights.numel():
        return weights
    # In portions of bins: each holds a few numbers for every sample.
    each = max(1, _PORTION // (number.numel() * len(start)))
    for there, at, into in zip(begin.split(each, 1), first.split(each, 1), weights.split(each, 1)):
        index = at + number
        point = there + (index + 0.5) * step
        used = (point >= -1) & (point <= size) & (index < samples)
        weight = used / samples.clamp_min(1)
        point = torch.where(used, point, 0).clamp(0, size - 1)
        low = point.floor()
        rest = point - low
        low = low.long()
        into.scatter_add_(2, low, weight * (1 - rest))
        into.scatter_add_(2, (low + 1).clamp_max(size - 1), weight * rest)
    return weights


_PORTION = 1 << 20  # points that are looked at together
_BYTES_A_POINT = 64  # temporary memory of a sample on a GPU
_MOST_POINTS = 1 << 18  # of one region: 512 x 512


def _pool_weighted(data, images, rows, columns, groups=None):
    """``sum_hw rows[r, p, h] * columns[r, q, w] * data[image of r, c, h, w]`` as (R, C, p, q).

    With `groups` (down, right), bin (p, q) reads the one of that many groups of channels that belongs to it.
    """
    def in_torch(maps):
        return _pool_by_weights(maps, images, rows, columns) if groups is None \
            else _pool_position_sensitive(maps, images, rows, columns, groups)
    return kernels.weighted(data, images, rows, columns, groups, in_torch)


def _pool_by_weights(data, images, rows, columns):
    channels, height, width = data.shape[1:]
    out = []
    # In portions, since the step between holds p x C x W numbers for each region.
    for image, p, q in zip(images.split(16), rows.split(16), columns.split(16)):
        maps = data[image].transpose(1, 2).reshape(len(image), height, channels * width)
        between = torch.bmm(p, maps).reshape(len(image), p.shape[1] * channels, width)
        out.append(torch.bmm(between, q.mT).reshape(len(image), p.shape[1], channels, q.shape[1]).transpose(1, 2))
    return torch.cat(out) if out else data.new_zeros(0, channels, rows.shape[1], columns.shape[1])


def _pool_position_sensitive(data, images, rows, columns, groups):
    bins = rows.shape[1], columns.shape[1]
    depth = data.shape[1] // (groups[0] * groups[1])
    maps = data.reshape(data.shape[0], depth, *groups, *data.shape[2:])
    # The bins that read group i end where those of group i + 1 begin.
    ends = [[-(-i * b // g) for i in range(g + 1)] for b, g in zip(bins, groups)]
    each = max(1, _PORTION // max(1, depth * math.prod(data.shape[2:])))
    out = []
    for image, p, q in zip(images.split(each), rows.split(each), columns.split(each)):
        bands = []
        for i, (top, bottom) in enumerate(itertools.pairwise(ends[0])):
            parts = [torch.einsum("rph,rdhw,rqw->rdpq", p[:, top:bottom], maps[image, :, i, j], q[:, left:right])
                     for j, (left, right) in enumerate(itertools.pairwise(ends[1])) if left < right and top < bottom]
            bands += [torch.cat(parts, 3)] if parts else []
        out.append(torch.cat(bands, 2))
    return torch.cat(out) if out else data.new_zeros(0, depth, *bins)


@op("_contrib_ROIAlign", complete_rule="shape", names_output=True, amp="widest")
def roi_align(data, rois, *, pooled_size: Shape, spatial_scale: Fraction, sample_ratio: _Samples = -1, position_sensitive: bool = False,
              aligned: bool = False):
    """The mean of bilinear samples in each of `pooled_size` (h, w) parts of each region, (R, C, h, w), without rounding (He et al. 2017).

    Parameters
    ----------
    data : (N, C, H, W)
    rois : (R, 5), or (R, 4) without the number of the image
    spatial_scale : float
        Size of the feature map over that of the image, from 0 to 1.
    sample_ratio : int
        Samples along each axis of a part, up to 1024; if not positive, as many as the part has pixels.
    position_sensitive : bool
        Each part reads channels of its own: C = channels of the result * h * w.
    aligned : bool
        Shift by half a pixel, so that pixels are centred on whole coordinates.

    Raises
    ------
    MXNetError
        If the shapes do not fit, or a region names an image that there is not.

    Example
    -------
    >>> x = mx.nd.arange(16).reshape((1, 1, 4, 4))
    >>> mx.nd.contrib.ROIAlign(x, mx.nd.array([[0, 0.5, 0, 1.5, 2]]), pooled_size=(2, 1), spatial_scale=1).asnumpy()
    array([[[[3.],
             [7.]]]], dtype=float32)
    """
    _check_align(data.shape, rois.shape, None, pooled_size=pooled_size, position_sensitive=position_sensitive)
    images, corners = _split_rois(rois)
    start_x, start_y, end_x, end_y = (corners * spatial_scale - (0.5 if aligned else 0)).unbind(1)
    width, height = end_x - start_x, end_y - start_y
    if not aligned:
        width, height = width.clamp_min(1), height.clamp_min(1)
    if on_gpu(data):
        return _align_on_gpu(data, images, (start_y, start_x), (height, width), pooled_size, sample_ratio, position_sensitive)
    weights = []
    for start, length, bins, size in ((start_y, height, pooled_size[0], data.shape[2]), (start_x, width, pooled_size[1], data.shape[3])):
        step = length / bins
        samples = torch.full_like(step, sample_ratio) if sample_ratio > 0 else step.ceil()
        weights.append(_interpolation_weights(start, step, bins, samples, size))
    # A negative number marks a region that is not used.
    rows = (weights[0] * (images >= 0).reshape(-1, 1, 1)).to(data.dtype)
    columns, images = weights[1].to(data.dtype), images.clamp_min(0)
    _check_images("ROIAlign", images, data.shape[0])
    if not position_sensitive:
        return _pool_weighted(data, images, rows, columns)
    return _pool_weighted(data, images, rows, columns, pooled_size)


def _align_on_gpu(data, images, starts, lengths, pooled_size, sample_ratio, position_sensitive):
    images, known = regions_on_gpu.known_images(images, data.shape[0])
    axes = [(start, length / bins, bins, size) for start, length, bins, size in zip(starts, lengths, pooled_size, data.shape[2:])]
    if regions_on_gpu.few_samples(sample_ratio, *data.shape[2:]):
        rows, columns = (regions_on_gpu.linear_samples(start, step, bins, sample_ratio, size) for start, step, bins, size in axes)
        out = regions_on_gpu.pool_samples(data, images, rows, columns, position_sensitive)
    else:
        most = sample_ratio if sample_ratio > 0 else math.inf
        rows, columns = (_interpolation_weights(start, step, bins, step.ceil() if most == math.inf else torch.full_like(step, most), size, most)
                         for start, step, bins, size in axes)
        out = regions_on_gpu.pool_by_weights(data, images, rows, columns, position_sensitive)
    return regions_on_gpu.zero_unknown(out, known)


def _split_rois(rois):
    """(number of the image, corners in at least single precision) of (R, 4) or (R, 5) regions."""
    rois = rois.detach()
    rois = rois.float() if rois.dtype == torch.float16 else rois
    if rois.shape[1] == 4:
        return torch.zeros(rois.shape[0], dtype=torch.int64, device=rois.device), rois
    return rois[:, 0].long(), rois[:, 1:]


def _check_align(data, rois, trans, *, pooled_size, position_sensitive, **_):
    _check("ROIAlign", data, rois, 4, 5)
    _check_size("ROIAlign", pooled_size)
    if position_sensitive and data[1] >= 0 and data[1] % math.prod(pooled_size):
        raise MXNetError(f"ROIAlign: position_sensitive needs a pooled_size whose area divides the {data[1]} channels, received {pooled_size}")


roi_align.shape_rule(_pooled_rule(
    _check_align, lambda depth, size, attributes: depth // math.prod(size) if attributes["position_sensitive"] and depth >= 0 else depth))
roi_align.dtype_rule(_types_of_data)


@op("_contrib_RROIAlign", complete_rule="shape", names_output=True, amp=None)
def rotated_roi_align(data, rois, *, pooled_size: Shape, spatial_scale: Fraction, sampling_ratio: _Samples = -1):
    """`ROIAlign` of rotated regions (R, 6): [number of the image, x and y of the centre, width, height, angle in degrees].

    The result is (R, C, h, w) for a `pooled_size` of (h, w); `sampling_ratio` is what `sample_ratio` is to `ROIAlign`.

    Raises
    ------
    MXNetError
        If the shapes do not fit, or a region names an image that there is not.

    Example
    -------
    >>> x = mx.nd.arange(25).reshape((1, 1, 5, 5))
    >>> rois = mx.nd.array([[0, 2, 2, 2, 2, 0], [0, 2, 2, 2, 2, 90]])      # the same square, then turned by a quarter
    >>> mx.nd.contrib.RROIAlign(x, rois, pooled_size=(1, 2), spatial_scale=1, sampling_ratio=1).asnumpy().reshape(2, 2)
    array([[11.5, 12.5],
           [14.5,  9.5]], dtype=float32)
    """
    _check_rotated(data.shape, rois.shape, None, pooled_size=pooled_size)
    if on_gpu(data):
        if sampling_ratio > 0 and len(rois) and sampling_ratio ** 2 * math.prod(pooled_size) > _MOST_POINTS:
            raise MXNetError(f"RROIAlign: a region may be sampled at up to {_MOST_POINTS} points, received pooled_size={tuple(pooled_size)} and "
                             f"sampling_ratio={sampling_ratio}")
        return regions_on_gpu.pool_rotated(data, rois.detach(), pooled_size, spatial_scale, sampling_ratio)
    _check_images("RROIAlign", rois[:, 0].detach().long(), data.shape[0])
    channels, height, width = data.shape[1:]
    flat = data.reshape(-1)
    channel_base = torch.arange(channels, device=data.device).reshape(-1, 1, 1, 1, 1) * (height * width)
    out = []
    for image, x, y, w, h, angle in rois.detach().double().cpu().tolist():
        size = (max(h * spatial_scale, 1.0), max(w * spatial_scale, 1.0))
        samples = [sampling_ratio if sampling_ratio > 0 else math.ceil(s / p) for s, p in zip(size, pooled_size) if s < math.inf]
        if len(samples) != 2 or math.prod(samples) * math.prod(pooled_size) > _MOST_POINTS:
            raise MXNetError(f"RROIAlign: a region may be sampled at up to {_MOST_POINTS} points, received one of {size[0]:g} x {size[1]:g} pixels "
                             f"for pooled_size={tuple(pooled_size)} and sampling_ratio={sampling_ratio}")
        points = [(torch.arange(p * n, device=data.device, dtype=data.dtype) + 0.5) * (s / (p * n)) - s / 2
                  for s, p, n in zip(size, pooled_size, samples)]
        dy, dx = points[0].reshape(pooled_size[0], samples[0], 1, 1), points[1].reshape(1, 1, pooled_size[1], samples[1])
        cosine, sine = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        px, py = dx * cosine + dy * sine + x * spatial_scale, dy * cosine - dx * sine + y * spatial_scale
        inside = (py >= -1) & (py <= height) & (px >= -1) & (px <= width)
        bases = (channel_base + int(image) * channels * height * width).split(max(1, _PORTION // max(1, inside.numel())))
        out.append(torch.cat([(bilinear_gather(flat, base, py, px, height, width, "edge") * inside).mean((2, 4)) for base in bases]))
    return torch.stack(out) if out else data.new_zeros(0, channels, *pooled_size)


def _check_rotated(data, rois, trans, *, pooled_size, **_):
    _check("RROIAlign", data, rois, 6)
    _check_size("RROIAlign", pooled_size)


rotated_roi_align.shape_rule(_pooled_rule(_check_rotated))
rotated_roi_align.dtype_rule(_types_of_data)


def _psroi_corners(rois, spatial_scale):
    """(start x, start y, width, height) of position-sensitive regions, which cover whole pixels."""
    corners = _round(rois[:, 1:].detach())
    start = corners[:, :2] * spatial_scale
    size = ((corners[:, 2:] + 1) * spatial_scale - start).clamp_min(0.1)
    return (*start.unbind(1), *size.unbind(1))


def _whole_pixels(start, length, bins, size):
    """Return the begin and end of the whole pixels that each bin touches: two of (R, bins)."""
    step = (length / bins).unsqueeze(1)
    number = torch.arange(bins, device=start.device, dtype=start.dtype)
    first = torch.floor(number * step + start.unsqueeze(1)).clamp(0, size)
    last = torch.ceil((number + 1) * step + start.unsqueeze(1)).clamp(0, size)
    return first, last


def _mean_weights(start, length, bins, size):
    """Weights (R, bins, size) that average the whole pixels which each bin touches; zero for an empty bin."""
    first, last = (edge.unsqueeze(2) for edge in _whole_pixels(start, length, bins, size))
    position = torch.arange(size, device=start.device, dtype=start.dtype)
    return ((position >= first) & (position < last)) / (last - first).clamp_min(1)


def _first_channels(data, count):
    """As many channels as position-sensitive pooling reads."""
    return data if data.shape[1] == count else data[:, :count]


def _check_channels(operator, data, count):
    if 0 <= data[1] < count:
        raise MXNetError(f"{operator}: `data` must have output_dim * group_size² = {count} channels, received {data[1]}")


@op("_contrib_PSROIPooling", complete_rule="shape", names_output=True, amp="widest")
def psroi_pooling(data, rois, *, spatial_scale: Fraction, output_dim: int, pooled_size: int, group_size: int = 0):
    """Position-sensitive pooling (Dai et al. 2016): part (i, j) of a region averages channels of its own.

    `data` is (N, C, H, W), `rois` (R, 5), the result (R, output_dim, pooled_size, pooled_size). Of `data` the first
    output_dim * group_size² channels count; a `group_size` of 0 means `pooled_size`. `spatial_scale` is the size of the feature map over that
    of the image.

    Raises
    ------
    MXNetError
        If there are fewer channels, or a region names an image that there is not.

    Example
    -------
    >>> x = mx.nd.array([1, 2, 3, 4]).reshape((1, 4, 1, 1)).tile((1, 1, 4, 4))     # four channels, each of one value
    >>> mx.nd.contrib.PSROIPooling(x, mx.nd.array([[0, 0, 0, 3, 3]]), spatial_scale=1, output_dim=1, pooled_size=2).asnumpy()
    array([[[[1., 2.],
             [3., 4.]]]], dtype=float32)
    """
    _check_psroi(data.shape, rois.shape, None, output_dim=output_dim, pooled_size=pooled_size, group_size=group_size)
    groups = group_size or pooled_size
    data = _first_channels(data, output_dim * groups * groups)
    images = rois[:, 0].detach().long()
    x, y, width, height = _psroi_corners(rois, spatial_scale)
    if on_gpu(data):
        images, known = regions_on_gpu.known_images(images, data.shape[0])
        down, across = ([edge.nan_to_num(0).long() for edge in _whole_pixels(start, length, pooled_size, size)]
                        for start, length, size in ((y, height, data.shape[2]), (x, width, data.shape[3])))
        return regions_on_gpu.zero_unknown(regions_on_gpu.pool_means(data, images, down, across, groups), known)
    _check_images("PSROIPooling", images, data.shape[0])
    rows = _mean_weights(y, height, pooled_size, data.shape[2]).to(data.dtype)
    columns = _mean_weights(x, width, pooled_size, data.shape[3]).to(data.dtype)
    return _pool_weighted(data, images, rows, columns, (groups, groups))


def _check_psroi(data, rois, trans, *, output_dim, pooled_size, group_size, **_):
    _check("PSROIPooling", data, rois, 5)
    groups = group_size or pooled_size
    if min(output_dim, groups, pooled_size) < 1:
        raise MXNetError(f"PSROIPooling: `output_dim`, `group_size` and `pooled_size` must be positive, received {output_dim}, {group_size} and "
                         f"{pooled_size}")
    _check_channels("PSROIPooling", data, output_dim * groups * groups)


@op("_contrib_DeformablePSROIPooling", complete_rule="shape",
    inputs_rule=lambda attributes: ("data", "rois") if attributes["no_trans"] else ("data", "rois", "trans"), names_output=True, amp="float32")
def deformable_psroi_pooling(data, rois, trans=None, *, spatial_scale: Fraction, output_dim: int, group_size: int, pooled_size: int,
                             part_size: int = 0, sample_per_part: int = 1, trans_std: Fraction = 0.0, no_trans: bool = False):
    """`PSROIPooling` whose parts are moved by `trans` (R, 2 * classes, part_size, part_size), times `trans_std` (Dai et al. 2017).

    Offsets are (right, down), in parts of the region's width and height; the channels of the result are shared out among the classes. Other
    inputs and attributes are those of `PSROIPooling`. Each part averages ``sample_per_part ** 2`` bilinear samples. With `no_trans` there
    is no third input and nothing moves.

    Raises
    ------
    MXNetError
        If there are too few channels, `trans` has another shape, or a region names an image that there is not.

    Example
    -------
    >>> x, roi = mx.nd.array([[[[0, 1, 2, 3], [0, 1, 2, 3]]]]), mx.nd.array([[0, 0, 0, 1, 1]])
    >>> right = mx.nd.array([0.5, 0]).reshape((1, 2, 1, 1))
    >>> options = {"spatial_scale": 1, "output_dim": 1, "group_size": 1, "pooled_size": 1, "sample_per_part": 2}
    >>> mx.nd.contrib.DeformablePSROIPooling(x, roi, right, trans_std=1, **options).asnumpy()
    array([[[[1.]]]], dtype=float32)
    >>> mx.nd.contrib.DeformablePSROIPooling(x, roi, no_trans=True, **options).asnumpy()
    array([[[[0.25]]]], dtype=float32)
    """
    if no_trans != (trans is None):
        raise MXNetError(f"DeformablePSROIPooling: expected {2 if no_trans else 3} inputs with no_trans={no_trans}")
    _check_deformed(data.shape, rois.shape, None if trans is None else trans.shape, output_dim=output_dim, group_size=group_size,
                    pooled_size=pooled_size, part_size=part_size, sample_per_part=sample_per_part)
    data = _first_channels(data, output_dim * group_size * group_size)
    points = output_dim * (pooled_size * sample_per_part) ** 2
    if on_gpu(data):
        images, known = regions_on_gpu.known_images(rois[:, :1].detach().long(), data.shape[0])
        rois, each = torch.cat([images.to(rois.dtype), rois[:, 1:]], 1), per_chunk(_BYTES_A_POINT * points)
    else:
        _check_images("DeformablePSROIPooling", rois[:, 0].detach().long(), data.shape[0])
        known, each = None, max(1, _PORTION // points)
    out = torch.cat([_pool_deformed(data, rois[i:i + each], None if trans is None else trans[i:i + each], spatial_scale, output_dim, group_size,
                                     pooled_size, part_size, sample_per_part, trans_std) for i in range(0, max(1, len(rois)), each)])
    return out if known is None else regions_on_gpu.zero_unknown(out, known.squeeze(1))


def _check_deformed(data, rois, trans, *, output_dim, group_size, pooled_size, part_size, sample_per_part, **_):
    name = "DeformablePSROIPooling"
    _check(name, data, rois, 5)
    if min(output_dim, group_size, pooled_size, sample_per_part) < 1 or part_size < 0:
        raise MXNetError(f"{name}: `output_dim`, `group_size`, `pooled_size` and `sample_per_part` must be positive and `part_size` not negative, "
                         f"received {output_dim}, {group_size}, {pooled_size}, {sample_per_part} and {part_size}")
    _check_channels(name, data, output_dim * group_size * group_size)
    if trans is not None and rois[0] >= 0 and min(trans) >= 0:
        side, classes = part_size or pooled_size, trans[1] // 2 if len(trans) == 4 else 0
        if classes < 1 or tuple(trans) != (rois[0], 2 * classes, side, side) or output_dim % classes:
            raise MXNetError(f"{name}: `trans` must have shape ({rois[0]}, 2 * classes, {side}, {side}), the classes dividing "
                             f"output_dim={output_dim}, received {tuple(trans)}")
    if output_dim * (pooled_size * sample_per_part) ** 2 > _MOST_POINTS:
        raise MXNetError(f"{name}: a region may be sampled at up to {_MOST_POINTS} points, received output_dim={output_dim}, "
                         f"pooled_size={pooled_size} and sample_per_part={sample_per_part}")


def _pool_deformed(data, rois, trans, spatial_scale, output_dim, group_size, pooled_size, part_size, sample_per_part, trans_std):
    channels, height, width = data.shape[1:]
    images = rois[:, 0].detach().long()
    x, y, roi_width, roi_height = (v.reshape(-1, 1, 1, 1, 1, 1) for v in _psroi_corners(rois, spatial_scale))
    # Axes: region, channel of the result, row and column of the part, row and column of the sample.
    part = torch.arange(pooled_size, device=data.device)
    row, column = part.reshape(1, 1, -1, 1, 1, 1), part.reshape(1, 1, 1, -1, 1, 1)
    sample = torch.arange(sample_per_part, device=data.device, dtype=data.dtype) / sample_per_part
    py = y - 0.5 + (row + sample.reshape(-1, 1)) * (roi_height / pooled_size)
    px = x - 0.5 + (column + sample) * (roi_width / pooled_size)
    depth = torch.arange(output_dim, device=data.device)
    if trans is not None:
        parts = part * (part_size or pooled_size) // pooled_size
        shift = trans.reshape(trans.shape[0], trans.shape[1] // 2, 2, *trans.shape[2:])[:, depth // (output_dim // (trans.shape[1] // 2))]
        shift = (shift[..., parts, :][..., parts] * trans_std).reshape(*shift.shape[:3], pooled_size, pooled_size, 1, 1)
        px, py = px + shift[:, :, 0] * roi_width, py + shift[:, :, 1] * roi_height
    inside = (px >= -0.5) & (px <= width - 0.5) & (py >= -0.5) & (py <= height - 0.5)
    group = part * group_size // pooled_size
    group_row, group_column = group.reshape(1, 1, -1, 1, 1, 1), group.reshape(1, 1, 1, -1, 1, 1)
    channel = (depth.reshape(1, -1, 1, 1, 1, 1) * group_size + group_row) * group_size + group_column
    base = (images.reshape(-1, 1, 1, 1, 1, 1) * channels + channel) * (height * width)
    values = bilinear_gather(data.reshape(-1), base, py, px, height, width, "edge") * inside
    return values.sum((4, 5)) / inside.sum((4, 5)).clamp_min(1)


for _operator, _check_call in ((psroi_pooling, _check_psroi), (deformable_psroi_pooling, _check_deformed)):
    _operator.shape_rule(_pooled_rule(_check_call, lambda depth, size, attributes: attributes["output_dim"]))
    _operator.dtype_rule(_types_of_data)
