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


@pytest.mark.parametrize("made, right, wrong, text", [
    (constraint.Positive(), [0.5], [0.0], "numbers above 0"), (constraint.GreaterThanEq(2), [2.0], [1.9], "numbers of at least 2"),
    (constraint.LessThan(2), [1.9], [2.0], "numbers below 2"), (constraint.LessThanEq(2), [2.0], [2.1], "numbers of at most 2"),
    (constraint.Interval(1, 3), [1.0, 3.0], [3.1], "numbers from 1 to 3"),
    (constraint.OpenInterval(1, 3), [1.1], [1.0], "numbers above 1 and below 3"),
    (constraint.HalfOpenInterval(1, 3), [1.0], [3.0], "numbers of at least 1 and below 3"),
    (constraint.IntegerInterval(1, 3), [1.0, 3.0], [1.5], "whole numbers from 1 to 3"),
    (constraint.IntegerOpenInterval(1, 3), [2.0], [3.0], "whole numbers above 1 and below 3"),
    (constraint.PositiveInteger(), [1.0], [0.0], "whole numbers above 0"),
    (constraint.IntegerLessThanEq(3), [3.0], [2.5], "whole numbers of at most 3"),
    (constraint.LowerCholesky(), [[1.0, 0.0], [5.0, 2.0]], [[1.0, 0.0], [5.0, -2.0]], "lower triangular matrices with positive diagonals"),
])
def test_classes_of_mxnet_2(made, right, wrong, text):
    right = mx.np.array(right)
    assert made.check(right) is right and made.text == text
    with pytest.raises(ValueError, match=f"^{text} expected, received"):
        made.check(mx.np.array(wrong))


def test_parts_of_an_array_have_properties_of_their_own():
    value = mx.np.array([[-1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert constraint.Stack([constraint.Real(), constraint.Positive(), constraint.GreaterThan(4)]).check(value) is value
    assert constraint.Cat([constraint.Real(), constraint.Positive()], lengths=[1, 2]).check(value) is value
    with pytest.raises(ValueError, match="^numbers above 0 expected"):
        constraint.Cat([constraint.Positive(), constraint.Real()], lengths=[1, 2]).check(value)
    with pytest.raises(ValueError, match="^Stack: axis 0 with 2 entries expected"):
        constraint.Stack([constraint.Real()] * 2).check(value)
    with pytest.raises(TypeError, match="^Stack: a sequence of Constraints expected"):
        constraint.Stack([1])


def test_a_dependent_property_belongs_to_an_object():
    class Between:
        def __init__(self, low):
            self.low = low

        @constraint.dependent_property
        def support(self):
            return constraint.GreaterThan(self.low)

    assert constraint.is_dependent(Between.support) and Between(2).support.text == "numbers above 2"
    with pytest.raises(ValueError, match="ask that distribution"):
        Between.support.check(mx.np.ones(1))
