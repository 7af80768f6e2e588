"""What programs do with a GPU besides training: contexts, random numbers, files, loaders, sparse arrays, the profiler, kernels of their own."""
import json
import subprocess
import sys

import numpy as np
import pytest
import torch

import mxnet as mx
from gpu_checks import GPU, close, needs_gpu
from mxnet import autograd, gluon, nd, npx

pytestmark = needs_gpu


def small_network(ctx=GPU):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(4, 3, in_channels=3), gluon.nn.BatchNorm(in_channels=4), gluon.nn.Activation("relu"), gluon.nn.GlobalAvgPool2D(),
            gluon.nn.Flatten(), gluon.nn.Dense(5, in_units=4))
    net.initialize(mx.init.Xavier(), ctx=ctx)
    return net


def images(ctx=GPU):
    return nd.array(np.random.RandomState(0).rand(2, 3, 12, 12), ctx=ctx)


def test_contexts_of_arrays():
    assert mx.context.num_gpus() == torch.cuda.device_count()
    free, total = mx.context.gpu_memory_info(0)
    assert 0 < free <= total
    x = nd.ones((2, 3), ctx=GPU)
    assert x.context == GPU and (x + 1).context == GPU and x.copyto(mx.cpu()).context == mx.cpu()
    with mx.Context(GPU):
        assert nd.zeros(2).context == GPU and nd.arange(3).context == GPU and nd.random.normal(shape=(2,)).context == GPU
    pinned = nd.ones((2, 2), ctx=mx.cpu_pinned())
    assert pinned.copyto(GPU).context == GPU


def test_a_missing_gpu_and_mixed_contexts_are_refused():
    count = torch.cuda.device_count()
    with pytest.raises(mx.MXNetError, match=rf"gpu\({count}\) is not available: torch sees {count} GPU"):
        nd.ones(2, ctx=mx.gpu(count))
    with pytest.raises(mx.MXNetError, match="all inputs must be on one device"):
        nd.ones(2, ctx=GPU) + nd.ones(2)


def test_scalars_keep_their_shape():
    with mx.util.np_shape(True):
        assert mx.np.array(3.0, ctx=GPU).asnumpy().shape == () and nd.ones((), ctx=GPU).asnumpy().shape == ()


def test_a_seed_repeats_numbers():
    def draw():
        mx.random.seed(5)
        return [nd.random.normal(shape=(100,), ctx=GPU).asnumpy(), nd.random.gamma(shape=(9,), ctx=GPU).asnumpy(),
                nd.random.multinomial(nd.array([0.2, 0.8], ctx=GPU), shape=20).asnumpy(), nd.shuffle(nd.arange(30, ctx=GPU)).asnumpy()]
    for a, b in zip(draw(), draw()):
        np.testing.assert_array_equal(a, b)
    first = draw()[0]
    assert abs(first.mean()) < 0.4 and (nd.random.normal(shape=(100,), ctx=GPU).asnumpy() != first).any()


def test_arrays_of_numpy():
    npx.set_np()
    try:
        x = mx.np.random.uniform(size=(4, 5), ctx=GPU)
        assert x.ctx == GPU and mx.np.linalg.svd(x)[0].ctx == GPU
        close(mx.np.einsum("ij,kj->ik", x, x).asnumpy(), x.asnumpy() @ x.asnumpy().T, 2e-3)
    finally:
        npx.reset_np()


def test_custom_operators():
    class Scaled(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            assert in_data[0].context == GPU
            self.assign(out_data[0], req[0], in_data[0] * 3)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * 3)

    @mx.operator.register("scaled_on_gpu")
    class _(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Scaled()

    x = nd.array([1, 2], ctx=GPU)
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x, op_type="scaled_on_gpu")
    y.backward()
    assert y.asnumpy().tolist() == [3, 6] and x.grad.asnumpy().tolist() == [3, 3] and x.grad.context == GPU


@pytest.mark.parametrize("options", [{}, {"static_alloc": True, "static_shape": True}])
def test_networks_score_as_on_a_processor(options, exact):
    net = small_network(mx.cpu())
    expected = net(images(mx.cpu()))
    net.collect_params().reset_ctx(GPU)
    net.hybridize(**options)
    for _ in range(4):
        out = net(images())
        close(out, expected)
    assert out.context == GPU
    if options:
        assert "captured as a CUDA graph" in net.explain()


def test_files(tmp_path):
    x = images()
    net = small_network()
    net.hybridize()
    expected = net(x)
    net.export(str(tmp_path / "net"))
    net.save_parameters(str(tmp_path / "net.params"))
    loaded = gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), "data", str(tmp_path / "net-0000.params"), ctx=GPU)
    other = small_network(GPU)
    other.load_parameters(str(tmp_path / "net.params"), ctx=GPU)
    for again in (loaded(x), other(x)):
        assert again.context == GPU
        close(again, expected, 1e-3)
    nd.save(str(tmp_path / "arrays"), {"x": x})
    np.testing.assert_array_equal(nd.load(str(tmp_path / "arrays"))["x"].asnumpy(), x.asnumpy())


def test_sparse_arrays():
    random = np.random.RandomState(0)
    dense = random.rand(5, 6) * (random.rand(5, 6) < 0.4)
    matrix, weight = nd.array(dense, ctx=GPU).tostype("csr"), nd.array(random.rand(6, 3), ctx=GPU)
    product = nd.sparse.dot(matrix, weight)
    assert matrix.context == GPU and product.context == GPU
    close(product, dense.astype("float32") @ weight.asnumpy(), 2e-3)
    rows = nd.sparse.row_sparse_array((np.ones((2, 3)), [1, 4]), shape=(6, 3), ctx=GPU)
    assert nd.sparse.retain(rows, nd.array([1], ctx=GPU)).asnumpy().sum() == 3
    embedding = gluon.nn.Embedding(50, 4, sparse_grad=True)
    embedding.initialize(ctx=GPU)
    before = embedding.weight.data(GPU).asnumpy()
    trainer = gluon.Trainer(embedding.collect_params(), "sgd", {"learning_rate": 1})
    with autograd.record():
        out = embedding(nd.array([1, 5, 5], ctx=GPU)).sum()
    out.backward()
    assert embedding.weight.grad(GPU).stype == "row_sparse"
    trainer.step(1)
    changed = np.abs(embedding.weight.data(GPU).asnumpy() - before).sum(axis=1)
    np.testing.assert_allclose(changed[[1, 5]], [4, 8], rtol=1e-5)
    assert not changed[[0, 2, 3, 4, *range(6, 50)]].any()


@pytest.mark.parametrize("kind", ["local", "device", "nccl"])
def test_stores(kind):
    store = mx.kv.create(kind)
    store.init(3, nd.ones((2, 3), ctx=GPU))
    store.push(3, [nd.ones((2, 3), ctx=GPU)] * 2)
    out = nd.zeros((2, 3), ctx=GPU)
    store.pull(3, out=out)
    assert out.asnumpy().tolist() == [[2.0] * 3] * 2


def test_two_processes_on_one_gpu():
    program = """if True:
        import mxnet as mx
        store = mx.kv.create('dist_sync')
        ctx = mx.gpu(0)
        store.init(1, mx.nd.zeros(4, ctx=ctx))
        store.push(1, mx.nd.ones(4, ctx=ctx) * (store.rank + 1))
        out = mx.nd.zeros(4, ctx=ctx)
        store.pull(1, out=out)
        assert (out.asnumpy() == 3).all() and out.context == ctx, out
    """
    done = subprocess.run([sys.executable, "-m", "mxnet.tools.launch", "-n", "2", "--launcher", "local", sys.executable, "-c", program],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]


def test_loaders_with_workers_and_pinned_memory():
    data = gluon.data.ArrayDataset(np.random.rand(64, 3, 8, 8).astype("float32"), np.arange(64))
    seen = []
    for x, y in gluon.data.DataLoader(data, 16, num_workers=2, pin_memory=True):
        assert x.context.device_type.startswith("cpu")
        assert x.as_in_context(GPU).context == GPU
        seen += y.as_in_context(GPU).asnumpy().astype(int).tolist()
    assert seen == list(range(64))


def test_workers_that_touch_a_gpu_are_told():
    class OnGPU(gluon.data.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return nd.ones(2, ctx=GPU) * i

    nd.ones(1, ctx=GPU).wait_to_read()
    with pytest.raises(Exception, match="a forked process can't use a GPU"):
        list(gluon.data.DataLoader(OnGPU(), 1, num_workers=1))


def test_the_profiler_tells_of_kernels(tmp_path):
    net = small_network()
    net.hybridize()
    net(images())
    path = tmp_path / "profile.json"
    mx.profiler.set_config(profile_all=True, aggregate_stats=True, filename=str(path))
    mx.profiler.set_state("run")
    with autograd.record():
        loss = net(images()).sum()
    loss.backward()
    nd.waitall()
    mx.profiler.set_state("stop")
    table = mx.profiler.dumps()
    mx.profiler.dump()
    events = json.loads(path.read_text())["traceEvents"]
    assert "Convolution" in table and any(e.get("cat") == "gpu" for e in events)


def test_kernels_of_the_user():
    module = mx.rtc.CudaModule("""extern "C" __global__ void shifted(float *out, int by) {
        out[threadIdx.x] = threadIdx.x + by;
    }""")
    kernel = module.get_kernel("shifted", "float *out, int by")
    out = nd.zeros(32, ctx=GPU)
    kernel.launch([out, 3], GPU, (1, 1, 1), (32, 1, 1))
    assert out.asnumpy().tolist() == list(range(3, 35))


@pytest.mark.filterwarnings("ignore")  # of torch's compiler
def test_inductor_computes_the_same(exact):
    net = small_network()
    expected = net(images())
    net.optimize_for(images(), backend="inductor")
    close(net(images()), expected, 1e-3)


def test_too_large_an_array_leaves_the_process_usable():
    with pytest.raises((mx.MXNetError, MemoryError), match="out of memory"):
        nd.empty((1 << 40,), ctx=GPU)
    assert (nd.ones(3, ctx=GPU) * 2).asnumpy().tolist() == [2, 2, 2]


def test_too_large_a_step_leaves_training_usable():
    weight = nd.ones((4, 4), ctx=GPU)
    weight.attach_grad()
    with pytest.raises(mx.MXNetError, match="out of memory"):
        with autograd.record():
            nd.broadcast_to(weight.reshape((1, 4, 4)), shape=(1 << 36, 4, 4)).sum().backward()
    with autograd.record():
        loss = (weight * 2).sum()
    loss.backward()
    assert weight.grad.asnumpy().tolist() == [[2.0] * 4] * 4


def test_arrays_of_the_host_may_be_written_to_right_after_their_copy():
    """The GPU still multiplies when it is asked for the copies."""
    busy, host = nd.ones((4096, 4096), ctx=GPU), nd.zeros((1000, 1000))
    there, found = nd.zeros((1000, 1000), ctx=GPU), []
    for i in range(10):
        for _ in range(3):
            nd.dot(busy, busy)
        host[:] = i
        found.append(host.as_in_context(GPU))
        there[:] = host
        found.append(there.copy())
        host[:] = -1
    assert [(a.min().asscalar(), a.max().asscalar()) for a in found] == [(i, i) for i in range(10) for _ in range(2)]


def test_memory_goes_back():
    nd.waitall()
    before = torch.cuda.memory_allocated()
    for _ in range(50):
        nd.ones((1 << 18,), ctx=GPU) * 2
    nd.waitall()
    assert torch.cuda.memory_allocated() == before
    GPU.empty_cache()
    assert torch.cuda.memory_reserved() >= before
