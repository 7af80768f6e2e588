import pytest

from mxnet import MXNetError
from mxnet.ops.shapes import known, product, unify


@pytest.mark.parametrize("a, b, expected", [
    (None, None, None), (None, (2, -1), (2, -1)), ((2, -1), None, (2, -1)), ((2, -1), (-1, 3), (2, 3)), ((-1,), (-1,), (-1,)), ((), (), ()),
    ((0, 2), (-1, 2), (0, 2))])
def test_what_two_partial_shapes_say_together(a, b, expected):
    assert unify(a, b) == unify(b, a) == expected


@pytest.mark.parametrize("a, b, text", [((2,), (2, 2), r"\(2,\) and \(2, 2\): 1 axes against 2"), ((2, 3), (2, 4), "differ in size"),
                                        ((0,), (1,), "differ in size"), ((2, 0), (2, 3), "differ in size")])
def test_contradictions(a, b, text):
    with pytest.raises(MXNetError, match=text):
        unify(a, b)


def test_known():
    assert [known(s) for s in (None, (-1,), (2, -1), (), (0, 2), (3,))] == [False, False, False, True, True, True]


def test_product():
    assert [product(s) for s in ((), (2, 3), (2, -1), (0, 5), (-1, 0))] == [1, 6, -1, 0, -1]
