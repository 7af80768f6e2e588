import pytest

import mxnet as mx
from mxnet.gluon.probability import constraint


@pytest.mark.parametrize("wanted, right, wrong", [
    ("real", [-1.0, 2.0], [float("nan")]), ("positive", [0.1], [0.0]), ("nonnegative", [0.0], [-0.1]),
    ("unit_interval", [0.0, 1.0], [1.1]),
    ("nonnegative_integer", [0.0, 3.0], [0.5]), ("boolean", [0.0, 1.0], [0.5]), ("simplex", [0.3, 0.7], [0.3, 0.3]),
    ("one_hot", [0.0, 1.0], [1.0, 1.0]),
    ("positive_definite", [[2.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]]),
    ("lower_triangular", [[1.0, 0.0], [1.0, 1.0]], [[1.0, 1.0], [0.0, 1.0]]),
])
def test_what_holds(wanted, right, wrong):
    wanted = getattr(constraint, wanted)
    right = mx.np.array(right)
    assert wanted.check(right) is right
    with pytest.raises(ValueError, match=f"^{repr(wanted)[1:-1]} expected, received"):
        wanted.check(mx.np.array(wrong))


def test_intervals():
    constraint.interval(1, 3).check(mx.np.array([1.0, 2.5]))
    with pytest.raises(ValueError, match="whole numbers from 1 to 3 expected"):
        constraint.interval(1, 3, whole=True).check(mx.np.array([2.5]))
