"""What the tests of symbolic cells share."""
import numpy as np

import mxnet as mx


def evaluate(outputs, shape):
    net = mx.sym.Group(outputs)
    exe = net.simple_bind(mx.cpu(), data=shape, grad_req="null")
    for value in exe.arg_dict.values():
        value[:] = np.arange(value.size).reshape(value.shape) % 5 / 5 - .3
    return net, [o.asnumpy() for o in exe.forward()]


def unrolled(cell, layout="NTC"):
    outputs, states = cell.unroll(2, mx.sym.var("data"), layout=layout, merge_outputs=True)
    return evaluate([outputs, *states], (1, 2, 3) if layout == "NTC" else (2, 1, 3))
