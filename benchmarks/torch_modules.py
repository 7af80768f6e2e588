"""Training steps of a network as ``net.as_torch()`` with torch's optimizer, next to the same in Gluon.

    python benchmarks/torch_modules.py                       # ResNet-50 at batch 1, 8 and 16

Both take turns, one step each, in one process, with the same weights. A step is forward, softmax cross-entropy, backward and SGD with
momentum. The time is processor time of the process; the ratio is the median over all pairs of steps, torch's module / Gluon's block (lower is
better), the goal at most 1.02.
"""
import argparse
import statistics
import time

import torch

import mxnet as mx
from mxnet.gluon.model_zoo import vision


def gluon_step(net, data, labels):
    """A step of a hybridized block."""
    net.hybridize(static_alloc=True, static_shape=True)
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01, "momentum": 0.9})
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    data, labels = mx.nd.from_torch(data), mx.nd.from_torch(labels.float())

    def step():
        with mx.autograd.record():
            error = loss(net(data), labels)
        error.backward()
        trainer.step(len(data))
        return error

    return step


def torch_step(net, data, labels):
    """A step of the same block as a module of torch's."""
    module = net.as_torch(data).train()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01, momentum=0.9)

    def step():
        optimizer.zero_grad()
        error = torch.nn.functional.cross_entropy(module(data), labels)
        error.backward()
        optimizer.step()
        return error

    return step


def network(name, size):
    """A network whose weights are the same each time."""
    mx.random.seed(7)
    net = vision.get_model(name)
    net.initialize(mx.init.Xavier())
    net(mx.nd.zeros((1, 3, size, size)))
    return net


def measure(name, batch, size, pairs):
    """Processor seconds of both in each pair of steps."""
    generator = torch.Generator().manual_seed(3)
    data = torch.randn(batch, 3, size, size, generator=generator)
    labels = torch.randint(0, 1000, (batch,), generator=generator)
    steps = [make(network(name, size), data, labels) for make in (gluon_step, torch_step)]
    found = []
    for i in range(pairs + 3):  # the first compile, choose kernels, and make states of optimizers
        times = [0.0, 0.0]
        for which in ((0, 1) if i % 2 else (1, 0)):
            start = time.process_time()
            steps[which]()
            times[which] = time.process_time() - start
        if i >= 3:
            found.append(tuple(times))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="resnet50_v1")
    parser.add_argument("--batches", default="1,8,16")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--pairs", type=int, default=20)
    chosen = parser.parse_args()
    print("| network, batch | Gluon, ms | as_torch, ms | as_torch / Gluon (goal: 1.02 or less) |\n|---|---|---|---|")
    for batch in map(int, chosen.batches.split(",")):
        found = measure(chosen.network, batch, chosen.size, chosen.pairs)
        gluon, other = (1000 * statistics.median(times) for times in zip(*found))
        ratio = statistics.median(second / first for first, second in found)
        print(f"| {chosen.network}, {batch} | {gluon:.1f} | {other:.1f} | {ratio:.3f} |", flush=True)


if __name__ == "__main__":
    main()
