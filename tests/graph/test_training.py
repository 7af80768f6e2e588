"""Training through the passes for torch gives what the operators one by one give."""
import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import nd
from mxnet.gluon import nn
from mxnet.graph import fusion, layout
from mxnet.graph.program import copied
from mxnet.ops import get, kernels
from mxnet.ops.kernels import batch_norm as fused


class Block(nn.HybridBlock):
    """A residual block: two batch norms that meet in an addition, one with a rectifier, one alone."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.first, self.second, self.shortcut = (nn.Conv2D(8, k, padding=k // 2, use_bias=False) for k in (3, 3, 1))
            self.norms = nn.HybridSequential()
            self.norms.add(nn.BatchNorm(), nn.BatchNorm(), nn.BatchNorm(scale=False))

    def hybrid_forward(self, F, x):
        y = F.Activation(self.norms[0](self.first(x)), act_type="relu")
        y = self.norms[1](self.second(y))
        return F.Pooling(F.relu(y + self.norms[2](self.shortcut(x))), kernel=(2, 2), stride=(2, 2), pool_type="max")


def trained(hybrid, dtype="float32"):
    """Outputs, gradients and moving averages of two steps."""
    mx.random.seed(2)
    net = nn.HybridSequential()
    net.add(Block(), nn.Flatten(), nn.Dense(3))
    net.initialize(mx.init.Xavier())
    net.cast(dtype)
    x = nd.random.normal(shape=(4, 3, 8, 8)).astype(dtype)
    net(x)
    if hybrid:
        net.hybridize()
    x.attach_grad()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    for _ in range(2):
        with mx.autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        trainer.step(4)
    found = [net(x), x.grad, *[p.data() for p in net.collect_params().values()]]
    return [a.asnumpy().astype(np.float32) for a in found], net


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


def clear():
    kernels.load.cache_clear()
    kernels.function.cache_clear()


def numbers(*shape, seed):
    return torch.from_numpy(np.random.RandomState(seed).normal(size=shape).astype("float32"))


@pytest.mark.skipif(kernels.load("batch_norm") is None, reason="no C++ compiler")
@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("fix_gamma", [True, False])
@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-4), (torch.bfloat16, 5e-2)])
def test_the_kernel_computes_what_torch_does(relu, residual, fix_gamma, dtype, tolerance, monkeypatch):
    if residual and not relu:
        residual = False
    results = []
    for limit in (0, 1 << 40):
        monkeypatch.setattr(fused, "_WORTHWHILE", limit)
        # Sizes that no vector and no block of rows divides, and a mean far from zero.
        x, extra = ((numbers(3, 19, 7, 9, seed=s) + 10 * (s == 0)).to(dtype).contiguous(memory_format=torch.channels_last).requires_grad_()
                    for s in (0, 1))
        gamma, beta = (numbers(19, seed=s).requires_grad_() for s in (2, 3))
        mean, var = torch.zeros(19), torch.ones(19)
        out = fused.batch_norm(x, gamma, beta, mean, var, *((extra,) if residual else ()), relu=relu, training=True, eps=1e-3, momentum=0.8,
                               fix_gamma=fix_gamma)
        out.backward(numbers(3, 19, 7, 9, seed=4).to(dtype))
        results.append([out, x.grad, beta.grad, mean, var, *([] if fix_gamma else [gamma.grad]), *([extra.grad] if residual else [])])
    for k, t in zip(*results):
        assert k.dtype is t.dtype
        wrong = (k.float() - t.float()).abs() > tolerance * t.detach().float().abs().max()
        # In half precision a sum near zero falls on either side of the rectifier's kink.
        assert wrong.float().mean() <= (0.06 if dtype is torch.bfloat16 else 0)


def test_without_a_compiler_torch_computes(monkeypatch, tmp_path):
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    monkeypatch.setenv("CXX", "/nonexistent/compiler")
    clear()
    try:
        assert kernels.load("batch_norm") is None
        monkeypatch.setattr(fused, "_WORTHWHILE", 0)
        x = numbers(2, 3, 4, 4, seed=0).contiguous(memory_format=torch.channels_last)
        out = fused.batch_norm(x, torch.ones(3), torch.zeros(3), torch.zeros(3), torch.ones(3), training=True, relu=True)
        expected = torch.relu(get("BatchNorm").fn(x, torch.ones(3), torch.zeros(3), torch.zeros(3), torch.ones(3), training=True))
        torch.testing.assert_close(out, expected)
    finally:
        clear()


def test_a_kernel_is_compiled_once(monkeypatch, tmp_path):
    if kernels.load("batch_norm") is None:
        pytest.skip("no C++ compiler")
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    clear()
    try:
        kernels.load("batch_norm")
        made, = (tmp_path / "kernels").iterdir()
        before = made.stat().st_mtime_ns
        clear()
        kernels.load("batch_norm")
        assert [p.stat().st_mtime_ns for p in (tmp_path / "kernels").iterdir()] == [before]
    finally:
        clear()


def lowered(symbol):
    from mxnet.graph import lower
    return copied(lower(symbol._outputs, True, torch.device("cpu")))


def test_layout_leaves_operators_that_go_by_other_axes():
    x = mx.sym.Convolution(mx.sym.var("x"), kernel=(1, 1), num_filter=4, name="c")
    module = lowered(mx.sym.softmax(mx.sym.transpose(mx.sym.relu(x), axes=(0, 2, 3, 1))))
    assert layout.apply(module) == ["layout: 1 convolutions with channels last, 1 arrays reordered before and 1 after them"]
    calls = [n.target for n in module.graph.nodes if n.op == "call_function"]
    assert calls.index(layout.standard) == calls.index(get("transpose").fn) - 1


def test_layout_leaves_graphs_without_convolutions():
    module = lowered(mx.sym.relu(mx.sym.var("x")))
    assert layout.apply(module) == []


@pytest.mark.parametrize("use", ["twice", "output", "global", "axis"])
def test_fusion_keeps_what_is_used_otherwise(use):
    x = mx.sym.var("x")
    norm = mx.sym.BatchNorm(x, name="bn", use_global_stats=use == "global", axis=2 if use == "axis" else 1)
    out = {"twice": mx.sym.relu(norm) + norm, "output": mx.sym.Group([mx.sym.relu(norm), norm])}.get(use, mx.sym.relu(norm))
    module = lowered(out)
    report = fusion.fuse_batch_norms(module)
    assert report == ([] if use in ("global", "axis") else ["fusion: 1 x batch norm"])


@pytest.mark.parametrize("variable", ["MXNET_USE_FUSION", "MXNET_EXEC_BULK_EXEC_TRAIN"])
def test_the_passes_can_be_turned_off(monkeypatch, variable):
    monkeypatch.setenv(variable, "0")
    _, net = trained(True)
    assert net._cached_op._runner.reports[True, torch.device("cpu")] == []


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


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "nag", "rmsprop", "lamb"])
def test_optimizers_follow_the_order_in_memory(optimizer):
    results = []
    for hybrid in (False, True):
        mx.random.seed(4)
        net = nn.Conv2D(4, 3, in_channels=2)
        net.initialize(mx.init.Normal(1))
        net.hybridize(hybrid)
        trainer = mx.gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.1, **({"momentum": 0.9} if optimizer == "sgd" else {})})
        for _ in range(3):
            with mx.autograd.record():
                loss = (net(nd.array(numbers(2, 2, 5, 5, seed=1).numpy())) ** 2).sum()
            loss.backward()
            trainer.step(1)
        results.append(net.weight.data().asnumpy())
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-6)


def test_large_weights_take_the_fused_step(monkeypatch):
    from mxnet.optimizer import steps
    monkeypatch.setattr(steps, "_SINGLE_PASS", 0)
    test_optimizers_follow_the_order_in_memory("sgd")


def test_the_passes_say_what_they_did(monkeypatch, caplog):
    monkeypatch.setenv("MXNET_FUSION_VERBOSE", "1")
    trained(True)
    assert "fusion: 1 x batch norm + add + relu" in caplog.text


def test_rectifiers_overwrite_only_what_nothing_else_reads():
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


def test_parts_of_recurrent_parameters_need_not_be_cut_where_torch_cuts_them():
    from mxnet.ops.nn.rnn import rnn_of_parts
    vector, x, state = numbers(3 * 2 + 3 * 3 + 6, seed=0), numbers(4, 2, 2, seed=1), numbers(1, 2, 3, seed=2)
    attributes = {"state_size": 3, "num_layers": 1, "mode": "rnn_tanh"}
    whole = get("RNN").fn(x, vector, state, **attributes)
    for parts in (vector.split([6, 9, 3, 3]), vector.split([10, 11])):
        torch.testing.assert_close(rnn_of_parts(x, parts, state, **attributes), whole)
    with pytest.raises(mx.MXNetError, match="must have 21 elements"):
        rnn_of_parts(x, vector.split([6, 15])[:1], state, **attributes)
