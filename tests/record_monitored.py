"""Asks MXNet 1.9.1 what a monitor of everything is told of a few networks: ``/opt/oracle/bin/python tests/record_monitored.py``.

It writes ``tests/data/monitored.json``: by network a list of (name, shape, mean), the forward pass first, an empty entry, the backward pass.
"""
import ctypes
import json
import pathlib
import sys

import numpy as np

import mxnet as mx
from mxnet.base import NDArrayHandle

DATA = pathlib.Path(__file__).parent / "data" / "monitored.json"
# What only MXNet's kernels have: masks and workspaces, zeros in the place of their gradients, and gradients that are never computed.
INTERNAL = ("e_backward_output0", "drop_mask", "pool_workspace", "zeros_without_dtype_output", "drop_backward_input1", "pool_backward_input1",
            "pool_backward_input4")


def convolutions():
    net = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=2, name="conv")
    net = mx.sym.Activation(mx.sym.BatchNorm(net, name="bn", fix_gamma=False), act_type="relu", name="act")
    net = mx.sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool")
    net = mx.sym.FullyConnected(mx.sym.Flatten(net, name="flat"), num_hidden=3, name="fc")
    return mx.sym.SoftmaxOutput(mx.sym.Dropout(net, p=0.0, name="drop"), name="softmax"), {"data": (2, 1, 8, 8)}


def branches():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    h = mx.sym.elemwise_add(mx.sym.tanh(mx.sym.elemwise_mul(a, b, name="product"), name="t"), a, name="plus")
    h = mx.sym.elemwise_mul(mx.sym.sigmoid(h, name="s"), h, name="square")
    h = mx.sym.broadcast_add(mx.sym.concat(h, a, dim=1, name="cc"), mx.sym.var("c"), name="ba")
    return mx.sym.LinearRegressionOutput(h, name="lro"), {"a": (2, 3), "b": (2, 3), "c": (1, 6)}


def heads():
    """Two outputs that are no losses, one of which the other is made of."""
    data = mx.sym.var("data")
    h = mx.sym.relu(mx.sym.dot(data, mx.sym.var("w", shape=(3, 4)), name="d"), name="r")
    return mx.sym.Group([h, mx.sym.mean(mx.sym.square(h, name="q"), axis=1, name="m")]), {"data": (2, 3)}


def words():
    net = mx.sym.Embedding(mx.sym.var("data"), input_dim=5, output_dim=4, name="e")
    net = mx.sym.LayerNorm(mx.sym.reshape(net, shape=(-1, 4), name="rs"), name="ln")
    net = mx.sym.log_softmax(mx.sym.FullyConnected(net, num_hidden=3, no_bias=True, name="fc"), name="ls")
    return mx.sym.make_loss(mx.sym.sum(mx.sym.negative(net, name="n"), name="total"), name="loss"), {"data": (2, 3)}


def recurrent():
    cell = mx.rnn.RNNCell(3, prefix="rnn_")
    outputs, _ = cell.unroll(2, [mx.sym.var("x0"), mx.sym.var("x1")], begin_state=[mx.sym.var("state")])
    return mx.sym.LinearRegressionOutput(mx.sym.stack(*outputs, axis=1, name="st"), name="out"), {"x0": (2, 3), "x1": (2, 3), "state": (2, 3)}


NETWORKS = (convolutions, branches, heads, words, recurrent)


def monitored(network, everything):
    """What a monitor is told of one pass through a network: (name, shape, mean), with an empty entry before backward."""
    net, shapes = network()
    requests = {n: "null" if network is words and n == "data" else "write" for n in net.list_arguments()}
    executor = net.simple_bind(mx.cpu(), grad_req=requests, **shapes)
    random = np.random.RandomState(0)
    for name, array in executor.arg_dict.items():
        array[:] = random.randint(0, 5, array.shape) if network is words and name == "data" else random.uniform(-1, 1, array.shape)
    told = []

    def callback(name, array):
        array = mx.nd.NDArray(ctypes.cast(array, NDArrayHandle), writable=False)
        values = array.asnumpy()
        told.append([name.decode(), list(values.shape), round(float(values.astype("float64").mean()), 5) + 0.0])

    executor.set_monitor_callback(callback, everything)
    executor.forward(is_train=True)
    told.append([])
    executor.backward([mx.nd.ones(o.shape) for o in executor.outputs] if network is heads else None)
    return [entry for entry in told if not entry or entry[0] not in INTERNAL]


if __name__ == "__main__":
    found = {f"{network.__name__} {everything}": monitored(network, everything) for network in NETWORKS for everything in (False, True)}
    DATA.write_text("{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(told)}" for name, told in found.items()) + "\n}\n")
    sys.stdout.write(f"{sum(map(len, found.values()))} entries\n")
