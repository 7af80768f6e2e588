"""The backend of our own kernels: what becomes one layer, when it takes over, and that weights that change are seen."""
import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import nd
from mxnet.gluon import nn
from mxnet.graph.backends.cpu import backend as own
from mxnet.graph.program import calls
from mxnet.graph.tuning import policy
from mxnet.kernels.nn import pooling_nhwc
from mxnet.kernels.runtime.measurement import Outcome
from mxnet.ops.nn.dropout import dropout

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def small(monkeypatch, kernels_compute_all):
    """The backend takes small graphs, too."""
    monkeypatch.setattr(own, "LEAST_WORK", 0)


class Residual(nn.HybridBlock):
    """Convolutions with all that may follow them."""

    def __init__(self, filters=32):
        super().__init__()
        with self.name_scope():
            self.first = nn.Conv2D(16, 3, padding=1, in_channels=3)
            self.body = nn.Conv2D(filters, 3, padding=1, in_channels=16, use_bias=False)
            self.norm = nn.BatchNorm(in_channels=filters)
            self.side = nn.Conv2D(filters, 1, in_channels=16)
            self.side_norm = nn.BatchNorm(in_channels=filters, scale=False)
            self.last = nn.Conv2D(16, 3, strides=2, in_channels=filters, activation="relu")
            self.alone = nn.BatchNorm(in_channels=16)
            self.out = nn.Dense(5, in_units=16 * 5 * 5)

    def hybrid_forward(self, F, x):
        x = F.relu(self.first(x))
        x = F.relu(self.norm(self.body(x)) + self.side_norm(self.side(x)))
        return self.out(self.alone(F.Pooling(self.last(x), kernel=(2, 2), stride=(2, 2), pool_type="max")))


def network(seed=0):
    net = Residual()
    net.initialize()
    rng = np.random.RandomState(seed)
    for name, p in net.collect_params().items():
        low, high = (0.5, 1.5) if name.endswith(("var", "gamma")) else (-0.3, 0.3)
        p.set_data(nd.array(rng.uniform(low, high, p.shape)))
    return net


def image():
    return nd.array(np.random.RandomState(1).uniform(-1, 1, (2, 3, 23, 23)))


def test_what_follows_convolutions_becomes_part_of_them():
    net, x = network(), image()
    expected = net(x).asnumpy()
    net.hybridize(backend="kernels")
    np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-4, atol=1e-5)
    lines = [line.strip() for line in net.explain().splitlines()]
    assert "kernels: 1 x convolution + batch norm" in lines and "kernels: 1 x convolution + batch norm + add + relu" in lines
    assert "kernels: 2 x convolution + relu" in lines and "fusion: 1 x batch norm" in lines
    assert "convolutions, forward: 1 x Winograd F(4x4), 3 x direct" in lines


class Bounded(nn.HybridBlock):
    """Bounds that are part of a convolution, and one that is not: it begins above 0."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.first = nn.Conv2D(16, 3, padding=1, in_channels=3)
            self.second = nn.Conv2D(16, 3, padding=1, in_channels=16)
            self.third = nn.Conv2D(20, 1, in_channels=16)

    def hybrid_forward(self, F, x):
        return F.clip(self.third(F.clip(self.second(F.clip(self.first(x), 0, 0.25)), 0, 0.5)), 0.25, 0.5)


def test_bounds_become_part_of_convolutions():
    net, x = Bounded(), image()
    net.initialize(mx.init.Uniform(0.5))
    expected = net(x).asnumpy()
    assert expected.min() == 0.25 and expected.max() == 0.5
    net.hybridize(backend="kernels")
    np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-4, atol=1e-5)
    lines = [line.strip() for line in net.explain().splitlines()]
    assert "kernels: 2 x convolution + clip" in lines and "kernels: 1 x convolution" in lines


def pooled(**attributes):
    """A network of a convolution and a pooling layer, with its data."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(16, 3, padding=1, in_channels=3), nn.HybridLambda(lambda F, x: F.Pooling(x, **attributes)))
    net.initialize(mx.init.Xavier())
    return net, nd.array(np.random.RandomState(1).uniform(-1, 1, (2, 3, 11, 14)))


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("attributes", [
    {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "pool_type": "max"}, {"kernel": (2, 3), "pool_type": "avg"},
    {"kernel": (3, 2), "stride": (2, 3), "pad": (1, 0), "pool_type": "avg", "count_include_pad": False},
    {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "pool_type": "avg", "pooling_convention": "full"},
    {"kernel": (3, 3), "stride": (2, 2), "pool_type": "max", "pooling_convention": "full"},
    {"global_pool": True, "pool_type": "avg", "kernel": (2, 2)}, {"global_pool": True, "pool_type": "max"}])
def test_pooling_of_what_convolutions_make(attributes, kernel, monkeypatch):
    net, x = pooled(**attributes)
    expected = net(x).asnumpy()
    if not kernel:
        monkeypatch.setattr(pooling_nhwc._forward, "plan", lambda *_: None)
    net.hybridize(backend="kernels")
    for _ in range(3):
        np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-4, atol=1e-5)
    assert "kernels: 1 x pooling\n" in net.explain()


@pytest.mark.parametrize("attributes", [{"kernel": (3, 3), "pool_type": "sum"}, {"kernel": (2, 2), "pool_type": "lp", "p_value": 2}])
def test_pooling_of_other_kinds(attributes):
    net, x = pooled(**attributes)
    expected = net(x).asnumpy()
    net.hybridize(backend="kernels")
    np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-4, atol=1e-5)
    assert "x pooling" not in net.explain()


@pytest.mark.parametrize("mode, count", [("training", 0), ("always", 1)])
def test_dropout_that_drops_nothing_is_left_out(mode, count):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(16, 3, in_channels=3), nn.HybridLambda(lambda F, x: F.Dropout(x, 0.5, mode=mode)), nn.Conv2D(16, 3, in_channels=16))
    net.initialize()
    net.hybridize(backend="kernels")
    net(image())
    state, = net._cached_op.handle.states.values()
    assert sum(calls(n, dropout) for n in state.program.graph.nodes) == count


def test_dropout_of_the_data_itself_returns_another_array():
    net = nn.HybridSequential()
    net.add(nn.Dropout(0.5), nn.HybridLambda(lambda F, x: [x, F.Convolution(x, F.ones((16, 3, 1, 1)), kernel=(1, 1), num_filter=16, no_bias=True)]))
    net.hybridize(backend="kernels")
    x = image()
    for _ in range(2):
        same = net(x)[0]
        assert same._data.data_ptr() != x._data.data_ptr()


class Branches(nn.HybridBlock):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2D(16, 3, padding=1, in_channels=16, activation="relu")
        self.second, self.third = (nn.Conv2D(n, 3, padding=1, in_channels=16) for n in (24, 8))

    def hybrid_forward(self, F, x):
        first, second, third = self.first(x), self.second(x), self.third(x)
        one = F.concat(first, F.Pooling(x, kernel=(3, 3), pad=(1, 1)), second, third, third, dim=1)
        return F.relu(F.concat(one, first, dim=1)), F.concat(self.second(F.sin(x)), x, dim=2 if x is None else 1) * 2


def test_convolutions_write_to_their_part_of_a_concatenation():
    net, x = Branches(), nd.array(np.random.RandomState(1).uniform(-1, 1, (3, 16, 20, 21)))
    net.initialize(mx.init.Xavier())
    expected = [found.asnumpy() for found in net(x)]
    net.hybridize(backend="kernels")
    for _ in range(3):
        for found, want in zip(net(x), expected, strict=True):
            np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-4, atol=1e-5)
    # Of the four that are concatenated one is read twice, and one again by another.
    assert "kernels: 2 x convolution into a concatenation" in net.explain()
    other = nd.array(np.random.RandomState(2).uniform(-1, 1, (3, 16, 20, 21)))
    kept = net(x)[0]
    before = kept.asnumpy()
    net(other)[0].wait_to_read()  # each call has an array of its own
    np.testing.assert_array_equal(kept.asnumpy(), before)


@pytest.mark.parametrize("weights", ["float32", "bfloat16"])
def test_fully_connected_layers_keep_their_weights(weights):
    mx.random.seed(2)
    net = nn.HybridSequential()
    net.add(nn.Dense(40, activation="relu", flatten=False), nn.Dense(30, flatten=False, use_bias=False), nn.Dense(3))
    net.initialize(mx.init.Normal(0.3))
    x = nd.random.normal(shape=(2, 4, 5))
    expected = net(x).asnumpy()
    if weights == "bfloat16":
        for p in net.collect_params(".*weight").values():
            p.set_data(p.data().astype("bfloat16").astype("float32"))
        rounded = net(x).asnumpy()
        assert 0 < np.abs(rounded - expected).max() < 0.02 * np.abs(expected).max()
        expected = rounded
    net.hybridize(backend="kernels", weights=weights)
    np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-5, atol=1e-6)
    told = ", weights in bfloat16" if weights == "bfloat16" else " in 2 calls"  # the third one flattens what the others keep apart
    assert f"kernels: 3 x fully connected layer{told}\n" in net.explain() + "\n"
    net[2].weight.set_data(nd.zeros((3, 120)))
    np.testing.assert_allclose(net(x).asnumpy(), 0, atol=1e-7)


def test_weights_in_bfloat16_are_rounded_and_nothing_else(monkeypatch):
    net = nn.Dense(64, in_units=512, use_bias=False)
    net.initialize(mx.init.Uniform(1))
    x = nd.random.uniform(0.5, 1, shape=(1, 512))
    exact = x.asnumpy().astype("float64") @ net.weight.data().asnumpy().astype("float64").T
    terms = np.abs(x.asnumpy()) @ np.abs(net.weight.data().asnumpy()).T
    net.hybridize(backend="kernels", weights="bf16")
    error = np.abs(net(x).asnumpy() - exact) / terms
    assert 1e-6 < error.max() < 2 ** -9  # of each product


def test_unknown_weights_are_refused():
    net = nn.Dense(2, in_units=2)
    net.initialize()
    net.hybridize(backend="kernels", weights="float16")
    with pytest.raises(mx.MXNetError, match="`weights` must be 'float32' or 'bfloat16', received 'float16'"):
        net(nd.ones((1, 2)))


def test_exact_is_an_option_and_a_variable(monkeypatch):
    net, x = network(), image()
    net.hybridize(backend="kernels", exact=True)
    net(x)
    assert "convolutions, forward: 4 x direct" in net.explain()
    monkeypatch.setenv("MXNET_CONVOLUTION_ALGORITHM", "exact")
    net.hybridize(backend="kernels")
    net(x)
    assert "convolutions, forward: 4 x direct" in net.explain()
    monkeypatch.delenv("MXNET_CONVOLUTION_ALGORITHM")
    net.optimize_for(x, backend="kernels", exact=True, clear=True)
    net(x)
    assert "convolutions, forward: 4 x direct" in net.explain()
    net.optimize_for(x, backend="kernels", exact="yes", clear=True)
    with pytest.raises(mx.MXNetError, match="backend 'kernels': `exact` must be True or False, received 'yes'"):
        net(x)


@pytest.mark.parametrize("which", ["body", "norm", "alone"])
def test_weights_that_change_are_seen(which):
    net, x = network(), image()
    net.hybridize(backend="kernels")
    before = net(x).asnumpy()
    layer = getattr(net, which)
    (layer.weight if which == "body" else layer.running_mean).data()[:] = 0.25
    after = net(x).asnumpy()
    net.hybridize(False)
    assert not np.allclose(before, after)
    np.testing.assert_allclose(after, net(x).asnumpy(), rtol=1e-4, atol=1e-5)


def test_what_is_used_otherwise_stays():
    class Shared(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2D(16, 3, padding=1, in_channels=16), nn.BatchNorm(in_channels=16)

        def hybrid_forward(self, F, x):
            y = self.conv(x)
            return F.relu(self.norm(y)) + y, y + y

    net = Shared()
    net.initialize()
    x = nd.array(np.random.RandomState(1).uniform(-1, 1, (1, 16, 6, 6)))
    expected = net(x)
    net.hybridize(backend="kernels")
    for found, e in zip(net(x), expected):
        np.testing.assert_allclose(found.asnumpy(), e.asnumpy(), rtol=1e-4, atol=1e-5)
    assert "kernels: 1 x convolution\n" in net.explain()


def compiled(net, x):
    net.hybridize()
    net(x)
    runner = net._cached_op.handle
    inputs = [x.as_torch() if name == "data" else net.collect_params()[name].data().as_torch() for name in runner.input_names]
    return runner, runner.lowered(False, CPU, inputs), inputs


def contest(net, x, monkeypatch, asked=False, takes=1.0):
    """What a contest of all makes of a network: the times of the others are two seconds."""
    runner, module, inputs = compiled(net, x)
    monkeypatch.setattr(policy, "candidate_backends", lambda device, all_backends=False: [])
    monkeypatch.setattr(policy, "benchmark", lambda runs, clock, rules: Outcome({k: 2.0 if k == "native" else takes for k in runs}, 1.0, 0.0))
    return policy.compare_backends(module, lambda *i: runner._native(i, False, CPU)(*i), inputs, runner.weights, CPU, True, asked)


@pytest.mark.parametrize("takes, ahead", [(1.0, True), (3.0, False)])
def test_it_takes_over_where_it_is_ahead(takes, ahead, monkeypatch):
    frozen, why = contest(network(), image(), monkeypatch, takes=takes)
    assert why == "which proved the fastest"
    assert (frozen is not None) is ahead
    if ahead:
        assert "kernels: 1 x convolution + batch norm" in frozen.explain()


@pytest.mark.parametrize("why", ["exact", "asked for", "other results", "small", "fails"])
def test_where_it_stays_behind(why, monkeypatch):
    net, x, told = network(), image(), ""
    if why == "exact":
        monkeypatch.setenv("MXNET_CONVOLUTION_ALGORITHM", "exact")
    elif why == "other results":
        told = "since kernels gives other results"
        monkeypatch.setattr(own.folding, "scale_and_shift",
                            lambda bias, numbers, attributes: (torch.ones(len(numbers[0])), torch.zeros(len(numbers[0]))))
    elif why == "small":
        monkeypatch.setattr(own, "LEAST_WORK", 1 << 28)
    elif why == "fails":
        monkeypatch.setattr(own, "fold", lambda *_: 1 / 0)
    if told:
        with pytest.warns(UserWarning, match="backend 'kernels' gives other results than 'native'"):
            assert contest(net, x, monkeypatch) == (None, told)
    else:
        assert contest(net, x, monkeypatch, why == "asked for") == (None, told)
