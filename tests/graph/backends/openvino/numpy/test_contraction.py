import pytest

from openvino_checks import check, numbers, refusal, registered_in

CASES = {"_np_dot": [([numbers(2, 3), numbers(3, 4)], {})], "_npi_matmul": [([numbers(5, 2, 3), numbers(3, 4)], {})]}


@pytest.mark.parametrize("name", registered_in("numpy.contraction"))
def test_each_gives_what_its_operator_gives(name):
    check(name, CASES.get(name, ()))


def test_what_stays_on_torch():
    assert refusal("_np_dot", numbers(2, 2, 3), numbers(3, 4)) == "_np_dot: arrays with more than two axes"
    assert refusal("_npi_matmul", numbers(2, 3), numbers(3)) == "_npi_matmul: vectors"
