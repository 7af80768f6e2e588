"""What a change costs or gains: this checkout and an earlier commit, in turns, on the same work.

Imports and calls show the fastest of all rounds, networks the median.

    python benchmarks/before_after.py 2169302                  # against a commit
    python benchmarks/before_after.py HEAD --what calls        # uncommitted changes, small calls only

A ratio above 1 says that this checkout is faster. A commit's sources are unpacked into a temporary folder.
"""
import argparse
import io
import math
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile

import call_overhead
import peers
import processes
import rows

KINDS = ("import", "calls", "networks")


class Tree:
    """One of the two source trees."""

    def __init__(self, name, sources, threads):
        self.name, self.sources = name, sources
        self.env = {**os.environ, "PYTHONPATH": sources, "OMP_NUM_THREADS": str(threads)}

    def values(self, code):
        """The numbers that a program prints on these sources."""
        return [float(line) for line in peers.run(sys.executable, code, self.env).split()]


def unpacked(revision, folder):
    """The sources of a commit, in a folder."""
    packed = subprocess.run(["git", "-C", peers.ROOT, "archive", revision, "src"], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        tar.extractall(folder, filter="data")
    return os.path.join(folder, "src")


def table(title, found):
    """A table of (row, seconds before, seconds now), and the ratios' geometric mean."""
    print(f"\n| {title} | before | now | before / now |\n|---|---|---|---|")
    for name, before, now, unit in found:
        print(f"| {name} | {before:.4g} {unit} | {now:.4g} {unit} | {before / now:.3f} |")
    print(f"| geometric mean | | | {math.exp(statistics.mean(math.log(before / now) for _, before, now, _ in found)):.3f} |", flush=True)


def compare(trees, names, code, rounds, unit):
    """The smallest of a program's numbers, run once a round on either tree: what is short is as fast as its fastest run."""
    values = peers.interleave({t.name: lambda t=t: t.values(code) for t in trees}, rounds, lambda runs: [min(column) for column in zip(*runs)])
    return [(name, before, now, unit) for name, before, now in zip(names, *(values[t.name] for t in trees))]


def compare_networks(trees, names, batches, rounds, seconds, folder):
    """Scoring and training, both trees' processes alive and asked in turns."""
    found = []
    for name in names:
        subprocess.run([sys.executable, os.path.join(rows.HERE, "networks.py"), name, folder], env=processes.environment(sys.executable), check=True)
        for mode in ("scoring", "training"):
            for batch in batches:
                row = {"task": mode, "network": name, "batch": batch, "mode": mode, "dtype": "float32"}
                command = [sys.executable, os.path.join(rows.HERE, "workers", "mxnet_worker.py"), folder]
                workers = {t.name: processes.Process(command, False, sources=t.sources) for t in trees}
                try:
                    for worker in workers.values():
                        worker.ask(do="prepare", row=row, seconds=seconds, result_path=None)
                    values = peers.interleave({n: lambda w=w: w.ask(do="round")["wall"] for n, w in workers.items()}, rounds)
                finally:
                    for worker in workers.values():
                        worker.close()
                found.append((f"{name} {mode}, batch {batch}", *(values[t.name] * 1e3 for t in trees), "ms"))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", help="the commit to compare with")
    parser.add_argument("--what", default=",".join(KINDS), help=f"of {', '.join(KINDS)}")
    parser.add_argument("--networks", default="resnet50")
    parser.add_argument("--batches", default="1,32")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one turn of a network")
    args = parser.parse_args()
    what = set(args.what.split(","))
    if what - set(KINDS):
        parser.error(f"--what takes {', '.join(KINDS)}, received {args.what}")
    print(f"{peers.versions('')}; before: {args.revision}")
    with tempfile.TemporaryDirectory() as folder:
        sources = {"before": unpacked(args.revision, folder), "now": os.path.join(peers.ROOT, "src")}
        single = [Tree(name, path, 1) for name, path in sources.items()]
        if "import" in what:
            code = "import torch, time\nt = time.perf_counter()\nimport mxnet\nprint(time.perf_counter() - t)"
            table("import, after torch", compare(single, ["import mxnet"], code, args.rounds, "s"))
        if "calls" in what:
            table("call", compare(single, call_overhead.CALLS, call_overhead.program(), args.rounds, "µs"))
        if "networks" in what:
            several = [Tree(name, path, os.cpu_count()) for name, path in sources.items()]
            batches = [int(b) for b in args.batches.split(",")]
            table("network", compare_networks(several, args.networks.split(","), batches, args.rounds, args.seconds, folder))


if __name__ == "__main__":
    main()
