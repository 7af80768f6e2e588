"""Whole networks of Gluon as ONNX files, at other sizes than those that they were written with."""
import numpy as np
import onnx
import pytest

import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn
from onnx_checks import run
from onnx_networks import SSD, Encoder, Language, encoder_inputs, language_inputs, ssd_inputs


def compare(net, path, example, varying, others, rtol=1e-4):
    """Export a network and compare its scores, for the example and other inputs, with ONNX Runtime's and with the file read back; the model."""
    net.initialize(mx.init.Xavier())
    net.hybridize()
    net(*(mx.nd.array(v, dtype=v.dtype) for v in example))
    net.export(str(path / "net"))
    mx.onnx.export_model(str(path / "net-symbol.json"), str(path / "net-0000.params"), [v.shape for v in example], [v.dtype for v in example],
                         str(path / "net.onnx"), dynamic=True, dynamic_input_shapes=varying)
    model = onnx.load(path / "net.onnx")
    onnx.checker.check_model(model, full_check=True)
    names = [i.name for i in model.graph.input]
    back = mx.contrib.onnx.import_to_gluon(str(path / "net.onnx"))
    for given in (example, *others):
        expected = net(*(mx.nd.array(v, dtype=v.dtype) for v in given))
        expected = list(expected) if isinstance(expected, (list, tuple)) else [expected]
        for found, out in zip(run(model, dict(zip(names, given))), expected, strict=True):
            np.testing.assert_allclose(found, out.asnumpy(), rtol=rtol, atol=rtol * abs(out.asnumpy()).max())
        scores = back(*(mx.nd.array(v, dtype=v.dtype) for v in given))
        for found, out in zip(scores if isinstance(scores, (list, tuple)) else [scores], expected, strict=True):
            np.testing.assert_allclose(found.asnumpy(), out.asnumpy(), rtol=rtol, atol=rtol * abs(out.asnumpy()).max())
    return model


@pytest.mark.parametrize("name,size", [("resnet18_v2", 64), ("squeezenet1_1", 224), ("mobilenet_v2_0_25", 32)])
def test_networks_for_images(tmp_path, name, size):
    images = np.random.default_rng(1).uniform(-1, 1, (3, 3, size, size)).astype(np.float32)
    net = getattr(gluon.model_zoo.vision, name)(classes=10)
    compare(net, tmp_path, [images[:1]], [("batch", 3, size, size)], [[images]])


def test_an_encoder_of_text_at_any_length(tmp_path):
    rng = np.random.default_rng(1)
    compare(Encoder(), tmp_path, encoder_inputs(rng), [("batch", "length"), ("batch",)], [encoder_inputs(rng, 3, 12), encoder_inputs(rng, 1, 4)])


def test_a_language_model_with_its_states(tmp_path):
    rng = np.random.default_rng(1)
    compare(Language(), tmp_path, language_inputs(rng), [("length", "batch"), (2, "batch", 12), (2, "batch", 12)], [language_inputs(rng, 9, 3)])


def test_a_detector_with_its_suppression(tmp_path):
    rng = np.random.default_rng(1)
    model = compare(SSD(), tmp_path, ssd_inputs(rng), [("batch", 3, 32, 32)], [ssd_inputs(rng, 3)])
    assert [node.op_type for node in model.graph.node].count("NonMaxSuppression") == 1


class Mixer(gluon.HybridBlock):
    """A block over ``mx.np``: attention without softmax, a standardized result, and a sum of all of it."""

    def __init__(self):
        super().__init__()
        self.project, self.out, self.norm = nn.Dense(12, flatten=False), nn.Dense(5, flatten=False), nn.LayerNorm()

    def forward(self, x):
        query, key, value = mx.np.split(self.project(x), 3, axis=-1)
        scores = mx.np.matmul(query, mx.np.swapaxes(key, 1, 2)) / 2
        scores = mx.np.where(scores > 0, scores, 0.1 * scores)
        mixed = mx.np.matmul(mx.npx.softmax(scores, axis=-1), value)
        mixed = self.norm(mx.np.concatenate([mixed, mx.np.tanh(value)], axis=-1))
        out = (self.out(mixed) - mx.np.mean(mixed)) / (mx.np.std(mixed, axis=(1, 2), keepdims=True) + 1e-5)
        return out, mx.np.sum(mx.npx.relu(out) ** 2)


@mx.util.use_np
def test_a_network_over_np(tmp_path):
    net = Mixer()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    data = np.random.default_rng(1).standard_normal((2, 6, 7)).astype(np.float32)
    net(mx.np.array(data))
    net.export(str(tmp_path / "net"))
    mx.onnx.export_model(str(tmp_path / "net-symbol.json"), str(tmp_path / "net-0000.params"), [data.shape], "float32", str(tmp_path / "net.onnx"),
                         dynamic=True, dynamic_input_shapes=[("batch", "length", 7)], check=True)
    model = onnx.load(tmp_path / "net.onnx")
    for given in (data, np.random.default_rng(2).standard_normal((3, 4, 7)).astype(np.float32)):
        for found, expected in zip(run(model, {model.graph.input[0].name: given}), net(mx.np.array(given)), strict=True):
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected.asnumpy(), rtol=1e-4, atol=1e-4)
