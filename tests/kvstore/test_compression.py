"""The bits of compressed gradients, in MXNet's layout."""
import pytest
import torch

from mxnet import MXNetError
from mxnet.kvstore.compression import TwoBitCompression, make_compression


def test_four_numbers_in_a_byte_first_one_highest():
    compression = TwoBitCompression(.5)
    residual = torch.zeros(5)
    packed = compression.compress(torch.tensor([.6, -.6, 0., .5, -.5]), residual)
    assert packed.tolist() == [0b11100011, 0b10000000, 0, 0]  # 16 numbers make a block
    torch.testing.assert_close(residual, torch.tensor([.1, -.1, 0., 0., 0.]))
    assert compression.decompress(packed, torch.Size([5])).tolist() == [.5, -.5, 0, .5, -.5]


def test_shapes_and_types_stay():
    compression = TwoBitCompression(1.)
    gradient = torch.tensor([[2., -3., .2]] * 7, dtype=torch.float64)
    packed = compression.compress(gradient, torch.zeros_like(gradient))
    assert packed.dtype == torch.uint8 and packed.numel() == 8
    received = compression.decompress(packed, gradient.shape, gradient.dtype)
    assert received.dtype == torch.float64 and received.tolist() == [[1., -1., 0.]] * 7


def test_one_bit_is_one_or_minus_one():
    compression = make_compression({"type": "1bit", "threshold": 0.25})
    residual = torch.zeros(9)
    gradient = torch.tensor([.5, .25, -.5, .75, 0., 0., 0., 1., 2.])
    packed = compression.compress(gradient, residual)
    assert packed.tolist() == [0b10010001, 0b10000000, 0, 0]  # 32 numbers make a block
    assert residual.tolist() == [-.5, 1.25, .5, -.25, 1., 1., 1., 0., 1.]
    assert compression.decompress(packed, torch.Size([9])).tolist() == [1, -1, -1, 1, -1, -1, -1, 1, 1]
    assert compression.compress(torch.zeros(9), residual).tolist() == [0b01101110, 0b10000000, 0, 0]  # what was left over


@pytest.mark.parametrize("kind, dtype, value", [("fp16", torch.float16, 0.0999755859375), ("bf16", torch.bfloat16, 0.10009765625)])
def test_half_as_many_bits(kind, dtype, value):
    compression = make_compression({"type": kind})
    packed = compression.compress(torch.tensor([[0.1]]), None)
    assert packed.dtype == dtype and compression.decompress(packed, torch.Size([1, 1])).tolist() == [[value]]


def test_what_a_type_has_not():
    with pytest.raises(MXNetError, match="gradient compression of type 'fp16' has no threshold"):
        make_compression({"type": "fp16", "threshold": 1})
