"""Convolutions as they are rewritten for GPUs: what becomes part of them, in the numbers of the operators, and what stands between them."""
import numpy as np
import pytest
import torch

import mxnet as mx
from folding_checks import NETWORKS, folded, graph_of, made, native
from mxnet.gluon import nn
from mxnet.graph import GraphRunner
from mxnet.graph.backends.cuda import fused_convolutions
from mxnet.graph.backends.cuda.scoring_layers import Convolution, MaxPool, Normalization
from mxnet.graph.program import calls
from mxnet.kernels.nn import scoring_on_gpu
from mxnet.ops.elemwise.unary import amp_cast


def close(found, expected, tolerance=2e-5):
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape and a.dtype is b.dtype
        assert (a - b).abs().max() <= tolerance * b.abs().max()


REPORTS = {
    "resnet18_v1": ["cuda: 3 x convolution + batch norm", "cuda: 8 x convolution + batch norm + add + relu",
                    "cuda: 9 x convolution + batch norm + relu"],
    "resnet18_v2": ["cuda: 8 x convolution + add", "cuda: 9 x convolution + batch norm + relu"],
    "mobilenet_v2": ["cuda: 7 x convolution + batch norm", "cuda: 10 x convolution + batch norm + add",
                     "cuda: 36 x convolution + batch norm + clip"],
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
    left, right = convolution(X, no_bias=True, name="a"), mx.sym.BatchNorm(convolution(X, name="b"), name="bn")
    check(left + right, report=["cuda: 1 x convolution + add", "cuda: 1 x convolution + batch norm"])
    check(residual(False), report=["cuda: 1 x convolution + batch norm", "cuda: 1 x convolution + batch norm + add"])


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


@pytest.fixture
def triton(monkeypatch):
    """As on a GPU for which torch brings Triton. Its kernels take no tensors of a processor, so that torch computes the layers."""
    monkeypatch.setattr(scoring_on_gpu, "available", lambda device: True)
    monkeypatch.setattr(fused_convolutions, "on_tensor_cores", lambda dtype, device: True)
    monkeypatch.setattr(scoring_on_gpu, "fits", lambda data: False)


BETWEEN = {"resnet18_v1": ["cuda: 1 x max pooling"], "mobilenet_v2": [], "inception": [], "vgg11_bn": ["cuda: 5 x max pooling"],
           "resnet18_v2": ["cuda: 1 x batch norm", "cuda: 9 x batch norm + relu", "cuda: 1 x max pooling"], "dense": ["cuda: 3 x batch norm + relu"]}


@pytest.mark.parametrize("name", NETWORKS)
def test_what_stands_between_convolutions(triton, name):
    runner, inputs = graph_of(*made(NETWORKS[name]()))
    found = folded(runner, inputs)
    assert said(found) == REPORTS[name] + BETWEEN[name]
    close(found.function(*inputs), native(runner, inputs))
    count = sum(isinstance(n.target, (MaxPool, Normalization)) for n in found.run.__self__.graph.nodes)
    assert count == sum(int(line.split()[1]) for line in BETWEEN[name])


@pytest.mark.parametrize("attributes, layers", [
    ({"kernel": (3, 2), "stride": (2, 1), "pad": (1, 0)}, 1), ({"kernel": (2, 2)}, 1), ({"kernel": (3, 3), "pool_type": "avg"}, 0),
    ({"kernel": (2, 2), "stride": (2, 2), "pooling_convention": "full"}, 1), ({"kernel": (1, 1), "global_pool": True}, 0),
    ({"kernel": (2, 2), "stride": (5, 5), "pooling_convention": "full"}, 0), ({"kernel": (2, 2), "pad": (1, 1), "stride": (9, 9)}, 1)])
def test_maximum_pooling_of_all_kinds(triton, attributes, layers):
    found = check(mx.sym.Pooling(convolution(X), **{"pool_type": "max", **attributes}),
                  report=["cuda: 1 x convolution", *["cuda: 1 x max pooling"] * layers])
    assert sum(isinstance(n.target, MaxPool) for n in found.run.__self__.graph.nodes) == layers


def test_without_tensor_cores_batch_norms_stay(triton, monkeypatch):
    monkeypatch.setattr(fused_convolutions, "on_tensor_cores", lambda dtype, device: False)
    check(mx.sym.relu(mx.sym.BatchNorm(mx.sym.concat(convolution(X), X, dim=1))), report=["cuda: 1 x convolution"])
