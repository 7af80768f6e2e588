"""A short run of each loop, and what the measure finds."""
import os
import subprocess
import sys

import numpy as np
import pytest

from forked import python
from soak import interrupts, loading, measure, training


@pytest.mark.parametrize("name", training.LOOPS)
def test_training(name, tmp_path):
    step = training.LOOPS[name](np.random.default_rng(3), str(tmp_path))
    for i in range(15):
        step(i)
    first = measure.sample(0)
    for i in range(15, 60):
        step(i)
    last = measure.sample(1)
    assert last.objects < first.objects + measure.OBJECTS
    assert (last.descriptors, last.threads, last.children, last.shared) <= (first.descriptors, first.threads, first.children, first.shared)


def test_loaders(tmp_path):
    step = loading.loaders(np.random.default_rng(3), str(tmp_path))
    for i in range(12):
        step(i)
    assert set(step.count.values()) == {1}


@pytest.mark.parametrize("name", interrupts.LOOPS)
def test_interrupts(name):
    # In a process of its own: it makes a group of processes, to which the interrupts go.
    program = f"from soak import interrupts, measure; print(measure.run(interrupts.LOOPS[{name!r}], 8, 3, 1)[1])"
    done = subprocess.run([*python(), "-W", "ignore", "-c", program], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}, timeout=120)
    assert done.returncode == 0 and done.stdout.startswith("{"), done.stderr


def _samples(**growing):
    flat = {"step": 0, "rss": 300000, "private": 200000, "descriptors": 6, "threads": 2, "children": 0, "shared": 0, "objects": 1000}
    return [measure.Sample(**{**flat, "step": 100 * i, **{name: flat[name] + int(i * by) for name, by in growing.items()}}) for i in range(1, 51)]


@pytest.mark.parametrize("growing, text", [
    ({}, None), ({"rss": 40}, None), ({"rss": 100}, "rss grows by 4000 in 4000 steps, allowed are 2048"), ({"objects": 20}, "objects grows by 800"),
    ({"descriptors": 0.05}, "descriptors: 6 after the warm-up, 8 in the end"), ({"children": 0.03}, "children: 0 after the warm-up, 1 in the end")])
def test_what_grows_is_found(growing, text):
    found = measure.judge(_samples(**growing))
    assert (found == []) if text is None else text in found[0]


def test_growing_containers_are_found(monkeypatch):
    import mxnet as mx
    table = []
    monkeypatch.setattr(mx.name, "_soak", table, raising=False)
    record = measure.Record()
    for i in range(1, 11):
        table += range(10)
        record.take(i, 10)
    assert "mxnet.name._soak grows from 20 to 100 entries" in record.judge()
