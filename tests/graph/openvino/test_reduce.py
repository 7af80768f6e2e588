import numpy as np
import pytest

from openvino_checks import check, numbers, refusal, registered_in


@pytest.mark.parametrize("name", registered_in("reduce"))
def test_each_gives_what_its_operator_gives(name):
    check(name)


def test_what_stays_on_torch():
    assert refusal("sum", np.array([[1, 2]], "int32")) == "sum: integers"
    assert refusal("norm", numbers(2, 3), out_dtype="float32") == "norm: another type"
