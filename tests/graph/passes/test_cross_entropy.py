import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon.loss import SoftmaxCrossEntropyLoss

SCORES = mx.nd.array(np.sin(np.arange(24)).reshape(2, 3, 4))
LABELS = mx.nd.array([[0, 3, 1], [9, 2, -1]])  # two of them outside


def differentiated(block, *arrays):
    """Return the result of a block, and the gradient of the first array."""
    arrays[0].attach_grad()
    with mx.autograd.record():
        out = block(*arrays)
    out.backward()
    return out.asnumpy(), arrays[0].grad.asnumpy()


@pytest.mark.parametrize("options", [{}, {"weight": 0.5}, {"batch_axis": 1}])
def test_losses(options):
    loss = SoftmaxCrossEntropyLoss(**options)
    expected = differentiated(loss, SCORES, LABELS)
    loss.hybridize()
    for a, b in zip(differentiated(loss, SCORES, LABELS), expected):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    assert "1 x cross entropy" in loss.explain()


class Picks(mx.gluon.HybridBlock):
    def __init__(self, make):
        super().__init__()
        self.make = make

    def hybrid_forward(self, F, x, index):
        return self.make(F, x, index)


@pytest.mark.parametrize("make", [
    lambda F, x, i: F.pick(F.log_softmax(x, axis=1), i.slice_axis(axis=1, begin=0, end=2).reshape((2, 2)).tile((1, 2)), axis=1),
    lambda F, x, i: F.pick(F.log_softmax(x, temperature=2.0), i), lambda F, x, i: F.pick(F.log_softmax(x), i, mode="wrap"),
    lambda F, x, i: F.broadcast_add(F.pick(F.log_softmax(x), i, keepdims=True), F.log_softmax(x).sum(axis=-1, keepdims=True))])
def test_what_is_no_cross_entropy_stays(make):
    net = Picks(make)
    expected = differentiated(net, SCORES, LABELS)
    net.hybridize()
    found = differentiated(net, SCORES, LABELS)
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_labels_of_a_wrong_shape_get_the_usual_error():
    loss = SoftmaxCrossEntropyLoss()
    loss.hybridize()
    with pytest.raises(mx.MXNetError, match="pick"), mx.autograd.record():
        loss(SCORES, mx.nd.zeros((5,)))


def test_half_precision():
    loss = SoftmaxCrossEntropyLoss()
    loss.hybridize()
    found = differentiated(loss, SCORES.astype("float16"), LABELS)
    assert found[0].dtype == np.float16
    np.testing.assert_allclose(found[0], differentiated(SoftmaxCrossEntropyLoss(), SCORES, LABELS)[0], rtol=2e-3)


@pytest.mark.parametrize("shape", [(6, 4), (2, 3, 4)])
@pytest.mark.parametrize("reduce", [
    lambda F, x: x, lambda F, x: 0.5 * F.mean(-2 * x), lambda F, x: F.mean(x * 3, axis=0), lambda F, x: F.mean(x, axis=0, exclude=True),
    lambda F, x: F.mean(x, axis=-1, keepdims=True), lambda F, x: F.mean(x, axis=(), keepdims=True)])
@pytest.mark.parametrize("keepdims", [True, False])
def test_factors_and_means(shape, reduce, keepdims):
    x, index = SCORES.reshape(shape), LABELS.reshape(shape[:-1])
    net = Picks(lambda F, x, i: reduce(F, F.pick(F.log_softmax(x), i, keepdims=keepdims)))
    expected = differentiated(net, x, index)
    net.hybridize()
    for a, b in zip(differentiated(net, x, index), expected):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    x = x.copy()
    assert "1 x cross entropy" in net.explain()
    with mx.autograd.record():
        x.attach_grad()
        once = net(x, index)
        slope, = mx.autograd.grad(once, [x], create_graph=True)
    slope.backward()  # by operators of torch
    assert np.isfinite(x.grad.asnumpy()).all()


def test_a_product_that_something_else_reads_is_no_part():
    def make(F, x, i):
        scaled = F.pick(F.log_softmax(x), i) * -2
        return F.broadcast_add(F.mean(scaled, axis=0), F.sin(scaled).sum())
    net = Picks(make)
    expected = differentiated(net, SCORES, LABELS)
    net.hybridize()
    for a, b in zip(differentiated(net, SCORES, LABELS), expected):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


class Both(mx.gluon.HybridBlock):
    """The scores, which are the data seen in another shape, and the loss of their double."""

    def hybrid_forward(self, F, x, index):
        scores = 2 * x
        return scores, F.pick(F.log_softmax(scores.reshape((-1, 4))), index.reshape((-1,)))


@pytest.mark.parametrize("block, of_output", [
    (SoftmaxCrossEntropyLoss, False), (Both, True),
    (lambda: Picks(lambda F, x, i: F.pick(F.log_softmax(x.reshape((-1, 4))), i.reshape((-1,)))), False)])
def test_scores_may_be_written_to_before_their_gradient(block, of_output):
    net = block()
    net.hybridize()
    x, index = SCORES[0].copy(), LABELS[0]
    x.attach_grad()
    gradients = []
    for writes in (False, True):
        with mx.autograd.record():
            out = net(x, index)
        if writes:
            (out[0] if of_output else x)[:] = 7
        (out[1] if of_output else out).backward()
        gradients.append(x.grad.asnumpy())
    np.testing.assert_array_equal(*gradients)
    assert gradients[0].any() and "1 x cross entropy" in net.explain()
