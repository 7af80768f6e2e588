import numpy as np
import pytest

from openvino_checks import check, numbers, refusal, registered_in


@pytest.mark.parametrize("name", registered_in("indexing"))
def test_each_gives_what_its_operator_gives(name):
    check(name)


def test_what_stays_on_torch():
    assert refusal("take", numbers(2, 3), np.array([0, 1], "float32"), mode="wrap") == "take: mode wrap"
