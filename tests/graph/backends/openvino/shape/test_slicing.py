import pytest

from openvino_checks import check, numbers, refusal, registered_in


@pytest.mark.parametrize("name", registered_in("shape.slicing"))
def test_each_gives_what_its_operator_gives(name):
    check(name)


def test_what_stays_on_torch():
    assert refusal("slice", numbers(4, 2), begin=(3,), end=(0,), step=(-1,)) == "slice: a negative step"
