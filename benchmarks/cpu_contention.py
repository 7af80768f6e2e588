"""Steps where other programs are busy: Remex and MXNet 1.9.1, both as they come, alone, beside loops that never wait, tied to one core, and with half
a core's time, as a container may have it.

    python benchmarks/busy.py --mxnet-python /opt/oracle/bin/python          # writes benchmarks/results/busy.md

Each figure is the median step of a process of its own, which runs for some seconds; packages take turns.
"""
import argparse
import contextlib
import math
import os
import statistics
import subprocess
import sys

import peers
import quotas

sys.path.append(os.path.join(peers.ROOT, "benchmarks", "workers"))
import busy_worker  # noqa: E402  # it lies there

WORKER = busy_worker.__file__
LOOP = [sys.executable, "-c", "while True: pass"]
SHARE = 0.5  # of a core
CORES = sorted(os.sched_getaffinity(0))


@contextlib.contextmanager
def alone():
    """What a new process runs before its program, which here is nothing."""
    yield None


@contextlib.contextmanager
def beside_loops():
    """The same beside a busy loop for each core."""
    loops = [subprocess.Popen(LOOP) for _ in CORES]
    try:
        yield None
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@contextlib.contextmanager
def tied():
    """The same on one core."""
    yield lambda: os.sched_setaffinity(0, CORES[:1])


CONDITIONS = {"alone": alone, "beside busy loops": beside_loops, "on one core": tied, "half a core": lambda: quotas.quota(SHARE)}


def measure(python, condition, name, seconds):
    """The median step of a new process, in ms; None where it fails."""
    env = {key: value for key, value in os.environ.items() if key not in ("OMP_NUM_THREADS", "PYTHONPATH")}
    if python == sys.executable:
        env["PYTHONPATH"] = os.path.join(peers.ROOT, "src")
    with CONDITIONS[condition]() as before:
        done = subprocess.run([python, "-W", "ignore", WORKER, name, str(seconds)], env=env, capture_output=True, text=True, timeout=900,
                              preexec_fn=before, check=False)
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
    return float(done.stdout.split()[-1]) if done.returncode == 0 else None


def _mean(values):
    known = [v for v in values if v]
    return f"{math.exp(statistics.mean(map(math.log, known))):.2f}" if known else ""


def table(found):
    """Markdown: for each row and condition both times, Remex's in parts of MXNet's, and in parts of what it takes alone."""
    lines = ["| step | condition | Remex, ms | MXNet, ms | Remex / MXNet | Remex / alone |", "|---|---|---|---|---|---|"]
    beside, slower = {}, {}
    for (name, condition), (ours, theirs) in found.items():
        quiet = found.get((name, "alone"), (None, None))[0]
        ratios = ours / theirs if ours and theirs else None, ours / quiet if ours and quiet else None
        beside.setdefault(condition, []).append(ratios[0])
        slower.setdefault(condition, []).append(ratios[1])
        cells = [f"{v:.3g}" if v else "failed" for v in (ours, theirs)] + [f"{v:.2f}" if v else "" for v in ratios]
        lines.append(f"| {name} | {condition} | {' | '.join(cells)} |")
    lines += [f"| geometric mean | {condition} | | | {_mean(beside[condition])} | {_mean(slower[condition])} |" for condition in beside]
    lines.append(f"| geometric mean | all | | | {_mean(sum(beside.values(), []))} | |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    peers.add_arguments(parser)
    parser.set_defaults(rounds=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="half of how long each process runs")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--conditions", default=",".join(CONDITIONS))
    parser.add_argument("--results", default=os.path.join(peers.ROOT, "benchmarks", "results"))
    args = parser.parse_args()
    found, pythons = {}, {"Remex": sys.executable, "MXNet": args.mxnet_python}
    for name in busy_worker.JOBS:
        if args.only not in name:
            continue
        for condition in args.conditions.split(","):
            tasks = {p: (lambda p=p, row=(condition, name): measure(pythons[p], *row, args.seconds) if pythons[p] else None) for p in pythons}
            values = peers.interleave(tasks, args.rounds)
            found[name, condition] = values["Remex"], values["MXNet"]
            print(name, condition, values, flush=True)
    head = f"`python benchmarks/busy.py {' '.join(sys.argv[1:])}`\n\n{peers.versions(args.mxnet_python)}; loops: one for each core"
    with open(os.path.join(args.results, "busy.md"), "w") as file:
        file.write(f"# Where other programs are busy: milliseconds a step\n\n{head}\n\n{table(found)}\n")


if __name__ == "__main__":
    main()
