"""Compare the profiler's times with the wall time of the same run without it, and measure its overhead.

ResNet-50 and four LSTM layers, scoring and training. Runs without and with the profiler take turns in one process, after a warm-up step. "sum" is the
sum of the exclusive times of all intervals; "time" is the median of a step. The overhead is in processor time, which other programs affect less, by
the medians and by the fastest steps. Finally a million events are recorded and written, in a process of their own.

    python benchmarks/profiler_accuracy.py                              # all, about 3 minutes on 2 cores
    python benchmarks/profiler_accuracy.py --only lstm-training --rounds 20
"""
import argparse
import bisect
import os
import statistics
import subprocess
import sys
import tempfile
import time

import mxnet as mx
from mxnet import autograd, gluon, nd, profiler
from mxnet.profiler.analysis import Analysis
from mxnet.profiler.events import GRAPH, OPERATOR
from mxnet.profiler.recorder import recorder
from mxnet.profiler.trace import read

EVENTS = 1_000_000
BOUND = 64  # MiB of growth: 36 for the events, the rest for the block that is formatted


HEAD = ("| run | time (ms) | sum (ms) | sum to time, medians | fastest | operators to time, medians | fastest | events | overhead, medians "
        "| fastest |\n"
        + "|---" * 10 + "|")


def resnet(batch, size):
    net = gluon.model_zoo.vision.resnet50_v1()
    return net, nd.random.uniform(shape=(batch, 3, size, size)), nd.zeros((batch,))


def lstm(batch, length):
    net = gluon.nn.HybridSequential()
    net.add(gluon.rnn.LSTM(256, num_layers=4, layout="NTC"), gluon.nn.Dense(10))
    return net, nd.random.uniform(shape=(batch, length, 128)), nd.zeros((batch,))


def scoring(net, data, label):
    net.initialize()
    net.hybridize(static_alloc=True, static_shape=True)
    return lambda: net(data).wait_to_read()


def training(net, data, label):
    net.initialize()
    net.hybridize(static_alloc=True, static_shape=True)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.001, "momentum": 0.9})
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss()

    def step():
        with autograd.record():
            loss = loss_function(net(data), label)
        loss.backward()
        trainer.step(data.shape[0])
        loss.wait_to_read()

    return step


CASES = {"resnet50-scoring": lambda: scoring(*resnet(1, 224)), "resnet50-training": lambda: training(*resnet(2, 224)),
         "lstm-scoring": lambda: scoring(*lstm(8, 32)), "lstm-training": lambda: training(*lstm(8, 32))}


class Steps:
    """Begin and end of steps (ns of the profiler's clock) and their processor time (s)."""

    def __init__(self):
        self.spans, self.processor = [], []

    def take(self, step, count):
        step()  # the first one after a switch has cold caches
        for _ in range(count):
            start, processor = time.perf_counter_ns(), time.process_time()
            step()
            self.processor.append(time.process_time() - processor)
            self.spans.append((start, time.perf_counter_ns()))

    @property
    def times(self):
        """Seconds."""
        return [(end - start) / 1e9 for start, end in self.spans]


def step_sums(path, spans):
    """Return, from a profile, for each step the sum of all intervals and of operators and graphs alone, in seconds; and the median number of events.

    The sums are of exclusive times, in the thread that runs the steps.
    """
    analysis = Analysis(read(path))
    # The trace counts from 1970 on, and its analysis from the first event.
    starts = [(start + recorder.origin) / 1000 - analysis.origin for start, _ in spans]
    everything, operators, events = ([0.0] * len(spans) for _ in range(3))
    for i in analysis.intervals:
        number = bisect.bisect_right(starts, i.start + 0.01) - 1
        if i.thread == analysis.main and number >= 0 and i.start < starts[number] + (spans[number][1] - spans[number][0]) / 1000:
            everything[number] += i.own / 1e6
            events[number] += 1
            if i.category in (OPERATOR, GRAPH):
                operators[number] += i.own / 1e6
    return everything, operators, statistics.median(events)


def measure(name, rounds, folder, count=4):
    """Print a row of the table."""
    step = CASES[name]()
    path = os.path.join(folder, "profile.json")
    for _ in range(3):
        step()
    profiler.set_config(filename=path, profile_all=True)
    profiler.set_state("run")
    step()  # may compile
    without, profiled = Steps(), Steps()
    for number in range(2 * rounds):
        if number % 4 in (0, 3):  # without, with, with, without: slow drifts affect both
            profiler.pause()
            without.take(step, count)
        else:
            profiler.resume()
            profiled.take(step, count)
    profiler.dump()
    everything, operators, events = step_sums(path, profiled.spans)
    row = [f"{statistics.median(without.times) * 1e3:.1f}", f"{statistics.median(everything) * 1e3:.1f}"]
    for sums in (everything, operators):
        row += [f"{best(sums) / best(without.times) - 1:+.1%}" for best in (statistics.median, min)]
    row += [f"{events:.0f}", *(f"{best(profiled.processor) / best(without.processor) - 1:+.1%}" for best in (statistics.median, min))]
    print(f"| {name} | " + " | ".join(row) + " |", flush=True)


def resident():
    """Return the resident memory of this process and its peak, in MiB."""
    with open("/proc/self/status") as f:
        return {line.split(":")[0]: int(line.split()[1]) / 1024 for line in f if line.startswith(("VmRSS", "VmHWM"))}


def million(folder):
    """Record a million operators and write them; print the growth of the peak of memory, in MiB, and the seconds of both."""
    import torch

    from mxnet.ndarray import dispatch
    profiler.set_config(filename=os.path.join(folder, "million.json"), aggregate_stats=True, profile_memory=False)
    profiler.set_state("run")
    result, inputs = torch.ones(1), ()
    dispatch.observer("exp", 0, 1, inputs, result)
    profiler.dump(False)
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")  # resets the peak
    before, start = resident()["VmRSS"], time.perf_counter()
    observe = dispatch.observer
    for _ in range(EVENTS):
        now = time.perf_counter_ns()
        observe("exp", now, now + 1000, inputs, result)
    recorded = time.perf_counter()
    profiler.dump()
    growth = resident()["VmHWM"] - before
    count = sum(1 for e in read(os.path.join(folder, "million.json")) if e["ph"] == "X")
    if count != EVENTS + 1:
        sys.exit(f"{count} events of {EVENTS + 1} are in the file")
    print(f"{growth:.1f} {recorded - start:.2f} {time.perf_counter() - recorded:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=[*CASES, "million"], default=[*CASES, "million"], help="only these runs")
    parser.add_argument("--rounds", type=int, default=8, help="runs with the profiler, and as many without")
    parser.add_argument("--in-process", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.in_process:
            million(folder)
            return 0
        if set(args.only) & set(CASES):
            print(HEAD, flush=True)
        for name in args.only:
            if name in CASES:
                measure(name, args.rounds, folder)
    if "million" in args.only:
        process = subprocess.run([sys.executable, __file__, "--in-process"], capture_output=True, text=True, check=True)
        growth, recording, writing = map(float, process.stdout.split())
        print(f"\n1,000,000 events: {growth:.1f} MiB at most (bound: {BOUND}), recorded in {recording:.1f} s, written in {writing:.1f} s")
        return int(growth > BOUND)
    return 0


if __name__ == "__main__":
    mx.random.seed(0)
    sys.exit(main())
