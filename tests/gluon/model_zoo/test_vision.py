import zlib

import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon.model_zoo import vision

# From MXNet 1.9.1, with 10 classes: arrays of parameters, their elements, and the CRC-32 of their names and shapes.
PARAMETERS = {
    "alexnet": (16, 57044810, 0x92f2bd10),
    "densenet121": (606, 7047754, 0xbba5212c),
    "densenet161": (806, 26714026, 0x56ae8e6b),
    "densenet169": (846, 12659530, 0x4c2f8d3d),
    "densenet201": (1006, 18341194, 0xd3a63ed5),
    "inceptionv3": (472, 21840490, 0x9ecedfd0),
    "mobilenet0.25": (137, 221114, 0x64940fa4),
    "mobilenet0.5": (137, 834666, 0x786a20ce),
    "mobilenet0.75": (137, 1840666, 0x88913c6f),
    "mobilenet1.0": (137, 3239114, 0xaa42aca9),
    "mobilenetv2_0.25": (266, 259656, 0x40cc431d),
    "mobilenetv2_0.5": (266, 715904, 0xbe3f3303),
    "mobilenetv2_0.75": (266, 1386664, 0xd9b458ca),
    "mobilenetv2_1.0": (266, 2271936, 0xb98765ac),
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
    "squeezenet1.0": (52, 740554, 0xcebdb1df),
    "squeezenet1.1": (52, 727626, 0x99904744),
    "vgg11": (22, 128807306, 0x9a62337d),
    "vgg11_bn": (54, 128818314, 0xfafc67f4),
    "vgg13": (26, 128991818, 0xb1a4a349),
    "vgg13_bn": (66, 129003594, 0xc3c5e0f4),
    "vgg16": (32, 134301514, 0x21c0cd38),
    "vgg16_bn": (84, 134318410, 0x1567a8eb),
    "vgg19": (38, 139611210, 0x985db885),
    "vgg19_bn": (102, 139633226, 0x6f53361b),
}

# From MXNet 1.9.1, with parameters from `value`: the side of the image and the scores of 4 classes.
SCORES = [
    ("alexnet", 224, [-1.6674, -1.3683, 0.0113, 1.2661]),
    ("densenet121", 224, [-1.1519, -2.7917, 1.4427, 2.4618]),
    ("inceptionv3", 299, [-1.4655, -2.1678, 0.93363, 0.52566]),
    ("mobilenet0.25", 64, [1.0944, -2.953, -0.43371, -0.81023]),
    ("mobilenetv2_0.25", 64, [-3.9185, 1.1065, 1.2868, -3.2577]),
    ("resnet18_v1", 64, [-3.6475, 9.9952, -9.7394, 2.28]),
    ("resnet50_v2", 64, [-1.1564, -8.4921, 3.9873, 0.31815]),
    ("squeezenet1.1", 224, [1.0617, 1.1038, 0.0, 0.676]),
    ("vgg11_bn", 32, [-0.63766, 0.28391, -0.80551, -0.22435]),
]


def value(name, shape):
    draw = np.random.RandomState(zlib.crc32(name.encode()))
    if name.endswith(("gamma", "running_var")):
        return draw.uniform(0.5, 1.5, shape)
    return draw.normal(0, 1, shape) / np.sqrt(max(1, np.prod(shape[1:])))


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_those_of_published_files(name):
    net = vision.get_model(name, classes=10)
    side = 299 if name == "inceptionv3" else 224
    net.infer_shape(mx.nd.zeros((1, 3, side, side)))
    parameters = net._collect_params_with_prefix()
    lines = [f"{key} {tuple(p.shape)} {p.name[len(net.prefix):]}" for key, p in sorted(parameters.items())]
    elements = sum(int(np.prod(p.shape)) for p in parameters.values())
    assert (len(lines), elements, zlib.crc32("\n".join(lines).encode())) == PARAMETERS[name]


@pytest.mark.parametrize(("name", "side", "expected"), SCORES)
def test_scores(name, side, expected):
    net = vision.get_model(name, classes=4)
    net.initialize()
    image = mx.nd.array(np.random.RandomState(0).uniform(-1, 1, (1, 3, side, side)))
    net.infer_shape(image)
    for key, parameter in net._collect_params_with_prefix().items():
        parameter.set_data(mx.nd.array(value(key, parameter.shape)))
    assert net(image).asnumpy()[0] == pytest.approx(expected, rel=2e-4, abs=2e-4)
    net.hybridize()
    assert net(image).asnumpy()[0] == pytest.approx(expected, rel=2e-4, abs=2e-4)


def test_get_model_lists_what_there_is():
    with pytest.raises(ValueError, match=r"Model lenet is not supported. Available options are\n\talexnet\n\tdensenet121\n") as caught:
        vision.get_model("LeNet")
    assert str(caught.value).split("\n\t")[1:] == sorted(PARAMETERS)
    assert isinstance(vision.get_model("ResNet18_V1", thumbnail=True), vision.ResNetV1)


def test_constructors_are_named():
    assert (vision.vgg11_bn.__name__, vision.vgg11_bn.__doc__) == (
        "vgg11_bn", "VGG with 11 layers and batch norms; see `get_vgg` for the parameters.")
    assert any(key.endswith("running_mean") for key in vision.vgg11_bn(classes=2)._collect_params_with_prefix())


def test_parameter_files_come_and_go(tmp_path):
    path = str(tmp_path / "a.params")
    net = vision.squeezenet1_1(classes=3)
    net.initialize()
    image = mx.nd.random.uniform(shape=(1, 3, 224, 224))
    expected = net(image).asnumpy()
    net.save_parameters(path)
    again = vision.squeezenet1_1(classes=3)
    again.load_parameters(path)
    assert (again(image).asnumpy() == expected).all()


def test_thumbnail_begins_with_one_convolution():
    net = vision.resnet18_v2(classes=10, thumbnail=True)
    net.initialize()
    assert net(mx.nd.zeros((2, 3, 32, 32))).shape == (2, 10)
    assert len(net.features) == 10


@pytest.mark.parametrize(("make", "error", "text"), [
    (lambda: vision.get_resnet(3, 18), AssertionError, "Invalid resnet version: 3. Options are 1 and 2."),
    (lambda: vision.get_resnet(1, 19), AssertionError, r"Invalid number of layers: 19. Options are \[18, 34, 50, 101, 152\]"),
    (lambda: vision.ResNetV1(vision.BasicBlockV1, [1], [64]), AssertionError, "received 1 for 1 stages"),
    (lambda: vision.get_vgg(12), ValueError, r"must be one of \[11, 13, 16, 19\], received 12"),
    (lambda: vision.VGG([1], [1, 2]), AssertionError, "received 1 and 2"),
    (lambda: vision.densenet.get_densenet(12), ValueError, "received 12"),
    (lambda: vision.SqueezeNet("1.2"), AssertionError, "Unsupported SqueezeNet version 1.2"),
])
def test_errors(make, error, text):
    with pytest.raises(error, match=text):
        make()
