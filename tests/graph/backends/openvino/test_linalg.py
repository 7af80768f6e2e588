import pytest

from openvino_checks import check, numbers, refusal, registered_in


@pytest.mark.parametrize("name", registered_in("linalg"))
def test_each_gives_what_its_operator_gives(name):
    check(name)


def test_what_stays_on_torch():
    assert refusal("dot", numbers(2, 3, 4), numbers(4, 2)) == "dot: arrays that are no matrices"
    assert refusal("_linalg_gemm2", numbers(2, 1, 3), numbers(3, 1, 2), axis=-3) == "_linalg_gemm2: axis"
