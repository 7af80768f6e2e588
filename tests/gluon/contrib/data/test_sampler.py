"""Samplers of gluon.contrib."""
import pytest

from mxnet.gluon.contrib.data import IntervalSampler


def test_interval_sampler():
    assert list(IntervalSampler(7, 3)) == [0, 3, 6, 1, 4, 2, 5]
    assert list(IntervalSampler(7, 3, rollover=False)) == [0, 3, 6]
    assert len(IntervalSampler(7, 3, rollover=False)) == 7
    with pytest.raises(AssertionError, match="interval must be at most length=3, received 7"):
        IntervalSampler(3, 7)
