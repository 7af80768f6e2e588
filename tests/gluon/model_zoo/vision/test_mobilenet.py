import pytest

import mxnet as mx
from layer_checks import check_parameters, check_scores

# From MXNet 1.9.1, with 10 classes: arrays of parameters, their elements, and the CRC-32 of their names and shapes.
PARAMETERS = {
    "mobilenet0.25": (137, 221114, 0x64940fa4),
    "mobilenet0.5": (137, 834666, 0x786a20ce),
    "mobilenet0.75": (137, 1840666, 0x88913c6f),
    "mobilenet1.0": (137, 3239114, 0xaa42aca9),
    "mobilenetv2_0.25": (266, 259656, 0x40cc431d),
    "mobilenetv2_0.5": (266, 715904, 0xbe3f3303),
    "mobilenetv2_0.75": (266, 1386664, 0xd9b458ca),
    "mobilenetv2_1.0": (266, 2271936, 0xb98765ac),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_those_of_published_files(name):
    check_parameters(name, PARAMETERS[name])


# From MXNet 1.9.1: the side of the image and the scores of 4 classes.
@pytest.mark.parametrize(("name", "side", "expected"), [
    ("mobilenet0.25", 64, [1.0944, -2.953, -0.43371, -0.81023]),
    ("mobilenetv2_0.25", 64, [-3.9185, 1.1065, 1.2868, -3.2577]),
])
def test_scores(name, side, expected):
    check_scores(name, side, expected)


def test_convolutions_that_programs_add():
    from mxnet.gluon.model_zoo.vision import mobilenet
    net = mx.gluon.nn.HybridSequential()
    mobilenet._add_conv_dw(net, 8, 16, 2, relu6=True)
    mobilenet._add_conv(net, 4, active=False)
    assert [type(layer).__name__ for layer in net] == ["Conv2D", "BatchNorm", "RELU6"] * 2 + ["Conv2D", "BatchNorm"]
    net.initialize()
    assert net(mx.nd.zeros((1, 8, 6, 6))).shape == (1, 4, 3, 3) and net[0].weight.shape == (8, 1, 3, 3)
