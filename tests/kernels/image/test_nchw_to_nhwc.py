"""Images get their channels last."""
import pytest
import torch

from mxnet import kernels
from mxnet.kernels.image.nchw_to_nhwc import available, interleave

pytestmark = pytest.mark.skipif(kernels.load("image/nchw_to_nhwc") is None, reason="no C++ compiler")


@pytest.mark.parametrize("channels", [2, 3, 4])
@pytest.mark.parametrize("size", [(1, 1), (5, 7), (16, 33)], ids=str)
def test_channels_last(channels, size):
    assert available(channels)
    images = torch.arange(3.0 * channels * size[0] * size[1]).view(3, channels, *size)
    for given in (images, images.contiguous(memory_format=torch.channels_last)):
        out = torch.full((3, *size, channels), -1.0)
        interleave(given, out)
        assert torch.equal(out, images.permute(0, 2, 3, 1))


def test_others_are_not_known():
    assert not available(1) and not available(5)
