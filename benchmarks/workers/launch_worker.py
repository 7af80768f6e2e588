"""One worker of a job that trains a small network for one step, and writes when it had done so. usage: start_worker.py remex|ddp FOLDER"""
import os
import sys
import time


def remex():
    """Gluon's Trainer over `dist_sync`; the worker's number."""
    import mxnet as mx
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(128, activation="relu"), mx.gluon.nn.Dense(10))
    net.initialize()
    net.hybridize()
    store = mx.kv.create("dist_sync")
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore=store)
    with mx.autograd.record():
        loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()(net(mx.nd.ones((32, 784))), mx.nd.zeros(32))
    loss.backward()
    trainer.step(32)
    mx.nd.waitall()
    return store.rank


def ddp():
    """The same with torch's DistributedDataParallel; the worker's number."""
    import torch
    torch.distributed.init_process_group("gloo")
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    torch.nn.functional.cross_entropy(net(torch.ones(32, 784)), torch.zeros(32, dtype=torch.long)).backward()
    optimizer.step()
    return torch.distributed.get_rank()


if __name__ == "__main__":
    rank = {"remex": remex, "ddp": ddp}[sys.argv[1]]()
    done = time.time()
    with open(os.path.join(sys.argv[2], str(rank)), "w") as file:
        file.write(repr(done))
    if sys.argv[1] == "ddp":  # whose threads, while the interpreter ends, may end the process with SIGABRT
        import torch
        torch.distributed.barrier()
        os._exit(0)
