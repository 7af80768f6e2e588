import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import nd
from mxnet.graph import fusion
from mxnet.ops import kernels
from mxnet.ops.kernels import batch_norm as fused
from residual import lowered, trained


@pytest.mark.parametrize("kernel", [True, False])
def test_a_hybridized_block_trains_as_its_operators_do(kernel, monkeypatch):
    if kernel and kernels.load("batch_norm") is None:
        pytest.skip("no C++ compiler")
    monkeypatch.setattr(fused, "_WORTHWHILE", 0 if kernel else 1 << 40)
    expected, _ = trained(False)
    found, net = trained(True)
    report = net._cached_op._runner.reports[True, torch.device("cpu")]
    assert report == ["layout: 3 convolutions with channels last, 1 arrays reordered before and 1 after them",
                      "fusion: 1 x batch norm", "fusion: 1 x batch norm + relu", "fusion: 1 x batch norm + add + relu",
                      "kernels: 3 x convolution"]
    for f, e in zip(found, expected):
        np.testing.assert_allclose(f, e, rtol=2e-3, atol=1e-5 * np.abs(e).max() + 1e-6)


@pytest.mark.parametrize("use", ["twice", "output", "global", "axis"])
def test_fusion_keeps_what_is_used_otherwise(use):
    x = mx.sym.var("x")
    norm = mx.sym.BatchNorm(x, name="bn", use_global_stats=use == "global", axis=2 if use == "axis" else 1)
    out = {"twice": mx.sym.relu(norm) + norm, "output": mx.sym.Group([mx.sym.relu(norm), norm])}.get(use, mx.sym.relu(norm))
    module = lowered(out)
    report = fusion.fuse_batch_norms(module)
    assert report == ([] if use in ("global", "axis") else ["fusion: 1 x batch norm"])


def test_relu_overwrites_only_what_nothing_else_reads():
    x = mx.sym.var("x")
    shared = mx.sym.FullyConnected(x, num_hidden=2, name="a")
    out = mx.sym.Group([mx.sym.relu(mx.sym.FullyConnected(x, num_hidden=2, name="b")), mx.sym.relu(shared) + shared, mx.sym.relu(x),
                        mx.sym.relu(mx.sym.tanh(x))])
    module = lowered(out)
    assert fusion.rectify_in_place(module) == ["memory: 1 x relu in place"]


@pytest.mark.parametrize("bidirectional", [False, True])
def test_recurrent_layers_train_without_a_copy_of_their_parameters(bidirectional):
    found = []
    for hybrid in (False, True):
        mx.random.seed(3)
        net = mx.gluon.rnn.LSTM(4, 2, bidirectional=bidirectional, input_size=3)
        net.initialize(mx.init.Xavier())
        if hybrid:
            net.hybridize()
        x = nd.random.normal(shape=(5, 2, 3))
        x.attach_grad()
        with mx.autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        found.append([loss.asnumpy(), x.grad.asnumpy(), *[p.grad().asnumpy() for p in net.collect_params().values()]])
    assert net._cached_op._runner.reports[True, torch.device("cpu")] == ["memory: 1 x recurrent layers without a copy of their parameters"]
    for imperative, traced in zip(*found):
        np.testing.assert_allclose(traced, imperative, rtol=1e-5, atol=1e-7)
