import pytest

from openvino_checks import check, numbers, refusal, registered_in

CASES = {
    "_npi_mean": [([numbers(2, 3)], dict(axis=1))], "_np_sum": [([numbers(2, 3)], dict(axis=(0, 1), keepdims=True))],
    "_np_prod": [([numbers(2, 3)], dict(axis=0))], "_np_max": [([numbers(2, 3)], dict(axis=0))], "_np_min": [([numbers(2, 3)], dict(axis=0))],
}


@pytest.mark.parametrize("name", registered_in("numpy.reduce"))
def test_each_gives_what_its_operator_gives(name):
    check(name, CASES.get(name, ()))


def test_what_stays_on_torch():
    assert refusal("_np_sum", numbers(2, 3), initial=1) == "_np_sum: dtype or initial"
    assert refusal("_npi_mean", numbers(2, 3), dtype="float32") == "_npi_mean: dtype or initial"
