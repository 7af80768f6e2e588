"""Images get their channels last."""
import pytest
import torch

import mxnet as mx
from mxnet import kernels
from mxnet.kernels.image.nchw_to_nhwc import Interleaver, available

pytestmark = pytest.mark.skipif(kernels.load("image/nchw_to_nhwc") is None, reason="no C++ compiler")


@pytest.mark.parametrize("channels", [2, 3, 4])
@pytest.mark.parametrize("size", [(1, 1), (5, 7), (16, 33)], ids=str)
def test_channels_last(channels, size):
    assert available(channels)
    images = torch.arange(3.0 * channels * size[0] * size[1]).view(3, channels, *size)
    out = torch.full((3, *size, channels), -1.0)
    interleave = Interleaver((3, channels, *size), out)
    for batch in (images, images.contiguous(memory_format=torch.channels_last) * 2, images - 1):
        interleave(batch)
        assert torch.equal(out, batch.permute(0, 2, 3, 1))


@pytest.mark.parametrize("images", [torch.ones(1, 3, 4, 6), torch.ones(2, 3, 4, 5), torch.ones(1, 3, 4, 5, dtype=torch.float64)])
def test_other_images_are_refused(images):
    out = torch.zeros(1, 4, 5, 3)
    interleave = Interleaver((1, 3, 4, 5), out)
    with pytest.raises(mx.MXNetError, match=r"interleave: expected float32 images of shape \(1, 3, 4, 5\) on a CPU, received torch.float"):
        interleave(images)
    assert not out.any()


@pytest.mark.parametrize(("out", "error"), [
    (torch.zeros(1, 4, 5, 5), "2 to 4 channels"), (torch.zeros(()), "2 to 4 channels"), (torch.zeros(1, 5, 4, 3), "`out` must be"),
    (torch.zeros(1, 4, 5, 3, dtype=torch.float64), "`out` must be"), (torch.zeros(1, 3, 4, 5).permute(0, 2, 3, 1), "`out` must be")])
def test_other_results_are_refused(out, error):
    with pytest.raises(mx.MXNetError, match=error):
        Interleaver((1, 3, 4, 5), out)


def test_others_are_not_known():
    assert not available(1) and not available(5)


def test_the_default_type_has_no_influence():
    torch.set_default_dtype(torch.float64)
    try:
        out = torch.zeros(1, 2, 2, 3, dtype=torch.float32)
        Interleaver((1, 3, 2, 2), out)(torch.arange(12.0, dtype=torch.float32).view(1, 3, 2, 2))
    finally:
        torch.set_default_dtype(torch.float32)
    assert out.flatten().tolist() == [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]
