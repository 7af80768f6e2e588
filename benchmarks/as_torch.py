"""Compare training steps of a network as ``net.as_torch()`` with torch's optimizer and in Gluon.

    python benchmarks/as_torch.py                       # ResNet-50 at batch 1, 8 and 16

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
    """Return a step of a hybridized block."""
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
    """Return a step of the same block as a torch module."""
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
    """Return a network with the same weights each time."""
    mx.random.seed(7)
    net = vision.get_model(name)
    net.initialize(mx.init.Xavier())
    net(mx.nd.zeros((1, 3, size, size)))
    return net


def measure(name, batch, size, pairs):
    """Return the processor seconds of both in each pair of steps."""
    generator = torch.Generator().manual_seed(3)
    data = torch.randn(batch, 3, size, size, generator=generator)
    labels = torch.randint(0, 1000, (batch,), generator=generator)
    steps = [make(network(name, size), data, labels) for make in (gluon_step, torch_step)]
    pair_seconds = []
    for i in range(pairs + 3):  # the first ones compile, choose kernels, and create optimizer states
        times = [0.0, 0.0]
        for which in ((0, 1) if i % 2 else (1, 0)):
            start = time.process_time()
            steps[which]()
            times[which] = time.process_time() - start
        if i >= 3:
            pair_seconds.append(tuple(times))
    return pair_seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="resnet50_v1", help="a network of the model zoo")
    parser.add_argument("--batches", default="1,8,16", help="by comma")
    parser.add_argument("--size", type=int, default=224, help="height and width of the images")
    parser.add_argument("--pairs", type=int, default=20, help="pairs of steps")
    args = parser.parse_args()
    print("| network, batch | Gluon, ms | as_torch, ms | as_torch / Gluon (goal: 1.02 or less) |\n|---|---|---|---|")
    for batch in map(int, args.batches.split(",")):
        pair_seconds = measure(args.network, batch, args.size, args.pairs)
        gluon, other = (1000 * statistics.median(times) for times in zip(*pair_seconds))
        ratio = statistics.median(second / first for first, second in pair_seconds)
        print(f"| {args.network}, {batch} | {gluon:.1f} | {other:.1f} | {ratio:.3f} |", flush=True)


if __name__ == "__main__":
    main()
