import torch

import mxnet as mx
from mxnet import nd
from mxnet.graph.passes import layout
from mxnet.ops import get
from residual import lowered, trained


def test_layout_leaves_operators_that_go_by_other_axes():
    x = mx.sym.Convolution(mx.sym.var("x"), kernel=(1, 1), num_filter=4, name="c")
    module = lowered(mx.sym.softmax(mx.sym.transpose(mx.sym.relu(x), axes=(0, 2, 3, 1))))
    assert layout.apply(module) == ["layout: 1 convolutions with channels last, 1 arrays reordered before and 1 after them"]
    calls = [n.target for n in module.graph.nodes if n.op == "call_function"]
    assert calls.index(layout.standard) == calls.index(get("transpose").fn) - 1


def test_layout_leaves_graphs_without_convolutions():
    module = lowered(mx.sym.relu(mx.sym.var("x")))
    assert layout.apply(module) == []


def test_weights_of_convolutions_lie_channels_last_and_nobody_sees_it():
    _, net = trained(True)
    weight = net[0].first.weight.data()
    assert weight._data.is_contiguous(memory_format=torch.channels_last) and not weight._data.is_contiguous()
    values = weight.asnumpy()
    flat = weight.reshape((-1,))
    flat[:] = 5
    assert (weight.asnumpy() == 5).all() and flat.asnumpy().tolist() == [5] * values.size
    with mx.autograd.record():
        loss = net(nd.ones((4, 3, 8, 8))).sum()
    loss.backward()
    flat[:] = 6  # they share memory, so it stays as it is
    assert (weight.asnumpy() == 6).all()
