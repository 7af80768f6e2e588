"""Products of large matrices: who computes them, and what comes out."""
import pytest
import torch

import mxnet as mx
from mxnet import autograd, kernels
from mxnet.kernels.gemm import amx, matmul, selector

needs_compiler = pytest.mark.skipif(kernels.load("gemm/skinny") is None, reason="no C++ compiler")


def numbers(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


needs_tiles = pytest.mark.skipif(not amx.available(), reason="the processor has no tiles of bfloat16, or nothing was compiled for them")


@pytest.fixture
def wins(monkeypatch):
    """Lets a rival of the library win every race of products, which are all large; gives the names of the races."""
    def choose(name):
        held = []
        for setting, value in (("_LARGE", 0), ("_HEAVY", 0), ("_found", {})):
            monkeypatch.setattr(selector, setting, value)
        monkeypatch.setattr(selector.autotuner, "fastest", lambda key, runs: held.append(key) or (name if name in runs else selector.LIBRARY))
        return held
    return choose


def unexpected():
    pytest.fail("the library is not asked")


def compare(n, c, k, backward, outer):
    """The products of a layer without the library beside those in double precision: `backward` that of gradients, `outer` that for weights."""
    rows, weight, bias, dout = numbers(n, c, seed=0), numbers(k, c, seed=1), numbers(k, seed=2), numbers(n, k, seed=3)

    def close(found, expected):
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5 * max(1.0, float(expected.abs().max())))
    close(selector.product(rows, weight.t(), bias, None, unexpected), rows.double() @ weight.double().t() + bias.double())
    if backward:
        close(selector.product(rows, weight.t(), None, None, unexpected), rows.double() @ weight.double().t())
        close(selector.product(dout, weight, None, None, unexpected), dout.double() @ weight.double())
    if outer:
        memory = torch.full((k, c), float("nan"))
        assert selector.product(dout.t(), rows, None, memory, unexpected) is memory
        close(memory, dout.double().t() @ rows.double())


@needs_compiler
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("c, k", [(16, 1), (32, 5), (48, 33), (80, 64), (208, 7), (1040, 19)])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 7, 8, 12, 13, 17, 31, 32])
def test_few_rows_as_in_double_precision(n, c, k, threads, wins, monkeypatch):
    wins(selector.FEW_ROWS)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    # One row is in order either way, and a sum over many rows of few products is no gradient of weights of few rows.
    compare(n, c, k, backward=k > 1, outer=k > selector.ROWS)


@needs_compiler
def test_the_gradient_of_a_matrix_that_goes_past_the_caches_and_of_one_that_lies_askew(wins):
    wins(selector.FEW_ROWS)
    dout, rows = numbers(3, 4099, seed=0), numbers(3, 4096, seed=1)
    expected = dout.t() @ rows
    for offset in (0, 5):
        memory = torch.full((offset + 4099 * 4096,), float("nan"))[offset:].view(4099, 4096)
        torch.testing.assert_close(selector.product(dout.t(), rows, None, memory, unexpected), expected, rtol=1e-6, atol=1e-6)


@needs_compiler
def test_a_race_for_each_direction_of_a_layer_in_training(wins, monkeypatch):
    held = wins(selector.FEW_ROWS)
    monkeypatch.setattr(matmul, "_suits", lambda data, weight, bias: True)
    x, w, b = (mx.nd.array(numbers(*shape, seed=i).numpy()) for i, shape in enumerate(((2, 64), (2048, 64), (2048,))))
    for array in (x, w, b):
        array.attach_grad()
    with autograd.record():
        y = mx.nd.FullyConnected(x, w, b, num_hidden=2048)
    y.backward(mx.nd.ones_like(y))
    told = [key.split(", ")[0] for key in held]
    assert told == ["forward", "gradient of data", "gradient of weights"]
    assert held[0].startswith("forward, 2x64x2048, ")
    expected = x.asnumpy() @ w.asnumpy().T + b.asnumpy()
    mx.test_utils.assert_almost_equal(y.asnumpy(), expected, rtol=1e-5, atol=1e-5)
    mx.test_utils.assert_almost_equal(x.grad.asnumpy(), [w.asnumpy().sum(0)] * 2, rtol=1e-4, atol=1e-4)
    mx.test_utils.assert_almost_equal(w.grad.asnumpy(), [x.asnumpy().sum(0)] * 2048, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("what", ["double precision", "odd columns", "rows apart", "many rows"])
def test_other_products_are_left_to_the_library(what, wins, monkeypatch):
    monkeypatch.setattr(amx, "available", lambda: False)
    held = wins(selector.FEW_ROWS)
    rows, weight = numbers(4, 64, seed=0), numbers(48, 64, seed=1)
    if what == "double precision":
        rows, weight = rows.double(), weight.double()
    elif what == "odd columns":
        rows, weight = numbers(4, 63, seed=0), numbers(48, 63, seed=1)
    elif what == "rows apart":
        rows = numbers(4, 128, seed=0)[:, ::2]
    elif what == "many rows":
        rows = numbers(40, 64, seed=0)
    assert selector.product(rows, weight.t(), None, None, lambda: "library") == "library"
    assert held == []


@needs_tiles
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("n, c, k", [(1, 1, 1), (40, 17, 33), (100, 64, 16), (33, 160, 130), (300, 96, 208), (17, 1000, 48)])
def test_tiles_as_in_double_precision(n, c, k, threads, wins, monkeypatch):
    wins(amx.NAME)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    compare(n, c, k, backward=True, outer=not c % 16 and not k % 16)


@needs_tiles
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("n, c, k", [(1, 1, 1), (40, 17, 33), (100, 64, 16), (256, 96, 208), (33, 1000, 130), (17, 48, 3300)])
def test_tiles_in_one_pass_as_in_double_precision(n, c, k, threads, wins, monkeypatch):
    wins(amx.ONE_PASS)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    compare(n, c, k, backward=True, outer=not c % 16)


@needs_tiles
def test_long_sums_of_tiles_in_one_pass_are_closer_to_those_of_double_precision_than_the_librarys(wins):
    wins(amx.ONE_PASS)
    dout, weight = numbers(32, 60000, seed=0), numbers(60000, 32, seed=1)
    expected = dout.double() @ weight.double()
    errors = [float((found - expected).pow(2).mean()) for found in (selector.product(dout, weight, None, None, unexpected), dout @ weight)]
    assert errors[0] < errors[1]


@needs_tiles
@pytest.mark.parametrize("shape", [(257, 64, 64), (128, 2048, 64)])
def test_rows_that_leave_the_cache_no_room_are_not_multiplied_in_one_pass(shape):
    n, c, k = shape
    arrays = torch.empty(n, c), torch.empty(k, c), None
    assert not amx.fits(amx.ONE_PASS, "forward", arrays, torch.empty(n, k)) and amx.fits(amx.NAME, "forward", arrays, torch.empty(n, k))


@needs_tiles
@pytest.mark.parametrize("name", [amx.NAME, amx.ONE_PASS])
def test_infinite_numbers_are_left_to_the_library(name, wins):
    wins(name)
    rows, weight = numbers(40, 64, seed=0), numbers(48, 64, seed=1)
    rows[3, 5] = float("inf")
    for a, b in ((rows, weight.t()), (rows, weight.t().contiguous()), (weight.t(), weight)):
        if b is weight:
            weight = weight.clone()
            weight[2, 2] = float("-inf")
            a, b = weight.t(), weight
        found = selector.product(a, b, None, None, lambda a=a, b=b: torch.mm(a, b))
        expected = torch.mm(a, b)
        assert expected.isinf().any()
        torch.testing.assert_close(found, expected, equal_nan=True)


def test_what_is_small_or_has_many_rows_does_not_suit(monkeypatch):
    monkeypatch.setattr(amx, "available", lambda: False)
    like = torch.empty
    assert selector.suits(like(32, 1024), like(1024, 1024)) and selector.suits(like(1024, 32), like(32, 1024))
    assert not selector.suits(like(33, 1024), like(1024, 1024)) and not selector.suits(like(1024, 33), like(33, 1024))
    assert not selector.suits(like(32, 1024), like(1024, 1023)) and not selector.suits(like(1024, 32), like(32, 1023))
    monkeypatch.setattr(amx, "available", lambda: True)
    assert selector.suits(like(64, 1024), like(1024, 1024)) and not selector.suits(like(63, 1024), like(1024, 1024))
