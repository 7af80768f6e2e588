import numpy as np
import pytest

import mxnet as mx
from mxnet import nd
from mxnet.gluon import nn
from residual import numbers


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "nag", "rmsprop", "lamb"])
def test_optimizers_follow_the_order_in_memory(optimizer):
    results = []
    for hybrid in (False, True):
        mx.random.seed(4)
        net = nn.Conv2D(4, 3, in_channels=2)
        net.initialize(mx.init.Normal(1))
        net.hybridize(hybrid)
        trainer = mx.gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.1, **({"momentum": 0.9} if optimizer == "sgd" else {})})
        for _ in range(3):
            with mx.autograd.record():
                loss = (net(nd.array(numbers(2, 2, 5, 5, seed=1).numpy())) ** 2).sum()
            loss.backward()
            trainer.step(1)
        results.append(net.weight.data().asnumpy())
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-6)


def test_large_weights_take_the_fused_step(monkeypatch):
    from mxnet.optimizer import steps
    monkeypatch.setattr(steps, "_SINGLE_PASS", 0)
    test_optimizers_follow_the_order_in_memory("sgd")
