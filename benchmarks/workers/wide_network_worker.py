"""Train examples/wide_network.py for some steps, under Remex or under MXNet 1.9.1.

    python wide_network_worker.py --case adamax --scale 10

prints as JSON the seconds and the processor's seconds of each step from the second epoch on, the losses, and the peak of memory in bytes. An epoch
has two batches; in the first epoch memory is allocated for rows that are updated for the first time. The cases `adamax` and `sgd`
take dense batches, `csr` takes CSR batches with a row_sparse first weight and Adam.
"""
import argparse
import json
import os
import resource
import sys
import time

import numpy as np

import mxnet as mx

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
import wide_network  # noqa: E402  # the example

EPOCH = 2  # batches; the first epoch warms up


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--case", choices=("adamax", "sgd", "csr"), default="adamax")
    parser.add_argument("--scale", type=int, default=1, help="divide inputs and outputs by this")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--kv-store", default="local")
    parser.add_argument("--hidden", default="1024,512", help="sizes of the hidden layers")
    parser.add_argument("--sampled", action="store_true", help="the loss of the sampled classes only")
    args = parser.parse_args()
    wide_network.HIDDEN = tuple(map(int, args.hidden.split(",")))
    inputs, outputs = wide_network.INPUTS // args.scale, wide_network.OUTPUTS // args.scale
    stype, optimizer = ("csr", "adam") if args.case == "csr" else ("default", args.case)
    mx.random.seed(0)
    net = wide_network.module(stype, args.batch, inputs, outputs, optimizer, {"learning_rate": 0.01 if optimizer == "sgd" else 0.001},
                              # rows are fetched from a store, which one device has only if it is given one
                              mx.kv.create(args.kv_store) if stype == "csr" else args.kv_store, args.sampled)
    group = getattr(net._kvstore, "_group", None)  # of Remex's stores of many processes
    rng = np.random.default_rng(group.rank if group else 0)
    epoch = [wide_network.samples(rng, args.batch, inputs, outputs) for _ in range(EPOCH)]
    seconds, used, losses, sent = [], [], [], []
    for number in range(EPOCH + args.steps):
        columns, classes = epoch[number % EPOCH]
        before, wall, cpu = group.sent if group else 0, time.perf_counter(), time.process_time()
        batch = wide_network.batch(stype, columns, classes, inputs, outputs, rng if args.sampled else None)
        wide_network.step(net, batch)
        mx.nd.waitall()
        if number >= EPOCH:
            seconds.append(time.perf_counter() - wall)
            used.append(time.process_time() - cpu)
            sent.append(group.sent - before if group else 0)
        losses.append(wide_network.loss(net, batch))
    if group is None or group.rank == 0:
        print(json.dumps({"seconds": seconds, "used": used, "losses": losses, "sent": sent,
                          "parameters": sum(int(np.prod(a[0].shape)) for a in net._exec_group.param_arrays),
                          "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


if __name__ == "__main__":
    main()
