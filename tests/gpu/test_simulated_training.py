"""Training on one simulated GPU and on two: Module, Trainer, key-value stores, checkpoints, metrics."""
import numpy as np
import pytest

import mxnet as mx
from gpu_operator_runs import check_same
from mxnet.gluon import nn
from mxnet.ops.nn.training_layers import batch_norm
from simulated_gpus import Watch, gpus

X = np.sin(np.arange(8 * 2 * 6 * 6)).reshape(8, 2, 6, 6).astype("f4")
Y = np.array([0, 1, 2, 0, 1, 2, 0, 1], "f4")
STORES = [None, "local", "device", "nccl"]
NUMBERS = pytest.mark.parametrize("count", [1, 2])


@pytest.fixture(autouse=True)
def no_graphs(monkeypatch):
    """A captured graph is the one thing of torch's that simulated GPUs lack."""
    monkeypatch.setenv("MXNET_ENABLE_CUDA_GRAPHS", "0")


@pytest.fixture
def nccl(monkeypatch):
    monkeypatch.setattr("torch.distributed.is_nccl_available", lambda: True)


def symbol():
    x = mx.sym.var("data")
    x = mx.sym.Convolution(x, kernel=(3, 3), num_filter=4, name="conv")
    x = mx.sym.Activation(mx.sym.BatchNorm(x, name="norm", fix_gamma=True), act_type="relu")
    x = mx.sym.FullyConnected(mx.sym.Pooling(x, kernel=(2, 2), stride=(2, 2)), num_hidden=3, name="fc")
    return mx.sym.SoftmaxOutput(x, name="softmax")


def start(names_and_shapes):
    return {n: mx.nd.array(np.cos(np.arange(np.prod(s)) + len(n)).reshape(s) * 0.3 + 0.3 * n.endswith("var")) for n, s in names_and_shapes}


def fit(contexts, store, optimizer="sgd"):
    net = symbol()
    shapes = net.infer_shape(data=(8, 2, 6, 6))
    module = mx.mod.Module(net, context=contexts)
    data = mx.io.NDArrayIter(X, Y, 8)
    metric = mx.metric.Accuracy()
    args = {n: s for n, s in zip(net.list_arguments(), shapes[0]) if n not in ("data", "softmax_label")}
    module.fit(data, eval_data=data, eval_metric=metric, num_epoch=2, kvstore=store, optimizer=optimizer,
               optimizer_params={"learning_rate": 0.1}, arg_params=start(args.items()), aux_params=start(zip(net.list_auxiliary_states(), shapes[2])))
    scores = module.predict(data)
    return [*(a for _, a in sorted(module.get_params()[0].items())), scores, mx.nd.array([module.score(data, "acc")[0][1]])], module


@pytest.mark.parametrize("store", STORES)
@NUMBERS
def test_module(count, store, nccl):
    expected, _ = fit([mx.cpu(0), mx.cpu(1)][:count], store if store != "nccl" else "device")
    with gpus() as both:
        found, module = fit(list(both[:count]), store)
        assert module._context == list(both[:count]) and {e.arg_arrays[1].context for e in module._exec_group.execs} == set(both[:count])
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-4, atol=1e-5)


def network(bias=True):
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(4, 3, use_bias=bias), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(), nn.Dense(3))
    return net


def initialized(contexts, hybridize=None, bias=True):
    net = network(bias)
    net.initialize(ctx=contexts)
    net(mx.nd.array(X[:2], ctx=contexts[0]))
    for name, p in net._collect_params_with_prefix().items():
        p.set_data(start([(name, p.shape)])[name])
    if hybridize is not None:
        net.hybridize(**hybridize)
    return net


def train(contexts, store="device", optimizer="sgd", on_store=None, hybridize=None, steps=3, watch=None):
    # The bias before a batch norm has a gradient of rounding errors only, which Adam makes as large as any.
    net = initialized(contexts, hybridize, bias=optimizer != "adam")
    trainer = mx.gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.05}, kvstore=store, update_on_kvstore=on_store)
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    parts = [mx.gluon.utils.split_and_load(v, contexts) for v in (X, Y)]
    for i in range(steps):
        with watch if i and watch else Watch():  # the first step gives the store its weights
            with mx.autograd.record():
                losses = [loss(net(x), y) for x, y in zip(*parts)]
            mx.autograd.backward(losses)
            trainer.step(len(X))
    return net, trainer


def parameters(net, ctx):
    return [p.data(ctx) for _, p in sorted(net._collect_params_with_prefix().items())]


# Without a store, weights on two devices part.
@pytest.mark.parametrize("count, store, optimizer, on_store", [
    (1, None, "sgd", None), *[(n, *case) for n in (1, 2) for case in (("local", "adam", False), ("device", "sgd", True), ("nccl", "adam", False))]])
def test_trainer(count, store, optimizer, on_store, nccl):
    cpus = [mx.cpu(0), mx.cpu(1)][:count]
    expected, watch = train(cpus, store if store != "nccl" else "device", optimizer, on_store)[0], Watch()
    with gpus() as both:
        found, _ = train(list(both[:count]), store, optimizer, on_store, watch=watch)
        for cpu, gpu in zip(cpus, both):
            for a, b in zip(parameters(found, gpu), parameters(expected, cpu), strict=True):
                check_same(a, b, gpu, tolerance=1e-4)
    assert bool(watch.waits or watch.copies) == (store == "local" and count == 2)  # which adds on the host


@pytest.mark.parametrize("hybridize", [{}, {"static_alloc": True}, {"static_alloc": True, "static_shape": True}], ids=["plain", "memory", "static"])
def test_hybridized_networks(hybridize):
    expected = train([mx.cpu()], hybridize=hybridize)[0]
    with gpus() as (gpu, _):
        found = train([gpu], hybridize=hybridize)[0]
        for a, b in zip(parameters(found, gpu), parameters(expected, mx.cpu()), strict=True):
            check_same(a, b, gpu, tolerance=1e-4)
        for _ in range(4):  # scoring finds its runner in some calls
            with Watch() as watch:
                scored = found(mx.nd.zeros((2, 2, 6, 6), ctx=gpu))
            check_same(scored, expected(mx.nd.zeros((2, 2, 6, 6))), gpu, tolerance=1e-4)
        assert (watch.waits, watch.copies) == ([], [])


def test_states_of_a_trainer(tmp_path):
    path = str(tmp_path / "trainer.states")
    with gpus() as both:
        net, trainer = train(list(both), optimizer="adam", on_store=False)
        trainer.save_states(path)
        trainer.load_states(path)
        net(mx.nd.array(X, ctx=both[1]))
        trainer.step(8, ignore_stale_grad=True)


@NUMBERS
def test_files_of_networks(tmp_path, count):
    path = str(tmp_path / "net")
    net = initialized([mx.cpu()], {})
    expected = net(mx.nd.array(X))
    net.export(path, epoch=3)
    net.save_parameters(path + ".params")
    with gpus() as both:
        contexts = list(both[:count])
        imported = mx.gluon.SymbolBlock.imports(path + "-symbol.json", ["data"], path + "-0003.params", ctx=contexts)
        loaded, moved = network(), initialized([mx.cpu()])
        loaded.load_parameters(path + ".params", ctx=contexts)
        moved.collect_params().reset_ctx(contexts)
        for gpu in contexts:
            for net in (imported, loaded, moved):
                check_same(net(mx.nd.array(X, ctx=gpu)), expected, gpu, tolerance=1e-4)
        imported.export(path + "-again", epoch=0)
        check_same(mx.gluon.SymbolBlock.imports(path + "-again-symbol.json", ["data"], path + "-again-0000.params", ctx=both[1])(
            mx.nd.array(X, ctx=both[1])), expected, both[1], tolerance=1e-4)
        symbol, args, auxs = mx.model.load_checkpoint(path, 3)
        module = mx.mod.Module(symbol, context=contexts, label_names=None)
        module.bind([("data", X.shape)], for_training=False)
        module.set_params(args, auxs)
        module.forward(mx.io.DataBatch([mx.nd.array(X)]), is_train=False)
        np.testing.assert_allclose(module.get_outputs()[0].asnumpy(), expected.asnumpy(), rtol=1e-4, atol=1e-5)


def test_executors():
    """With gradients that are added, moved to other shapes, and monitored."""
    def run(ctx):
        x, w = mx.sym.var("x"), mx.sym.var("w")
        executor = mx.sym.tanh(mx.sym.dot(x, w) + 1).simple_bind(ctx, x=(2, 3), w=(3, 4), grad_req={"x": "write", "w": "add"})
        seen = []
        executor.set_monitor_callback(lambda name, array: seen.append((name, array.context)), monitor_all=True)
        for name, value in start([("x", (2, 3)), ("w", (3, 4))]).items():
            executor.arg_dict[name][:] = value
        for _ in range(2):
            executor.forward(is_train=True)
            executor.backward(mx.nd.ones((2, 4), ctx=ctx))
        other = executor.reshape(x=(5, 3), w=(3, 4), allow_up_sizing=True)
        return [executor.outputs[0], executor.grad_dict["x"], executor.grad_dict["w"], other.forward()[0]], {c for _, c in seen}

    expected, _ = run(mx.cpu())
    with gpus() as (gpu, _):
        found, contexts = run(gpu)
        assert contexts == {gpu}
        for a, b in zip(found[:3], expected, strict=False):
            check_same(a, b, gpu)


METRICS = ["acc", "top_k_accuracy", "f1", "mcc", "pcc", "perplexity", "mae", "mse", "rmse", "ce", "nll_loss", "pearsonr", "loss"]


@pytest.mark.parametrize("name", METRICS)
def test_metrics(name):
    def run(ctx):
        metric = mx.metric.create(name, **{"top_k": 2} if name.startswith("top") else {"ignore_label": None} if name == "perplexity" else {})
        scores = mx.nd.softmax(mx.nd.array(np.cos(np.arange(12)).reshape(6, 2), ctx=ctx))
        labels = mx.nd.array([0, 1, 1, 0, 1, 0], ctx=ctx)
        one = name in ("mae", "mse", "rmse", "pearsonr")
        for _ in range(2):
            metric.update([labels], [scores[:, 1] if one else scores])
        return metric.get()[1]

    with gpus() as (gpu, _):
        assert run(gpu) == pytest.approx(run(mx.cpu()), rel=1e-6, nan_ok=True)


@pytest.mark.parametrize("kind", ["local", "device", "nccl"])
def test_stores(kind, nccl):
    with gpus() as both:
        store = mx.kv.create(kind)
        store.init("w", mx.nd.ones((2, 3), ctx=both[0]))
        store.push("w", [mx.nd.ones((2, 3), ctx=g) * (i + 1) for i, g in enumerate(both)])
        outs = [mx.nd.zeros((2, 3), ctx=g) for g in both]
        store.pull("w", out=outs)
        for out, gpu in zip(outs, both):
            check_same(out, mx.nd.full((2, 3), 3), gpu)
        store.set_optimizer(mx.optimizer.SGD(learning_rate=1))
        store.pushpull("w", [mx.nd.ones((2, 3), ctx=g) for g in both], out=outs)
        for out, gpu in zip(outs, both):
            check_same(out, mx.nd.full((2, 3), 1), gpu)
        if kind == "device":
            store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
            store.push("w", [mx.nd.ones((2, 3), ctx=g) for g in both])


class Residual(nn.HybridBlock):
    """A block with all that is fused around batch norms on a GPU, convolutions with biases before them."""

    def __init__(self, **options):
        super().__init__(**options)
        with self.name_scope():
            self.first, self.second, self.shortcut = (nn.Conv2D(6, k, padding=k // 2, use_bias=b, in_channels=c)
                                                      for k, b, c in ((3, True, 2), (3, True, 6), (1, False, 2)))
            self.norms = [nn.BatchNorm(in_channels=6, scale=s, prefix=f"norm{i}_") for i, s in enumerate((True, True, False))]
            for norm in self.norms:
                self.register_child(norm)

    def hybrid_forward(self, F, x):
        y = F.relu(self.norms[0](self.first(x)))
        y = self.norms[1](self.second(y))
        return F.relu(self.norms[2](self.shortcut(x)) + y)


class Plain(nn.HybridBlock):
    """Convolutions with biases and no batch norm: two with ReLU, one of them before a pooling, and one alone."""

    def __init__(self, **options):
        super().__init__(**options)
        with self.name_scope():
            self.first, self.second, self.third = (nn.Conv2D(6, 3, padding=1, in_channels=c) for c in (2, 6, 6))

    def hybrid_forward(self, F, x):
        y = F.relu(self.first(x))
        y = F.Pooling(F.relu(self.second(y)), kernel=(2, 2), stride=(2, 2), pool_type="max")
        return F.tanh(self.third(y))


def steps_of(block, ctx, hybridize, dtype="float32"):
    """Losses of two steps, the gradients of the last, weights and moving averages; what was done to the graph."""
    net = block(prefix="block_")
    net.initialize(ctx=ctx)
    for name, p in net.collect_params().items():
        p.set_data(start([(name, p.shape)])[name] + float("gamma" in name))
    net.cast(dtype)
    if hybridize:
        net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    x, losses = mx.nd.array(X, ctx=ctx, dtype=dtype), []
    for _ in range(2):
        with mx.autograd.record():
            loss = (net(x) ** 2).mean()
        loss.backward()
        trainer.step(1)
        losses.append(loss)
    parameters = net.collect_params().values()
    found = [*losses, *(p.grad(ctx) for p in parameters if p.grad_req != "null"), *(p.data(ctx) for p in parameters)]
    return [a.asnumpy() for a in found], net._cached_op.handle.reports[True, ctx.torch_device] if hybridize else []


@pytest.mark.parametrize("mirror", ["0", "1"])
def test_batch_norms_fused_on_a_gpu_train_as_their_operators(mirror, monkeypatch):
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", mirror)
    with gpus() as (gpu, _):
        expected, _ = steps_of(Residual, gpu, False)
        found, report = steps_of(Residual, gpu, True)
    assert report[:5] == ["layout: 3 convolutions with channels last, 1 arrays reordered before and 1 after them",
                          "fusion: 1 x batch norm", "fusion: 1 x batch norm + relu", "fusion: 1 x batch norm + add + relu",
                          "fusion: 2 x bias of a convolution left to the batch norm behind it"]
    assert any("computed again in backward" in line for line in report) is (mirror == "1")
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("mirror", ["0", "1"])
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-3), ("float64", 1e-6)])
def test_biases_fused_on_a_gpu_train_as_their_operators(dtype, tolerance, mirror, monkeypatch):
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", mirror)
    with gpus() as (gpu, _):
        expected, _ = steps_of(Plain, gpu, False, dtype)
        found, report = steps_of(Plain, gpu, True, dtype)
    assert report[:5] == ["layout: 3 convolutions with channels last, 1 arrays reordered before and 1 after them",
                          "fusion: 1 x activation behind the maximum pooling", "fusion: 1 x bias", "fusion: 2 x bias + relu",
                          "fusion: 1 x bias behind the maximum pooling"]
    assert any("computed again in backward" in line for line in report) is (mirror == "1")
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance / 100)


def test_a_fused_batch_norm_adds_the_bias_where_no_kernel_is(monkeypatch):
    """In half precision, too, where parameters stay float32."""
    with gpus() as (gpu, _):
        x = mx.nd.array(X, ctx=gpu, dtype="float16")._data
        gamma, beta, bias, mean, var = (mx.nd.array(v, ctx=gpu)._data for v in ([1, 2], [0.5, 0], [3, -2], [0, 0], [1, 1]))
        out = batch_norm(x, gamma, beta, mean, var, x, bias=bias, relu=True, training=True, fix_gamma=False, eps=1e-3, momentum=0.5)
        out, mean, var = out.cpu(), mean.cpu(), var.cpu()
    average, deviation = X.mean((0, 2, 3)), X.var((0, 2, 3))
    expected = (X - average[:, None, None]) / np.sqrt(deviation + 1e-3)[:, None, None] * np.array([1, 2])[:, None, None]
    expected = np.maximum(expected + np.array([0.5, 0])[:, None, None] + X, 0)
    np.testing.assert_allclose(out.float().numpy(), expected, atol=2e-2)
    np.testing.assert_allclose(mean.numpy(), 0.5 * (average + [3, -2]), atol=1e-3)
    np.testing.assert_allclose(var.numpy(), 0.5 + 0.5 * deviation, atol=1e-3)
