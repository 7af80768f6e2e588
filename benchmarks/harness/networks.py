"""Networks that are compared between libraries, defined once as Gluon blocks, for Remex and MXNet 1.9.1.

`write` saves the parameters and symbol for the other libraries: NAME.params, NAME.npz and NAME-symbol.json.
"""
import os

import numpy as np

import mxnet as mx
from harness.inputs import example, is_recurrent
from mxnet import gluon
from mxnet.gluon import nn

ZOO = {"alexnet": "alexnet", "vgg16": "vgg16", "inception-v3": "inceptionv3", "resnet18": "resnet18_v1", "resnet50": "resnet50_v1",
       "resnet101": "resnet101_v1", "resnet152": "resnet152_v1", "resnet152v2": "resnet152_v2",
       "mobilenet": "mobilenet1.0", "mobilenetv2": "mobilenetv2_1.0", "squeezenet": "squeezenet1.0"}
LAYERED = ("inception-bn", "iresnet100")


def build(name):
    """Return the network of that name, not initialized."""
    if name in ZOO:
        return gluon.model_zoo.vision.get_model(ZOO[name])
    if is_recurrent(name):
        kind = name.rstrip("0123456789x")
        layers, channels = map(int, name[len(kind):].split("x"))
        return getattr(gluon.rnn, kind.upper())(channels, layers, input_size=channels)
    return {"inception-bn": inception_bn, "iresnet100": iresnet100, "mlp": mlp, "transformer": transformer}[name]()


def mlp():
    net = nn.HybridSequential()
    net.add(nn.Dense(128, activation="relu"), nn.Dense(64, activation="relu"), nn.Dense(10))
    return net


def _unit(channels, kernel, stride=1, pad=0):
    unit = nn.HybridSequential(prefix="")
    unit.add(nn.Conv2D(channels, kernel, stride, pad), nn.BatchNorm(epsilon=1.001e-5), nn.Activation("relu"))
    return unit


def _sequential(*blocks):
    net = nn.HybridSequential(prefix="")
    net.add(*blocks)
    return net


def _inception(one, reduce, three, reduce_double, double, pool, project):
    """One Inception-BN module; without `one` and `project` it halves height and width."""
    stride = 1 if one else 2
    branches = gluon.contrib.nn.HybridConcurrent(axis=1, prefix="")
    if one:
        branches.add(_unit(one, 1))
    branches.add(_sequential(_unit(reduce, 1), _unit(three, 3, stride, 1)),
                 _sequential(_unit(reduce_double, 1), _unit(double, 3, 1, 1), _unit(double, 3, stride, 1)))
    pooling = (nn.MaxPool2D if pool == "max" else nn.AvgPool2D)(3, stride, 1)
    branches.add(_sequential(pooling, _unit(project, 1)) if project else pooling)
    return branches


def inception_bn():
    """Inception with batch normalization (Ioffe and Szegedy, 2015) for 224 x 224 images, with the widths of MXNet's example."""
    net = nn.HybridSequential()
    net.add(_unit(64, 7, 2, 3), nn.MaxPool2D(3, 2), _unit(64, 1), _unit(192, 3, 1, 1), nn.MaxPool2D(3, 2))
    for widths in [(64, 64, 64, 64, 96, "avg", 32), (64, 64, 96, 64, 96, "avg", 64), (0, 128, 160, 64, 96, "max", 0),
                   (224, 64, 96, 96, 128, "avg", 128), (192, 96, 128, 96, 128, "avg", 128), (160, 128, 160, 128, 160, "avg", 128),
                   (96, 128, 192, 160, 192, "avg", 128), (0, 128, 192, 192, 256, "max", 0),
                   (352, 192, 320, 160, 224, "avg", 128), (352, 192, 320, 192, 224, "max", 128)]:
        net.add(_inception(*widths))
    net.add(nn.GlobalAvgPool2D(), nn.Flatten(), nn.Dense(1000))
    return net


class PreActivationUnit(gluon.HybridBlock):
    """A residual unit of ArcFace's backbone, which begins with batch normalization (Deng et al., 2019)."""

    def __init__(self, inputs, channels, stride):
        super().__init__()
        norm = {"epsilon": 2e-5, "momentum": 0.9}
        with self.name_scope():
            self.body = _sequential(nn.BatchNorm(**norm), nn.Conv2D(channels, 3, 1, 1, use_bias=False, in_channels=inputs), nn.BatchNorm(**norm),
                               nn.PReLU(in_channels=channels), nn.Conv2D(channels, 3, stride, 1, use_bias=False, in_channels=channels),
                               nn.BatchNorm(**norm))
            self.short = _sequential(nn.Conv2D(channels, 1, stride, use_bias=False, in_channels=inputs), nn.BatchNorm(**norm)) if stride > 1 else None

    def hybrid_forward(self, F, x):
        return self.body(x) + (self.short(x) if self.short else x)


def iresnet100():
    """ArcFace's backbone (iResNet-100) for faces of 112 x 112 pixels."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(64, 3, 1, 1, use_bias=False), nn.BatchNorm(epsilon=2e-5), nn.PReLU(in_channels=64))
    inputs = 64
    for units, channels in ((3, 64), (13, 128), (30, 256), (3, 512)):
        for i in range(units):
            net.add(PreActivationUnit(inputs, channels, 1 if i else 2))
            inputs = channels
    net.add(nn.BatchNorm(epsilon=2e-5), nn.Flatten(), nn.Dense(512), nn.BatchNorm(epsilon=2e-5, scale=False))
    return net


class EncoderLayer(gluon.HybridBlock):
    """Self-attention and a feed-forward part, each added to its input and normalized after: BERT's, with the operators that GluonNLP's BERT calls."""

    def __init__(self, width=768, heads=12):
        super().__init__()
        self.heads = heads
        with self.name_scope():
            self.qkv = nn.Dense(3 * width, flatten=False, in_units=width)
            self.project = nn.Dense(width, flatten=False, in_units=width)
            self.norm1 = nn.LayerNorm(in_channels=width)
            self.expand = nn.Dense(4 * width, flatten=False, in_units=width)
            self.shrink = nn.Dense(width, flatten=False, in_units=4 * width)
            self.norm2 = nn.LayerNorm(in_channels=width)

    def hybrid_forward(self, F, x):
        qkv = F.swapaxes(self.qkv(x), 0, 1)
        attention = F.softmax(F.contrib.interleaved_matmul_selfatt_qk(qkv, heads=self.heads))
        mixed = F.swapaxes(F.contrib.interleaved_matmul_selfatt_valatt(qkv, attention, heads=self.heads), 0, 1)
        x = self.norm1(x + self.project(mixed))
        return self.norm2(x + self.shrink(F.LeakyReLU(self.expand(x), act_type="gelu")))


def transformer():
    net = nn.HybridSequential()
    net.add(*(EncoderLayer() for _ in range(12)))
    return net


def _set_running_statistics(net, x):
    """Set the running statistics of batch normalization to those of `x`, so that activations keep a scale of 1 through the whole network."""
    if not any(name.endswith("running_var") for name in net.collect_params()):
        return
    with mx.autograd.train_mode():
        net(x).wait_to_read()
    for name, parameter in net.collect_params().items():
        if name.endswith(("running_mean", "running_var")):  # they moved by 0.1 of the way from 0 and 1
            start = 1.0 if name.endswith("var") else 0.0
            parameter.set_data((parameter.data() - 0.9 * start) / 0.1)


def write(name, folder):
    """Write a network's parameters and symbol for all libraries."""
    mx.random.seed(0)
    net = build(name)
    net.initialize(mx.init.Xavier(magnitude=2 if name in ZOO or name in LAYERED else 3))
    _set_running_statistics(net, mx.nd.array(example(name, 4)))
    net(mx.nd.array(example(name, 1)))  # infers deferred shapes
    path = os.path.join(folder, name)
    net.save_parameters(path + ".params")
    if name in ZOO or name in (*LAYERED, "mlp"):
        net(mx.sym.var("data")).save(path + "-symbol.json")
    np.savez(path + ".new.npz", **{key: value.data().asnumpy() for key, value in net.collect_params().items()})
    os.replace(path + ".new.npz", path + ".npz")  # last and atomically: `model_files.ensure_network` looks for this file
