import pytest

from layer_checks import check_parameters, check_scores
from mxnet.gluon.model_zoo import vision

# From MXNet 1.9.1, with 10 classes: arrays of parameters, their elements, and the CRC-32 of their names and shapes.
PARAMETERS = {
    "densenet121": (606, 7047754, 0xbba5212c),
    "densenet161": (806, 26714026, 0x56ae8e6b),
    "densenet169": (846, 12659530, 0x4c2f8d3d),
    "densenet201": (1006, 18341194, 0xd3a63ed5),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_those_of_published_files(name):
    check_parameters(name, PARAMETERS[name])


# From MXNet 1.9.1: the side of the image and the scores of 4 classes.
@pytest.mark.parametrize(("name", "side", "expected"), [
    ("densenet121", 224, [-1.1519, -2.7917, 1.4427, 2.4618]),
])
def test_scores(name, side, expected):
    check_scores(name, side, expected)


@pytest.mark.parametrize(("make", "error", "text"), [
    (lambda: vision.densenet.get_densenet(12), ValueError, "received 12"),
])
def test_errors(make, error, text):
    with pytest.raises(error, match=text):
        make()
