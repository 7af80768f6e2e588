import pytest

from layer_checks import check_parameters, check_scores

# From MXNet 1.9.1, with 10 classes: arrays of parameters, their elements, and the CRC-32 of their names and shapes.
PARAMETERS = {
    "alexnet": (16, 57044810, 0x92f2bd10),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_those_of_published_files(name):
    check_parameters(name, PARAMETERS[name])


# From MXNet 1.9.1: the side of the image and the scores of 4 classes.
@pytest.mark.parametrize(("name", "side", "expected"), [
    ("alexnet", 224, [-1.6674, -1.3683, 0.0113, 1.2661]),
])
def test_scores(name, side, expected):
    check_scores(name, side, expected)
