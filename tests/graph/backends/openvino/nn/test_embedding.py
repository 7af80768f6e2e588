import pytest

from openvino_checks import check, registered_in


@pytest.mark.parametrize("name", registered_in("nn.embedding"))
def test_each_gives_what_its_operator_gives(name):
    check(name)
