"""Gradients of integer arrays, as MXNet 1.9.1 gives them."""
import mxnet as mx


def test_integer_arrays_have_gradients():
    x = mx.nd.array([1, 2, 3], dtype="int32")
    x.attach_grad()
    with mx.autograd.record():
        y = x * x + 2 * x
    y.backward()
    assert x.grad.dtype is mx.nd.array([1], dtype="int32").dtype
    assert x.grad.asnumpy().tolist() == [4, 6, 8]


def test_values_written_later_count():
    x = mx.nd.array([1, 2], dtype="int64")
    x.attach_grad()
    x[:] = 5
    with mx.autograd.record():
        y = (x * x).sum()
    y.backward()
    assert y.asscalar() == 50 and x.grad.asnumpy().tolist() == [10, 10]


def test_adding_to_a_gradient():
    x = mx.nd.array([1, 2], dtype="int8")
    x.attach_grad("add")
    for _ in range(2):
        with mx.autograd.record():
            y = mx.nd.concat(x, x, dim=0).reshape((2, 2)).T
        y.backward()
    assert x.grad.asnumpy().tolist() == [4, 4]


def test_into_floating_point():
    x = mx.nd.array([1, 2], dtype="int32")
    x.attach_grad()
    with mx.autograd.record():
        y = x.astype("float32") * 3
    y.backward()
    assert y.asnumpy().tolist() == [3.0, 6.0] and x.grad.asnumpy().tolist() == [3, 3]


def gradient(function, values, dtype="float32", grad_req="write"):
    x = mx.nd.array(values, dtype=dtype)
    x.attach_grad(grad_req)
    with mx.autograd.record():
        y = function(x)
    y.backward()
    return y.asnumpy().tolist(), x.grad.asnumpy().tolist()


def test_gradients_pass_where_fractions_are_truncated():
    assert gradient(lambda x: x.astype("int8") * 3, [1.5, 2.75]) == ([3, 6], [3.0, 3.0])
    assert gradient(lambda x: x.astype("int32") * x.astype("int32"), [1.5, 2.75]) == ([1, 4], [2.0, 4.0])
    assert gradient(lambda x: x.astype("bool"), [1.5, 0.0]) == ([True, False], [1.0, 1.0])


def test_powers():
    x, y = (mx.nd.array(values, dtype="int32") for values in ([3, 2, 5], [1, 3, 2]))
    for function in (mx.nd.broadcast_power, lambda x, y: x ** y):
        for array in (x, y):
            array.attach_grad()
        with mx.autograd.record():
            z = function(x, y)
        z.backward()
        assert (z.asnumpy().tolist(), x.grad.asnumpy().tolist(), y.grad.asnumpy().tolist()) == ([3, 8, 25], [1, 12, 10], [3, 5, 40])
    assert gradient(lambda x: x ** 2, [3, 2, 5], "int32") == ([9, 4, 25], [6, 4, 10])
    assert gradient(lambda x: 2 ** x, [3, 2, 5], "int32") == ([8, 4, 32], [5, 2, 22])


def test_what_was_truncated_stays_so():
    assert gradient(lambda x: x.astype("int32").astype("float32") * 2, [1.5, 2.75]) == ([2.0, 4.0], [2.0, 2.0])


def test_functions_of_integers():
    assert gradient(mx.nd.exp, [1, 5], "int32") == ([2, 148], [2, 148])
    assert gradient(lambda x: x ** 2, [1, 5], "int32") == ([1, 25], [2, 10])
    assert gradient(lambda x: 2 ** x, [1, 5], "int32") == ([2, 32], [1, 22])


def test_boolean_arrays_have_gradients():
    x = mx.np.array([True, False], dtype="bool")
    for req, expected in (("write", [True, True]), ("add", [True, True])):
        x.attach_grad(req)
        with mx.autograd.record():
            y = mx.np.expand_dims(x, 0)
        y.backward()
        assert y.dtype == "bool" and y.tolist() == [[True, False]]
        assert x.grad.dtype == "bool" and x.grad.tolist() == expected


def test_masks_that_have_gradients_still_select():
    x, mask = mx.np.array([1.0, 2.0, 3.0]), mx.np.array([True, False, True], dtype="bool")
    x.attach_grad()
    mask.attach_grad()
    with mx.autograd.record():
        y = x[mask] * 2
    y.backward()
    assert y.tolist() == [2.0, 6.0] and x.grad.tolist() == [2.0, 0.0, 2.0] and mask.grad.tolist() == [False] * 3


def test_nothing_is_recorded_outside_of_record():
    x = mx.np.array([1.5])
    x.attach_grad()
    assert type(mx.nd.Cast(x.as_nd_ndarray(), dtype="int32")._data).__name__ == "Tensor"
