"""A transformer encoder (https://arxiv.org/abs/1706.03762) in the style of MXNet 2: mx.np arrays, plain `forward`, hybridized."""
import math

import numpy as onp

import mxnet as mx
from mxnet import autograd, gluon, np, npx
from mxnet.gluon import nn

WORDS, LENGTH = 10, 8


class Attention(nn.HybridBlock):
    def __init__(self, units, heads):
        super().__init__()
        self.units, self.heads = units, heads
        self.query_key_value = nn.Dense(3 * units, flatten=False, use_bias=False)
        self.output = nn.Dense(units, flatten=False)

    def forward(self, x):
        q, k, v = np.split(self.query_key_value(x), 3, axis=-1)

        def divided(a):
            return npx.reshape(a, (-2, -2, self.heads, self.units // self.heads)).transpose(0, 2, 1, 3)

        scores = np.matmul(divided(q), divided(k).transpose(0, 1, 3, 2)) / math.sqrt(self.units // self.heads)
        mixed = np.matmul(npx.softmax(scores, axis=-1), divided(v)).transpose(0, 2, 1, 3)
        return self.output(npx.reshape(mixed, (-2, -2, -5)))


class Layer(nn.HybridBlock):
    def __init__(self, units, heads):
        super().__init__()
        self.attention, self.first, self.second = Attention(units, heads), nn.LayerNorm(), nn.LayerNorm()
        self.inner = nn.HybridSequential()
        self.inner.add(nn.Dense(2 * units, flatten=False, activation="relu"), nn.Dense(units, flatten=False))

    def forward(self, x):
        x = self.first(x + self.attention(x))
        return self.second(x + self.inner(x))


class Encoder(nn.HybridBlock):
    def __init__(self, units=32, heads=4, layers=2):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, units), nn.Embedding(LENGTH, units)
        self.layers = nn.HybridSequential()
        for _ in range(layers):
            self.layers.add(Layer(units, heads))
        self.output = nn.Dense(WORDS, flatten=False)

    def forward(self, x):
        return self.output(self.layers(self.words(x) + self.places(npx.arange_like(x, axis=1))))


def train(steps=250, hybridize=True):
    """The share of right words in sequences that are to be read backwards: before and after."""
    onp.random.seed(13)
    mx.random.seed(13)
    rng = onp.random.RandomState(13)
    net = Encoder()
    net.initialize(mx.init.Xavier())
    if hybridize:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.003})
    loss = gluon.loss.SoftmaxCrossEntropyLoss()

    def batch(count):
        x = rng.randint(0, WORDS, (count, LENGTH))
        return np.array(x, dtype="int32"), np.array(x[:, ::-1].copy(), dtype="int32")

    def right():
        x, y = batch(200)
        return float((net(x).argmax(axis=-1).astype("int32") == y).astype("float32").mean())

    before = right()
    for _ in range(steps):
        x, y = batch(64)
        with autograd.record():
            error = loss(net(x), y).mean()
        error.backward()
        trainer.step(1)
    return before, right()


if __name__ == "__main__":
    npx.set_np()
    print(train())
