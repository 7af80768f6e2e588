"""Weights that are prepared for graphs on GPUs: made again when one has changed, into the same memory where a capture reads them."""
import gc
import weakref

import pytest
import torch

import mxnet as mx
from folding_checks import CONTEXT, NETWORKS, folded, graph_of, made, native, on_gpu
from mxnet.gluon import nn
from mxnet.graph import GraphRunner
from mxnet.graph.backends.cuda import graph_capture, prepared_weights
from mxnet.graph.runtime import runner as runners
from mxnet.graph.tuning import policy
from mxnet.graph.tuning.inference_states import Native, Warmup
from mxnet.ndarray import mutation_tracking
from simulated_gpus import Watch, gpus


def network():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(6, 3, padding=1, use_bias=False), nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(4, 3, activation="relu"), nn.Dense(3))
    return made(net, shape=(2, 3, 9, 9))


def check(found, runner, inputs, tolerance=2e-5):
    for a, b in zip(found, native(runner, inputs), strict=True):
        assert (a - b).abs().max() <= tolerance * b.abs().max()


@pytest.fixture
def preparations(monkeypatch):
    """How often weights were prepared: a list of that length."""
    found, plain = [], prepared_weights.Prepared.__init__

    def init(self, *args):
        plain(self, *args)
        prepare = self.prepare
        self.prepare = lambda *inputs: found.append(1) or prepare(*inputs)

    monkeypatch.setattr(prepared_weights.Prepared, "__init__", init)
    return found


def test_a_capture_reads_prepared_weights(cuda, preparations):
    runner, inputs = graph_of(*network(), fixed_shape=True)
    for seed in range(3):
        inputs[0] = torch.randn(2, 3, 9, 9, generator=torch.Generator().manual_seed(seed))
        check(on_gpu(runner, inputs), runner, inputs)
    assert len(cuda.graphs) == 1 and cuda.graphs[0].replays == 3 and len(preparations) == 1
    assert runner.explain().splitlines()[-3:] == ["  cuda: 1 x convolution + batch norm + relu", "  cuda: 1 x convolution + relu",
                                                  "  captured as a CUDA graph (1 x)"]


def test_data_is_copied_in_the_order_in_which_it_is_read(cuda):
    runner, inputs = graph_of(*network(), fixed_shape=True)
    for t in (inputs[0], inputs[0].contiguous(memory_format=torch.channels_last)):
        check(on_gpu(runner, [t, *inputs[1:]]), runner, inputs)
    state, = runner.states.values()
    assert state.buffers[0].is_contiguous(memory_format=torch.channels_last)
    read = [func for func, args, *_ in cuda.graphs[0].steps if args[0].data_ptr() == state.buffers[0].data_ptr()]
    assert read == [torch.ops.aten.convolution.default]


@pytest.mark.parametrize("at, name, prepared", [(0, "weight", True), (1, "gamma", True), (1, "beta", True), (1, "running_mean", True),
                                                (1, "running_var", True), (3, "weight", True), (3, "bias", False), (4, "weight", False)])
@pytest.mark.parametrize("captures", [True, False])
def test_a_weight_that_is_written_to_counts_at_once(cuda, preparations, monkeypatch, at, name, prepared, captures):
    if not captures:
        monkeypatch.setenv("MXNET_ENABLE_CUDA_GRAPHS", "0")
    net, x = network()
    runner, inputs = graph_of(net, x, fixed_shape=True)
    first = on_gpu(runner, inputs)[0]
    parameter = getattr(net[at], name)
    for _ in range(6):  # more often than a graph is captured
        parameter.data()[:] = parameter.data() * 1.5
        found = on_gpu(runner, inputs)
        assert not torch.equal(found[0], first)
        check(found, runner, inputs)
    assert len(cuda.graphs) == captures and len(preparations) == (7 if prepared else 1)


def test_writes_through_torch_count(cuda):
    net, x = network()
    runner, inputs = graph_of(net, x, fixed_shape=True)
    on_gpu(runner, inputs)
    weight = net[0].weight.data().as_torch()
    for factor in (2, 3):
        with torch.no_grad():
            weight.mul_(factor)
        check(on_gpu(runner, inputs), runner, inputs)
    assert len(cuda.graphs) == 1


def test_weights_that_others_may_write_to_unseen_are_prepared_for_each_run(cuda):
    net, x = network()
    runner, inputs = graph_of(net, x, fixed_shape=True)
    mutation_tracking.expose(net[0].weight.data()._data)
    alias = net[0].weight.data()._data.detach().numpy()
    for _ in range(2):
        check(on_gpu(runner, inputs), runner, inputs)
        alias *= 2
    check(on_gpu(runner, inputs), runner, inputs)
    assert len(cuda.graphs) == 1


@pytest.mark.parametrize("change", [torch.clone, lambda t: t.contiguous(memory_format=torch.channels_last), lambda t: t * 2])
def test_a_weight_that_only_preparation_reads_may_move(cuda, change):
    runner, inputs = graph_of(*network(), fixed_shape=True)
    on_gpu(runner, inputs)
    at = next(i for i in runner.weights if inputs[i].dim() == 4)
    for _ in range(6):
        inputs[at] = change(inputs[at].contiguous())
        check(on_gpu(runner, inputs), runner, inputs)
    assert len(cuda.graphs) == 1


def test_a_weight_that_moves_and_then_is_written_to(cuda):
    """As when training puts it into another order in memory."""
    net, x = network()
    runner, inputs = graph_of(net, x, fixed_shape=True)
    on_gpu(runner, inputs)
    weight = net[0].weight.data()
    weight._data.data = weight._data.data.contiguous(memory_format=torch.channels_last)
    for _ in range(2):
        check(on_gpu(runner, inputs), runner, inputs)
        weight[:] = weight * 2
    check(on_gpu(runner, inputs), runner, inputs)


def test_a_weight_that_moves_is_captured_anew(cuda):
    runner, inputs = graph_of(*network(), fixed_shape=True)
    on_gpu(runner, inputs)
    at = next(i for i, name in enumerate(runner.input_names) if "dense" in name)
    for captures in (2, 3, 4, 4, 4):
        inputs[at] = inputs[at] * 2
        check(on_gpu(runner, inputs), runner, inputs)
        assert len(cuda.graphs) == captures
    assert runner.explain().splitlines()[-1] == "  native, not as a CUDA graph: the weights moved after each of 4 captures"


def test_prepared_weights_of_another_shape_are_captured_anew(cuda, monkeypatch):
    runner, inputs = graph_of(*network(), fixed_shape=True)
    on_gpu(runner, inputs)
    state, = runner.states.values()
    state.derived_weights = [torch.empty(1) for _ in state.derived_weights]
    state.weight_guard.stale = True
    check(on_gpu(runner, inputs), runner, inputs)
    assert state.captures == 2


def test_another_type_of_weights_is_another_graph(cuda):
    net, x = network()
    runner, inputs = graph_of(net, x, fixed_shape=True)
    check(on_gpu(runner, inputs), runner, inputs)
    inputs = [t.bfloat16() if t.dim() != 1 or i == 0 else t.bfloat16() if "conv" in runner.input_names[i] or "dense" in runner.input_names[i] else t
              for i, t in enumerate(inputs)]
    check(on_gpu(runner, inputs), runner, inputs, 0.05)
    assert len(cuda.graphs) == 2


def test_memory_that_was_given_back_holds_another_weight():
    first = torch.ones(3)
    unchanged = prepared_weights.Unchanged([first])
    assert unchanged.holds([first])
    other = torch.zeros(3)
    first.data = other  # its memory is free
    assert not unchanged.holds([first])


def test_the_prepared_weights_end_with_the_runner(cuda):
    runner, inputs = graph_of(*network(), fixed_shape=True)
    on_gpu(runner, inputs)
    state, = runner.states.values()
    held = [weakref.ref(t) for t in (*state.derived_weights, *state.buffers, *state.outputs)]
    assert len(held) >= 4
    cuda.graphs.clear()
    del state, runner
    gc.collect()
    assert not any(ref() is not None for ref in held)


def test_what_cannot_be_captured_as_rewritten_is_captured_as_it_was(cuda, monkeypatch):
    plain = prepared_weights.Prepared.__init__

    def init(self, *args):
        plain(self, *args)
        self.run = lambda *_: 1 / 0

    monkeypatch.setattr(prepared_weights.Prepared, "__init__", init)
    runner, inputs = graph_of(*network(), fixed_shape=True)
    for _ in range(2):
        check(on_gpu(runner, inputs), runner, inputs)
    assert len(cuda.graphs) == 1 and runner.explain().endswith("native, captured as a CUDA graph (1 x)")


def test_within_a_capture_of_the_users_weights_are_not_prepared(cuda, preparations):
    runner, inputs = graph_of(*network(), fixed_shape=True)
    cuda.outer = True
    check(on_gpu(runner, inputs), runner, inputs)
    assert not preparations and not cuda.graphs


def test_captures_of_a_device_share_memory_and_an_order(cuda):
    first, second = (graph_of(*network(), fixed_shape=True) for _ in range(2))
    for runner, inputs in (first, second, first):
        check(on_gpu(runner, inputs), runner, inputs)
    assert [g.pool for g in cuda.graphs] == [1, 1]
    assert cuda.log == ["side waits for main", "side waits for nothing", "capture on side", "main waits for side", "main waits for a run on side",
                        "side waits for main", "side waits for a run on main", "capture on side", "main waits for side",
                        "main waits for a run on side", "main waits for a run on main"]


def test_a_pool_whose_captures_have_ended_or_failed_is_not_used_again(cuda):
    runner, inputs = graph_of(*network(), fixed_shape=True)
    on_gpu(runner, inputs)
    cuda.graphs.clear()
    del runner
    gc.collect()
    runner, inputs = graph_of(*network(), fixed_shape=True)
    cuda.broken = "it cannot be ended"
    on_gpu(runner, inputs)
    cuda.broken = None
    other, inputs = graph_of(*network(), fixed_shape=True)
    on_gpu(other, inputs)
    assert [g.pool for g in cuda.graphs] == [2, 3, 4]  # of what was rewritten, of the operators, of the other runner


@pytest.mark.parametrize("variables, captures", [({}, 1), ({"MXNET_ENABLE_CUDA_GRAPHS": "0"}, 0)])
def test_without_a_promise_it_runs_on_native_first(cuda, monkeypatch, variables, captures):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    runner, inputs = graph_of(*network())
    on_gpu(runner, inputs)
    state, = runner.states.values()
    assert type(state) is Warmup and not runner.settled
    state.spent = state.budget
    for _ in range(2):
        check(on_gpu(runner, inputs), runner, inputs)
    state, = runner.states.values()
    assert type(state) is graph_capture.Captured and runner.settled and len(cuda.graphs) == captures
    assert "cuda: 1 x convolution + batch norm + relu" in runner.explain()
    assert ("not as a CUDA graph: MXNET_ENABLE_CUDA_GRAPHS is 0" in runner.explain()) == (not captures)


def test_without_a_promise_a_few_sets_of_shapes_are_captured(cuda, monkeypatch):
    monkeypatch.setattr(policy, "budget", lambda operators: 0.0)
    runner, inputs = graph_of(*network())
    for rows in range(1, 7):
        for _ in range(2):
            inputs[0] = torch.randn(rows, 3, 9, 9)
            check(on_gpu(runner, inputs), runner, inputs)
    assert len(cuda.graphs) == runners._MOST_CAPTURES == 4
    assert runner.explain().count("native, after CUDA graphs for 4 sets of shapes") == 2


def test_without_anything_to_gain_native_stays(cuda, monkeypatch):
    monkeypatch.setenv("MXNET_ENABLE_CUDA_GRAPHS", "0")
    runner = GraphRunner(mx.sym.var("x") * 2, fixed_shape=True)
    assert runner([torch.ones(2)], ctx=CONTEXT)[0].tolist() == [2, 2]
    assert [type(s) for s in runner.states.values()] == [Native]


@pytest.mark.parametrize("variables", [{"MXNET_EXEC_BULK_EXEC_INFERENCE": "0"}, {"MXNET_USE_FUSION": "0"}])
def test_who_forbids_it(cuda, monkeypatch, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    runner, inputs = graph_of(*network(), fixed_shape=True)
    check(on_gpu(runner, inputs), runner, inputs)
    assert "batch norm" not in runner.explain() and len(cuda.graphs) == ("MXNET_USE_FUSION" in variables)


def test_graphs_that_write_are_not_rewritten():
    out = mx.sym.Convolution(mx.sym.var("x"), kernel=(3, 3), num_filter=2, name="c")
    out = mx.sym.Group([mx.sym.relu(out), mx.sym.sgd_mom_update(mx.sym.var("w"), mx.sym.var("g"), mx.sym.var("m"), lr=0.1)])
    runner = GraphRunner(out)
    shapes = {"x": (1, 1, 4, 4), "c_weight": (2, 1, 3, 3), "c_bias": (2,)}
    assert folded(runner, [torch.ones(shapes.get(n, (2,))) for n in runner.input_names]) is None


@pytest.mark.parametrize("name, optimizer", [("resnet18_v1", "sgd"), ("mobilenet_v2", "adam"), ("dense", "nag"), ("inception", "adamw")])
def test_hybridized_networks_on_a_gpu_that_is_simulated(monkeypatch, name, optimizer):
    """Nothing waits, cuDNN's call is refused there, and training between two runs of inference counts."""
    monkeypatch.setenv("MXNET_ENABLE_CUDA_GRAPHS", "0")
    with gpus() as (gpu, _), gpu:
        net, x = made(NETWORKS[name](), ctx=gpu)
        net.hybridize(static_alloc=True, static_shape=True)
        trainer = mx.gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 1e-3})
        net(x)
        for _ in range(2):
            with mx.autograd.record():
                loss = net(x).square().mean()
            loss.backward()
            trainer.step(1)
            net(x).asnumpy()
            with Watch() as watch:
                found = net(x)
            assert not watch.waits
            net.hybridize(False)
            expected = net(x).asnumpy()
            net.hybridize(static_alloc=True, static_shape=True)
            mx.test_utils.assert_almost_equal(found.asnumpy(), expected, rtol=1e-3, atol=1e-4 * abs(expected).max())
            net(x)
        assert "cuda: " in net.explain() and "x torch's operators" in net.explain()


