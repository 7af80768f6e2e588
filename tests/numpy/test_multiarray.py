"""The array class of mx.np: indexing, assignment, conversion, Python's operators."""
import pickle

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, np, npx


@pytest.fixture(autouse=True)
def numpy_semantics():
    npx.set_np()
    yield
    npx.reset_np()


def test_text():
    assert repr(np.array([1.5])) == "array([1.5])"
    assert repr(np.array([1, 2], dtype="int32")) == "array([1, 2], dtype=int32)"
    assert str(np.array(1.5)) == "1.5"
    assert f"{np.array(2.0):.2f}" == "2.00"
    with pytest.raises(TypeError, match="format its elements"):
        format(np.array([1.0]), ".2f")


def test_scalars():
    x = np.array([3.0, 1.0])
    assert x[0].shape == () and x[0].item() == 3.0
    assert float(x[1]) == 1.0 and int(x[0]) == 3 and x.tolist() == [3.0, 1.0]
    assert len(x) == 2
    with pytest.raises(TypeError, match="unsized"):
        len(x[0])
    with pytest.raises(TypeError, match="array of one element, received shape"):
        float(x)
    with pytest.raises(ValueError, match="2 elements has no truth value"):
        bool(x)
    with pytest.raises(NotImplementedError, match="keys"):
        hash(x)
    with pytest.warns(DeprecationWarning, match="empty array"):
        assert not np.zeros(0)


def test_contiguous_selection_shares_memory():
    x = np.arange(6).reshape(2, 3)
    row, column = x[1], x[:, 1]
    row[:] = 7
    column[:] = -1
    assert x.tolist() == [[0.0, 1.0, 2.0], [7.0, 7.0, 7.0]]


def test_index_errors():
    x = np.arange(3)
    with pytest.raises(IndexError, match="axis 0 has 3 entries, received index"):
        x[3]
    with pytest.raises(IndexError, match="a scalar has no axes to index, received"):
        np.array(1.0)[0]
    with pytest.raises(IndexError, match="a mask must have the array's shape: axis 0 has 3 entries, 2 in the mask"):
        x[np.array([True, False], dtype="bool")]


@pytest.mark.parametrize("key, value, expected", [
    (1, 9, [[0, 1, 2], [9, 9, 9]]),
    ((slice(None), 0), np.array([8.0, 9.0]), [[8, 1, 2], [9, 4, 5]]),
    ((0, slice(None, None, -1)), [7, 8, 9], [[9, 8, 7], [3, 4, 5]]),
    (np.array([[True, False, False], [False, True, True]], dtype="bool"), 0, [[0, 1, 2], [3, 0, 0]]),
    (np.array([[True, False, False], [False, True, True]], dtype="bool"), np.array([5.0, 6.0, 7.0]), [[5, 1, 2], [3, 6, 7]]),
    (([0, 1], [2, 0]), np.array([1.0, 2.0]), [[0, 1, 1], [2, 4, 5]]),
    (..., 4, [[4, 4, 4], [4, 4, 4]]),
])
def test_assignment(key, value, expected):
    x = np.arange(6).reshape(2, 3).copy()
    x[key] = value
    assert x.tolist() == expected


def test_assignment_errors():
    x = np.arange(3)
    with pytest.raises(TypeError, match=r"an array of mx.np expected as values, received an NDArray of mx.nd of shape \(3,\); call as_np_ndarray"):
        x[:] = mx.nd.array([1, 2, 3])
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        x[[0, 1, 2]] = np.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record(), pytest.raises(mx.MXNetError, match="Inplace operations"):
        x[0] = 1


def test_legacy_view_shares_memory_and_history():
    x = np.array([1.0, 2.0])
    x.attach_grad()
    legacy = x.as_nd_ndarray()
    assert type(legacy) is mx.nd.NDArray and type(legacy.as_np_ndarray()) is np.ndarray
    legacy[:] = 5
    assert x.tolist() == [5.0, 5.0]
    with autograd.record():
        y = (x.as_nd_ndarray() * 3).as_np_ndarray() * 2
    y.backward()
    assert x.grad.tolist() == [6.0, 6.0] and type(x.grad) is np.ndarray


def test_classes_do_not_mix():
    x, legacy = np.array([1.0]), mx.nd.array([1.0])
    with pytest.raises(TypeError, match="not supported"):
        x + legacy
    with pytest.raises(TypeError, match=r"call as_np_ndarray\(\)"):
        np.sum(legacy)
    with pytest.raises(ValueError, match="as_np_ndarray"):
        np.array(legacy)
    with pytest.raises(AssertionError, match="must be an array, received"):
        np.sum([1, 2])


def test_pickle():
    x = pickle.loads(pickle.dumps(np.array([[1.0], [2.0]])))
    assert type(x) is np.ndarray and x.tolist() == [[1.0], [2.0]]


def test_values_with_leading_axes_of_size_1_fit_a_reversed_selection():
    x = np.zeros((3, 2))
    x[::-1] = np.array([[[1, 2], [3, 4], [5, 6]]])
    assert x.tolist() == [[5.0, 6.0], [3.0, 4.0], [1.0, 2.0]]
    x[::-1, 0] = onp.array([[7, 8, 9]])
    assert x[:, 0].tolist() == [9.0, 8.0, 7.0]
    with pytest.raises(ValueError, match=r"cannot assign values of shape \(2, 3, 2\) to a selection of shape \(3, 2\)"):
        x[::-1] = np.zeros((2, 3, 2))


def test_what_no_gradient_reaches_is_zero_also_without_axes():
    x = np.array(3.0)
    x.attach_grad()
    x.grad[()] = 7
    with mx.autograd.record():
        y = x > 1
    y.backward()
    assert x.grad.item() == 0.0


def test_assignment_to_reversed_slices_beside_index_arrays():
    x = np.arange(12).reshape(4, 3)
    x[::-1, [0, 2]] = np.arange(8).reshape(4, 2) * 10
    assert x.tolist() == [[60.0, 1.0, 70.0], [40.0, 4.0, 50.0], [20.0, 7.0, 30.0], [0.0, 10.0, 10.0]]
    x[np.array([0, 2], dtype="int64"), ::-2] = np.array([-1, -2])
    assert x.tolist() == [[-2.0, 1.0, -1.0], [40.0, 4.0, 50.0], [-2.0, 7.0, -1.0], [0.0, 10.0, 10.0]]


def test_reading_and_writing_by_the_kind_of_key():
    x = mx.np.arange(6).reshape(2, 3)
    rows, columns = mx.np.array([1, 0], dtype="int64"), mx.np.array([2, 0], dtype="int64")
    assert x._get_np_basic_indexing((slice(0, 1), slice(1, 3))).asnumpy().tolist() == [[1, 2]]
    assert x._get_np_advanced_indexing((rows, columns)).asnumpy().tolist() == [5, 0]
    assert x._get_np_boolean_indexing(x > 2, 2, x.shape).asnumpy().tolist() == [3, 4, 5]
    assert x._get_np_empty_tuple_indexing(((), slice(None))).shape == (0, 3)
    x._set_np_boolean_indexing(x > 2, 9)
    x._set_np_advanced_indexing((rows, columns), 7)
    assert x.asnumpy().tolist() == [[7, 1, 2], [9, 9, 7]]


def test_gradient_of_a_key_with_arrays_and_a_reversed_axis():
    x = np.arange(12).reshape(2, 2, 3)
    x.attach_grad()
    with mx.autograd.record():
        y = x[1, [0], ::-1]
    y.backward(np.array([[1, 2, 3]]))
    assert x.grad.tolist() == [[[0, 0, 0], [0, 0, 0]], [[3, 2, 1], [0, 0, 0]]]


def test_a_new_axis_and_a_reversed_one_are_written():
    x = np.zeros((3, 2))
    x[None, ::-1] = np.array([[[1, 2], [3, 4], [5, 6]]])
    assert x.tolist() == [[5, 6], [3, 4], [1, 2]]
