"""The passes for torch on a module that will run on a GPU: here it runs on the CPU, and must give what the module as it was gives."""
import platform
import types

import pytest
import torch

import mxnet as mx
from mxnet import processor
from mxnet.graph import GraphRunner
from mxnet.graph.backends import registry
from mxnet.graph.program import copied, operator_of
from mxnet.kernels.conv import convolution as direct
from mxnet.kernels.nn import batch_norm as fused
from mxnet.ops.nn import training_layers

GPU, CPU = torch.device("cuda", 0), torch.device("cpu")


def residual(dtype=None):
    """A residual block with pooling, a cast that AMP would make twice, and a dense layer."""
    def low(x):
        return x if dtype is None else mx.sym.amp_cast(x, dtype=dtype)

    x = mx.sym.var("x")
    stem = mx.sym.Convolution(low(x), low(mx.sym.var("w0")), kernel=(3, 3), pad=(1, 1), num_filter=8, no_bias=True, name="c0")
    a = mx.sym.Activation(mx.sym.BatchNorm(stem, fix_gamma=False, name="n0"), act_type="relu")
    a = mx.sym.Convolution(low(a), low(mx.sym.var("w1")), kernel=(3, 3), pad=(1, 1), num_filter=8, no_bias=True, name="c1")
    y = mx.sym.relu(mx.sym.BatchNorm(a, fix_gamma=False, name="n1") + stem)
    y = mx.sym.Pooling(y, kernel=(2, 2), stride=(2, 2), pool_type="max")
    return mx.sym.FullyConnected(y if dtype is None else mx.sym.amp_cast(y, dtype="float32"), mx.sym.var("w2"), num_hidden=3, no_bias=True)


SHAPES = {"x": (2, 3, 8, 8), "w0": (8, 3, 3, 3), "w1": (8, 8, 3, 3), "w2": (3, 128)}


def tensors(names):
    generator = torch.Generator().manual_seed(0)
    found = [torch.rand(SHAPES.get(name, (8,)), generator=generator) + 0.5 * name.endswith(("gamma", "var")) for name in names]
    return [t - 0.5 if t.dim() > 1 else t for t in found]


def results(module, names, train):
    given = [t.requires_grad_(train and not name.endswith(("mean", "var"))) for name, t in zip(names, tensors(names))]
    out, = module(*given)
    if train:
        (out ** 2).sum().backward()
    return [out.detach(), *(t.grad if t.grad is not None else t.detach() for t in given)]


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("dtype", [None, "bfloat16"])
def test_a_module_prepared_for_a_gpu_computes_the_same(train, dtype):
    if dtype and train and platform.machine() == "x86_64" and "avx512f" not in processor.flags():
        pytest.skip("convolutions of bfloat16 in the two orders of memory round differently on this processor")
    runner = GraphRunner(residual(dtype))
    plain = runner.lowered(train, CPU, [])
    prepared = copied(plain)
    report = registry.prepare(prepared, GPU)
    assert "layout: 2 convolutions with channels last, 1 arrays reordered before and 1 after them" in report
    assert ("memory: 2 x relu in place" in report) is not train
    assert {"fusion: 1 x batch norm + relu", "fusion: 1 x batch norm + add + relu"}.issubset(report) is train
    assert ("mixed precision: 1 x cast to the same type dropped" in report) is (dtype is not None)
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype is None else {"rtol": 2e-2, "atol": 2e-2}
    for found, expected in zip(results(prepared, runner.input_names, train), results(plain, runner.input_names, train)):
        torch.testing.assert_close(found, expected, **tolerance)


def test_convolutions_get_their_channels_last_and_no_kernel_for_cpus(monkeypatch):
    module = copied(GraphRunner(residual()).lowered(True, GPU, []))
    registry.prepare(module, GPU)
    targets = [n.target for n in module.graph.nodes if n.op == "call_function"]
    assert fused.batch_norm not in targets and direct.convolution not in targets and targets.count(training_layers.batch_norm) == 2
    orders = []
    for node in module.graph.nodes:
        op = operator_of(node)
        if op is not None and op.name == "Convolution":
            def observed(data, *args, _function=node.target, **kwargs):
                orders.append(data.is_contiguous(memory_format=torch.channels_last))
                return _function(data, *args, **kwargs)
            node.target = observed
    module.recompile()
    names = GraphRunner(residual()).input_names
    results(module, names, False)
    assert orders == [True, True]
    monkeypatch.setattr(registry, "wants_channels_last", lambda data: False)
    expected, found = (results(m, names, False)[0] for m in (GraphRunner(residual()).lowered(True, CPU, []), module))
    assert orders == [True, True, False, False]
    torch.testing.assert_close(found, expected)


def test_recurrent_parameters_stay_one_vector():
    w = mx.sym.Group([mx.sym.var(f"w{i}") for i in range(2)])
    symbol = mx.sym.RNN(mx.sym.var("x"), mx.sym._internal._rnn_param_concat(*w, dim=0, num_args=2), mx.sym.var("s"), state_size=3, num_layers=1,
                        mode="rnn_tanh")
    module = GraphRunner(symbol).lowered(True, CPU, [])
    assert registry.prepare(copied(module), GPU) == []
    assert registry.prepare(copied(module), CPU) == ["memory: 1 x recurrent layers without a copy of their parameters"]


def test_where_no_pass_runs(monkeypatch):
    module = GraphRunner(residual()).lowered(True, CPU, [])
    assert registry.prepare(copied(module), torch.device("meta")) == []
    assert not any(line.startswith("memory") for line in registry.prepare(copied(module), GPU, fuse=False))
    monkeypatch.setenv("MXNET_USE_FUSION", "0")
    assert registry.prepare(copied(module), GPU) == []


@pytest.mark.parametrize("dtype, capability, tf32, wanted", [
    (torch.float16, (7, 0), True, True), (torch.float16, (6, 1), True, False), (torch.float16, (9, 0), False, True),
    (torch.bfloat16, (7, 5), True, False), (torch.bfloat16, (8, 0), False, True),
    (torch.float32, (8, 0), True, True), (torch.float32, (8, 0), False, False), (torch.float32, (7, 5), True, False),
    (torch.float64, (9, 0), True, False)])
def test_channels_last_is_for_tensor_cores(monkeypatch, dtype, capability, tf32, wanted):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability if device == GPU else None)
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = tf32
    try:
        assert registry.wants_channels_last(types.SimpleNamespace(dtype=dtype, device=GPU)) is wanted
    finally:
        torch.backends.cudnn.allow_tf32 = before
    assert registry.wants_channels_last(torch.ones(1, dtype=dtype)) is True


@pytest.mark.parametrize("wanted", [True, False])
def test_weights_change_their_order_only_where_convolutions_want_it(monkeypatch, wanted):
    monkeypatch.setattr(registry, "wants_channels_last", lambda data: wanted)
    runner = GraphRunner(residual())
    context = types.SimpleNamespace(torch_device=GPU, device_id=0, device_typeid=2)
    runner(tensors(runner.input_names), is_train=True, ctx=context)
    assert [runner.input_names[i] for i in runner.channels_last] == (["w0", "w1"] if wanted else [])


def test_a_backend_for_cpus_says_so():
    with pytest.raises(mx.MXNetError, match=r"'openvino' runs on mx.cpu\(\) only, but the graph is on cuda:0; move .* as_in_context\(mx.cpu\(\)\)"):
        runner = GraphRunner(mx.sym.var("x") + 1, backend="openvino")
        runner([torch.ones(1)], ctx=types.SimpleNamespace(torch_device=GPU, device_id=0, device_typeid=2))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("dtype", [None, "float16", "bfloat16"])
def test_on_a_gpu_the_prepared_module_computes_the_same(train, dtype):
    runner = GraphRunner(residual(dtype))
    plain = runner.lowered(train, GPU, [])
    prepared = copied(plain)
    assert registry.prepare(prepared, GPU)
    found = []
    for module in (prepared, plain):
        given = [t.to(GPU).requires_grad_(train and not name.endswith(("mean", "var")))
                 for name, t in zip(runner.input_names, tensors(runner.input_names))]
        out, = module(*given)
        if train:
            (out ** 2).sum().backward()
        found.append([out.detach(), *(t.grad if t.grad is not None else t.detach() for t in given)])
    for a, b in zip(*found):
        torch.testing.assert_close(a, b, rtol=2e-2, atol=2e-2 * float(b.abs().max()))

