import pytest

from openvino_checks import check, numbers, refusal, registered_in


@pytest.mark.parametrize("name", registered_in("nn.activation"))
def test_each_gives_what_its_operator_gives(name):
    check(name)


def test_what_stays_on_torch():
    assert refusal("LeakyReLU", numbers(2, 3), act_type="rrelu") == "LeakyReLU: act_type rrelu"
