"""Gloo's threads wait for the computation while gradients travel beside backward, and not afterwards."""
import os
import pathlib
import threading

import pytest

from job_checks import outputs
from mxnet.kvstore.sending_threads import SendingThreads

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setscheduler"), reason="this system has no classes of threads")


@pytest.fixture
def thread():
    """Return a function that starts a thread of this name and class, and returns its number."""
    end, running = threading.Event(), []

    def start(name, scheduler):
        ready = threading.Event()

        def run():
            pathlib.Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name)
            os.sched_setscheduler(threading.get_native_id(), scheduler, os.sched_param(0))
            ready.set()
            end.wait()

        running.append(threading.Thread(target=run))
        running[-1].start()
        assert ready.wait(10)
        return running[-1].native_id

    yield start
    end.set()
    for each in running:
        each.join()


def test_only_gloo_s_threads_of_the_usual_class_change(thread):
    numbers = [thread("gloo_tcp_loop", os.SCHED_OTHER), thread("pt_gloo_runloop", os.SCHED_IDLE), thread("other", os.SCHED_OTHER)]
    threads = SendingThreads()
    threads.defer()
    assert list(map(os.sched_getscheduler, numbers)) == [os.SCHED_BATCH, os.SCHED_IDLE, os.SCHED_OTHER]
    threads.hurry()
    assert list(map(os.sched_getscheduler, numbers)) == [os.SCHED_OTHER, os.SCHED_IDLE, os.SCHED_OTHER]


def test_threads_that_have_ended_are_left_out(thread):
    threads, end = SendingThreads(), threading.Event()
    ended = threading.Thread(target=end.wait)
    ended.start()
    pathlib.Path(f"/proc/self/task/{ended.native_id}/comm").write_text("gloo")
    number = thread("gloo", os.SCHED_OTHER)
    threads.defer()
    end.set()
    ended.join()
    threads.hurry()
    assert os.sched_getscheduler(number) == os.SCHED_OTHER


def test_the_next_call_lists_threads_named_late(thread):
    number, threads = thread("python", os.SCHED_OTHER), SendingThreads()
    threads.defer()
    pathlib.Path(f"/proc/self/task/{number}/comm").write_text("gloo_tcp_loop")
    threads.hurry()
    threads.defer()
    assert os.sched_getscheduler(number) == os.SCHED_BATCH


def test_they_wait_during_backward_only():
    found = outputs("""
    import os, pathlib
    def classes():
        return sorted({os.sched_getscheduler(int(task.name)) for task in pathlib.Path('/proc/self/task').iterdir()
                       if 'gloo' in (task / 'comm').read_text()})
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(1100, activation='tanh', in_units=50), mx.gluon.nn.Dense(1000, in_units=1100), mx.gluon.nn.Dense(10, in_units=1000))
    net.initialize()
    net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), 'sgd', {'learning_rate': 0.1}, kvstore=kv)
    seen = []
    for step in range(5):
        with mx.autograd.record():
            out = net(mx.nd.ones((8, 50))).sum()
        out.backward()
        seen.append(classes())
        trainer.step(16)
        seen.append(classes())
    # In the third step some threads begin.
    print(seen[:4] + seen[5:] == [[os.SCHED_OTHER]] * 5 + [[os.SCHED_BATCH], [os.SCHED_OTHER]] * 2 and os.SCHED_BATCH in seen[4] or seen)
    """, kind="dist_sync")
    assert found == [["True"]] * 2
