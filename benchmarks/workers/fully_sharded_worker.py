"""One rank that trains by Adam, for `distributed_rows/fully_sharded.py`. usage: fully_sharded_worker.py full|whole

`prepare` builds the network of so many layers; `step` does so many steps. `full` divides all weights, `whole` is data parallel.
"""
import sys

import numpy as np

import mxnet as mx
from harness import worker_protocol

WIDTH, BATCH = 2048, 8


class Rank(worker_protocol.Rank):
    """Answers the driver."""

    def do_prepare(self, layers):
        kv = mx.kv.create("dist_sync")
        self.meet = kv._barrier
        self.before = worker_protocol.high_water()
        self.net = mx.gluon.nn.HybridSequential()
        for _ in range(layers):
            self.net.add(mx.gluon.nn.Dense(WIDTH, in_units=WIDTH, activation="tanh", use_bias=False))
        full = sys.argv[1] == "full"
        if full:
            mx.gluon.fully_shard(self.net.collect_params())
        self.net.initialize(mx.init.Normal(0.02))
        self.trainer = mx.gluon.Trainer(self.net.collect_params(), "adam", {"learning_rate": 1e-4}, kvstore=kv, update_on_kvstore=False,
                                        shard="full" if full else None)
        x = mx.nd.array(np.random.RandomState(kv.rank).rand(BATCH, WIDTH))

        def step():
            with mx.autograd.record():
                loss = (self.net(x) ** 2).mean()
            loss.backward()
            self.trainer.step(1)
        self.step = step
        step()
        return {}

    def do_step(self, count):
        return {**super().do_step(count), "peak": worker_protocol.high_water() - self.before}


if __name__ == "__main__":
    Rank().serve()
