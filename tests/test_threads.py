"""How many threads operators have: by the cores, the container's share, the user's word, and what other programs leave."""
import os
import pathlib
import subprocess
import sys
import threading

import pytest
import torch

from kernel_limits import forget_choices
from mxnet import openmp, threads
from mxnet.kernels.conv import convolution, winograd
from mxnet.kernels.runtime import tuning
from mxnet.threads import Policy

SOURCE = pathlib.Path(threads.__file__).parents[1]
WHOLE = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
needs_two = pytest.mark.skipif(WHOLE < 2, reason="with one core there is nothing to choose")


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    """Two threads for this test, whatever the environment says, and the old number after it."""
    before = torch.get_num_threads()
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def machine(monkeypatch):
    """A clock, what its two cores were idle for, and what this process took of them, in seconds; all can be moved on."""
    state = {"clock": 100.0, "idle": 50.0, "own": 5.0}
    monkeypatch.setattr(threads, "usable", lambda: 2)
    monkeypatch.setattr(threads, "idle", lambda: state["idle"])
    monkeypatch.setattr(Policy, "_now", staticmethod(lambda: (state["clock"], state["idle"], state["own"])))

    def passes(seconds, own, others):
        state["clock"] += seconds
        state["own"] += own * seconds
        state["idle"] += (2 - own - others) * seconds
    return passes


def begun():
    policy = Policy()
    policy.begin()
    return policy


@pytest.fixture
def groups(monkeypatch, tmp_path):
    """Puts this process into a control group with such files; each path says where a file lies below /sys/fs/cgroup."""
    monkeypatch.setattr(threads, "CONTROL_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(threads, "OWN_GROUPS", tmp_path / "own")

    def put(own, **files):
        (tmp_path / "own").write_text(own)
        for path, text in files.items():
            file = tmp_path / "cgroup" / path.replace("__", "/").replace("_DOT_", ".")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    return put


@pytest.mark.parametrize("text, count", [("max 100000\n", WHOLE), ("50000 100000\n", 0.5), ("99900000 100000\n", WHOLE), ("nonsense\n", WHOLE),
                                         ("50000 0\n", WHOLE)])
@pytest.mark.parametrize("path", ["/", "/docker/abc"])
def test_a_share_of_the_cores(groups, path, text, count):
    assert threads.usable() == WHOLE
    groups(f"0::{path}\n")
    assert threads.usable() == WHOLE
    groups(f"0::{path}\n", cpu_DOT_max=text)  # where a container sees its group, whatever the path is outside
    assert threads.usable() == count


def test_the_least_share_of_all_groups_around_this_process_counts(groups):
    groups("0::/a/b\n", a__cpu_DOT_max="50000 100000\n", a__b__cpu_DOT_max="75000 100000\n", c__cpu_DOT_max="10000 100000\n")
    assert threads.usable() == 0.5


@pytest.mark.parametrize("quota, count", [("50000\n", 0.5), ("-1\n", WHOLE)])
def test_a_share_in_the_first_version_of_control_groups(groups, quota, count):
    own = "4:cpu,cpuacct:/a\n3:cpuset:/a\n0::/\n"
    groups(own, **{"cpu,cpuacct__a__cpu_DOT_cfs_quota_us": quota, "cpu,cpuacct__a__cpu_DOT_cfs_period_us": "100000\n",
                   "cpuset__a__cpu_DOT_cfs_quota_us": "1\n", "cpuset__a__cpu_DOT_cfs_period_us": "100000\n"})
    assert threads.usable() == count


def test_half_a_core_is_one_thread(groups):
    groups("0::/\n", cpu_DOT_max="50000 100000\n")
    policy = begun()
    assert torch.get_num_threads() == policy.full == 1 and policy.due == float("inf")
    assert policy.reason == "this process may use 0.5 cores"


def test_idle_time_is_that_of_the_cores_of_this_process(monkeypatch, tmp_path):
    (tmp_path / "stat").write_text("cpu  9 9 9 999 9 9 9 9\ncpu0 1 1 1 300 50 1 1 1\ncpu1 1 1 1 100 20 1 1 1\ncpu10 1 1 1 7000 1 1 1 1\nintr 5\n")
    monkeypatch.setattr(threads, "STAT", tmp_path / "stat")
    monkeypatch.setattr(threads, "TICKS_PER_SECOND", 100)
    for cores, seconds in (({0, 1}, 4.7), ({1}, 1.2), ({10}, 70.01), ({3}, None)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=cores: cores, raising=False)
        assert threads.idle() == seconds
    (tmp_path / "stat").write_text("cpu0 a b c d e\n")
    assert threads.idle() is None


def test_threads_follow_what_others_leave(machine):
    policy = begun()
    assert (policy.full, policy.count) == (2, 2)
    machine(0.3, own=1.9, others=0.05)
    policy.look()
    assert torch.get_num_threads() == policy.count == 2
    machine(0.3, own=1.0, others=1.0)  # a program that never waits has taken a core
    policy.look()
    assert torch.get_num_threads() == policy.count == 1 and policy.reason == "1.0 of 2 cores are free"
    machine(0.3, own=0.7, others=1.3)
    policy.look()
    assert policy.count == 1
    machine(0.3, own=1.0, others=0.0)  # it is gone, for once
    policy.look()
    assert policy.count == 1
    machine(0.3, own=1.0, others=0.1)
    policy.look()
    assert torch.get_num_threads() == policy.count == 2 and policy.reason == "this process may use 2 cores"


def test_kernels_are_chosen_for_one_thread_where_the_load_lasts(machine, monkeypatch):
    policy = begun()
    monkeypatch.setattr(threads, "policy", policy)

    def after(seconds, own, others):
        machine(seconds, own, others)
        policy.look()
        return threads.unreliable(), threads.of_kernels(), threads.usual()

    assert after(0.3, 1.9, 0.05) == (False, 2, 2)
    assert after(0.3, 0.7, 1.3) == (True, 2, 2)
    assert after(2.9, 0.7, 1.3) == (True, 2, 2)
    assert after(0.3, 0.7, 1.3) == (False, 1, 2)
    seen = []
    other = threading.Thread(target=lambda: (torch.set_num_threads(2), seen.append(threads.unreliable())))
    other.start()
    other.join()
    assert seen == [True]  # only this thread has one
    assert after(0.3, 1.0, 0.0) == (False, 1, 2)
    assert after(0.3, 1.0, 0.0) == (False, 2, 2)
    assert after(0.3, 0.7, 1.3) == (True, 2, 2)


def test_a_part_of_a_core_is_left_alone(machine):
    policy = begun()
    machine(0.3, own=1.5, others=0.3)
    policy.look()
    assert policy.count == 2


def test_looks_too_close_to_one_another_count_nothing(machine):
    policy = begun()
    machine(0.01, own=0, others=2)
    policy.look()
    assert policy.count == 2


def test_the_user_decides_alone(machine):
    policy = begun()
    torch.set_num_threads(3)
    machine(0.3, own=0.5, others=1.5)
    policy.look()
    assert torch.get_num_threads() == 3 and policy.due == float("inf")
    assert policy.reason == "torch.set_num_threads, or OpenMP's own function, was called"


def test_one_thread_for_a_moment_is_no_decision(machine):
    policy = begun()
    machine(0.3, own=0.5, others=1.5)
    openmp.alone(policy.look)
    assert policy.count == torch.get_num_threads() == 2 and policy.due < float("inf")


def test_other_threads_are_left_alone(machine):
    policy = begun()
    machine(0.3, own=0.5, others=1.5)
    other = threading.Thread(target=policy.look)
    other.start()
    other.join()
    assert policy.count == 2


@pytest.mark.parametrize("name, value, reason", [("OMP_NUM_THREADS", "2", "OMP_NUM_THREADS says so"),
                                                 ("MXNET_ENFORCE_DETERMINISM", "1", "this process may use 2 cores")])
def test_variables_that_switch_it_off(machine, monkeypatch, name, value, reason):
    monkeypatch.setenv(name, value)
    policy = begun()
    assert policy.due == float("inf") and policy.reason == reason


def test_who_runs_graphs_looks(monkeypatch):
    import mxnet as mx
    looks = []
    monkeypatch.setattr(threads.policy, "due", 0.0)
    monkeypatch.setattr(Policy, "look", lambda self: looks.append(1))
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize()
    net.hybridize()
    x = mx.nd.ones((1, 3))
    net(x)
    assert looks
    looks.clear()
    with mx.autograd.record():
        y = net(x)
    scored = len(looks)
    y.backward()
    assert len(looks) > scored >= 1


@pytest.mark.parametrize("busy, known, winner, count", [
    (False, None, "oneDNN", 1), (True, None, winograd.DIRECT, 0), (True, "oneDNN", "oneDNN", 0), (True, "gone", winograd.DIRECT, 0)])
def test_kernels_race_only_where_no_other_program_is_busy(monkeypatch, busy, known, winner, count):
    races = []
    monkeypatch.setattr(convolution.autotuner, "fastest", lambda name, runs: races.append(name) or "oneDNN")
    monkeypatch.setattr(convolution.autotuner, "get", lambda name: known)
    forget_choices(monkeypatch, convolution)
    monkeypatch.setattr(tuning, "unreliable", threads.unreliable)
    monkeypatch.setattr(threads.policy, "full", 3)
    monkeypatch.setattr(threads.policy, "count", 1 if busy else 3)
    data, weight = (torch.ones(shape).contiguous(memory_format=torch.channels_last) for shape in ((8, 64, 28, 28), (64, 64, 3, 3)))
    layer = convolution.Layer()
    layer.run("forward", data, weight, (1, 1, 1, 1, 1, 1), None)
    assert (layer.chosen["forward"], len(races)) == (winner, count)


BUSY = """
import time, torch, mxnet as mx
from mxnet import threads
net = mx.gluon.nn.Dense(400, in_units=400)
net.initialize()
x, seen, end = mx.nd.ones((200, 400)), set(), time.time() + {seconds}
while time.time() < end and {wanted} not in seen:
    with mx.autograd.record():
        y = net(x)
    y.backward()
    y.wait_to_read()
    seen.add(torch.get_num_threads())
print(threads.policy.full, sorted(seen))
"""


@needs_two
def test_beside_programs_that_never_wait_a_process_takes_fewer_threads():
    env = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"} | {"PYTHONPATH": str(SOURCE)}
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(WHOLE)]
    try:
        done = subprocess.run([sys.executable, "-c", BUSY.format(seconds=60, wanted=1)], env=env, capture_output=True, text=True, timeout=200)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    assert done.returncode == 0, done.stderr
    full, seen = done.stdout.split(maxsplit=1)
    assert int(full) >= 2 and "1" in seen


@needs_two
def test_one_core_is_one_thread():
    core = min(os.sched_getaffinity(0))
    program = ("import mxnet; from mxnet import threads; found = mxnet.runtime.threads(); "
               "print(found.count, found.full, found.openvino, found.opencv, threads.policy.due)")
    assert child(program, lambda: os.sched_setaffinity(0, {core})) == ["1", "1", "1", "1", "inf"]


def test_what_is_found_out_is_kept_for_the_usual_number(monkeypatch):
    assert threads.usual() == torch.get_num_threads() == 2
    monkeypatch.setattr(threads.policy, "full", 4)
    monkeypatch.setattr(threads.policy, "count", 1)
    torch.set_num_threads(1)
    assert threads.usual() == 4


def test_a_number_that_the_user_has_just_set_is_the_usual_one(monkeypatch):
    monkeypatch.setattr(threads.policy, "full", 4)
    monkeypatch.setattr(threads.policy, "count", 1)
    torch.set_num_threads(3)
    assert threads.usual() == 3


def child(program, before=None, **variables):
    """The words that a new process prints, without the variables of this one that tell about threads."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_", "OPENCV_"))}
    done = subprocess.run([sys.executable, "-c", program], env={**env, "PYTHONPATH": str(SOURCE), **variables}, capture_output=True, text=True,
                          timeout=200, preexec_fn=before)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("first", ["torch", "mxnet"])
def test_what_the_user_says_stays_whichever_is_imported_first(first):
    program = (f"import {first}, os, torch, mxnet; from mxnet import threads; print(torch.get_num_threads(), threads.policy.due, "
               "os.environ['OMP_NUM_THREADS'], os.environ['OMP_WAIT_POLICY'], *mxnet.runtime.threads().variables, threads.policy.reason)")
    assert child(program, OMP_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE") == [
        "1", "inf", "1", "PASSIVE", "OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OMP_NUM_THREADS", "says", "so"]


@needs_two
def test_a_process_that_imports_torch_first_follows_the_policy_too():
    program = ("import os, torch; before = set(os.environ); import mxnet; from mxnet import threads; "
               "print(torch.get_num_threads() == threads.policy.full == threads.policy.count, threads.policy.due < 1e9, "
               "sorted(k for k in set(os.environ) - before if 'OMP' in k))")
    assert child(program) == ["True", "True", "[]"]


FORKED = """
import math, os, torch, mxnet as mx
from mxnet import threads
mx.image.imresize(mx.nd.zeros((4, 4, 3)), 2, 2)
threads.policy.full, threads.policy.count, threads.policy.due = 2, 1, 0.0
if os.fork() == 0:
    import cv2
    (mx.nd.ones((100, 100)) + 1).asnumpy()
    threads.poll()
    print(threads.policy.count, threads.usual(), threads.policy.due == math.inf, torch.get_num_threads(), cv2.getNumThreads(), flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_stays_with_one_thread():
    assert child(FORKED) == ["1", "1", "True", "1", "1"]


@pytest.fixture
def half_a_core():
    """What puts a new process into a control group with half a core; a test that wants it is skipped where there can be no such group."""
    old = pathlib.Path("/sys/fs/cgroup/cpu")
    group = (old if old.exists() else old.parent) / f"remex-test-{os.getpid()}"
    try:
        group.mkdir()
        if old.exists():
            (group / "cpu.cfs_quota_us").write_text("50000")
        else:
            (group / "cpu.max").write_text("50000 100000")
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    yield lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
    group.rmdir()


@needs_two
def test_a_container_with_half_a_core_has_one_thread_everywhere(half_a_core):
    program = "import mxnet; found = mxnet.runtime.threads(); print(found.count, found.openvino, found.opencv, found.cores, found.reason)"
    assert child(program, half_a_core) == "1 1 1 0.5 this process may use 0.5 cores".split()
