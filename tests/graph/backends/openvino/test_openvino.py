import subprocess
import threading

import numpy as np
import pytest
import torch

import mxnet as mx
from forked import python
from mxnet import nd, processor, threads
from mxnet.gluon import nn
from mxnet.graph import GraphRunner
from mxnet.graph.backends import openvino
from mxnet.graph.tuning import inference_states

pytest.importorskip("openvino")


def network(**flags):
    """A hybridized block of two layers on the backend `openvino`, called once."""
    mx.random.seed(1)
    net = nn.HybridSequential()
    net.add(nn.Dense(4, activation="relu"), nn.BatchNorm(), nn.Dense(2))
    net.initialize(mx.init.Normal(1))
    net.hybridize(backend="openvino", **flags)
    net(nd.ones((3, 5)))
    return net


def runner_of(net):
    return net._cached_op.handle


def eager(net, x):
    """What the block computes operator by operator."""
    net.hybridize(False, clear=False)
    found = net(x).asnumpy()
    net.hybridize(backend="openvino", clear=False)
    return found


def plans(runner):
    return [p for p in runner.states.values() if isinstance(p, inference_states.Compiled)]


def test_one_piece():
    net = network()
    x = nd.random.uniform(shape=(3, 5))
    plan, = plans(runner_of(net))
    assert plan.program.report == ["openvino: the whole graph"]
    np.testing.assert_allclose(net(x).asnumpy(), eager(net, x), rtol=1e-5)
    assert len(plans(runner_of(net))) == 1


def test_what_it_does_not_know_stays_native():
    x = mx.sym.var("x")
    hidden = mx.sym.FullyConnected(x, num_hidden=4, name="a")
    out = mx.sym.FullyConnected(mx.sym.gammaln(hidden * hidden + 1), num_hidden=2, name="b")
    runner = GraphRunner(out, backend="openvino")
    inputs = [torch.rand(s) for s in ((3, 5), (4, 5), (4,), (2, 4), (2,))]
    expected = GraphRunner(out, backend="NONE")(inputs)[0]
    torch.testing.assert_close(runner(inputs)[0], expected)
    report = plans(runner)[0].program.report
    assert report[0] == "native: gammaln (gammaln: no converter)"
    assert [line for line in report if line.startswith("openvino")] == ["openvino: part0, 1 operators", "openvino: part1, 3 operators"] or \
        sorted(line.rsplit(" ", 2)[1] for line in report if line.startswith("openvino")) == ["1", "3"]


@pytest.mark.parametrize("change", ["set_data", "in place", "a view", "torch", "copyto", "another array", "optimizer"])
def test_changed_weights_are_seen(change):
    net = network()
    x = nd.random.uniform(shape=(3, 5))
    before = net(x).asnumpy()
    bias = net[2].bias
    if change == "set_data":
        bias.set_data(nd.array([5, 6]))
    elif change == "in place":
        bias.data()[:] += 5
    elif change == "a view":
        bias.data()[1:2][:] = 7
    elif change == "torch":
        bias.data().as_torch().detach().add_(3)
    elif change == "copyto":
        nd.array([1, 2]).copyto(bias.data())
    elif change == "another array":
        bias._data[0] = nd.array([3, 4])
    else:
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
        with mx.autograd.record():
            loss = net(x).sum()
        loss.backward()
        trainer.step(1)
    after = net(x).asnumpy()
    assert np.abs(after - before).max() > 0.1
    np.testing.assert_allclose(after, eager(net, x), rtol=1e-5)


def test_torch_is_asked_about_writes_only_where_it_can_have_made_some():
    net = network()
    x = nd.random.uniform(shape=(3, 5))
    net(x)
    frozen, = plans(net._cached_op.handle)
    assert not frozen.weights.compares
    bias = net[2].bias.data().as_torch()
    assert frozen.weights.compares and frozen.holds([t._data for t in net._gathered.with_data([x])[0]])
    bias.detach().add_(1)
    assert not frozen.weights.stale and not frozen.holds([t._data for t in net._gathered.with_data([x])[0]])


def test_moving_averages_that_training_changed_are_seen():
    net = network()
    x = nd.random.uniform(shape=(3, 5))
    before = net(x).asnumpy()
    with mx.autograd.record():
        net(x)
    after = net(x).asnumpy()
    assert np.abs(after - before).max() > 1e-3
    np.testing.assert_allclose(after, eager(net, x), rtol=1e-5)


def test_other_shapes_and_types_are_compiled_anew():
    net = network()
    assert net(nd.ones((1, 5))).shape == (1, 2)
    assert net(nd.ones((3, 5))).shape == (3, 2)
    assert len(plans(runner_of(net))) == 2
    net.cast("float64")
    assert net(nd.ones((3, 5), dtype="float64")).dtype == np.float64
    plan, = plans(runner_of(net))
    assert "native: fully_connected (an input is of type torch.float64)" in plan.program.report


def test_training_runs_on_torch():
    net = network()
    x = nd.ones((3, 5))
    x.attach_grad()
    with mx.autograd.record():
        y = net(x)
    y.backward()
    assert np.abs(x.grad.asnumpy()).max() >= 0 and y.shape == (3, 2)
    with mx.autograd.record(train_mode=False):
        y = net(x)
    y.backward()
    assert np.abs(x.grad.asnumpy()).sum() > 0


def test_results_are_the_caller_s_own():
    net = network()
    a = net(nd.ones((3, 5)))
    held = a.asnumpy().copy()
    others = [net(nd.zeros((3, 5)) + i) for i in range(150)]  # more than are allocated at a time
    assert (a.asnumpy() == held).all() and (a.asnumpy() == others[1].asnumpy()).all()
    assert len({other._data.untyped_storage().data_ptr() for other in (a, *others)}) == 151


def test_the_first_call_may_be_in_torch_s_inference_mode():
    net = network()
    with torch.inference_mode():
        net(nd.ones((2, 5)))
    x = nd.zeros((2, 5))
    x.attach_grad()
    scores = net(x)
    with mx.autograd.record():
        (scores * (x + 1)[:, :1]).sum().backward()  # keeps `scores` for the gradient
    np.testing.assert_allclose(x.grad.asnumpy()[:, 0], scores.asnumpy().sum(1), rtol=1e-5)


def test_large_inputs_are_read_where_they_are_now():
    net = nn.HybridSequential()
    net.add(nn.Flatten(), nn.HybridLambda(lambda F, x: x * 2))
    net.hybridize(backend="openvino")
    a, b = nd.full((128, 128), 1), nd.full((128, 128), 3)  # large enough not to be copied
    ramp = nd.arange(128 * 128).reshape((128, 128))
    for _ in range(2):
        assert net(a)[0, 0].asscalar() == 2
        a[:] = 5  # in place: the same memory, another value
        assert net(a)[127, 127].asscalar() == 10
        assert net(b)[0, 0].asscalar() == 6
        turned = nd.NDArray._new(ramp._data.t(), mx.cpu())  # the memory of `ramp`, in another order
        assert net(ramp)[0, 1].asscalar() == 2 and net(turned)[0, 1].asscalar() == 256 and net(ramp)[0, 1].asscalar() == 2
        a[:] = 1


def test_each_small_result_has_memory_of_its_own():
    net = network()
    results = [net(nd.full((3, 5), i)) for i in range(40)]
    expected = [net(nd.full((3, 5), i)).asnumpy() for i in range(40)]
    assert all(np.array_equal(r.asnumpy(), e) for r, e in zip(results, expected, strict=True))
    assert len({r._data.untyped_storage().data_ptr() for r in results}) == 40


def test_threads_run_one_compiled_graph_at_once():
    net = network()
    inputs = [nd.random.uniform(shape=(3, 5)) for _ in range(6)]
    expected = [net(x).asnumpy() for x in inputs]
    wrong = []

    def work(i):
        for _ in range(50):
            if not np.array_equal(net(inputs[i]).asnumpy(), expected[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not wrong and not any(t.is_alive() for t in threads)


def test_options():
    net = network(precision="bfloat16", num_threads=1)
    x = nd.random.uniform(shape=(3, 5))
    np.testing.assert_allclose(net(x).asnumpy(), eager(net, x), rtol=0.05, atol=0.05)
    with pytest.raises(mx.MXNetError, match="no option 'speed'; it has cache_dir, num_threads, precision"):
        network(speed=1)
    with pytest.raises(mx.MXNetError, match="`precision` must be one of float32, bfloat16, float16, received 'int4'"):
        network(precision="int4")


def test_compiled_models_are_kept_in_a_folder(tmp_path):
    network(cache_dir=tmp_path)
    assert list(tmp_path.glob("*.blob"))


def test_memory_that_others_may_write_to_is_not_built_in():
    net = network()
    x = nd.ones((3, 5))
    before = net(x).asnumpy()
    weight = net[2].bias.data()
    other = torch.utils.dlpack.from_dlpack(weight.to_dlpack_for_write())
    other.add_(10)
    np.testing.assert_allclose(net(x).asnumpy(), before + 10, rtol=1e-5)
    other.add_(10)
    np.testing.assert_allclose(net(x).asnumpy(), before + 20, rtol=1e-5)


def test_openvino_is_imported_without_what_calls_its_makers():
    code = ("import sys; from mxnet.graph.backends import openvino; openvino.core(); "
            "print([m for m in sys.modules if 'telemetry' in m and m.startswith('openvino_')], 'openvino' in sys.modules)")
    found = subprocess.run([*python(), "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[] True"


@pytest.fixture
def policy(monkeypatch):
    """A policy of two threads, with OpenVINO compiling for another number at the first call that it is due."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    found = threads.Policy()
    found.full = found.count = 2
    monkeypatch.setattr(threads, "policy", found)
    monkeypatch.setattr(openvino, "PATIENCE", 0)
    yield found
    torch.set_num_threads(before)


def count_and_tied(net):
    model = plans(runner_of(net))[0].function.model
    return model.get_property("INFERENCE_NUM_THREADS"), model.get_property("ENABLE_CPU_PINNING")


def test_a_model_has_the_threads_of_the_policy(policy, monkeypatch):
    x = nd.random.uniform(shape=(3, 5))
    monkeypatch.setattr(processor, "cores", lambda: 2)
    net = network()
    expected = net(x).asnumpy()
    assert count_and_tied(net) == (2, True)
    whole = plans(runner_of(net))[0].function.model
    policy.count = 1  # another program has come
    np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-6)
    assert count_and_tied(net) == (1, False)  # processes of one thread each are not all on the first core
    policy.count = 2
    np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-6)
    assert plans(runner_of(net))[0].function.model is whole


def test_a_model_is_compiled_for_fewer_threads_only_when_its_calls_have_taken_longer(policy, monkeypatch):
    net = network()
    function = plans(runner_of(net))[0].function
    monkeypatch.setattr(openvino, "PATIENCE", 3)
    function.first_model.seconds = 5.0
    policy.count = 1
    net(nd.ones((3, 5)))
    assert count_and_tied(net)[0] == 2
    function.seconds_spent = 15.0
    net(nd.ones((3, 5)))
    assert count_and_tied(net)[0] == 1


def test_a_model_that_is_compiled_while_others_are_busy_has_the_usual_threads_first(policy):
    policy.count = 1
    torch.set_num_threads(1)
    assert threads.usual() == 2
    net = network()
    net(nd.ones((3, 5)))
    assert plans(runner_of(net))[0].function.first_model.threads == 2 and count_and_tied(net)[0] == 1


def test_the_users_number_of_threads_counts(policy):
    torch.set_num_threads(1)
    policy.full = policy.count = 1
    assert count_and_tied(network())[0] == 1
    policy.full = policy.count = 2
    fixed = network(num_threads=2)
    policy.count = 1
    fixed(nd.ones((3, 5)))
    assert count_and_tied(fixed)[0] == 2
