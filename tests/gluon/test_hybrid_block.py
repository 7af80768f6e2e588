"""HybridBlock: eager and traced, deferred shapes, what changes after tracing, export."""
import copy
import json
import threading
import warnings

import numpy as np
import pytest

import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn


def small(**kwargs):
    net = nn.HybridSequential(**kwargs)
    with net.name_scope():
        net.add(nn.Dense(4, activation="tanh"), nn.BatchNorm(), nn.Dense(2))
    net.initialize(mx.init.Uniform(1))
    return net


X = mx.nd.array(np.cos(np.arange(12)).reshape(4, 3))


def test_deferred_shapes():
    net = small()
    assert net[0].weight.shape == (4, 0) and repr(net[0]) == "Dense(None -> 4, Activation(tanh))"
    net(X)
    assert net[0].weight.shape == (4, 3) and net[1].gamma.shape == (4,)
    lazy = nn.Dense(2)
    lazy.initialize()
    lazy.infer_shape(X)
    assert lazy.weight.shape == (2, 3)
    with pytest.raises(gluon.DeferredInitializationError, match="has no values yet, because its shape .* is not known"):
        lazy.weight.data()


def test_deferred_failure_says_why():
    net = nn.Dense(2, in_units=5)
    net.initialize()
    with pytest.raises(mx.MXNetError, match="FullyConnected"):
        net(X)
    net = nn.HybridSequential()
    net.add(nn.Dense(2), nn.Conv2D(2, 3))
    net.initialize()
    with pytest.raises(ValueError, match="the shapes of Parameters don't follow from the inputs"):
        net(X)


def test_uninitialized():
    net = nn.Dense(2, in_units=3)
    for hybridize in (False, True):
        net.hybridize(hybridize)
        with pytest.raises(RuntimeError, match="has not been initialized"):
            net(X)


def test_traced_is_eager_with_gradients():
    net = small()
    net(X)
    results = []
    for hybridize in (False, True):
        net.hybridize(hybridize)
        net.collect_params().zero_grad()
        net[1].running_mean.set_data(mx.nd.zeros((4,)))
        net[1].running_var.set_data(mx.nd.ones((4,)))
        x = X.copy()
        x.attach_grad()
        with mx.autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        results.append([loss, x.grad, net(x)] + [p.grad() for p in net.collect_params().values() if p.grad_req != "null"]
                       + [net[1].running_mean.data()])
    assert net._cached_op is not None
    for eager, traced in zip(*results):
        np.testing.assert_allclose(traced.asnumpy(), eager.asnumpy(), rtol=1e-5, atol=1e-6)


def test_changed_parameters_are_seen():
    net = nn.Dense(1, in_units=1, use_bias=False)
    net.initialize(mx.init.One())
    net.hybridize(static_alloc=True, static_shape=True)
    x = mx.nd.array([[2.]])
    assert net(x).asscalar() == 2
    net.weight.set_data(mx.nd.array([[3.]]))
    assert net(x).asscalar() == 6
    net.weight.data()[:] = 4
    assert net(x).asscalar() == 8
    net.initialize(mx.init.Constant(5), force_reinit=True)
    assert net(x).asscalar() == 10
    net.weight.grad_req = "null"
    net.weight.data()[:] = 6
    assert net(x).asscalar() == 12
    net.cast("float64")
    assert net(x.astype("float64")).dtype == np.float64


def test_changed_structure_is_seen():
    net = nn.HybridSequential()
    net.add(nn.Dense(1, in_units=3))
    net.initialize()
    net.hybridize()
    assert net(X).shape == (4, 1)
    net.add(nn.Dense(5, in_units=1))
    net[1].initialize()
    assert net(X).shape == (4, 5)


def test_other_shapes_and_contexts_after_tracing():
    net = small()
    net.collect_params().reset_ctx([mx.cpu(0), mx.cpu(1)])
    net.hybridize()
    assert net(X).shape == (4, 2)
    assert net(X[:2]).shape == (2, 2)
    out = net(X.as_in_context(mx.cpu(1)))
    assert out.context == mx.cpu(1)
    np.testing.assert_allclose(out.asnumpy(), net(X).asnumpy())
    with pytest.raises(RuntimeError, match=r"was not initialized on context cpu\(2\)"):
        net(X.as_in_context(mx.cpu(2)))


def test_inputs_on_several_contexts():
    add = nn.HybridLambda(lambda F, x, y: F.concat(x, y, dim=0))
    add.hybridize()
    with pytest.raises(ValueError, match="runs on one context, received inputs on"):
        add(mx.nd.ones((1, 1)), mx.nd.ones((1, 1), ctx=mx.cpu(1)))


class Branches(gluon.HybridBlock):
    def hybrid_forward(self, F, x, pair, extra=None):
        total = x + pair[0] * pair[1]
        return [total, {True: x, False: extra}[extra is None]]


def test_structured_arguments():
    net = Branches()
    one, two, three = (mx.nd.array([v]) for v in (1., 2., 3.))
    for hybridize in (False, True):
        net.hybridize(hybridize)
        total, rest = net(one, [two, three])
        assert (total.asscalar(), rest.asscalar()) == (7, 1)
    total, _ = net(one, [two, three], None)  # only None more
    assert total.asscalar() == 7
    with pytest.raises(ValueError, match=r"traced with arguments of structure \[0, \[0, 0\]\], received \[0, \[0, 0\], 0\]"):
        net(one, [two, three], one)
    net.hybridize()
    assert net(one, [two, three], three)[1].asscalar() == 3


def test_argument_errors():
    net = nn.Dense(1)
    for wrong in (1, None, "x"):
        with pytest.raises(ValueError, match="at least one NDArray or Symbol expected, received"):
            net(wrong)
    with pytest.raises(ValueError, match="either NDArrays or Symbols expected, not both at once"):
        Branches()(mx.nd.ones((1,)), [mx.sym.var("a"), mx.sym.var("b")])
    net.initialize()
    net.hybridize()
    net(X)
    with pytest.raises(ValueError, match="traced with arguments of structure"):
        net([X])


def test_unused_inputs_and_parameters_are_warned_of():
    class Wasteful(gluon.HybridBlock):
        def __init__(self):
            super().__init__(prefix="w_")
            with self.name_scope():
                self.used, self.unused = nn.Dense(1, in_units=3), nn.Dense(1, in_units=1, use_bias=False)

        def hybrid_forward(self, F, x, y):
            return self.used(x)

    net = Wasteful()
    net.initialize()
    net.hybridize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        net(X, X)
    assert [str(w.message) for w in caught] == ["HybridBlock: its 1-th input has no influence on the output",
                                                "HybridBlock: Parameter w_dense1_weight has no influence on the output"]


def test_symbols_in_symbol_out():
    with mx.name.NameManager():
        net = small(prefix="s_")
        out = net(mx.sym.var("data"))
    assert out.list_outputs() == ["s_dense1_fwd_output"]
    assert out.list_inputs() == ["data", "s_dense0_weight", "s_dense0_bias", "s_batchnorm0_gamma", "s_batchnorm0_beta",
                                 "s_batchnorm0_running_mean", "s_batchnorm0_running_var", "s_dense1_weight", "s_dense1_bias"]
    assert out.list_auxiliary_states() == ["s_batchnorm0_running_mean", "s_batchnorm0_running_var"]


def test_export_and_import(tmp_path):
    net = small(prefix="e_")
    path = str(tmp_path / "net")
    with pytest.raises(RuntimeError, match="export: there is no graph of this block yet"):
        net.export(path)
    net.hybridize()
    expected = net(X).asnumpy()
    net.export(path, epoch=7)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net-0007.params", "net-symbol.json"]
    assert sorted(mx.nd.load(f"{path}-0007.params")) == [
        "arg:e_batchnorm0_beta", "arg:e_batchnorm0_gamma", "arg:e_dense0_bias", "arg:e_dense0_weight", "arg:e_dense1_bias",
        "arg:e_dense1_weight", "aux:e_batchnorm0_running_mean", "aux:e_batchnorm0_running_var"]
    nodes = json.loads((tmp_path / "net-symbol.json").read_text())["nodes"]
    assert nodes[-1]["op"] == "FullyConnected" and nodes[-1]["attrs"]["num_hidden"] == "2"
    loaded = gluon.SymbolBlock.imports(f"{path}-symbol.json", ["data"], f"{path}-0007.params")
    np.testing.assert_allclose(loaded(X).asnumpy(), expected, rtol=1e-6)


def test_export_after_a_call_that_only_inferred_shapes(tmp_path):
    net = nn.Dense(2)
    net.initialize()
    net(X)
    net.export(str(tmp_path / "d"))
    assert len(mx.nd.load(str(tmp_path / "d-0000.params"))) == 2


def test_several_inputs_are_numbered():
    net = Branches()
    net.hybridize()
    net(X, [X, X])
    assert net._cached_graph[1].list_arguments() == ["data0", "data1", "data2"]


def test_constant_in_a_block():
    class Scale(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.factor = self.params.get_constant("factor", [1., 2., 3.])

        def hybrid_forward(self, F, x, factor):
            return F.broadcast_mul(x, factor)

    net = Scale()
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    for hybridize in (False, True):
        net.hybridize(hybridize)
        x = X.copy()
        x.attach_grad()
        with mx.autograd.record():
            y = net(x)
        y.backward()
        trainer.step(1)
        assert x.grad[0].asnumpy().tolist() == [1, 2, 3]
    assert net.factor.data().asnumpy().tolist() == [1, 2, 3]


def test_dropout_knows_the_mode():
    net = nn.Dropout(0.5)
    net.hybridize()
    ones = mx.nd.ones((1000,))
    assert net(ones).asnumpy().min() == 1
    with mx.autograd.train_mode():
        assert set(np.unique(net(ones).asnumpy())) == {0.0, 2.0}


def test_threads_share_a_block():
    net = small()
    net.hybridize()
    expected, results, errors = {}, {}, []
    reference = copy.deepcopy(net)
    net(X)
    for k, p in zip(reference.collect_params().values(), net.collect_params().values()):
        k._load_init(p.data(), None)
    reference.hybridize(False)
    inputs = {i: X * (i + 1) for i in range(8)}
    for i, x in inputs.items():
        expected[i] = reference(x).asnumpy()
    net.hybridize()  # to be traced by whoever comes first

    def work(i):
        try:
            for _ in range(20):
                results[i] = net(inputs[i]).asnumpy()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in inputs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    for i in inputs:
        np.testing.assert_allclose(results[i], expected[i], rtol=1e-5)


def test_optimize_for():
    net = small()
    net.optimize_for(X, backend="native", static_alloc=True)
    assert net._active and net._cached_op.backend == "native" and ("static_alloc", True) in net._flags
    out = net(X).asnumpy()
    net.hybridize(False)
    np.testing.assert_allclose(out, net(X).asnumpy(), rtol=1e-5)
    with pytest.raises(ValueError, match="the name of a backend expected, received none"):
        net.optimize_for(X)
    net.optimize_for(X, backend="nope", clear=True)
    assert net._cached_op.backend is None
    np.testing.assert_allclose(out, net(X).asnumpy(), rtol=1e-5)


def test_op_hook():
    net, seen = small(prefix="h_"), []
    net.hybridize()
    net.register_op_hook(lambda name, operator, handle: seen.append((name, operator, mx.nd.NDArray(handle).shape)))
    net(X)
    assert seen == [("h_dense0_fwd_output", "FullyConnected", (4, 4)), ("h_dense0_tanh_fwd_output", "Activation", (4, 4)),
                    ("h_batchnorm0_fwd_output", "BatchNorm", (4, 4)), ("h_batchnorm0_fwd_mean", "BatchNorm", (4,)),
                    ("h_batchnorm0_fwd_var", "BatchNorm", (4,)), ("h_dense1_fwd_output", "FullyConnected", (4, 2))]
    net.register_op_hook(None)
    net(X)
    assert len(seen) == 6


def test_a_block_with_its_own_forward_runs_eagerly():
    class Plain(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(2, in_units=3)

        def forward(self, x):
            return self.dense(x) * 2

    net = Plain()
    net.initialize(mx.init.One())
    net.hybridize()
    np.testing.assert_allclose(net(X).asnumpy()[:, 0], 2 * X.asnumpy().sum(1), rtol=1e-5)
    outer = nn.HybridSequential()  # inside of a traced block it is traced like the rest
    outer.add(net)
    outer.hybridize()
    np.testing.assert_allclose(outer(X).asnumpy()[:, 0], 2 * X.asnumpy().sum(1), rtol=1e-5)


def test_deepcopy_of_a_traced_block():
    net = small()
    net.hybridize()
    out = net(X).asnumpy()
    twin = copy.deepcopy(net)
    net[2].bias.set_data(mx.nd.array([9., 9.]))
    np.testing.assert_allclose(twin(X).asnumpy(), out)


def test_blocks_of_mxnet_2_return_arrays_of_numpy():
    class Mixed(gluon.HybridBlock):
        def forward(self, x):
            return x * 2, [x.as_nd_ndarray() + 1]

    with mx.util.np_shape(True), mx.util.np_array(True):
        for hybridize in (False, True):
            net = Mixed()
            net.hybridize(hybridize)
            with pytest.raises(TypeError, match="call as_np_ndarray"):
                net(mx.np.ones(2))
