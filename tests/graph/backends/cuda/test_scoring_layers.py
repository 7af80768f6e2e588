"""Layers of networks that score on GPUs: every way to compute one gives the same, and the fastest is found."""
import math
import types

import pytest
import torch

from mxnet.graph.backends.cuda import scoring_layers
from mxnet.graph.backends.cuda.scoring_layers import FUSED, KERNEL, PARTS, PRODUCT, WIDENED, Convolution, MaxPool, Normalization
from mxnet.kernels.nn import scoring_on_gpu
from mxnet.kernels.runtime import measurement
from mxnet.kernels.runtime.strided_output import ANY


class OnGPU(torch.Tensor):
    """A tensor that says it is on a GPU."""

    is_cuda = True
    __torch_function__ = torch._C._disabled_torch_function_impl


def arguments(dtype=torch.float32, kernel=1, residual=False, channels=8):
    generator = torch.Generator().manual_seed(0)
    data = torch.randn(2, channels, 5, 6, generator=generator).to(dtype).contiguous(memory_format=torch.channels_last).as_subclass(OnGPU)
    weight, bias = torch.randn(4, channels, kernel, kernel, generator=generator).to(dtype), torch.randn(4, generator=generator).to(dtype)
    return data, weight, bias, torch.randn(2, 4, 5, 6, generator=generator).to(dtype) if residual else None


def layer(ceiling=math.inf, kernel=1, groups=1, **kwargs):
    return Convolution((1, 1), (kernel // 2, kernel // 2), (1, 1), groups, ceiling, **kwargs)


def plain(result):
    return result.as_subclass(torch.Tensor)


class Cudnn:
    """The functions of cuDNN that torch has, by torch's operators."""

    def __init__(self, monkeypatch, broken=None):
        self.calls, self._broken = [], broken
        monkeypatch.setattr(torch, "cudnn_convolution_relu", self.relu)
        monkeypatch.setattr(torch, "cudnn_convolution_add_relu", self.add_relu)

    def relu(self, data, weight, bias, stride, padding, dilation, groups):
        return self.add_relu(data, weight, None, 1.0, bias, stride, padding, dilation, groups)

    def add_relu(self, data, weight, z, alpha, bias, stride, padding, dilation, groups):
        self.calls.append("relu" if z is None else "add relu")
        if self._broken:
            raise self._broken
        out = torch.conv2d(data, weight, bias, stride, padding, dilation, groups)
        return torch.relu(out if z is None else out + alpha * z)


def test_the_stand_in_takes_what_torch_takes():
    def names(operator):
        return [a.name for a in operator.default._schema.arguments]
    steps = ["bias", "stride", "padding", "dilation", "groups"]
    assert names(torch.ops.aten.cudnn_convolution_relu) == ["self", "weight", *steps]
    assert names(torch.ops.aten.cudnn_convolution_add_relu) == ["self", "weight", "z", "alpha", *steps]


@pytest.fixture
def clock(monkeypatch):
    """Each way takes as many milliseconds as it says in here."""
    found = {FUSED: 1.0, PRODUCT: 2.0, KERNEL: 2.5, PARTS: 3.0}
    monkeypatch.setattr(scoring_layers, "gpu_milliseconds", lambda run: found[run.args[0]])
    monkeypatch.setattr(scoring_layers, "cuda", types.SimpleNamespace(is_current_stream_capturing=lambda: False))
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)
    return found


@pytest.mark.parametrize("ceiling, kernel, residual, dtype, ways", [
    (math.inf, 3, False, torch.float32, [FUSED, PARTS]), (math.inf, 3, True, torch.float32, [FUSED, PARTS]),
    (math.inf, 3, False, torch.float16, [FUSED, WIDENED, PARTS]), (0.5, 3, True, torch.bfloat16, [FUSED, WIDENED, PARTS]),
    (0.5, 3, False, torch.float16, [FUSED, PARTS]), (ANY, 3, False, torch.float16, [PARTS]), (math.inf, 1, False, torch.float32, [FUSED, PARTS]),
    (math.inf, 1, False, torch.bfloat16, [FUSED, PRODUCT, PARTS]), (ANY, 1, False, torch.bfloat16, [PRODUCT, PARTS]),
    (math.inf, 1, True, torch.bfloat16, [FUSED, PARTS]), (0.5, 1, False, torch.bfloat16, [FUSED, PARTS])])
def test_ways_of_one_layer_give_the_same(monkeypatch, ceiling, kernel, residual, dtype, ways):
    Cudnn(monkeypatch)
    made, given = layer(ceiling, kernel), arguments(dtype, kernel, residual, 3 if WIDENED in ways else 8)
    assert made.algorithms(*given) == ways
    data, weight, bias, added = (t if t is None else plain(t).float() for t in given)
    expected = torch.conv2d(data, weight, bias, padding=kernel // 2)
    expected = expected if added is None else expected + added
    expected = expected if ceiling == ANY else expected.clamp(0, ceiling)
    for way in ways:
        out = plain(made.run(way, *given))
        assert out.dtype is dtype and out.is_contiguous(memory_format=torch.channels_last)
        torch.testing.assert_close(out.float(), expected, rtol=4 * torch.finfo(dtype).eps, atol=20 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("seconds, fastest", [({}, FUSED), ({FUSED: 4.0}, PRODUCT), ({FUSED: 4.0, PRODUCT: 5.0}, PARTS),
                                              ({PRODUCT: 0.99}, FUSED), ({PRODUCT: 0.9}, PRODUCT)])
def test_the_fastest_way_is_found_in_the_first_call(monkeypatch, clock, seconds, fastest):
    cudnn, made = Cudnn(monkeypatch), layer()
    clock.update(seconds)
    given = arguments(torch.bfloat16)
    expected = plain(made.run(PARTS, *given))
    torch.testing.assert_close(plain(made(*given)), expected)
    assert made.algorithm == fastest
    before = len(cudnn.calls)
    made(*given)
    assert len(cudnn.calls) - before == (fastest == FUSED)


@pytest.mark.parametrize("why", ["variable", "determinism"])
def test_where_nothing_may_race_the_first_that_works_is_taken(monkeypatch, clock, why):
    if why == "variable":
        monkeypatch.setenv("MXNET_CUDNN_AUTOTUNE_DEFAULT", "0")
    else:
        monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)
    clock.clear()
    Cudnn(monkeypatch)
    made = layer(kernel=3)
    made(*arguments(kernel=3))
    assert made.algorithm == FUSED


def test_what_cudnn_does_not_know_is_computed_in_parts(monkeypatch, clock):
    cudnn = Cudnn(monkeypatch, RuntimeError("no engine"))
    made, given = layer(kernel=3), arguments(kernel=3)
    for _ in range(2):
        torch.testing.assert_close(plain(made(*given)), plain(made.run(PARTS, *given)))
    assert made.algorithm == PARTS and cudnn.calls == ["relu"]
    Cudnn(monkeypatch, torch.OutOfMemoryError("CUDA out of memory"))
    with pytest.raises(torch.OutOfMemoryError):
        layer(kernel=3)(*given)


def test_while_it_is_captured_nothing_races(monkeypatch, clock):
    cudnn = Cudnn(monkeypatch)
    scoring_layers.cuda.is_current_stream_capturing = lambda: True
    made = layer(kernel=3)
    made(*arguments(kernel=3))
    assert made.algorithm is None and not cudnn.calls


@pytest.mark.parametrize("change", [lambda d, w, b, z: (plain(d), w, b, z),
                                    lambda d, w, b, z: (d.contiguous().as_subclass(OnGPU), w, b, z),
                                    lambda d, w, b, z: (d.double().as_subclass(OnGPU), w.double(), b.double(), z)])
def test_what_only_parts_compute(monkeypatch, clock, change):
    cudnn = Cudnn(monkeypatch)
    layer(kernel=3)(*change(*arguments(kernel=3)))
    assert not cudnn.calls
    assert layer(groups=8).algorithms(*arguments()) == layer().algorithms(*arguments()[:2], None, None) == [PARTS]


def test_a_race_is_measured_by_the_gpu(monkeypatch):
    log = []

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            log.append("record")

        def synchronize(self):
            log.append("wait")

        def elapsed_time(self, end):
            return 7

    monkeypatch.setattr(measurement, "cuda", types.SimpleNamespace(Event=Event, _sleep=lambda cycles: log.append("sleep")))
    assert measurement.gpu_milliseconds(lambda: log.append("run")) == 7.0
    assert log == ["sleep", "record", "run", "run", "run", "run", "record", "wait"]
    assert hasattr(torch.cuda, "_sleep")


@pytest.fixture
def triton(monkeypatch):
    """The kernels of Triton, as torch's operators."""
    def finish(data, shift, scale=None, residual=None, ceiling=ANY, in_place=False):
        found = data.float() * (1 if scale is None else scale.view(-1, 1, 1).float()) + shift.view(-1, 1, 1).float()
        found = found if residual is None else found + residual.float()
        found = (found if ceiling < 0 else found.clamp(0, ceiling)).to(data.dtype)
        return data.copy_(found) if in_place else found.contiguous(memory_format=torch.channels_last)

    monkeypatch.setattr(scoring_on_gpu, "available", lambda device: True)
    monkeypatch.setattr(scoring_on_gpu, "fits", lambda data: data.is_contiguous(memory_format=torch.channels_last))
    monkeypatch.setattr(scoring_on_gpu, "finish", finish)
    monkeypatch.setattr(scoring_on_gpu, "max_pool", lambda data, size, kernel, stride, pad: torch.max_pool2d(data, kernel, stride, pad))


@pytest.mark.parametrize("ceiling", [ANY, math.inf, 0.5])
@pytest.mark.parametrize("residual", [False, True])
def test_a_kernel_behind_a_convolution(triton, ceiling, residual):
    made, given = layer(ceiling, 3), arguments(kernel=3, residual=residual)
    assert made.algorithms(*given) == [*([FUSED] if ceiling >= 0 else []), KERNEL, PARTS]
    assert layer(ceiling, groups=2).algorithms(*given) == [KERNEL, PARTS]
    torch.testing.assert_close(plain(made.run(KERNEL, *given)), plain(made.run(PARTS, *given)))


@pytest.mark.parametrize("ceiling", [ANY, math.inf, 0.5])
def test_normalizations(triton, clock, ceiling):
    data = arguments(torch.float16)[0]
    scale, shift = torch.linspace(-1, 1, 8), torch.linspace(2, -2, 8)
    made = Normalization(ceiling)
    found = plain(made(data, scale, shift))
    assert made.algorithm == KERNEL and found.dtype is torch.float16
    torch.testing.assert_close(found, plain(made.run(PARTS, data, scale, shift)))


@pytest.mark.parametrize("kernel, way", [((3, 3), KERNEL), ((8, 8), PARTS)])
def test_maximum_pooling(triton, clock, kernel, way):
    data = arguments()[0]
    data = torch.cat([data] * 2, 2).contiguous(memory_format=torch.channels_last).as_subclass(OnGPU)
    data = torch.cat([data] * 2, 3).contiguous(memory_format=torch.channels_last).as_subclass(OnGPU)
    made = MaxPool(lambda t: torch.max_pool2d(t, kernel, (2, 2), (1, 1)), (5, 6), kernel, (2, 2), (1, 1))
    torch.testing.assert_close(plain(made(data)), torch.max_pool2d(plain(data), kernel, (2, 2), (1, 1)))
    assert made.algorithm == way


def test_a_way_that_gives_other_results_is_not_taken(monkeypatch, clock):
    Cudnn(monkeypatch)
    monkeypatch.setattr(torch, "cudnn_convolution_relu", lambda data, *_: torch.zeros(2, 4, 5, 6))
    made, given = layer(kernel=3), arguments(kernel=3)
    torch.testing.assert_close(plain(made(*given)), plain(made.run(PARTS, *given)))
    assert made.algorithm == PARTS


def test_kernels_are_tried_where_cudnn_has_no_call(monkeypatch, triton, clock):
    clock[KERNEL] = 0.1
    for broken, way in ((None, FUSED), (RuntimeError("no engine"), KERNEL)):
        Cudnn(monkeypatch, broken)
        made = layer(kernel=3)
        made(*arguments(kernel=3))
        assert made.algorithm == way
