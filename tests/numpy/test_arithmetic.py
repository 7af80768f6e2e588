"""Operators of Python and methods on arrays of mx.np."""
import numpy as onp
import pytest

import mxnet as mx
from mxnet import np, npx


@pytest.fixture(autouse=True)
def numpy_semantics():
    npx.set_np()
    yield
    npx.reset_np()


def test_mixed_types():
    assert (np.ones(2, dtype="int32") + np.ones(2, dtype="int64")).dtype == onp.int64
    assert (np.ones(2, dtype="int64") + np.array(1.0, dtype="float16")).dtype == onp.float16
    assert (np.ones((), dtype="float64") + np.ones(2)).dtype == onp.float64
    assert (np.ones(2, dtype="int32") - np.ones(2, dtype="int64")).dtype == onp.int64
    assert (np.ones(2, dtype="uint8") < np.ones(2, dtype="int8")).tolist() == [False, False]
    with pytest.raises(mx.MXNetError, match="do not mix"):
        np.ones(2, dtype="uint64") - np.ones(2, dtype="int64")
    with pytest.raises(mx.MXNetError, match="one data type"):
        np.maximum(np.ones(2), np.ones(2, dtype="float64"))
    with pytest.raises(mx.MXNetError, match="boolean"):
        np.exp(np.ones(2, dtype="bool"))


def test_python_operators():
    x = np.array([5.0, -3.0])
    assert (7 - x).tolist() == [2.0, 10.0] and (x % 4).tolist() == [1.0, 1.0] and (2 ** x).tolist() == [32.0, 0.125]
    assert (x @ x).item() == 34.0 and (-x).tolist() == [-5.0, 3.0] and abs(x).tolist() == [5.0, 3.0]
    n = np.array([6, 3], dtype="int32")
    assert (n & 2).tolist() == [2, 2] and (n | 1).tolist() == [7, 3] and (~n).tolist() == [-7, -4] and (n ^ n).tolist() == [0, 0]
    x += 1
    x *= np.array([2.0, 3.0])
    assert x.tolist() == [12.0, -6.0]
    assert (x > 0).tolist() == [True, False]


def test_python_operators_of_mxnet_2():
    n = np.array([7, -7], dtype="int32")
    assert (n // 2).tolist() == [3, -4] and (20 // n).tolist() == [2, -3] and (n << 1).tolist() == [14, -14] and (n >> 1).tolist() == [3, -4]
    assert (1 << np.array([3], dtype="int64")).tolist() == [8] and (+n).tolist() == [7, -7] and (n @ n).item() == 98
    n //= 3
    n <<= 2
    assert n.tolist() == [8, -12]
    u = np.array([250, 3], dtype="uint16")
    assert (u * u).tolist() == [62500, 9] and (-u).tolist() == [65286, 65533] and (u > 4).tolist() == [True, False] and (~u).dtype == onp.uint16
    assert (u - 1).tolist() == [249, 2] and (1 - u).tolist() == [65287, 65534] and (u % 7).tolist() == [5, 3] and (u // 7).tolist() == [35, 0]
    assert [10, 20, 30][np.array(1, dtype="int64")] == 20
    with pytest.raises(TypeError, match="only integer arrays without axes can be indices"):
        [10][np.array(0.0)]


def test_options_of_functions_of_mxnet_2():
    n = np.array([7, -7], dtype="int32")
    with pytest.raises(TypeError, match="unexpected keyword argument 'where'"):
        np.bitwise_left_shift(n, n, where=False)
    with pytest.raises(NotImplementedError, match="floor_divide: where must be left at its default"):
        np.floor_divide(n, n, where=False)


def test_positive_is_recorded():
    x = np.array([1.0, -2.0])
    x.attach_grad()
    with mx.autograd.record():
        y = np.positive(x)
    y.backward(np.array([3.0, 4.0]))
    assert y.tolist() == [1.0, -2.0] and x.grad.tolist() == [3.0, 4.0] and np.positive(3) == 3


def test_methods():
    x = np.array([[4.0, 1.0], [2.0, 3.0]])
    assert x.sum(1).tolist() == [5.0, 5.0] and x.max(0, None, True).tolist() == [[4.0, 3.0]]
    assert x.std().item() == pytest.approx(1.1180340) and x.argmax(axis=1).tolist() == [0, 1]
    assert x.clip(2, 3).tolist() == [[3.0, 2.0], [2.0, 3.0]] and x.T.tolist() == [[4.0, 2.0], [1.0, 3.0]]
    assert x.reshape(-1).shape == x.flatten().shape == x.reshape((4,)).shape == (4,)
    assert x.astype("int8").dtype == onp.int8 and x.astype("float32", copy=False) is x
    assert x.copy().tolist() == x.tolist() and x.as_in_ctx(mx.cpu()) is x
    with pytest.raises(AttributeError, match="arrays of mx.np have no method exp"):
        x.exp()
    with pytest.raises(NotImplementedError, match="order must be 'C', received 'F'"):
        x.copy(order="F")
    with pytest.raises(mx.MXNetError, match="-1 for one to be inferred"):
        x.reshape(-2, 2)


def test_out_and_ufunc_arguments():
    x, out = np.array([4.0]), np.zeros(1)
    assert np.sqrt(x, out=out) is out and out.item() == 2.0
    assert np.add(x, 1, out=out) is out and out.item() == 5.0
    with pytest.raises(NotImplementedError, match="exp: where must be left at its default, received False"):
        np.exp(x, where=False)
    with pytest.raises(TypeError, match="not understood"):
        np.add(x, x, dtype="abcdefg")
    assert np.add(1, 2) == 3 and np.sin(0) == 0
    with pytest.raises(TypeError, match="not supported"):
        np.sin("a")


@pytest.mark.parametrize("compute, expected", [
    (lambda x: x ** 2, [25, 9]), (lambda x: 10 / x, [2, -10 / 3]),
    (lambda x: 7 % x, [2, -2]), (lambda x: round(x / 4), [1, -1]), (lambda x: x != 5, [False, True]), (lambda x: 5 <= x, [True, False]),
    (lambda x: x.max() - x.min(), 8), (lambda x: x.cumsum(), [5, 2]), (lambda x: x.prod(), -15), (lambda x: x.var(ddof=1), 32),
    (lambda x: x.repeat(2), [5, 5, -3, -3]), (lambda x: x.argsort(), [1, 0]), (lambda x: x.take(np.array([1, 1], dtype="int32")), [-3, -3])])
def test_values(compute, expected):
    assert compute(np.array([5.0, -3.0])).tolist() == pytest.approx(expected)


def test_in_place_operators_keep_the_array():
    x = np.array([5.0, -3.0])
    same = x
    x -= 1
    x /= np.array([2.0, 4.0])
    x **= 2
    assert x is same and x.tolist() == [4, 1]
    n = np.array([6, 3], dtype="int32")
    n |= 1
    n &= 5
    n ^= 1
    assert n.tolist() == [4, 0]
    m = np.eye(2)
    m @= np.array([[1.0, 2.0], [3.0, 4.0]])
    assert m.tolist() == [[1, 2], [3, 4]]


def test_reductions_take_the_arguments_of_numpy_s_methods():
    x = np.array([[4.0, 1.0], [2.0, 3.0]])
    assert x.sum(0, "float64").dtype == onp.float64 and x.mean(1, keepdims=True).shape == (2, 1) and x.all(0).tolist() == [True, True]
    with pytest.raises(TypeError, match=r"max\(\) takes the arguments axis, out, keepdims"):
        x.max(0, None, True, 5)
    with pytest.raises(TypeError, match=r"sum\(\) takes the arguments axis, dtype, out, keepdims"):
        x.sum(initial=3)


def test_complex_numbers():
    xp = mx.np.array_api
    c = xp.asarray([3 + 4j, 1j])
    assert (c + 1j).tolist() == [3 + 5j, 2j] and (2 * c).tolist() == [6 + 8j, 2j] and (c / 2).tolist() == [1.5 + 2j, 0.5j]
    assert (-c).tolist() == [-3 - 4j, -1j]
    assert abs(c).tolist() == [5, 1] and abs(c).dtype == onp.float32 and (c == 1j).tolist() == [False, True] and complex(c[0]) == 3 + 4j
    assert (np.array([1.0]) + 1j).dtype == onp.complex64 and (np.array([1.0], dtype="float64") * 1j).dtype == onp.complex128
    c[0] = 7 - 1j
    c[1:] = 2
    c += 1j
    c *= 2
    assert c.tolist() == [14, 4 + 2j]


def test_wide_unsigned_integers_are_written_and_read():
    u = np.zeros(3, dtype="uint64")
    u[0] = 2**64 - 1
    u[1:] = 7
    assert u.tolist() == [2**64 - 1, 7, 7] and u[::-1].tolist() == [7, 7, 2**64 - 1]
    u[np.array([True, False, True], dtype="bool")] = 5
    u[np.array([1], dtype="int64")] = np.array([9], dtype="uint64")
    assert u.tolist() == [5, 9, 5]


def test_scalars_take_keys_that_name_no_axis():
    x = np.array(5.0)
    assert x[(...,)].item() == 5 and x[None, ...].shape == (1,)
    x[(...,)] = 3
    assert x.item() == 3
    with pytest.raises(IndexError, match="a scalar has no axes to index"):
        x[(0,)]


def test_slices_and_masks_of_mxnet_2():
    x = np.array([1.0, 2.0, 3.0])
    one = np.array(1, dtype="int64")
    assert x[one:].tolist() == [2, 3] and x[np.array([], dtype="bool")].shape == (0,)
    x[:one] = 9
    assert x.tolist() == [9, 2, 3]
    u = np.zeros(3, dtype="uint16")
    u[::-1] = np.array([1, 2, 65535], dtype="uint16")
    assert u.tolist() == [65535, 2, 1]
    with pytest.raises(IndexError, match="a mask must have the array's shape"):
        x[np.array([True], dtype="bool")]
    with pytest.raises(IndexError, match="slice entries must be integers or None"):
        x[np.array(0.5):]
