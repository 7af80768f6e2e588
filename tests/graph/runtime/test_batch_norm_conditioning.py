import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon import nn
from mxnet.gluon.model_zoo import vision
from mxnet.graph.runtime import batch_norm_conditioning


def trained(net, x):
    """The outputs and the gradients of a step, as one list."""
    with mx.autograd.record():
        out = net(x)
        loss = (out ** 2).sum()
    loss.backward()
    return [out.asnumpy(), *[p.grad().asnumpy() for p in net.collect_params().values() if p.grad_req != "null"]]


@pytest.mark.parametrize("name", ["resnet18_v1", "resnet18_v2", "mobilenet0.25"])
@pytest.mark.parametrize("batch", [2, 4])
def test_networks_on_tiny_images_train_alike_with_and_without_a_graph(name, batch):
    mx.random.seed(0)
    eager, hybrid = vision.get_model(name, classes=10, prefix="net_"), vision.get_model(name, classes=10, prefix="net_")
    eager.initialize(mx.init.Xavier())
    x = mx.nd.array(np.random.RandomState(1).randn(batch, 3, 32, 32))
    eager(x)
    hybrid.initialize()
    for p, q in zip(eager.collect_params().values(), hybrid.collect_params().values()):
        q.set_data(p.data())
    hybrid.hybridize()
    for a, b in zip(trained(eager, x), trained(hybrid, x)):
        np.testing.assert_array_equal(a, b)


def chain(count):
    net = nn.HybridSequential()
    for _ in range(count):
        net.add(nn.Conv2D(32, 1, in_channels=32), nn.BatchNorm(in_channels=32), nn.Activation("relu"))
    net.initialize()
    net.hybridize()
    return net


@pytest.mark.parametrize("count, shape, exact", [
    (2, (2, 32, 1, 1), True), (2, (7, 32, 1, 1), True), (2, (1, 32, 1, 3), True),
    (2, (8, 32, 1, 1), False), (2, (1, 32, 1, 1), False), (1, (2, 32, 1, 1), False)])
def test_chains_of_batch_norms_over_few_values_run_as_without_a_graph(count, shape, exact):
    net = chain(count)
    with mx.autograd.record():
        net(mx.nd.ones(shape))
    assert ("exact: as eager execution, for batch norms of few values" in net.explain()) is exact


def test_shapes_are_told_apart():
    net = chain(2)
    for shape in ((2, 32, 1, 1), (2, 32, 8, 8)):
        with mx.autograd.record():
            net(mx.nd.ones(shape))
    runner = net._cached_op.handle
    assert sorted(runner._ill_conditioned.values()) == [False, True] and len(runner._on_native) == 2


def test_moving_statistics_are_no_concern():
    data = mx.sym.Variable("data")
    for _ in range(2):
        data = mx.sym.BatchNorm(data, use_global_stats=True)
    assert batch_norm_conditioning.batch_norms(data._nodes()) == set()


@pytest.mark.parametrize("shape, ill", [((2, 32, 1, 1), True), ((8, 32, 1, 1), False)])
def test_a_graph_that_stands_as_one_node_is_looked_into(shape, ill):
    inner = chain(2)(mx.sym.Variable("data"))
    names = inner.list_inputs()
    outer = mx.sym._internal._CachedOp(*[mx.sym.Variable(f"in_{n}") for n in names], subgraph=inner.tojson())
    arguments, _, states = inner.infer_shape(data=shape)
    known = dict(zip(inner.list_arguments(), arguments)) | dict(zip(inner.list_auxiliary_states(), states))
    nodes = outer._nodes()
    assert batch_norm_conditioning.is_ill_conditioned(nodes, batch_norm_conditioning.batch_norms(nodes), {f"in_{n}": known[n] for n in names}) is ill
