import pytest

from layer_checks import check_parameters, check_scores
from mxnet.gluon.model_zoo import vision

# From MXNet 1.9.1, with 10 classes: arrays of parameters, their elements, and the CRC-32 of their names and shapes.
PARAMETERS = {
    "vgg11": (22, 128807306, 0x9a62337d),
    "vgg11_bn": (54, 128818314, 0xfafc67f4),
    "vgg13": (26, 128991818, 0xb1a4a349),
    "vgg13_bn": (66, 129003594, 0xc3c5e0f4),
    "vgg16": (32, 134301514, 0x21c0cd38),
    "vgg16_bn": (84, 134318410, 0x1567a8eb),
    "vgg19": (38, 139611210, 0x985db885),
    "vgg19_bn": (102, 139633226, 0x6f53361b),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_those_of_published_files(name):
    check_parameters(name, PARAMETERS[name])


# From MXNet 1.9.1: the side of the image and the scores of 4 classes.
@pytest.mark.parametrize(("name", "side", "expected"), [
    ("vgg11_bn", 32, [-0.63766, 0.28391, -0.80551, -0.22435]),
])
def test_scores(name, side, expected):
    check_scores(name, side, expected)


def test_constructors_are_named():
    assert (vision.vgg11_bn.__name__, vision.vgg11_bn.__doc__.partition("\n")[0]) == (
        "vgg11_bn", "VGG with 11 layers and batch norms; see `get_vgg` for the parameters.")
    assert any(key.endswith("running_mean") for key in vision.vgg11_bn(classes=2)._collect_params_with_prefix())


@pytest.mark.parametrize(("make", "error", "text"), [
    (lambda: vision.get_vgg(12), ValueError, r"must be one of \[11, 13, 16, 19\], received 12"),
    (lambda: vision.VGG([1], [1, 2]), AssertionError, "received 1 and 2"),
])
def test_errors(make, error, text):
    with pytest.raises(error, match=text):
        make()
