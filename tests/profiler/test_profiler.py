import collections
import json
import os
import pathlib
import subprocess
import time

import pytest

import mxnet as mx
from forked import python
from mxnet import nd, profiler
from mxnet.profiler.trace import read


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "profile.json"
    profiler.set_config(profile_all=True, aggregate_stats=True, filename=str(path))
    profiler.dumps(reset=True)
    yield path
    profiler.set_state("stop")
    profiler.resume()


def test_operators_are_counted(trace):
    nd.sqrt(nd.ones((2,)))
    profiler.set_state("run")
    x = nd.ones((2, 2))
    nd.sqrt(x)
    x + 1
    x + 1
    profiler.set_state("stop")
    nd.sqrt(x)
    rows = json.loads(profiler.dumps(format="json"))["Time"]["operator"]
    assert rows["sqrt"]["Count"] == 1 and rows["_plus_scalar"]["Count"] == 2
    assert rows["sqrt"]["Min"] <= rows["sqrt"]["Avg"] <= rows["sqrt"]["Max"] <= rows["sqrt"]["Total"]


def test_backward_and_graphs_are_profiled(trace):
    x = nd.ones((2,))
    x.attach_grad()
    exe = mx.sym.relu(mx.sym.var("x")).simple_bind(mx.cpu(), x=(2,))
    profiler.set_state("run")
    with mx.autograd.record():
        y = nd.exp(x)
    y.backward()
    exe.forward()
    rows = json.loads(profiler.dumps(format="json"))["Time"]["operator"]
    assert {"exp", "_backward_exp", "relu"} <= set(rows)


def test_each_kind_is_profiled_by_its_own_flag(tmp_path):
    x = nd.ones((2,))
    x.attach_grad()
    exe = mx.sym.relu(mx.sym.var("x")).simple_bind(mx.cpu(), x=(2,))
    seen = {}
    flags = ("profile_imperative", "profile_symbolic", "profile_api")
    for flag in flags:
        profiler.set_config(profile_memory=False, **{f: f == flag for f in flags}, aggregate_stats=True, filename=str(tmp_path / "p.json"))
        profiler.dumps(reset=True)
        profiler.set_state("run")
        with mx.autograd.record():
            y = nd.exp(x)
        y.backward()
        exe.forward()
        profiler.set_state("stop")
        seen[flag] = {name for rows in json.loads(profiler.dumps(format="json"))["Time"].values() for name in rows}
    assert seen["profile_imperative"] == {"exp", "_backward_exp"} and seen["profile_symbolic"] == {"relu"}
    assert seen["profile_api"] == {"MXAutogradBackwardEx", "MXExecutorForward", "MXNet C API Calls"}


def test_pause_leaves_out(trace):
    profiler.set_state("run")
    profiler.pause()
    nd.sqrt(nd.ones((1,)))
    profiler.resume()
    nd.exp(nd.ones((1,)))
    rows = json.loads(profiler.dumps(format="json"))["Time"]["operator"]
    assert "exp" in rows and "sqrt" not in rows


def test_the_trace_is_for_chrome(trace):
    profiler.set_state("run")
    domain = profiler.Domain("loading")
    task = domain.new_task("read")
    task.start()
    time.sleep(0.002)
    task.stop()
    counter = domain.new_counter("length", 3)
    counter += 2
    domain.new_marker("here").mark()
    nd.sqrt(nd.ones((1,)))
    profiler.dump()
    events = json.loads(trace.read_text())["traceEvents"]
    by_name = {e["name"]: e for e in events if e["ph"] != "M"}
    assert by_name["read"]["ph"] == "X" and by_name["read"]["dur"] >= 2000  # microseconds
    assert by_name["length"]["args"] == {"length": 5}
    assert by_name["here"]["ph"] == "i"
    assert by_name["sqrt"]["cat"] == "operator" and by_name["sqrt"]["pid"] == 0
    assert {"cpu/0", "loading"} <= {e["args"]["name"] for e in events if e["ph"] == "M"}


def test_the_table_has_mxnets_columns(trace):
    profiler.set_state("run")
    nd.sqrt(nd.ones((1,)))
    table = profiler.dumps(reset=True)
    assert "Profile Statistics:" in table and "Min Time (ms)" in table and "sqrt" in table and "Memory: cpu/0" in table
    assert "sqrt" not in profiler.dumps()


def test_sorting(trace):
    profiler.set_state("run")
    for _ in range(3):
        nd.exp(nd.ones((1,)))
    nd.sqrt(nd.ones((1,)))
    names = list(json.loads(profiler.dumps(format="json", sort_by="count", ascending=True))["Time"]["operator"])
    assert names.index("sqrt") < names.index("exp")
    with pytest.raises(mx.MXNetError, match="sort_by must be one of total, avg, min, max, count"):
        profiler.dumps(sort_by="name")


def test_old_names(tmp_path):
    f = tmp_path / "old.json"
    with pytest.warns(DeprecationWarning):
        profiler.profiler_set_config(mode="all", filename=str(f))
        profiler.profiler_set_state("run")
    nd.sqrt(nd.ones((1,)))
    with pytest.warns(DeprecationWarning):
        profiler.profiler_set_state("stop")
        profiler.dump_profile()
    assert any(e["name"] == "sqrt" for e in json.loads(f.read_text())["traceEvents"])


def test_bad_arguments(trace):
    with pytest.raises(mx.MXNetError, match="unknown argument 'profile_everything'"):
        profiler.set_config(profile_everything=True)
    with pytest.raises(mx.MXNetError, match="expected 'run' or 'stop', received 'go'"):
        profiler.set_state("go")


def test_nothing_is_paid_when_nothing_is_profiled(trace):
    from mxnet.ndarray import dispatch
    assert dispatch.observer is None
    profiler.set_state("run")
    assert dispatch.observer is not None
    profiler.pause()
    assert dispatch.observer is None


SERVED = """
import mxnet as mx
kv = mx.kv.create('dist_async')
w = mx.nd.zeros((4, 3))
kv.init('w', w)
kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.1, momentum=0.9))
def both(count):
    kv._barrier()
    for _ in range(count):
        kv.push('w', mx.nd.ones((4, 3)))
        kv.pull('w', out=w)
    kv._barrier()
def tell(function, *args, **kwargs):
    if kv.rank == 0:
        function(*args, **kwargs, profile_process='server')
tell(mx.profiler.set_config, profile_all=True, filename='served.json')
tell(mx.profiler.set_state, 'run')
both(5)
tell(mx.profiler.pause)
both(1)
tell(mx.profiler.resume)
both(2)
tell(mx.profiler.dump)
both(1)
"""


def test_the_server_of_a_launched_job_writes_what_it_did(tmp_path):
    (tmp_path / "program.py").write_text(SERVED)
    env = {**os.environ, "PYTHONPATH": str(pathlib.Path(mx.__file__).parent.parent), "OMP_NUM_THREADS": "1"}
    subprocess.run([*python(), "-m", "mxnet.tools.launch", "-n", "2", "-s", "1", "--launcher", "local", *python(), "program.py"],
                   cwd=tmp_path, env=env, check=True, timeout=200)
    assert [p.name for p in tmp_path.glob("*.json")] == ["rank0_served.json"]
    found = collections.Counter(e["name"] for e in read(str(tmp_path / "rank0_served.json")) if e["ph"] == "X")
    # Of both workers five and two pushes each; a pull on behalf of each. What came while it paused, and behind the end, is left out.
    assert found["multi_sgd_mom_update"] == found["KVStoreServer.push"] == found["KVStoreServer.pull"] == 14
