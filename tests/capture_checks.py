"""What tests of captured training share, on simulated GPUs and on real ones."""
import numpy as np

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn


def data(count, *shape):
    random = np.random.RandomState(0)
    return [random.standard_normal(shape).astype("float32") for _ in range(count)]


def network(*layers):
    net = nn.HybridSequential()
    net.add(*layers)
    return net


def trained(net, batches, ctx, static, optimizer="sgd", clip=False, **options):
    """The losses and the weights after a step with each batch."""
    mx.random.seed(1)
    net.initialize(mx.init.Xavier(), ctx=ctx, force_reinit=True)
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    for block in (net, loss):
        block.hybridize(static_alloc=static, static_shape=static)
    trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.1, **options})
    losses = []
    for i, batch in enumerate(batches):
        x, y = mx.nd.array(batch, ctx=ctx), mx.nd.array(np.arange(len(batch)) % 3, ctx=ctx)
        with autograd.record():
            out = loss(net(x), y)
        losses.append(out.asnumpy().mean())
        out.backward()
        if clip:
            gluon.utils.clip_global_norm([p.grad(ctx) for p in net.collect_params().values() if p.grad_req != "null"], 0.5)
        trainer.step(len(batch))
        if i == 2:
            trainer.set_learning_rate(0.05)
    return np.array(losses), [p.data(ctx).asnumpy() for p in net.collect_params().values()]


def same(found, expected, tolerance=1e-4):
    np.testing.assert_allclose(found[0], expected[0], rtol=tolerance / 10)
    for a, b in zip(found[1], expected[1]):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance / 100)
