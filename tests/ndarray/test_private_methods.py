import numpy as np
import pytest

import mxnet as mx


def rows():
    return mx.nd.arange(6).reshape((3, 2))


def test_sync_copyfrom():
    x = rows()
    assert x._sync_copyfrom(np.ones((3, 2), ">f8")[::-1]) is None and x.asnumpy().tolist() == [[1, 1]] * 3
    x._sync_copyfrom([[1, 2], [3, 4], [5, 6]])
    assert x.asnumpy().tolist() == [[1, 2], [3, 4], [5, 6]]
    with pytest.raises(ValueError, match=r"_sync_copyfrom: shape \(3, 2\) expected, received \(2, 3\)"):
        x._sync_copyfrom(np.ones((2, 3)))
    with pytest.raises(TypeError, match="_sync_copyfrom: an array of numbers expected, received 'a'"):
        x._sync_copyfrom("a")


@pytest.mark.parametrize("bounds, expected", [((1, 3), [[2, 3], [4, 5]]), ((-2, 3), [[2, 3], [4, 5]]), ((1, None), [[2, 3], [4, 5]]), ((1, 9), [[2,
    3], [4, 5]]),
                                              ((2, 2), []), ((None, 2), [[0, 1], [2, 3]])])
def test_slice(bounds, expected):
    assert rows()._slice(*bounds).asnumpy().tolist() == expected


def test_slice_and_at_share_memory():
    x = rows()
    x._slice(1, 2)[:] = 9
    x._at(-1)[:] = 7
    assert x.asnumpy().tolist() == [[0, 1], [9, 9], [7, 7]]
    assert mx.nd.arange(3)._at(1).shape == (1,) == mx.np.arange(3)._at(1).shape and x._at(1).shape == (2,)
    with pytest.raises(mx.base.MXNetError, match="_slice: a start of at most 1 expected, received 2"):
        x._slice(2, 1)
    with pytest.raises(mx.base.MXNetError, match="_at: an index from -3 to 2 expected, received 9"):
        x._at(9)


def test_full():
    x = rows()
    assert x._full(2.5) is x and x.asnumpy().tolist() == [[2.5, 2.5]] * 3
    with pytest.raises(mx.base.MXNetError, match="_full: a number expected, received 'a'"):
        x._full("a")


def test_scatter_set_nd():
    x = rows()
    assert x._scatter_set_nd(mx.nd.array([7, 8]), mx.nd.array([[0, 2], [1, 0]])) is x
    assert x.asnumpy().tolist() == [[0, 7], [2, 3], [8, 5]]


def test_names_of_base_classes():
    from mxnet._ctypes.ndarray import NDArrayBase
    from mxnet._ctypes.symbol import SymbolBase
    assert NDArrayBase is mx.nd._internal.NDArrayBase is mx.nd.ndarray.NDArrayBase and SymbolBase is mx.sym._internal.SymbolBase
    assert isinstance(rows(), NDArrayBase) and isinstance(mx.np.ones(1), NDArrayBase)
    assert isinstance(mx.sym.Variable("a"), SymbolBase) and isinstance(mx.sym.np.zeros((1,)), SymbolBase)


def test_notes_on_arrays_of_numpy():
    import copy
    x = mx.np.ones(2)
    x.foo = 1
    assert x.foo == 1 and x.as_in_ctx(mx.cpu()).foo == 1 and not any(hasattr(y, "foo") for y in (x.copy(), copy.copy(x), copy.deepcopy(x)))
    with pytest.raises(AttributeError):
        rows().foo = 1


def test_choice_without_a_size():
    mx.random.seed(5)
    values = [mx.np.random.choice(mx.np.array([10, 20, 30])) for _ in range(20)]
    assert all(v.shape == () for v in values) and {float(v) for v in values} == {10, 20, 30}
    assert mx.np.random.choice(mx.np.array([10, 20, 30], dtype="int32"), p=mx.np.array([0.0, 1.0, 0.0])).item() == 20
    assert mx.np.random.choice(mx.np.ones((2, 3))).shape == (3,)
    for empty in (mx.np.zeros((0,)), mx.np.array(4)):
        with mx.util.np_shape(True), pytest.raises(mx.base.MXNetError, match="choice: an array with entries along its first axis expected"):
            mx.np.random.choice(empty)
