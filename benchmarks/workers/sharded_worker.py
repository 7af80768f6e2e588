"""One rank that trains a very wide network, for `distributed_rows/sharded_layers.py`. usage: sharded_worker.py remex|dtensor|ddp|dense|full

`prepare` builds the network: indices of features (100 a sample) -> 1024 -> tanh -> 512 -> tanh -> classes, by SGD; `step` does so many steps, and
`learn` saves the weights after them. `remex` splits the first and the last layer, `dtensor` does the same with torch by hand, `ddp` is data
parallel with torch, `dense` is data parallel by `dist_sync`, and `full` divides all weights. The memory is that beyond the libraries'.
"""
import os
import sys

import numpy as np
import torch

from harness import worker_protocol

PEER = sys.argv[1]
if PEER == "dtensor":
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.parallel import ColwiseParallel, loss_parallel, parallelize_module
elif PEER != "ddp":
    import mxnet as mx

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
HIDDEN, WIDE, FEATURES = 512, 1024, 100
LEARNING_RATE = 0.01


class Rank(worker_protocol.Rank):
    """Answers the driver; subclasses are the peers."""

    def __init__(self):
        super().__init__()
        self.before = 0  # bytes of the libraries

    def do_prepare(self, inputs, classes, batch, seed=0, **options):
        self.before = worker_protocol.high_water()
        numbers = np.random.RandomState(seed)
        columns = np.sort(np.stack([numbers.permutation(inputs)[:FEATURES].copy() for _ in range(batch * RANKS)]), 1)
        labels = numbers.randint(0, classes, batch * RANKS)
        own = slice(batch * RANK, batch * (RANK + 1))
        self.build(inputs, classes, columns[own], labels[own], **options)
        return {}

    def do_step(self, count):
        return {**super().do_step(count), "peak": worker_protocol.high_water() - self.before, "libraries": self.before}


class Remex(Rank):
    """Gluon's split layers, or with `split` false whole ones, whose weights the trainer may divide (`shard`)."""

    split, shard = True, None

    def build(self, inputs, classes, columns, labels, learning_rate=LEARNING_RATE, start=None):
        nn, batch = mx.gluon.nn, len(columns)
        body = nn.HybridSequential()
        body.add(nn.Activation("tanh"), nn.Dense(HIDDEN, activation="tanh", in_units=WIDE))
        first = nn.ShardedEmbedding(inputs, WIDE) if self.split else nn.Embedding(inputs, WIDE)
        last = (nn.ShardedDense if self.split else nn.Dense)(classes, in_units=HIDDEN)
        loss = (mx.gluon.loss.ShardedSoftmaxCELoss if self.split else mx.gluon.loss.SoftmaxCELoss)()
        net = nn.Sequential()
        net.add(first, body, last)
        net.initialize(mx.init.Uniform(0.01))
        if start:
            net.load_parameters(start)
        body.hybridize()
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": learning_rate}, kvstore="dist_sync", update_on_kvstore=False,
                                   shard=self.shard)
        self.net, self.meet = net, mx.kv.create("dist_sync")._barrier
        label = mx.nd.array(labels)
        if self.split:
            starts = np.arange(batch + 1) * FEATURES
            data = mx.nd.sparse.csr_matrix((np.ones(columns.size, "float32"), columns.ravel(), starts), shape=(batch, inputs))
            forward = net
        else:
            data = mx.nd.array(columns)

            def forward(x):
                return last(body(first(x).sum(1)))

        def step():
            with mx.autograd.record():
                out = loss(forward(data), label)
            out.backward()
            trainer.step(batch * RANKS)
        self.step = step

    def do_learn(self, steps, path):
        """Save the weights after so many steps; all ranks write a file."""
        for _ in range(steps):
            self.step()
        self.net.save_parameters(f"{path}-{RANK}")
        return {}


class Dense(Remex):
    """Data parallel: all gradients are added up."""

    split = False


class Full(Dense):
    """Data parallel, with all weights divided."""

    shard = "full"


class _Sum(torch.autograd.Function):
    """The sum of all ranks' tensors, of which each keeps the rows of its batch."""

    @staticmethod
    def forward(ctx, partial):
        torch.distributed.all_reduce(partial)
        return partial.chunk(RANKS)[RANK].clone()

    @staticmethod
    def backward(ctx, gradient):
        results = [torch.empty_like(gradient) for _ in range(RANKS)]
        torch.distributed.all_gather(results, gradient.contiguous())
        return torch.cat(results)


class Torch(Rank):
    """A peer without Remex."""

    def __init__(self):
        super().__init__()
        torch.distributed.init_process_group("gloo")

    def meet(self):
        torch.distributed.barrier()


class Ddp(Torch):
    """torch's data parallel, whose gradients have no memory but the buckets'."""

    def build(self, inputs, classes, columns, labels):
        net = torch.nn.Sequential(torch.nn.EmbeddingBag(inputs, WIDE, mode="sum"), torch.nn.Tanh(), torch.nn.Linear(WIDE, HIDDEN), torch.nn.Tanh(),
                                  torch.nn.Linear(HIDDEN, classes))
        for parameter in net.parameters():
            torch.nn.init.uniform_(parameter, -0.01, 0.01)
        net = torch.nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True)
        optimizer = torch.optim.SGD(net.parameters(), lr=LEARNING_RATE)
        columns, labels = torch.from_numpy(columns), torch.from_numpy(labels)

        def step():
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(columns), labels).backward()
            optimizer.step()
        self.step = step


class Dtensor(Torch):
    """torch: the last layer and its loss by DTensor, as the tutorial of tensor parallelism has them; DTensor has no split sum of rows."""

    def build(self, inputs, classes, columns, labels):
        mesh = init_device_mesh("cpu", (RANKS,))
        low, high = inputs * RANK // RANKS, inputs * (RANK + 1) // RANKS
        table = torch.empty(high - low + 1, WIDE).uniform_(-0.01, 0.01)
        table[-1] = 0  # for the rows of others
        table.requires_grad_()
        body = torch.nn.Linear(WIDE, HIDDEN)
        with torch.device("meta"):
            last = torch.nn.Linear(HIDDEN, classes)
        last = parallelize_module(last, mesh, ColwiseParallel(input_layouts=Shard(0), output_layouts=Shard(-1), use_local_output=False))
        last.to_empty(device="cpu")
        for parameter in last.parameters():
            torch.nn.init.uniform_(parameter.to_local(), -0.01, 0.01)
        columns, labels = torch.from_numpy(columns), torch.from_numpy(labels)
        everyone = [torch.empty_like(columns) for _ in range(RANKS)]
        targets = [torch.empty_like(labels) for _ in range(RANKS)]
        optimizer = torch.optim.SGD([table, *body.parameters(), *last.parameters()], lr=LEARNING_RATE)

        def step():
            optimizer.zero_grad(set_to_none=True)
            torch.distributed.all_gather(everyone, columns)
            torch.distributed.all_gather(targets, labels)
            index = torch.cat(everyone)
            local = torch.where((index >= low) & (index < high), index - low, high - low)
            partial = torch.nn.functional.embedding_bag(local, table, mode="sum", padding_idx=high - low, sparse=True)
            hidden = torch.tanh(body(torch.tanh(_Sum.apply(partial))))
            with loss_parallel():
                target = distribute_tensor(torch.cat(targets), mesh, [Replicate()])
                torch.nn.functional.cross_entropy(last(hidden), target).backward()
            for parameter in body.parameters():
                torch.distributed.all_reduce(parameter.grad)
            optimizer.step()
        self.step = step


if __name__ == "__main__":
    {"remex": Remex, "dense": Dense, "ddp": Ddp, "dtensor": Dtensor, "full": Full}[PEER]().serve()
