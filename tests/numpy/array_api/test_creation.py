import numpy as onp
import pytest

import mxnet as mx

xp = mx.np.array_api


def test_copies_and_shared_memory():
    x = xp.ones(3)
    assert xp.asarray(x) is x and xp.asarray(x, copy=True) is not x
    host = onp.zeros(3, "float32")
    shared = xp.asarray(host, copy=False)
    shared[0] = 5
    assert host[0] == 5
    with pytest.raises(ValueError, match=r"float64 on cpu\(0\) needs a copy of an array of float32 on cpu\(0\), and copy=False forbids it"):
        xp.asarray(x, dtype=xp.float64, copy=False)
    with pytest.raises(ValueError, match="needs a copy, and copy=False forbids it"):
        xp.asarray([1, 2], copy=False)
    with pytest.raises(TypeError, match="asarray: numbers expected, received 'text'"):
        xp.asarray("text")


def test_types_of_values():
    assert xp.asarray(onp.float64(1)).dtype == xp.float64 and xp.asarray([onp.int8(1)]).dtype == xp.int8 and xp.asarray([]).dtype == xp.float32
    assert xp.asarray([[1, 2], [3, 4]], dtype=xp.uint64).tolist() == [[1, 2], [3, 4]] and xp.asarray(2**63, dtype=xp.uint64).item() == 2**63
    assert xp.asarray([0.1, 16777217.0], dtype=xp.float64).tolist() == [0.1, 16777217.0]
    assert xp.full(2, True).dtype == xp.bool and xp.full((), 3).dtype == xp.int64 and xp.full(1, 2**64 - 1, dtype=xp.uint64).tolist() == [2**64 - 1]


@pytest.mark.parametrize("args", [(5,), (2, 9, 3), (9, 2, -3), (0.5, 2, 0.25), (1, 1), (5, 1), (-1.5, 2)])
def test_ranges_as_in_numpy(args):
    expected = onp.arange(*args)
    found = xp.arange(*args)
    onp.testing.assert_array_equal(found.asnumpy(), expected)
    assert found.dtype == (xp.int64 if expected.dtype.kind == "i" else xp.float32)


def test_spaces():
    onp.testing.assert_array_equal(xp.linspace(0, 1, 5).asnumpy(), [0, 0.25, 0.5, 0.75, 1])
    assert xp.linspace(0, 4, 4, endpoint=False, dtype=xp.int32).tolist() == [0, 1, 2, 3] and xp.linspace(0, 1j, 2).tolist() == [0, 1j]
    with pytest.raises(ValueError, match="num must be at least 0, received -1"):
        xp.linspace(0, 1, -1)
    with pytest.raises(ValueError, match="arange: step must not be 0"):
        xp.arange(3, step=0)


def test_matrices():
    assert xp.eye(2, 3, k=1).tolist() == [[0, 1, 0], [0, 0, 1]] and xp.eye(2, k=5).tolist() == [[0, 0], [0, 0]]
    assert xp.triu(xp.asarray([[1, 2], [3, 4]], dtype=xp.uint16)).tolist() == [[1, 2], [0, 4]]
    assert xp.tril(xp.ones((2, 2)), k=-1).tolist() == [[0, 0], [1, 0]]
    a, b = xp.meshgrid(xp.arange(2), xp.arange(3))
    assert a.tolist() == [[0, 1]] * 3 and b.tolist() == [[0, 0], [1, 1], [2, 2]]
    with pytest.raises(mx.MXNetError, match=r"triu: matrices expected, received an array of shape \(2,\)"):
        xp.triu(xp.ones(2))


def test_dlpack():
    host = onp.arange(3)
    x = xp.from_dlpack(host)
    assert x.tolist() == [0, 1, 2] and onp.from_dlpack(x).tolist() == [0, 1, 2] and x.__dlpack_device__()[0] == 1
    x[0] = 7
    assert host[0] == 7 and xp.from_dlpack(x, copy=True) is not x


def test_array_is_a_copy():
    x = xp.asarray([1.0, 2.0])
    y = xp.array(x)
    y[0] = 5
    assert x.tolist() == [1.0, 2.0] and xp.array([1, 2]).dtype == "int64" and xp.array([1], dtype="float64").dtype == "float64"
