"""Module with an operator and a metric of the program's own, checkpoints, and a second run that goes on where the first one ended."""
import logging
import os
import tempfile

import numpy as np

import mxnet as mx


class Softmax(mx.operator.CustomOp):
    """Softmax whose gradient is that of the cross-entropy."""

    def forward(self, is_train, req, in_data, out_data, aux):
        x = in_data[0].asnumpy()
        y = np.exp(x - x.max(axis=1, keepdims=True))
        self.assign(out_data[0], req[0], mx.nd.array(y / y.sum(axis=1, keepdims=True)))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        label, y = in_data[1].asnumpy().astype("int"), out_data[0].asnumpy()
        y[np.arange(label.shape[0]), label] -= 1
        self.assign(in_grad[0], req[0], mx.nd.array(y))


@mx.operator.register("program_softmax")
class SoftmaxProp(mx.operator.CustomOpProp):
    def __init__(self):
        super().__init__(need_top_grad=False)

    def list_arguments(self):
        return ["data", "label"]

    def list_outputs(self):
        return ["output"]

    def infer_shape(self, in_shape):
        return [in_shape[0], [in_shape[0][0]]], [in_shape[0]], []

    def create_operator(self, ctx, shapes, dtypes):
        return Softmax()


class Confusion(mx.metric.EvalMetric):
    """Share of rows off the diagonal of the confusion matrix."""

    def __init__(self, classes):
        self.matrix = np.zeros((classes, classes))
        super().__init__("confusion")

    def reset(self):
        self.matrix[:] = 0
        self.num_inst, self.sum_metric = 0, 0.0

    def update(self, labels, preds):
        for label, pred in zip(labels, preds):
            np.add.at(self.matrix, (label.asnumpy().astype(int), pred.asnumpy().argmax(axis=1)), 1)
        self.num_inst = self.matrix.sum()
        self.sum_metric = self.num_inst - np.trace(self.matrix)


def clusters(count, seed=0):
    """Points of three classes, 8 numbers each."""
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 3, count)
    return (np.eye(3, 8)[labels] * 2 + rng.normal(0, 0.5, (count, 8))).astype("float32"), labels.astype("float32")


def network():
    data, label = mx.sym.Variable("data"), mx.sym.Variable("softmax_label")
    hidden = mx.sym.Activation(mx.sym.FullyConnected(data, num_hidden=16, name="fc1"), act_type="tanh")
    return mx.sym.Custom(mx.sym.FullyConnected(hidden, num_hidden=3, name="fc2"), label, op_type="program_softmax", name="softmax")


def train(contexts=2):
    """The metric on the validation set after the first epoch, after the last, and of the loaded checkpoint."""
    logging.getLogger().setLevel(logging.WARNING)
    np.random.seed(2)
    mx.random.seed(2)
    train_iter = mx.io.NDArrayIter(*clusters(300), batch_size=20, shuffle=True)
    val_iter = mx.io.NDArrayIter(*clusters(100, seed=9), batch_size=20)
    context = [mx.cpu(i) for i in range(contexts)]
    values = []

    def evaluated(param):
        values.append(param.eval_metric.get()[1])

    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "clusters")
        common = dict(eval_data=val_iter, eval_metric=Confusion(3), validation_metric=Confusion(3), optimizer="sgd",
                      optimizer_params={"learning_rate": 0.1, "momentum": 0.9}, eval_end_callback=evaluated)
        first = mx.mod.Module(network(), context=context)
        first.fit(train_iter, num_epoch=2, epoch_end_callback=mx.callback.do_checkpoint(prefix), initializer=mx.init.Xavier(), **common)
        _, arg_params, aux_params = mx.model.load_checkpoint(prefix, 2)
        second = mx.mod.Module(network(), context=context)
        second.fit(train_iter, num_epoch=6, begin_epoch=2, arg_params=arg_params, aux_params=aux_params, **common)
        second.save_checkpoint(prefix, 6, save_optimizer_states=True)
        loaded = mx.mod.Module.load(prefix, 6)
        loaded.bind(val_iter.provide_data, val_iter.provide_label, for_training=False)
        return values[0], values[-1], dict(loaded.score(val_iter, Confusion(3)))["confusion"]


if __name__ == "__main__":
    print(train())
