"""Deformable convolution on a GPU, without waits and in bounded memory."""
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

from .on_gpu import per_chunk

_COPIES = 6  # of the samples of all taps, while they are computed


def convolve(data: torch.Tensor, offset: torch.Tensor, mask: torch.Tensor | None, weight: torch.Tensor, num_group: int,
             num_deformable_group: int, kernel: tuple[Any, ...], stride: tuple[Any, ...], dilate: tuple[Any, ...], pad: tuple[Any, ...],
             outside: Any) -> torch.Tensor:
    """Return the convolution without its bias. Axes and attributes are those of `deformable.deformable_convolution`.

    Where the samples of the taps do not fit into one chunk, images and then rows of the result are computed one part after another, and
    backward computes each part's reads again, as MXNet does.
    """
    n, _, rows, columns = offset.shape
    each = per_chunk(_COPIES * columns * kernel[0] * kernel[1] * data.shape[1] * data.element_size())
    images, lines = max(1, each // rows), min(each, rows)

    def part(data, offset, mask, weight, row):
        read = read_taps(data, offset, mask, num_deformable_group, kernel, stride, dilate, pad, outside, row)
        return multiply(read, weight, num_group)

    if images >= n and lines == rows:
        return part(data, offset, mask, weight, 0)
    out = []
    for i in range(0, n, images):
        of_images = [None if t is None else t[i:i + images] for t in (data, offset, mask)]
        out.append(torch.cat([
            checkpoint(part, of_images[0], *(None if t is None else t[:, :, row:row + lines] for t in of_images[1:]), weight, row,
                       use_reentrant=False, preserve_rng_state=False) for row in range(0, rows, lines)], 2))
    return torch.cat(out)


def multiply(read: torch.Tensor, weight: torch.Tensor, num_group: int) -> torch.Tensor:
    """Return the result (N, filters, H', W') for the samples of the taps, (N, H', W', taps, C)."""
    n, rows, columns, taps, channels = read.shape
    by_group = read.reshape(n, rows * columns, taps, num_group, channels // num_group).permute(0, 3, 1, 2, 4).flatten(3)
    filters = weight.reshape(num_group, -1, channels // num_group, taps).transpose(2, 3).flatten(2)
    return torch.matmul(filters, by_group.transpose(2, 3)).reshape(n, -1, rows, columns)


def read_taps(data: torch.Tensor, offset: torch.Tensor, mask: torch.Tensor | None, groups: int, kernel: tuple[Any, ...], stride: tuple[Any, ...],
              dilate: tuple[Any, ...], pad: tuple[Any, ...], outside: Any, first_row: int = 0) -> torch.Tensor:
    """Return the sample of each tap at each output position: (N, H', W', taps, C). `first_row` is the row of the result where the offsets begin."""
    (n, channels, height, width), (rows, columns), taps = data.shape, offset.shape[2:], kernel[0] * kernel[1]
    tap = torch.arange(taps, device=data.device)
    down, across = ((torch.arange(start, start + size, device=data.device) * s - p).to(data.dtype)
                    for start, size, s, p in zip((first_row, 0), (rows, columns), stride, pad))
    # Axes: image, row, column, tap, deformable group.
    moves = offset.reshape(n, groups, taps, 2, rows, columns).permute(3, 0, 4, 5, 2, 1)
    y = (tap // kernel[1] * dilate[0]).to(data.dtype).unsqueeze(-1) + down.reshape(-1, 1, 1, 1) + moves[0]
    x = (tap % kernel[1] * dilate[1]).to(data.dtype).unsqueeze(-1) + across.reshape(-1, 1, 1) + moves[1]
    counts = 1 if mask is None else mask.reshape(n, groups, taps, rows, columns).permute(0, 3, 4, 2, 1)
    if outside == "edge":
        counts = counts * ((y >= 0) & (y < height) & (x >= 0) & (x < width))
        y, x = y.clamp(0, height - 1), x.clamp(0, width - 1)
    top, left = y.floor(), x.floor()
    dy, dx = y - top, x - left
    top, left = top.long(), left.long()
    table = data.reshape(n, groups, channels // groups, height * width).transpose(2, 3).reshape(-1, channels // groups)
    image = torch.arange(n * groups, device=data.device).reshape(n, 1, 1, 1, groups) * height
    corners = []
    for row, of_row in ((top, 1 - dy), (top + 1, dy)):
        for column, of_column in ((left, 1 - dx), (left + 1, dx)):
            share = of_row * of_column * counts
            if outside == "zero":
                share = share * ((row >= 0) & (row < height) & (column >= 0) & (column < width))
            place = (image + row.clamp(0, height - 1)) * width + column.clamp(0, width - 1)
            corners.append(table.index_select(0, place.reshape(-1)).reshape(*place.shape, table.shape[1]) * share.unsqueeze(-1))
    return (corners[0] + corners[1] + corners[2] + corners[3]).flatten(4)
