import pytest
import torch

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.graph.instrumentation import instrumented
from mxnet.ndarray import dispatch


@pytest.fixture
def told(monkeypatch):
    found = []
    monkeypatch.setattr(dispatch, "graph_observer", lambda call, start, end, inputs, result, inside=(): found.append(call))
    return found


def convolutional():
    net = gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(gluon.nn.Conv2D(4, 3, in_channels=3), gluon.nn.BatchNorm(in_channels=4), gluon.nn.Activation("relu"))
    net.initialize()
    net.hybridize()
    return net


def test_fused_kernels_name_what_they_compute(told):
    net, x = convolutional(), nd.ones((1, 3, 8, 8))
    with autograd.record():
        net(x)
    joined = [c for c in told if "BatchNorm" in c.name]
    assert [(c.name, c.node, c.note) for c in joined] == [("BatchNorm+Activation", "net_batchnorm0_fwd+net_relu0_fwd", "by batch_norm")]


def test_the_same_kernels_run_with_an_observer_and_without(monkeypatch):
    from mxnet.graph.passes import fusion
    ran = []
    kernel = fusion.batch_norm

    def counted(*args, **kwargs):
        ran.append(dispatch.graph_observer is not None)
        return kernel(*args, **kwargs)

    monkeypatch.setattr(fusion, "batch_norm", counted)
    net, x = convolutional(), nd.random.uniform(shape=(1, 3, 8, 8))
    results = []
    for observer in (None, lambda *a, **k: None, None):
        monkeypatch.setattr(dispatch, "graph_observer", observer)
        with autograd.record():
            results.append(net(x).asnumpy())
    assert ran == [False, True, False] and (results[0] == results[1]).all() and (results[0] == results[2]).all()


def test_others_are_told_of_as_a_whole(told):
    assert instrumented(torch.exp, "inductor")(torch.zeros(1)).item() == 1
    assert [(c.name, c.graph) for c in told] == [("inductor", True)]


def test_loops_tell_of_what_runs_inside(told):
    body = mx.sym.contrib.foreach(lambda data, states: (data + 1, [states[0] + data]), mx.sym.var("d"), [mx.sym.var("s")])
    executor = mx.sym.Group([body[0], body[1][0]]).simple_bind(mx.cpu(), d=(3, 2), s=(2,))
    executor.forward()
    names = [c.name for c in told]
    assert names.count("_plus_scalar") == 3 and names[-1] == "_foreach"


def test_a_monitor_makes_it_run_node_by_node_and_the_profile_says_so(told):
    executor = mx.sym.relu(mx.sym.var("x"), name="r").simple_bind(mx.cpu(), x=(2,))
    executor.set_monitor_callback(lambda name, array: None)
    executor.forward()
    assert [(c.name, c.node, c.note) for c in told] == [("relu", "r", "node by node, for a monitor")]
