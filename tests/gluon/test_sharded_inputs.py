"""Numbers of rows and classes of any type; the other checks are tested with the layers and the loss."""
import math

import pytest
import torch

from mxnet.gluon.sharded_inputs import as_integers, first_outside, require_inside
from mxnet.gluon.utils import UsageError


def test_numbers_that_are_nan_are_outside():
    assert as_integers(torch.tensor([[1.7, math.nan], [-2.0, 3.0]])).tolist() == [1, -1, -2, 3]
    assert as_integers(torch.tensor([True, False])).tolist() == [1, 0]


@pytest.mark.parametrize("value, dtype, text", [
    (7, "int32", "7"), (-1, "int64", "-1"), (7, "float16", "7"), (-1.5, "float64", "-1.5"), (math.nan, "bfloat16", "nan"),
    (math.inf, "float16", "inf"), (-math.inf, "float32", "-inf"), (1e30, "float64", "1e+30"), (2 ** 64 - 1, "uint64", "1.8446744073709552e+19"),
    (-2 ** 63, "int64", str(-2 ** 63))])
def test_errors_show_the_number_that_was_passed(value, dtype, text):
    parts = [torch.tensor([0, 6]), torch.tensor([3, value, 2], dtype=getattr(torch, dtype))]
    wrong = first_outside(parts, 7)
    require_inside("fine", [[*first_outside(parts[:1], 7), 5]])
    with pytest.raises(UsageError) as caught:
        require_inside("rows", [[0, 0, 5], [*wrong, 5]])
    assert str(caught.value) == f"rows, received {text}"
