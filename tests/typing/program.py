"""A program as users write them: a type checker finds nothing in it, and it runs. See tests/test_typing.py."""
import numpy

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn


def arrays() -> float:
    x = mx.nd.array([[1, -2], [3, 4]], ctx=mx.cpu())
    y = mx.nd.relu(x) + 1
    y += 2 * x - x / 2
    y[0] = mx.nd.ones((2,), dtype="float32")
    first: nd.NDArray = y[0, :1]
    x.attach_grad()
    with autograd.record():
        loss = (mx.nd.dot(x, y.T) ** 2).sum(axis=1, keepdims=True).mean()
    loss.backward()
    values: numpy.ndarray = x.grad.asnumpy()
    stacked = mx.nd.concat(x, y.reshape((2, 2)), dim=0).transpose((1, 0)).astype("float64")
    parts = mx.nd.split(stacked, num_outputs=2, axis=1)
    inside: nd.NDArray = (parts[0] > 0) * first.sum().asscalar()
    return float(values.sum()) + inside.max().asscalar() + stacked.shape[0]


class Tail(gluon.HybridBlock):
    def __init__(self, units: int, **kwargs):
        super().__init__(**kwargs)
        self.dense = nn.Dense(units, flatten=False)
        self.scale = self.params.get("scale", shape=(1,), init=mx.init.One())

    def hybrid_forward(self, F, x, scale):
        return F.broadcast_mul(self.dense(F.relu(x)), scale)


def gluon_loop(data: nd.NDArray, label: nd.NDArray) -> float:
    net = nn.HybridSequential()
    net.add(nn.Dense(8, activation="relu"), nn.Dropout(0.1), nn.BatchNorm(), Tail(3))
    net.initialize(mx.init.Xavier(), ctx=mx.cpu())
    net.hybridize(static_alloc=True)
    criterion = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore="local")
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(data, label), batch_size=4, shuffle=True)
    for x, y in loader:
        with autograd.record():
            loss = criterion(net(x), y)
        loss.backward()
        trainer.step(batch_size=x.shape[0])
    return trainer.learning_rate


def symbols() -> list[tuple[int, ...]]:
    data = mx.sym.var("data", shape=(4, 6))
    hidden = mx.sym.Activation(mx.sym.FullyConnected(data, num_hidden=5, name="fc"), act_type="relu") * 2
    out = mx.sym.SoftmaxOutput(hidden.sum(axis=1, keepdims=True), name="softmax")
    shapes, _, _ = out.infer_shape(data=(4, 6))
    executor = out.simple_bind(mx.cpu(), data=(4, 6))
    executor.forward(is_train=True, data=mx.nd.ones((4, 6)))
    executor.backward()
    return shapes if executor.outputs[0].shape == (4, 1) and out.list_arguments() else []


def module(data: numpy.ndarray, label: numpy.ndarray) -> float:
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3), name="softmax")
    batches = mx.io.NDArrayIter(data, label, batch_size=4, shuffle=False, label_name="softmax_label")
    model = mx.mod.Module(net, context=[mx.cpu(0)], label_names=["softmax_label"])
    model.fit(batches, num_epoch=1, optimizer="sgd", optimizer_params={"learning_rate": 0.1}, eval_metric="acc")
    return dict(model.score(batches, mx.metric.Accuracy()))["accuracy"]


def numpy_arrays() -> float:
    x = mx.np.arange(6).reshape(2, 3)
    total = (mx.np.sqrt(x) @ mx.np.ones((3, 2))).sum(axis=0) + mx.np.random.uniform(size=(2,))
    return total.mean().item() + mx.npx.softmax(total, axis=-1).sum().item()


if __name__ == "__main__":
    mx.random.seed(1)
    features, classes = numpy.random.rand(8, 6).astype("float32"), numpy.arange(8) % 3
    print(arrays(), symbols(), module(features, classes), numpy_arrays())
    print(gluon_loop(mx.nd.array(features), mx.nd.array(classes)))
