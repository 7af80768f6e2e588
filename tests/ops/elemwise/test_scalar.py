"""Operators on an array and a number. The numbers come from MXNet 1.9.1."""
import numpy as np
import pytest

import mxnet as mx

nan = float("nan")
# operator; values and gradients for [-2.5, -1, 1.5, 4] and 1.5; values for the integers [-7, 1, 2, 9] and 2.7, which counts as 2
CASES = [
    ("plus", [-1, 0.5, 3, 5.5], [1, 1, 1, 1], [-5, 3, 4, 11]),
    ("minus", [-4, -2.5, 0, 2.5], [1, 1, 1, 1], [-9, -1, 0, 7]),
    ("rminus", [4, 2.5, 0, -2.5], [-1, -1, -1, -1], [9, 1, 0, -7]),
    ("mul", [-3.75, -1.5, 2.25, 6], [1.5, 1.5, 1.5, 1.5], [-14, 2, 4, 18]),
    ("div", [-1.66667, -0.666667, 1, 2.66667], [0.666667, 0.666667, 0.666667, 0.666667], [-3, 0, 1, 4]),
    ("rdiv", [-0.6, -1.5, 1, 0.375], [-0.24, -1.5, -0.666667, -0.09375], [0, 2, 1, 0]),
    ("mod", [0.5, 0.5, 0, 1], [1, 1, 1, 1], [1, 1, 0, 1]),
    ("rmod", [-1, -0.5, 0, 1.5], [1, 2, -1, 0], [-5, 0, 0, 2]),
    ("power", [nan, nan, 1.83712, 8], [nan, nan, 1.83712, 3], [49, 1, 4, 81]),
    ("rpower", [0.362887, 0.666667, 1.83712, 5.0625], [0.147138, 0.27031, 0.744887, 2.05267], [0, 2, 4, 512]),
    ("maximum", [1.5, 1.5, 1.5, 4], [0, 0, 1, 1], [2, 2, 2, 9]),
    ("minimum", [-2.5, -1, 1.5, 1.5], [1, 1, 1, 0], [-7, 1, 2, 2]),
    ("hypot", [2.91548, 1.80278, 2.12132, 4.272], [-0.857493, -0.5547, 0.707107, 0.936329], [7, 2, 2, 9]),
    ("equal", [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 1, 0]),
    ("not_equal", [1, 1, 0, 1], [0, 0, 0, 0], [1, 1, 0, 1]),
    ("greater", [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 1]),
    ("greater_equal", [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 1, 1]),
    ("lesser", [1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 0, 0]),
    ("lesser_equal", [1, 1, 1, 0], [0, 0, 0, 0], [1, 1, 1, 0]),
    ("logical_and", [1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]),
    ("logical_or", [1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]),
    ("logical_xor", [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]),
]


@pytest.mark.parametrize("name, values, gradients, _", CASES, ids=[c[0] for c in CASES])
def test_value_and_gradient(name, values, gradients, _):
    x = mx.nd.array([-2.5, -1, 1.5, 4])
    x.attach_grad()
    with mx.autograd.record():
        y = getattr(mx.nd._internal, f"_{name}_scalar")(x, scalar=1.5)
        loss = (y + 0 * x).sum()
    loss.backward()
    np.testing.assert_allclose(y.asnumpy(), values, rtol=1e-5)
    np.testing.assert_allclose(x.grad.asnumpy(), gradients, rtol=1e-4)


@pytest.mark.parametrize("name, _, __, values", CASES, ids=[c[0] for c in CASES])
def test_integers_take_an_integer(name, _, __, values):
    y = getattr(mx.nd._internal, f"_{name}_scalar")(mx.nd.array([-7, 1, 2, 9], dtype="int32"), scalar=2.7)
    assert y.dtype == np.int32 and y.asnumpy().tolist() == values


def test_zeros():
    x = mx.nd.array([-2, 0, 3])
    internal = mx.nd._internal
    assert internal._mod_scalar(x, scalar=0).asnumpy().tolist() == [0, 0, 0]
    assert internal._rmod_scalar(x, scalar=5).asnumpy().tolist() == [-1, 0, 2]
    assert internal._rdiv_scalar(x, scalar=1).asnumpy().tolist()[1] == float("inf")


def test_number_wraps_around_to_the_type():
    x = mx.nd.array([1, 3], dtype="uint8")
    assert mx.nd._internal._plus_scalar(x, scalar=300.5).asnumpy().tolist() == [45, 47]
    assert mx.nd._internal._minus_scalar(mx.nd.array([1], dtype="int8"), scalar=130).asnumpy().tolist() == [127]


def test_float16_keeps_its_type():
    y = mx.nd.array([0.1], dtype="float16") == 0.1
    assert y.dtype == np.float16 and y.asscalar() == 1


def test_types_of_numpy_semantics():
    plus = mx.nd._internal._plus_scalar
    assert plus(mx.nd.array([1], dtype="bool"), scalar=1).dtype == np.int64
    y = plus(mx.nd.array([1], dtype="int32"), scalar=1.5, is_int=False)
    assert y.dtype == np.float64 and y.asscalar() == 2.5
    s = mx.sym._internal._plus_scalar(mx.sym.Variable("x"), scalar=1.5, is_int=False)
    assert s.infer_type(x="int32")[1] == [np.float64]


def test_old_names():
    assert mx.nd._internal._PlusScalar(mx.nd.ones((1,)), scalar=2).asscalar() == 3
    assert mx.nd._internal._npi_maximum_scalar(mx.nd.ones((1,)), scalar=2).asscalar() == 2
    assert '"op": "_rminus_scalar"' in (1 - mx.sym.Variable("x")).tojson()


def test_scatter_on_dense_arrays():
    assert mx.nd._internal._scatter_plus_scalar(mx.nd.ones((1,)), scalar=2).asscalar() == 3
    assert mx.nd._internal._scatter_minus_scalar(mx.nd.ones((1,)), scalar=2).asscalar() == -1


def test_shapes_go_backwards():
    s = (mx.sym.Variable("x") * 2) + mx.sym.Variable("y")
    assert s.infer_shape(y=(4,))[0] == [(4,), (4,)]


def test_the_remainder_of_a_division_by_zero_passes_the_gradient():
    x = mx.nd.array([1.5, -2])
    x.attach_grad()
    with mx.autograd.record():
        y = x % 0
    y.backward(mx.nd.array([3, 4]))
    assert y.asnumpy().tolist() == [0, 0] and x.grad.asnumpy().tolist() == [3, 4]
