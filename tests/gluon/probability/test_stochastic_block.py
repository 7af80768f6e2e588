import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon import nn
from mxnet.gluon import probability as mgp


class Noisy(mgp.StochasticBlock):
    """A layer whose output is drawn around that of a dense one."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.dense = nn.Dense(units, in_units=2)

    @mgp.StochasticBlock.collectLoss
    def forward(self, x):
        around = mgp.Normal(self.dense(x), 0.1)
        self.add_loss(mgp.kl_divergence(around, mgp.Normal(0, 1)))
        return around.sample()


@pytest.mark.parametrize("hybridize", [False, True])
def test_losses_of_a_block(hybridize):
    net = Noisy(3)
    net.initialize()
    if hybridize:
        net.hybridize()
    x = mx.np.ones((4, 2))
    for _ in range(3):
        with mx.autograd.record():
            out = net(x)
            (out.sum() + net.losses[0].sum()).backward()
        assert out.shape == (4, 3) and len(net.losses) == 1 and net.losses[0].shape == (4, 3)
        assert net.dense.weight.grad().asnumpy().any()
    assert (net(x) != net(x)).any()


@pytest.mark.parametrize("hybridize", [False, True])
def test_losses_of_a_sequence(hybridize):
    net = mgp.StochasticSequential()
    net.add(Noisy(2), nn.Dense(2, in_units=2), Noisy(1))
    net.initialize()
    if hybridize:
        net.hybridize()
    for _ in range(2):
        assert net(mx.np.ones((4, 2))).shape == (4, 1)
        assert [[loss.shape for loss in losses] for losses in net.losses] == [[(4, 2)], [(4, 1)]]
    assert len(net) == 3 and isinstance(net[1], nn.Dense) and len(net[:2]) == 2


def test_forward_must_be_decorated():
    class Plain(mgp.StochasticBlock):
        def forward(self, x):
            return x

    with pytest.raises(ValueError, match="Plain: decorate forward with StochasticBlock.collectLoss"):
        Plain()(mx.np.ones(1))


def test_an_autoencoder_learns():
    class Encoder(mgp.StochasticBlock):
        def __init__(self):
            super().__init__()
            with self.name_scope():
                self.encode, self.decode = nn.Dense(2, in_units=2), nn.Dense(2, in_units=1)

        @mgp.StochasticBlock.collectLoss
        def forward(self, x):
            code = self.encode(x)
            hidden = mgp.Normal(code[:, :1], mx.np.exp(code[:, 1:]))
            self.add_loss(mgp.kl_divergence(hidden, mgp.Normal(0, 1)).sum(-1))
            return self.decode(hidden.sample())

    net = Encoder()
    net.initialize(mx.init.Normal(0.5))
    net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05})
    z = np.random.RandomState(0).randn(128, 1)
    x = mx.np.array(np.concatenate([z, -2 * z], 1), dtype="float32")
    history = []
    for _ in range(150):
        with mx.autograd.record():
            out = net(x)
            loss = (-mgp.Normal(out, 0.3).log_prob(x).sum(-1) + net.losses[0]).mean()
        loss.backward()
        trainer.step(1)
        history.append(float(loss))
    assert np.mean(history[-10:]) < 0.2 * np.mean(history[:3])
