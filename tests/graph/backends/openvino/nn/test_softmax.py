import numpy as np
import pytest

from openvino_checks import check, numbers, refusal, registered_in


@pytest.mark.parametrize("name", registered_in("nn.softmax"))
def test_each_gives_what_its_operator_gives(name):
    check(name)


def test_what_stays_on_torch():
    assert refusal("softmax", numbers(2, 3), np.array([2, 3], "int32"), use_length=True) == "softmax: a length or another type"
    assert refusal("log_softmax", numbers(2, 3), dtype="float32") == "log_softmax: a length or another type"
