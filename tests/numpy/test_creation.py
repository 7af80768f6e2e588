import io

import numpy as onp
import pytest
import torch

import mxnet as mx
from mxnet import np, npx


@pytest.fixture(autouse=True)
def numpy_semantics():
    npx.set_np()
    yield
    npx.reset_np()


@pytest.mark.parametrize("source, dtype, expected", [
    ([1, 2], "float32", [1, 2]), (3, "float32", 3), (onp.array([1, 2]), "int64", [1, 2]), (onp.float64(1.5), "float64", 1.5),
    (torch.tensor([1, 2], dtype=torch.int8), "int8", [1, 2]), ([[True, False]], "float32", [[1, 0]]), ((), "float32", [])])
def test_types_follow_the_source(source, dtype, expected):
    found = np.array(source)
    assert type(found) is np.ndarray and found.dtype == dtype and found.tolist() == expected
    assert np.array(source, dtype="float64").dtype == "float64"


def test_arrays_are_copied():
    x = np.array([1.0, 2.0])
    y = np.array(x, ctx=mx.cpu(1))
    y[:] = 7
    assert x.tolist() == [1, 2] and y.ctx == mx.cpu(1)
    assert np.array([x, x * 2]).tolist() == [[1, 2], [2, 4]]


def test_numbers_that_do_not_fit_wrap_around():
    assert np.array([300, -1], dtype="uint8").tolist() == [44, 255]
    assert np.array([1.7, -1.7], dtype="int32").tolist() == [1, -1]


def test_what_is_no_array():
    with pytest.raises(ValueError, match="received an NDArray of mx.nd; call as_np_ndarray"):
        np.array(mx.nd.ones(2))
    for source in ([[1], [1, 2]], "abc", [object()]):
        with pytest.raises(TypeError, match="is not made of numbers of one depth"):
            np.array(source)


def test_shape_and_empty():
    assert np.shape(np.ones((2, 3))) == (2, 3) and np.shape([[1], [2]]) == (2, 1) and np.shape(5) == ()
    assert np.empty((2, 0)).shape == (2, 0) and np.empty(3, dtype="int8").dtype == "int8"


def test_broadcast_arrays():
    a, b = np.broadcast_arrays(np.array([1.0, 2.0]), np.array([[5.0], [6.0]]))
    assert a.tolist() == [[1, 2], [1, 2]] and b.tolist() == [[5, 5], [6, 6]]


@pytest.mark.parametrize("options, shapes", [({}, [(3, 2)] * 2), ({"indexing": "ij"}, [(2, 3)] * 2), ({"sparse": True}, [(1, 2), (3, 1)]),
                                             ({"sparse": True, "indexing": "ij"}, [(2, 1), (1, 3)]), ({"copy": False}, [(3, 2)] * 2)])
def test_meshgrid(options, shapes):
    x, y = np.array([1.0, 2.0]), np.array([5.0, 6.0, 7.0])
    found, expected = np.meshgrid(x, y, **options), onp.meshgrid([1, 2], [5, 6, 7], **options)
    assert [f.shape for f in found] == shapes and [f.tolist() for f in found] == [e.tolist() for e in expected]


def test_mistakes_in_meshgrid():
    with pytest.raises(TypeError, match="takes indexing, sparse and copy by name, received 'order'"):
        np.meshgrid(np.ones(1), order="C")
    with pytest.raises(ValueError, match="indexing must be 'xy' or 'ij', received 'yx'"):
        np.meshgrid(np.ones(1), indexing="yx")


def test_genfromtxt():
    found = np.genfromtxt(io.StringIO("1,2\n3,4"), delimiter=",", ctx=mx.cpu(1))
    assert found.tolist() == [[1, 2], [3, 4]] and found.dtype == "float32" and found.ctx == mx.cpu(1)
    assert np.genfromtxt(io.StringIO("1 2"), dtype="int64").dtype == "int64"


def test_set_printoptions():
    before = onp.get_printoptions()
    try:
        np.set_printoptions(precision=2)
        assert repr(np.array([0.12345])) == "array([0.12])"
    finally:
        onp.set_printoptions(**before)


def test_a_type_may_be_that_of_an_array():
    y = mx.np.ones((2,), dtype="int32")
    for made in (mx.np.array([1, 2], dtype=y), mx.np.zeros((2,), dtype=y), mx.np.arange(3, dtype=y), mx.np.identity(2, dtype=y),
                 mx.np.ones(2).astype(y), mx.np.empty_like(mx.np.ones(2), dtype=y)):
        assert made.dtype == "int32"
    assert mx.np.random.randint(5, size=2, dtype=y).dtype == "int32"
    assert mx.np.random.uniform(size=(2,), dtype=mx.np.ones(1, dtype="float64")).dtype == "float64"


def test_asarray_copies_where_it_must():
    x = np.ones(2)
    assert np.asarray(x) is x and np.asarray(x, copy=True) is not x and np.asarray([1, 2], dtype="uint16").dtype == onp.uint16
    host = onp.arange(3)
    assert np.asarray(host).tolist() == [0, 1, 2] and np.asarray(5).dtype == onp.float32
    with pytest.raises(ValueError, match=r"float64 on cpu\(0\) needs a copy of an array of float32 on cpu\(0\), and copy=False forbids it"):
        np.asarray(x, dtype="float64", copy=False)
    with pytest.raises(ValueError, match=r"asarray: \[1\] needs a copy"):
        np.asarray([1], copy=False)


@pytest.mark.parametrize("shape, wrap", [((3, 3), False), ((5, 2), False), ((5, 2), True), ((2, 5), False), ((3, 3, 3), False)])
def test_filled_diagonals_as_in_numpy(shape, wrap):
    x, host = np.zeros(shape), onp.zeros(shape)
    np.fill_diagonal(x, [1, 2], wrap)
    onp.fill_diagonal(host, [1, 2], wrap)
    assert x.tolist() == host.tolist()


def test_diagonals_to_fill_need_equal_axes():
    with pytest.raises(ValueError, match=r"a matrix, or an array whose axes have one size, expected; received shape \(2, 2, 3\)"):
        np.fill_diagonal(np.zeros((2, 2, 3)), 1)


@pytest.mark.parametrize("dtype", [None, "float64"])
def test_a_copy_is_recorded(dtype):
    x = np.array([1.0, 2.0])
    x.attach_grad()
    with mx.autograd.record():
        copy = np.array(x, dtype=dtype)
        y = copy * 2 + x
    y.backward()
    assert x.grad.tolist() == [3, 3] and copy.dtype == (dtype or "float32") and x.grad.dtype == "float32"
