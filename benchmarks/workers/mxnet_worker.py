"""Run the rows of `run.py` in Remex or MXNet 1.9.1: the same Gluon and Module program under two Pythons.

usage: mxnet_worker.py FOLDER [mkldnn] [module] [allocator] [own-threads] [single] [plain]
"""
import os
import sys

import numpy as np

import mxnet as mx
from harness import inputs, networks, train_models, worker_protocol, workloads
from mxnet import autograd, gluon

FOLDER, OPTIONS = sys.argv[1], set(sys.argv[2:])
FLAGS = {"static_alloc": True, "static_shape": True}
LOW = "bfloat16"


def prepare(row):
    name, batch, mode = row["network"], row["batch"], row.get("mode", "scoring")
    if mode == "training" and row["dtype"] == LOW and "single" not in OPTIONS:
        from mxnet.contrib import amp
        amp.init(LOW)
    if row["task"] == "steps":
        return small_training(row)
    net = networks.build(name)
    net.load_parameters(os.path.join(FOLDER, name + ".params"))
    if row["task"] == "quantizing":
        images = mx.nd.array(inputs.example(name, inputs.CALIBRATION))
        return (lambda: quantized(net, images, batch)), None
    x = mx.nd.array(inputs.example(name, batch))
    if mode == "training":
        return training(net, x, name)
    if "module" in OPTIONS or row["task"] == "module":
        return predicting(net, x, name)
    return scoring(net, x, row)


def quantized(net, x, batch=None):
    """Return the INT8 network, calibrated with these images, in batches of this size, or all at once."""
    from mxnet.contrib import quantization
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(x, mx.nd.zeros(len(x))), batch_size=batch or len(x))
    return quantization.quantize_net_v2(net, quantized_dtype="auto", calib_data=loader, calib_mode="naive", ctx=mx.cpu())


def scoring(net, x, row):
    if row["dtype"] == "int8" and not OPTIONS & {"single", "plain"}:
        net = quantized(net, x)
    if row["task"] == "rnn-bf16":
        net.cast(LOW)
        x = x.astype(LOW)

    def optimize():
        if row["task"] in ("scoring-bf16", "encoder-bf16") and "single" not in OPTIONS:
            net.optimize_for(x, backend="openvino", precision=LOW)
        elif "mkldnn" in OPTIONS:
            net.optimize_for(x, backend="MKLDNN", **FLAGS)
        else:
            net.hybridize(**FLAGS)

    def call():
        net(x).wait_to_read()

    def first():
        optimize()
        call()

    if row["task"] == "compile":
        return first, None
    optimize()
    call.settled = lambda: getattr(getattr(getattr(net, "_cached_op", None), "_runner", None), "settled", True)  # MXNet has no such thing
    return call, lambda: net(x).astype("float32").asnumpy()


def predicting(net, x, name):
    """Return a prediction of eight batches of an iterator, with Module or with Gluon."""
    batches, size = 8, x.shape[0]
    data = np.concatenate([x.asnumpy()] * batches)
    iterator = mx.io.NDArrayIter(data, batch_size=size)
    if "module" in OPTIONS:
        module = mx.mod.Module(net(mx.sym.var("data")), label_names=None)
        module.bind(data_shapes=iterator.provide_data, for_training=False)
        values = {key: value.data() for key, value in net.collect_params().items()}
        module.set_params({k: v for k, v in values.items() if "running" not in k}, {k: v for k, v in values.items() if "running" in k})
        return (lambda: module.predict(iterator).wait_to_read()), lambda: module.predict(iterator).asnumpy()[:size]
    net.hybridize(**FLAGS)

    def predict():
        iterator.reset()
        return mx.nd.concat(*[net(batch.data[0]) for batch in iterator], dim=0)
    return (lambda: predict().wait_to_read()), lambda: predict().asnumpy()[:size]


def training(net, x, name):
    """Return a synchronous step of forward, backward and SGD with momentum."""
    net.hybridize(**FLAGS)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.001, "momentum": 0.9})
    classes = gluon.loss.SoftmaxCrossEntropyLoss()
    classes.hybridize(**FLAGS)
    batch = x.shape[1] if inputs.is_recurrent(name) else x.shape[0]
    label = mx.nd.array(np.arange(batch) % 10)

    def step():
        with autograd.record():
            out = net(x)
            loss = (out * out).mean() if inputs.is_recurrent(name) else classes(out, label)
        loss.backward()
        trainer.step(1 if inputs.is_recurrent(name) else batch)
        mx.nd.waitall()
        return float(loss.mean().asscalar())
    return step, lambda: [step(), step()]


def small_training(row):
    """Return a step in the row's style. It waits for the loss only, which MXNet has before its backward has ended."""
    step = train_models.stepper(row["network"], row["batch"], row["style"], "sgd")
    x, y = map(mx.nd.array, workloads.batch(row["network"], row["batch"]))
    return (lambda: step(x, y)), lambda: [step(x, y), step(x, y)]


if __name__ == "__main__":
    if "allocator" in OPTIONS:
        worker_protocol.keep_memory()
    worker_protocol.Worker(prepare, mx.nd.waitall).serve()
