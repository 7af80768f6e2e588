import pytest
import torch

import mxnet as mx
from mxnet.graph import GraphRunner
from mxnet.graph.tuning import inference_states
from mxnet.kernels.image import nchw_to_nhwc

pytest.importorskip("openvino")


def plans(runner):
    return [p for p in runner.states.values() if isinstance(p, inference_states.Compiled)]


def test_an_output_that_is_an_input_is_a_copy():
    x, w = mx.sym.var("x"), mx.sym.var("w")
    runner = GraphRunner(mx.sym.Group([mx.sym.relu(x), mx.sym.identity(x), mx.sym.dot(x, w)]), backend="openvino")
    inputs = [torch.tensor([[-1.0, 2.0]]), torch.eye(2)]
    relu, same, product = runner(inputs)
    assert relu.tolist() == [[0, 2]] and same.tolist() == product.tolist() == [[-1, 2]]
    assert same.data_ptr() != inputs[0].data_ptr()


@pytest.mark.parametrize("kind", ["a convolution", "two", "not only convolutions", "also an output"])
def test_images_get_their_channels_last(kind):
    x = mx.sym.var("x")
    first = mx.sym.Convolution(x, kernel=(3, 3), num_filter=4, name="a")
    out = {"a convolution": first, "two": first * mx.sym.Convolution(x, kernel=(3, 3), num_filter=4, name="b"),
           "not only convolutions": mx.sym.Group([first, mx.sym.sum(x)]), "also an output": mx.sym.Group([first, x])}[kind]
    runner = GraphRunner(out, backend="openvino")
    shapes = dict(zip(out.list_arguments(), out.infer_shape(x=(2, 3, 8, 9))[0]))
    inputs = [torch.rand(shapes[name]) for name in runner.input_names]
    expected = GraphRunner(out, backend="NONE")(inputs)
    data = runner.input_names.index("x")
    for given in (inputs[data], inputs[data].contiguous(memory_format=torch.channels_last)):
        inputs[data] = given
        for found, e in zip(runner(inputs), expected, strict=True):
            torch.testing.assert_close(found, e)
    compiled = plans(runner)[0].function
    last = list(compiled.model.input(0).shape) == [2, 8, 9, 3]
    assert last is (kind in ("a convolution", "two") and nchw_to_nhwc.available(3))
