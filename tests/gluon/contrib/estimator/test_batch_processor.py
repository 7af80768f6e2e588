import mxnet as mx
from mxnet.gluon.contrib.estimator import BatchProcessor


class Fake:
    context = [mx.cpu(0), mx.cpu(1)]

    def __init__(self):
        self.weights = {ctx: mx.nd.array([3.0], ctx=ctx) for ctx in self.context}
        for weight in self.weights.values():
            weight.attach_grad()

    def net(self, x):
        return x * self.weights[x.context]

    def val_net(self, x):
        return x + 1

    def loss(self, out, y):
        return out - y

    val_loss = loss


def batch():
    return mx.nd.array([[1.0, 2.0], [3.0, 4.0]]), mx.nd.array([[1.0, 1.0], [1.0, 1.0]])


def values(arrays):
    return [a.asnumpy().tolist() for a in arrays]


def test_fit_batch_leaves_gradients():
    fake = Fake()
    data, label, pred, loss = BatchProcessor().fit_batch(fake, batch())
    assert values(data) == [[[1, 2]], [[3, 4]]] and [d.context for d in data] == Fake.context
    assert values(pred) == [[[3, 6]], [[9, 12]]] and values(loss) == [[[2, 5]], [[8, 11]]]
    assert [w.grad.asscalar() for w in fake.weights.values()] == [3, 7]


def test_evaluate_batch_along_another_axis():
    data, label, pred, loss = BatchProcessor().evaluate_batch(Fake(), batch(), batch_axis=1)
    assert values(data) == [[[1], [3]], [[2], [4]]]
    assert values(pred) == [[[2], [4]], [[3], [5]]] and values(loss) == [[[1], [3]], [[2], [4]]] and values(label) == [[[1], [1]]] * 2
