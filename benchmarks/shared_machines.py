"""Measure what users meet who have no machine of their own: other programs, containers, first calls, the first seconds, large profiles.

    python benchmarks/shared_machines.py --mxnet-python /opt/oracle/bin/python          # writes benchmarks/results/shared_machines.md
    python benchmarks/shared_machines.py --rows contention,first --quick

The rows about steps and about scoring have tables of their own, which are written too. Nothing else may run on the machine meanwhile.
"""
import argparse
import functools
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import compare_commits
import cpu_contention
import first_seconds
from harness import common, tasks
from harness.goals import Table

TABLE = Table("Speed on shared machines, and in the first seconds", "shared_machines")
BEFORE = "6dbca45"  # the commit with which tables of a quiet machine are compared
SECONDS_TO_TUNE = 3.0
RECOGNIZER = """
import sys
import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn
from mxnet.kernels.runtime import tuning
count, original = [0], tuning.Autotuner.fastest

def fastest(self, key, runs):
    count[0] += self.cached(key, runs) is None
    return original(self, key, runs)

tuning.Autotuner.fastest = fastest
net = nn.HybridSequential()
for channels in (32, 64, 128, 128, 256, 256, 256, 256, 256):
    net.add(nn.Conv2D(channels, 3, padding=1), nn.BatchNorm(), nn.Activation('relu'))
net.add(nn.GlobalAvgPool2D(), nn.Dense(40))
net.initialize()
net.hybridize()
loss, trainer = gluon.loss.SoftmaxCrossEntropyLoss(), gluon.Trainer(net.collect_params(), 'sgd')
for _ in range(8):
    with autograd.record():
        out = loss(net(mx.nd.ones((8, 1, 32, 100))), mx.nd.zeros(8))
    out.backward()
    trainer.step(8)
    mx.nd.waitall()
print(count[0])
"""
PROFILE = """
import json, sys, time
from mxnet.profiler.report import report
count, folder = int(sys.argv[1]), sys.argv[2]
events = [{'name': f'op{i % 50}', 'cat': 'operator', 'ph': 'X', 'ts': 10 * i, 'dur': 5 + i % 3, 'pid': 0, 'tid': 0} for i in range(count)]
with open(folder + '/trace.json', 'w') as file:
    json.dump({'traceEvents': events}, file)
start = time.process_time()
report(folder + '/page.html', folder + '/trace.json')
print(time.process_time() - start)
"""
LARGEST = """
import time
import numpy as np
import mxnet as mx
x = mx.nd.array(np.random.RandomState(0).randint(0, 1 << 30, 20_000_000), dtype='int32')
times = []
for _ in range(4):
    start = time.perf_counter()
    mx.nd.topk(x, k=10).wait_to_read()
    times.append(time.perf_counter() - start)
print(min(times[1:]))
"""


@functools.cache
def _contention(mxnet_python, seconds, rounds, results):
    steps = cpu_contention.collect(mxnet_python, seconds, rounds)
    if results:
        cpu_contention.write(steps, mxnet_python, results, "python benchmarks/shared_machines.py")
    return steps


def _steps(args):
    return _contention(args.mxnet_python, 0.5 if args.quick else args.seconds, 1 if args.quick else args.rounds, "" if args.quick else args.results)


@TABLE.row("steps under CPU contention: alone, beside a loop for each core, on one core, half a core", "MXNet 1.9.1, both with their defaults",
           "each <= 1.0 of its time, geometric mean <= 0.6")
def contention(args):
    ratios = {row: ours / theirs for row, (ours, theirs) in _steps(args).items() if ours and theirs}
    if not ratios:
        raise SystemExit("MXNet is missing")
    over = [f"{name}, {condition} {ratio:.2f}" for (name, condition), ratio in ratios.items() if ratio > 1]
    mean = statistics.geometric_mean(ratios.values())
    return f"{mean:.2f}; {len(over)} of {len(ratios)} above 1.0: {'; '.join(over) or 'none'}", mean <= 0.6 and not over


@TABLE.row("the same steps beside the loops", "Remex alone", "<= 2.2 of its time")
def beside_loops(args):
    results = _steps(args)
    ratios = {name: results[name, "beside busy loops"][0] / results[name, "alone"][0] for name, condition in results if condition == "alone"}
    worst = max(ratios, key=ratios.get)
    mean = statistics.geometric_mean(ratios.values())
    return f"{mean:.2f}; the largest {ratios[worst]:.2f}, {worst}", mean <= 2.2


QUIET = (("scoring", ("resnet50", "vgg16", "inception-v3", "mobilenet", "squeezenet"), 1),
         ("training", ("resnet50", "resnet18", "mobilenet", "vgg16", "alexnet"), 8),
         ("rnn", ("lstm4x512", "gru4x512", "lstm8x512", "lstm4x1024", "gru4x1024"), 32))


@TABLE.row("a quiet machine's scoring, training and LSTM, five rows each", f"this project at {BEFORE}", ">= 0.99 of its speed")
def quiet(args):
    ratios, errors = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        trees = [compare_commits.Tree(name, sources, os.cpu_count(), os.path.join(folder, "bytecode"))
                 for name, sources in (("before", compare_commits.extract_sources(BEFORE, folder)), ("now", os.path.join(common.ROOT, "src")))]
        for task, networks, batch in QUIET:
            rows = tasks.rows([task], networks[:1] if args.quick else networks, [batch], "scoring" if task == "rnn" else None)
            for label, before, now, _, error in compare_commits.compare_networks(trees, rows, 2 if args.quick else args.rounds, 1.0, args.folder):
                ratios[f"{task} {label}"], errors[f"{task} {label}"] = before / now, error
    # A row is slower where two standard errors do not explain it.
    slower = {name: ratio for name, ratio in ratios.items() if ratio + 2 * errors[name] < 0.99}
    lowest = min(ratios, key=ratios.get)
    return (f"{statistics.geometric_mean(ratios.values()):.2f} of {len(ratios)}; {len(slower)} slower; the lowest {ratios[lowest]:.3f} with a "
            f"standard error of {errors[lowest]:.3f}, {lowest}"), not slower


def _seconds_of_demo():
    start = time.perf_counter()
    subprocess.run([sys.executable, os.path.join(common.ROOT, "examples", "demo.py")], check=True, capture_output=True,
                   env={**os.environ, "PYTHONPATH": os.path.join(common.ROOT, "src")})
    return time.perf_counter() - start


@TABLE.row("`make demo` beside a loop for each core", "alone", "<= 2.5 of its time")
def demo(args):
    alone = _seconds_of_demo()
    with cpu_contention.beside_loops():
        beside = _seconds_of_demo()
    return f"{beside / alone:.2f} ({beside:.0f} s, {alone:.0f} s)", beside <= 2.5 * alone


@TABLE.row("scoring of 11 networks, batch 1 and 16: first four seconds, second process, steady state", "the best of the others",
           f"geometric means >= 1.10, 1.25, 1.25; none under 0.97 in the end; tuned within {SECONDS_TO_TUNE:g} s")
def first(args):
    rates = first_seconds.collect(tasks.NETWORKS[:2] if args.quick else tasks.NETWORKS, [1, 16],
                                  argparse.Namespace(mxnet_python=args.mxnet_python, rounds=1, seconds=7.0, folder=args.folder))
    if not args.quick:
        first_seconds.write(rates, args.mxnet_python, args.results)
    means = [first_seconds.mean(rates, kind) for kind in ("first", "second", "settled")]
    ends = {name: values["settled"] / values["best"][1] for name, values in rates.items()}
    slowest, latest = min(ends, key=ends.get), max(rates, key=lambda name: rates[name]["after"])
    after = rates[latest]["after"]
    text = f"{', '.join(f'{m:.2f}' for m in means)}; the lowest in the end {ends[slowest]:.2f}, {slowest}"
    reached = all(m >= goal for m, goal in zip(means, (1.10, 1.25, 1.25))) and ends[slowest] >= 0.97 and after <= SECONDS_TO_TUNE
    return f"{text}; the last tuned after {after:.1f} s, {latest}", reached


@TABLE.row("first bind of each operator", "later ones", "<= 50 ms more")
def first_bind(args):
    output = subprocess.run([sys.executable, os.path.join(common.BENCHMARKS, "first_calls.py")], check=True, capture_output=True, text=True,
                            env=common.python_env()).stdout
    slowest = re.search(r"^(\w+): ([\d.]+) ms$", output, re.MULTILINE)
    over, operators = map(int, re.search(r"(\d+) of (\d+) operators over", output).groups())
    return f"{over} of {operators} operators over 50 ms; the slowest {slowest[1]}, {slowest[2]} ms", not over


@TABLE.row("comparisons of kernels in the second process that trains nine convolutions", "none kept", "0")
def second_process(args):
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "PYTHONPATH": os.path.join(common.ROOT, "src"), "MXNET_HOME": home}
        counts = [int(common.run(sys.executable, RECOGNIZER, env)) for _ in range(2)]
    return f"{counts[1]}; {counts[0]} in the first", counts[0] > 0 and counts[1] == 0


@TABLE.row("the page of a profile of 100,000 and of 1,000,000 events, processor time", "", "<= 5 s, <= 60 s")
def page(args):
    seconds = []
    for count in (100_000, 1_000_000):
        with tempfile.TemporaryDirectory() as folder:
            output = subprocess.run([sys.executable, "-c", PROFILE, str(count), folder], check=True, capture_output=True, text=True,
                                    env=common.python_env()).stdout
            seconds.append(float(output.split()[-1]))
    return f"{seconds[0]:.1f} s, {seconds[1]:.1f} s", seconds[0] <= 5 and seconds[1] <= 60


@TABLE.row("`topk` of 20,000,000 int32", "MXNet 1.9.1", "<= 1.0 of its time")
def largest(args):
    if not args.mxnet_python:
        raise SystemExit("MXNet is missing")
    env = {**os.environ, "PYTHONPATH": os.path.join(common.ROOT, "src")}
    values = common.interleave({"ours": lambda: float(common.run(sys.executable, LARGEST, env)),
                                "theirs": lambda: float(common.run(args.mxnet_python, LARGEST))}, 1 if args.quick else 3)
    ratio = values["ours"] / values["theirs"]
    return f"{ratio:.2f} ({1e3 * values['ours']:.0f} ms, {1e3 * values['theirs']:.0f} ms)", ratio <= 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    TABLE.add_arguments(parser)
    parser.set_defaults(rounds=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="half of the time of each process under contention")
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "remex-benchmarks"), help="the folder for the networks' files")
    TABLE.run(parser.parse_args())


if __name__ == "__main__":
    main()
