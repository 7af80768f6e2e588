"""A small network with everything that the passes for training rewrite, and two steps of its training."""
import numpy as np
import torch

import mxnet as mx
from mxnet import nd
from mxnet.gluon import nn
from mxnet.graph import lower
from mxnet.graph.program import copied


class Block(nn.HybridBlock):
    """A residual block: two batch norms that meet in an addition, one with ReLU, one alone."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.first, self.second, self.shortcut = (nn.Conv2D(8, k, padding=k // 2, use_bias=False) for k in (3, 3, 1))
            self.norms = nn.HybridSequential()
            self.norms.add(nn.BatchNorm(), nn.BatchNorm(), nn.BatchNorm(scale=False))

    def hybrid_forward(self, F, x):
        y = F.Activation(self.norms[0](self.first(x)), act_type="relu")
        y = self.norms[1](self.second(y))
        return F.Pooling(F.relu(y + self.norms[2](self.shortcut(x))), kernel=(2, 2), stride=(2, 2), pool_type="max")


def trained(hybrid, dtype="float32"):
    """Outputs, gradients and moving averages of two steps."""
    mx.random.seed(2)
    net = nn.HybridSequential()
    net.add(Block(), nn.Flatten(), nn.Dense(3))
    net.initialize(mx.init.Xavier())
    net.cast(dtype)
    x = nd.random.normal(shape=(4, 3, 8, 8)).astype(dtype)
    net(x)
    if hybrid:
        net.hybridize()
    x.attach_grad()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    for _ in range(2):
        with mx.autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        trainer.step(4)
    found = [net(x), x.grad, *[p.data() for p in net.collect_params().values()]]
    return [a.asnumpy().astype(np.float32) for a in found], net


def numbers(*shape, seed):
    return torch.from_numpy(np.random.RandomState(seed).normal(size=shape).astype("float32"))


def lowered(symbol):
    return copied(lower(symbol.handle, True, torch.device("cpu")))
