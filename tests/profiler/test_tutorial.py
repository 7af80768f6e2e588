"""What MXNet's introduction to profiling does, step by step: which events there are, what lies in what, and how often."""
import collections
import json
import os
import pathlib
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, gluon, nd, profiler
from mxnet.profiler.trace import read


@pytest.fixture
def profile(tmp_path):
    """Runs a function with the profiler on; gives the intervals of the trace."""
    path = tmp_path / "profile.json"

    def run(function, **config):
        profiler.set_config(**{"profile_all": not config, "aggregate_stats": True, "filename": str(path), **config})
        profiler.dumps(reset=True)
        profiler.set_state("run")
        try:
            function()
        finally:
            profiler.set_state("stop")
        profiler.dump()
        return [e for e in read(str(path)) if e["ph"] in "XC"]

    yield run
    profiler.set_state("stop")


def counts(events, category="operator"):
    return dict(collections.Counter(e["name"] for e in events if e["cat"] == category and e["ph"] == "X"))


def table(category="operator"):
    return {name: row["Count"] for name, row in json.loads(profiler.dumps(format="json"))["Time"].get(category, {}).items()}


def within(inner, outer):
    return outer["ts"] - 0.01 <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 0.01 and inner["tid"] == outer["tid"]


def network():
    net = gluon.nn.HybridSequential()
    with net.name_scope():
        net.add(gluon.nn.Conv2D(channels=4, kernel_size=5, activation="relu"), gluon.nn.MaxPool2D(pool_size=2, strides=2),
                gluon.nn.Flatten(), gluon.nn.Dense(10))
    net.initialize(mx.init.Xavier())
    return net


def trained(net, optimizer="sgd"):
    trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.1})
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss()

    def iteration(data, label):
        with autograd.record():
            loss = loss_function(net(data), label)
        loss.backward()
        trainer.step(data.shape[0])

    return iteration


@pytest.fixture
def batch():
    return nd.random.uniform(shape=(16, 1, 28, 28)), nd.zeros((16,))


def test_operators_called_one_by_one(profile):
    def program():
        x = nd.random_uniform(shape=(20, 20))
        nd.dot(x, x).asnumpy()

    found = profile(program)
    assert counts(found) == table() == {"_random_uniform": 1, "dot": 1, "WaitForVar": 1}
    assert counts(found, "MXNET_C_API") == {"MXNDArraySyncCopyToCPU": 1}
    wait, = [e for e in found if e["name"] == "WaitForVar"]
    copy, = [e for e in found if e["name"] == "MXNDArraySyncCopyToCPU"]
    assert within(wait, copy)
    assert table("MXNET_C_API") == {"MXNDArraySyncCopyToCPU": 1, "MXImperativeInvokeEx": 2, "MXNet C API Calls": 3}


def test_calls_of_the_api_count_only_if_they_are_asked_for(profile):
    profile(lambda: nd.exp(nd.ones((2,))), profile_imperative=True, profile_api=False)
    assert table() == {"_ones": 1, "exp": 1} and table("MXNET_C_API") == {}


def test_binding(profile):
    found = profile(lambda: mx.sym.relu(mx.sym.var("a")).simple_bind(mx.cpu(), a=(3,)))
    assert counts(found, "MXNET_C_API") == {"_SimpleBindImpl": 1}


STEP = {"Convolution": 1, "Activation": 1, "Pooling": 1, "FullyConnected": 1}


def test_an_iteration_of_gluon(profile, batch):
    net = network()
    iteration = trained(net)
    iteration(*batch)
    found = profile(lambda: iteration(*batch))
    operators = counts(found)
    expected = {**STEP, **{f"_backward_{name}": n for name, n in STEP.items()}, "log_softmax": 1, "pick": 1, "_backward_pick": 1,
                "multi_sgd_update": 1}
    assert {name: operators.get(name) for name in expected} == expected
    assert "_backward_unprofiled" not in operators
    outer, = [e for e in found if e["cat"] == "layer" and e["name"] == net.name]
    layers = [e for e in found if e["cat"] == "layer" and e["name"].startswith(net[0].name)]
    convolution, = [e for e in found if e["name"] == "Convolution"]
    assert within(convolution, next(e for e in layers if e["name"] == net[0].name)) and all(within(e, outer) for e in layers)
    backward, = [e for e in found if e["name"] == "MXAutogradBackwardEx"]
    assert all(within(e, backward) for e in found if e["name"].startswith("_backward_"))
    step, = [e for e in found if e["name"] == "Trainer.step"]
    assert all(within(e, step) for e in found if e["name"] == "multi_sgd_update")


def test_an_iteration_of_a_hybridized_network_names_its_nodes(profile, batch):
    net = network()
    net.hybridize()
    iteration = trained(net)
    iteration(*batch)
    found = profile(lambda: iteration(*batch))
    operators = counts(found)
    expected = {**STEP, **{f"_backward_{name}": n for name, n in STEP.items()}}
    assert {name: operators.get(name) for name in expected} == expected
    call, = [e for e in found if e["name"] == "MXInvokeCachedOpEx"]
    nodes = {e["name"]: e["args"]["node"] for e in found if e["cat"] == "operator" and within(e, call) and "args" in e and "node" in e["args"]}
    assert {n: nodes[n] for n in STEP} == {"Convolution": f"{net[0].name}_fwd", "Activation": f"{net[0].name}_relu_fwd",
                                           "Pooling": f"{net[1].name}_fwd", "FullyConnected": f"{net[3].name}_fwd"}


def test_several_devices_with_adam(profile):
    contexts = [mx.cpu(0), mx.cpu(1)]
    net = gluon.nn.Dense(3, in_units=4)
    net.initialize(ctx=contexts)
    trainer = gluon.Trainer(net.collect_params(), "adam")
    data = nd.ones((8, 4))

    def iteration():
        with autograd.record():
            losses = [net(part).sum() for part in gluon.utils.split_and_load(data, contexts)]
        for loss in losses:
            loss.backward()
        trainer.step(8)

    iteration()
    found = profile(iteration)
    operators = counts(found)
    assert operators["adam_update"] == 2 and operators["ElementwiseSum"] == 2 and operators["CopyCPU2CPU"] >= 4
    assert counts(found, "MXNET_C_API")["MXKVStorePushPull"] == 2


def test_pause_and_resume(profile):
    def program():
        nd.exp(nd.ones((2,)))
        profiler.pause()
        nd.sqrt(nd.ones((2,)))
        profiler.resume()
        nd.log(nd.ones((2,)))

    assert counts(profile(program)) == {"_ones": 2, "exp": 1, "log": 1}


def test_memory_alone(profile):
    kept = []
    found = profile(lambda: kept.append(nd.zeros((1 << 20,)) + 1), profile_memory=True, profile_symbolic=False, profile_imperative=False,
                    profile_api=False)
    assert counts(found) == {} and {e["name"].split(" (")[0] for e in found} == {"Memory: cpu/0"}
    assert max(list(e["args"].values())[0] for e in found) > 4000  # kB


class AddOne(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] + 1)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0])


@mx.operator.register("tutorial_add_one")
class AddOneProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return AddOne()


@pytest.mark.parametrize("mode", ["imperative", "symbolic"])
def test_custom_operators(profile, mode):
    data = nd.zeros((50, 50))
    executor = mx.sym.Custom(mx.sym.var("a"), op_type="tutorial_add_one").bind(mx.cpu(), {"a": data})

    def program():
        if mode == "imperative":
            nd.Custom(data, op_type="tutorial_add_one")
        else:
            executor.forward()

    found = profile(program)
    assert counts(found, "Custom Operator") == {"tutorial_add_one::pure_python": 1, "tutorial_add_one::_plus_scalar": 1,
                                                "tutorial_add_one::CopyCPU2CPU": 1}
    python, = [e for e in found if e["name"].endswith("pure_python")]
    part, = [e for e in found if e["name"].endswith("_plus_scalar")]
    assert within(part, python) and "Custom" not in table()
    rows = json.loads(profiler.dumps(format="json"))["Time"]["Custom Operator"]
    assert sum(row["Total"] for row in rows.values()) <= python["dur"] / 1000 * 1.001  # ms: nothing counts twice


def run(code, folder, **env):
    folder.mkdir(exist_ok=True)
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, cwd=folder, timeout=120,
                            env={**os.environ, "PYTHONPATH": str(pathlib.Path(mx.__file__).parent.parent), **env})
    assert result.returncode in (0, -9), result.stderr
    return [e["name"] for e in read(str(folder / "profile.json"))], result.stderr


PROGRAM = """
    import mxnet as mx
    y = (mx.nd.ones((3,)) + 1).asnumpy()
    executor = mx.sym.relu(mx.sym.var("a")).simple_bind(mx.cpu(), a=(3,))
    executor.forward()
    """


@pytest.mark.parametrize("mode, there, absent", [
    (None, {"relu", "_plus_scalar", "MXNDArraySyncCopyToCPU", "MXExecutorForward"}, set()),
    ("0", {"relu"}, {"_plus_scalar", "MXNDArraySyncCopyToCPU"}), ("2", {"relu", "_plus_scalar"}, {"MXNDArraySyncCopyToCPU"}),
    ("4", {"relu", "MXNDArraySyncCopyToCPU"}, {"_plus_scalar"})])
def test_autostart(tmp_path, mode, there, absent):
    found, _ = run(PROGRAM, tmp_path, MXNET_PROFILER_AUTOSTART="1", **({"MXNET_PROFILER_MODE": mode} if mode else {}))
    assert there <= set(found) and not absent & set(found)


def test_without_autostart_there_is_no_file(tmp_path):
    with pytest.raises(mx.MXNetError):
        run(PROGRAM, tmp_path, MXNET_PROFILER_AUTOSTART="0")


@pytest.mark.parametrize("end", ["mx.profiler.profiler_set_state('stop')\n    os._exit(0)", "pass"])
def test_the_old_names_need_no_dump(tmp_path, end):
    found, _ = run(f"""
    import os, warnings
    import mxnet as mx
    warnings.simplefilter("ignore")
    mx.profiler.profiler_set_config(mode='symbolic', filename='profile.json')
    mx.profiler.profiler_set_state('run')
    mx.nd.sqrt(mx.nd.ones((3,)))
    {end}
    """, tmp_path)
    assert "sqrt" in found


def test_a_killed_process_leaves_a_file_that_opens(tmp_path):
    found, _ = run("""
    import os, signal
    import mxnet as mx
    mx.profiler.set_config(profile_all=True, filename='profile.json', continuous_dump=True, dump_period=0.05)
    mx.profiler.set_state('run')
    while not os.path.exists('profile.json') or os.path.getsize('profile.json') < 20_000:
        mx.nd.sqrt(mx.nd.ones((3,)))
    os.kill(os.getpid(), signal.SIGKILL)
    """, tmp_path)
    assert found.count("sqrt") > 20


def test_the_events_of_iterations_add_up_to_the_time_they_took(profile):
    """Compared within one run, the best of five: on a busy machine other processes take their turns between events, too."""
    data, label = nd.random.uniform(shape=(64, 1, 28, 28)), nd.zeros((64,))
    net = network()
    iteration = trained(net)
    iteration(data, label)

    def missing():
        spans = []

        def program():
            while not spans or spans[-1][1] - spans[0][0] < 300_000_000:
                start = time.perf_counter_ns()
                iteration(data, label)
                spans.append((start, time.perf_counter_ns()))

        found = sorted((e["ts"], e["ts"] + e["dur"]) for e in profile(program) if e["ph"] == "X")
        covered, end = 0.0, 0.0
        for start, stop in found:
            covered += max(0.0, stop - max(start, end))
            end = max(end, stop)
        return abs(1 - covered * 1000 / sum(b - a for a, b in spans))

    assert any(missing() < 0.05 for _ in range(5))


@pytest.mark.parametrize("workers", [0, 1])
def test_batches_are_waited_for_and_made(profile, workers):
    dataset = gluon.data.ArrayDataset(np.arange(40, dtype="float32").reshape(20, 2))
    loader = gluon.data.DataLoader(dataset, batch_size=5, num_workers=workers)
    before = iter(loader)
    next(before)
    got = []
    found = profile(lambda: got.extend(b.asnumpy().sum() for b in loader))
    assert sum(got) == np.arange(40).sum()
    assert counts(found, "io") == ({"making a batch": 4} if not workers else {"making a batch": 4, "waiting for data": 5})
    after = [b.shape for b in loader]
    assert after == [(5, 2)] * 4
