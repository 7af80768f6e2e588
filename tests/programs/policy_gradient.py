"""REINFORCE with a baseline (Williams 1992): balance a pole on a cart, in a simulation of a few lines."""
import numpy as np

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn


class Cart:
    """The cart and pole of Barto, Sutton and Anderson (1983), Euler steps of 0.02 s."""

    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.state = self.rng.uniform(-0.05, 0.05, 4)
        return self.state

    def step(self, action):
        place, speed, angle, turn = self.state
        force = 10.0 if action else -10.0
        sine, cosine = np.sin(angle), np.cos(angle)
        pushed = (force + 0.05 * turn ** 2 * sine) / 1.1
        bend = (9.8 * sine - cosine * pushed) / (0.5 * (4 / 3 - 0.1 * cosine ** 2 / 1.1))
        self.state = self.state + 0.02 * np.array([speed, pushed - 0.05 * bend * cosine / 1.1, turn, bend])
        return self.state, abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21


class Policy(gluon.Block):
    """Two heads on one body: what to do, and what it is worth."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.body = nn.Dense(32, activation="relu")
            self.action = nn.Dense(2)
            self.value = nn.Dense(1)

    def forward(self, x):
        x = self.body(x)
        return nd.log_softmax(self.action(x)), self.value(x)


def train(episodes=150, longest=200):
    """How long the pole stood: the means over the first and the last 20 episodes."""
    rng = np.random.RandomState(12)
    mx.random.seed(12)
    np.random.seed(12)
    net = Policy()
    net.initialize(mx.init.Xavier())
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.02})
    cart, huber, lengths = Cart(rng), gluon.loss.HuberLoss(), []
    for _ in range(episodes):
        state, states, actions = cart.reset(), [], []
        for _ in range(longest):
            scores, _ = net(nd.array(state[None]))
            actions.append(int(rng.uniform() < float(nd.exp(scores)[0, 1].asscalar())))
            states.append(state)
            state, over = cart.step(actions[-1])
            if over:
                break
        lengths.append(len(actions))
        returns = [0.0]
        for _ in actions:
            returns.append(1 + 0.98 * returns[-1])
        returns = nd.array(returns[:0:-1])
        returns = (returns - returns.mean()) / (nd.sqrt(nd.square(returns - returns.mean()).mean()) + 1e-6)
        with autograd.record():
            scores, values = net(nd.array(np.array(states)))
            advantage = returns - values.reshape((-1,)).detach()
            error = -(nd.pick(scores, nd.array(actions)) * advantage).sum() + huber(values.reshape((-1,)), returns).sum()
        error.backward()
        trainer.step(len(actions))
    return np.mean(lengths[:20]), np.mean(lengths[-20:])


if __name__ == "__main__":
    print(train())
