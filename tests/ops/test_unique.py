"""Distinct integers, as torch finds them, and where NumPy's sort is not asked."""
import pytest
import torch

from mxnet.ops.unique import unique, unique_inverse

CASES = [[], [5], [3, 3, 3], [9, 0, 9, 4, 0, 7], [2 ** 62, 1, 2 ** 62, 0], [-3, 8, -3, -9], list(range(40, 0, -1))]


@pytest.mark.parametrize("values", CASES)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_they_are_those_that_torch_finds(values, dtype):
    values = torch.tensor([v if dtype is torch.int64 else v % 1000 for v in values], dtype=dtype)
    expected, positions = torch.unique(values, return_inverse=True)
    found, inverse = unique_inverse(values)
    assert found.tolist() == expected.tolist() == unique(values).tolist() and inverse.tolist() == positions.tolist()
    assert found.dtype is unique(values).dtype is dtype and inverse.dtype is torch.int64


def test_axes_do_not_matter():
    assert unique(torch.tensor([[4, 1], [1, 3]])).tolist() == [1, 3, 4] and unique(torch.tensor(6)).tolist() == [6]


def test_what_was_given_stays_as_it_is():
    values = torch.tensor([7, 2, 7])
    unique(values), unique_inverse(values)
    assert values.tolist() == [7, 2, 7]
