"""Recurrent layers of graphs keep what they made of weights that stay."""
import numpy as np
import pytest

import mxnet as mx
from kernel_limits import used_from
from mxnet import kernels, nd
from mxnet.graph.passes import recurrent_layers
from mxnet.graph.tuning import policy
from mxnet.graph.tuning.inference_states import Compiled, Validating
from mxnet.kernels.nn import recurrent

pytestmark = pytest.mark.skipif(kernels.load("nn/recurrent") is None, reason="no C++ compiler")


@pytest.fixture
def packings(monkeypatch):
    """How often a layer's weights were brought into order."""
    counts = []
    used_from(monkeypatch, 0, recurrent)
    original = recurrent.Ordered._get

    def get(self, key, make):
        return original(self, key, lambda: counts.append(key) or make())
    monkeypatch.setattr(recurrent.Ordered, "_get", get)
    return counts


def layers(module):
    return [n.target for n in module.graph.nodes if isinstance(n.target, recurrent_layers.RecurrentLayers)]


def network(kind=mx.gluon.rnn.LSTM):
    mx.random.seed(3)
    net = kind(32, 2, input_size=8)
    net.initialize(mx.init.Uniform(0.3))
    return net


def test_weights_are_ordered_when_they_come_again_and_anew_when_they_change(packings):
    net, x = network(), nd.random.normal(shape=(5, 2, 8))
    plain = net(x).asnumpy()
    net.hybridize(backend="native")
    found = []
    for calls in range(4):
        found.append(net(x).asnumpy())
        assert len(packings) == (7 if calls else 0)  # two layers, each with an input, a state and biases; what the layers are
    assert len(set(packings)) == 7
    np.testing.assert_allclose(found, [plain] * 4, rtol=1e-5, atol=1e-6)
    net.l1_h2h_weight.set_data(net.l1_h2h_weight.data() * 2)
    net.hybridize(False)
    doubled = net(x).asnumpy()
    net.hybridize(backend="native")
    assert np.abs(doubled - plain).max() > 1e-3
    for _ in range(3):
        np.testing.assert_allclose(net(x).asnumpy(), doubled, rtol=1e-5, atol=1e-6)


def test_data_of_other_shapes_are_looked_at_again(packings, monkeypatch):
    asked, suits = [], recurrent._layers
    monkeypatch.setattr(recurrent, "_layers", lambda *a: asked.append(a) or suits(*a))
    net = network()
    net.hybridize(backend="native")
    shapes = [(5, 2, 8)] * 3 + [(5, 2, 8), (4, 2, 8), (4, 2, 8), (5, 3, 8), (5, 2, 8)]
    found = []
    for shape in shapes:
        x = nd.ones(shape)
        asked.clear()
        found.append((net(x)[:4, 0].asnumpy(), len(asked)))
    assert [count for _, count in found] == [1, 1, 0, 0, 1, 0, 1, 1]  # the first call has nothing to remember by
    for values, _ in found:
        np.testing.assert_allclose(values, found[0][0], rtol=1e-5, atol=1e-6)
    with pytest.raises(mx.MXNetError, match=r"expected shape \(13952,\)"):
        net(nd.ones((5, 2, 9)))


def test_writes_of_all_kinds_are_seen(packings):
    net, x = network(mx.gluon.rnn.GRU), nd.random.normal(shape=(5, 2, 8))
    weight = net.l0_h2h_weight
    net.hybridize(backend="native")
    writes = [lambda: weight.data().__imul__(0.5), lambda: weight.data().__setitem__(slice(None), 0.25),
              lambda: weight.data().as_torch().mul_(-1.0), lambda: weight.set_data(nd.ones((96, 32)) * 0.01)]
    before = [net(x).asnumpy() for _ in range(3)][-1]
    for write in writes:
        write()
        after = [net(x).asnumpy() for _ in range(3)]
        parts = [p.data() for p in net.collect_params().values()]
        vector = nd.concat(*[p.data().reshape(-1) for p in sorted(net.collect_params().values(), key=lambda p: p.name.endswith("bias"))], dim=0)
        assert len(parts) == 8
        expected = nd.RNN(x, vector, nd.zeros((2, 2, 32)), state_size=32, num_layers=2, mode="gru").asnumpy()
        np.testing.assert_allclose(after, [expected] * 3, rtol=1e-5, atol=1e-6)
        assert np.abs(after[-1] - before).max() > 1e-4
        before = after[-1]


def test_what_is_trained_keeps_nothing(packings):
    net, x = network(), nd.random.normal(shape=(5, 2, 8))
    net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for _ in range(3):
        with mx.autograd.record():
            loss = (net(x) ** 2).mean()
        loss.backward()
        trainer.step(1)
    assert packings == []


def test_a_vector_of_a_symbol_is_ordered_too_and_one_that_is_computed_never(packings):
    x, vector, state = mx.sym.var("x"), mx.sym.var("vector"), mx.sym.var("state")
    rng = np.random.RandomState(0)
    arrays = {"x": nd.array(rng.normal(size=(4, 1, 32))), "vector": nd.array(rng.uniform(-0.2, 0.2, size=(2 * (32 * 32 + 32),))),
              "state": nd.zeros((1, 1, 32))}
    for parameters, times in ((vector, 4), (vector * 2, 4)):
        out = mx.sym.RNN(x, parameters, state, state_size=32, num_layers=1, mode="rnn_tanh")
        executor = out.bind(mx.cpu(), arrays, grad_req="null")
        found = [executor.forward()[0].asnumpy() for _ in range(3)]
        assert len(packings) == times
        expected = nd.RNN(arrays["x"], arrays["vector"] * (1 if parameters is vector else 2), arrays["state"], state_size=32, num_layers=1,
                          mode="rnn_tanh").asnumpy()
        np.testing.assert_allclose(found, [expected] * 3, rtol=1e-5, atol=1e-6)


def test_a_graph_that_openvino_runs_gives_up_what_it_kept(packings, monkeypatch):
    pytest.importorskip("openvino")
    monkeypatch.setattr(policy, "budget", lambda operators: 1e9)
    net, x = network(), nd.random.normal(shape=(5, 2, 8))
    net.hybridize()
    expected = [net(x).asnumpy() for _ in range(2)][0]
    runner = net._cached_op.handle
    layer, = layers(next(iter(runner._on_native.values())).__self__)
    assert layer._cached is not None and packings
    state, = runner.states.values()
    state.budget = 0.0
    monkeypatch.setattr(Validating, "is_faster", True)
    for _ in range(100):
        np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-4, atol=1e-5)
    state, = runner.states.values()
    assert type(state) is Compiled and state.name == "openvino" and layer._cached is None
