"""A generative adversarial network learns a distribution in the plane."""
import numpy as np

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

CENTER, SPREAD = (2.0, -1.0), (0.5, 1.5)


def network(sizes, activation):
    net = nn.HybridSequential()
    for size in sizes[:-1]:
        net.add(nn.Dense(size, activation=activation))
    net.add(nn.Dense(sizes[-1]))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    return net


def train(steps=500, batch=64):
    """Mean and standard deviation of 2,000 generated points."""
    np.random.seed(5)
    mx.random.seed(5)
    generator, judge = network([32, 2], "relu"), network([32, 32, 1], "tanh")
    loss = gluon.loss.SigmoidBinaryCrossEntropyLoss()
    trainers = [gluon.Trainer(net.collect_params(), "adam", {"learning_rate": rate, "beta1": 0.5})
                for net, rate in ((generator, 0.002), (judge, 0.004))]
    ones, zeros = nd.ones((batch,)), nd.zeros((batch,))
    for _ in range(steps):
        real = nd.array(CENTER) + nd.random.normal(shape=(batch, 2)) * nd.array(SPREAD)
        fake = generator(nd.random.normal(shape=(batch, 4)))
        with autograd.record():
            error = loss(judge(real), ones) + loss(judge(fake.detach()), zeros)
        error.backward()
        trainers[1].step(batch)
        with autograd.record():
            error = loss(judge(generator(nd.random.normal(shape=(batch, 4)))), ones)
        error.backward()
        trainers[0].step(batch)
    points = generator(nd.random.normal(shape=(2000, 4))).asnumpy()
    return points.mean(axis=0), points.std(axis=0)


if __name__ == "__main__":
    print(train())
