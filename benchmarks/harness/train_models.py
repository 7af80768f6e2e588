"""Small networks and their training step, imperative, hybridized and with `Module`, for Remex and MXNet 1.9.1.

`write` saves the parameters for PyTorch: NAME.npz, and NAME-symbol.json where the network consists of layers.
"""
import os

import numpy as np

import mxnet as mx
from harness import workloads
from harness.networks import EncoderLayer
from mxnet import autograd, gluon
from mxnet.gluon import nn

FLAGS = {"static_alloc": True, "static_shape": True}


def build(name):
    """Return (network, loss) of that name, not initialized."""
    if name.startswith("deepar"):
        return Forecaster(*workloads.size(name)[1:]), GaussianLoss()
    return _classifier(name), gluon.loss.SoftmaxCrossEntropyLoss()


def _classifier(name):
    net = nn.HybridSequential()
    if name == "lenet":
        net.add(nn.Conv2D(20, 5, activation="tanh"), nn.MaxPool2D(2, 2), nn.Conv2D(50, 5, activation="tanh"), nn.MaxPool2D(2, 2),
                nn.Dense(500, activation="tanh"), nn.Dense(10))
        return net
    if name == "resnet18-thin":
        vision = gluon.model_zoo.vision
        return vision.ResNetV1(vision.BasicBlockV1, [2, 2, 2, 2], [16, 16, 32, 64, 128], classes=10, thumbnail=True)
    if name == "resnet8":
        vision = gluon.model_zoo.vision
        return vision.ResNetV1(vision.BasicBlockV1, [1, 1, 1], [16, 16, 32, 64], classes=10, thumbnail=True)
    if name == "resnet18-wide":
        return gluon.model_zoo.vision.resnet18_v1()
    kind, layers, width = workloads.size(name)
    if kind == "mlp":
        net.add(*(nn.Dense(width, activation="relu") for _ in range(layers)), nn.Dense(10))
    else:
        body = {"lm": lambda: [gluon.rnn.LSTM(width, layers, input_size=width)],
                "encoder": lambda: [EncoderLayer(width, workloads.heads(width)) for _ in range(layers)]}[kind]()
        net.add(nn.Embedding(workloads.VOCABULARY, width), *body, nn.Dense(workloads.VOCABULARY, flatten=False, in_units=width))
    return net


class Forecaster(gluon.HybridBlock):
    """LSTM cells, unrolled in Python, that predict a mean and a standard deviation for each step (as DeepAR does, Salinas et al., 2017)."""

    def __init__(self, layers, width):
        super().__init__()
        with self.name_scope():
            self.cells = gluon.rnn.HybridSequentialRNNCell()
            for _ in range(layers):
                self.cells.add(gluon.rnn.LSTMCell(width))
            self.head = nn.Dense(2, flatten=False, in_units=width)

    def hybrid_forward(self, F, x):
        outputs, _ = self.cells.unroll(workloads.FORECAST_LENGTH, x, layout="NTC", merge_outputs=True)
        return self.head(outputs)


class GaussianLoss(gluon.HybridBlock):
    """-log of the normal density, up to a constant, for each example and step."""

    def hybrid_forward(self, F, x, y):
        mean = F.slice_axis(x, axis=2, begin=0, end=1).reshape((0, 0))
        spread = F.Activation(F.slice_axis(x, axis=2, begin=1, end=2).reshape((0, 0)), act_type="softrelu") + 0.01
        return F.log(spread) + 0.5 * F.square((y - mean) / spread)


def set_parameters(net, seed=0, ulp_seed=None):
    """Set the same values in every process; `ulp_seed` seeds a perturbation of each weight by one unit in the last place, up or down."""
    random, direction = np.random.RandomState(seed), np.random.RandomState(ulp_seed)
    for name, parameter in net.collect_params().items():
        shape = parameter.shape
        if len(shape) > 1:
            value = random.standard_normal(shape) * np.sqrt(1 / int(np.prod(shape[1:])))
        else:
            value = np.full(shape, float(name.endswith(("gamma", "running_var"))))
        value = value.astype(np.float32)
        if ulp_seed is not None and len(shape) > 1:
            value = np.nextafter(value, np.where(direction.rand(*shape) < 0.5, -np.inf, np.inf).astype(np.float32))
        parameter.set_data(mx.nd.array(value))


def initialized(name, count, ulp_seed=None):
    """Return (network, loss) with parameters."""
    net, loss = build(name)
    net.initialize()
    net(mx.nd.array(workloads.batch(name, count)[0]))  # infers deferred shapes
    set_parameters(net, ulp_seed=ulp_seed)
    return net, loss


def stepper(name, count, style, optimizer, ulp_seed=None):
    """Return a function of data and labels that takes one training step and returns its loss."""
    net, loss = initialized(name, count, ulp_seed)
    options = workloads.settings(name, optimizer)
    if style == "Module":
        return module_step(net, loss, optimizer, options, *workloads.batch(name, count))
    return gluon_step(net, loss, optimizer, options, style == "hybridized")


def gluon_step(net, loss, optimizer, options, hybridized):
    """Return a training step with record, backward and `Trainer`."""
    if hybridized:
        net.hybridize(**FLAGS)
        loss.hybridize(**FLAGS)
    trainer = gluon.Trainer(net.collect_params(), optimizer, options)

    def step(x, y):
        with autograd.record():
            losses = loss(net(x), y)
        losses.backward()
        trainer.step(losses.size)
        return losses.mean().asscalar()
    return step


def module_step(net, loss, optimizer, options, x, y):
    """Return a training step with `Module`: SoftmaxOutput for classifiers, MakeLoss for the rest."""
    data, label = mx.sym.var("data"), mx.sym.var("label")
    out = net(data)
    classifies = isinstance(loss, gluon.loss.SoftmaxCrossEntropyLoss)
    if classifies:
        out = mx.sym.reshape(out, (-3, 0)) if y.ndim == 2 else out
        head = mx.sym.SoftmaxOutput(out, mx.sym.reshape(label, (-1,)), name="softmax")
    else:
        head = mx.sym.MakeLoss(loss(out, label))
    module = mx.mod.Module(head, ["data"], ["label"], context=mx.context.current_context())
    module.bind([("data", x.shape)], [("label", y.shape)])
    values = {name: parameter.data() for name, parameter in net.collect_params().items()}
    aux = {name: values.pop(name) for name in module._aux_names}
    module.init_params(arg_params=values, aux_params=aux)
    module.init_optimizer(optimizer=optimizer, optimizer_params={**options, "rescale_grad": 1 / y.size})
    cross_entropy = mx.metric.CrossEntropy(eps=0)

    def step(x, y):
        module.forward_backward(mx.io.DataBatch([x], [y]))
        module.update()
        if not classifies:
            return module.get_outputs()[0].mean().asscalar()
        cross_entropy.reset()
        cross_entropy.update([y.reshape(-1)], module.get_outputs())
        return cross_entropy.get()[1]
    return step


def write(name, folder):
    """Write the parameters for PyTorch."""
    net, _ = initialized(name, 2)
    path = os.path.join(folder, name)
    net(mx.sym.var("data")).save(path + "-symbol.json")
    np.savez(path + ".new.npz", **{key: value.data().asnumpy() for key, value in net.collect_params().items()})
    os.replace(path + ".new.npz", path + ".npz")  # last and atomically: `model_files.ensure_network` looks for this file
