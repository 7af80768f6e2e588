import functools
import math

import numpy as np
import pytest
import torch

from mxnet.ops.numpy import unsigned

LARGE = [0, 1, 2, 3, 7, 2**32 - 1, 2**62 + 5, 2**63 - 1, 2**63, 2**63 + 11, 2**64 - 2, 2**64 - 1]
SIZES = {torch.uint16: 16, torch.uint32: 32, torch.uint64: 64}


def numbers(dtype):
    return sorted({n % 2**SIZES[dtype] for n in LARGE})


def pairs(dtype):
    values = numbers(dtype)
    a, b = zip(*[(x, y) for x in values for y in values])
    return torch.tensor(a, dtype=dtype), torch.tensor(b, dtype=dtype), list(zip(a, b))


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("function, exact", [
    (functools.partial(unsigned.by_bits, torch.add), lambda x, y: x + y), (functools.partial(unsigned.by_bits, torch.sub), lambda x, y: x - y),
    (functools.partial(unsigned.by_bits, torch.mul), lambda x, y: x * y), (unsigned.floor_divide, lambda x, y: x // y if y else 0),
    (unsigned.remainder, lambda x, y: x % y if y else 0), (unsigned.gcd, math.gcd), (functools.partial(unsigned.by_order, torch.maximum), max)])
def test_pairs_of_numbers_are_exact(dtype, function, exact):
    a, b, both = pairs(dtype)
    out = function(a, b)
    assert out.dtype is dtype and out.tolist() == [exact(x, y) % 2**SIZES[dtype] for x, y in both]


@pytest.mark.parametrize("dtype", SIZES)
def test_powers_are_exact_modulo_the_range(dtype):
    a, b, both = pairs(dtype)
    assert unsigned.power(a, b).tolist() == [pow(x, y, 2**SIZES[dtype]) for x, y in both]


@pytest.mark.parametrize("dtype", SIZES)
def test_shifts_fill_with_zeros(dtype):
    a = torch.tensor(numbers(dtype), dtype=dtype)
    for n in (0, 1, 5, SIZES[dtype] - 1):
        assert unsigned.right_shift(a, torch.tensor(n, dtype=dtype)).tolist() == [x >> n for x in a.tolist()]


@pytest.mark.parametrize("dtype", SIZES)
def test_order_is_that_of_unsigned_numbers(dtype):
    values = numbers(dtype)
    shuffled = torch.tensor(np.random.RandomState(3).permutation(len(values)))
    mixed = torch.tensor([values[i] for i in shuffled], dtype=dtype)
    assert unsigned.by_order(lambda t: torch.sort(t)[0], mixed).tolist() == values
    assert unsigned.by_order(torch.argmax, mixed, indices=True).item() == shuffled.tolist().index(len(values) - 1)
    assert unsigned.by_order(torch.lt, mixed[:1], mixed, indices=True).tolist() == [mixed[0].item() < v for v in mixed.tolist()]


def test_other_types_go_straight_to_the_function():
    a = torch.tensor([1.5])
    assert unsigned.by_bits(torch.add, a, a).tolist() == [3.0] and unsigned.by_order(torch.maximum, a, -a).tolist() == [1.5]
