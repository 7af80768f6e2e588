"""Convolutions with fixed weights: whoever computes them, the results are torch's."""
import math
import threading

import numpy as np
import pytest
import torch

import mxnet as mx
from kernel_limits import forget_choices, used_from
from mxnet import kernels
from mxnet.kernels.conv import convolution, prepacked_conv
from mxnet.kernels.conv.prepacked_conv import PrepackedConv
from mxnet.kernels.runtime.strided_output import ANY

LAST = torch.channels_last


def numbers(*shape, seed):
    return torch.from_numpy(np.random.RandomState(seed).normal(size=shape).astype("float32"))


@pytest.fixture
def chooses(monkeypatch):
    """Lets kernels compute small arrays, too, and every race be won by one."""
    if kernels.load("conv/prepacked_conv") is None or kernels.load("conv/winograd") is None:
        pytest.skip("no C++ compiler")

    def choose(name):
        used_from(monkeypatch, 0, prepacked_conv, convolution)
        forget_choices(monkeypatch, prepacked_conv)
        monkeypatch.setattr(prepacked_conv.autotuner, "fastest", lambda key, runs: [run() for run in runs.values()]
                            and (name if name in runs else "direct"))
    return choose


def expected(data, weight, bias, stride, pad, dilate, groups, residual, relu):
    wide = [None if t is None else t.double() for t in (data, weight, bias)]
    out = torch.conv2d(*wide, stride, pad, dilate, groups)
    out = out if residual is None else out + residual
    return out.relu() if relu else out


@pytest.mark.parametrize("name", ["direct", "Winograd F(2x2)", "Winograd F(4x4)"])
@pytest.mark.parametrize("biased, added, relu", [(False, False, False), (True, False, True), (True, True, False), (False, True, True)])
def test_three_by_three(name, biased, added, relu, chooses):
    chooses(name)
    data, weight, bias = numbers(2, 32, 9, 7, seed=0), numbers(48, 32, 3, 3, seed=1), numbers(48, seed=2) if biased else None
    residual = numbers(2, 48, 9, 7, seed=3) if added else None
    layer = PrepackedConv(weight, bias, (1, 1), (1, 1), (1, 1), 1, math.inf if relu else ANY)
    for _ in range(2):
        found = layer(data, residual)
        want = expected(data, weight, bias, (1, 1), (1, 1), (1, 1), 1, residual, relu)
        torch.testing.assert_close(found.double(), want, rtol=1e-4, atol=1e-4)
    assert layer.chosen == {"forward": name}
    other = numbers(3, 32, 5, 8, seed=4)  # the algorithm stays: there is one copy of the weights
    torch.testing.assert_close(layer(other).double(), expected(other, weight, bias, (1, 1), (1, 1), (1, 1), 1, None, relu), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("channels, filters, window, stride, pad, dilate, groups, name", [
    (3, 16, 3, (1, 1), (1, 1), (1, 1), 1, "direct"), (3, 24, 3, (1, 1), (1, 1), (2, 2), 1, "direct"), (1, 5, 4, (2, 1), (0, 3), (1, 1), 1, "direct"),
    (24, 40, 2, (1, 1), (0, 1), (1, 1), 1, "direct"), (160, 1000, 1, (1, 1), (0, 0), (1, 1), 1, "direct"),
    (7, 17, 7, (2, 2), (3, 3), (1, 1), 1, "direct"),
    (16, 16, 3, (1, 1), (1, 1), (1, 1), 16, "depthwise"), (16, 16, 3, (1, 1), (1, 1), (1, 1), 4, "torch"),
    (8, 8, 3, (1, 1), (1, 1), (1, 1), 8, "torch"),
    (16, 32, 3, (1, 1), (1, 1), (1, 1), 16, "torch"),
    (16, 32, 1, (2, 1), (0, 0), (1, 1), 1, "direct"), (16, 32, 3, (1, 2), (2, 1), (1, 1), 1, "direct"),
    (16, 16, 3, (1, 1), (2, 2), (2, 2), 1, "direct")])
def test_others(channels, filters, window, stride, pad, dilate, groups, name, chooses):
    chooses("Winograd F(4x4)")
    data, weight, bias = numbers(2, channels, 8, 9, seed=0), numbers(filters, channels // groups, window, window, seed=1), numbers(filters, seed=2)
    layer = PrepackedConv(weight, bias, stride, pad, dilate, groups, math.inf)
    plain = expected(data, weight, bias, stride, pad, dilate, groups, None, True)
    torch.testing.assert_close(layer(data).double(), plain, rtol=1e-4, atol=1e-4)
    residual = numbers(*plain.shape, seed=3)
    torch.testing.assert_close(layer(data, residual).double(), expected(data, weight, bias, stride, pad, dilate, groups, residual, True),
                               rtol=1e-4, atol=1e-4)
    assert layer.chosen == {"forward": name}


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", ["direct", "Winograd F(4x4)"])
def test_random_shapes_into_a_part_of_an_array(name, threads, chooses, monkeypatch):
    chooses(name)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    rng = np.random.RandomState(11)
    for _ in range(40):
        n, h, w, window, pad = rng.randint(1, 4), rng.randint(3, 40), rng.randint(3, 40), rng.randint(1, 4), rng.randint(0, 3)
        channels, filters = rng.choice([1, 3, 4, 16, 20, 48, 80]), rng.choice([3, 16, 24, 48, 64, 72, 200])
        stride = rng.randint(1, 3), rng.randint(1, 3)
        if name != "direct":
            channels, filters, window, stride = 16 * rng.randint(1, 5), 16 * rng.randint(1, 9), 3, (1, 1)
        data, weight, bias = numbers(n, channels, h, w, seed=0), numbers(filters, channels, window, window, seed=1), numbers(filters, seed=2)
        layer = PrepackedConv(weight, bias, stride, (pad, pad), (1, 1), 1, math.inf)
        want = expected(data, weight, bias, stride, (pad, pad), (1, 1), 1, None, False)
        residual = numbers(*want.shape, seed=3) if rng.randint(2) else None
        want = expected(data, weight, bias, stride, (pad, pad), (1, 1), 1, residual, True)
        before, behind = rng.randint(0, 30, 2)
        into = torch.full((n, before + filters + behind, *want.shape[2:]), 7.0).contiguous(memory_format=LAST)
        assert layer(data, residual, into, before) is into and layer.chosen == {"forward": name}
        torch.testing.assert_close(into[:, before:before + filters].double(), want, rtol=1e-4, atol=1e-4 * channels ** 0.5)
        assert (into[:, :before] == 7).all() and (into[:, before + filters:] == 7).all()
        torch.testing.assert_close(layer(data, residual).double(), want, rtol=1e-4, atol=1e-4 * channels ** 0.5)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_each_channel_by_itself(threads, chooses, monkeypatch):
    chooses("direct")
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    rng = np.random.RandomState(12)
    for number in range(60):
        n, h, w, pad = rng.randint(1, 4), rng.randint(3, 40), rng.randint(3, 40), tuple(rng.randint(0, 4, 2))
        # Nine weights stay in registers, where the step across is 1 or 2; other kernels go tap by tap.
        window, dilate = ((3, 3), (rng.randint(1, 3), 1)) if number % 3 else (tuple(rng.randint(1, 6, 2)), tuple(rng.randint(1, 3, 2)))
        if any(size + 2 * p < d * (k - 1) + 1 for size, p, d, k in zip((h, w), pad, dilate, window)):
            continue
        channels, stride = rng.choice([16, 17, 24, 32, 40, 96]), tuple(rng.randint(1, 4, 2))
        data, weight, bias = numbers(n, channels, h, w, seed=0), numbers(channels, 1, *window, seed=1), numbers(channels, seed=2)
        bias = bias if rng.randint(2) else None
        layer = PrepackedConv(weight, bias, stride, pad, dilate, channels, math.inf)
        want = expected(data, weight, bias, stride, pad, dilate, channels, None, False)
        residual = numbers(*want.shape, seed=3) if rng.randint(2) else None
        want = expected(data, weight, bias, stride, pad, dilate, channels, residual, True)
        before, behind = rng.randint(0, 30, 2)
        into = torch.full((n, before + channels + behind, *want.shape[2:]), 7.0).contiguous(memory_format=LAST)
        assert layer(data, residual, into, before) is into and layer.chosen == {"forward": "depthwise"}
        torch.testing.assert_close(into[:, before:before + channels].double(), want, rtol=1e-4, atol=1e-5)
        assert (into[:, :before] == 7).all() and (into[:, before + channels:] == 7).all()
        torch.testing.assert_close(layer(data, residual).double(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("change, text", [
    ("a part behind the end", r"first \+ c <= total does not hold"), ("a part before the beginning", "first >= 0 does not hold"),
    ("few channels", "c >= 16 does not hold"), ("other weights", r"`weight` must be float32 \(r \* s, c\)"), ("no step", "p = ")])
def test_each_channel_by_itself_refuses(change, text):
    if kernels.load("conv/depthwise") is None:
        pytest.skip("no C++ compiler")
    channels, first, stride, taps = 16, 4, 1, 9
    if change == "a part behind the end":
        first = 5
    elif change == "a part before the beginning":
        first = -1
    elif change == "few channels":
        channels = 15
    elif change == "other weights":
        taps = 8
    else:
        stride = 0
    data, into = (torch.zeros(1, c, 8, 8).contiguous(memory_format=LAST) for c in (channels, 20))
    with pytest.raises(mx.MXNetError, match=f"kernel conv/depthwise.forward_float32: {text}"):
        prepacked_conv.depthwise((data, torch.zeros(taps, channels), None, None, into), (3, 3, stride, stride, 1, 1, 1, 1, first), (ANY,))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_images_with_the_channels_first(threads, chooses, monkeypatch):
    chooses("direct")
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    for channels, filters, window, stride, pad in [(3, 32, 3, 2, 1), (3, 64, 7, 2, 3), (1, 16, 5, 1, 0), (4, 20, 3, 1, 2), (7, 16, 2, 1, 1)]:
        data, weight, bias = numbers(2, channels, 13, 18, seed=0), numbers(filters, channels, window, window, seed=1), numbers(filters, seed=2)
        layer = PrepackedConv(weight, bias, (stride, stride), (pad, pad), (1, 1), 1, math.inf, planes=True)
        want = expected(data, weight, bias, stride, pad, 1, 1, None, True)
        for given in (data, data.contiguous(memory_format=LAST)):
            found = layer(given)
            torch.testing.assert_close(found.double(), want, rtol=1e-4, atol=1e-4)
            assert found.is_contiguous(memory_format=LAST) and layer.chosen == {"forward": "direct"}


def test_images_with_the_channels_first_and_a_kernel_of_one_pixel():
    if kernels.load("conv/prepacked_conv") is None:
        pytest.skip("no C++ compiler")
    data, weight = numbers(2, 3, 9, 11, seed=0), numbers(32, 3, 1, 1, seed=1).contiguous(memory_format=LAST)
    into, (packed,) = torch.empty(2, 32, 9, 11).contiguous(memory_format=LAST), prepacked_conv.pack((weight,), (1,))
    for kernel, given in ((prepacked_conv.forward_planes, data), (prepacked_conv.forward, data.contiguous(memory_format=LAST))):
        kernel((given, packed, None, None, into), (32, 1, 1, 1, 1, 0, 0, 1, 1, 0, 1), (ANY,))
        torch.testing.assert_close(into.double(), torch.conv2d(data.double(), weight.double()), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("change", ["a part behind the end", "a part before the beginning", "other filters", "other weights", "dilated lines",
                                    "channels first"])
def test_what_does_not_fit_is_refused(change):
    if kernels.load("conv/prepacked_conv") is None:
        pytest.skip("no C++ compiler")
    data, into, first, filters, dilate, lines = numbers(1, 3, 8, 8, seed=0).contiguous(memory_format=LAST), torch.empty(1, 40, 6, 6), 8, 32, 1, 1
    into = into.contiguous(memory_format=LAST)
    packed, = prepacked_conv.pack((numbers(32, 3, 3, 3, seed=1).contiguous(memory_format=LAST),), (1,))
    if change == "a part behind the end":
        first = 9
    elif change == "a part before the beginning":
        first = -1
    elif change == "other filters":
        filters = 33
    elif change == "other weights":
        packed = packed[:-1].clone()
    elif change == "dilated lines":
        dilate, into = 2, torch.empty(1, 40, 6, 4).contiguous(memory_format=LAST)
    else:
        data = data.contiguous()
    with pytest.raises(mx.MXNetError, match="kernel conv/prepacked_conv.forward_float32: "):
        prepacked_conv.forward((data, packed, None, None, into), (filters, 3, 3, 1, 1, 0, 0, 1, dilate, first, lines), (ANY,))


@pytest.mark.parametrize("ceiling", [math.inf, 0.5])
@pytest.mark.parametrize("name", ["direct", "Winograd F(4x4)", "torch"])
def test_rectified_results_end_at_the_ceiling_and_keep_what_is_not_a_number(name, ceiling, chooses):
    chooses(name)
    groups = 2 if name == "torch" else 1
    data, weight = numbers(1, 16, 9, 9, seed=0), numbers(16, 16 // groups, 3, 3, seed=1)
    layer = PrepackedConv(weight, None, (1, 1), (1, 1), (1, 1), groups, ceiling)
    torch.testing.assert_close(layer(data).double(), expected(data, weight, None, (1, 1), (1, 1), (1, 1), groups, None, False).clamp(0, ceiling),
                               rtol=1e-4, atol=1e-4)
    data[0, 3, 4, 4] = math.nan
    assert bool(layer(data)[0, 0, 3:6, 3:6].isnan().all())
    assert layer.chosen == {"forward": name}


def test_exact_ones_are_never_raced(chooses, monkeypatch):
    chooses("Winograd F(4x4)")
    monkeypatch.setattr(prepacked_conv.autotuner, "fastest", lambda key, runs: pytest.fail("a race"))
    data, weight = numbers(1, 16, 8, 8, seed=0), numbers(16, 16, 3, 3, seed=1)
    layer = PrepackedConv(weight, None, (1, 1), (1, 1), (1, 1), 1, exact=True)
    direct, = convolution.forward((data.contiguous(memory_format=LAST), weight.contiguous(memory_format=LAST), None), (1, 1, 1, 1, 1, 1))
    assert torch.equal(layer(data), direct)


def test_a_race_is_of_a_part_of_a_large_batch_and_held_once(chooses, monkeypatch):
    chooses("direct")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(prepacked_conv.amx, "suits", lambda weight: False)
    held = []
    monkeypatch.setattr(prepacked_conv.autotuner, "fastest", lambda key, runs: held.append((key, list(runs))) or "Winograd F(4x4)")
    weight = numbers(16, 16, 3, 3, seed=1)
    for images in (100, 100, 120):
        layer = PrepackedConv(weight, None, (1, 1), (1, 1), (1, 1), 1)
        layer(numbers(images, 16, 16, 16, seed=0))
        assert layer.chosen == {"forward": "Winograd F(4x4)"}
    key = "weights kept, 64x16x16x16 to 16 by 3x3, stride 1x1, padding 1x1, dilation 1x1, 2 threads"
    assert held == [(key, ["direct", "Winograd F(2x2)", "Winograd F(4x4)"])] * 2


def test_threads_share_a_layer(chooses):
    chooses("Winograd F(4x4)")
    data, weight = numbers(1, 16, 12, 12, seed=0), numbers(16, 16, 3, 3, seed=1)
    layer = PrepackedConv(weight, None, (1, 1), (1, 1), (1, 1), 1)
    found = []
    threads = [threading.Thread(target=lambda: found.append(layer(data))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    want = expected(data, weight, None, (1, 1), (1, 1), (1, 1), 1, None, False)
    assert len(found) == 4
    for each in found:
        torch.testing.assert_close(each.double(), want, rtol=1e-4, atol=1e-4)


def test_without_a_compiler_torch_computes(without_kernels):
    data, weight, residual = numbers(1, 16, 8, 8, seed=0), numbers(16, 16, 3, 3, seed=1), numbers(1, 16, 8, 8, seed=2)
    with without_kernels():
        layer = PrepackedConv(weight, None, (1, 1), (1, 1), (1, 1), 1, math.inf)
        found = layer(data, residual)
    torch.testing.assert_close(found, (torch.conv2d(data, weight, None, 1, 1) + residual).relu())
    assert layer.chosen == {"forward": "torch"}
