import pytest
import torch

from mxnet import MXNetError
from mxnet.ops import random_state
from mxnet.ops.image import common


def test_images_have_three_axes():
    common.require_image("op", torch.zeros(4, 5, 2))
    with pytest.raises(MXNetError, match=r"op: an image \(H, W, C\) expected, received shape \(2, 4, 5, 3\)"):
        common.require_image("op", torch.zeros(2, 4, 5, 3))


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_colours_have_one_channel_or_three(channels):
    image = torch.zeros(4, 5, channels)
    if channels in (1, 3):
        common.require_color("op", image)
    else:
        with pytest.raises(MXNetError, match=rf"op: .* 1 or 3 channels, received \(4, 5, {channels}\)"):
            common.require_color("op", image)


def test_numbers_come_from_the_generator_of_the_device():
    random_state.seed(3)
    drawn = [common.uniform(torch.zeros(1), 2, 5) for _ in range(50)]
    assert all(t.dim() == 0 and 2 <= t < 5 for t in drawn) and len(set(map(float, drawn))) == 50
    random_state.seed(3)
    assert float(common.uniform(torch.zeros(1), 2, 5)) == float(drawn[0])
