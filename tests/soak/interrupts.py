"""Ctrl-C at random moments: each must arrive as one KeyboardInterrupt, and what was interrupted must work when it is called again."""
import collections
import contextlib
import gc
import os
import signal
import subprocess
import sys
import time
import traceback

import torch

import mxnet as mx
from mxnet import attribute, autograd, name
from mxnet.gluon.data import DataLoader
from mxnet.graph.runtime.runner import GraphRunner

from . import loading, training

_SECONDS = 20  # after which an interrupt is lost
# Another process sends it, since a thread of this one would do so only where it gets the interpreter's lock.
_SENDER = """
import os, sys, time
for line in sys.stdin:
    group, seconds = line.split()
    time.sleep(float(seconds))
    os.killpg(int(group), 2)
"""


class Interrupts:
    """Sends SIGINT to the group of processes of this one, which has to be a group of its own."""

    def __init__(self):
        if os.getpgid(0) != os.getpid():
            os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with the signal ignored
        self.lost = []
        sys.unraisablehook = self._ignored
        self._sender = subprocess.Popen([sys.executable, "-S", "-c", _SENDER], stdin=subprocess.PIPE, text=True, start_new_session=True)

    def _ignored(self, unraisable):
        place = "".join(traceback.format_tb(unraisable.exc_traceback)[-3:])
        self.lost.append(f"{unraisable.exc_type.__name__} in {unraisable.object!r}:\n{place}")

    def during(self, work, seconds):
        """Do some work again and again until it is interrupted, after so many seconds."""
        end = time.monotonic() + seconds + _SECONDS
        try:
            self._sender.stdin.write(f"{os.getpid()} {seconds}\n")
            self._sender.stdin.flush()
            while time.monotonic() < end and not self.lost:
                work()
        except KeyboardInterrupt:
            return
        raise AssertionError("an interrupt was lost: " + ("\n".join(self.lost) or "nobody knows where"))

    def close(self):
        """End the other process."""
        self._sender.stdin.close()
        self._sender.wait()


def ctrl_c_loading(rng, folder):
    """In a data loader: made, iterated over, broken off, deleted, its workers too."""
    interrupts, left = Interrupts(), None
    count = collections.Counter()
    left = loading.Left()

    def step(i):
        way = loading.WAYS[i % len(loading.WAYS)]
        kept = [] if i % 3 else [DataLoader(loading.Numbers(), 4, **way)]

        def work():
            loader = kept[0] if kept else DataLoader(loading.Numbers(), 4, **way)
            for number, batch in enumerate(loader):
                if number == i % 4:
                    break
                del batch
            del loader

        interrupts.during(work, rng.random() * 0.15)
        count["interrupts"] += 1
        if kept:
            loading.check(kept[0])  # the loader that was interrupted goes on
            kept.clear()
        left.check()

    step.count, step.close = count, interrupts.close
    return step


def _blocks():
    """What ``with`` blocks change, and put back."""
    return (autograd.is_recording(), autograd.is_training(), torch.is_grad_enabled(), mx.current_context(), mx.is_np_shape(), mx.is_np_array(),
            name.current(), attribute.current())


def _drop_compiled():
    """Drop what graphs have been compiled to. When that happens depends on the time that they have run for: each has threads and memory, and stays
    until it is called with other weights, so that samples would differ without anything growing."""
    for runner in [o for o in gc.get_objects() if type(o) is GraphRunner]:
        runner.states.clear()


def _fill_pools(graphs=16):
    """Have so many compiled graphs at once: OpenVINO keeps the threads of those that are gone for others, so that there are as many as there ever
    were graphs at a time, which depends on time, too."""
    networks = [training.dense(backend="openvino") for _ in range(graphs)]
    for network in networks:
        network(mx.nd.ones((1, training.FEATURES))).wait_to_read()


def ctrl_c_training(rng, folder):
    """In the loops of training."""
    _fill_pools()
    interrupts = Interrupts()
    count = collections.Counter()
    loops = {name: loop(rng, folder) for name, loop in training.LOOPS.items()}
    outside = _blocks()

    def step(i):
        style = list(loops)[i % len(loops)]
        loop = loops[style]
        functions = [*[loop.main] * 4, *(f for f in loop.others.values() if f.__name__ not in ("hot", "compiled"))]
        function = functions[i // len(loops) % len(functions)]

        def work():
            function()
            mx.nd.waitall()

        with contextlib.suppress(training.Expected):
            interrupts.during(work, rng.random() * 0.03)
        count[f"{style}.{function.__name__}"] += 1
        if _blocks() != outside:
            raise AssertionError(f"{style}.{function.__name__} was interrupted and left {_blocks()} behind, not {outside}")
        function()
        loop.main()
        gc.collect(0)

    step.count, step.close, step.settle = count, interrupts.close, _drop_compiled
    return step


LOOPS = {"ctrl_c_loading": ctrl_c_loading, "ctrl_c_training": ctrl_c_training}
