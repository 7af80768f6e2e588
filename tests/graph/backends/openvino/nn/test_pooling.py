import pytest

from openvino_checks import check, numbers, refusal, registered_in

CASES = {"Pooling": [([numbers(1, 2, 7, 7)], dict(kernel=(3, 3), stride=(2, 2), pool_type=t, pooling_convention=c, pad=p))
                     for t in ("max", "avg") for c in ("valid", "full") for p in ((0, 0), (1, 1))]}


@pytest.mark.parametrize("name", registered_in("nn.pooling"))
def test_each_gives_what_its_operator_gives(name):
    check(name, CASES.get(name, ()))


def test_what_stays_on_torch():
    data = numbers(1, 2, 7, 7)
    assert refusal("Pooling", data, kernel=(3, 3), pool_type="lp", p_value=2) == "Pooling: pool_type lp"
    assert refusal("Pooling", numbers(1, 7, 7, 2), kernel=(3, 3), pool_type="max", layout="NHWC") == "Pooling: layout NHWC"
    assert refusal("Pooling", data, kernel=(2, 2), pad=(2, 2), pool_type="max") == "Pooling: windows that lie outside of the data"
    assert refusal("Pooling", numbers(1, 2, 6, 6), kernel=(3, 3), stride=(2, 2), pool_type="avg", pooling_convention="full") == \
        "Pooling: an average over windows that reach behind the padding"
