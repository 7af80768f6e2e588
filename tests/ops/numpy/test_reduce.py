"""NumPy operators that reduce axes; values from MXNet 1.9.1 where nothing else is said."""
import pytest

import mxnet as mx
from mxnet import np
from mxnet.ndarray import dispatch
from mxnet.ops import registry
from numpy_checks import ruled


@pytest.fixture(autouse=True)
def numpy_mode():
    with mx.util.np_shape(True), mx.util.np_array(True):
        yield


def test_average_returns_the_sum_of_weights_only_if_asked_to():
    a, w = np.array([[1.0, 2, 4], [3, 3, 9]]), np.array([1.0, 2, 3])
    assert np.average(a, axis=1, weights=w).asnumpy().tolist() == pytest.approx([17 / 6, 6.0])
    result, total = np.average(a, axis=1, weights=w, returned=True)
    assert result.shape == (2,) and total.shape == () and total.item() == 6  # all rows share the weights
    result, total = np.average(a, axis=1, weights=a, returned=True)
    assert total.asnumpy().tolist() == [7, 15]
    result, total = np.average(a, axis=0, returned=True)
    assert total.shape == () and total.item() == 2
    symbol = mx.sym.np.average(mx.sym.Variable("a").as_np_ndarray(), axis=0)
    assert len(symbol.list_outputs()) == 1


def test_average_writes_into_out():
    a, out = np.array([[1.0, 2], [3, 5]]), np.zeros(2)
    assert np.average(a, axis=0, out=out) is out and out.asnumpy().tolist() == [2, 3.5]
    result, total = np.average(a, axis=1, returned=True, out=out)
    assert result is out and out.asnumpy().tolist() == [1.5, 4] and total.item() == 2


def test_average_of_integers_is_truncated():
    result, total = np.average(np.array([1, 2, 4], dtype="int32"), weights=np.array([1, 2, 2], dtype="int32"), returned=True)
    assert (result.dtype, result.item(), total.dtype, total.item()) == ("int32", 2, "int32", 5)
    assert np.average(np.array([[1, 2, 4], [3, 3, 9]], dtype="int32"), axis=1).asnumpy().tolist() == [2, 5]


@pytest.mark.parametrize("name", ["_np_max", "_np_min", "_npi_mean"])
def test_initial_is_refused_where_it_has_no_effect(name):
    with pytest.raises(mx.base.MXNetError, match=f"{name}: initial is not supported yet, received 2.0"):
        dispatch.invoke(registry.get(name), [np.ones(3)], {"initial": "2"}, None, np.ndarray)


def test_the_deviation_of_equal_numbers_has_no_infinite_gradient():  # MXNet has none at all
    x = np.array([[2.0, 2.0], [1.0, 3.0]])
    x.attach_grad()
    with mx.autograd.record():
        y = np.std(x, axis=1)
    y.backward()
    assert y.asnumpy().tolist() == [0, 1] and x.grad.asnumpy().tolist() == [[0, 0], [-0.5, 0.5]]


@pytest.mark.parametrize("name, shapes, attributes, expected", [
    ("argmax", [(2, -1)], {"axis": 1}, (2,)), ("argmin", [(2, -1)], {"axis": -1, "keepdims": True}, (2, 1)), ("argmax", [(-1, -1)], {}, ()),
    ("argmax", [(2, 0)], {"axis": 1}, None), ("argmin", [()], {"axis": 0}, ()),
    ("average", [(2, -1), (-1,)], {"axis": 1}, (2,)), ("average", [(2, 3), (2, 3)], {}, ()), ("average", [(2, 3), (3,)], {}, None),
    ("average", [(2, 3), (2, 3)], {"axis": 0, "returned": True}, [(3,), (3,)]), ("average", [(-1, 3)], {"weighted": False, "axis": (0,)}, (3,)),
    ("average", [(2, 3), (2,)], {"axis": 0, "returned": True}, [(3,), ()])])
def test_shapes_follow_from_shapes(name, shapes, attributes, expected):
    assert ruled(f"_npi_{name}", *shapes, **attributes) == expected
