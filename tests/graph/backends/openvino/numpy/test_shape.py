import pytest

from openvino_checks import check, numbers, registered_in

CASES = {
    "_np_reshape": [([numbers(2, 6)], dict(newshape=(3, -1)))], "_npx_reshape": [([numbers(2, 6)], dict(newshape=(-2, 3, -1)))],
    "_np_transpose": [([numbers(2, 3, 4)], dict(axes=(1, 0, 2)))], "_np_squeeze": [([numbers(2, 1)], {})],
    "_npi_broadcast_to": [([numbers(1, 3)], dict(shape=(2, 3)))],
}


@pytest.mark.parametrize("name", registered_in("numpy.shape"))
def test_each_gives_what_its_operator_gives(name):
    check(name, CASES.get(name, ()))
