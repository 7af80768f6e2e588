import pytest

import mxnet as mx
import openvino_checks  # noqa: F401  (skips this where openvino is missing)
from mxnet import gluon, nd
from mxnet.ndarray import dispatch


@pytest.fixture
def calls(monkeypatch):
    found = []
    monkeypatch.setattr(dispatch, "graph_observer", None)

    def observe(call, start, end, inputs, result, inside=()):
        found.append((call, end - start, inside))

    def run(function):
        found.clear()
        dispatch.graph_observer = observe
        try:
            return function(), list(found)
        finally:
            dispatch.graph_observer = None

    return run


def network(*layers):
    net = gluon.nn.HybridSequential()
    net.add(*layers)
    net.initialize(mx.init.Xavier())
    net.hybridize(backend="openvino")
    return net


def test_layers_carry_the_names_of_the_nodes_that_they_compute(calls):
    net = network(gluon.nn.Conv2D(4, 3, in_channels=3, prefix="c_"), gluon.nn.BatchNorm(prefix="b_"), gluon.nn.Activation("relu", prefix="a_"),
                  gluon.nn.MaxPool2D(), gluon.nn.Dense(5))
    x = nd.random.uniform(shape=(2, 3, 16, 16))
    expected = net(x)
    found, first = calls(lambda: net(x))
    assert [c.name for c, *_ in first] == ["compile for the profiler", "openvino"]
    assert (found.asnumpy() == expected.asnumpy()).all()
    _, ((whole, duration, inside),) = calls(lambda: net(x))
    assert whole.graph and "one another" in whole.note
    ours = [(c.name, c.node) for c, _ in inside if c.note.startswith("by OpenVINO's")]
    assert ours[0] == ("Convolution+BatchNorm+Activation", "c_fwd+b_fwd+a_fwd")
    assert [n for n, _ in ours][1:] == ["Pooling", "FullyConnected"]
    assert sum(t for _, t in inside) <= duration * 1.05


def test_without_an_observer_nothing_is_compiled_twice(calls):
    net = network(gluon.nn.Dense(5, in_units=4))
    x = nd.ones((2, 4))
    net(x)
    compiled = net._cached_op._runner._states
    function = next(iter(compiled.values())).function
    assert function._counting is None
    calls(lambda: net(x))
    assert function._counting is not None and len(function._counting.requests) == 1


def test_a_divided_graph_tells_of_its_pieces_and_of_what_stays_on_torch(calls):
    class Net(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            with self.name_scope():
                self.first, self.second = gluon.nn.Dense(64, in_units=64), gluon.nn.Dense(64, in_units=64)

        def hybrid_forward(self, F, x):
            return self.second(F.cast(F.cast(self.first(x), dtype="float64"), dtype="float32"))

    net = Net()
    net.initialize()
    net.hybridize(backend="openvino")
    x = nd.ones((8, 64))
    expected = net(x).asnumpy()
    calls(lambda: net(x))
    found, told = calls(lambda: net(x))
    assert (found.asnumpy() == expected).all()
    assert [c.name for c, *_ in told].count("openvino") == 2 and "Cast" in [c.name for c, *_ in told]
