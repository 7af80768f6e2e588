import os
import pathlib
import random
import socket
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon.data import DataLoader, Dataset, SimpleDataset, _workers


class Failing(Dataset):
    def __init__(self, action):
        self.action = action

    def __len__(self):
        return 4

    def __getitem__(self, i):
        if i == 2:
            self.action()
        return i


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
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
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
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.stdout == "interrupted 1\n", done.stderr


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
    pool = _workers.WorkerPool(2)
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
    with ours, theirs, open(os.devnull, "rb") as file:
        _workers._send(ours, 7, b"x" * 1000, [file.fileno()] * 250)
        task, message, descriptors = _workers._receive(theirs)
        assert (task, message, len(descriptors)) == (7, b"x" * 1000, 250)
        for fd in descriptors:
            os.close(fd)
        ours.close()
        with pytest.raises(EOFError):
            _workers._receive(theirs)
