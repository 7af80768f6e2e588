"""Convolutions as they are rewritten for GPUs: what becomes part of them, in the numbers of the operators, and how they are computed."""
import math
import types

import numpy as np
import pytest
import torch

import mxnet as mx
from folding_checks import NETWORKS, folded, graph_of, made, native
from mxnet.gluon import nn
from mxnet.graph import GraphRunner
from mxnet.graph.backends.cuda import fused_convolutions
from mxnet.graph.backends.cuda.fused_convolutions import FUSED, PARTS, PRODUCT, WIDENED, Convolution
from mxnet.graph.program import calls
from mxnet.kernels.runtime.strided_output import ANY
from mxnet.ops.elemwise.unary import amp_cast


def close(found, expected, tolerance=2e-5):
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape and a.dtype is b.dtype
        assert (a - b).abs().max() <= tolerance * b.abs().max()


REPORTS = {
    "resnet18_v1": ["cuda: 3 x convolution + batch norm", "cuda: 8 x convolution + batch norm + add + relu",
                    "cuda: 9 x convolution + batch norm + relu"],
    "resnet18_v2": ["cuda: 8 x convolution", "cuda: 9 x convolution + batch norm + relu"],
    "mobilenet_v2": ["cuda: 17 x convolution + batch norm", "cuda: 36 x convolution + batch norm + clip"],
    "vgg11_bn": ["cuda: 8 x convolution + batch norm + relu"],
    "inception": ["cuda: 6 x convolution + batch norm + relu"],
    "dense": ["cuda: 4 x convolution", "cuda: 3 x convolution + batch norm + relu"]}


def said(found):
    """What was done to convolutions."""
    return [line for line in found.explain() if line.startswith("cuda")]


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_give_the_numbers_of_their_operators(name):
    runner, inputs = graph_of(*made(NETWORKS[name]()))
    found = folded(runner, inputs)
    assert said(found) == REPORTS[name]
    close(found.function(*inputs), native(runner, inputs))


def check(symbol, *, report, x=(2, 4, 9, 8), changes=None, weights=None, tolerance=2e-5):
    """The rewritten graph of a Symbol gives what its operators give, and says what was done."""
    shapes, _, aux = symbol.infer_shape(x=x)
    rng, values = np.random.RandomState(3), {}
    for name, shape in [*zip(symbol.list_arguments(), shapes), *zip(symbol.list_auxiliary_states(), aux)]:
        low, high = (0.5, 1.5) if name.endswith(("var", "gamma")) else (-1, 1)
        values[name] = torch.from_numpy(rng.uniform(low, high, shape).astype("float32"))
    runner = GraphRunner(symbol)
    if weights is not None:
        runner.weights = tuple(i for i, name in enumerate(runner.input_names) if name in weights)
    inputs = [values[name] if changes is None else changes(name, values[name]) for name in runner.input_names]
    found = folded(runner, inputs)
    if report is None:
        assert found is None
        return None
    assert said(found) == report
    close(found.function(*inputs), native(runner, inputs), tolerance)
    return found


def convolution(data, name="conv", **kwargs):
    return mx.sym.Convolution(data, name=name, **{"kernel": (3, 3), "num_filter": 6, "pad": (1, 1), **kwargs})


X = mx.sym.var("x")


@pytest.mark.parametrize("attributes", [{"fix_gamma": True}, {"fix_gamma": False, "eps": 0.1}, {"use_global_stats": True}])
@pytest.mark.parametrize("no_bias", [False, True])
def test_batch_norms_of_all_kinds(attributes, no_bias):
    out = mx.sym.relu(mx.sym.BatchNorm(convolution(X, no_bias=no_bias), **attributes))
    check(out, report=["cuda: 1 x convolution + batch norm + relu"])


@pytest.mark.parametrize("scale, center", [(True, False), (False, True), (False, False)])
def test_layers_without_scale_or_center(scale, center):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3), nn.BatchNorm(scale=scale, center=center), nn.Activation("relu"))
    runner, inputs = graph_of(*made(net))
    found = folded(runner, inputs)
    assert said(found) == ["cuda: 1 x convolution + batch norm + relu"]
    close(found.function(*inputs), native(runner, inputs))


@pytest.mark.parametrize("kwargs", [{"stride": (2, 1)}, {"dilate": (2, 2), "pad": (2, 2)}, {"num_group": 2}, {"num_group": 4, "num_filter": 4},
                                    {"kernel": (1, 1), "pad": (0, 0)}, {"kernel": (1, 3), "pad": (0, 1)}])
def test_convolutions_of_all_kinds(kwargs):
    check(mx.sym.relu(mx.sym.BatchNorm(convolution(X, **kwargs), fix_gamma=False)), report=["cuda: 1 x convolution + batch norm + relu"])


@pytest.mark.parametrize("make, report", [
    (lambda: mx.sym.relu(convolution(X)), ["cuda: 1 x convolution + relu"]),
    (lambda: mx.sym.clip(convolution(X, no_bias=True), a_min=0, a_max=0.5), ["cuda: 1 x convolution + clip"]),
    (lambda: convolution(X), ["cuda: 1 x convolution"]),
    (lambda: convolution(X, kernel=(1, 1), pad=(0, 0)), None),  # nothing to gain
    (lambda: mx.sym.BatchNorm(X), None),
    (lambda: mx.sym.BatchNorm(convolution(X), axis=2), ["cuda: 1 x convolution"]),
    (lambda: mx.sym.BatchNorm(convolution(X), output_mean_var=True)[0], ["cuda: 1 x convolution"]),
    (lambda: mx.sym.Convolution(X.reshape((0, 0, -1)), kernel=(3,), num_filter=2), None)])
def test_what_follows_a_convolution(make, report):
    check(make(), report=report)


def test_what_is_read_twice_is_computed_by_itself():
    conv = convolution(X)
    check(mx.sym.Group([mx.sym.relu(mx.sym.BatchNorm(conv, name="bn")), conv]), report=["cuda: 1 x convolution"])
    norm = mx.sym.BatchNorm(convolution(X), name="bn")
    check(mx.sym.Group([mx.sym.relu(norm), mx.sym.sum(norm)]), report=["cuda: 1 x convolution + batch norm"])


def test_several_heads_and_shared_weights():
    weight = mx.sym.var("w")
    first = convolution(X, weight=weight, name="a", no_bias=True, num_filter=4)
    second = convolution(mx.sym.relu(mx.sym.BatchNorm(first, name="n")), weight=weight, name="b", no_bias=True, num_filter=4)
    check(mx.sym.Group([mx.sym.relu(mx.sym.BatchNorm(second, name="m")), mx.sym.softmax(second.mean((2, 3)))]),
          report=["cuda: 1 x convolution", "cuda: 1 x convolution + batch norm + relu"])


def residual(relu):
    left = mx.sym.BatchNorm(convolution(X, name="a"), name="an")
    right = mx.sym.BatchNorm(convolution(X, name="b", kernel=(1, 1), pad=(0, 0)), name="bn")
    return mx.sym.relu(left + right) if relu else left + right


def test_the_bias_of_what_is_added_is_added_with_the_other():
    found = check(residual(True), report=["cuda: 1 x convolution + batch norm", "cuda: 1 x convolution + batch norm + add + relu"])
    nodes = [n for n in found.run.__self__.graph.nodes if isinstance(n.target, Convolution)]
    assert [n.args[2] is None for n in nodes] == [True, False]
    check(residual(False), report=["cuda: 2 x convolution + batch norm"])


def test_a_sum_that_a_relu_follows_when_it_is_no_convolution():
    check(mx.sym.relu(mx.sym.BatchNorm(convolution(X, num_filter=4)) + X), report=["cuda: 1 x convolution + batch norm + add + relu"])
    check(mx.sym.relu(mx.sym.broadcast_add(convolution(X, num_filter=4), mx.sym.mean(X, axis=1, keepdims=True))), report=["cuda: 1 x convolution"])
    conv = convolution(X)
    check(mx.sym.relu(conv + conv), report=["cuda: 1 x convolution"])


def test_variables_between_operators_and_dropout():
    """The graph's inputs come in the order of its operators: weights of the second layer behind the first one."""
    out = mx.sym.Dropout(mx.sym.relu(mx.sym.BatchNorm(convolution(X), name="n")), p=0.3)
    check(mx.sym.FullyConnected(out, num_hidden=3), report=["cuda: 1 x convolution + batch norm + relu"])
    check(out, report=["cuda: 1 x convolution + batch norm + relu"])


def test_weights_that_are_data_stay_data():
    out = mx.sym.relu(mx.sym.BatchNorm(convolution(X), name="n"))
    check(out, report=None, weights=[])
    moments = [mx.sym.var("n_gamma"), mx.sym.var("n_beta"), mx.sym.square(mx.sym.var("mean")), mx.sym.var("var")]
    check(mx.sym.relu(mx.sym.BatchNorm(convolution(X), *moments, name="n")), report=["cuda: 1 x convolution"])  # a moment is computed


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_with_parameters_in_float32(dtype):
    def changes(name, value):
        return value.to(dtype) if name.startswith(("x", "conv")) else value
    eps = torch.finfo(dtype).eps
    check(mx.sym.relu(mx.sym.BatchNorm(convolution(X), name="n", fix_gamma=False)), changes=changes, tolerance=4 * eps,
          report=["cuda: 1 x convolution + batch norm + relu"])
    check(convolution(X), changes=lambda name, value: value.double(), report=None)


def test_mixed_precision_casts_weights_when_they_change():
    def brief(data):
        return mx.sym.amp_cast(data, dtype="bfloat16")
    first, v = convolution(brief(X), weight=brief(mx.sym.var("w")), bias=brief(mx.sym.var("b"))), mx.sym.var("v", shape=(6, 6, 1, 1))
    out = convolution(mx.sym.relu(mx.sym.BatchNorm(first, name="n")), weight=brief(v), no_bias=True, kernel=(1, 1), pad=(0, 0), name="d")
    found = check(mx.sym.Group([out, brief(v)]), tolerance=0.02, weights=("w", "b", "v", "n_gamma", "n_beta", "n_moving_mean", "n_moving_var"),
                  report=["cuda: 1 x convolution + batch norm + relu", "cuda: 2 x weight cast when it changes"])
    graph = found.run.__self__.graph
    assert sum(calls(n, amp_cast) for n in graph.nodes) == 2  # of the data, and of a weight that is a result, too


@pytest.mark.parametrize("variables", [{"MXNET_USE_FUSION": "0"}, {"MXNET_CONVOLUTION_ALGORITHM": "exact"}, {}])
def test_who_forbids_it(monkeypatch, variables):
    runner, inputs = graph_of(*made(NETWORKS["inception"]()))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert folded(runner, inputs, exact=not variables) is None


def test_a_rewriting_that_fails_leaves_the_graph_as_it_was(monkeypatch):
    runner, inputs = graph_of(*made(NETWORKS["inception"]()))
    monkeypatch.setattr(fused_convolutions, "apply", lambda *_: 1 / 0)
    assert folded(runner, inputs) is None


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
    found = {FUSED: 1.0, PRODUCT: 2.0, PARTS: 3.0}
    monkeypatch.setattr(fused_convolutions, "_milliseconds", lambda run: found[run.args[0]])
    monkeypatch.setattr(fused_convolutions, "_cuda", types.SimpleNamespace(is_current_stream_capturing=lambda: False))
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
    assert made.ways(*given) == ways
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
    assert made.way == fastest
    before = len(cudnn.calls)
    made(*given)
    assert len(cudnn.calls) - before == (fastest == FUSED)


def test_where_nothing_may_race_the_first_that_works_is_taken(monkeypatch, clock):
    monkeypatch.setenv("MXNET_CUDNN_AUTOTUNE_DEFAULT", "0")
    clock.clear()
    Cudnn(monkeypatch)
    made = layer(kernel=3)
    made(*arguments(kernel=3))
    assert made.way == FUSED


def test_what_cudnn_does_not_know_is_computed_in_parts(monkeypatch, clock):
    cudnn = Cudnn(monkeypatch, RuntimeError("no engine"))
    made, given = layer(kernel=3), arguments(kernel=3)
    for _ in range(2):
        torch.testing.assert_close(plain(made(*given)), plain(made.run(PARTS, *given)))
    assert made.way == PARTS and cudnn.calls == ["relu"]
    Cudnn(monkeypatch, torch.OutOfMemoryError("CUDA out of memory"))
    with pytest.raises(torch.OutOfMemoryError):
        layer(kernel=3)(*given)


def test_while_it_is_captured_nothing_races(monkeypatch, clock):
    cudnn = Cudnn(monkeypatch)
    fused_convolutions._cuda.is_current_stream_capturing = lambda: True
    made = layer(kernel=3)
    made(*arguments(kernel=3))
    assert made.way is None and not cudnn.calls


@pytest.mark.parametrize("change", [lambda d, w, b, z: (plain(d), w, b, z),
                                    lambda d, w, b, z: (d.contiguous().as_subclass(OnGPU), w, b, z),
                                    lambda d, w, b, z: (d.double().as_subclass(OnGPU), w.double(), b.double(), z)])
def test_what_only_parts_compute(monkeypatch, clock, change):
    cudnn = Cudnn(monkeypatch)
    layer(kernel=3)(*change(*arguments(kernel=3)))
    assert not cudnn.calls
    assert layer(groups=8).ways(*arguments()) == [PARTS]


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

    monkeypatch.setattr(fused_convolutions, "_cuda", types.SimpleNamespace(Event=Event, _sleep=lambda cycles: log.append("sleep")))
    assert fused_convolutions._milliseconds(lambda: log.append("run")) == 7.0
    assert log == ["sleep", "record", "run", "run", "run", "run", "record", "wait"]
    assert hasattr(torch.cuda, "_sleep")
