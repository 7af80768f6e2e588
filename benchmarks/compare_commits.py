"""Compare the speed of this checkout with an earlier commit, in turns, on the same work.

Imports and calls show the fastest of all rounds, networks the median.

    python benchmarks/compare_commits.py 2169302                  # against a commit
    python benchmarks/compare_commits.py HEAD --what calls        # uncommitted changes, small calls only
    python benchmarks/compare_commits.py 2169302 --what networks --tasks rnn,int8 --networks lstm4x512,resnet18

A ratio above 1 means that this checkout is faster. A commit's sources are unpacked into a temporary folder.
"""
import argparse
import io
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile

import call_overhead
from harness import common, model_files, tasks, worker_processes

KINDS = ("import", "calls", "networks")
CLOSE = 0.05  # of a ratio to 1: differences of this size are within those of equal processes


class Tree:
    """One of the two source trees."""

    def __init__(self, name, sources, threads, bytecode):
        self.name, self.sources = name, sources
        # The first round compiles either tree; an installed package is compiled, too.
        self.env = {**os.environ, "PYTHONPATH": sources, "OMP_NUM_THREADS": str(threads), "PYTHONDONTWRITEBYTECODE": "",
                    "PYTHONPYCACHEPREFIX": bytecode}

    def values(self, code):
        """Return the numbers that a program prints on these sources."""
        return [float(line) for line in common.run(sys.executable, code, self.env).split()]


def extract_sources(revision, folder):
    """Extract the sources of a commit into a folder; return their path."""
    archive = subprocess.run(["git", "-C", common.ROOT, "archive", revision, "src"], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return os.path.join(folder, "src")


def print_table(title, rows):
    """Print a table of (row, value before, value now, unit), or with the standard error of the ratio, and the geometric mean of the ratios."""
    print(f"\n| {title} | before | now | before / now |\n|---|---|---|---|")
    for name, before, now, unit, *error in rows:
        print(f"| {name} | {before:.4g} {unit} | {now:.4g} {unit} | {before / now:.3f}{f' ± {error[0]:.3f}' if error else ''} |")
    print(f"| geometric mean | | | {statistics.geometric_mean(row[1] / row[2] for row in rows):.3f} |", flush=True)


def compare(trees, names, code, rounds, unit):
    """Return rows with the least of a program's numbers, which runs once a round on either tree."""
    values = common.interleave({t.name: lambda t=t: t.values(code) for t in trees}, rounds, lambda runs: [min(column) for column in zip(*runs)])
    return [(name, before, now, unit) for name, before, now in zip(names, *(values[t.name] for t in trees))]


def compare_networks(trees, rows, rounds, seconds, folder):
    """Return the times of a call, of each row of a task, and the standard error of their ratio; the processes of both trees take turns.

    Half of the rounds have processes of their own, the other tree's being first. Processes that do the same differ by up to 10 %, each for all of its
    life (SqueezeNet on two cores), so rows that differ by less than `CLOSE` have four times as many of them. A time is the mean over the processes.
    """
    results = []
    for row in rows:
        model_files.ensure_network(row["network"], folder)
        medians = {t.name: [] for t in trees}
        for _ in range(4):
            for order in trees, trees[::-1]:
                for name, values in _in_turns(order, row, -(-rounds // 2), seconds, folder).items():
                    medians[name].append(statistics.median(values))
            before, now = (statistics.mean(medians[t.name]) for t in trees)
            if abs(before / now - 1) >= CLOSE:
                break
        error = sum((statistics.stdev(values) / statistics.mean(values)) ** 2 / len(values) for values in medians.values()) ** 0.5
        results.append((tasks.label(row), before * 1e3, now * 1e3, "ms", error))
        print(*results[-1], file=sys.stderr, flush=True)
    return results


def _in_turns(trees, row, rounds, seconds, folder):
    """Return the times of a call in each round, by tree."""
    command = [sys.executable, os.path.join(common.WORKERS, "mxnet_worker.py"), folder]
    workers = {t.name: worker_processes.Process(command, False, sources=t.sources) for t in trees}
    try:
        for worker in workers.values():
            worker.ask(do="prepare", row=row, seconds=seconds, result_path=None)
        return common.interleave({n: lambda w=w: w.ask(do="round")["wall"] for n, w in workers.items()}, rounds, list)
    finally:
        for worker in workers.values():
            worker.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", help="the commit to compare with")
    parser.add_argument("--what", default=",".join(KINDS), help=f"of {', '.join(KINDS)}")
    parser.add_argument("--tasks", default="scoring,training", help="tasks of run.py, by comma, for the networks")
    parser.add_argument("--networks", default="resnet50", help="by comma")
    parser.add_argument("--batches", default="1,32", help="batch sizes of the networks, by comma")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each tree")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one turn of a network")
    args = parser.parse_args()
    what = set(args.what.split(","))
    if what - set(KINDS):
        parser.error(f"--what takes {', '.join(KINDS)}, received {args.what}")
    print(f"{common.versions('')}; before: {args.revision}")
    with tempfile.TemporaryDirectory() as folder:
        sources = {"before": extract_sources(args.revision, folder), "now": os.path.join(common.ROOT, "src")}
        bytecode = os.path.join(folder, "bytecode")
        single = [Tree(name, path, 1, bytecode) for name, path in sources.items()]
        if "import" in what:
            code = "import torch, time\nt = time.perf_counter()\nimport mxnet\nprint(time.perf_counter() - t)"
            print_table("import, after torch", compare(single, ["import mxnet"], code, args.rounds, "s"))
        if "calls" in what:
            print_table("call", compare(single, call_overhead.CALLS, call_overhead.program(), args.rounds, "µs"))
        if "networks" in what:
            several = [Tree(name, path, os.cpu_count(), bytecode) for name, path in sources.items()]
            batches = [int(b) for b in args.batches.split(",")]
            for task in args.tasks.split(","):
                rows = tasks.rows([task], args.networks.split(","), batches)
                if rows:
                    print_table(task, compare_networks(several, rows, args.rounds, args.seconds, folder))


if __name__ == "__main__":
    main()
