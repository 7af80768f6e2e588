"""What MXNet's introduction to profiling does, step by step: which events there are, what lies in what, and how often."""
import bisect
import collections
import json
import os
import pathlib
import statistics
import subprocess
import textwrap

import numpy as np
import pytest

import mxnet as mx
from forked import python
from mxnet import autograd, gluon, nd, profiler
from mxnet.profiler.analysis import Analysis
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
    here = [e for e in found if e["name"].startswith("Memory: cpu/0")]  # networks of other tests may be alive, on other devices
    assert counts(found) == {} and all(e["name"].startswith("Memory: ") for e in found)
    assert max(list(e["args"].values())[0] for e in here) > 4000  # kB


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
    result = subprocess.run([*python(), "-c", textwrap.dedent(code)], capture_output=True, text=True, cwd=folder, timeout=120,
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
    mx.profiler.set_config(filename='profile.json', profile_all=True, continuous_dump=True, dump_period=0.05)
    mx.profiler.set_state('run')
    while not os.path.exists('profile.json') or os.path.getsize('profile.json') < 20_000:
        mx.nd.sqrt(mx.nd.ones((3,)))
    os.kill(os.getpid(), signal.SIGKILL)
    """, tmp_path)
    assert found.count("sqrt") > 20


# -- what the events of an iteration add up to ---------------------------------------------------------------------------------
#
# Iterations are marked in the trace itself, so that its own clock is the measure. A machine that takes the processor away does so within events as
# well as between them, and hardly in most iterations: their median counts, not the sum.

LOOPS = """
import warnings
from mxnet import gluon, nd, autograd, profiler
import mxnet as mx
import numpy as np

def loop(step, seconds=0.2, least=9):
    import time
    begin = profiler.Domain("test").new_marker("iteration")
    step(), step()
    start, number = time.perf_counter(), 0
    while number < least or time.perf_counter() - start < seconds:
        begin.mark()
        step()
        number += 1
    begin.mark()
    return number

def network():
    nn, net = gluon.nn, gluon.nn.HybridSequential()
    net.add(nn.Conv2D(20, 5, activation="relu"), nn.MaxPool2D(2), nn.Conv2D(50, 5, activation="relu"), nn.MaxPool2D(2), nn.Flatten(),
            nn.Dense(512, activation="relu"), nn.Dense(10))
    net.initialize(mx.init.Xavier())
    return net

def products():
    x = nd.random_uniform(shape=(800, 800))
    nd.dot(x, x).asnumpy()

def gluon_step(hybridize, size=64):
    net, data, label = network(), nd.random.uniform(shape=(size, 1, 28, 28)), nd.zeros((size,))
    if hybridize:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
    def step():
        with autograd.record():
            loss = loss_function(net(data), label)
        loss.backward()
        trainer.step(size)
    return step

class Shifted(mx.operator.CustomOp):
    def forward(self, req, in_data, out_data, **others):
        self.assign(dst=out_data[0], req=req[0], src=in_data[0] + 1)
    def backward(self, req, in_grad, out_grad, **others):
        self.assign(dst=in_grad[0], req=req[0], src=out_grad[0])

@mx.operator.register("tutorial_shifted")
class ShiftedProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Shifted()

def custom_step(mode):
    data = nd.zeros((2000, 1000))
    if mode == "imperative":
        return lambda: nd.Custom(data, op_type="tutorial_shifted")
    executor = mx.sym.Custom(mx.sym.var("a"), op_type="tutorial_shifted").bind(mx.cpu(), {"a": data})
    return lambda: executor.forward()
"""
STEP_OF_GLUON = {"Convolution": 2, "Activation": 3, "Pooling": 2, "FullyConnected": 2, "_backward_Convolution": 2, "_backward_Activation": 3,
                 "_backward_Pooling": 2, "_backward_FullyConnected": 2, "log_softmax": 1, "pick": 1, "multi_sgd_update": 1}
FUSED = "FullyConnected+Activation+FullyConnected"  # one call for both layers
STEP_OF_HYBRIDIZED = {**{name: n for name, n in STEP_OF_GLUON.items() if "FullyConnected" not in name},
                      "Activation": 2, "_backward_Activation": 2, FUSED: 1, f"_backward_{FUSED}": 1}
CUSTOM = {"tutorial_shifted::pure_python": 1, "tutorial_shifted::_plus_scalar": 1, "tutorial_shifted::CopyCPU2CPU": 1}


def iterations(path):
    """Of each iteration that a trace marks: the share of its time that its events add up to, and how many events of each name there are."""
    trace = read(str(path))
    marks = [e["ts"] for e in trace if e["ph"] == "i" and e["name"] == "iteration"]
    analysis = Analysis(trace)
    marks = [m - analysis.origin for m in marks]
    shares, found = [0.0] * (len(marks) - 1), [collections.Counter() for _ in marks[1:]]
    for i in analysis.intervals:
        number = bisect.bisect_right(marks, i.start + 0.5) - 1
        if i.thread == analysis.main and 0 <= number < len(shares):
            shares[number] += i.own / (marks[number + 1] - marks[number])
            found[number][i.name] += 1
    return shares, found


def adds_up(shares):
    return len(shares) >= 9 and all(share < 1.01 for share in shares) and 0.95 < statistics.median(shares)


@pytest.mark.parametrize("step, expected", [
    ("products", {"_random_uniform": 1, "dot": 1, "MXNDArraySyncCopyToCPU": 1, "WaitForVar": 1}), ("gluon_step(False)", STEP_OF_GLUON),
    ("gluon_step(True)", STEP_OF_HYBRIDIZED), ("custom_step('imperative')", CUSTOM), ("custom_step('symbolic')", {**CUSTOM, "MXExecutorForward": 1})])
def test_the_events_of_iterations_add_up_to_the_time_they_took(profile, tmp_path, step, expected):
    program = {}
    exec(LOOPS, program)
    step = eval(step, program)
    step()
    for _ in range(3):  # of a machine that is busy with others
        profile(lambda: program["loop"](step))
        shares, found = iterations(tmp_path / "profile.json")
        assert all({name: one[name] for name in expected} == expected for one in found)
        if adds_up(shares):
            return
    pytest.fail(f"events add up to these parts of iterations: {shares}")


WHOLE = {
    "autostart": ("loop(gluon_step(False))", {"MXNET_PROFILER_AUTOSTART": "1"}, STEP_OF_GLUON),
    "old names without dump": ("""
warnings.simplefilter("ignore")
step = gluon_step(False)
profiler.profiler_set_config(mode="all", filename="profile.json")
profiler.profiler_set_state("run")
loop(step)
profiler.profiler_set_state("stop")
""", {}, STEP_OF_GLUON),
    "pause and resume": ("""
step = gluon_step(False)
profiler.set_config(profile_all=True, filename="profile.json")
profiler.set_state("run")
loop(step)
profiler.pause()
step()
nd.sqrt(nd.ones((3,)))
profiler.resume()
nd.exp(nd.ones((3,)))
""", {}, STEP_OF_GLUON),
    "memory": ("""
step = gluon_step(True)
profiler.set_config(profile_all=True, filename="profile.json")
profiler.set_state("run")
loop(step)
profiler.dump()
""", {}, STEP_OF_HYBRIDIZED)}


@pytest.mark.parametrize("name", WHOLE)
def test_the_events_of_whole_programs_add_up(tmp_path, name):
    program, env, expected = WHOLE[name]
    for attempt in range(3):
        events, _ = run(f"{LOOPS}\n{program}", tmp_path / str(attempt), **env)
        shares, found = iterations(tmp_path / str(attempt) / "profile.json")
        assert all({operator: one[operator] for operator in expected} == expected for one in found)
        assert ("exp" in events, "sqrt" in events) == (name == "pause and resume", False)
        assert name != "memory" or events.count("Memory: cpu/0") + events.count("Memory: cpu/0 (resident)") >= len(shares)
        if adds_up(shares):
            return
    pytest.fail(f"events add up to these parts of iterations: {shares}")


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
