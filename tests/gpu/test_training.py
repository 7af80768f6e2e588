"""Networks that train on a GPU as on a processor: in three styles, in half precision, with every optimizer and store."""
import pathlib
import sys

import numpy as np
import pytest
import torch

import mxnet as mx
from amp_state import switch_off
from batch_norm_checks import TOLERANCES, faults, layer
from bias_checks import ROUNDED, biased
from gpu_checks import GPU, close, needs_gpu
from kernel_limits import used_from
from max_pooling_checks import WINDOWS, pooling_faults
from mxnet import autograd, gluon, nd
from mxnet.contrib import amp
from mxnet.kernels.nn import batch_norm_on_gpu, bias_on_gpu, max_pooling, max_pooling_on_gpu, updates_on_gpu
from mxnet.kernels.runtime import channel_kernels, triton_kernels, tuning
from mxnet.ndarray import memory_format

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "benchmarks"))
from harness import train_models, workloads  # noqa: E402

pytestmark = needs_gpu
STEPS = 12
_curves = {}


def curve(name, style, ctx, count):
    if (name, style, ctx) not in _curves:
        with ctx:
            step = train_models.stepper(name, count, style, "sgd")
            x, y = (nd.array(a) for a in workloads.batch(name, count))
            _curves[name, style, ctx] = [float(step(x, y)) for _ in range(STEPS)]
    return _curves[name, style, ctx]


@pytest.mark.parametrize("style", ["imperative", "hybridized", "Module"])
@pytest.mark.parametrize("name", ["mlp2x128", "lenet", "resnet18-thin", "lm2x64", "encoder2x64", "deepar2x40"])
def test_curves_are_those_of_a_processor(name, style, exact):
    expected, found = (curve(name, s, ctx, 8) for s, ctx in (("imperative", mx.cpu()), (style, GPU)))
    assert expected[-1] < expected[0] and np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, rtol=5e-3, atol=1e-4)


def detector():
    """The head of a single-shot detector (Liu et al. 2016) over two feature maps."""
    body = gluon.nn.HybridSequential()
    body.add(gluon.nn.Conv2D(8, 3, padding=1, in_channels=3), gluon.nn.BatchNorm(in_channels=8), gluon.nn.Activation("relu"),
             gluon.nn.MaxPool2D(), gluon.nn.Conv2D(16, 3, padding=1, activation="relu", in_channels=8))
    return body, gluon.nn.Conv2D(4 * 3, 3, padding=1, in_channels=16), gluon.nn.Conv2D(4 * 4, 3, padding=1, in_channels=16)


def detect(ctx, hybridized):
    """Losses of some steps, and what is detected at the end."""
    mx.random.seed(3)
    body, classes, boxes = detector()
    random = np.random.RandomState(0)
    for block in (body, classes, boxes):
        block.initialize(ctx=ctx)
        for p in block.collect_params().values():
            ones = float("gamma" in p.name or "var" in p.name)
            p.set_data(nd.array(random.uniform(-0.2, 0.2, p.shape) if len(p.shape) > 1 else np.full(p.shape, ones)))
        if hybridized:
            block.hybridize()
    parameters = [p for block in (body, classes, boxes) for p in block.collect_params().values()]
    trainer = gluon.Trainer(parameters, "sgd", {"learning_rate": 0.05})
    images = nd.array(random.rand(2, 3, 16, 16), ctx=ctx)
    labels = nd.array([[[0, 0.1, 0.1, 0.4, 0.5]], [[1, 0.5, 0.4, 0.9, 0.8]]], ctx=ctx)
    cross_entropy, smooth = gluon.loss.SoftmaxCrossEntropyLoss(axis=1), gluon.loss.HuberLoss()
    losses = []
    for _ in range(6):
        with autograd.record():
            x = body(images)
            anchors = nd.contrib.MultiBoxPrior(x, sizes=[0.3, 0.5], ratios=[1, 2, 0.5])
            scores = classes(x).transpose((0, 2, 3, 1)).reshape((2, -1, 3)).transpose((0, 2, 1))
            offsets = boxes(x).transpose((0, 2, 3, 1)).reshape((2, -1))
            with autograd.pause():
                wanted, mask, target = nd.contrib.MultiBoxTarget(anchors, labels, scores)
            loss = cross_entropy(scores, target) + smooth(offsets * mask, wanted * mask)
        loss.backward()
        trainer.step(2)
        losses.append(float(loss.mean().asscalar()))
    return losses, nd.contrib.MultiBoxDetection(nd.softmax(scores, axis=1), offsets, anchors, nms_topk=20)


@pytest.mark.parametrize("hybridized", [False, True])
def test_a_detector_learns_as_on_a_processor(hybridized, exact):
    expected, boxes = detect(mx.cpu(), False)
    found, on_gpu = detect(GPU, hybridized)
    assert expected[-1] < expected[0]
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    assert on_gpu.context == GPU and on_gpu.shape == boxes.shape
    close(on_gpu, boxes, 1e-2)


def resnet(**options):
    net = gluon.model_zoo.vision.ResNetV1(gluon.model_zoo.vision.BasicBlockV1, [1, 1], [8, 8, 16], classes=4, thumbnail=True)
    net.initialize(mx.init.Xavier(), ctx=GPU)
    net.hybridize(**options)
    return net


def images(count=16):
    random = np.random.RandomState(1)
    labels = np.arange(count) % 4
    x = random.rand(count, 3, 16, 16) + labels[:, None, None, None]
    return nd.array(x, ctx=GPU), nd.array(labels, ctx=GPU)


def train(net, trainer, x, y, steps, scale=None):
    loss, found = gluon.loss.SoftmaxCrossEntropyLoss(), []
    for _ in range(steps):
        with autograd.record():
            losses = loss(net(x).astype("float32"), y)
            if scale:
                with amp.scale_loss(losses, trainer) as scaled:
                    autograd.backward(scaled)
        if not scale:
            losses.backward()
        trainer.step(len(x))
        found.append(float(losses.mean().asscalar()))
    return found


@pytest.fixture
def amp_off():
    yield
    switch_off()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_mixed_precision_learns(dtype, amp_off):
    amp.init(dtype)
    net = resnet()
    x, y = images()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.05, "momentum": 0.9})
    amp.init_trainer(trainer)
    found = train(net, trainer, x, y, 20, scale=True)
    wild = [name for name, p in net.collect_params().items() if p.grad_req != "null" and not np.isfinite(p.grad(GPU).asnumpy()).all()]
    assert found[-1] < 0.5 * found[0], f"loss scale {trainer._amp_loss_scaler.loss_scale}, gradients that are not finite: {wild}, losses {found}"
    assert all(p.data(GPU).dtype == np.float32 for p in net.collect_params().values())


def test_a_loss_scaler_overflows_and_recovers(amp_off):
    amp.init("float16")
    net = resnet()
    x, y = images()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.05})
    amp.init_trainer(trainer)
    scaler = trainer._amp_loss_scaler
    scaler._loss_scale = scaler._next_loss_scale = 2.0 ** 40
    net(x)
    before = next(iter(net.collect_params().values())).data(GPU).copy()
    train(net, trainer, x, y, 1, scale=True)
    assert scaler._next_loss_scale == 2.0 ** 39
    assert (next(iter(net.collect_params().values())).data(GPU) == before).asnumpy().all()  # the step was left out
    scaler._loss_scale = scaler._next_loss_scale = 2.0 ** 10
    found = train(net, trainer, x, y, 10, scale=True)
    assert np.isfinite(found).all() and found[-1] < found[0]


def test_a_network_cast_to_half_precision_learns():
    net = resnet()
    x, y = images()
    net(x)
    net.cast("float16")
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.05, "momentum": 0.9, "multi_precision": True})
    found = train(net, trainer, x.astype("float16"), y, 20)
    assert found[-1] < 0.5 * found[0]


@pytest.mark.parametrize("name", sorted(n for n in mx.optimizer.Optimizer.opt_registry if n not in ("test", "ccsgd") and n[0] != "_"))
def test_optimizers_compute_as_on_a_processor(name):
    random = np.random.RandomState(0)
    start, gradients = random.rand(7, 5), random.rand(3, 7, 5)
    weights = []
    for ctx in (mx.cpu(), GPU):
        mx.random.seed(1)
        weight = nd.array(start, ctx=ctx)
        updater = mx.optimizer.get_updater(mx.optimizer.create(name))
        for gradient in gradients:
            updater(0, nd.array(gradient, ctx=ctx), weight)
        assert weight.context == ctx
        weights.append(weight)
    if name == "sgld":  # it draws random numbers, and a GPU draws others
        assert np.isfinite(weights[1].asnumpy()).all()
    else:
        close(weights[1], weights[0], 1e-5)


needs_triton = pytest.mark.skipif(not triton_kernels.installed(), reason="triton is not installed")


def compiled(kernels, dtype):
    """Wait until the kernels of a module run."""
    kernels.available(GPU.torch_device, dtype)
    kernels.wait()
    assert kernels.available(GPU.torch_device, dtype)


@needs_triton
@pytest.mark.parametrize("relu, residual, bias", [(False, False, False), (True, False, True), (True, True, False)])
@pytest.mark.parametrize("shape", [(8, 64, 56, 56), (8, 2048, 7, 7), (5, 24, 33, 35), (600, 100)])
@pytest.mark.parametrize("dtype", sorted(TOLERANCES))
def test_batch_norms_with_what_follows_them(dtype, shape, relu, residual, bias):
    compiled(batch_norm_on_gpu.kernels, getattr(torch, dtype))
    for _ in range(2):  # as Triton compiles them, and as it has compiled them
        assert faults(*layer(shape, dtype, relu, residual, False, bias, device=GPU.torch_device), TOLERANCES[dtype]) == []


@needs_triton
def test_a_network_trains_on_the_fused_batch_norms(monkeypatch):
    """In half precision, with biases before them and one batch norm in two that meets a residual."""
    compiled(batch_norm_on_gpu.kernels, torch.float16)
    calls, function = [], batch_norm_on_gpu._Fused.apply
    used_from(monkeypatch, 0, channel_kernels)
    monkeypatch.setattr(batch_norm_on_gpu._Fused, "apply", lambda *a: calls.append((a[3] is not None, a[4] is not None, a[-1])) or function(*a))
    x, y = images()
    curves = []
    for hybridized in (True, False):
        mx.random.seed(0)
        net = gluon.model_zoo.vision.ResNetV1(gluon.model_zoo.vision.BottleneckV1, [1, 1], [64, 64, 128], classes=4, thumbnail=True)
        net.initialize(mx.init.Xavier(), ctx=GPU)
        net(x)
        net.cast("float16")
        net.hybridize(hybridized)
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.02, "multi_precision": True})
        curves.append(train(net, trainer, x.astype("float16"), y, 6))
    # Residual, bias and ReLU: two of a block's three batch norms have a bias before them; the last is added, or that of the shortcut.
    assert sorted(set(calls)) == [(False, False, True), (False, True, False), (False, True, True), (True, False, True), (True, True, True)]
    assert curves[0][-1] < curves[0][0]
    np.testing.assert_allclose(curves[0], curves[1], rtol=2e-2)


@needs_triton
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("shape", [(8, 64, 56, 56), (8, 2048, 7, 7), (5, 24, 33, 35), (600, 100)])
@pytest.mark.parametrize("dtype", sorted(TOLERANCES))
def test_biases_with_the_relu_behind_them(dtype, shape, relu):
    compiled(bias_on_gpu.kernels, getattr(torch, dtype))
    for _ in range(2):  # as Triton compiles them, and as it has compiled them
        assert faults(*biased(shape, dtype, relu, GPU.torch_device), TOLERANCES[dtype], ROUNDED) == []


@needs_triton
def test_a_network_without_batch_norms_trains_on_the_fused_biases(monkeypatch):
    """In half precision, captured and not: convolutions with ReLU, with a pooling between them, and alone."""
    compiled(bias_on_gpu.kernels, torch.float16)
    calls, function = [], bias_on_gpu.kernels.start
    used_from(monkeypatch, 0, channel_kernels)
    monkeypatch.setattr(bias_on_gpu.kernels, "start", lambda name, *a: calls.append((name, a[-1][0])) or function(name, *a))
    x, y = images()
    curves = []
    for options in ({"static_alloc": True, "static_shape": True}, {}, None):
        mx.random.seed(0)
        net = gluon.nn.HybridSequential()
        net.add(gluon.nn.Conv2D(16, 3, padding=1, activation="relu"), gluon.nn.Conv2D(16, 3, padding=1, activation="relu"), gluon.nn.MaxPool2D(),
                gluon.nn.Conv2D(16, 3, padding=1), gluon.nn.GlobalAvgPool2D(), gluon.nn.Dense(4))
        net.initialize(mx.init.Xavier(), ctx=GPU)
        net(x)
        net.cast("float16")
        if options is not None:
            net.hybridize(**options)
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.02, "multi_precision": True})
        curves.append(train(net, trainer, x.astype("float16"), y, 8))
        if options is not None:
            assert all(line in net.explain() for line in ("fusion: 2 x bias + relu", "fusion: 1 x bias\n", "1 x bias behind the maximum pooling"))
            assert {("add_bias", True), ("add_bias", False), ("gradient_sums", True), ("gradient_sums", False)} <= set(calls)
            calls.clear()
    assert not calls and curves[0][-1] < curves[0][0]
    for curve_of_graph in curves[:2]:
        np.testing.assert_allclose(curve_of_graph, curves[2], rtol=2e-2)


@needs_triton
@pytest.mark.parametrize("window, biased, relu", [*((window, False, False) for window in WINDOWS), ("2x2", True, True), ("overlapping", True, False)])
@pytest.mark.parametrize("shape", [(2, 128, 56, 56), (3, 7, 29, 33)])
@pytest.mark.parametrize("dtype", sorted(TOLERANCES))
def test_maximum_pooling_in_channels_last_order(dtype, shape, window, biased, relu, monkeypatch):
    monkeypatch.setattr(tuning, "allowed", lambda: False)  # the kernels run, whatever is faster
    used_from(monkeypatch, 0, channel_kernels)

    def pool(*arguments):
        max_pooling_on_gpu.max_pool2d(*arguments)
        max_pooling_on_gpu.kernels.wait()
        return max_pooling_on_gpu.max_pool2d(*arguments)

    for _ in range(2):  # as the thread has compiled them, and again
        assert pooling_faults(pool, shape, dtype, WINDOWS[window], biased, relu, GPU.torch_device) == []


@needs_triton
@pytest.mark.parametrize("faster", [max_pooling_on_gpu.KERNEL, max_pooling_on_gpu.TORCH])
def test_a_network_trains_on_the_faster_maximum_pooling(faster, monkeypatch):
    """Captured, hybridized and call by call: the curves are those of torch's operator, and what is chosen by time is chosen once for a size."""
    used_from(monkeypatch, 0, channel_kernels, max_pooling)
    timed, calls, function = [], [], max_pooling_on_gpu.kernels.start
    monkeypatch.setattr(max_pooling_on_gpu, "choices", max_pooling_on_gpu.Choices())
    monkeypatch.setattr(max_pooling_on_gpu, "fastest", lambda *a, measured=max_pooling_on_gpu.fastest: timed.append(measured(*a)) or faster)
    monkeypatch.setattr(max_pooling_on_gpu.kernels, "start", lambda name, *a: calls.append(name) or function(name, *a))
    x, y = images()
    curves = []
    for options in ({"static_alloc": True, "static_shape": True}, {}, None):
        mx.random.seed(0)
        net = gluon.nn.HybridSequential()
        net.add(gluon.nn.Conv2D(16, 3, padding=1), gluon.nn.MaxPool2D(), gluon.nn.Conv2D(16, 3, padding=1),
                gluon.nn.MaxPool2D(3, 2, 1, ceil_mode=True), gluon.nn.Conv2D(16, 3, padding=1), gluon.nn.GlobalAvgPool2D(), gluon.nn.Dense(4))
        net.initialize(mx.init.Xavier(), ctx=GPU)
        net(x)
        net.cast("float16")
        if options is not None:
            net.hybridize(**options)
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.02, "multi_precision": True})
        train(net, trainer, x.astype("float16"), y, 1)
        max_pooling_on_gpu.kernels.wait()
        calls.clear()
        curves.append(train(net, trainer, x.astype("float16"), y, 8))
        if options is not None and faster == max_pooling_on_gpu.KERNEL:
            assert {"max_pool", "max_pool_gradient"} <= set(calls)
    assert len(timed) <= 2 and curves[0][-1] < curves[0][0]
    for curve_of_graph in curves[:2]:
        np.testing.assert_allclose(curve_of_graph, curves[2], rtol=2e-2)


@pytest.mark.parametrize("store", [None, "local", "device", "nccl"])
def test_module_fits_with_every_store(store):
    random = np.random.RandomState(0)
    labels = random.randint(0, 3, 96)
    data = random.rand(96, 6).astype("float32") + np.eye(3, 6, dtype="float32")[labels] * 3
    batches = mx.io.NDArrayIter(data, labels.astype("float32"), 16, shuffle=True)
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=16)
    net = mx.sym.BatchNorm(net)  # with a fixed gamma, as it is by default
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Activation(net, act_type="relu"), num_hidden=3), name="softmax")
    module = mx.mod.Module(net, context=[GPU])
    module.fit(batches, num_epoch=8, kvstore=mx.kv.create(store) if store else None, optimizer_params={"learning_rate": 0.2, "momentum": 0.9})
    assert module.score(batches, "acc")[0][1] > 0.9
    assert module.get_outputs()[0].context == GPU


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_recurrent_layers_have_the_gradients_of_a_processor(kind, bidirectional, exact):
    layer = {"rnn": gluon.rnn.RNN, "gru": gluon.rnn.GRU, "lstm": gluon.rnn.LSTM}[kind](6, 2, bidirectional=bidirectional, input_size=4)
    layer.initialize(ctx=mx.cpu())
    random = np.random.RandomState(0)
    x, head = random.rand(5, 3, 4), random.rand(5, 3, 12 if bidirectional else 6)
    found = []
    for ctx in (mx.cpu(), GPU):
        layer.collect_params().reset_ctx(ctx)
        data = nd.array(x, ctx=ctx)
        data.attach_grad()
        with autograd.record():
            out = layer(data)
        out.backward(nd.array(head, ctx=ctx))
        found.append([out, data.grad, *(p.grad(ctx) for p in layer.collect_params().values())])
    for on_gpu, expected in zip(found[1], found[0]):
        close(on_gpu, expected)


def test_memory_is_back_where_it_was_after_a_thousand_steps():
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(32, activation="relu", in_units=16), gluon.nn.BatchNorm(in_channels=32), gluon.nn.Dense(4, in_units=32))
    net.initialize(ctx=GPU)
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam")
    x, loss = nd.ones((8, 16), ctx=GPU), gluon.loss.L2Loss()

    def steps(count):
        for _ in range(count):
            with autograd.record():
                losses = loss(net(x), 0 * net(x))
            losses.backward()
            trainer.step(8)
        nd.waitall()
        del losses
        return torch.cuda.memory_allocated()

    before = steps(10)
    assert steps(1000) <= before


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-4), ("bfloat16", 8e-3)])
@pytest.mark.parametrize("name, options", [
    ("sgd", {"momentum": 0.9}), ("nag", {"momentum": 0.9}), ("adam", {}), ("adamax", {}), ("rmsprop", {}), ("rmsprop", {"centered": True}),
    ("adagrad", {}), ("adadelta", {}), ("nadam", {}), ("ftrl", {}), ("ftml", {}), ("adamw", {}), ("adabelief", {}), ("dcasgd", {"momentum": 0.9})])
def test_optimizers_move_many_weights_by_one_kernel(name, options, dtype, tolerance, monkeypatch):
    """Weights of all sizes, one with its channels last, after three steps; as on a processor.

    Not Signum, where the last place of a momentum decides on the sign of a step.
    """
    if not updates_on_gpu.available(torch.device("cuda:0")):
        pytest.skip("no triton here, or the GPU is too old for it")
    results, starts, start = [], [], updates_on_gpu.start
    monkeypatch.setattr(updates_on_gpu, "start", lambda *args: (starts.append(start(*args)), starts[-1])[1])
    for ctx in (mx.cpu(), GPU):
        random = np.random.RandomState(0)
        optimizer = mx.optimizer.create(name, learning_rate=0.1, wd=0.01, rescale_grad=0.5, clip_gradient=0.4, multi_precision=True, **options)
        shapes = [(1,), (3, 5), (70000,), (8, 4, 3, 3), (257, 129)]
        weights = [mx.nd.array(random.randn(*shape), ctx=ctx, dtype=dtype) for shape in shapes]
        memory_format.channels_last(weights[3])
        updater = mx.optimizer.get_updater(optimizer)
        for _ in range(3):
            grads = [mx.nd.array(random.randn(*shape), ctx=ctx, dtype=dtype) for shape in shapes]
            updater(list(range(5)), grads, weights)
        results.append(weights)
    assert starts and all(starts)
    for on_gpu, expected in zip(results[1], results[0]):
        close(on_gpu, expected, tolerance)
