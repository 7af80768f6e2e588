import pytest

from layer_checks import check_parameters, check_scores

# From MXNet 1.9.1, with 10 classes: arrays of parameters, their elements, and the CRC-32 of their names and shapes.
PARAMETERS = {
    "inceptionv3": (472, 21840490, 0x9ecedfd0),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_those_of_published_files(name):
    check_parameters(name, PARAMETERS[name])


# From MXNet 1.9.1: the side of the image and the scores of 4 classes.
@pytest.mark.parametrize(("name", "side", "expected"), [
    ("inceptionv3", 299, [-1.4655, -2.1678, 0.93363, 0.52566]),
])
def test_scores(name, side, expected):
    check_scores(name, side, expected)
