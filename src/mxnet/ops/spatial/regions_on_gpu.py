"""Pooling of regions on a GPU, without waits: memory and number of kernels depend on the shapes alone.

A region of an image that there is not gives zeros: the error that the CPU's path raises would make the host wait.
"""
import math
from typing import Any

import torch
import torch.nn.functional as F

from .on_gpu import per_chunk


def known_images(images: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return numbers of images that may be read, and which of them there are."""
    return images.clamp(0, count - 1), (images >= 0) & (images < count)


def zero_unknown(out: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """Return the result (R, ...) with zeros for the regions whose image is not known."""
    return out.masked_fill(~known.reshape(-1, *[1] * (out.dim() - 1)), 0)


def _zeros(data, *shape):
    """Return zeros with a gradient of zeros to `data`: the result where there are no regions or no pixels."""
    return data.sum() * 0 + data.new_zeros(shape)


def _rows_of_channels(data):
    """Return maps (N, C, H, W) as a table (N * H * W, C), in which a pixel's channels are contiguous."""
    return data.permute(0, 2, 3, 1).reshape(-1, data.shape[1])


# -- the largest value of each bin -------------------------------------------------------------------------------------
def pool_largest(data: torch.Tensor, images: torch.Tensor, rows: Any, columns: Any) -> torch.Tensor:
    """Compute ROIPooling of bins whose begins and ends are in `rows` and `columns`, each a pair of (R, bins).

    A bin may be as large as the map, so tables of the maximum of all blocks of 2^i x 2^j pixels are made (log H + log W kernels); four
    blocks, which may overlap, cover any bin. For a gradient the tables hold ranks instead of values: the largest rank is the first
    of the largest values in reading order, as in MXNet.
    """
    images, known = known_images(images, data.shape[0])
    empty = (rows[1] <= rows[0]).unsqueeze(2) | (columns[1] <= columns[0]).unsqueeze(1)
    shape = data.shape[1], *empty.shape[1:]
    if not data.numel() or not len(images):
        return _zeros(data, len(images), *shape)
    differentiates = data.requires_grad and torch.is_grad_enabled()
    with torch.no_grad():
        corners = _corner_blocks(images, rows, columns, data.shape)
        keys, order = _ranks(data) if differentiates else (data, None)
        levels = corners.pop()
        each = per_chunk(math.prod(levels) * data.shape[0] * math.prod(data.shape[2:]) * keys.element_size())
        each = -(-data.shape[1] // -(-data.shape[1] // each))  # chunks of one size
        largest = torch.cat([_largest_keys(part, corners, levels) for part in keys.split(each, 1)], 1)
    if order is not None:
        # The rank gives the position of the value. Gathering is differentiable any number of times.
        planes = images.reshape(-1, 1, 1, 1) * data.shape[1] + torch.arange(data.shape[1], device=data.device).reshape(-1, 1, 1)
        planes = planes * order.shape[2]
        place = planes + order.reshape(-1).take(largest.long().clamp_(0, order.shape[2] - 1).add_(planes))
        largest = data.reshape(-1).take(place)
    # MXNet starts from the lowest finite number.
    largest = largest.clamp_min(torch.finfo(data.dtype).min)
    return largest.masked_fill(empty.unsqueeze(1) | ~known.reshape(-1, 1, 1, 1), 0).contiguous()


def _ranks(data):
    """Return each pixel's place among its map's values, the largest and of equals the first last, and the pixels in that order."""
    order = data.detach().flatten(2).sort(dim=2, descending=True, stable=True).indices.flip(2)
    dtype = torch.int16 if order.shape[2] <= 1 << 15 else torch.int32
    numbers = torch.arange(order.shape[2], dtype=dtype, device=data.device).expand(order.shape)
    return torch.empty_like(order, dtype=dtype).scatter_(2, order, numbers).reshape(data.shape), order


def _corner_blocks(images, rows, columns, shape):
    """Return where the four blocks that cover each bin are in a table (levels down, levels across, N, H, W): [(R, p, q) four times, levels]."""
    count, _, height, width = shape
    levels = height.bit_length(), width.bit_length()
    sides = []
    for (first, last), size in ((rows, height), (columns, width)):
        level = torch.frexp((last - first).float()).exponent.sub_(1).clamp_(0, size.bit_length() - 1)  # of the largest power of 2 that fits
        sides.append((level, first.clamp(0, size - 1), (last - (1 << level)).clamp_(0, size - 1)))
    (down, *ys), (across, *xs) = sides
    maps = ((down * levels[1]).unsqueeze(2) + across.unsqueeze(1)) * count + images.reshape(-1, 1, 1)
    lines = [(maps * height + y.unsqueeze(2)) * width for y in ys]
    return [*(line + x.unsqueeze(1) for line in lines for x in xs), levels]


def _largest_keys(keys, corners, levels):
    """Return the largest key (R, C, p, q) of each bin, of keys (N, C, H, W)."""
    keys = keys.permute(0, 2, 3, 1)
    table = torch.empty((*levels, *keys.shape), dtype=keys.dtype, device=keys.device)
    table[0, 0] = keys
    # What begins too close to the border for its size is never read, and not written.
    for i in range(levels[1] - 1):
        step, old, new = 1 << i, table[0, i], table[0, i + 1]
        torch.maximum(old[:, :, :-step], old[:, :, step:], out=new[:, :, :-step])
    for i in range(levels[0] - 1):
        step, old, new = 1 << i, table[i], table[i + 1]
        torch.maximum(old[:, :, :-step], old[:, :, step:], out=new[:, :, :-step])
    table = table.reshape(-1, keys.shape[-1])
    parts = [c.split(per_chunk(3 * c[0].numel() * table.shape[1] * keys.element_size())) for c in corners]
    out = []
    for top_left, top_right, bottom_left, bottom_right in zip(*parts):
        best = table[top_left]
        for corner in (top_right, bottom_left, bottom_right):
            best = torch.maximum(best, table[corner])
        out.append(best.permute(0, 3, 1, 2))
    return torch.cat(out)


# -- weighted sums -----------------------------------------------------------------------------------------------------
def few_samples(samples: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Return whether summing `samples`² points of each bin reads less than weighting all pixels of the map does."""
    return samples > 0 and 4 * samples * samples <= height * width


def linear_samples(start: torch.Tensor, bin_size: torch.Tensor, bins: int, samples: Any, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return pixels and weights (R, bins, 2 * samples) of evenly spaced linear interpolations along one axis, whose mean each bin is.

    Samples beyond the map count nothing.
    """
    step = (bin_size / samples).reshape(-1, 1, 1)
    begin = (start.unsqueeze(1) + torch.arange(bins, device=start.device) * bin_size.unsqueeze(1)).unsqueeze(2)
    point = begin + (torch.arange(samples, device=start.device, dtype=start.dtype) + 0.5) * step
    used = (point >= -1) & (point <= size)
    point = torch.where(used, point, 0).clamp(0, size - 1)
    low = point.floor()
    rest, weight = point - low, used / samples
    low = low.long()
    return torch.cat([low, (low + 1).clamp_max(size - 1)], 2), torch.cat([weight * (1 - rest), weight * rest], 2)


def pool_samples(data: torch.Tensor, images: torch.Tensor, rows: Any, columns: Any, sensitive: bool) -> torch.Tensor:
    """Sum weighted pixels: `rows` and `columns` are pixels and weights (R, bins, k) along each axis; the result is (R, C, p, q).

    With `sensitive` each bin reads channels of its own. A chunk costs four kernels; a gradient is a sum into the rows of the table.
    """
    (y, down), (x, across) = rows, columns
    (regions, bins_down, k), bins_across = y.shape, x.shape[1]
    height, width = data.shape[2:]
    parts = bins_down * bins_across
    depth = data.shape[1] // parts if sensitive else data.shape[1]
    if not regions or not data.numel():
        return _zeros(data, regions, depth, bins_down, bins_across)
    if sensitive:
        table = data.reshape(len(data), depth, parts, height, width).permute(0, 2, 3, 4, 1).reshape(-1, depth)
        images = images.reshape(-1, 1, 1) * parts + torch.arange(parts, device=data.device).reshape(bins_down, bins_across)
    else:
        table = _rows_of_channels(data)
        images = images.reshape(-1, 1, 1)
    out = []
    each = per_chunk(2 * parts * k * k * depth * data.element_size())
    for image, *lines in zip(*(t.split(each) for t in (images, y, down, x, across))):
        (row, high), (column, wide) = ((t[:, :, None, :, None] for t in lines[:2]), (t[:, None, :, None, :] for t in lines[2:]))
        place = (image.unsqueeze(-1).unsqueeze(-1) * height + row) * width + column
        weight = (high * wide).to(data.dtype)
        read = table.index_select(0, place.reshape(-1)).reshape(*place.shape[:3], k * k, depth)
        out.append((read * weight.flatten(3).unsqueeze(-1)).sum(3).permute(0, 3, 1, 2))
    return torch.cat(out).contiguous()


def pool_by_weights(data: torch.Tensor, images: torch.Tensor, rows: Any, columns: Any, sensitive: bool) -> torch.Tensor:
    """``sum_hw rows[r, p, h] * columns[r, q, w] * data[image of r, c, h, w]`` as (R, C, p, q), for bins of any number of samples.

    Products are of float64: for float32 torch may choose TF32, whose three digits MXNet's sums do not have. The work is that of the whole
    map for each region. With `sensitive` each bin reads channels of its own.
    """
    regions, bins_down, height = rows.shape
    bins_across, width, channels = columns.shape[1], columns.shape[2], data.shape[1]
    if not regions or not data.numel():
        depth = channels // (bins_down * bins_across) if sensitive else channels
        return _zeros(data, regions, depth, bins_down, bins_across)
    out = []
    if sensitive:
        each = per_chunk(2 * channels * height * width * data.element_size())
        for image, p, q in zip(images.split(each), rows.split(each), columns.split(each)):
            maps = data.index_select(0, image).reshape(len(image), -1, bins_down, bins_across, height, width)
            lines = (maps * q[:, None, None, :, None].to(data.dtype)).sum(-1)
            out.append((lines * p[:, None, :, None].to(data.dtype)).sum(-1))
        return torch.cat(out)
    # Lines of all images, of which each region takes its own: less than a copy of the map for each region.
    maps = data.permute(0, 2, 1, 3).reshape(len(data), height, channels * width).double()
    each = per_chunk(len(data) * bins_down * channels * width * 8)
    for image, p, q in zip(images.split(each), rows.split(each), columns.split(each)):
        count = len(image)
        lines = torch.matmul(p.double().reshape(1, -1, height), maps).reshape(len(data) * count, -1)
        lines = lines.index_select(0, image * count + torch.arange(count, device=data.device)).reshape(count, -1, width)
        sums = torch.bmm(lines, q.double().mT).reshape(count, bins_down, channels, bins_across)
        out.append(sums.transpose(1, 2).to(data.dtype))
    return torch.cat(out)


def pool_means(data: torch.Tensor, images: torch.Tensor, rows: Any, columns: Any, groups: Any) -> torch.Tensor:
    """Position-sensitive means of whole pixels, (R, C / groups², p, q): four reads of sums over rectangles, in float64, for each bin.

    `rows` and `columns` are pairs of (R, bins): where the bins begin and end; `groups` is how many groups of channels lie along each axis.
    """
    depth, (height, width) = data.shape[1] // groups ** 2, data.shape[2:]
    if not len(images) or not data.numel():
        return _zeros(data, len(images), depth, rows[0].shape[1], columns[0].shape[1])
    sums = F.pad(data.double(), (1, 0, 1, 0)).cumsum(2).cumsum(3).reshape(-1)
    down, across = (torch.arange(b.shape[1], device=data.device) * groups // b.shape[1] for b in (rows[0], columns[0]))
    channels = (torch.arange(depth, device=data.device).reshape(-1, 1, 1) * groups + down.unsqueeze(1)) * groups + across
    planes = (images.reshape(-1, 1, 1, 1) * data.shape[1] + channels) * (height + 1)
    (top, bottom), (left, right) = (t.reshape(len(t), 1, -1, 1) for t in rows), (t.reshape(len(t), 1, 1, -1) for t in columns)

    def up_to(y, x):
        return sums.take((planes + y) * (width + 1) + x)

    area = (bottom - top).clamp_min(0) * (right - left).clamp_min(0)
    total = up_to(bottom, right) - up_to(top, right) - up_to(bottom, left) + up_to(top, left)
    return (total / area.clamp_min(1)).masked_fill(area == 0, 0).to(data.dtype)


# -- rotated regions ---------------------------------------------------------------------------------------------------
def pool_rotated(data: torch.Tensor, rois: torch.Tensor, pooled_size: tuple[Any, ...], spatial_scale: float, ratio: Any) -> torch.Tensor:
    """RROIAlign of regions (R, 6). Each averages a grid of samples, `ratio`² in a bin, or as many as there are pixels if it is not positive."""
    count, channels, height, width = data.shape
    if not len(rois) or not data.numel():
        return _zeros(data, len(rois), channels, *pooled_size)
    images, known = known_images(rois[:, 0].long(), count)
    rois = rois.double()
    ratio = max(ratio, 0)
    table, bins = _rows_of_channels(data), math.prod(pooled_size)
    if few_samples(ratio, height, width):
        each = per_chunk(2 * bins * 4 * ratio * ratio * channels * data.element_size())
    else:
        # Samples are a pixel apart and then at least half a pixel, or there is one in a bin: as many as the map's diagonal has cover it.
        window = [p * ratio if ratio else max(p, 2 * math.ceil(math.hypot(height + 1, width + 1)) + 4) for p in pooled_size]
        each = per_chunk(bins * count * height * width * 16 + math.prod(window) * 128)
        table = table.double()
    out = []
    for image, roi in zip(images.split(each), rois.split(each)):
        if few_samples(ratio, height, width):
            place, weight = _rotated_samples(roi, image, pooled_size, spatial_scale, ratio, [p * ratio for p in pooled_size], data)[:2]
            # (regions, corners, bins down, samples down, bins across, samples across)
            place, weight = (t.reshape(len(roi), 4, pooled_size[0], ratio, pooled_size[1], ratio).permute(0, 2, 4, 1, 3, 5).flatten(3)
                             for t in (place, weight))
            read = table.index_select(0, place.reshape(-1)).reshape(*place.shape, channels)
            sums = (read * weight.unsqueeze(-1)).sum(3)
        else:
            place, weight, numbers = _rotated_samples(roi, image, pooled_size, spatial_scale, ratio, window, data)
            weights = torch.zeros(len(roi), bins * len(table), dtype=torch.float64, device=data.device)
            into = numbers.unsqueeze(1) * len(table) + place
            weights.scatter_add_(1, into.flatten(1), weight.double().flatten(1))
            sums = torch.matmul(weights.reshape(-1, len(table)), table).reshape(len(roi), *pooled_size, channels).to(data.dtype)
        out.append(sums.permute(0, 3, 1, 2))
    return zero_unknown(torch.cat(out), known).contiguous()


def _rotated_samples(rois, images, pooled_size, spatial_scale, ratio, window, data):
    """Return (pixel, weight), each (R, 4, h, w), of the corners of `window` (h, w) samples of each region, and the samples' bins (R, h, w)."""
    height, width = data.shape[2:]
    x, y, across, down, angle = (v.reshape(-1, 1, 1) for v in rois[:, 1:].unbind(1))
    x, y, angle = x * spatial_scale, y * spatial_scale, angle * (math.pi / 180)
    cosine, sine = angle.cos(), angle.sin()
    # The map's corners in the region's coordinates bound the samples that may lie on it.
    corners = [(u - x, v - y) for u in (-1, width) for v in (-1, height)]
    ends = (torch.stack([sine * u + cosine * v for u, v in corners]), torch.stack([cosine * u - sine * v for u, v in corners]))
    points, numbers, counts = [], [], []
    for side, bins, most, end, axis in zip((down, across), pooled_size, window, ends, (1, 2)):
        size = (side * spatial_scale).clamp_min(1)
        each = torch.full_like(size, ratio) if ratio else (size / bins).ceil()
        step = size / (each * bins)
        first = torch.zeros_like(size) if ratio else ((end.amin(0) + size / 2) / step - 1).floor().nan_to_num(0, 0, 0).clamp_min(0)
        index = first + torch.arange(most, device=data.device, dtype=size.dtype).reshape(*[-1 if i == axis else 1 for i in range(3)])
        # In the data's type and the order of the CPU's path from here on.
        point = (index.to(data.dtype) + 0.5) * step.to(data.dtype) - (size / 2).to(data.dtype)
        points.append(torch.where(index < each * bins, point, math.nan))
        numbers.append((index // each).nan_to_num(0).clamp(0, bins - 1).long())
        counts.append(each)
    (dy, dx), (x, y, cosine, sine) = points, (v.to(data.dtype) for v in (x, y, cosine, sine))
    px, py = dx * cosine + dy * sine + x, dy * cosine - dx * sine + y
    inside = (py >= -1) & (py <= height) & (px >= -1) & (px <= width)
    share = inside / (counts[0] * counts[1]).nan_to_num(1, 1).to(data.dtype)
    px, py = (torch.where(inside, v, 0).clamp(0, size - 1) for v, size in ((px, width), (py, height)))
    left, top = px.floor(), py.floor()
    right, below = px - left, py - top
    left, top = left.long(), top.long()
    images = images.reshape(-1, 1, 1) * height
    places, weights = [], []
    for row, of_row in ((top, 1 - below), ((top + 1).clamp_max(height - 1), below)):
        for column, of_column in ((left, 1 - right), ((left + 1).clamp_max(width - 1), right)):
            places.append((images + row) * width + column)
            weights.append(of_row * of_column * share)
    return torch.stack(places, 1), torch.stack(weights, 1), numbers[0] * pooled_size[1] + numbers[1]
