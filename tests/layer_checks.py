"""What the tests of Gluon's layers, cells and networks share."""
import zlib

import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon.model_zoo import vision


def check_layer(layer, shape, expected):
    """The layer gives `expected`'s shape eagerly and traced, with the same values, and its gradient reaches the input."""
    layer.initialize()
    x = mx.nd.array(np.sin(np.arange(np.prod(shape))).reshape(shape))
    eager = layer(x)
    assert eager.shape == expected
    layer.hybridize()
    x.attach_grad()
    with mx.autograd.record(train_mode=False):
        traced = layer(x)
    traced.backward()
    np.testing.assert_allclose(traced.asnumpy(), eager.asnumpy(), rtol=1e-5, atol=1e-6)
    assert x.grad.shape == shape


def ready(cell):
    """The cell with values that depend on nothing but names and shapes."""
    cell.initialize()
    for i, (_, p) in enumerate(sorted(cell.collect_params().items())):
        p.set_data(mx.nd.array(np.sin(np.arange(np.prod(p.shape)) * 1.3 + i).reshape(p.shape) * 0.5))
    return cell


def check_parameters(name, expected):
    """A network of the zoo with 10 classes has as many arrays of parameters, elements, and the names and shapes whose CRC-32 this is."""
    net = vision.get_model(name, classes=10)
    side = 299 if name == "inceptionv3" else 224
    net.infer_shape(mx.nd.zeros((1, 3, side, side)))
    parameters = net._collect_params_with_prefix()
    lines = [f"{key} {tuple(p.shape)} {p.name[len(net.prefix):]}" for key, p in sorted(parameters.items())]
    elements = sum(int(np.prod(p.shape)) for p in parameters.values())
    assert (len(lines), elements, zlib.crc32("\n".join(lines).encode())) == expected


def _value(name, shape):
    draw = np.random.RandomState(zlib.crc32(name.encode()))
    if name.endswith(("gamma", "running_var")):
        return draw.uniform(0.5, 1.5, shape)
    return draw.normal(0, 1, shape) / np.sqrt(max(1, np.prod(shape[1:])))


def check_scores(name, side, expected):
    """The scores of 4 classes that a network gives to an image, with parameters that depend on nothing but names and shapes."""
    net = vision.get_model(name, classes=4)
    net.initialize()
    image = mx.nd.array(np.random.RandomState(0).uniform(-1, 1, (1, 3, side, side)))
    net.infer_shape(image)
    for key, parameter in net._collect_params_with_prefix().items():
        parameter.set_data(mx.nd.array(_value(key, parameter.shape)))
    assert net(image).asnumpy()[0] == pytest.approx(expected, rel=2e-4, abs=2e-4)
    net.hybridize()
    assert net(image).asnumpy()[0] == pytest.approx(expected, rel=2e-4, abs=2e-4)
