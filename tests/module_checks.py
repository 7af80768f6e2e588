"""A network, its data and weights, that the tests of modules share."""
import numpy as np

import mxnet as mx

X = np.arange(24, dtype="float32").reshape(8, 3) % 7 / 7
Y = np.array([0, 1, 1, 0, 1, 0, 0, 1], "float32")
WEIGHT = np.array([[.1, -.2, .3], [-.3, .2, .1]], "float32")
BIAS = np.array([.5, -.5], "float32")
TWO = [mx.cpu(0), mx.cpu(1)]


def network():
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc"), name="softmax")


def iterator():
    return mx.io.NDArrayIter(X, Y, 4)


def start():
    return {"fc_weight": mx.nd.array(WEIGHT), "fc_bias": mx.nd.array(BIAS)}


def bound(context=mx.cpu(), **options):
    data = iterator()
    module = mx.mod.Module(network(), context=context, **options)
    module.bind(data.provide_data, data.provide_label)
    module.init_params(arg_params=start(), aux_params={})
    return module, data


def weights(module):
    return module.get_params()[0]["fc_weight"].asnumpy()
