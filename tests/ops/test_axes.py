"""normalize_axis and require_ndim say which axes there are."""
import pytest
import torch

from mxnet.base import MXNetError
from mxnet.ops.axes import normalize_axis, require_ndim


def test_negative_axes_count_from_the_end():
    assert [normalize_axis("op", a, 3) for a in (-3, -1, 0, 2)] == [0, 2, 0, 2]


@pytest.mark.parametrize("axis", [-4, 3])
def test_axis_out_of_range(axis):
    with pytest.raises(MXNetError, match=rf"flip: `axis` must be in \[-3, 2\] for 3-D data, received {axis}"):
        normalize_axis("flip", axis, 3)


def test_require_ndim():
    require_ndim("Pad", torch.zeros(1, 1, 2, 2), 4, 5)
    with pytest.raises(MXNetError, match=r"Pad: `data` must be 4-D or 5-D, received shape \(2, 3\)"):
        require_ndim("Pad", torch.zeros(2, 3), 4, 5)
