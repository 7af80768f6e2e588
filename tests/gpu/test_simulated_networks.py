"""What programs do besides training, on simulated GPUs: mx.np, images, control flow, operators in Python, and arrays."""
import numpy as np
import pytest

import mxnet as mx
from gpu_operator_runs import check_same
from mxnet import _deferred_compute
from simulated_gpus import Watch, gpus, lies_on

IMAGE = (np.sin(np.arange(20 * 24 * 3)).reshape(20, 24, 3) * 100 + 120).astype("uint8")


@pytest.fixture
def gpu():
    with gpus() as (first, _), first:
        yield first


def both_ways(compute, tolerance=1e-5):
    """What `compute(ctx)` returns, an array or several, is the same on both devices."""
    expected = compute(mx.cpu())
    with gpus() as (gpu, _), gpu:
        found = compute(gpu)
        for a, b in zip(*(r if isinstance(r, (list, tuple)) else [r] for r in (found, expected)), strict=True):
            check_same(a, b, gpu, tolerance=tolerance)


NP = {
    "arithmetic": lambda a: (a + 1) * a - a / 2 + a ** 2, "comparison": lambda a: (a > 0) & (a < 1), "sum": lambda a: a.sum(axis=1),
    "mean": lambda a: mx.np.mean(a, keepdims=True), "std": lambda a: a.std(), "cumsum": lambda a: a.cumsum(0), "argmax": lambda a: a.argmax(),
    "reshape": lambda a: a.reshape(-1, 2), "transpose": lambda a: a.T, "concatenate": lambda a: mx.np.concatenate([a, a], 1),
    "stack": lambda a: mx.np.stack([a, a]), "split": lambda a: mx.np.split(a, 2, 1), "where": lambda a: mx.np.where(a > 0, a, -a),
    "matmul": lambda a: mx.np.dot(a, a.T), "einsum": lambda a: mx.np.einsum("ij,kj->ik", a, a), "tensordot": lambda a: mx.np.tensordot(a, a, 2),
    "sort": lambda a: mx.np.sort(a), "argsort": lambda a: mx.np.argsort(a), "unique": lambda a: mx.np.unique(a), "index": lambda a: a[1:, ::2],
    "index by arrays": lambda a: a[mx.np.array([0, 2], dtype="int64")], "mask": lambda a: a[a > 0], "nonzero": lambda a: mx.np.nonzero(a > 0),
    "astype": lambda a: a.astype("int32"), "arange": lambda a: mx.np.arange(5), "zeros": lambda a: mx.np.zeros((2, 3)),
    "eye": lambda a: mx.np.eye(3), "linspace": lambda a: mx.np.linspace(0, 1, 5), "full_like": lambda a: mx.np.full_like(a, 2),
    "meshgrid": lambda a: mx.np.meshgrid(a[0], a[1]), "norm": lambda a: mx.np.linalg.norm(a),
    "inv": lambda a: mx.np.linalg.inv(a[:3, :3] + 3 * mx.np.eye(3)),
    "svd": lambda a: mx.np.linalg.svd(a), "pad": lambda a: mx.np.pad(a, 1, mode="edge"), "clip": lambda a: mx.np.clip(a, -0.5, 0.5),
    "softmax": lambda a: mx.npx.softmax(a), "one_hot": lambda a: mx.npx.one_hot(mx.np.array([0, 2]), 3), "topk": lambda a: mx.npx.topk(a, k=2),
    "insert": lambda a: mx.np.insert(a, 1, 5.0, axis=1), "delete": lambda a: mx.np.delete(a, 1, axis=0), "roll": lambda a: mx.np.roll(a, 1),
    "histogram": lambda a: mx.np.histogram(a, bins=4, range=(-1, 1)), "percentile": lambda a: mx.np.percentile(a, 30),
    "average": lambda a: mx.np.average(a, axis=0, weights=mx.np.arange(3)), "interp": lambda a: mx.np.interp(a, mx.np.arange(3), mx.np.arange(3) * 2),
}


@pytest.mark.parametrize("name", NP)
def test_numpy(name):
    both_ways(lambda ctx: NP[name](mx.np.array(np.sin(np.arange(12)).reshape(3, 4), ctx=ctx)))


def test_numpy_writes_and_gradients():
    def compute(ctx):
        a = mx.np.array(np.arange(6.0).reshape(2, 3), ctx=ctx)
        a[0, 1] = 7
        a[:, 2] += 1
        a[a > 4] = -1
        a.attach_grad()
        with mx.autograd.record():
            out = mx.np.tanh(a[:, 1:] * 0.3).sum()
        out.backward()
        return [a, out, a.grad]

    both_ways(compute)


def test_lists_of_indices_go_to_the_array_that_a_traced_block_indexes(gpu):
    check_same(_deferred_compute._indices([0, 2], mx.np.ones((3, 2))), mx.np.array([0, 2], dtype="int64", ctx=mx.cpu()), gpu)


@pytest.mark.parametrize("name", ["uniform", "normal", "randint", "choice", "shuffle", "multinomial", "gamma", "bernoulli"])
def test_random_numbers_lie_on_the_gpu_and_follow_the_seed(gpu, name):
    def draw():
        mx.random.seed(5)
        if name == "shuffle":
            array = mx.np.arange(9)
            mx.np.random.shuffle(array)
            return array
        function = getattr(mx.npx.random if name == "bernoulli" else mx.np.random, name)
        arguments = {"randint": (0, 5), "choice": (9,), "multinomial": (5, [0.2, 0.8]), "gamma": (2.0,), "bernoulli": (0.5,)}
        return function(*arguments.get(name, ()), size=(3, 4))

    first, second = draw(), draw()
    check_same(first, second.as_in_ctx(mx.cpu()), gpu)


AUGMENTERS = {
    "resize": lambda: mx.image.ResizeAug(10), "force": lambda: mx.image.ForceResizeAug((8, 9)), "center": lambda: mx.image.CenterCropAug((8, 9)),
    "crop": lambda: mx.image.RandomCropAug((8, 9)), "sized": lambda: mx.image.RandomSizedCropAug((8, 9), 0.5, (0.8, 1.2)),
    "mirror": lambda: mx.image.HorizontalFlipAug(1.0),
    "cast": lambda: mx.image.CastAug(), "brightness": lambda: mx.image.BrightnessJitterAug(0.5), "contrast": lambda: mx.image.ContrastJitterAug(0.5),
    "saturation": lambda: mx.image.SaturationJitterAug(0.5), "hue": lambda: mx.image.HueJitterAug(0.5),
    "lighting": lambda: mx.image.LightingAug(0.1, np.ones(3), np.eye(3)),
    "gray": lambda: mx.image.RandomGrayAug(1.0),
    "normalize": lambda: mx.image.ColorNormalizeAug(mx.nd.array([100, 110, 120]), mx.nd.array([1, 2, 3])),
    "jitter": lambda: mx.image.ColorJitterAug(0.1, 0.1, 0.1),
}


@pytest.mark.parametrize("name", AUGMENTERS)
def test_augmenters(name):
    import random

    def compute(ctx):
        random.seed(1)
        np.random.seed(1)
        mx.random.seed(1)
        image = mx.nd.array(IMAGE, dtype="uint8" if name in ("resize", "force", "center", "crop", "sized", "mirror", "cast") else "float32", ctx=ctx)
        return AUGMENTERS[name]()(image)

    both_ways(compute, tolerance=1e-3)


def test_transforms():
    steps = mx.gluon.data.vision.transforms
    compose = steps.Compose([steps.Resize(12), steps.CenterCrop(10), steps.ToTensor(), steps.Normalize((0.1, 0.2, 0.3), (1, 2, 3))])
    both_ways(lambda ctx: compose(mx.nd.array(IMAGE, dtype="uint8", ctx=ctx)))


def test_batches_of_a_data_loader(gpu):
    dataset = mx.gluon.data.ArrayDataset(np.arange(12.0, dtype="f4").reshape(6, 2), np.arange(6))
    batches = list(mx.gluon.data.DataLoader(dataset, batch_size=3))
    for (x, y), start in zip(batches, (0, 3), strict=True):  # they lie on the current context
        check_same(x, mx.nd.arange(2 * start, 2 * start + 6, ctx=mx.cpu()).reshape((3, 2)), gpu)
        check_same(y, mx.nd.arange(start, start + 3, ctx=mx.cpu(), dtype="int64"), gpu)


def test_control_flow():
    def compute(ctx):
        x = mx.nd.array(np.arange(6.0).reshape(3, 2), ctx=ctx)
        x.attach_grad()
        with mx.autograd.record():
            out, state = mx.nd.contrib.foreach(lambda d, s: (d * s, s + d), x, mx.nd.ones(2, ctx=ctx))
            last = mx.nd.contrib.while_loop(lambda i, s: i < 3, lambda i, s: (s, (i + 1, s * 2)), (mx.nd.zeros(1, ctx=ctx), state),
                                            max_iterations=5)[1][1]
            chosen = mx.nd.contrib.cond(last.sum() > 3, lambda: last * 2, lambda: last)
        mx.autograd.backward([out, chosen])
        return [out, state, last, chosen, x.grad]

    both_ways(compute)


def test_control_flow_in_graphs():
    data, state = mx.sym.var("data"), mx.sym.var("state")
    out, last = mx.sym.contrib.foreach(lambda d, s: (d * s[0], [s[0] + d]), data, [state])
    steps, _ = mx.sym.contrib.while_loop(lambda i: i < 3, lambda i: (i * 2, i + 1), mx.sym.sum(data) * 0, max_iterations=4)
    chosen = mx.sym.contrib.cond(mx.sym.sum(state) > 1, lambda: last[0] * 2, lambda: last[0])
    graph = mx.sym.Group([out, last[0], steps[0] if isinstance(steps, list) else steps, chosen])

    def compute(ctx):
        executor = graph.bind(ctx, {"data": mx.nd.array(np.arange(6.0).reshape(3, 2), ctx=ctx), "state": mx.nd.ones(2, ctx=ctx)})
        return executor.forward()

    both_ways(compute)


class _Square(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] ** 2)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], 2 * in_data[0] * out_grad[0])


@mx.operator.register("simulated_square")
class _SquareProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return _Square()


def test_operators_in_python():
    def compute(ctx):
        x = mx.nd.array([1, 2, 3], ctx=ctx)
        x.attach_grad()
        with mx.autograd.record():
            out = mx.nd.Custom(x, op_type="simulated_square")
        out.backward()
        executor = mx.sym.Custom(mx.sym.var("x"), op_type="simulated_square").bind(ctx, {"x": x})
        return [out, x.grad, executor.forward()[0]]

    both_ways(compute)


def test_operators_in_python_on_the_host_while_a_gpu_is_current(gpu):
    x = mx.nd.array([1, 2, 3], ctx=mx.cpu())
    executor = mx.sym.Custom(mx.sym.var("x"), op_type="simulated_square").bind(mx.cpu(), {"x": x})
    out, = executor.forward()
    assert out.context == mx.cpu() and out._data.is_cpu and out.asnumpy().tolist() == [1, 4, 9]


class _Halves(mx.autograd.Function):
    def forward(self, x):
        return x / 2, x * 2

    def backward(self, half, double):
        half[:] = half / 2
        return half + double * 2


def test_functions_in_python():
    def compute(ctx):
        x = mx.nd.array([1, 2, 3], ctx=ctx)
        x.attach_grad()
        with mx.autograd.record():
            half, _ = _Halves()(x)  # the other's gradient is torch's own zeros
        half.backward()
        return [half, x.grad]

    both_ways(compute)


def test_second_gradients():
    def compute(ctx):
        x = mx.nd.array([0.5, 1, 2], ctx=ctx)
        x.attach_grad()
        with mx.autograd.record():
            y = mx.nd.sin(x) * x
            first, = mx.autograd.grad(y, [x], create_graph=True, retain_graph=True)
        first.backward()
        return [first, x.grad]

    both_ways(compute)


def test_arrays(gpu):
    a = mx.nd.array([[1, 2], [3, 4]])
    assert a.context == gpu and repr(a).endswith("<NDArray 2x2 @gpu(0)>") and a.sum().asscalar() == 10
    other = a.as_in_context(mx.gpu(1))
    assert other.context == mx.gpu(1) and a.copyto(mx.cpu()).context == mx.cpu() and other.context == mx.gpu(1)
    assert other.copyto(mx.nd.zeros((2, 2))).asnumpy().tolist() == [[1, 2], [3, 4]]
    with pytest.raises(mx.MXNetError, match="gpu"):
        a + other
    with pytest.raises(mx.MXNetError):
        a + mx.nd.ones((2, 2), ctx=mx.cpu())
    with pytest.raises(mx.MXNetError, match=r"gpu\(2\) is not available: torch sees 2 GPU"):
        mx.nd.ones(1, ctx=mx.gpu(2))
    assert mx.context.num_gpus() == 2 and mx.context.gpu_memory_info() == (1 << 30, 2 << 30)
    with Watch() as watch:
        a[:] = a * 2
        a += 1
        a[0] = 5
        mx.nd.waitall()
    assert (watch.waits, watch.copies, a.asnumpy().tolist()) == ([], [], [[5, 5], [7, 9]])


def test_batches_go_to_the_gpu_without_a_wait(gpu):
    """Arrays of the host that are copied, assigned, split or loaded, and NumPy's."""
    host, values = mx.nd.ones((130, 128)), np.ones((130, 128), "float32")
    there = mx.nd.zeros((130, 128), ctx=gpu)
    with Watch() as watch:
        made = [host.as_in_context(gpu), host.copyto(there), mx.nd.array(values, ctx=gpu), mx.np.array(values, ctx=gpu),
                *mx.gluon.utils.split_and_load(values, [gpu])]
        there[:] = host
        there[2:4] = host[:2]
    assert not watch.copies and not watch.waits
    assert all(a.ctx == gpu and lies_on(a._data, gpu.torch_device) and a.asnumpy().sum() == 130 * 128 for a in [*made, there])


def test_files(gpu, tmp_path):
    path = str(tmp_path / "arrays.params")
    mx.nd.save(path, {"a": mx.nd.array([1, 2]), "b": mx.nd.ones((2, 2), dtype="float16", ctx=mx.gpu(1))})
    loaded = mx.nd.load(path)
    assert {n: (a.asnumpy().tolist(), a.dtype.__name__) for n, a in loaded.items()} == {"a": ([1, 2], "float32"), "b": ([[1, 1]] * 2, "float16")}


def test_mixed_precision():
    def compute(ctx):
        net = mx.gluon.nn.HybridSequential()
        net.add(mx.gluon.nn.Dense(4, activation="relu"), mx.gluon.nn.Dense(2))
        net.initialize(mx.init.Constant(0.25), ctx=ctx)
        net.cast("float16")
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "multi_precision": True})
        x = mx.nd.array(np.arange(6).reshape(2, 3) / 6, dtype="float16", ctx=ctx)
        with mx.autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        trainer.step(2)
        return [loss, net[0].weight.data(ctx), net[1].weight.data(ctx)]

    both_ways(compute, tolerance=2e-3)
