"""One rank that trains by Adam and saves checkpoints, for `distributed_rows/checkpoints.py`. usage: checkpoint_worker.py FOLDER

`prepare` builds the network of so many million weights; `step` does so many steps, and with `save` begins a checkpoint after the first; `wait` waits
for it; `resume` continues from it. Answers have sums of the weights.
"""
import os
import sys
import time

import numpy as np

import mxnet as mx
from harness import worker_protocol

WIDTH, BATCH = 4096, 16


class Rank(worker_protocol.Rank):
    """Answers the driver."""

    def do_prepare(self, layers):
        kv = mx.kv.create("dist_sync")
        self.rank, self.meet = kv.rank, kv._barrier
        self.net = mx.gluon.nn.HybridSequential()
        for _ in range(layers):
            self.net.add(mx.gluon.nn.Dense(WIDTH, in_units=WIDTH, activation="tanh", use_bias=False))
        self.net.initialize(mx.init.Normal(0.01))
        self.net.hybridize()
        self.trainer = mx.gluon.Trainer(self.net.collect_params(), "adam", {"learning_rate": 1e-5}, kvstore=kv)
        self.x = mx.nd.array(np.random.RandomState(self.rank).rand(BATCH, WIDTH))
        self.pending = None
        return {}

    def sums(self):
        return [float(p.data()._raw().double().sum()) for p in self.net.collect_params().values()]

    def one(self):
        with mx.autograd.record():
            loss = (self.net(self.x) ** 2).mean()
        loss.backward()
        self.trainer.step(1)

    def do_step(self, count, save=False):
        self.meet()
        start, used, answer = time.perf_counter(), time.process_time(), {}
        for index in range(count):
            self.one()
            if save and index == 0:
                before = time.perf_counter()
                self.pending = self.trainer.save_training(sys.argv[1], self.net, batch=1)
                answer = {"blocked": time.perf_counter() - before, "sums": self.sums()}
        self.meet()
        return {**answer, "seconds": time.perf_counter() - start, "used": time.process_time() - used}

    def do_wait(self):
        start = time.perf_counter()
        self.pending.wait()
        return {"seconds": time.perf_counter() - start}

    def do_resume(self):
        start = time.perf_counter()
        at = self.trainer.resume_training(sys.argv[1], self.net)
        answer = {"seconds": time.perf_counter() - start, "batch": at.batch, "sums": self.sums()}
        self.one()
        return answer


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    Rank().serve()
