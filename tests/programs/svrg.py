"""Stochastic variance-reduced gradients (https://papers.nips.cc/paper/4937) beside plain gradients, with Module."""
import logging

import numpy as np

import mxnet as mx
from mxnet.contrib.svrg_optimization.svrg_module import SVRGModule


def train(kind="svrg", epochs=20):
    """The mean squared error after each epoch of a linear regression, whose noise leaves 0.01."""
    logging.getLogger().setLevel(logging.ERROR)
    np.random.seed(9)
    mx.random.seed(9)
    weights = np.random.normal(size=(10, 1))
    x = np.random.normal(size=(400, 10)).astype("float32")
    y = (x @ weights + np.random.normal(0, 0.1, (400, 1))).astype("float32")
    batches = mx.io.NDArrayIter(x, y, batch_size=20, shuffle=True, label_name="lin_label")
    predicted = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, name="fc")
    symbol = mx.sym.LinearRegressionOutput(predicted, mx.sym.Variable("lin_label"), name="lin")
    arguments = dict(symbol=symbol, data_names=["data"], label_names=["lin_label"])
    module = SVRGModule(update_freq=2, **arguments) if kind == "svrg" else mx.mod.Module(**arguments)
    errors = []
    module.fit(batches, eval_metric="mse", num_epoch=epochs, optimizer="sgd", optimizer_params=(("learning_rate", 0.02),),
               initializer=mx.init.Zero(), batch_end_callback=lambda param: errors.append((param.epoch, param.eval_metric.get()[1])))
    return [[value for epoch, value in errors if epoch == n][-1] for n in range(epochs)]


if __name__ == "__main__":
    print(train()[-3:], train("sgd")[-3:])
