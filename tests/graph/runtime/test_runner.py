import threading
import time
import weakref

import pytest
import torch

import mxnet as mx
from mxnet.graph import GraphRunner, register_backend
from mxnet.graph.backends import registry
from mxnet.graph.tuning import inference_states, policy
from mxnet.ndarray import mutation_tracking


def test_threads_may_run_one_graph_at_once():
    x = mx.sym.var("x")
    runner = GraphRunner(mx.sym.Dropout(mx.sym.FullyConnected(x, num_hidden=8, name="fc"), p=0.5))
    weight, bias = torch.randn(8, 4), torch.randn(8)
    inputs = [torch.randn(3, 4) for _ in range(8)]
    results, errors = [None] * 8, []

    def work(i):
        try:
            for _ in range(20):
                results[i] = runner([inputs[i], weight, bias])[0]
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not errors and not any(t.is_alive() for t in threads)
    for i in range(8):
        torch.testing.assert_close(results[i], torch.nn.functional.linear(inputs[i], weight, bias))


def test_graphs_are_lowered_once_for_each_mode(monkeypatch):
    from mxnet.graph.runtime import runner as module
    calls = []
    original = module.lower
    monkeypatch.setattr(module, "lower", lambda *args: calls.append(args[1]) or original(*args))
    runner = GraphRunner(mx.sym.relu(mx.sym.var("x")))
    for size in (1, 2, 3):
        runner([torch.ones(size)], is_train=False)
        runner([torch.ones(size)], is_train=True)
    assert sorted(calls) == [False, True]


class Doubling:
    name, specializes, trains = "test_doubling", True, False

    def __init__(self):
        self.shapes = []

    def compile(self, program, factor=2):
        self.shapes.append(tuple(program.inputs[0].shape))
        return lambda *args: tuple(factor * r for r in program.module.forward(*args))


@pytest.fixture
def doubling():
    backend = register_backend(Doubling())
    yield backend
    del registry.BACKENDS["test_doubling"]


def test_backends_compile_for_each_shape(doubling):
    runner = GraphRunner(mx.sym.var("x") + 1, backend="test_doubling", options={"factor": 3})
    assert runner([torch.zeros(2)])[0].tolist() == [3, 3]
    runner([torch.zeros(2)])
    assert runner([torch.zeros(1)])[0].tolist() == [3]
    assert doubling.shapes == [(2,), (1,)]


def test_a_backend_that_cannot_train_leaves_training_to_native(doubling):
    runner = GraphRunner(mx.sym.var("x") * 5, backend="test_doubling")
    x = torch.ones(1, requires_grad=True)
    y, = runner([x], is_train=True)
    y.backward()
    assert x.grad.tolist() == [5]


def test_bad_backends():
    with pytest.raises(mx.MXNetError, match="a backend needs `compile`"):
        register_backend(type("Half", (), {"name": "half"})())
    with pytest.raises(mx.MXNetError, match="takes no options, received .'speed'"):
        GraphRunner(mx.sym.var("x") + 1, backend="native", options={"speed": 9})([torch.ones(1)])


def test_zeros_of_unknown_size_follow_the_input():
    hidden = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc") + mx.sym.ones((0, 2))
    runner = GraphRunner(hidden)
    weight, bias = torch.zeros(2, 3), torch.zeros(2)
    for n in (1, 4, 1):
        assert runner([torch.zeros(n, 3), weight, bias])[0].shape == (n, 2)


def test_a_range_of_open_length_follows_what_it_is_added_to():
    x = mx.sym.arange(start=1, step=2, stop=None, infer_range=True, repeat=2) + mx.sym.var("x")
    assert x.bind(mx.cpu(), {"x": mx.nd.zeros(6)}).forward()[0].asnumpy().tolist() == [1, 1, 3, 3, 5, 5]
    s = mx.sym.elemwise_add(mx.sym.arange(start=0, stop=None, infer_range=True), mx.sym.zeros(shape=[5]))
    assert s.bind(mx.cpu(), {}).forward()[0].asnumpy().tolist() == [0, 1, 2, 3, 4]


def test_new_shapes_do_not_wait_for_those_that_are_compiled(monkeypatch):
    compiling, go_on = threading.Event(), threading.Event()

    def trial(module, native, native_seconds, inputs, weights, device):
        compiling.set()
        assert go_on.wait(60)

    monkeypatch.setattr(policy, "start_validation", trial)
    monkeypatch.setattr(policy, "budget", lambda operators: 1e-9)
    runner = GraphRunner(mx.sym.relu(mx.sym.var("x")))
    runner([torch.ones(2)])  # spends the time
    thread = threading.Thread(target=runner, args=([torch.ones(2)],))
    thread.start()
    assert compiling.wait(60)
    assert runner([torch.ones(3)])[0].tolist() == [1, 1, 1]
    go_on.set()
    thread.join(60)
    assert not thread.is_alive()
    assert [type(s) for s in runner.states.values()] == [inference_states.Native, inference_states.Warmup]


def test_threads_that_meet_a_changed_weight_compile_once(monkeypatch):
    class Slow:
        name, specializes, trains, freezes, compiled = "test_slow", True, False, True, 0

        def compile(self, program):
            self.compiled += 1
            time.sleep(0.05)
            return program.module.forward

    backend = register_backend(Slow())
    try:
        runner = GraphRunner(mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=1, name="fc"), backend="test_slow")
        inputs = [torch.ones(1, 2), torch.ones(1, 2), torch.zeros(1)]
        threads = [threading.Thread(target=runner, args=(inputs,)) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
        assert backend.compiled == 1
        mutation_tracking.written(inputs[1])
        assert runner(inputs)[0].tolist() == [[2]] and backend.compiled == 2
    finally:
        del registry.BACKENDS["test_slow"]


def test_zeros_of_open_size_go_by_the_shapes_of_weights_too():
    runner = GraphRunner(mx.sym.broadcast_add(mx.sym.var("w") + mx.sym.zeros((0, 2)), mx.sym.var("x")), weights=[0])
    for rows in (1, 3):
        assert runner([torch.ones(rows, 2), torch.ones(1)])[0].tolist() == [[2, 2]] * rows
    assert "inference on cpu for x float32(1,):" in runner.explain()


def test_a_graph_without_outputs():
    with pytest.raises(mx.MXNetError, match="this Symbol has no outputs"):
        mx.sym.reset_arrays(mx.sym.var("a"), num_arrays=1).simple_bind(mx.cpu())


def _of_steps(**flags):
    return mx.gluon.cached_op.CachedOp(mx.sym.SwapAxis(mx.sym.var("a"), dim1=0, dim2=1, name="swap"), flags)


@pytest.mark.parametrize("flags", [{}, {"static_alloc": True, "static_shape": True}], ids=["native", "compiled at once"])
@pytest.mark.parametrize("error, arguments, said", [(KeyError, ["x"], "'x'"), (ZeroDivisionError, [], "ZeroDivisionError"),
                                                    (OverflowError, ["too large"], "too large"), (IndexError, ["\nbeyond\nall"], "beyond")])
def test_whatever_an_operator_raises_is_an_error_of_its_node(flags, error, arguments, said, monkeypatch):
    def fail(*tensors, **attributes):
        raise error(*arguments)

    from mxnet.ops import get
    monkeypatch.setattr(get("SwapAxis"), "fn", fail)
    with pytest.raises(mx.MXNetError, match=rf"Error in operator swap \(SwapAxis\): {said} \[inputs: float32\(2, 2\)"):
        _of_steps(**flags)(mx.nd.ones((2, 2)))


def test_no_weight_is_held_after_a_run():
    runner = GraphRunner(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, no_bias=True, name="fc"))
    for _ in range(2):
        leaf = torch.ones(2, 3, requires_grad=True)
        torch.sum(runner([torch.ones(1, 3), leaf], is_train=True)[0]).backward()
        found = weakref.ref(leaf)
        del leaf
        assert found() is None
    with pytest.raises(mx.MXNetError, match="fc"):
        runner([torch.ones(1, 3), torch.ones(2, 4)], is_train=True)
