"""What tests of folded convolutions share: small networks, and their graphs on torch."""
import types

import numpy as np
import torch

import mxnet as mx
from mxnet.gluon import nn
from mxnet.gluon.model_zoo import vision
from mxnet.graph import GraphRunner
from mxnet.graph.backends.cuda import prepared_weights

GPU = torch.device("cuda", 0)
# A context of a GPU, which mx.gpu() is not where there is none.
CONTEXT = types.SimpleNamespace(torch_device=GPU, device_id=0, device_typeid=2)


class Inception(nn.HybridBlock):
    """Branches of factorized convolutions, joined."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.stem = _unit(8, 3, strides=2)
            self.branches = nn.HybridSequential()
            self.branches.add(_unit(8, 1), nn.HybridSequential(), nn.HybridSequential())
            self.branches[1].add(_unit(8, 1), _unit(8, (1, 5), padding=(0, 2)), _unit(8, (5, 1), padding=(2, 0)))
            self.branches[2].add(nn.AvgPool2D(3, 1, 1), _unit(8, 1))
            self.out = nn.Dense(5)

    def hybrid_forward(self, F, x):
        x = self.stem(x)
        return self.out(F.concat(*[branch(x) for branch in self.branches], dim=1))


class Dense(nn.HybridBlock):
    """Batch norm and ReLU come before each convolution, whose result is read by all that follow."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.first = nn.Conv2D(8, 3, padding=1, use_bias=False)
            self.layers = nn.HybridSequential()
            for _ in range(3):
                layer = nn.HybridSequential()
                layer.add(nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(8, 1, use_bias=False), nn.BatchNorm(), nn.Activation("relu"),
                          nn.Conv2D(4, 3, padding=1, use_bias=False), nn.Dropout(0.3))
                self.layers.add(layer)
            self.out = nn.Dense(5)

    def hybrid_forward(self, F, x):
        x = self.first(x)
        for layer in self.layers:
            x = F.concat(x, layer(x), dim=1)
        return self.out(x)


def _unit(*args, **kwargs):
    unit = nn.HybridSequential()
    unit.add(nn.Conv2D(*args, **kwargs, use_bias=False), nn.BatchNorm(epsilon=0.001), nn.Activation("relu"))
    return unit


NETWORKS = {"resnet18_v1": lambda: vision.resnet18_v1(classes=5), "resnet18_v2": lambda: vision.resnet18_v2(classes=5),
            "mobilenet_v2": lambda: vision.mobilenet_v2_0_25(classes=5), "vgg11_bn": lambda: vision.vgg11_bn(classes=5),
            "inception": Inception, "dense": Dense}


def made(net, shape=(2, 3, 32, 32), dtype="float32", ctx=None, seed=0):
    """The network with numbers that tell its parameters apart, and an image of that shape."""
    rng = np.random.RandomState(seed)
    x = mx.nd.array(rng.uniform(-1, 1, shape), ctx=ctx).astype(dtype)
    net.initialize(mx.init.Xavier(), ctx=ctx)
    net.cast(dtype)
    net(x)
    for name, p in net.collect_params().items():
        if name.endswith(("gamma", "beta", "running_mean", "running_var")) or name.endswith("bias"):
            low, high = (0.5, 1.5) if name.endswith(("var", "gamma")) else (-0.3, 0.3)
            p.set_data(mx.nd.array(rng.uniform(low, high, p.shape)))
    return net, x


def graph_of(net, x, **kwargs):
    """A runner of the network's graph, and its inputs as tensors."""
    out = net(mx.sym.var("data"))
    symbol = out if isinstance(out, mx.sym.Symbol) else mx.sym.Group(list(out))
    parameters = {p.name: p.data()._data for p in net.collect_params().values()}
    runner = GraphRunner(symbol, **kwargs)
    return runner, [x._data if name == "data" else parameters[name] for name in runner.input_names]


def native(runner, inputs):
    """What the graph gives on torch, operator by operator."""
    with torch.no_grad():
        return runner.lowered(False, GPU, inputs)(*inputs)


def folded(runner, inputs, exact=False):
    """The graph as it is rewritten for GPUs."""
    return prepared_weights.prepared(runner.lowered(False, GPU, inputs), inputs, runner.weights, GPU, exact)


def on_gpu(runner, inputs):
    """What the runner gives on a stand-in of a GPU."""
    with torch.no_grad():
        return runner(inputs, ctx=CONTEXT)
