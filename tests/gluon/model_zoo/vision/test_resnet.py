import pytest

import mxnet as mx
from layer_checks import check_parameters, check_scores
from mxnet.gluon.model_zoo import vision

# From MXNet 1.9.1, with 10 classes: arrays of parameters, their elements, and the CRC-32 of their names and shapes.
PARAMETERS = {
    "resnet101_v1": (588, 42666634, 0xb11358bb),
    "resnet101_v2": (514, 42610902, 0x9323005f),
    "resnet152_v1": (877, 58375562, 0xf2948760),
    "resnet152_v2": (769, 58300630, 0x9a9145dc),
    "resnet18_v1": (102, 11191242, 0xd4c0c915),
    "resnet18_v2": (98, 11187926, 0xea7ba9e8),
    "resnet34_v1": (182, 21306826, 0x58218130),
    "resnet34_v2": (178, 21303510, 0xfcaeac6c),
    "resnet50_v1": (299, 23600522, 0xe4403946),
    "resnet50_v2": (259, 23566550, 0xd1c953ae),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_those_of_published_files(name):
    check_parameters(name, PARAMETERS[name])


# From MXNet 1.9.1: the side of the image and the scores of 4 classes.
@pytest.mark.parametrize(("name", "side", "expected"), [
    ("resnet18_v1", 64, [-3.6475, 9.9952, -9.7394, 2.28]),
    ("resnet50_v2", 64, [-1.1564, -8.4921, 3.9873, 0.31815]),
])
def test_scores(name, side, expected):
    check_scores(name, side, expected)


def test_thumbnail_begins_with_one_convolution():
    net = vision.resnet18_v2(classes=10, thumbnail=True)
    net.initialize()
    assert net(mx.nd.zeros((2, 3, 32, 32))).shape == (2, 10)
    assert len(net.features) == 10


@pytest.mark.parametrize(("make", "error", "text"), [
    (lambda: vision.get_resnet(3, 18), AssertionError, "Invalid resnet version: 3. Options are 1 and 2."),
    (lambda: vision.get_resnet(1, 19), AssertionError, r"Invalid number of layers: 19. Options are \[18, 34, 50, 101, 152\]"),
    (lambda: vision.ResNetV1(vision.BasicBlockV1, [1], [64]), AssertionError, "received 1 for 1 stages"),
])
def test_errors(make, error, text):
    with pytest.raises(error, match=text):
        make()
