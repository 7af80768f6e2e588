import torch

from mxnet.ndarray import lazy_zeros


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_large_zeros_take_memory_where_they_are_written():
    before = resident()
    large = lazy_zeros.zeros((1 << 10, 1 << 16), torch.float32, torch.device("cpu"))
    large[7, :10] = 3
    assert resident() - before < 1 << 24 and large.shape == (1 << 10, 1 << 16) and large.is_contiguous() and not large._is_view()
    assert large.untyped_storage().nbytes() == large.nbytes == 1 << 28
    assert large[7, :12].tolist() == [3] * 10 + [0, 0] and large[8].sum() == 0


def test_small_ones_are_torchs():
    assert torch.equal(lazy_zeros.zeros((2, 3), torch.float16, torch.device("cpu")), torch.zeros(2, 3, dtype=torch.float16))
