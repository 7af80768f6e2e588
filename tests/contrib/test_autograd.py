import pytest

import mxnet as mx
from mxnet import nd
from mxnet.contrib import autograd


def test_sections_record_and_train_together():
    assert not mx.autograd.is_recording()
    with autograd.train_section():
        assert mx.autograd.is_recording() and mx.autograd.is_training()
        with autograd.test_section():
            assert not mx.autograd.is_recording() and not mx.autograd.is_training()
        assert mx.autograd.is_recording() and mx.autograd.is_training()
    assert not mx.autograd.is_recording() and not mx.autograd.is_training()
    assert autograd.set_is_training(True) is False
    assert autograd.set_is_training(False) is True


def test_backward():
    x, grad = nd.array([1, 2, 3]), nd.zeros((3,))
    autograd.mark_variables([x], [grad])
    with autograd.train_section():
        y = x * x
    autograd.backward([y], [nd.array([1, 10, 100])], retain_graph=True)
    assert grad.asnumpy().tolist() == [2, 40, 600]
    autograd.compute_gradient([y])
    assert grad.asnumpy().tolist() == [2, 4, 6]
    with pytest.raises(AssertionError, match="outputs must be a list"):
        autograd.backward(y)
    with pytest.raises(AssertionError, match="each of 1 outputs, received 2"):
        autograd.backward([y], [None, None])


def test_grad_and_loss():
    a, b = nd.array([2.]), nd.array([5.])
    grads, loss = autograd.grad_and_loss(lambda x, y: x * x * y)(a, b)
    assert [g.asscalar() for g in grads] == [20, 4] and loss.asscalar() == 20
    assert [g.asscalar() for g in autograd.grad(lambda x, y: x * x * y, argnum=[1])(a, b)] == [4]
    assert autograd.grad(lambda x, y: (x * y, x + y), argnum=0)(a, b)[0].asscalar() == 6
    with pytest.raises(AssertionError, match="should be NDArray, received int"):
        autograd.grad(lambda x: x)(3)
