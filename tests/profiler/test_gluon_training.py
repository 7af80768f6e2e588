"""The way from a data set to a profile of one training step, with the pieces that MXNet's own introduction to profiling uses."""
import json

import numpy as np

import mxnet as mx
from mxnet import autograd, gluon, profiler
from mxnet.gluon.data.vision import transforms


def test_one_profiled_iteration(tmp_path):
    images = np.random.default_rng(0).integers(0, 255, (128, 28, 28, 1), dtype=np.uint8)
    dataset = gluon.data.ArrayDataset(mx.nd.array(images, dtype="uint8"), np.arange(128) % 10).transform_first(transforms.ToTensor())
    batches = iter(gluon.data.DataLoader(dataset, batch_size=64, shuffle=True))
    net = gluon.nn.HybridSequential()
    with net.name_scope():
        for channels in (8, 16):
            net.add(gluon.nn.Conv2D(channels, kernel_size=5, activation="relu"), gluon.nn.MaxPool2D(2, 2))
        net.add(gluon.nn.Flatten(), gluon.nn.Dense(32, activation="relu"), gluon.nn.Dense(10))
    net.collect_params().initialize(mx.init.Xavier(), ctx=mx.cpu())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss()

    def iteration(data, label):
        with autograd.record():
            loss = loss_function(net(data), label)
        loss.backward()
        trainer.step(data.shape[0])

    iteration(*next(batches))
    trace = tmp_path / "profile_output.json"
    profiler.set_config(profile_all=True, aggregate_stats=True, continuous_dump=True, filename=str(trace))
    profiler.dumps(reset=True)
    profiler.set_state("run")
    iteration(*next(batches))
    mx.nd.waitall()
    profiler.set_state("stop")
    profiler.dump()
    rows = json.loads(profiler.dumps(format="json"))["Time"]["operator"]
    assert rows["Convolution"]["Count"] == rows["_backward_Convolution"]["Count"] == 2
    assert rows["FullyConnected"]["Count"] == 2 and rows["Pooling"]["Count"] == 2
    names = {e["name"] for e in json.loads(trace.read_text())["traceEvents"]}
    assert {"Convolution", "_backward_FullyConnected", "Memory: cpu/0"} <= names
