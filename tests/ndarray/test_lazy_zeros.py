import os
import re

import pytest
import torch

from mxnet.ndarray import lazy_zeros


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_large_zeros_take_memory_where_they_are_written():
    before = resident()
    large = lazy_zeros.zeros((1 << 10, 1 << 16), torch.float32, torch.device("cpu"), by_rows=True)
    large[7, :10] = 3
    assert resident() - before < 1 << 24 and large.shape == (1 << 10, 1 << 16) and large.is_contiguous() and not large._is_view()
    assert large.untyped_storage().nbytes() == large.nbytes == 1 << 28
    assert large[7, :12].tolist() == [3] * 10 + [0, 0] and large[8].sum() == 0


def test_small_ones_are_torchs():
    assert torch.equal(lazy_zeros.zeros((2, 3), torch.float16, torch.device("cpu")), torch.zeros(2, 3, dtype=torch.float16))


@pytest.mark.skipif(not os.path.exists("/sys/kernel/mm/transparent_hugepage"), reason="the system has no transparent huge pages")
@pytest.mark.parametrize("by_rows, flag", [(False, "hg"), (True, "nh")])
def test_pages_are_huge_unless_single_rows_are_written(by_rows, flag):
    made = lazy_zeros.zeros((1 << 10, 1 << 16), torch.float32, torch.device("cpu"), by_rows)
    flags, place = None, made.data_ptr()
    with open("/proc/self/smaps") as file:
        for line in file:
            area = re.match("([0-9a-f]+)-([0-9a-f]+) ", line)
            if area:
                inside = int(area[1], 16) <= place < int(area[2], 16)
            elif inside and line.startswith("VmFlags:"):
                flags = line.split()[1:]
    assert {"hg", "nh"} & set(flags) == {flag}
