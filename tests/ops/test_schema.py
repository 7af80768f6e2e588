"""Attributes with bounds."""
from typing import Annotated, Optional

import pytest

from mxnet.ops.schema import AtLeast1, Attribute, Between, Fraction


@pytest.mark.parametrize("annotation, expected, good, bad", [
    (AtLeast1, "an integer of at least 1", {"1": 1, 7: 7}, ["0", -3]),
    (Fraction, "a number from 0 to 1", {0: 0.0, "0.5": 0.5, 1.0: 1.0}, ["-0.1", 1.5]),
    (Optional[Annotated[int, Between(high=3)]], "an integer up to 3", {None: None, "None": None, -5: -5}, [4]),
])
def test_bounds(annotation, expected, good, bad):
    attribute = Attribute("operator", "name", annotation, None, True)
    assert attribute.expected == expected
    assert {v: attribute.parse(v) for v in good} == good
    for value in bad:
        with pytest.raises(ValueError):
            attribute.parse(value)
