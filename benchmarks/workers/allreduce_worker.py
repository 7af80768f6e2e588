"""Run one rank of the jobs in `distributed_rows/allreduce.py`. usage: allreduce_worker.py remex|ddp FOLDER

`prepare` builds a job; `step` runs steps, of communication alone, or of training with or without it.
"""
import os
import sys
import time

import numpy as np
import torch

from harness import inputs, worker_protocol

PEER, FOLDER = sys.argv[1:3]
RANK = int(os.environ["RANK"])


def shapes():
    """Return the shapes of ResNet-50's trained parameters, in the order of the network."""
    import json
    values = np.load(os.path.join(FOLDER, "resnet50.npz"))
    with open(os.path.join(FOLDER, "resnet50-symbol.json")) as file:
        names = [node["name"] for node in json.load(file)["nodes"] if node["op"] == "null"]
    return [values[name].shape for name in names if name in values and "running" not in name]


class Rank(worker_protocol.Rank):
    """Answers the driver; subclasses are the peers."""

    beside = 0.0

    def do_prepare(self, what, **options):
        getattr(self, f"prepare_{what}")(**options)
        for _ in range(2):
            self.step()
        return {}

    def do_step(self, count):
        """Return the seconds of a step, and of those from the begin of backward on, beside which gradients can travel."""
        self.beside = 0.0
        answer = super().do_step(count)
        return {**answer, "beside": self.beside / count}


class Remex(Rank):
    """Gluon's Trainer over `dist_sync`."""

    def prepare_reduce(self):
        import mxnet as mx
        weights = [mx.gluon.Parameter(f"w{i:03d}", shape=shape) for i, shape in enumerate(shapes())]
        for weight in weights:
            weight.initialize(mx.init.Zero())
        gradients = [mx.nd.ones(shape) for shape in shapes()]

        class Ready(mx.autograd.Function):
            """A function whose gradients are constant."""

            def forward(self, *arrays):
                return mx.nd.zeros(1)

            def backward(self, head):
                return gradients
        trainer = mx.gluon.Trainer(weights, "sgd", kvstore="dist_sync", update_on_kvstore=False)
        self.meet = mx.kv.create("dist_sync")._barrier

        def step():
            with mx.autograd.record():
                out = Ready()(*[weight.data() for weight in weights])
            out.backward()
            trainer.allreduce_grads()
        self.step = step

    def prepare_train(self, batch, together):
        import mxnet as mx
        from harness import networks
        net = networks.build("resnet50")
        net.load_parameters(os.path.join(FOLDER, "resnet50.params"))
        net.hybridize()
        x, label = mx.nd.array(inputs.example("resnet50", batch)), mx.nd.array(np.arange(batch) % 10)
        loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.001, "momentum": 0.9}, kvstore="dist_sync" if together else None)
        self.meet = mx.kv.create("dist_sync")._barrier

        def step():
            with mx.autograd.record():
                out = loss(net(x), label)
            start = time.perf_counter()
            out.backward()
            trainer.step(batch)
            self.beside += time.perf_counter() - start
        self.step = step

    def prepare_learn(self, samples):
        import mxnet as mx
        self.mx = mx
        numbers = np.random.RandomState(3)
        self.data = numbers.uniform(-1, 1, (320, 1, 12, 12)).astype(np.float32), numbers.randint(0, 10, 320).astype(np.float32)
        net = mx.gluon.nn.HybridSequential()
        # Smooth activations: where rounding flips a ReLU, an overfitted network diverges in float32 (not in float64).
        net.add(mx.gluon.nn.Conv2D(8, 3, activation="tanh", in_channels=1), mx.gluon.nn.Dense(32, activation="tanh", in_units=800),
                mx.gluon.nn.Dense(10, in_units=32))
        mx.random.seed(7)
        net.initialize(mx.init.Xavier())
        net.hybridize()
        self.net, self.samples, self.step = net, samples, lambda: None
        self.trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.05, "momentum": 0.9}, kvstore="dist_sync")

    def do_learn(self, steps, path):
        mx, workers = self.mx, int(os.environ["WORLD_SIZE"])
        loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
        for step in range(steps):
            first = (step * workers + RANK) * self.samples % 320
            x, y = (mx.nd.array(part[first:first + self.samples]) for part in self.data)
            with mx.autograd.record():
                out = loss(self.net(x), y)
            out.backward()
            self.trainer.step(self.samples * workers)
        if RANK == 0:
            np.savez(path, **{name: p.data().asnumpy() for name, p in self.net._collect_params_with_prefix().items()})
        return {}


class Ddp(Rank):
    """torch's DistributedDataParallel, as in its guide."""

    def __init__(self):
        super().__init__()
        torch.distributed.init_process_group("gloo")

    def meet(self):
        torch.distributed.barrier()

    def prepare_reduce(self):
        gradients = [torch.ones(shape) for shape in shapes()]

        class Ready(torch.autograd.Function):
            """A function whose gradients are constant."""

            @staticmethod
            def forward(ctx, *weights):
                return torch.zeros(1)

            @staticmethod
            def backward(ctx, head):
                return tuple(gradients)

        class Net(torch.nn.Module):
            """A module that uses all parameters at once."""

            def __init__(self):
                super().__init__()
                self.weights = torch.nn.ParameterList([torch.zeros(shape) for shape in shapes()])

            def forward(self, x):
                return Ready.apply(*self.weights)
        net = torch.nn.parallel.DistributedDataParallel(Net())

        def step():
            net(None).backward()
        self.step = step

    def prepare_train(self, batch, together):
        from harness import torch_models
        net = torch_models.load("resnet50", FOLDER).train().to(memory_format=torch.channels_last)
        x = torch.from_numpy(inputs.example("resnet50", batch)).to(memory_format=torch.channels_last)
        label = torch.arange(batch) % 10
        if together:
            net = torch.nn.parallel.DistributedDataParallel(net)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.001, momentum=0.9)

        def step():
            optimizer.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(net(x), label)
            start = time.perf_counter()
            loss.backward()
            optimizer.step()
            self.beside += time.perf_counter() - start
        self.step = step


if __name__ == "__main__":
    if PEER == "ddp":
        worker_protocol.keep_memory()
    {"remex": Remex, "ddp": Ddp}[PEER]().serve()
