import numpy as np
import pytest

from openvino_checks import check, refusal, registered_in


@pytest.mark.parametrize("name", registered_in("elemwise.scalar"))
def test_each_gives_what_its_operator_gives(name):
    check(name)


def test_what_stays_on_torch():
    assert refusal("_plus_scalar", np.array([1, 2], "int32"), scalar=1) == "_plus_scalar: integers"
    assert refusal("_equal_scalar", np.array([1, 2], "int32"), scalar=1) == "_equal_scalar: integers"
