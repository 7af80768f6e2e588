import numpy as np
import pytest

from openvino_checks import check, numbers, refusal, registered_in


@pytest.mark.parametrize("name", registered_in("elemwise.binary"))
def test_each_gives_what_its_operator_gives(name):
    check(name)


def test_what_stays_on_torch():
    whole = np.array([1, 2], "int32")
    assert refusal("elemwise_add", whole, whole) == "elemwise_add: integers"
    assert refusal("where", np.ones(2, "float32"), numbers(2, 3), numbers(2, 3)) == "where: broadcasting"
    assert refusal("broadcast_mod", numbers(2), numbers(2)) == "broadcast_mod: no converter"
