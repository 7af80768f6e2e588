import multiprocessing
import os
import pathlib
import random
import resource
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import mxnet as mx
from forked import python
from interrupt_checks import interrupt, interrupted
from loader_checks import Failing, Numbers
from mxnet.gluon.data import DataLoader, SimpleDataset
from mxnet.gluon.data import workers as data_workers


def test_errors_that_cannot_be_pickled():
    class Strange(Exception):
        pass

    def fail():
        raise Strange("odd")

    with pytest.raises(mx.MXNetError, match="Strange: odd"):
        list(DataLoader(Failing(fail), 2, num_workers=1))


def test_a_loader_works_on_after_an_error():
    def fail():
        raise OSError("once")

    loader = DataLoader(Failing(fail), 2, num_workers=1)
    for _ in range(2):
        batches = iter(loader)
        next(batches)
        with pytest.raises(OSError, match="once"):
            next(batches)


def test_a_killed_worker_is_named():
    loader = DataLoader(Failing(lambda: os.kill(os.getpid(), 9)), 2, num_workers=1)
    with pytest.raises(mx.MXNetError, match=r"DataLoader worker \(pid \d+\) was killed by signal 9 \(SIGKILL\); .* out of memory"):
        list(loader)
    with pytest.raises(mx.MXNetError, match="all workers of the DataLoader died"):
        list(loader)


def runs(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_workers_end_with_their_parent():
    program = textwrap.dedent("""
        import os, sys
        from mxnet.gluon.data import DataLoader
        loaders = [DataLoader([1, 2, 3], 1, num_workers=2) for _ in range(2)]
        list(loaders[0])
        print(*(w.process.pid for l in loaders for w in l._worker_pool._workers), flush=True)
        os.kill(os.getpid(), 9)
    """)
    done = subprocess.run([*python(), "-c", program], capture_output=True, text=True, timeout=200, env={**os.environ, "OMP_NUM_THREADS": "1"})
    pids = done.stdout.split()
    assert len(pids) == 4, done.stderr
    deadline = time.time() + 10
    while alive := [pid for pid in pids if runs(pid)]:
        assert time.time() < deadline, f"workers {alive} live on"
        time.sleep(0.05)


def test_ctrl_c_reaches_the_parent_only():
    program = textwrap.dedent("""
        import os, signal, threading, time
        from mxnet.gluon.data import DataLoader, SimpleDataset
        os.setpgrp()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with the signal ignored
        loader = DataLoader(SimpleDataset(list(range(1000))).transform(lambda x: time.sleep(0.01) or x), 1, num_workers=2)
        batches = iter(loader)
        next(batches)  # the workers run
        threading.Timer(0.2, lambda: os.killpg(0, signal.SIGINT)).start()
        try:
            list(batches)
        except KeyboardInterrupt:
            print("interrupted", len(next(iter(loader))))
    """)
    done = subprocess.run([*python(), "-c", program], capture_output=True, text=True, timeout=200, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.stdout == "interrupted 1\n", done.stderr


_before_fork = []  # what the next fork calls: such a hook cannot be taken away again
os.register_at_fork(before=lambda: _before_fork and _before_fork.pop()())


def test_an_interrupt_in_the_hook_of_a_fork_comes_afterwards():
    _before_fork.append(interrupt)
    with interrupted():
        DataLoader(SimpleDataset([1]), 1, num_workers=2)
    assert not _before_fork and not multiprocessing.active_children()


def test_an_interrupt_does_not_cut_messages(monkeypatch):
    read, flush = data_workers.Incoming.read, data_workers.Worker.flush
    pool = data_workers.WorkerPool(1)
    try:
        first = pool.apply_async(pow, (2, 10))
        with monkeypatch.context() as patch, interrupted():
            patch.setattr(data_workers.Incoming, "read", lambda self: [read(self), interrupt()][0])
            first.get(10)
        assert first.get(10) == 1024
        with monkeypatch.context() as patch, interrupted():
            patch.setattr(data_workers.Worker, "flush", lambda self: [flush(self), interrupt()][0])
            pool.apply_async(pow, (2, 11))
        assert pool.apply_async(pow, (2, 12)).get(10) == 4096
    finally:
        pool.terminate()


def test_a_worker_that_does_not_listen_keeps_nobody_waiting(monkeypatch):
    monkeypatch.setattr(data_workers, "PATIENCE", 0.1)
    pool = data_workers.WorkerPool(1)
    process = pool._workers[0].process
    os.kill(process.pid, signal.SIGSTOP)
    results = [pool.apply_async(len, (bytes(1 << 20),)) for _ in range(10)]
    with pytest.raises(data_workers.WorkerTimeout, match="no batch within 0.05 seconds"):
        results[0].get(0.05)
    os.kill(process.pid, signal.SIGCONT)
    assert [result.get(10) for result in results] == [1 << 20] * 10
    os.kill(process.pid, signal.SIGSTOP)
    pool.terminate()
    assert process.exitcode < 0


def test_without_descriptors_left_it_says_so():
    loader = DataLoader(Numbers(), 2, num_workers=1)
    batches = iter(loader)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            while True:
                taken.append(os.dup(0))
        with pytest.raises(mx.MXNetError, match="was given up: this process has no file descriptors left; raise the limit"):
            list(batches)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, hard)
        for fd in taken:
            os.close(fd)


def test_threads():
    pool = data_workers.WorkerThreads(1, lambda: None)
    assert pool.apply_async(pow, (2, 10)).get(10) == 1024
    with pytest.raises(ZeroDivisionError):
        pool.apply_async(divmod, (1, 0)).get(10)
    go_on = threading.Event()
    running, waiting = pool.apply_async(go_on.wait), pool.apply_async(pow, (2, 3))
    with pytest.raises(multiprocessing.TimeoutError):
        running.get(0.01)
    deadline = time.time() + 10
    while pool._tasks.qsize() > 1:
        assert time.time() < deadline
        time.sleep(0.01)
    pool.terminate()
    go_on.set()
    assert running.get(10) is True
    with pytest.raises(mx.MXNetError, match="the DataLoader's workers have been terminated"):
        waiting.get(10)


@pytest.mark.parametrize("imported", ["by the program", "by the first image", "by the worker"])
def test_workers_compute_with_one_thread(imported):
    program = f"""
        import sys
        if {imported == "by the program"}:
            import cv2
        import torch
        import mxnet as mx
        torch.set_num_threads(3)
        if {imported == "by the first image"}:
            mx.image.imresize(mx.nd.zeros((4, 4, 3)), 2, 2)
        def look(_):
            mx.image.imresize(mx.nd.zeros((4, 4, 3)), 2, 2)
            return [sys.modules["cv2"].getNumThreads(), torch.get_num_threads(), mx.runtime.threads().full]
        loader = mx.gluon.data.DataLoader(mx.gluon.data.SimpleDataset([0, 1]), 1, num_workers=1, batchify_fn=look)
        print(*(list(batch) for batch in loader), torch.get_num_threads())
    """
    env = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "OPENCV_"))}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env={**env, "PYTHONPATH": str(pathlib.Path(mx.__file__).parents[1])},
                          capture_output=True, text=True, timeout=200)
    assert done.stdout == "[1, 1, 1] [1, 1, 1] 3\n", done.stderr


def _draws():
    return np.random.randint(1 << 30), random.randrange(1 << 30), int(mx.nd.random.uniform(0, 1 << 20, shape=(1,)).asscalar())


@pytest.mark.parametrize("number", [0, 1, 2])
def test_samples_draw_different_numbers(number):
    loader = DataLoader(SimpleDataset(list(range(6))).transform(lambda _: _draws()[number]), 1, num_workers=2)
    drawn = [int(batch.asscalar()) for _ in range(2) for batch in loader]
    assert len(set(drawn)) == 12


def test_seeds_repeat_whatever_the_number_of_workers():
    def run(workers):
        np.random.seed(3)
        random.seed(4)
        mx.random.seed(5)
        loader = DataLoader(SimpleDataset(list(range(6))).transform(lambda _: _draws()), 2, num_workers=workers, prefetch=2)
        return [[int(v) for part in batch for v in part.asnumpy()] for _ in range(2) for batch in loader]

    assert run(1) == run(3)


def test_a_pool_runs_functions_in_its_processes():
    pool = data_workers.WorkerPool(2)
    try:
        first, second = pool.apply_async(os.getpid), pool.apply_async(pow, (2, 10))
        assert second.get(10) == 1024 and first.get(10) != os.getpid()
        assert first.ready() and first.get() == first.get()
        with pytest.raises(ZeroDivisionError) as caught:
            pool.apply_async(divmod, (1, 0)).get(10)
        assert "ZeroDivisionError" in str(caught.value.__cause__)
    finally:
        pool.terminate()


def test_messages_arrive_whole():
    ours, theirs = socket.socketpair()
    incoming = data_workers.Incoming(theirs)
    with ours, theirs, open(os.devnull, "rb") as file:
        data_workers._send(ours, 7, b"x" * 1000, [file.fileno()] * 250)
        data_workers._send(ours, 8, b"", [])
        messages = []
        while len(messages) < 2:
            messages += incoming.read()
        assert [(task, message, len(descriptors)) for task, message, descriptors in messages] == [(7, b"x" * 1000, 250), (8, b"", 0)]
        for fd in messages[0][2]:
            os.close(fd)
        theirs.setblocking(False)
        assert incoming.read() == []
        whole = data_workers.HEADER.pack(9, 3, 0) + b"abc"
        for byte in whole[:-1]:
            ours.send(bytes([byte]))
            assert incoming.read() == []
        ours.send(whole[-1:])
        assert incoming.read() == [(9, b"abc", [])]
        ours.close()
        with pytest.raises(EOFError):
            incoming.read()
