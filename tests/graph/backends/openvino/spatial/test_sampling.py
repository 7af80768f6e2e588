import pytest

from openvino_checks import check, numbers, refusal, registered_in

CASES = {"UpSampling": [([numbers(1, 2, 3, 3)], dict(scale=2, sample_type="nearest"))]}


@pytest.mark.parametrize("name", registered_in("spatial.sampling"))
def test_each_gives_what_its_operator_gives(name):
    check(name, CASES.get(name, ()))


def test_what_stays_on_torch():
    pair = numbers(1, 2, 3, 3), numbers(1, 2, 6, 6)
    assert refusal("UpSampling", *pair, scale=2, sample_type="nearest", num_args=2) == "UpSampling: bilinear, or several inputs"
