"""The convolution of images with few channels, and its gradients."""
import pytest
import torch

from convolution_checks import compare, last, numbers, run
from kernel_limits import used_from
from mxnet import kernels
from mxnet.kernels.conv import convolution, few_channels
from mxnet.ops.nn.training_layers import ConvolutionLayer

pytestmark = pytest.mark.skipif(kernels.load("conv/few_channels") is None, reason="no C++ compiler")

# data, filters, kernel, stride, pad, dilate
SHAPES = {
    "LeNet": ((3, 1, 11, 11), 20, (5, 5), (1, 1), (0, 0), (1, 1)),
    "ResNet": ((2, 3, 19, 17), 64, (7, 7), (2, 2), (3, 3), (1, 1)),
    "VGG": ((2, 3, 9, 8), 48, (3, 3), (1, 1), (1, 1), (1, 1)),
    "AlexNet": ((1, 3, 27, 27), 70, (11, 11), (4, 4), (2, 2), (1, 1)),
    "dilated downwards": ((1, 4, 12, 9), 5, (3, 2), (1, 2), (2, 1), (2, 1)),
    "seven channels": ((2, 7, 6, 5), 33, (1, 4), (1, 1), (0, 3), (1, 1)),
    "more rows than the L1 cache holds": ((1, 3, 40, 130), 16, (3, 3), (1, 1), (1, 1), (1, 1)),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_it_computes_what_torch_computes_in_double_precision(shape, biased, threads, monkeypatch):
    used_from(monkeypatch, 0, convolution)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    size, filters, window, stride, pad, dilate = SHAPES[shape]
    arrays = numbers(*size, seed=0), numbers(filters, size[1], *window, seed=1), numbers(filters, seed=2) if biased else None
    assert few_channels.forward.plan([last(a) for a in arrays[:2]] + [None], (*stride, *pad, *dilate)) is not None
    attributes = {"kernel": window, "stride": stride, "pad": pad, "dilate": dilate, "num_filter": filters, "no_bias": not biased}
    layer = ConvolutionLayer(exact=True)
    found = run(lambda *a: layer(*a, **attributes), arrays, torch.float32)
    assert layer.chosen == {"forward": "direct", "gradient of data": "oneDNN", "gradient of weights": "direct"}
    assert found[0].is_contiguous(memory_format=torch.channels_last)
    compare(found, run(lambda *a: torch.conv2d(*a, stride, pad, dilate), arrays, torch.float64))


@pytest.mark.parametrize("size, window, pad, dilate", [((1, 8, 6, 6), (3, 3), (1, 1), (1, 1)), ((1, 3, 6, 6), (3, 1), (0, 0), (1, 1)),
                                                       ((1, 3, 6, 6), (3, 3), (3, 0), (1, 1)), ((1, 3, 9, 9), (3, 3), (1, 1), (1, 2))])
def test_other_layers_are_left_to_torch(size, window, pad, dilate, monkeypatch):
    used_from(monkeypatch, 0, convolution)
    arrays = last(numbers(*size, seed=0)), last(numbers(4, size[1], *window, seed=1)), numbers(4, seed=2)
    layer = ConvolutionLayer()
    out = layer(*arrays, kernel=window, pad=pad, dilate=dilate, num_filter=4)
    assert not layer.chosen
    torch.testing.assert_close(out, torch.conv2d(*arrays, 1, pad, dilate))


def test_the_gradient_can_be_differentiated(monkeypatch):
    used_from(monkeypatch, 0, convolution)
    x, w = last(numbers(1, 3, 6, 6, seed=0)).requires_grad_(), last(numbers(4, 3, 3, 3, seed=1)).requires_grad_()

    def second(function):
        g, = torch.autograd.grad((function(x, w) ** 3).sum(), w, create_graph=True)
        return torch.autograd.grad((g ** 2).sum(), [x, w])
    compare(second(lambda x, w: ConvolutionLayer()(x, w, kernel=(3, 3), num_filter=4, no_bias=True)), second(torch.conv2d))
