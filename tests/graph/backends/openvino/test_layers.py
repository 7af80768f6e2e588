import pytest

import mxnet as mx
import openvino_checks  # noqa: F401  (skips this where openvino is missing)
from mxnet import gluon, nd
from mxnet.graph.backends.openvino.layers import Averages
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
    assert 0 < sum(t for _, t in inside) <= duration


def test_without_an_observer_nothing_is_compiled_twice(calls):
    net = network(gluon.nn.Dense(5, in_units=4))
    x = nd.ones((2, 4))
    net(x)
    compiled = net._cached_op.handle.states
    function = next(iter(compiled.values())).function
    assert function.counting_model is None
    calls(lambda: net(x))
    assert function.counting_model is not None and len(function.counting_model.requests) == 1


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


def told(*runs):
    """What `Averages` makes of runs, (ns of the whole, ns of each layer): it is told what OpenVINO tells, averages in whole microseconds."""
    averages, sums, found = Averages(), [0] * len(runs[0][1]), []
    for number, (whole, layers) in enumerate(runs, 1):
        sums = [s + t for s, t in zip(sums, layers)]
        found.append(averages.shares([s // number // 1000 * 1000 for s in sums], whole))
    return found


def test_layers_share_the_time_of_their_run_though_averages_are_told():
    usual, busy = (1_000_000, (600_000, 300_000)), (3_000_000, (1_800_000, 900_000))
    found = told(*([usual] * 40), busy, usual)
    for whole, shares in zip([1_000_000] * 40 + [3_000_000, 1_000_000], found):
        assert sum(shares) <= whole and shares == pytest.approx([0.6 * whole, 0.3 * whole], rel=0.02)


def test_averages_follow_layers_that_become_slower():
    found = told(*([(1000_000, (500_000, 500_000))] * 10), *([(2_500_000, (500_000, 2_000_000))] * 30))
    assert found[-1] == pytest.approx([500_000, 2_000_000], rel=0.02)


def test_layers_are_never_longer_than_the_whole():
    assert sum(told((1000_000, (700_000, 500_000)))[0]) <= 1000_000
    averages = Averages()
    assert averages.shares([600_000], 1_000_000) == [600_500] and averages.shares([600_000, 1000], 1_000_000) == [600_500, 1500]
    assert Averages().shares([], 5) == []


def test_openvino_tells_averages_over_all_runs():
    """What `Averages` is for: if this fails, it isn't needed any longer."""
    import numpy as np
    import openvino
    data = openvino.opset8.parameter([-1, 64], np.float32)
    model = openvino.Model([openvino.opset8.matmul(data, openvino.opset8.constant(np.ones((64, 64), "float32")), False, False)], [data])
    request = openvino.Core().compile_model(model, "CPU", {"PERF_COUNT": True, "PERFORMANCE_HINT": "LATENCY"}).create_infer_request()

    def took(rows):
        request.infer([np.ones((rows, 64), "float32")])
        return max(layer.real_time.total_seconds() for layer in request.get_profiling_info())

    first = took(20_000)
    assert took(1) > first / 4  # an average of both
