"""Arithmetic on two arrays. The numbers come from MXNet 1.9.1."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError

# operator, values, gradients of both inputs, for the inputs below
LHS, RHS = [-2.5, 2.0, 3.0, 1.0], [2.0, 2.0, -2.0, 0.5]
CASES = [
    ("add", [-0.5, 4, 1, 1.5], [1, 1, 1, 1], [1, 1, 1, 1]),
    ("sub", [-4.5, 0, 5, 0.5], [1, 1, 1, 1], [-1, -1, -1, -1]),
    ("mul", [-5, 4, -6, 0.5], [2, 2, -2, 0.5], [-2.5, 2, 3, 1]),
    ("div", [-1.25, 1, -1.5, 2], [0.5, 0.5, -0.5, 2], [0.625, -0.5, -0.75, -4]),
    ("mod", [1.5, 0, -1, 0], [1, 1, 1, 1], [2, -1, 2, -2]),
    ("power", [6.25, 4, 0.111111, 1], [-5, 4, -0.0740741, 0.5], [float("nan"), 2.77259, 0.122068, 0]),
    ("hypot", [3.20156, 2.82843, 3.60555, 1.11803], [-0.780869, 0.707107, 0.83205, 0.894427], [0.624695, 0.707107, -0.5547, 0.447214]),
    ("maximum", [2, 2, 3, 1], [0, 1, 1, 1], [1, 0, 0, 0]),
    ("minimum", [-2.5, 2, -2, 0.5], [1, 1, 0, 0], [0, 0, 1, 1]),
]
# for [-7, 7, 5, 2] and [2, -2, 3, 2]
INTEGERS = [
    ("add", [-5, 5, 8, 4]),
    ("sub", [-9, 9, 2, 0]),
    ("mul", [-14, -14, 15, 4]),
    ("div", [-3, -3, 1, 1]),
    ("mod", [1, -1, 2, 0]),
    ("power", [49, 0, 125, 4]),
    ("hypot", [7, 7, 5, 2]),
    ("maximum", [2, 7, 5, 2]),
    ("minimum", [-7, -2, 3, 2]),
]
ELEMENTWISE = {"add": "elemwise_add", "sub": "elemwise_sub", "mul": "elemwise_mul", "div": "elemwise_div"}


def elementwise(name):
    return getattr(mx.nd, ELEMENTWISE[name]) if name in ELEMENTWISE else getattr(mx.nd._internal, "_" + name)


@pytest.mark.parametrize("broadcast", [True, False])
@pytest.mark.parametrize("name, values, lhs_gradient, rhs_gradient", CASES, ids=[c[0] for c in CASES])
def test_value_and_gradients(name, values, lhs_gradient, rhs_gradient, broadcast):
    x, y = mx.nd.array(LHS), mx.nd.array(RHS)
    x.attach_grad()
    y.attach_grad()
    with mx.autograd.record():
        z = (getattr(mx.nd, "broadcast_" + name) if broadcast else elementwise(name))(x, y)
    z.backward()
    np.testing.assert_allclose(z.asnumpy(), values, rtol=1e-5)
    np.testing.assert_allclose(x.grad.asnumpy(), lhs_gradient, rtol=1e-5)
    np.testing.assert_allclose(y.grad.asnumpy(), rhs_gradient, rtol=1e-5)


@pytest.mark.parametrize("name, values", INTEGERS, ids=[c[0] for c in INTEGERS])
def test_integers(name, values):
    x, y = mx.nd.array([-7, 7, 5, 2], dtype="int32"), mx.nd.array([2, -2, 3, 2], dtype="int32")
    z = getattr(mx.nd, "broadcast_" + name)(x, y)
    assert z.dtype == np.int32 and z.asnumpy().tolist() == values


def test_modulo_by_zero_is_zero():
    for dtype in ("float32", "int32"):
        x, y = mx.nd.array([5, 0, 7], dtype=dtype), mx.nd.array([0, 0, 4], dtype=dtype)
        assert mx.nd.broadcast_mod(x, y).asnumpy().tolist() == [0, 0, 3]


def test_bytes_wrap_around():
    x, y = mx.nd.array([0, 7], dtype="uint8"), mx.nd.array([3, 7], dtype="uint8")
    assert mx.nd.elemwise_sub(x, y).asnumpy().tolist() == [253, 0]
    assert mx.nd.broadcast_power(y, y).asnumpy().tolist() == [27, 247]


@pytest.mark.parametrize("name", ["maximum", "minimum", "add", "mul"])
def test_gradient_of_a_broadcast_input_is_summed(name):
    x, y = mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([[1, 4]])
    x.attach_grad()
    y.attach_grad()
    with mx.autograd.record():
        z = getattr(mx.nd, "broadcast_" + name)(x, y)
    z.backward()
    expected = {"maximum": ([[1, 0], [1, 1]], [[0, 1]]), "minimum": ([[1, 1], [0, 1]], [[1, 0]]), "add": ([[1, 1], [1, 1]], [[2, 2]]),
                "mul": ([[1, 4], [1, 4]], [[4, 6]])}[name]
    assert x.grad.asnumpy().tolist() == expected[0]
    assert y.grad.asnumpy().tolist() == expected[1]


class TestRefusals:
    @pytest.mark.parametrize("make", [mx.nd.broadcast_add, mx.nd.elemwise_mul, mx.nd.add_n, mx.nd.broadcast_maximum, mx.nd.broadcast_equal])
    def test_mixed_types(self, make):
        with pytest.raises(MXNetError, match="one data type, received float32 and int32; convert one with astype"):
            make(mx.nd.ones((2,)), mx.nd.ones((2,), dtype="int32"))

    @pytest.mark.parametrize("make", [mx.nd.elemwise_add, mx.nd._internal._maximum, mx.nd.add_n])
    def test_mixed_shapes(self, make):
        with pytest.raises(MXNetError, match=r"one shape, received \(1, 3\) and \(3,\)"):
            make(mx.nd.ones((1, 3)), mx.nd.ones((3,)))

    def test_shapes_that_do_not_broadcast(self):
        with pytest.raises(MXNetError, match="broadcast_add"):
            mx.nd.broadcast_add(mx.nd.ones((3,)), mx.nd.ones((2,)))
        with pytest.raises(MXNetError, match=r"shapes \(3,\) and \(2,\) can't be broadcast"):
            mx.sym.broadcast_add(mx.sym.Variable("x"), mx.sym.Variable("y")).infer_shape(x=(3,), y=(2,))

    def test_empty_sum(self):
        with pytest.raises(MXNetError, match="add_n: at least one array is needed"):
            mx.nd.add_n()


class TestShapes:
    def test_elementwise_goes_both_ways(self):
        s = mx.sym.Variable("x") + mx.sym.Variable("y")
        assert s.infer_shape(y=(2, 3)) == ([(2, 3), (2, 3)], [(2, 3)], [])

    def test_broadcast_goes_forwards(self):
        s = mx.sym.broadcast_add(mx.sym.Variable("x"), mx.sym.Variable("y"))
        assert s.infer_shape(x=(2, 1, 3), y=(4, 1)) == ([(2, 1, 3), (4, 1)], [(2, 4, 3)], [])

    def test_sum_of_many_goes_both_ways(self):
        s = mx.sym.add_n(*[mx.sym.Variable(n) for n in "abc"])
        assert s.infer_shape(b=(5,))[0] == [(5,)] * 3

    def test_names_in_json(self):
        x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
        assert '"op": "elemwise_add"' in (x + y).tojson()
        assert '"op": "broadcast_sub"' in mx.sym.broadcast_minus(x, y).tojson()
        assert '"op": "add_n"' in mx.sym.ElementWiseSum(x, y).tojson()
        assert '"op": "_maximum"' in mx.sym.maximum(x, y).tojson()


class TestAddN:
    def test_values_and_gradient(self):
        x = mx.nd.array([1, 2])
        x.attach_grad()
        with mx.autograd.record():
            y = mx.nd.add_n(x, x * 2, x * x)
        y.backward()
        assert y.asnumpy().tolist() == [4, 10]
        assert x.grad.asnumpy().tolist() == [5, 7]

    def test_one_is_copied(self):
        x = mx.nd.ones((2,))
        mx.nd.add_n(x)[:] = 3
        assert x.asnumpy().tolist() == [1, 1]


def test_grad_add():
    assert mx.nd._internal._grad_add(mx.nd.ones((2,)), mx.nd.ones((2,))).asnumpy().tolist() == [2, 2]


def test_scatter_division_of_dense_arrays():
    assert mx.nd._internal._scatter_elemwise_div(mx.nd.array([1, 3]), mx.nd.array([2, 2])).asnumpy().tolist() == [0.5, 1.5]


class TestWhere:
    def test_values_and_gradients(self):
        c, x, y = mx.nd.array([1, 0]), mx.nd.array([1, 2]), mx.nd.array([3, 4])
        for a in (x, y):
            a.attach_grad()
        with mx.autograd.record():
            z = mx.nd.where(c, x, y)
        z.backward(mx.nd.array([5, 6]))
        assert z.asnumpy().tolist() == [1, 4]
        assert x.grad.asnumpy().tolist() == [5, 0] and y.grad.asnumpy().tolist() == [0, 6]

    def test_a_vector_chooses_rows(self):
        x, y = mx.nd.ones((2, 2)), mx.nd.zeros((2, 2))
        assert mx.nd.where(mx.nd.array([0, -2], dtype="int32"), x, y).asnumpy().tolist() == [[0, 0], [1, 1]]

    def test_condition_that_does_not_fit(self):
        with pytest.raises(MXNetError, match=r"`condition` must have the shape of `x`, \(2, 2\), or be a vector as long as its first axis; "
                                             r"received shape \(3,\)"):
            mx.nd.where(mx.nd.ones((3,)), mx.nd.ones((2, 2)), mx.nd.ones((2, 2)))

    def test_shapes(self):
        s = mx.sym.where(mx.sym.Variable("c"), mx.sym.Variable("x"), mx.sym.Variable("y"))
        assert s.infer_shape(c=(2,), y=(2, 3))[0] == [(2,), (2, 3), (2, 3)]


def test_allclose():
    x = mx.nd.array([1, float("nan")])
    same = mx.nd.contrib.allclose(x, x)
    assert same.dtype == np.uint8 and int(same.asnumpy()) == 1
    assert int(mx.nd.contrib.allclose(x, x, equal_nan=False).asnumpy()) == 0
    assert int(mx.nd.contrib.allclose(mx.nd.array([1]), mx.nd.array([1.1]), rtol=0.2).asnumpy()) == 1


@pytest.mark.parametrize("name", ["_grad_add", "_scatter_elemwise_div", "_contrib_allclose"])
def test_shapes_that_would_broadcast_are_refused(name):
    call = mx.nd.contrib.allclose if name == "_contrib_allclose" else getattr(mx.nd._internal, name)
    with pytest.raises(MXNetError, match=f"{name}: both inputs must have one shape, received \\(2, 3\\) and \\(3,\\)"):
        call(mx.nd.ones((2, 3)), mx.nd.ones((3,)))


def test_the_gradient_of_a_rest_is_that_of_mxnet_also_by_zero():
    a, b = mx.nd.array([5, 7, 9]), mx.nd.array([2, 0, 4])
    a.attach_grad()
    b.attach_grad()
    with mx.autograd.record():
        y = mx.nd.broadcast_mod(a, b)
    y.backward(mx.nd.array([1, 2, 3]))
    assert a.grad.asnumpy().tolist() == [1, 2, 3] and b.grad.asnumpy().tolist() == [-2, float("-inf"), -6]


@pytest.mark.parametrize("dtype, smallest", [("int32", -2 ** 31), ("int64", -2 ** 63)])
def test_the_smallest_integer_divided_by_minus_one_wraps_around(dtype, smallest):
    """The processor's own division ends the process; MXNet's did."""
    x, y = mx.nd.array(np.array([smallest, 7, smallest], dtype), dtype=dtype), mx.nd.array([-1, -1, 2], dtype=dtype)
    expected = [smallest, -7, smallest // 2]
    assert (x / y).asnumpy().tolist() == mx.nd.elemwise_div(x, y).asnumpy().tolist() == mx.nd.broadcast_div(x, y).asnumpy().tolist() == expected
    assert (x / -1).asnumpy().tolist() == [smallest, -7, smallest]
    assert (smallest / mx.nd.array([-1, 2], dtype=dtype)).asnumpy().tolist() == [smallest, smallest // 2]
    assert (x % y).asnumpy().tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype, beyond, last", [("int32", -2 ** 31, -2 ** 31), ("int64", -2 ** 63, 2 ** 31)])
def test_powers_that_integers_cannot_hold_are_their_smallest_number(dtype, beyond, last):
    x, y = mx.nd.array([0, 2, 0, -1, 5, -2], dtype=dtype), mx.nd.array([-1, -1, 0, -1, 30, 31], dtype=dtype)
    assert (x ** y).asnumpy().tolist() == [beyond, 0, 1, -1, beyond, -2 ** 31]
    assert (x ** -1).asnumpy().tolist() == [beyond, 0, beyond, -1, 0, 0]
    assert (2 ** y).asnumpy().tolist() == [0, 0, 1, 0, 2 ** 30, last]


def test_powers_of_small_integers_wrap_around():
    x, y = mx.nd.array([0, 2, -1, 5, -2], dtype="int8"), mx.nd.array([-1, 3, -1, 30, 7], dtype="int8")
    assert (x ** y).asnumpy().tolist() == [0, 8, -1, 0, -128]
