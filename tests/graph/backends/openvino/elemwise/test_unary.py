import numpy as np
import pytest

from openvino_checks import check, numbers, refusal, registered_in

CASES = {"amp_cast": [([numbers(2, 3)], dict(dtype="float32"))], "Cast": [([numbers(2, 3, low=-9, high=9)], dict(dtype="int32"))]}


@pytest.mark.parametrize("name", registered_in("elemwise.unary"))
def test_each_gives_what_its_operator_gives(name):
    check(name, CASES.get(name, ()))


def test_what_stays_on_torch():
    assert refusal("exp", np.array([1, 2], "int32")) == "exp: integers"
    assert refusal("exp", np.array([1, 2], "float16")) == "exp: computes in float16"
    assert refusal("exp", np.zeros((0, 2), "float32")) == "exp: an array is empty"
    assert refusal("erfinv", numbers(2)) == "erfinv: no converter"
