"""A training that is saved while it goes on, and that goes on where it was: on one process, or divided over ranks.

    python examples/resumable_training.py --epochs 3
    python examples/resumable_training.py --epochs 6             # continues with epoch 3
    python -m mxnet.tools.launch -n 2 -s 0 --launcher local \\
        python examples/resumable_training.py --kv-store dist_sync --shard full --epochs 9

The third command continues on two ranks, each with half of the weights and of the optimizer's states. Samples are noisy directions, one for each
class.
"""
import argparse
import logging

import numpy as np

import mxnet as mx

CLASSES, FEATURES, BATCH = 10, 64, 32


def loader(rank, ranks, samples=640):
    """Return this rank's share of the data."""
    numbers = np.random.RandomState(0)
    labels = numbers.randint(0, CLASSES, samples)
    features = numbers.standard_normal((CLASSES, FEATURES))[labels] + 2 * numbers.standard_normal((samples, FEATURES))
    own = slice(rank, None, ranks)
    data = mx.gluon.data.ArrayDataset(features[own].astype("float32"), labels[own].astype("float32"))
    return mx.gluon.data.DataLoader(data, BATCH // ranks, shuffle=True)


def train(folder, epochs, store=None, shard=None):
    """Train until so many epochs are over; return the network and its mean losses."""
    rank, ranks = (store.rank, store.num_workers) if store else (0, 1)
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(128, activation="relu", in_units=FEATURES), mx.gluon.nn.Dropout(0.3), mx.gluon.nn.Dense(CLASSES, in_units=128))
    net.initialize(mx.init.Xavier())
    trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.005}, kvstore=store, shard=shard)
    data, loss, losses = loader(rank, ranks), mx.gluon.loss.SoftmaxCELoss(), []
    at = trainer.resume_training(folder, net, data)
    if at:
        logging.info("going on with epoch %d%s", at.epoch, "" if at.exact else ", on another number of ranks")
    for epoch in range(at.epoch if at else 0, epochs):
        total = 0
        for x, y in data:
            with mx.autograd.record():
                out = loss(net(x), y)
            out.backward()
            trainer.step(BATCH)
            total += float(out.mean().asscalar())
        losses.append(total / len(data))
        logging.info("epoch %d: loss %.3f", epoch, losses[-1])
        pending = trainer.save_training(folder, net, data, epoch=epoch + 1)  # goes on in the background
    if losses:
        pending.wait()
    return net, losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", default="saves")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--kv-store", help="dist_sync, if a launcher starts it")
    parser.add_argument("--shard", choices=["full"])
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    store = mx.kv.create(args.kv_store) if args.kv_store else None
    train(args.folder, args.epochs, store, args.shard)
    if store:
        store._barrier()


if __name__ == "__main__":
    main()
