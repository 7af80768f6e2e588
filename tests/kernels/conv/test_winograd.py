"""Convolutions by fewer multiplications: their results, their rounding, and where they are chosen."""
import math

import numpy as np
import pytest
import torch

import mxnet as mx
from kernel_limits import tuned_from, used_from
from mxnet import kernels
from mxnet.kernels.conv import convolution, winograd
from mxnet.kernels.runtime import contract, libraries
from mxnet.ops.nn.training_layers import ConvolutionLayer

pytestmark = pytest.mark.skipif(kernels.load("conv/winograd") is None or kernels.load("conv/convolution") is None, reason="no C++ compiler")
LAST = torch.channels_last

# (N, C, H, W), filters, padding
SHAPES = {
    "whole squares": ((2, 16, 8, 12), 32, (1, 1)),
    "odd sizes": ((3, 32, 7, 9), 48, (1, 1)),
    "no padding": ((1, 48, 9, 6), 16, (0, 0)),
    "smaller than a square": ((2, 16, 2, 1), 16, (1, 1)),
    "one output": ((1, 16, 3, 3), 16, (0, 0)),
    "more padding than the kernel reaches": ((1, 16, 5, 3), 80, (3, 2)),
    "nothing but padding": ((1, 16, 1, 1), 16, (5, 6)),
    "many squares of few filters": ((2, 16, 45, 51), 16, (1, 1)),
    "few squares of many filters": ((1, 272, 6, 5), 336, (1, 1)),
    "several blocks": ((9, 64, 27, 30), 64, (1, 0)),
}


def numbers(*shape, seed):
    t = torch.from_numpy(np.random.RandomState(seed).normal(size=shape).astype("float32"))
    return t.contiguous(memory_format=LAST) if len(shape) == 4 else t


def case(shape, taps=(3, 3)):
    size, filters, pad = SHAPES[shape]
    size = (*size[:2], *(n + (t > 3) * t for n, t in zip(size[2:], taps)))  # some are as small as 3x3 reaches
    return numbers(*size, seed=0), numbers(filters, size[1], *taps, seed=1), numbers(filters, seed=2), pad


def close(found, expected, rounding=4e-6):
    assert found.is_contiguous(memory_format=LAST)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=rounding * max(1.0, float(expected.abs().max())))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", winograd.FORMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_it_computes_what_torch_computes_in_double_precision(shape, name, threads, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    data, weight, bias, pad = case(shape, winograd.FORMS[name].taps)
    expected = torch.conv2d(data.double(), weight.double(), bias.double(), 1, pad)
    residual = numbers(*expected.shape, seed=3)
    transformed, = winograd.weights[name]((weight,), (False,))
    plain = winograd.convolve(name, data, transformed, pad=pad)
    close(plain, torch.conv2d(data.double(), weight.double(), None, 1, pad))
    all_of_it = winograd.convolve(name, data, transformed, bias, residual, pad, math.inf)
    close(all_of_it, (expected + residual.double()).relu())


@pytest.mark.parametrize("name", winograd.FORMS)
def test_random_shapes(name):
    rng = np.random.RandomState(7)
    r, s = winograd.FORMS[name].taps
    for _ in range(40):
        n, c, k, h, w = rng.randint(1, 4), 16 * rng.randint(1, 5), 16 * rng.randint(1, 9), rng.randint(1, 20), rng.randint(1, 20)
        pad = rng.randint(0, 4), rng.randint(0, 4)
        if h + 2 * pad[0] < r or w + 2 * pad[1] < s:
            continue
        data, weight = numbers(n, c, h, w, seed=0), numbers(k, c, r, s, seed=1)
        close(winograd.run(name, data, weight, None, pad), torch.conv2d(data.double(), weight.double(), None, 1, pad))


@pytest.mark.parametrize("name", winograd.FORMS)
@pytest.mark.parametrize("channels", [16, 64, 512])
@pytest.mark.parametrize("positive", [False, True])
def test_rounding_errors_beside_those_of_the_direct_kernel(name, channels, positive):
    taps = winograd.FORMS[name].taps
    data, weight = numbers(1, channels, 20, 20, seed=0), numbers(64, channels, *taps, seed=1)
    data = data.relu() if positive else data
    exact = torch.conv2d(data.double(), weight.double())
    direct, = convolution.forward((data, weight, None), (1, 1, 0, 0, 1, 1))
    errors = [(t.double() - exact).pow(2).mean().sqrt().item() for t in (winograd.run(name, data, weight, None, (0, 0)), direct)]
    assert errors[0] <= {"Winograd F(2x2)": 1.0}.get(name, 4.0) * errors[1]


@pytest.mark.parametrize("name", winograd.backward)
def test_rounding_errors_of_the_gradient_of_weights(name):
    taps = winograd.FORMS[name].taps
    data, dout = numbers(4, 64, 20, 20, seed=0), numbers(4, 48, 21 - taps[0], 21 - taps[1], seed=1)
    exact = torch.nn.grad.conv2d_weight(data.double(), (48, 64, *taps), dout.double())
    direct, _ = convolution.backward_weight((dout, data), (*taps, False, 1, 1, 0, 0, 1, 1))
    errors = [(t.double() - exact).pow(2).mean().sqrt().item() for t in (winograd.backward_weight(name, dout, data, False, (0, 0))[0], direct)]
    assert errors[0] <= 4 * errors[1]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", winograd.backward)
def test_gradients_of_weights_of_random_shapes(name, threads, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    rng = np.random.RandomState(5)
    r, s = winograd.FORMS[name].taps
    for _ in range(25):
        n, c, k, h, w = rng.randint(1, 6), 16 * rng.randint(1, 7), 16 * rng.randint(1, 9), rng.randint(1, 30), rng.randint(1, 30)
        pad = rng.randint(0, 4), rng.randint(0, 4)
        p, q = h + 2 * pad[0] - r + 1, w + 2 * pad[1] - s + 1
        if min(p, q) < 1:
            continue
        data, dout = numbers(n, c, h, w, seed=0), numbers(n, k, p, q, seed=1)
        dweight, dbias = winograd.backward_weight(name, dout, data, True, pad)
        close(dweight, torch.nn.grad.conv2d_weight(data.double(), (k, c, r, s), dout.double(), 1, pad), 2e-5)
        torch.testing.assert_close(dbias.double(), dout.double().sum((0, 2, 3)), rtol=1e-4, atol=1e-3)
        assert winograd.backward_weight(name, dout, data, False, pad)[1] is None


@pytest.fixture
def chooses(monkeypatch):
    """Lets every race, of whatever size, be won by one."""
    def choose(name):
        tuned_from(monkeypatch, 0, convolution)
        monkeypatch.setattr(convolution.autotuner, "fastest",
                            lambda key, runs: [run() for run in runs.values()] and (name if name in runs else "direct"))
        used_from(monkeypatch, 0, convolution)
    return choose


@pytest.mark.parametrize("name", ["direct", *winograd.FORMS])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_layer_and_its_gradients(shape, biased, name, chooses):
    chooses(name)
    data, weight, bias, pad = case(shape, winograd.FORMS[name].taps if name != "direct" else (3, 3))
    results = []
    layer = ConvolutionLayer()
    for dtype in (torch.float32, torch.float64):
        x, w, b = (t.detach().to(dtype).requires_grad_() for t in (data, weight, bias))
        b = b if biased else None
        if dtype is torch.float32:
            out = layer(x, w, b, kernel=weight.shape[2:], pad=pad, num_filter=len(w), no_bias=not biased)
        else:
            out = torch.conv2d(x, w, b, 1, pad)
        out.backward(numbers(*out.shape, seed=3).to(dtype))
        results.append([out.detach(), *[t.grad for t in (x, w, b) if t is not None]])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=2e-5 * max(1.0, float(expected.abs().max())))
    # More padding than the kernel reaches has no convolution that goes back.
    assert layer.chosen == {"forward": name, "gradient of data": name if all(k > p for k, p in zip(weight.shape[2:], pad)) else "direct",
                            "gradient of weights": name if name in winograd.backward else "direct"}


@pytest.mark.parametrize("change", ["step", "dilation", "4x4", "exact", "small"])
def test_what_is_never_computed_so(change, chooses, monkeypatch):
    chooses("Winograd F(4x4)")
    data, weight, _, pad = case("odd sizes")
    attributes = {"kernel": (3, 3), "pad": pad, "num_filter": len(weight), "no_bias": True}
    layer = ConvolutionLayer(exact=change == "exact")
    if change == "step":
        attributes["stride"] = (1, 2)
    elif change == "dilation":
        attributes["dilate"] = (2, 1)
    elif change == "4x4":
        weight, attributes["kernel"] = numbers(48, 32, 4, 4, seed=1), (4, 4)
    elif change == "small":
        tuned_from(monkeypatch, 1 << 40, convolution)
    out = layer(data, weight, **attributes)
    assert layer.chosen == {"forward": "direct"}
    expected = torch.conv2d(data.double(), weight.double(), None, attributes.get("stride", 1), pad, attributes.get("dilate", 1))
    torch.testing.assert_close(out.double(), expected, rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("change", ["weights of another size", "channels first", "double precision", "odd channels", "a short bias",
                                    "another residual"])
def test_what_does_not_fit_is_refused(change):
    data, weight, bias, pad = case("odd sizes")
    transformed, = winograd.weights["Winograd F(4x4)"]((weight,), (False,))
    residual = numbers(3, 48, 7, 9, seed=3)
    if change == "weights of another size":
        transformed, = winograd.weights["Winograd F(2x2)"]((weight,), (False,))
    elif change == "channels first":
        data = data.contiguous()
    elif change == "double precision":
        data = data.double()
    elif change == "odd channels":
        data, transformed = data[:, :24].contiguous(memory_format=LAST), transformed[:, :24].contiguous()
    elif change == "a short bias":
        bias = bias[:1]
    else:
        residual = residual[:, :, :6]
    with pytest.raises(mx.MXNetError, match="kernel conv/winograd.forward_4x4_3x3_.T.: "):
        winograd.convolve("Winograd F(4x4)", data, transformed, bias, residual, pad)


def test_processors_without_wide_vectors_compute_the_same(monkeypatch, tmp_path):
    flags = [f for f in libraries.FLAGS if not f.startswith("-march")] + ["-mavx2", "-mfma"]
    monkeypatch.setattr(libraries, "FLAGS", flags)
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    clear()
    try:
        for shape in ("odd sizes", "few squares of many filters", "several blocks"):
            for name, form in winograd.FORMS.items():
                data, weight, bias, pad = case(shape, form.taps)
                close(winograd.run(name, data, weight, bias, pad), torch.conv2d(data.double(), weight.double(), bias.double(), 1, pad))
                dout = numbers(len(data), len(weight), *data.shape[2:], seed=3)
                back = weight.shape[2] - 1, weight.shape[3] - 1
                close(winograd.run(name, dout, weight, None, back, turned=True), torch.conv_transpose2d(dout.double(), weight.double()))
    finally:
        clear()


def clear():
    kernels.load.cache_clear()
    contract.forget()
