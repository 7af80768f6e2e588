import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon import nn

X = mx.nd.array(np.cos(np.arange(24)).reshape(4, 6))


def trained(net, hybridized):
    """Return loss and gradients of one step, and the report of the passes."""
    net.initialize(mx.init.Constant(0.1), force_reinit=True)
    net(X)
    for i, parameter in enumerate(net.collect_params().values()):
        parameter.set_data(mx.nd.array(np.sin(np.arange(parameter.data().size) + i).reshape(parameter.shape)))
    if hybridized:
        net.hybridize()
    with mx.autograd.record():
        loss = (net(X) ** 2).sum()
    loss.backward()
    report = net.explain() if hybridized else ""
    return [loss.asscalar(), *[p.grad().asnumpy() for p in net.collect_params().values()]], report


def sequence(*layers):
    net = nn.HybridSequential()
    net.add(*layers)
    return net


class Branching(mx.gluon.HybridBlock):
    """The first layer's result is read twice, so that it ends its chain."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.first, self.second, self.third = nn.Dense(5, activation="relu"), nn.Dense(5, activation="tanh"), nn.Dense(2)

    def hybrid_forward(self, F, x):
        x = self.first(x)
        return self.third(self.second(x) + x)


class Unflattened(mx.gluon.HybridBlock):
    """The data of the last layer is flattened, that of those before is not."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.first, self.second, self.third = nn.Dense(3, flatten=False), nn.Dense(4, flatten=False, activation="sigmoid"), nn.Dense(2)

    def hybrid_forward(self, F, x):
        return self.third(self.second(F.tanh(self.first(x.reshape((2, 4, 3))))))


@pytest.mark.parametrize("make, line", [
    (lambda: sequence(nn.Dense(8, activation="relu"), nn.Dense(7, activation="tanh", use_bias=False), nn.Dense(3)),
     "3 x fully connected layer in 1 call"),
    (lambda: sequence(*[nn.Dense(4, activation="sigmoid") for _ in range(6)]), "6 x fully connected layer in 2 calls"),
    (lambda: sequence(nn.Dense(4), nn.Dropout(0), nn.Dense(4)), None),
    (lambda: sequence(nn.Dense(4, activation="softrelu"), nn.Dense(4, activation="relu")), "1 x fully connected layer in 1 call"),
    (Branching, "2 x fully connected layer in 2 calls"),
    (Unflattened, "2 x fully connected layer in 1 call")])
def test_chains_in_training(make, line):
    net = make()
    expected, _ = trained(net, False)
    found, report = trained(net, True)
    assert (line in report) if line else "fully connected layer" not in report
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_inference_is_left_to_the_backends():
    net = sequence(nn.Dense(4, activation="relu"), nn.Dense(2))
    net.initialize()
    net.hybridize()
    net(X)
    assert "fully connected layer in" not in net.explain().partition("inference")[0]


def test_a_profile_names_the_operators_of_a_chain(tmp_path):
    net = sequence(nn.Dense(4, activation="relu"), nn.Dense(2))
    net.initialize()
    net.hybridize()
    mx.profiler.set_config(profile_all=True, aggregate_stats=True, filename=str(tmp_path / "profile.json"))
    mx.profiler.set_state("run")
    with mx.autograd.record():
        net(X).backward()
    mx.profiler.set_state("stop")
    assert "FullyConnected+Activation+FullyConnected" in mx.profiler.dumps(reset=True)
