"""The kernel of convolution, its gradients, and what it leaves to torch."""
import numpy as np
import pytest
import torch

import mxnet as mx
from convolution_checks import compare, last, numbers, run
from kernel_limits import forget_choices, tuned_from, used_from
from mxnet import kernels
from mxnet.kernels.conv import convolution as kernel
from mxnet.kernels.runtime import contract, libraries, tuning
from mxnet.ops.nn.training_layers import ConvolutionLayer
from mxnet.ops.registry import get

pytestmark = pytest.mark.skipif(kernels.load("conv/convolution") is None, reason="no C++ compiler")

# data, filters, kernel, stride, pad, dilate
SHAPES = {
    "1x1": ((2, 32, 5, 7), 48, (1, 1), (1, 1), (0, 0), (1, 1)),
    "1x1 stride 2": ((2, 16, 7, 6), 32, (1, 1), (2, 2), (0, 0), (1, 1)),
    "3x3": ((2, 32, 7, 7), 64, (3, 3), (1, 1), (1, 1), (1, 1)),
    "3x3 without padding": ((1, 48, 6, 5), 16, (3, 3), (1, 1), (0, 0), (1, 1)),
    "3x3 stride 2": ((2, 16, 9, 8), 80, (3, 3), (2, 2), (1, 1), (1, 1)),
    "3x3 dilated": ((1, 80, 9, 9), 32, (3, 3), (1, 1), (2, 2), (2, 2)),
    "more padding than the kernel reaches": ((1, 16, 4, 4), 16, (3, 3), (1, 1), (3, 2), (1, 1)),
    "1x7": ((2, 16, 9, 9), 96, (1, 7), (1, 1), (0, 3), (1, 1)),
    "taps that never meet the image": ((1, 16, 2, 2), 16, (5, 5), (1, 1), (2, 2), (1, 1)),
    "stride beyond the kernel": ((1, 32, 11, 10), 16, (2, 2), (3, 4), (0, 0), (1, 1)),
    "many rows": ((3, 16, 30, 31), 112, (3, 3), (1, 1), (1, 1), (1, 1)),
    "many images of few rows": ((70, 16, 6, 6), 16, (3, 3), (1, 1), (1, 1), (1, 1)),
    "deep": ((1, 1040, 4, 4), 16, (3, 3), (1, 1), (1, 1), (1, 1)),
    "few filters in long rows": ((2, 16, 6, 37), 16, (3, 3), (1, 1), (1, 1), (1, 1)),
    "few filters in short rows": ((3, 32, 9, 5), 32, (3, 3), (1, 1), (1, 1), (1, 1)),
    "few filters without padding": ((2, 16, 8, 9), 32, (3, 3), (1, 1), (0, 0), (1, 1)),
    "few filters in every other row": ((2, 32, 9, 14), 16, (5, 3), (2, 1), (2, 2), (1, 1)),
    "few filters of one row": ((40, 16, 1, 12), 16, (1, 3), (1, 1), (0, 1), (1, 1)),
    "11x11": ((1, 16, 23, 23), 16, (11, 11), (4, 4), (2, 2), (1, 1)),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_it_computes_what_torch_computes_in_double_precision(shape, biased, threads, monkeypatch):
    used_from(monkeypatch, 0, kernel)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    size, filters, window, stride, pad, dilate = SHAPES[shape]
    arrays = numbers(*size, seed=0), numbers(filters, size[1], *window, seed=1), numbers(filters, seed=2) if biased else None
    attributes = {"kernel": window, "stride": stride, "pad": pad, "dilate": dilate, "num_filter": filters, "no_bias": not biased}
    assert kernel.forward.plan([last(a) for a in arrays[:2]] + [None], (*stride, *pad, *dilate)) is not None
    found = run(lambda *a: ConvolutionLayer(exact=True)(*a, **attributes), arrays, torch.float32)
    expected = run(lambda *a: torch.conv2d(*a, stride, pad, dilate), arrays, torch.float64)
    assert found[0].is_contiguous(memory_format=torch.channels_last)
    compare(found, expected)


@pytest.mark.skipif(kernels.load("conv/convolution") is not None and not kernel.forward.available(T="bfloat16"),
                    reason="the processor has no products of bfloat16")
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_half_precision_is_rounded_once(shape, threads, single, monkeypatch):
    used_from(monkeypatch, 0, kernel)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    size, filters, window, stride, pad, dilate = SHAPES[shape]
    x, w, b = (a.bfloat16() for a in (last(numbers(*size, seed=0)), last(numbers(filters, size[1], *window, seed=1)), numbers(filters, seed=2)))
    expected = run(lambda *a: torch.conv2d(*a, stride, pad, dilate), (x, w, b), torch.float64, torch.bfloat16)
    if single:  # as mixed precision has them
        w, b = w.float(), b.float()
    arrays = [a.detach().requires_grad_() for a in (x, w, b)]
    out = ConvolutionLayer(exact=True)(*arrays, kernel=window, stride=stride, pad=pad, dilate=dilate, num_filter=filters)
    assert out.dtype is torch.bfloat16
    out.backward(last(numbers(*out.shape, seed=3).bfloat16()))
    for f, e in zip([out.detach(), *[a.grad for a in arrays]], expected, strict=True):
        assert f.dtype is not torch.float32 or single
        torch.testing.assert_close(f.float(), e, rtol=2 ** -8, atol=1e-5 * max(1.0, float(e.abs().max())))


def test_a_paused_benchmark_takes_place_later(monkeypatch):
    asked = []
    used_from(monkeypatch, 0, kernel)
    tuned_from(monkeypatch, 0, kernel)
    monkeypatch.setattr(kernel.autotuner, "cached", lambda key, names: None)
    monkeypatch.setattr(kernel.autotuner, "fastest", lambda key, runs: asked.append(key) or "direct")
    layer, x, weight = ConvolutionLayer(), torch.ones(1, 16, 4, 4).contiguous(memory_format=torch.channels_last), torch.ones(16, 16, 1, 1)
    with tuning.paused():
        layer(x, weight, kernel=(1, 1), num_filter=16, no_bias=True)
    assert layer.chosen == {"forward": "direct"} and not asked
    for _ in range(2):
        layer(x, weight, kernel=(1, 1), num_filter=16, no_bias=True)
    assert len(asked) == 1


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch without oneDNN")
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_onednn_computes_in_single_precision_where_it_wins_but_for_dilations(shape, biased, monkeypatch):
    used_from(monkeypatch, 0, kernel)
    tuned_from(monkeypatch, 0, kernel)
    monkeypatch.setattr(kernel.autotuner, "fastest",
                        lambda key, runs: [run() for run in runs.values()] and ("oneDNN" if "oneDNN" in runs else "direct"))
    size, filters, window, stride, pad, dilate = SHAPES[shape]
    arrays = numbers(*size, seed=0), numbers(filters, size[1], *window, seed=1), numbers(filters, seed=2) if biased else None
    layer = ConvolutionLayer()
    found = run(lambda *a: layer(*a, kernel=window, stride=stride, pad=pad, dilate=dilate, num_filter=filters, no_bias=not biased), arrays,
                torch.float32)
    expected = run(lambda *a: torch.conv2d(*a, stride, pad, dilate), arrays, torch.float64)
    assert found[0].is_contiguous(memory_format=torch.channels_last)
    compare(found, expected)
    who = "oneDNN" if dilate == (1, 1) else "direct"
    assert layer.chosen == {"forward": who, "gradient of data": who, "gradient of weights": who}


bfloat16 = pytest.mark.skipif(kernels.load("conv/convolution") is not None and not kernel.forward.available(T="bfloat16"),
                              reason="the processor has no products of bfloat16")


@bfloat16
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", ["direct", "float32 arithmetic", "oneDNN", "Winograd F(2x2)", "Winograd F(4x4)"])
@pytest.mark.parametrize("shape", SHAPES)
def test_whoever_wins_the_race_for_half_precision_rounds_once(shape, name, threads, monkeypatch):
    used_from(monkeypatch, 0, kernel)
    tuned_from(monkeypatch, 0, kernel)
    monkeypatch.setattr(kernel.autotuner, "fastest", lambda key, runs: [run() for run in runs.values()] and (name if name in runs else "direct"))
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    if name == "oneDNN" and not kernel.matmul.prefers_onednn_layout(torch.bfloat16):
        pytest.skip("torch has no oneDNN that knows bfloat16 here")
    size, filters, window, stride, pad, dilate = SHAPES[shape]
    if name == "oneDNN" and dilate != (1, 1):
        name = "direct"
    x, w, b = (a.bfloat16() for a in (last(numbers(*size, seed=0)), last(numbers(filters, size[1], *window, seed=1)), numbers(filters, seed=2)))
    expected = run(lambda *a: torch.conv2d(*a, stride, pad, dilate), (x, w, b), torch.float64, torch.bfloat16)
    arrays = [a.detach().requires_grad_() for a in (x, w.float(), b.float())]
    layer = ConvolutionLayer()
    out = layer(*arrays, kernel=window, stride=stride, pad=pad, dilate=dilate, num_filter=filters)
    out.backward(last(numbers(*out.shape, seed=3).bfloat16()))
    assert [t.dtype for t in (out, *[a.grad for a in arrays])] == [torch.bfloat16, torch.bfloat16, torch.float32, torch.float32]
    for f, e in zip([out.detach(), *[a.grad for a in arrays]], expected, strict=True):
        torch.testing.assert_close(f.float(), e, rtol=2 ** -8, atol=1e-5 * max(1.0, float(e.abs().max())))
    squares = window == (3, 3) and stride == dilate == (1, 1)
    fewer = name.startswith("Winograd")
    assert layer.chosen == {"forward": "direct" if fewer and not squares else name,
                            "gradient of data": "direct" if fewer and not (squares and max(pad) <= 2) else name,
                            "gradient of weights": "direct" if fewer and not squares else name}


@bfloat16
def test_convolutions_of_half_precision_race_once_for_a_shape_unless_they_are_small_or_exact(monkeypatch):
    held, onednn = [], [] if not kernel.matmul.prefers_onednn_layout(torch.bfloat16) else ["oneDNN"]
    forget_choices(monkeypatch, kernel)
    monkeypatch.setattr(kernel.autotuner, "fastest", lambda key, runs: held.append((key, list(runs))) or "direct")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    weight = last(numbers(32, 32, 1, 1, seed=1))
    attributes = {"kernel": (1, 1), "stride": (2, 2), "num_filter": 32, "no_bias": True}
    layer = ConvolutionLayer()
    for images in (70, 70, 75, 1):
        layer(last(numbers(images, 32, 32, 32, seed=0)).bfloat16(), weight, **attributes)
    race = ("forward, bfloat16, 16x32x32x32, weights 32x32x1x1, stride, padding, dilation 2 2 0 0 1 1, 2 threads",
            ["direct", "float32 arithmetic", *onednn])
    assert held == [race] * 2
    exact = ConvolutionLayer(exact=True)
    exact(last(numbers(80, 32, 32, 32, seed=0)).bfloat16(), weight, **attributes)
    assert held == [race] * 2 and exact.chosen == {"forward": "direct"}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_kernel_that_widens_refuses_what_is_wide(dtype):
    data, weight = last(numbers(1, 16, 4, 4, seed=0)).to(dtype), last(numbers(16, 16, 1, 1, seed=1))
    with pytest.raises(mx.MXNetError, match="kernel conv/convolution.forward_widened_.T.: "):
        kernel.widened_forward((data, weight, None), (1, 1, 0, 0, 1, 1))


def test_processors_without_wide_vectors_compute_the_same(monkeypatch, tmp_path):
    flags = [f for f in libraries.FLAGS if not f.startswith("-march")] + ["-mavx2", "-mfma"]
    monkeypatch.setattr(libraries, "FLAGS", flags)
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    used_from(monkeypatch, 0, kernel)
    clear()
    try:
        size, filters, window, stride, pad, dilate = SHAPES["3x3 stride 2"]
        arrays = numbers(*size, seed=0), numbers(filters, size[1], *window, seed=1), numbers(filters, seed=2)
        attributes = {"kernel": window, "stride": stride, "pad": pad, "num_filter": filters}
        compare(run(lambda *a: ConvolutionLayer(exact=True)(*a, **attributes), arrays, torch.float32),
                run(lambda *a: torch.conv2d(*a, stride, pad, dilate), arrays, torch.float64))
    finally:
        clear()


def clear():
    kernels.load.cache_clear()
    contract.forget()


def test_gradients_can_be_differentiated_again(monkeypatch):
    used_from(monkeypatch, 0, kernel)
    x, w = last(numbers(1, 16, 4, 4, seed=0)).requires_grad_(), last(numbers(16, 16, 3, 3, seed=1)).requires_grad_()
    found = []
    for out in (ConvolutionLayer(exact=True)(x, w, kernel=(3, 3), num_filter=16, pad=(1, 1), no_bias=True), torch.conv2d(x, w, None, 1, 1)):
        first, = torch.autograd.grad((out ** 3).sum(), x, create_graph=True)
        found.append(torch.autograd.grad((first ** 2).sum(), w)[0])
    torch.testing.assert_close(*found, rtol=1e-3, atol=1e-2 * float(found[1].abs().max()))


def test_frozen_weights_get_no_gradient(monkeypatch):
    used_from(monkeypatch, 0, kernel)
    x, w = last(numbers(1, 16, 4, 4, seed=0)).requires_grad_(), last(numbers(16, 16, 3, 3, seed=1))
    ConvolutionLayer(exact=True)(x, w, kernel=(3, 3), num_filter=16, no_bias=True).sum().backward()
    assert w.grad is None and x.grad.abs().sum() > 0


@pytest.mark.parametrize("change", ["channels first", "double precision", "weights in half precision", "odd channels", "groups of channels",
                                    "large window"])
def test_what_the_kernel_cannot_do_is_left_to_torch(change):
    x, w = last(numbers(1, 32, 16, 16, seed=0)), last(numbers(32, 32, 3, 3, seed=1))
    if change == "channels first":
        x = x.contiguous()
    elif change == "double precision":
        x, w = x.double(), w.double()
    elif change == "weights in half precision":
        w = w.bfloat16()
    elif change == "odd channels":
        w = last(w[:30])
    elif change == "groups of channels":
        w = last(w[:, :16])
    else:
        w = last(numbers(32, 32, 12, 12, seed=1))
    with pytest.MonkeyPatch.context() as patch:
        used_from(patch, 0, kernel)
        patch.setattr(kernel._Convolution, "apply", lambda *_: pytest.fail("the kernel was called"))
        patch.setattr(get("Convolution"), "fn", lambda *_, **__: "torch's")
        assert ConvolutionLayer(exact=True)(x, w, kernel=w.shape[2:], num_filter=len(w)) == "torch's"


def test_errors_are_those_of_the_operator():
    net = mx.gluon.nn.Conv2D(32, 3, in_channels=32)
    net.initialize()
    net.hybridize()
    with mx.autograd.record(), pytest.raises(mx.MXNetError, match="Convolution.*[Kk]ernel"):
        net(mx.nd.ones((64, 32, 2, 2)))


@pytest.mark.parametrize("bias", [torch.ones(1), torch.ones(8), torch.ones(1).expand(16), torch.ones(16, dtype=torch.int32)],
                         ids=["one", "eight", "one repeated", "integers"])
def test_the_kernel_never_reads_a_bias_that_is_not_one_number_for_each_filter(bias, monkeypatch):
    """A one-element bias out of a file once let inference return memory of the heap."""
    used_from(monkeypatch, 0, kernel)
    monkeypatch.setattr(kernel._Convolution, "apply", lambda *_: pytest.fail("the kernel was called"))
    data = torch.ones(1, 16, 4, 4).contiguous(memory_format=torch.channels_last)
    weight = torch.ones(16, 16, 1, 1).contiguous(memory_format=torch.channels_last)
    try:
        out = ConvolutionLayer(exact=True)(data, weight, bias, kernel=(1, 1), num_filter=16)
    except (RuntimeError, mx.MXNetError):
        return
    assert out.unique().tolist() == [17.0]


# data, filters, kernel, stride, pad, adj, dilate
TRANSPOSED = {
    "to twice the size": ((2, 32, 7, 6), 48, (4, 4), (2, 2), (1, 1), (0, 0), (1, 1)),
    "with adjustment": ((1, 16, 5, 8), 32, (3, 3), (2, 3), (1, 0), (1, 2), (1, 1)),
    "dilated": ((2, 16, 6, 6), 16, (3, 2), (1, 1), (0, 1), (0, 0), (2, 2)),
    "gaps between the windows": ((1, 16, 4, 4), 16, (2, 2), (3, 3), (0, 0), (0, 0), (1, 1)),
}


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("name", TRANSPOSED)
def test_a_transposed_convolution_computes_what_torch_computes_in_double_precision(name, biased, monkeypatch):
    used_from(monkeypatch, 0, kernel)
    size, filters, window, stride, pad, adj, dilate = TRANSPOSED[name]
    arrays = numbers(*size, seed=0), numbers(size[1], filters, *window, seed=1), numbers(filters, seed=2) if biased else None
    outs = []

    def ours(data, weight, bias=None):
        outs.append(kernel.deconvolution(data, weight, bias, stride, pad, adj, dilate))
        return outs[-1]

    def theirs(data, weight, bias=None):
        return torch.conv_transpose2d(data, weight, bias, stride, pad, adj, 1, dilate)

    compare(run(ours, arrays, torch.float32), run(theirs, arrays, torch.float64))
    assert "_Deconvolution" in type(outs[0].grad_fn).__name__ and outs[0].is_contiguous(memory_format=torch.channels_last)
    arrays = [a.double().float() for a in arrays if a is not None]
    for a in arrays:
        a.requires_grad_()
    first, = torch.autograd.grad(ours(*arrays).square().sum(), arrays[1], create_graph=True)
    twice = torch.autograd.grad(first.square().sum(), arrays)
    doubles = [a.detach().double().requires_grad_() for a in arrays]
    first, = torch.autograd.grad(theirs(*doubles).square().sum(), doubles[1], create_graph=True)
    for found, expected in zip(twice, torch.autograd.grad(first.square().sum(), doubles), strict=True):
        torch.testing.assert_close(found, expected.float(), rtol=1e-3, atol=1e-4 * float(expected.abs().max()))


def test_the_operator_takes_the_kernel_and_keeps_the_order_of_its_data(monkeypatch):
    calls = []
    monkeypatch.setattr(kernel._Deconvolution, "forward", staticmethod(
        lambda ctx, *args, original=kernel._Deconvolution.forward: calls.append(1) or original(ctx, *args)))
    x, w = (mx.nd.array(numbers(*size, seed=4).numpy()) for size in ((2, 32, 20, 20), (32, 16, 4, 4)))
    out = mx.nd.Deconvolution(x, w, kernel=(4, 4), stride=(2, 2), pad=(1, 1), num_filter=16)
    expected = torch.conv_transpose2d(torch.from_numpy(x.asnumpy()).double(), torch.from_numpy(w.asnumpy()).double(), None, 2, 1)
    np.testing.assert_allclose(out.asnumpy(), expected.numpy(), rtol=1e-4, atol=1e-4)
    assert calls == [1]
