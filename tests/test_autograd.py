import contextlib

import numpy as np
import pytest
import torch

import mxnet as mx
from interrupt_checks import at_each_point
from mxnet import autograd, nd


def variable(values, **kwargs):
    x = nd.array(values)
    x.attach_grad(**kwargs)
    return x


def test_gradients_of_a_chain():
    x = variable([1, 2, 3])
    with autograd.record():
        y = (x * x + 2 * x).sum()
    y.backward()
    assert x.grad.asnumpy().tolist() == [4, 6, 8]


def test_grad_req_add_and_null():
    x, y = variable([1.0], grad_req="add"), variable([1.0], grad_req="null")
    for _ in range(3):
        with autograd.record():
            z = x * 5 + y
        z.backward()
    assert x.grad.asscalar() == 15
    assert y.grad.asscalar() == 0
    with pytest.raises(KeyError, match="grad_req must be one of"):
        x.attach_grad(grad_req="sum")


def test_the_gradient_array_stays_the_same_object():
    x = variable([1.0, 2.0])
    held = x.grad
    with autograd.record():
        y = x * 3
    y.backward()
    assert held is x.grad and held.asnumpy().tolist() == [3, 3]


def test_a_gradient_that_is_a_view_is_written_in_place():
    buffer = nd.zeros((2, 2))
    x = nd.ones((2,))
    autograd.mark_variables([x], [buffer[1]])
    with autograd.record():
        y = x * 4
    y.backward()
    assert buffer.asnumpy().tolist() == [[0, 0], [4, 4]]


def test_no_two_gradients_share_memory():
    x, y = variable([1.0]), variable([1.0])
    with autograd.record():
        z = x + y
    z.backward()
    x.grad[:] = 9
    assert y.grad.asscalar() == 1


def test_head_gradients():
    x = variable(np.ones((3, 2)))
    with autograd.record():
        a, b, c = nd.split(x, axis=0, num_outputs=3, squeeze_axis=True)
    autograd.backward([a, b, c], [None, nd.array([1, 2]), nd.array([5, 4])])
    assert x.grad.asnumpy().tolist() == [[1, 1], [1, 2], [5, 4]]


def test_fresh_grad_is_set_by_backward():
    x = variable([1.0])
    assert x._fresh_grad is False
    with autograd.record():
        y = x * 2
    y.backward()
    assert x._fresh_grad is True
    x._fresh_grad = False
    assert x._fresh_grad is False


def test_writing_between_forward_and_backward_uses_the_new_values():
    x, w = variable([2.0]), nd.array([3.0])
    with autograd.record():
        y = x * w
    w[:] = 10
    y.backward()
    assert x.grad.asscalar() == 10


def test_inplace_on_recorded_arrays_is_refused():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * 2
        for change in (lambda: y.__iadd__(1), lambda: x.__setitem__(0, 5), lambda: nd.sqrt(y, out=y)):
            with pytest.raises(mx.MXNetError, match="Inplace operations .* not supported"):
                change()
    x[0] = 5
    assert x.asnumpy().tolist() == [5, 2]


def test_a_graph_is_freed_unless_retained():
    x = variable([1.0])
    with autograd.record():
        y = x + 1
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(mx.MXNetError, match="retain_graph=True"):
        y.backward()


def test_what_was_not_recorded_cannot_be_differentiated():
    x = variable([1.0])
    with pytest.raises(mx.MXNetError, match="not part of a recorded computation"):
        (x * 2).backward()


def test_scopes():
    assert not autograd.is_recording() and not autograd.is_training()
    with autograd.record():
        assert autograd.is_recording() and autograd.is_training()
        with autograd.pause():
            assert not autograd.is_recording() and not autograd.is_training()
        with autograd.predict_mode():
            assert autograd.is_recording() and not autograd.is_training()
    with autograd.train_mode():
        assert not autograd.is_recording() and autograd.is_training()
    assert autograd.set_recording(True) is False
    assert autograd.set_recording(False) is True


def test_detach_and_attach_cut_the_graph():
    x = variable([3.0])
    with autograd.record():
        y = (x * 2).detach()
        z = x * y
    z.backward()
    assert x.grad.asscalar() == 6
    with autograd.record():
        y = x * 2
        y.attach_grad()
        z = y * y
    z.backward()
    assert y.grad.asscalar() == 12
    assert x.grad.asscalar() == 6


def test_grad_and_higher_orders():
    x = variable([2.0])
    with autograd.record():
        y = x * x * x
        first, = autograd.grad(y, [x], create_graph=True)
        second, = autograd.grad(first, x, create_graph=True)
    second.backward()
    assert (first.asscalar(), second.asscalar(), x.grad.asscalar()) == (12, 12, 6)
    with pytest.raises(mx.MXNetError, match="variable 0 is not part of"):
        with autograd.record():
            y = x * 2
        autograd.grad(y, [nd.ones((1,))])


def test_indexing_copies_and_contexts_are_differentiable():
    x = variable([1.0, 2.0, 3.0])
    with autograd.record():
        y = x[1:] * 2
        z = (y.copyto(mx.cpu(1)).as_in_context(mx.cpu(0)) + x[nd.array([0, 0])]).sum()
    z.backward()
    assert x.grad.asnumpy().tolist() == [2, 2, 2]


class Scale(autograd.Function):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x, y):
        self.save_for_backward(y)
        return x * y, x + y

    def backward(self, dp, ds):
        y, = self.saved_tensors
        return dp * y * self.factor + ds, ds


def test_custom_functions():
    x, y = variable([2.0]), variable([3.0])
    with autograd.record():
        product, total = Scale(10)(x, y)
        z = product + total
    z.backward()
    assert (product.asscalar(), total.asscalar()) == (6, 5)
    assert (x.grad.asscalar(), y.grad.asscalar()) == (31, 1)
    f = Scale(1)
    f(x, y)
    with pytest.raises(mx.MXNetError, match="can be called once"):
        f(x, y)


def test_get_symbol():
    x, z = variable([1.0]), variable([1.0])
    with autograd.record():
        y = x * x + 2 * z - 1
    symbol = autograd.get_symbol(y)
    assert symbol.list_arguments() == ["var0", "var1"]
    assert symbol.eval(var0=nd.array([3]), var1=nd.array([5]))[0].asscalar() == 18
    with pytest.raises(mx.MXNetError, match="not computed inside"):
        autograd.get_symbol(nd.ones((1,)))


def test_get_symbol_of_a_variable_and_of_a_copy():
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    assert autograd.get_symbol(x).list_outputs() == ["var0"]
    with autograd.record():
        y = (x * 2).copy()
        for _ in range(2000):  # deeper than Python's recursion limit
            y = y + 1
    symbol = autograd.get_symbol(y)
    assert symbol.bind(mx.cpu(), {"var0": x}).forward()[0].asnumpy().tolist() == [2002, 2004]
    with pytest.raises(TypeError, match="an NDArray expected, received ndarray"):
        autograd.get_symbol(x.asnumpy())


@pytest.mark.parametrize("shape", [(3, 2), (6,), (1, 6), (2, 1, 3)])
def test_a_head_gradient_of_equal_size_is_read_in_order(shape):
    x = nd.arange(1, 7).reshape((2, 3))
    x.attach_grad()
    head = nd.arange(1, 7).reshape(shape)
    with autograd.record():
        y = x * x
    y.backward(head)
    assert x.grad.asnumpy().tolist() == [[2, 8, 18], [32, 50, 72]]
    with autograd.record():
        y = x * x
    assert autograd.grad(y, [x], head)[0].asnumpy().tolist() == [[2, 8, 18], [32, 50, 72]]
    with autograd.record():
        y = x * x
    with pytest.raises(mx.MXNetError, match=r"a head gradient of shape \(7,\) for a head of shape \(2, 3\)"):
        y.backward(nd.ones(7))


def test_what_no_gradient_reaches_gets_zero():
    x, y = variable([1.0, 2.0]), variable([1.0], grad_req="add")
    x.grad[:] = 7
    y.grad[:] = 7
    with autograd.record():
        z = nd.stop_gradient(x) * 2 + (y > 0)
    z.backward()
    assert x.grad.asnumpy().tolist() == [0, 0] and x._fresh_grad
    assert y.grad.asscalar() == 7


def test_gradients_flow_into_torch():
    t = torch.ones(2, requires_grad=True)
    with autograd.record():
        x = nd.from_torch(t * 3)
        y = (x * x).sum()
    y.backward()
    assert t.grad.tolist() == [18, 18]
    assert not (nd.from_torch(t) * 2).as_torch().requires_grad


def test_a_head_gradient_may_have_more_rows_than_its_head():
    x = mx.nd.ones((3, 2))
    x.attach_grad()
    with mx.autograd.record():
        y = x * 2
    y.backward(mx.nd.arange(8).reshape((4, 2)))
    assert x.grad.asnumpy().tolist() == [[0, 2], [4, 6], [8, 10]]


def test_ctrl_c_does_not_leave_a_scope_recording():
    x = mx.nd.ones((3,))
    x.attach_grad()

    def work():
        with autograd.record(), autograd.pause(train_mode=True):
            x + x
        with autograd.predict_mode():
            x + x

    def check():
        assert not autograd.is_recording() and not autograd.is_training() and torch.is_grad_enabled()

    assert at_each_point(work, check) > 30


def test_a_scope_that_is_entered_twice_is_left_twice():
    scope = autograd.record()
    with autograd.pause(), scope:
        with scope:
            assert autograd.is_recording()
        assert autograd.is_recording()
        with pytest.raises(ValueError), autograd.predict_mode():
            assert not autograd.is_training()
            raise ValueError
        assert autograd.is_training()
    assert not autograd.is_recording()


def test_scopes_in_a_stack():
    with contextlib.ExitStack() as stack:
        stack.enter_context(autograd.record())
        stack.enter_context(autograd.predict_mode())
        assert autograd.is_recording() and not autograd.is_training()
    assert not autograd.is_recording()
