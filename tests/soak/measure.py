"""What a process holds, and whether that grows."""
import collections.abc
import contextlib
import functools
import gc
import itertools
import os
import pathlib
import re
import statistics
import sys
import tempfile
import threading
import time
from typing import NamedTuple

import numpy as np

import mxnet as mx

WARM_UP = 0.2  # of the steps, before anything is judged
MEMORY = 2 << 10  # KiB by which the memory may grow after that, as the slope says
OBJECTS = 500  # Python objects by which their number may grow
ENTRIES = 20  # by which one of our own containers may
_TABLES = {"mxnet.ndarray.mutation_tracking.watched": 64}  # dead entries go at so many, or at twice the live ones
_OURS = re.compile(r"mxnet|remex|torch_|psm_|pymp-|sem\.mp-")


class Sample(NamedTuple):
    """What a process holds. Memory is in KiB; `private` is what no other process shares and no file holds."""

    step: int
    rss: int
    private: int
    descriptors: int
    threads: int
    children: int
    shared: int
    objects: int


def children(pid=None):
    """The processes that a process has started, the dead ones that nobody asked after, too."""
    with contextlib.suppress(OSError):
        tasks = pathlib.Path(f"/proc/{pid or os.getpid()}/task")
        return sorted(int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split())
    return []


def shared_blocks():
    """Shared memory of this process: what it has mapped, holds a descriptor of, or has left in /dev/shm."""
    held = [line.split(None, 5)[5] for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if len(line.split(None, 5)) > 5]
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            held.append(os.readlink(f"/proc/self/fd/{fd}"))
    blocks = [name for name in held if name.startswith(("/memfd:", "/dev/shm/")) and _OURS.search(name)]
    return blocks + [name for name in os.listdir("/dev/shm") if _OURS.search(name) and str(os.getpid()) in name]


def containers():
    """How many entries the containers and caches of our modules have, by their names."""
    sizes = {}
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] == "mxnet" and module is not None:
            for name, value in list(vars(module).items()):
                owners = [(f"{module_name}.{name}", value)]
                if isinstance(value, type) and value.__module__ == module_name:
                    owners += [(f"{module_name}.{name}.{attribute}", part) for attribute, part in vars(value).items()]
                for owner, part in owners:
                    if isinstance(part, functools._lru_cache_wrapper):
                        sizes[owner] = part.cache_info().currsize
                    elif isinstance(part, collections.abc.Sized) and not isinstance(part, (str, bytes, type, mx.nd.NDArray)):
                        with contextlib.suppress(Exception):
                            sizes[owner] = len(part)
    return sizes


def _memory():
    fields = dict(re.findall(r"(\w+): +(\d+) kB", pathlib.Path("/proc/self/smaps_rollup").read_text()))
    return int(fields["Rss"]), int(fields["Private_Dirty"])


def sample(step):
    """A `Sample` of this process, after garbage is collected."""
    gc.collect()
    return Sample(step, *_memory(), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), len(children()), len(shared_blocks()),
                  len(gc.get_objects()))


class Record:
    """Samples over time."""

    def __init__(self):
        self.samples = []
        self._before = None  # the sizes of our containers after the warm-up

    def take(self, step, steps):
        """Add a sample, after `step` of so many steps."""
        if self._before is None and step >= steps * WARM_UP:
            self._before = containers()
        self.samples.append(sample(step))

    def judge(self):
        """What grew after the warm-up: a list of texts."""
        found = judge(self.samples)
        for name, last in containers().items():
            first = (self._before or {}).get(name, 0)
            if last > max(first + ENTRIES, _TABLES.get(name, 0)):
                found.append(f"{name} grows from {first} to {last} entries")
        return found


def slope(samples, value):
    """By how much `value(sample)` grows from the first to the last, by the median of the slopes between any two (Theil and Sen), which one
    outlier moves little."""
    pairs = [(value(b) - value(a)) / (b.step - a.step) for a, b in itertools.combinations(samples, 2)]
    return statistics.median(pairs) * (samples[-1].step - samples[0].step) if pairs else 0.0


def judge(samples):
    """What grew after the warm-up: a list of texts."""
    steady = [s for s in samples if s.step >= samples[-1].step * WARM_UP]
    found = []
    for name, limit in (("rss", MEMORY), ("private", MEMORY), ("objects", OBJECTS)):
        growth = slope(steady, lambda s, name=name: getattr(s, name))
        if growth > limit:
            found.append(f"{name} grows by {growth:.0f} in {steady[-1].step - steady[0].step} steps, allowed are {limit}")
    for name in ("descriptors", "threads", "children", "shared"):
        first, last = getattr(steady[0], name), getattr(steady[-1], name)
        if last > first:
            found.append(f"{name}: {first} after the warm-up, {last} in the end")
    return found


def run(loop, steps, seed, samples):
    """Run a loop for so many steps; a `Record`, and how often it did what."""
    record, taken = Record(), 0
    mx.random.seed(seed)
    np.random.seed(seed)
    with tempfile.TemporaryDirectory() as folder:
        step = loop(np.random.default_rng(seed), folder)
        try:
            for i in range(steps):
                step(i)
                if (i + 1) * samples // steps > taken:
                    taken = (i + 1) * samples // steps
                    getattr(step, "settle", int)()
                    record.take(i + 1, steps)
        finally:
            getattr(step, "close", int)()
    return record, dict(step.count)


def until(condition, seconds=10):
    """Wait for a condition; whether it came true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def others():
    """Threads of Python besides this one."""
    return [t for t in threading.enumerate() if t is not threading.current_thread()]
