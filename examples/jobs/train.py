"""Train a small network on all workers of a job, wherever the job was started: by launch, torchrun, Slurm, Kubernetes, SageMaker or Ray.

    python -m mxnet.tools.launch -n 2 -s 0 --launcher local python examples/jobs/train.py --model-dir /tmp/model

Each worker takes its part of the data; the first one saves the network. Options that it does not know are ignored, since some services add their own.
"""
import argparse
import os

import numpy as np

import mxnet as mx
from mxnet import autograd, gluon


def data(samples, seed=0):
    """Return images of (samples, 16) and their labels, one of two classes that a line divides."""
    numbers = np.random.default_rng(seed)
    images = numbers.standard_normal((samples, 16)).astype(np.float32)
    return images, (images.sum(1) > 0).astype(np.float32)


def train(model_dir, epochs=3, batch_size=64, learning_rate=0.1, samples=2048):
    """Train on this worker's part of the data; return the job's rank, its number of workers and the accuracy."""
    store = mx.kv.create("dist_sync")
    rank, workers = store.rank, store.num_workers
    images, labels = data(samples)
    own = slice(rank, None, workers)
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(images[own], labels[own]), batch_size=batch_size // workers, last_batch="discard")
    mx.random.seed(1)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(32, activation="relu"), gluon.nn.Dense(2))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    cross_entropy = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", optimizer_params={"learning_rate": learning_rate}, kvstore=store)
    for _ in range(epochs):
        for x, y in loader:
            with autograd.record():
                loss = cross_entropy(net(x), y)
            loss.backward()
            trainer.step(batch_size)
    accuracy = float((net(mx.nd.array(images)).asnumpy().argmax(1) == labels).mean())
    if rank == 0:
        os.makedirs(model_dir, exist_ok=True)
        net.export(os.path.join(model_dir, "net"))
    return rank, workers, accuracy


def main():
    """Read the options and train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model-dir", default=os.environ.get("SM_MODEL_DIR", "model"), help="folder of the network's files")
    parser.add_argument("--epochs", type=int, default=3, help="passes over the data")
    parser.add_argument("--batch-size", type=int, default=64, help="samples of a step, of all workers together")
    parser.add_argument("--learning-rate", type=float, default=0.1, help="of SGD")
    args, _ = parser.parse_known_args()
    rank, workers, accuracy = train(args.model_dir, args.epochs, args.batch_size, args.learning_rate)
    print(f"worker {rank} of {workers}: accuracy {accuracy:.3f}", flush=True)


if __name__ == "__main__":
    main()
