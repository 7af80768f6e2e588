import inspect

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd
from mxnet.ndarray import methods


def grid():
    return nd.arange(12).reshape((3, 4))


def test_methods_are_the_operators():
    x = grid()
    assert x.sum(axis=1).asnumpy().tolist() == [6, 22, 38]
    assert x.reshape((-1, 6)).shape == (2, 6)
    assert x.reshape(0, 2, 2).shape == (3, 2, 2)
    assert x.T.shape == (4, 3)
    assert x.transpose(1, 0).shape == (4, 3)
    assert x.expand_dims(0, inplace=True).shape == (1, 3, 4)
    assert x.astype("int32", copy=False).dtype is np.int32
    with pytest.raises(TypeError, match="unexpected arguments"):
        x.reshape((4, 3), order="C")


def test_arrays_and_symbols_have_the_same_methods():
    for name in methods.names():
        assert callable(getattr(nd.NDArray, name)) and callable(getattr(mx.sym.Symbol, name)), name
        assert getattr(nd.NDArray, name).__name__ == name and name in getattr(nd.NDArray, name).__doc__


def test_a_method_that_a_program_has_replaced_stays_replaced():
    class Derived(nd.NDArray):
        pass

    methods.attach(Derived, lambda name: getattr(nd, name))
    original, x = Derived.log2, nd.array([8])
    try:
        Derived.log2 = lambda self: -original(self)
        assert [Derived.log2(x).asscalar() for _ in range(3)] == [-3] * 3 and original(x).asscalar() == 3
    finally:
        Derived.log2 = original
    texts = original.__name__, original.__doc__, inspect.signature(original)
    assert Derived.log1p(x * 0).asscalar() == Derived.log2(x * 0 + 1).asscalar() == 0
    assert (Derived.log2.__name__, Derived.log2.__doc__, inspect.signature(Derived.log2)) == texts


def test_transpose_takes_its_axes_in_any_form():
    x = nd.zeros((1, 2, 3))
    assert [x.transpose(*a).shape for a in ((), (0, 2, 1), ((0, 2, 1),), ([2, 1, 0],))] == [(3, 2, 1), (1, 3, 2), (1, 3, 2), (3, 2, 1)]
    assert x.transpose(axes=(1, 0, 2)).shape == (2, 1, 3)


def test_inplace_shares_memory_and_means_nothing_for_symbols():
    x = grid()
    shared, copied = x.expand_dims(0, inplace=True), x.expand_dims(0)
    x[:] = 7
    assert shared.asnumpy().min() == 7 and copied.asnumpy().max() == 11
    assert mx.sym.var("x").expand_dims(axis=0, inplace=True).infer_shape(x=(2,))[1] == [(1, 2)]


def test_broadcasting_methods_add_leading_axes():
    x = nd.array([1, 2, 3])
    assert x.broadcast_to((2, 3)).asnumpy().tolist() == x.broadcast_like(nd.zeros((2, 3))).asnumpy().tolist() == [[1, 2, 3], [1, 2, 3]]
    assert x.broadcast_to(shape=[4, 1, 3]).shape == x.broadcast_to(np.array([4, 1, 3])).shape == (4, 1, 3) and x.broadcast_to((0, 3)).shape == (1, 3)
    assert nd.ones((2, 1)).broadcast_like(nd.ones((4, 2, 3))).shape == (4, 2, 3)
    assert nd.ones((1,)).broadcast_like(nd.ones((4, 5)), lhs_axes=(0,), rhs_axes=(1,)).shape == (5,)
    x.attach_grad()
    with mx.autograd.record():
        y = x.broadcast_to((2, 3)) + x.broadcast_like(nd.zeros((2, 3)))
    y.backward()
    assert x.grad.asnumpy().tolist() == [4, 4, 4]
    for call, text in ((lambda: nd.ones(2).broadcast_to((2, 3)), r"broadcast_to: an array of shape \(2,\) could not be broadcast to \(2, 3\)"),
                       (lambda: nd.ones((1, 2, 2)).broadcast_like(nd.ones((2, 2))), r"broadcast_like: .* \(1, 2, 2\) could not .* to \(2, 2\)")):
        with pytest.raises(ValueError, match=text):
            call()
    for call in (lambda: nd.broadcast_to(x, (2, 3)), lambda: mx.sym.var("x").broadcast_to((2, 3)).infer_shape(x=(3,))):  # no operator does
        with pytest.raises(mx.MXNetError, match="the number of axes differs"):
            call()
