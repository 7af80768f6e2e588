import hashlib

import numpy as np
import pytest
import torch

from mxnet import MXNetError
from mxnet.kernels.random import fallback, generators

needs_compiler = pytest.mark.skipif(not generators.available(), reason="no C++ compiler")
BANKS = [pytest.param(generators.Bank, marks=needs_compiler), fallback.PlainBank]


def seeded(kind, seed=1234 * 127):
    bank = kind()
    bank.seed(seed, seed)
    return bank


@pytest.mark.parametrize("kind", BANKS)
def test_the_words_are_those_of_a_mersenne_twister(kind):
    bank = seeded(kind, 5489)
    words = bank.words(10000)
    assert words[-1] == 4123659995  # the C++ standard demands this number
    assert words[:3].tolist() == [3499211612, 581869302, 3890346734]
    # Each state has its own seed, and goes on where it stopped.
    expected = np.random.MT19937()
    expected._legacy_seeding(5489 + 1000)
    raw = expected.random_raw(2000)
    doubles = (raw[::2] + raw[1::2] * 2.0 ** 32) / 2.0 ** 64
    np.testing.assert_array_equal(np.concatenate([bank.state_numbers(n, 1000).numpy() for n in (7, 303, 690)]), doubles)


@pytest.mark.parametrize("kind", BANKS)
def test_numbers_below_one(kind):
    # A word that rounds up to 2**32: MXNet's number is 1 there.
    bank = seeded(kind, 10694)
    assert bank.numbers(746)[-1] == 1 - 2 ** -24
    assert bank.numbers(0).shape == bank.words(0).shape == bank.numbers(0, normal=True).shape == (0,)


def everything(bank):
    yield bank.draw("uniform", 100003, torch.float32, -0.3, 2.7)
    for count in (0, 1, 5, 64, 65, 1000):
        for dtype in (torch.float32, torch.float64):
            yield bank.draw("uniform", count, dtype, -0.3, 2.7)
            yield bank.draw("normal", count, dtype, 1.3, 0.7)
            yield bank.draw("exponential", count, dtype, 0.4)
            yield bank.numbers(count, dtype)
            yield bank.numbers(count, dtype, normal=True)
            for exact in (torch.float32, torch.float64):
                yield bank.draw("normal", 3 * count, dtype, torch.tensor([1.3, 0.1, -5], dtype=exact), torch.tensor([0.7, 1.3, 2], dtype=exact))
                yield bank.draw("exponential", 3 * count, dtype, torch.tensor([1.3, 0.1, 5], dtype=exact))
        yield bank.integers(count, torch.int32, -5, 70)
        yield bank.integers(count, torch.int64, 7, 2 ** 40)
        yield bank.integers(count, torch.int64, 7, 8)
        for dtype in (torch.uint8, torch.float32, torch.float64):
            yield bank.bernoulli(count, dtype, 0.7, 1.0 if dtype is torch.uint8 else 1.4)
            yield bank.bernoulli(count, dtype, 0.5, wide=True, inclusive=False)
        yield bank.order(count, backwards=False)
        yield bank.order(count, backwards=True)
        yield bank.reservoir(count, count // 3)
        yield bank.log(bank.numbers(count) + 0.1)
        yield bank.pow(bank.numbers(count), 0.4)
    yield bank.draw("normal", 70000, torch.float32, 0.0, 1.0)
    yield torch.from_numpy(bank.words(3).astype(np.int64))


@needs_compiler
def test_numpy_draws_what_the_kernel_does():
    for number, (a, b) in enumerate(zip(everything(seeded(generators.Bank)), everything(seeded(fallback.PlainBank)), strict=True)):
        assert a.dtype is b.dtype and torch.equal(a, b), number


@needs_compiler
def test_threads_share_the_work_and_not_the_result(monkeypatch):
    for distribution in ("uniform", "normal", "gamma"):
        expected = seeded(generators.Bank).draw(distribution, 70001, torch.float32, 2.0, 3.0)
        monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
        assert torch.equal(seeded(generators.Bank).draw(distribution, 70001, torch.float32, 2.0, 3.0), expected)
        monkeypatch.undo()


# Of MXNet 1.9.1: mx.random.seed(1234), then mx.nd.random.<distribution>(..., shape=100003); float32, float64.
@needs_compiler
@pytest.mark.parametrize("distribution, a, b, digest", [
    ("uniform", -0.3, 2.7, "610d3c5c 88c54bf9"), ("normal", 1.3, 0.7, "6fbee300 ffd84551"),
    ("exponential", 0.4, 0.0, "3c734f3e 6ae62b40"), ("gamma", 0.6, 1.7, "f30b7793 56baa9e0"),
    ("gamma", 4.6, 1.7, "8e55ace1 75aa4acd"), ("poisson", 3.3, 0.0, "b3029ac9 019c814c"),
    ("poisson", 30.0, 0.0, "4e27767b d854c7aa"), ("negative_binomial", 3.0, 0.4, "5e93e902 de1aa591"),
    ("generalized_negative_binomial", 2.0, 0.3, "0b3e0b42 0fe29023")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_mxnets_numbers(distribution, a, b, digest, dtype):
    found = seeded(generators.Bank).draw(distribution, 100003, dtype, a, b).numpy()
    assert hashlib.md5(found.tobytes()).hexdigest()[:8] == digest.split()[dtype is torch.float64]


@needs_compiler
def test_a_state_out_of_range():
    with pytest.raises(MXNetError, match="state < 1024 does not hold"):
        generators.Bank().state_numbers(3, 1024)


def test_a_plain_bank_leaves_costly_distributions_to_torch():
    bank = fallback.PlainBank()
    assert bank.draws("normal") and not bank.draws("gamma")
