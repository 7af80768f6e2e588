"""Convolutions of float32 on tiles of bfloat16."""
import math

import numpy as np
import pytest
import torch

from kernel_limits import forget_choices, tuned_from, used_from
from mxnet import MXNetError
from mxnet.kernels.conv import convolution, prepacked_conv
from mxnet.kernels.conv.prepacked_conv import PrepackedConv
from mxnet.kernels.gemm import amx
from mxnet.kernels.runtime.strided_output import ANY
from mxnet.ops.nn.training_layers import ConvolutionLayer

LAST = torch.channels_last
needs_tiles = pytest.mark.skipif(not amx.available(), reason="the processor has no tiles of bfloat16, or nothing was compiled for them")


def numbers(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def last(array):
    return array.contiguous(memory_format=LAST)


def shapes(seed, count, most_strides, **most):
    """Random ones: of data, weights and results, with kernel, stride, padding and dilation. `most` bounds N, C, K and pixels; channels are whole
    numbers of `step`."""
    rng, step = np.random.RandomState(seed), most.pop("step", 1)
    while count:
        n, c, k, h, w = (rng.randint(1, most[name]) for name in ("n", "c", "k", "pixels", "pixels"))
        c, k = c * step, k * step
        taps, stride, pad, dilate = (tuple(int(i) for i in rng.randint(low, high, 2)) for low, high in ((1, 5), (1, most_strides), (0, 4), (1, 3)))
        sizes = [(size + 2 * p - d * (t - 1) - 1) // s + 1 for size, p, d, t, s in zip((h, w), pad, dilate, taps, stride)]
        if min(sizes) >= 1:
            count -= 1
            yield (n, c, h, w), (k, c, *taps), (n, k, *sizes), (stride, pad, dilate)


def layer(monkeypatch, weight, bias, *steps, ceiling=ANY):
    """A layer that runs on tiles, whatever its size."""
    used_from(monkeypatch, 0, prepacked_conv)
    forget_choices(monkeypatch, prepacked_conv)
    monkeypatch.setattr(amx, "_FEWEST", 1)
    monkeypatch.setattr(prepacked_conv.autotuner, "fastest", lambda key, runs: [run() for run in runs.values()] and amx.NAME)
    return PrepackedConv(weight, bias, *steps, 1, ceiling)


@needs_tiles
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_random_shapes_as_in_double_precision(threads, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    for data, weights, result, steps in shapes(threads, 60, 4, n=5, c=180, k=140, pixels=24):
        x, weight, bias, residual = (numbers(*shape, seed=i) for i, shape in enumerate((data, weights, weights[:1], result)))
        run = layer(monkeypatch, weight, bias, *steps)
        expected = torch.conv2d(x.double(), weight.double(), bias.double(), *steps)
        for extra in (None, residual):
            want = expected if extra is None else expected + extra
            torch.testing.assert_close(run(last(x), extra).double(), want, rtol=1e-5, atol=1e-5 * max(1.0, float(want.abs().max())))
        assert run.chosen == {"forward": amx.NAME}


@needs_tiles
@pytest.mark.parametrize("c, k, taps", [(32, 64, 1), (256, 256, 1), (1024, 64, 1), (64, 64, 3), (512, 128, 3)])
@pytest.mark.parametrize("positive", [False, True])
def test_results_are_closer_to_those_of_double_precision_than_the_direct_kernels(c, k, taps, positive, monkeypatch):
    x, weight = (last(t.abs() if positive else t) for t in (numbers(2, c, 14, 14, seed=0), numbers(k, c, taps, taps, seed=1)))
    steps = (1, 1), (taps // 2, taps // 2), (1, 1)
    expected = torch.conv2d(x.double(), weight.double(), None, *steps)
    direct, = convolution.forward((x, weight, None), sum(steps, ()))
    found = layer(monkeypatch, weight, None, *steps)(x)
    errors = [float((t - expected).pow(2).mean().sqrt() / expected.pow(2).mean().sqrt()) for t in (found, direct)]
    assert errors[0] < errors[1]


@needs_tiles
def test_numbers_of_all_sizes(monkeypatch):
    x, weight = last(numbers(1, 32, 1, 8, seed=0)), last(torch.eye(32).view(32, 32, 1, 1))
    for scale in (1e-25, 1e-10, 1e10, 1e38):
        found = layer(monkeypatch, weight, None, (1, 1), (0, 0), (1, 1))(x.clamp(-3, 3) * scale)
        torch.testing.assert_close(found, x.clamp(-3, 3) * scale, rtol=0, atol=0)
    x[0, 3, 0, 2] = math.inf
    x[0, 5, 0, 4] = math.nan
    found = layer(monkeypatch, weight, None, (1, 1), (0, 0), (1, 1))(x)
    assert found.isnan().all(1).view(-1).tolist() == [False, False, True, False, True, False, False, False]


@needs_tiles
@pytest.mark.parametrize("c, k, taps, size", [(64, 96, 1, 7), (160, 40, 1, 14), (48, 320, 3, 9)])
def test_an_images_results_do_not_depend_on_those_beside_it(c, k, taps, size, monkeypatch):
    """Blocks of rows have other heights then, and other inputs are split beside their products."""
    x, weight, bias = numbers(5, c, size, size, seed=0), numbers(k, c, taps, taps, seed=1), numbers(k, seed=2)
    run = layer(monkeypatch, weight, bias, (1, 1), (taps // 2, taps // 2), (1, 1))
    torch.testing.assert_close(run(last(x)), torch.cat([run(last(image[None])) for image in x]), rtol=0, atol=0)


@needs_tiles
@pytest.mark.parametrize("ceiling", [math.inf, 0.5])
def test_part_of_a_concatenation_rectified(ceiling, monkeypatch):
    x, weight = last(numbers(2, 64, 5, 5, seed=0)), numbers(48, 64, 1, 1, seed=1)
    into = last(torch.full((2, 100, 5, 5), 7.0))
    layer(monkeypatch, weight, None, (1, 1), (0, 0), (1, 1), ceiling=ceiling)(x, into=into, first=20)
    torch.testing.assert_close(into[:, 20:68].double(), torch.conv2d(x.double(), weight.double()).clamp(0, ceiling), rtol=1e-5, atol=1e-4)
    assert into[:, :20].eq(7).all() and into[:, 68:].eq(7).all()


@needs_tiles
@pytest.mark.parametrize("change, message", [("channels first", "must be T"), ("other weights", "`packed` must be"),
                                             ("a short bias", "`bias` must be"), ("no room", "first + k <= total does not hold")])
def test_what_does_not_fit_is_refused(change, message):
    x, packed, into = last(numbers(1, 64, 4, 4, seed=0)), amx.packed(last(numbers(32, 64, 1, 1, seed=1))), last(torch.empty(1, 32, 4, 4))
    bias = torch.empty(31) if change == "a short bias" else None
    if change == "channels first":
        x = x.contiguous()
    elif change == "other weights":
        packed = packed[:-1]
    with pytest.raises(MXNetError, match=message.replace("+", r"\+")):
        amx.forward((x, packed, bias, None, into), (32, 1, 1, 1, 1, 0, 0, 1, 1, int(change == "no room")), (ANY,))


def test_half_tiles_of_single_precision_suit_where_there_are_tiles(monkeypatch):
    monkeypatch.setattr(amx, "available", lambda: True)
    assert amx.suits(torch.empty(16, 24, 3, 3))
    assert not amx.suits(torch.empty(16, 15, 3, 3)) and not amx.suits(torch.empty(8, 32, 3, 3)) and not amx.suits(torch.empty(16, 32, 1, 1).double())
    monkeypatch.setattr(amx, "available", lambda: False)
    assert not amx.suits(torch.empty(16, 32, 3, 3))


@pytest.fixture
def trained_by(monkeypatch):
    """Lets one win every race of convolutions in training in which it takes part, with so many threads."""
    def choose(name, threads):
        monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
        used_from(monkeypatch, 0, convolution)
        tuned_from(monkeypatch, 0, convolution)
        monkeypatch.setattr(convolution.autotuner, "fastest", lambda key, runs: name if name in runs else "direct")
    return choose


@needs_tiles
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_random_layers_in_training_as_in_double_precision(threads, trained_by):
    trained_by(amx.NAME, threads)
    for data, weights, result, (stride, pad, dilate) in shapes(threads, 60, 3, n=6, c=12, k=12, pixels=30, step=16):
        arrays, dout = [numbers(*shape, seed=i) for i, shape in enumerate((data, weights, weights[:1]))], numbers(*result, seed=3)
        single, double = ([(last(a) if a.dim() == 4 else a).to(dtype, copy=True).requires_grad_() for a in arrays]
                          for dtype in (torch.float32, torch.float64))
        run = ConvolutionLayer()
        out = run(*single, kernel=weights[2:], stride=stride, pad=pad, dilate=dilate, num_filter=weights[0])
        want = torch.conv2d(*double, stride, pad, dilate)
        out.backward(last(dout))
        want.backward(dout.double())
        for found, expected in zip((out, *[a.grad for a in single]), (want, *[a.grad for a in double])):
            torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=2e-5 * max(1.0, float(expected.detach().abs().max())))
        back = stride == (1, 1) and all(d * (t - 1) >= p for t, p, d in zip(weights[2:], pad, dilate))
        assert run.chosen == {"forward": amx.NAME, "gradient of data": amx.NAME if back else "direct", "gradient of weights": amx.NAME}


@needs_tiles
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_gradients_of_weights_of_bfloat16_are_summed_up_in_single_precision(threads, trained_by):
    trained_by(amx.BRIEF, threads)
    for data, weights, result, (stride, pad, dilate) in shapes(threads, 40, 3, n=6, c=12, k=40, pixels=30, step=16):
        x, dout = last(numbers(*data, seed=0)).bfloat16(), last(numbers(*result, seed=3)).bfloat16()
        weight = last(numbers(*weights, seed=1)).requires_grad_()
        run = ConvolutionLayer()
        run(x, weight, kernel=weights[2:], stride=stride, pad=pad, dilate=dilate, num_filter=weights[0], no_bias=True).backward(dout)
        expected = torch.nn.grad.conv2d_weight(x.double(), weights, dout.double(), stride, pad, dilate)
        torch.testing.assert_close(weight.grad.double(), expected, rtol=1e-5, atol=2e-5 * max(1.0, float(expected.abs().max())))
        assert run.chosen["gradient of weights"] == amx.BRIEF
