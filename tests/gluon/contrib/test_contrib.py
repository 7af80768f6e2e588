import pytest

from mxnet import gluon


def test_unknown_part():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        gluon.contrib.nothing  # noqa: B018
