import pytest

from openvino_checks import check, numbers, refusal, registered_in

CASES = {"_npi_where": [([numbers(2, 3), numbers(2, 3), numbers(2, 3, seed=1)], {})]}


@pytest.mark.parametrize("name", registered_in("numpy.indexing"))
def test_each_gives_what_its_operator_gives(name):
    check(name, CASES.get(name, ()))


def test_what_stays_on_torch():
    assert refusal("_npi_where", numbers(3), numbers(2, 3), numbers(2, 3)) == "_npi_where: broadcasting"
