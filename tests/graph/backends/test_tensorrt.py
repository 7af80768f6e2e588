"""The backend `tensorrt` on a stand-in for torch_tensorrt that runs the exported program on torch: the export is real, the engines are not."""
import sys
import types

import pytest
import torch

import mxnet as mx
from mxnet.graph import GraphRunner
from mxnet.graph.backends import registry, tensorrt


class Engine(torch.nn.Module):
    """What torch_tensorrt returns: a module with the pieces that became engines as children."""

    def __init__(self, exported, settings, engines):
        super().__init__()
        self.settings, self.called = settings, []
        for i in range(engines):
            self.add_module(f"_run_on_acc_{i}", torch.nn.Identity())
        # Not a child: the weights that the program holds are those of the engine.
        self.__dict__["function"] = exported.module()
        self.buffers_built_in = {name: value.clone() for name, value in exported.named_buffers()}

    def forward(self, *data):
        assert all(t.is_contiguous() for t in data)
        self.called.append([tuple(t.shape) for t in data])
        found = self.function(*data)
        low = self.settings.get("autocast_low_precision_type")
        return torch.utils._pytree.tree_map(lambda t: t.to(low) if low is not None and t.is_floating_point() else t, found)


@pytest.fixture
def package(monkeypatch):
    """torch_tensorrt with the signature of 2.11 to 2.13, as far as the backend uses it, for inputs on the CPU."""
    fake = types.ModuleType("torch_tensorrt")
    fake.compiled, fake.engines = [], 1

    def compile(exported_program, inputs=None, *, arg_inputs=None, device=None, disable_tf32=False, workspace_size=0, min_block_size=5,
                optimization_level=None, enable_autocast=False, autocast_low_precision_type=None):
        assert isinstance(exported_program, torch.export.ExportedProgram) and device == torch.device("cpu")
        settings = {k: v for k, v in locals().items() if k in (
            "disable_tf32", "workspace_size", "min_block_size", "optimization_level", "enable_autocast", "autocast_low_precision_type")}
        fake.compiled.append(Engine(exported_program, settings, fake.engines))
        fake.compiled[-1].examples = [(tuple(t.shape), t.dtype) for t in arg_inputs]
        return fake.compiled[-1]

    fake.dynamo = types.SimpleNamespace(compile=compile)
    monkeypatch.setitem(sys.modules, "torch_tensorrt", fake)
    monkeypatch.setattr(tensorrt.TensorRT, "devices", ("cpu",))
    return fake


def numbers(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def dense(name="fc"):
    return mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=4, name=name)


def test_weights_are_built_in_and_data_is_not(package):
    runner = GraphRunner(dense(), backend="TensorRT")
    x, w, b = numbers(2, 3), numbers(4, 3, seed=1), numbers(4, seed=2)
    for data in (x, x.t().contiguous().t() + 1):
        torch.testing.assert_close(runner([data, w, b])[0], data @ w.T + b)
    engine, = package.compiled
    assert engine.examples == [((2, 3), torch.float32)] and engine.called == [[(2, 3)]] * 2
    assert sorted(tuple(t.shape) for t in engine.buffers_built_in.values()) == [(4,), (4, 3)]
    assert "tensorrt: 1 engines for 1 operators" in runner.explain()


def test_weights_that_change_are_built_in_anew(package):
    x = mx.nd.ones((2, 3))
    net = mx.gluon.nn.Dense(4, in_units=3)
    net.initialize(mx.init.One())
    net.hybridize(backend="tensorrt")
    assert net(x).asnumpy().tolist() == [[3] * 4] * 2 == net(x).asnumpy().tolist()
    net.weight.set_data(mx.nd.ones((4, 3)) * 2)
    assert net(x).asnumpy().tolist() == [[6] * 4] * 2
    assert net(mx.nd.ones((1, 3))).asnumpy().tolist() == [[6] * 4]
    assert len(package.compiled) == 3


def test_networks_of_the_zoo_can_be_exported(package):
    mx.random.seed(1)
    for name in ("resnet18_v2", "mobilenetv2_0.25"):
        net = mx.gluon.model_zoo.vision.get_model(name, classes=5)
        net.initialize(mx.init.Xavier())
        x = mx.nd.random.normal(shape=(1, 3, 64, 64))
        expected = net(x).asnumpy()
        net.hybridize(backend="tensorrt")
        mx.test_utils.assert_almost_equal(net(x).asnumpy(), expected, rtol=1e-4, atol=1e-6)
    assert len(package.compiled) == 2


@pytest.mark.parametrize("options, settings", [
    ({}, {}), ({"precision": "fp32"}, {}),
    ({"precision": "fp16"}, {"enable_autocast": True, "autocast_low_precision_type": torch.float16}),
    ({"precision": "bfloat16", "workspace_size": "1024"},
     {"enable_autocast": True, "autocast_low_precision_type": torch.bfloat16, "workspace_size": 1024}),
    ({"min_block_size": 1, "optimization_level": 5}, {"min_block_size": 1, "optimization_level": 5})])
def test_options_reach_torch_tensorrt_and_outputs_keep_their_types(package, options, settings):
    y, = GraphRunner(dense(), backend="tensorrt", options=options)([numbers(2, 3), numbers(4, 3), numbers(4)])
    plain = {"disable_tf32": False, "workspace_size": 0, "min_block_size": 5, "optimization_level": None, "enable_autocast": False,
             "autocast_low_precision_type": None}
    assert package.compiled[0].settings == {**plain, **settings}
    assert y.dtype is torch.float32
    torch.testing.assert_close(y, numbers(2, 3) @ numbers(4, 3).T + numbers(4), rtol=2e-2, atol=2e-2)


def test_without_tf32_engines_have_none(package):
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        GraphRunner(dense(), backend="tensorrt")([numbers(2, 3), numbers(4, 3), numbers(4)])
    finally:
        torch.backends.cudnn.allow_tf32 = before
    assert package.compiled[0].settings["disable_tf32"] is True


@pytest.mark.parametrize("options, message", [
    ({"precision": "int8"}, "`precision` must be one of float32, fp32, float16, fp16, bfloat16, bf16, received 'int8'"),
    ({"workspace_size": -1}, "`workspace_size` must be an integer from 0 on, received -1"),
    ({"min_block_size": "few"}, "`min_block_size` must be an integer from 1 on, received 'few'"),
    ({"optimization_level": 6}, "`optimization_level` must be an integer from 0 to 5, received 6"),
    ({"calibration_iters": 4}, "has no option 'calibration_iters'; it has min_block_size, optimization_level, precision, workspace_size")])
def test_bad_options(package, options, message):
    with pytest.raises(mx.MXNetError, match=message):
        GraphRunner(dense(), backend="tensorrt", options=options)([numbers(2, 3), numbers(4, 3), numbers(4)])
    with pytest.raises(mx.MXNetError, match=message):
        dense().optimize_for("TensorRT", **options)


def test_what_draws_stays_native(package):
    hidden = mx.sym.Dropout(mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=64, name="a", no_bias=True), p=0.5, mode="always", name="drop")
    runner = GraphRunner(mx.sym.FullyConnected(hidden, num_hidden=64, name="b", no_bias=True), backend="tensorrt")
    given = [numbers(2, 3), numbers(64, 3, seed=1), torch.eye(64)]
    first, second = runner(given)[0], runner(given)[0]
    expected = given[0] @ given[1].T * 2
    for y in (first, second):
        kept = y != 0
        assert 0.2 < kept.float().mean() < 0.8
        torch.testing.assert_close(y[kept], expected[kept])
    assert not torch.equal(first, second) and len(package.compiled) == 2
    assert [e.examples for e in package.compiled] == [[((2, 3), torch.float32)], [((2, 64), torch.float32)]]
    assert "native: dropout" in runner.explain() and runner.explain().count("tensorrt: 1 engines for 1 operators") == 2


def test_what_torch_tensorrt_leaves_to_torch_is_said(package):
    package.engines = 0
    runner = GraphRunner(dense(), backend="tensorrt")
    runner([numbers(2, 3), numbers(4, 3), numbers(4)])
    assert "native: torch_tensorrt made no engine of it" in runner.explain()


def test_outputs_of_all_kinds(package):
    x, w = mx.sym.var("x"), mx.sym.var("w")
    y = mx.sym.FullyConnected(x, w, num_hidden=4, no_bias=True)
    runner = GraphRunner(mx.sym.Group([y, x, w * 2, mx.sym.argmax(y, axis=1)]), weights=[1], backend="tensorrt")
    a, b = numbers(2, 3), numbers(4, 3, seed=1)
    found = runner([a, b])
    for got, expected in zip(found, (a @ b.T, a, b * 2, (a @ b.T).argmax(1).float())):
        torch.testing.assert_close(got, expected)
    only_weights = GraphRunner(w * 2, weights=[0], backend="tensorrt")
    torch.testing.assert_close(only_weights([b])[0], b * 2)
    assert "native: what depends on weights alone" in only_weights.explain()


def test_training_is_native(package):
    w = numbers(4, 3).requires_grad_()
    y, = GraphRunner(dense(), backend="tensorrt")([numbers(2, 3), w, numbers(4)], is_train=True)
    y.sum().backward()
    torch.testing.assert_close(w.grad, numbers(2, 3).sum(0).expand(4, 3))
    assert not package.compiled and not registry.get("tensorrt").trains


def test_errors_of_the_compiler_are_told(package):
    def fail(*args, **kwargs):
        raise RuntimeError("no kernel for this GPU\nand more")
    package.dynamo.compile = fail
    with pytest.raises(mx.MXNetError, match="backend 'tensorrt' cannot compile the graph: RuntimeError: no kernel for this GPU$"):
        GraphRunner(dense(), backend="tensorrt")([numbers(2, 3), numbers(4, 3), numbers(4)])


def test_on_a_cpu_it_says_where_it_runs(package, monkeypatch):
    monkeypatch.setattr(tensorrt.TensorRT, "devices", ("cuda",))
    with pytest.raises(mx.MXNetError, match=r"'tensorrt' runs on mx.gpu\(\) only, but the graph is on cpu; move the arrays with as_in_c"):
        GraphRunner(dense(), backend="tensorrt")([numbers(2, 3), numbers(4, 3), numbers(4)])


@pytest.mark.parametrize("use", [
    lambda: GraphRunner(dense(), backend="tensorrt")([numbers(2, 3), numbers(4, 3), numbers(4)]),
    lambda: dense().get_backend_symbol("TensorRT")])
def test_without_the_package(monkeypatch, use):
    monkeypatch.setattr(tensorrt.TensorRT, "devices", ("cpu",))
    monkeypatch.setitem(sys.modules, "torch_tensorrt", None)
    with pytest.raises(registry.Unavailable, match="needs the package torch_tensorrt in the version of torch .*pip install torch-tensorrt"):
        use()


def test_mxnets_names(package, monkeypatch):
    assert registry.get("TensorRT") is registry.get("tensorrt") is registry.get("TENSORRT")
    assert not registry.can_run(registry.get("tensorrt"), torch.device("cuda", 0)) or torch.cuda.is_available()
    monkeypatch.setenv("MXNET_SUBGRAPH_BACKEND", "TensorRT")
    GraphRunner(dense())([numbers(2, 3), numbers(4, 3), numbers(4)])
    assert len(package.compiled) == 1


@pytest.mark.parametrize("prepare", [lambda s: s.optimize_for("TensorRT", precision="fp16"), lambda s: s.get_backend_symbol("TensorRT")])
def test_a_symbol_remembers_its_backend(package, prepare):
    symbol = dense()
    prepared = prepare(symbol)
    given = {"x": mx.nd.ones((2, 3)), "fc_weight": mx.nd.ones((4, 3)), "fc_bias": mx.nd.zeros(4)}
    for s in (prepared, mx.sym.load_json(prepared.tojson())):
        assert s.bind(mx.cpu(), given).forward()[0].asnumpy().tolist() == [[3] * 4] * 2
    assert len(package.compiled) == 2
    low = "optimize" in prepare.__code__.co_names[0]
    assert [e.settings["enable_autocast"] for e in package.compiled] == [low, low]
    for other in (symbol, prepared * 2, mx.sym.Group([prepared, prepared * 2])):  # neither the first, nor what is made of it
        other.bind(mx.cpu(), given).forward()
    assert len(package.compiled) == 2


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("precision, tolerance", [("float32", 1e-2), ("float16", 5e-2)])
def test_on_a_gpu_it_gives_what_native_gives(precision, tolerance):
    pytest.importorskip("torch_tensorrt")
    net = mx.gluon.model_zoo.vision.resnet18_v1(classes=10)
    net.initialize(mx.init.Xavier(), ctx=mx.gpu())
    x = mx.nd.random.normal(shape=(2, 3, 64, 64), ctx=mx.gpu())
    expected = net(x).asnumpy()
    net.hybridize(backend="TensorRT", precision=precision)
    mx.test_utils.assert_almost_equal(net(x).asnumpy(), expected, rtol=tolerance, atol=tolerance * abs(expected).max())
    assert "tensorrt: " in net.explain()
