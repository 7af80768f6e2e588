"""Feature maps of two and three spatial axes, sampled at the points of a grid."""
from typing import Literal

import torch.nn.functional as F

from ...base import MXNetError
from ..registry import op
from ..shapes import known, unify

_MODES = {"nearest": "nearest", "linear": "bilinear", "cubic": "bicubic"}


@op("_contrib_grid_sample", complete_rule="shape", amp=None)
def grid_sample(data, grid, *, mode: Literal["nearest", "linear", "cubic"] = "linear",
                padding_mode: Literal["zeros", "border", "reflection"] = "zeros", align_corners: bool = False):
    """Values of `data` (N, C, H, W) at the points of `grid` (N, H', W', 2), as (N, C, H', W'); with one more axis for volumes.

    Points are (x, y) or (x, y, z), each in [-1, 1] from border to border: the borders are the middles of the outermost pixels with
    `align_corners`, else their outer edges. `BilinearSampler` does the same for a grid of other layout, with zeros outside and corners aligned.

    Parameters
    ----------
    mode : {'nearest', 'linear', 'cubic'}
        The cubic one is for two spatial axes.
    padding_mode : {'zeros', 'border', 'reflection'}
        The values outside: 0, those of the border, or those of the mirrored map.

    Raises
    ------
    MXNetError
        If `data` and `grid` do not have four or five axes, the last of `grid` not as many elements as there are spatial axes, or `mode` is
        ``'cubic'`` for volumes.

    Example
    -------
    >>> x = mx.nd.array([[[[0, 1, 2], [3, 4, 5]]]])
    >>> mx.nd.contrib.grid_sample(x, mx.nd.array([[[[-1, -1], [0, 0]]]]), align_corners=True).asnumpy()
    array([[[[0. , 2.5]]]], dtype=float32)
    """
    _check(data.shape, grid.shape, mode)
    return F.grid_sample(data, grid.to(data.dtype), _MODES[mode], padding_mode, align_corners)


def _check(data, grid, mode):
    """Raise an error unless the shapes fit."""
    axes = len(data) - 2
    if axes not in (2, 3) or len(grid) != len(data) or grid[-1] != axes or grid[0] != data[0]:
        raise MXNetError("_contrib_grid_sample: `data` must be (N, C, H, W) or (N, C, D, H, W) and `grid` (N, H', W', 2) or (N, D', H', W', 3), "
                         f"received shapes {tuple(data)} and {tuple(grid)}")
    if axes == 3 and mode == "cubic":
        raise MXNetError(f"_contrib_grid_sample: mode={mode!r} is for two spatial axes, received {axes}; volumes take 'linear' or 'nearest'")


@grid_sample.shape_rule
def _(in_shapes, out_shapes, *, mode, **_):
    data, grid = in_shapes
    out = out_shapes[0]
    if known(data) and known(grid):
        _check(data, grid, mode)
    if data is not None and grid is not None and len(data) == len(grid):
        out = unify(out, (*data[:2], *grid[1:-1]))
    return in_shapes, [out]
