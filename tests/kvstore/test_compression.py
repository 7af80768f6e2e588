"""The bits of compressed gradients, in MXNet's layout."""
import torch

from mxnet.kvstore.compression import TwoBitCompression


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
