import pytest

import mxnet as mx
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


def test_blocks_that_programs_build_with():
    from mxnet.gluon.model_zoo.vision import inception as v
    blocks = {v._make_A(32, "A_"): 256, v._make_B("B_"): 768, v._make_C(128, "C_"): 768, v._make_D("D_"): 1280, v._make_E("E_"): 2048}
    for block, channels in blocks.items():
        block.initialize()
        out = block(mx.nd.zeros((1, 288, 17, 17)))
        assert out.shape[1] == (channels if block.prefix not in ("B_", "D_") else {"B_": 384 + 96 + 288, "D_": 320 + 192 + 288}[block.prefix])
    branch = v._make_branch("max", (64, 3, 2, None), (8, (1, 7), None, (0, 3)))
    branch.initialize()
    assert branch(mx.nd.zeros((1, 3, 17, 17))).shape == (1, 8, 3, 3)
    aux = v.make_aux(10)
    aux.initialize()
    assert aux(mx.nd.zeros((2, 768, 17, 17))).shape == (2, 10)
