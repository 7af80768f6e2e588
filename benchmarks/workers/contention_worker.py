"""Run steps for `cpu_contention.py`, under Remex or under MXNet 1.9.1. usage: contention_worker.py STEP SECONDS

It runs for twice so many seconds and prints the mean of the second half, in ms: a quota and other programs act through pauses, which a median hides.
"""
import os
import statistics
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(HERE, "..", "..", "examples")]
import wide_network  # noqa: E402  # the example

import mxnet as mx  # noqa: E402
from harness import networks, train_models, workloads  # noqa: E402

FEATURES, ENTRIES, ROWS = 100_000, 30, 256  # the sparse linear model: number of features, entries of a row, rows of a batch


def training(name, count, style):
    """Return a training step of one of `train_models`, with Adam."""
    step = train_models.stepper(name, count, style, "adam")
    x, y = (mx.nd.array(a) for a in workloads.batch(name, count))
    return lambda: step(x, y)


def scoring(name, *shape):
    """Return a function that scores one batch by a hybridized network."""
    net = networks.build(name)
    net.initialize(mx.init.Xavier())
    net.hybridize(**train_models.FLAGS)
    x = mx.nd.array(np.random.RandomState(0).standard_normal(shape).astype("float32"))
    return lambda: net(x).asnumpy()


def sparse_linear():
    """Return a step of logistic regression on CSR batches that `LibSVMIter` reads, with a row_sparse weight and SGD."""
    rng = np.random.RandomState(0)
    with tempfile.NamedTemporaryFile("w", suffix=".svm") as file:
        for label in rng.randint(2, size=ROWS * 16):
            columns = np.unique(rng.randint(FEATURES, size=ENTRIES))
            file.write(f"{label} " + " ".join(f"{c}:{v:.4f}" for c, v in zip(columns, rng.rand(len(columns)))) + "\n")
        file.flush()
        rows = mx.io.LibSVMIter(data_libsvm=file.name, data_shape=(FEATURES,), batch_size=ROWS)
        batches = list(rows)
    data, weight = mx.sym.Variable("data", stype="csr"), mx.sym.Variable("weight", stype="row_sparse", shape=(FEATURES, 2), init=mx.init.Normal(0.01))
    scores = mx.sym.broadcast_add(mx.sym.sparse.dot(data, weight), mx.sym.Variable("bias", shape=(2,), init=mx.init.Zero()))
    module = mx.mod.Module(mx.sym.SoftmaxOutput(scores, name="softmax"), ["data"], ["softmax_label"])
    module.bind(rows.provide_data, rows.provide_label)
    module.init_params()
    module.init_optimizer(kvstore=mx.kv.create("local"), optimizer="sgd", optimizer_params={"learning_rate": 0.1})
    metric, number = mx.metric.Accuracy(), [0]

    def step():
        batch = batches[number[0] % len(batches)]
        number[0] += 1
        module.prepare(batch, sparse_row_id_fn=lambda b: {"weight": b.data[0].indices})
        module.forward_backward(batch)
        module.update()
        module.update_metric(metric, batch.label)
    return step


def wide(scale):
    """Return a step of examples/wide_network.py on CSR batches, with Adam."""
    inputs, outputs, rng = wide_network.INPUTS // scale, wide_network.OUTPUTS // scale, np.random.default_rng(0)
    net = wide_network.module("csr", 128, inputs, outputs, "adam", {"learning_rate": 0.001}, mx.kv.create("local"))
    epoch = [wide_network.samples(rng, 128, inputs, outputs) for _ in range(4)]

    def step():
        epoch.append(epoch.pop(0))
        wide_network.step(net, wide_network.batch("csr", *epoch[0], inputs, outputs))
        mx.nd.waitall()
    return step


STEPS = {
    "MLP, 3 layers of 128, batch 64, Gluon": lambda: training("mlp3x128", 64, "hybridized"),
    "MLP, 3 layers of 128, batch 64, Module": lambda: training("mlp3x128", 64, "Module"),
    "LeNet, batch 32, Gluon": lambda: training("lenet", 32, "hybridized"),
    "LeNet, batch 32, Module": lambda: training("lenet", 32, "Module"),
    "unrolled LSTM, 2 layers of 40, batch 32, Module": lambda: training("deepar2x40", 32, "Module"),
    "ResNet-18, 16 to 128 channels, batch 16, Gluon": lambda: training("resnet18-thin", 16, "hybridized"),
    "scoring ResNet-50, batch 1": lambda: scoring("resnet50", 1, 3, 224, 224),
    "scoring an MLP, batch 64": lambda: scoring("mlp", 64, 784),
    "sparse linear model, batch 256, Module": sparse_linear,
    "wide network at 1/20, CSR, Module": lambda: wide(20),
}


def main():
    step, seconds, times = STEPS[sys.argv[1]](), float(sys.argv[2]), []
    end = time.perf_counter() + 2 * seconds
    while time.perf_counter() < end or len(times) < 4:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    print(statistics.mean(times[len(times) // 2:]) * 1e3)


if __name__ == "__main__":
    main()
