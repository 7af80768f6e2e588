import numpy as np
import pytest

from openvino_checks import check, numbers, refusal, registered_in


@pytest.mark.parametrize("name", registered_in("sequence"))
def test_each_gives_what_its_operator_gives(name):
    check(name)


def test_what_stays_on_torch():
    data, lengths = numbers(3, 2, 2), np.array([2, 3], "float32")
    assert refusal("SequenceLast", data, lengths, use_sequence_length=True) == "SequenceLast: lengths"
