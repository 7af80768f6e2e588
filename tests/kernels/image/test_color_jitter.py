import pytest
import torch

from kernel_limits import used_from
from mxnet import kernels
from mxnet.kernels.image import color_jitter
from mxnet.ops.image import color_jitter as operators
from mxnet.ops.image import transforms

pytestmark = pytest.mark.skipif(kernels.load("image/color_jitter") is None, reason="no C++ compiler")
_FACTOR, _ALPHA = torch.tensor(0.7), torch.tensor([0.3, -2.0, 0.1])
CHANGES = {"brightness": lambda x: operators._brightness(x, torch.tensor(1.3)), "contrast": lambda x: operators._contrast(x, _FACTOR),
           "saturation": lambda x: operators._saturation(x, _FACTOR), "hue": lambda x: operators._hue(x, torch.tensor(0.3)),
           "lighting": lambda x: operators._lighting(x, _ALPHA), "mirror": transforms.flip_left_right}


def image(shape, dtype):
    pixels = (torch.arange(torch.Size(shape).numel()).view(shape) * 37 % 256).to(dtype)
    pixels[0] = 128  # gray
    return pixels + torch.linspace(0, 1, shape[1]).view(-1, 1) if dtype.is_floating_point else pixels


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
@pytest.mark.parametrize("shape", [(9, 31, 3), (1, 1, 3), (70, 5, 3), (12, 7, 1), (3, 64, 3)])
def test_the_kernel_gives_what_torch_does(change, dtype, shape, monkeypatch):
    data = image(shape, dtype)
    used_from(monkeypatch, 0, color_jitter)
    found = CHANGES[change](data)
    used_from(monkeypatch, 1 << 62, color_jitter)
    expected = CHANGES[change](data)
    assert found.dtype is dtype and found.shape == data.shape
    # Sums of many pixels are more exact than torch's.
    torch.testing.assert_close(found, expected, rtol=2e-6 if change == "contrast" else 0, atol=0)


@pytest.mark.parametrize("shifts", [(0.0, 2.5, -2.5), (300.0, -300.0, 255.0), (-256.0, 255.99, -0.0), (1 - 2 ** -24, -1 + 2 ** -24, 1e-30),
                                    (float("nan"), 1.0, 2.0), (float("inf"), float("-inf"), 0.5)])
def test_bytes_of_every_value_are_shifted(shifts, monkeypatch):
    used_from(monkeypatch, 0, color_jitter)
    data, more = torch.arange(256, dtype=torch.uint8).repeat_interleave(3).repeat(2)[:1533].view(7, 73, 3), torch.tensor(shifts)
    expected = (data.float() + more).nan_to_num(0, 1e9, -1e9).clamp(0, 255).to(torch.uint8)
    assert torch.equal(color_jitter.shift(data, 1.0, more), expected)


def test_kernels_run_where_they_can(monkeypatch):
    used_from(monkeypatch, 0, color_jitter)
    data = image((4, 5, 3), torch.uint8)
    assert color_jitter.rotate_hue(data, 0.3) is not None and color_jitter.mirror(data) is not None
    assert color_jitter.sums(data).tolist() == data.sum((0, 1)).tolist()
    assert color_jitter.mirror(data.transpose(0, 1)) is None and color_jitter.rotate_hue(data.double(), 0.3) is None
    assert color_jitter.mirror(data.repeat(1, 20, 1)) is None  # torch is as fast there
