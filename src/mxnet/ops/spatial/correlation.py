"""Correlation of two feature maps, as in FlowNet."""
import torch
import torch.nn.functional as F

from ...base import MXNetError
from ..registry import op
from ..shapes import unify
from .on_gpu import on_gpu, per_chunk


def _distance(a, b):
    """|a - b|, whose derivative where they are equal is 1 (MXNet's correlation.cc), not 0 as torch's."""
    difference = a - b
    if not difference.requires_grad:
        return difference.abs_()  # four times less memory
    return torch.where(difference < 0, -difference, difference)


def _compare_windows(patches, others, count, step, is_multiply):
    """Compare `patches` (N, C, H, W) with count x count windows of `others`, `step` apart: (N, count * count, H, W).

    Many displacements are one product of views, in chunks that bound its memory; on a GPU a kernel for each displacement would be mostly launches.
    """
    height, width = patches.shape[2:]
    reach = (count - 1) * step
    windows = others[:, :, :height + reach, :width + reach].unfold(2, height, step).unfold(3, width, step)
    patches = patches[:, :, None, None]
    each = per_chunk(2 * patches.numel() * patches.element_size())
    across = min(each, count)
    lines = []
    for line in windows.split(max(1, each // count), 2):
        parts = [(patches * part if is_multiply else _distance(patches, part)).mean(1) for part in line.split(across, 3)]
        lines.append(torch.cat(parts, 2))
    return torch.cat(lines, 1).flatten(1, 2)


@op("Correlation", complete_rule="shape", names_output=True, amp="widest")
def correlation(data1, data2, *, kernel_size: int = 1, max_displacement: int = 1, stride1: int = 1, stride2: int = 1,
                pad_size: int = 0, is_multiply: bool = True):
    """Correlate patches of `data1` with displaced patches of `data2`: one channel for each displacement (Dosovitskiy et al. 2015).

    Parameters
    ----------
    data1, data2 : (N, C, H, W)
    kernel_size : int
        Side of the patches, odd.
    max_displacement, stride2 : int
        The displacements: multiples of `stride2` up to `max_displacement` to every side, row by row from top left to bottom right.
    stride1 : int
        Step between the patches of `data1`.
    pad_size : int
        Zeros around both maps.
    is_multiply : bool
        Mean product, else mean absolute difference.

    Raises
    ------
    MXNetError
        If the shapes differ, `kernel_size` is even, or nothing fits into the data.

    Example
    -------
    >>> x = mx.nd.array([[[[0, 0, 0], [0, 5, 0], [0, 0, 0]]]])
    >>> y = mx.nd.array([[[[0, 0, 0], [0, 0, 2], [0, 0, 0]]]])      # moved one pixel to the right
    >>> mx.nd.Correlation(x, y).asnumpy().reshape(3, 3)
    array([[ 0.,  0.,  0.],
           [ 0.,  0., 10.],
           [ 0.,  0.,  0.]], dtype=float32)
    """
    if data1.shape != data2.shape:
        raise MXNetError(f"Correlation: `data1` and `data2` must have one shape, received {tuple(data1.shape)} and {tuple(data2.shape)}")
    rows, columns = _places(tuple(data1.shape), kernel_size, max_displacement, stride1, stride2, pad_size)
    first, second = (F.pad(d, (pad_size,) * 4) for d in (data1, data2))
    height, width = (rows - 1) * stride1 + kernel_size, (columns - 1) * stride1 + kernel_size
    start = max_displacement
    patches = first[:, :, start:start + height, start:start + width]
    reach = max_displacement // stride2
    moves = [i * stride2 for i in range(-reach, reach + 1)]
    if on_gpu(data1):
        compared = _compare_windows(patches, second[:, :, start + moves[0]:, start + moves[0]:], len(moves), stride2, is_multiply)
        return F.avg_pool2d(compared, kernel_size, stride1)
    out = []
    for down in moves:
        for right in moves:
            other = second[:, :, start + down:start + down + height, start + right:start + right + width]
            out.append((patches * other if is_multiply else _distance(patches, other)).mean(1))
    return F.avg_pool2d(torch.stack(out, 1), kernel_size, stride1)


def _places(data, kernel_size, max_displacement, stride1, stride2, pad_size):
    """Return the numbers of patches of maps of this partial shape, down and across; -1 where that is not known."""
    if len(data) != 4:
        raise MXNetError(f"Correlation: `data1` and `data2` must be 4-D, received shape {data}")
    if kernel_size % 2 == 0:
        raise MXNetError(f"Correlation: `kernel_size` must be odd, received {kernel_size}")
    if min(kernel_size, stride1, stride2) < 1 or min(max_displacement, pad_size) < 0:
        raise MXNetError("Correlation: `kernel_size`, `stride1` and `stride2` must be at least 1, `max_displacement` and `pad_size` at least 0, "
                         f"received {kernel_size}, {stride1}, {stride2}, {max_displacement} and {pad_size}")
    border = 2 * (max_displacement + (kernel_size - 1) // 2)
    counts = [-((border - s - 2 * pad_size) // stride1) if s >= 0 else None for s in data[2:]]
    if any(n is not None and n < 1 for n in counts):
        raise MXNetError(f"Correlation: neighborhood and kernel don't fit in data of shape {data} with pad_size={pad_size}")
    return [-1 if n is None else n for n in counts]


@correlation.shape_rule
def _(in_shapes, out_shapes, *, is_multiply, **attributes):
    data, out = unify(*in_shapes), out_shapes[0]
    if data is not None:
        places = _places(data, **attributes)
        out = unify(out, (data[0], (2 * (attributes["max_displacement"] // attributes["stride2"]) + 1) ** 2, *places))
    return [data, data], [out]
