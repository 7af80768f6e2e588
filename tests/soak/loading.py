"""Epochs of data loaders that end in every way there is; after each nothing may be left of the loader.

Loops are functions ``loop(rng, folder)`` that give ``step(i)``, as in ``training``.
"""
import collections
import gc
import multiprocessing
import os
import signal
import time

import numpy as np

import mxnet as mx
from mxnet.gluon.data import DataLoader, Dataset

from . import measure

WAYS = [{}, {"num_workers": 1}, {"num_workers": 2}, {"num_workers": 2, "thread_pool": True}, {"num_workers": 1, "prefetch": 0}]


class Numbers(Dataset):
    """Samples that are large enough for batches to go through shared memory; `act` is called with the index of each."""

    def __init__(self, length=12, act=lambda i: None):
        self.length, self.act = length, act

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        self.act(i)
        return np.full((3, 60, 60), i, "float32"), i


def check(batches, first=0):
    """That batches are those of `Numbers`."""
    for number, (data, label) in enumerate(batches, first):
        labels = label.asnumpy()
        if labels[0] != 4 * number or not (data.asnumpy()[:, 1, 2, 3] == labels).all():
            raise AssertionError(f"batch {number} has the labels {labels} and the data {data.asnumpy()[:, 1, 2, 3]}")


class Left:
    """What there was before; `check` waits until there is no more than that."""

    def __init__(self):
        gc.collect()
        self.before = self._held()

    @staticmethod
    def _held():
        return {"processes": measure.children(), "threads": [t.name for t in measure.others()], "descriptors": sorted(os.listdir("/proc/self/fd")),
                "shared memory": measure.shared_blocks()}

    def _more(self):
        held = self._held()
        return {kind: held[kind] for kind, before in self.before.items() if len(held[kind]) > len(before)}

    def check(self):
        """Raise AssertionError if something is left after some seconds, without a collection of garbage."""
        if not measure.until(lambda: not self._more()):
            raise AssertionError(f"left: {self._more()}, {self.before} before")


def _fail(i):
    if i == 6:
        raise OSError("bad sample")


def _die(i):
    if i == 6 and multiprocessing.parent_process() is not None:
        os.kill(os.getpid(), signal.SIGKILL)


def _slow(i):
    time.sleep(0.03)


def loaders(rng, folder):
    """One epoch of a loader at each step."""
    count = collections.Counter()
    left = Left()
    kept = {}  # batches outlive their loaders
    steady = [DataLoader(Numbers(), 4, **way) for way in WAYS[:1]]

    def way():
        return dict(WAYS[rng.integers(len(WAYS))])

    def whole():
        loader = DataLoader(Numbers(), 4, auto_reload=bool(rng.integers(2)), **way())
        check(loader)
        check(loader)

    def broken_off():
        loader = DataLoader(Numbers(40), 4, **way())
        for _ in range(2):
            for _, batch in zip(range(int(rng.integers(3))), loader):
                kept["batch"] = batch
        check(loader)

    def deleted():
        loader = DataLoader(Numbers(40), 4, **way())
        batches = iter(loader)
        kept["batch"] = next(batches)
        if rng.integers(2):
            del loader
            kept["batch"] = next(batches)
        else:
            del batches

    def failing():
        loader = DataLoader(Numbers(act=_fail), 4, **way())
        for _ in range(2):
            try:
                check(loader)
            except OSError as error:
                assert str(error) == "bad sample"
            else:
                raise AssertionError("the error of a sample was lost")

    def dying():
        loader = DataLoader(Numbers(act=_die), 4, num_workers=int(rng.integers(1, 3)))
        try:
            check(loader)
        except mx.MXNetError as error:
            assert "SIGKILL" in str(error)
        else:
            raise AssertionError("a worker's death was not noticed")

    def killed():
        loader = DataLoader(Numbers(40, _slow), 4, num_workers=2)
        batches = iter(loader)
        next(batches)
        number = signal.SIGSTOP if rng.random() < 0.1 else rng.choice([signal.SIGKILL, signal.SIGTERM])
        os.kill(int(rng.choice(measure.children())), number)
        del batches, loader

    def transformed():
        factor = int(rng.integers(1, 9))
        loader = DataLoader(Numbers().transform(lambda data, label: (data * factor, label)), 5, shuffle=True, last_batch="discard", **way())
        for data, label in loader:
            assert (data.asnumpy()[:, 0, 0, 0] == factor * label.asnumpy()).all()

    def nested():
        first, second = DataLoader(Numbers(), 4, **way()), DataLoader(Numbers(), 4, **way())
        for _ in first:
            for _, batch in zip(range(2), second):
                kept["batch"] = batch

    def late():
        loader = DataLoader(Numbers(8, lambda i: time.sleep(0.2)), 4, num_workers=1, timeout=0.05, thread_pool=bool(rng.integers(2)))
        try:
            list(loader)
        except multiprocessing.TimeoutError:
            pass
        else:
            raise AssertionError("the timeout passed unnoticed")

    def cyclic():
        loader = DataLoader(Numbers(), 4, **way())
        loader.itself, loader.batches = loader, iter(loader)
        kept["batch"] = next(loader.batches)

    def unused():
        DataLoader(Numbers(), 4, **way())

    def again():
        check(steady[0])

    ways = [whole, broken_off, deleted, failing, dying, killed, transformed, nested, late, cyclic, unused, again]

    def step(i):
        function = ways[i % len(ways)]
        function()
        count[function.__name__] += 1
        kept.clear()
        if function is cyclic:
            gc.collect()
        left.check()

    step.count = count
    return step


LOOPS = {"loaders": loaders}
