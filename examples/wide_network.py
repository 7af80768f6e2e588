"""A network of fully connected layers over very many sparse features, with very many classes: who wrote what, or who will buy what.

    python examples/wide_network.py --input csr
    python -m mxnet.tools.launch -n 2 -s 0 --launcher local python examples/wide_network.py --input csr --kv-store dist_sync

By default 250,000 features, of which each sample has 100, and 200,000 classes: 6 GB of memory and seconds a batch. ``--scale 100`` divides both.
With ``--input dense`` batches come as rows full of zeros and the optimizer works on all weights; with ``csr`` only the first layer's rows for
features that a batch has are computed, updated, and sent to other machines. ``--output sampled`` does the same for the last layer: the loss is that
of the batch's classes among some others, drawn anew for each batch. ``--output split`` puts a part of the last layer, its weight, gradient and
optimizer's states on each of ``--devices``, such as gpu(0),gpu(1); with dense rows, as networks on several devices compute on dense arrays.
"""
import argparse
import re
import time

import numpy as np

import mxnet as mx

INPUTS, OUTPUTS, HIDDEN, FEATURES, SAMPLED = 250_000, 200_000, (1024, 512), 100, 1024


def network(stype, inputs=INPUTS, outputs=OUTPUTS, sampled=False, parts=1):
    """The network as a Symbol; for CSR batches the first layer's weight is stored by rows, (inputs, 1024), if `sampled` the last one's, too.

    Of `parts` of the last layer each is in a group of its own: ``part0``, ``part1``, ...
    """
    data = mx.sym.Variable("data", stype=stype)
    if stype == "csr":
        weight = mx.sym.Variable("fc1_weight", stype="row_sparse", shape=(inputs, HIDDEN[0]))
        bias = mx.sym.Variable("fc1_bias", shape=(HIDDEN[0],))
        net = mx.sym.broadcast_add(mx.sym.sparse.dot(data, weight), bias)
    else:
        net = mx.sym.FullyConnected(data, num_hidden=HIDDEN[0], name="fc1")
    net = mx.sym.Activation(net, act_type="relu")
    net = mx.sym.Activation(mx.sym.FullyConnected(net, num_hidden=HIDDEN[1], name="fc2"), act_type="relu")
    if sampled:
        weight = mx.sym.Variable("fc3_weight", stype="row_sparse", shape=(outputs, HIDDEN[1]))
        rows = mx.sym.contrib.SparseEmbedding(mx.sym.Variable("sampled"), weight, input_dim=outputs, output_dim=HIDDEN[1], name="fc3")
        return mx.sym.SoftmaxOutput(mx.sym.dot(net, rows, transpose_b=True), name="softmax")
    if parts == 1:
        return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=outputs, name="fc3"), name="softmax")
    scores = []
    for i in range(parts):
        with mx.AttrScope(ctx_group=f"part{i}"):
            scores.append(mx.sym.FullyConnected(net, num_hidden=outputs * (i + 1) // parts - outputs * i // parts, name=f"fc3_{i}"))
    return mx.sym.SoftmaxOutput(mx.sym.concat(*scores, dim=1), name="softmax")


def samples(rng, count, inputs=INPUTS, outputs=OUTPUTS):
    """Features (count, 100), in order, and classes that follow from them."""
    columns = np.sort(np.stack([rng.choice(inputs, FEATURES, replace=False) for _ in range(count)]), axis=1)
    return columns, columns[:, 0] * 7919 % outputs


def batch(stype, columns, classes, inputs=INPUTS, outputs=OUTPUTS, sampled_by=None):
    """A `DataBatch` of samples, as rows full of zeros or as a CSR matrix; a generator `sampled_by` draws the other classes of a sampled loss."""
    if stype == "csr":
        parts = np.ones(columns.size, "float32"), columns.reshape(-1), np.arange(0, columns.size + 1, FEATURES)
        data = mx.nd.sparse.csr_matrix(parts, shape=(len(columns), inputs))
    else:
        rows = np.zeros((len(columns), inputs), "float32")
        np.put_along_axis(rows, columns, 1, axis=1)
        data = mx.nd.array(rows)
    if sampled_by is None:
        return mx.io.DataBatch([data], [mx.nd.array(classes)])
    own, others = np.unique(classes), sampled_by.permutation(outputs)
    classes_used = np.sort(np.concatenate([own, others[~np.isin(others, own)]])[:min(SAMPLED, outputs)])
    return mx.io.DataBatch([data, mx.nd.array(classes_used)], [mx.nd.array(np.searchsorted(classes_used, classes))])


def module(stype, count, inputs=INPUTS, outputs=OUTPUTS, optimizer="adam", optimizer_params=(("learning_rate", 0.001),), kv_store="local",
           sampled=False, devices=(), split=True):
    """A `Module` for batches of `count` samples, ready to train.

    With `split` the last layer is split over `devices`, and the rest runs on the first one; else each takes its part of a batch.
    """
    more = [mx.io.DataDesc("sampled", (min(SAMPLED, outputs),), layout="C")] if sampled else []  # no axis of it is the batch's
    groups = {f"part{i}": device for i, device in enumerate(devices)} if split else {}
    context = devices[0] if groups else list(devices) or mx.cpu()
    made = mx.mod.Module(network(stype, inputs, outputs, sampled, len(groups) or 1), data_names=["data", *[d.name for d in more]], context=context,
                         group2ctxs=groups or None)
    made.bind(data_shapes=[("data", (count, inputs)), *more], label_shapes=[("softmax_label", (count,))])
    made.init_params(mx.init.Uniform(0.01))
    made.init_optimizer(kvstore=kv_store, optimizer=optimizer, optimizer_params=dict(optimizer_params))
    return made


def step(net, made):
    """Train on a batch."""
    needed = {"fc1_weight": made.data[0].indices} if made.data[0].stype == "csr" else {}
    if len(made.data) > 1:
        needed["fc3_weight"] = made.data[1].astype("int64")
    if needed:  # fetch the rows that the batch needs
        net.prepare(made, sparse_row_id_fn=lambda _: needed)
    net.forward_backward(made)
    net.update()


def loss(net, made):
    """The mean cross entropy of the last batch."""
    likely = net.get_outputs()[0].pick(made.label[0]).asnumpy()
    return float(-np.log(likely.clip(1e-12)).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--input", choices=("dense", "csr"), default="csr", help="storage of the batches")
    parser.add_argument("--output", choices=("all", "sampled", "split"), default="all",
                        help="all classes, sampled classes, or a last layer split over --devices")
    parser.add_argument("--devices", default="cpu(0)", help="such as 'cpu(0),cpu(1)': what shares each batch or, with --output split, the last layer")
    parser.add_argument("--optimizer", default="adam", help="adamax needs epsilon=1e-8 here, and gets it; see mx.optimizer.Adamax")
    parser.add_argument("--kv-store", default="local", help="such as local, device, dist_sync")
    parser.add_argument("--scale", type=int, default=1, help="divide inputs and outputs by this")
    parser.add_argument("--batch-size", type=int, default=128, help="samples of a batch")
    parser.add_argument("--batches", type=int, default=10, help="number of training steps")
    parser.add_argument("--profile", metavar="FILE", help="profile all batches but the first two into this file")
    args = parser.parse_args()
    stype = "csr" if args.input == "csr" else "default"
    inputs, outputs = max(FEATURES, INPUTS // args.scale), OUTPUTS // args.scale
    parameters = {"learning_rate": 0.001, **({"epsilon": 1e-8} if args.optimizer == "adamax" else {})}
    store = mx.kv.create(args.kv_store)
    sampled = args.output == "sampled"
    devices = [mx.Context(named[0], int(named[1])) for named in re.findall(r"(\w+)\((\d+)\)", args.devices)]
    net = module(stype, args.batch_size, inputs, outputs, args.optimizer, parameters, store, sampled, devices,
                 args.output == "split")
    rng = np.random.default_rng(store.rank)
    columns, classes = samples(rng, args.batch_size, inputs, outputs)  # one batch again and again: that it learns shows soon
    for number in range(args.batches):
        if args.profile and number == 2:  # what is compiled is compiled by now
            mx.profiler.set_config(filename=args.profile, profile_all=True)
            mx.profiler.set_state("run")
        begin = time.time()
        made = batch(stype, columns, classes, inputs, outputs, rng if sampled else None)
        step(net, made)
        print(f"worker {store.rank}, batch {number}: loss {loss(net, made):.4f}, {time.time() - begin:.2f} s", flush=True)
    if args.profile:
        mx.profiler.set_state("stop")
        mx.profiler.dump()


if __name__ == "__main__":
    main()
