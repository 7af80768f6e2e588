import pytest

import mxnet as mx
from layer_checks import check_parameters, check_scores
from mxnet.gluon.model_zoo import vision

# From MXNet 1.9.1, with 10 classes: arrays of parameters, their elements, and the CRC-32 of their names and shapes.
PARAMETERS = {
    "squeezenet1.0": (52, 740554, 0xcebdb1df),
    "squeezenet1.1": (52, 727626, 0x99904744),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_those_of_published_files(name):
    check_parameters(name, PARAMETERS[name])


# From MXNet 1.9.1: the side of the image and the scores of 4 classes.
@pytest.mark.parametrize(("name", "side", "expected"), [
    ("squeezenet1.1", 224, [1.0617, 1.1038, 0.0, 0.676]),
])
def test_scores(name, side, expected):
    check_scores(name, side, expected)


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


@pytest.mark.parametrize(("make", "error", "text"), [
    (lambda: vision.SqueezeNet("1.2"), AssertionError, "Unsupported SqueezeNet version 1.2"),
])
def test_errors(make, error, text):
    with pytest.raises(error, match=text):
        make()
