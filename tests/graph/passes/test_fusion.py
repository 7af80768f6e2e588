import numpy as np
import pytest
import torch

import mxnet as mx
from kernel_limits import tuned_from, used_from
from mxnet import kernels, nd
from mxnet.graph import lower
from mxnet.graph.backends import registry
from mxnet.graph.passes import fusion, pooling_order
from mxnet.graph.program import copied
from mxnet.kernels.conv import convolution
from mxnet.kernels.nn import batch_norm as fused
from mxnet.ops.nn.training_layers import add_bias
from residual import lowered, numbers, trained


@pytest.mark.parametrize("kernel", [True, False])
def test_a_hybridized_block_trains_as_its_operators_do(kernel, monkeypatch):
    if kernel and kernels.load("nn/batch_norm") is None:
        pytest.skip("no C++ compiler")
    used_from(monkeypatch, 0 if kernel else 1 << 40, fused)
    expected, _ = trained(False)
    found, net = trained(True)
    report = net._cached_op.handle.reports[True, torch.device("cpu")]
    assert report == ["layout: 3 convolutions with channels last, 1 arrays reordered before and 1 after them",
                      "fusion: 1 x batch norm", "fusion: 1 x batch norm + relu", "fusion: 1 x batch norm + add + relu",
                      "kernels: 3 x convolution"]
    for f, e in zip(found, expected):
        np.testing.assert_allclose(f, e, rtol=2e-3, atol=1e-5 * np.abs(e).max() + 1e-6)


@pytest.mark.parametrize("use", ["twice", "output", "global", "axis"])
def test_fusion_keeps_what_is_used_otherwise(use):
    x = mx.sym.var("x")
    norm = mx.sym.BatchNorm(x, name="bn", use_global_stats=use == "global", axis=2 if use == "axis" else 1)
    out = {"twice": mx.sym.relu(norm) + norm, "output": mx.sym.Group([mx.sym.relu(norm), norm])}.get(use, mx.sym.relu(norm))
    module = lowered(out)
    report = fusion.fuse_batch_norms(module)
    assert report == ([] if use in ("global", "axis") else ["fusion: 1 x batch norm"])


def biased(**given):
    """A convolution with a bias, a batch norm and ReLU."""
    attributes = {"kernel": (3, 3), "num_filter": 4, "name": "conv", **given.pop("convolution", {})}
    conv = mx.sym.Convolution(mx.sym.var("x"), **attributes)
    return conv, mx.sym.relu(mx.sym.BatchNorm(conv, name="norm", **given))


LEFT = "fusion: 1 x bias of a convolution left to the batch norm behind it"


@pytest.mark.parametrize("given, taken", [
    ({}, True), ({"fix_gamma": False}, True), ({"convolution": {"layout": "NCHW"}}, True), ({"convolution": {"no_bias": True}}, False),
    ({"use_global_stats": True}, False), ({"axis": 3}, False), ({"axis": 3, "convolution": {"layout": "NHWC"}}, False),
    ({"convolution": {"layout": "NHWC"}}, False)])
def test_on_gpus_a_batch_norm_takes_the_bias_before_it(given, taken):
    conv, out = biased(**given)
    module = lowered(out)
    report = fusion.fuse_batch_norms(module, on_gpu=True)
    assert (LEFT in report) is taken
    assert [len(n.args) for n in module.graph.nodes if n.meta.get("node") is not None and n.meta["node"].name == "conv"] == [
        2 if taken or given.get("convolution", {}).get("no_bias") else 3]
    assert [n.kwargs["bias"].name for n in module.graph.nodes if "bias" in n.kwargs] == ["variable_2"] * taken  # of x, conv_weight, conv_bias
    module.graph.lint()
    assert not any("bias of a conv" in line for line in fusion.fuse_batch_norms(lowered(out)))  # on a CPU


def test_a_bias_stays_where_the_convolution_is_read_otherwise():
    conv, out = biased()
    assert LEFT not in fusion.fuse_batch_norms(lowered(mx.sym.Group([out, conv])), on_gpu=True)
    assert LEFT not in fusion.fuse_batch_norms(lowered(out + mx.sym.mean(conv)), on_gpu=True)


def convolved(x, name="conv", **attributes):
    return mx.sym.Convolution(x, **{"kernel": (3, 3), "num_filter": 4, "pad": (1, 1), "name": name, **attributes})


def pooled(x, **attributes):
    return mx.sym.Pooling(x, **{"kernel": (2, 2), "stride": (2, 2), "pool_type": "max", **attributes})


X = mx.sym.var("x")
# Graphs with a bias that moves: the symbol, the lines of the report, and the targets behind the convolution, in order.
MOVED = {
    "relu": (mx.sym.relu(convolved(X)), ["1 x bias + relu"], "add_bias"),
    "activation": (mx.sym.Activation(convolved(X, layout="NCHW"), act_type="relu"), ["1 x bias + relu"], "add_bias"),
    "groups": (mx.sym.relu(convolved(mx.sym.concat(X, X), num_group=2)), ["1 x bias + relu"], "add_bias"),
    "alone": (convolved(X), ["1 x bias"], "add_bias"),
    "other activation": (mx.sym.tanh(convolved(X)), ["1 x bias"], "add_bias tanh"),
    "pooling": (pooled(mx.sym.relu(convolved(X))), ["1 x bias + relu", "1 x bias behind the maximum pooling"], "max_pool_with_bias"),
    "padding": (pooled(mx.sym.relu(convolved(X)), kernel=(3, 3), pad=(1, 1), layout="NCHW"),
                ["1 x bias + relu", "1 x bias behind the maximum pooling"], "max_pool_with_bias"),
    "pooling without relu": (pooled(convolved(X)), ["1 x bias", "1 x bias behind the maximum pooling"], "max_pool_with_bias"),
    "two poolings": (mx.sym.relu(pooled(pooled(convolved(X)), global_pool=True)), ["1 x bias + relu", "1 x bias behind the maximum pooling"],
                     "Pooling Pooling add_bias"),
    "one pooling after another": (mx.sym.relu(pooled(pooled(convolved(X)))), ["1 x bias + relu", "1 x bias behind the maximum pooling"],
                                  "Pooling max_pool_with_bias"),
    "average": (pooled(mx.sym.relu(convolved(X)), pool_type="avg"), ["1 x bias + relu"], "add_bias Pooling"),
    "pooling of the padding": (pooled(convolved(X), pad=(1, 1), pooling_convention="full"), ["1 x bias"], "add_bias Pooling"),
    "pooling of other axes": (pooled(convolved(X), layout="NHWC"), ["1 x bias"], "add_bias Pooling"),
    "two readers": (mx.sym.relu(convolved(X)) + mx.sym.var("y"), ["1 x bias + relu"], "add_bias elemwise_add"),
}


def two_readers():
    out = convolved(X)
    return mx.sym.relu(out) + out


MOVED["relu and another reader"] = two_readers(), ["1 x bias"], "add_bias relu elemwise_add"


def names_behind(module, name):
    nodes = list(module.graph.nodes)
    at = next(i for i, n in enumerate(nodes) if n.meta.get("node") is not None and n.meta["node"].name == name)
    return " ".join(n.meta["node"].op.name if "node" in n.meta else n.target.__name__ for n in nodes[at + 1:-1] if n.op == "call_function")


def gradients(module, inputs):
    leaves = [t.clone().requires_grad_() for t in inputs]
    out, = module(*leaves)
    return [out, *torch.autograd.grad(out, leaves, torch.cos(torch.arange(out.numel())).view(out.shape))]


@pytest.mark.parametrize("name", MOVED)
def test_on_gpus_biases_of_convolutions_are_added_with_the_relu_behind_them(name):
    symbol, report, names = MOVED[name]
    shapes = dict(zip(symbol.list_inputs(), symbol.infer_shape(x=(2, 4, 9, 8))[0]))
    module, plain = lowered(symbol), lowered(symbol)
    pooling_order.apply(module)
    assert fusion.fuse_biases(module) == [f"fusion: {line}" for line in report]
    fusion.rectify_in_place(module)
    module.graph.lint()
    assert names_behind(module, "conv") == names
    assert fusion.fuse_biases(module) == []
    inputs = [numbers(*shapes[n.meta["node"].name], seed=i) for i, n in enumerate(module.graph.nodes) if n.op == "placeholder"]
    torch.testing.assert_close(gradients(module, inputs), gradients(plain, inputs), rtol=1e-4, atol=1e-5)


UNMOVED = {
    "no bias": mx.sym.relu(convolved(X, no_bias=True)), "channels last": mx.sym.relu(convolved(X, layout="NHWC")),
    "one axis": mx.sym.relu(convolved(X, kernel=(3,), pad=(1,))), "three axes": mx.sym.relu(convolved(X, kernel=(1, 1, 1), pad=(0, 0, 0))),
    "transposed": mx.sym.relu(mx.sym.Deconvolution(X, kernel=(2, 2), num_filter=4, no_bias=False, name="conv")),
    "dense": mx.sym.relu(mx.sym.FullyConnected(X, num_hidden=4, name="conv"))}


@pytest.mark.parametrize("name", UNMOVED)
def test_biases_of_other_layers_stay(name):
    module = lowered(UNMOVED[name])
    assert fusion.fuse_biases(module) == []


@pytest.mark.parametrize("device, training, biases", [("cuda", True, 1), ("cuda", False, 0), ("cpu", True, 0)])
def test_biases_are_fused_for_training_on_gpus_alone_and_batch_norms_take_theirs_first(device, training, biases):
    symbol = mx.sym.relu(convolved(biased()[1], "other"))
    module = copied(lower(symbol.handle, training, torch.device("cpu")))
    report = registry.prepare(module, torch.device(device), training=training)
    assert sum("x bias + relu" in line for line in report) == biases and (LEFT in report) is (device == "cuda" and training)
    assert sum(n.target is add_bias for n in module.graph.nodes) == biases
    module = copied(lower(symbol.handle, training, torch.device("cpu")))
    registry.prepare(module, torch.device(device), fuse=False, training=training)
    assert not any(n.target is add_bias for n in module.graph.nodes)


def test_on_gpus_batch_norms_are_fused_for_training_alone():
    module = copied(lower(biased()[1].handle, False, torch.device("cpu")))
    assert fusion.fuse_batch_norms(module, on_gpu=True) == []


_LARGE = {  # of all that ReLU may overwrite, large enough for kernels of our own: the symbol, the result and the data's gradient
    "Convolution": (lambda x: mx.sym.Convolution(x, kernel=(1, 1), num_filter=16, no_bias=True), 8, 8),
    "Deconvolution": (lambda x: mx.sym.Deconvolution(x, kernel=(2, 2), stride=(2, 2), num_filter=16), 8, 32),
    "Deconvolution, biased": (lambda x: mx.sym.Deconvolution(x, kernel=(2, 2), stride=(2, 2), num_filter=16, no_bias=False), 8.5, 32),
    "FullyConnected": (lambda x: mx.sym.FullyConnected(x, num_hidden=16, flatten=False, no_bias=True), 32, 8),
    "elemwise_add": (lambda x: mx.sym.elemwise_add(x, x), 2, 2),
}


@pytest.mark.parametrize("name", _LARGE)
def test_relu_behind_a_large_layer_trains(name):
    layer, result, gradient = _LARGE[name]
    executor = mx.sym.relu(layer(mx.sym.var("x"))).simple_bind(mx.cpu(), x=(4, 16, 64, 64))
    for key, array in executor.arg_dict.items():
        array[:] = 1 if key == "x" else 0.5
    out, = executor.forward(is_train=True)
    executor.backward(nd.ones(out.shape))
    assert np.unique(out.asnumpy()).tolist() == [result]
    assert np.unique(executor.grad_dict["x"].asnumpy()).tolist() == [gradient]


def test_relu_overwrites_only_what_nothing_else_reads():
    x = mx.sym.var("x")
    shared = mx.sym.FullyConnected(x, num_hidden=2, name="a")
    out = mx.sym.Group([mx.sym.relu(mx.sym.FullyConnected(x, num_hidden=2, name="b")), mx.sym.relu(shared) + shared, mx.sym.relu(x),
                        mx.sym.relu(mx.sym.tanh(x))])
    module = lowered(out)
    assert fusion.rectify_in_place(module) == ["memory: 1 x relu in place"]


@pytest.mark.parametrize("bidirectional", [False, True])
def test_recurrent_layers_train_without_a_copy_of_their_parameters(bidirectional):
    found = []
    for hybrid in (False, True):
        mx.random.seed(3)
        net = mx.gluon.rnn.LSTM(4, 2, bidirectional=bidirectional, input_size=3)
        net.initialize(mx.init.Xavier())
        if hybrid:
            net.hybridize()
        x = nd.random.normal(shape=(5, 2, 3))
        x.attach_grad()
        with mx.autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        found.append([loss.asnumpy(), x.grad.asnumpy(), *[p.grad().asnumpy() for p in net.collect_params().values()]])
    assert net._cached_op.handle.reports[True, torch.device("cpu")] == ["memory: 1 x recurrent layers without a copy of their parameters"]
    for imperative, traced in zip(*found):
        np.testing.assert_allclose(traced, imperative, rtol=1e-5, atol=1e-7)


def two_convolutions(monkeypatch, **flags):
    """Training steps of a network with a convolution that may take fewer multiplications, and one that may not; what explains it."""
    if kernels.load("conv/winograd") is None or kernels.load("conv/convolution") is None:
        pytest.skip("no C++ compiler")
    used_from(monkeypatch, 0, convolution)
    tuned_from(monkeypatch, 0, convolution)
    monkeypatch.setattr(convolution.autotuner, "fastest", lambda key, runs: "Winograd F(4x4)" if "Winograd F(4x4)" in runs else "direct")
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Conv2D(32, 1, in_channels=16), mx.gluon.nn.Conv2D(16, 3, padding=1, in_channels=32))
    net.initialize()
    net.hybridize(**flags)
    for _ in range(2):  # the first puts the weights in order
        with mx.autograd.record():
            net(nd.ones((2, 16, 9, 9))).backward()
    return net._cached_op.handle.explain()


def test_explain_says_what_computed_the_convolutions(monkeypatch):
    lines = [line.strip() for line in two_convolutions(monkeypatch).splitlines()]
    assert "kernels: 2 x convolution" in lines
    assert "convolutions, forward: 1 x Winograd F(4x4), 1 x direct" in lines
    assert "convolutions, gradient of data: 1 x Winograd F(4x4)" in lines  # the image needs none


@pytest.mark.parametrize("backend", [None, "native"])
def test_hybridize_asks_for_exact_convolutions(backend, monkeypatch):
    lines = two_convolutions(monkeypatch, backend=backend, exact=True)
    assert "convolutions, forward: 2 x direct" in lines or backend
    assert "Winograd" not in lines


def test_the_environment_asks_for_exact_convolutions(monkeypatch):
    monkeypatch.setenv("MXNET_CONVOLUTION_ALGORITHM", "exact")
    lines = [line.strip() for line in two_convolutions(monkeypatch).splitlines()]
    assert "kernels: 2 x convolution, exact" in lines
    assert "convolutions, forward: 2 x direct" in lines
    monkeypatch.setenv("MXNET_CONVOLUTION_ALGORITHM", "approximate")
    with pytest.raises(mx.MXNetError, match="MXNET_CONVOLUTION_ALGORITHM must be fastest or exact, received 'approximate'"):
        two_convolutions(monkeypatch)
