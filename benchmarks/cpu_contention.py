"""Measure steps of Remex and MXNet 1.9.1 under CPU contention: alone, beside busy loops, on one core, and with a quota of half a core.

    python benchmarks/cpu_contention.py --mxnet-python /opt/oracle/bin/python          # writes benchmarks/results/cpu_contention.md

Each figure is the time of a step in a separate process, the mean over some seconds (a user waits for pauses, too), with the default number of
threads; the libraries take turns.
"""
import argparse
import contextlib
import os
import statistics
import subprocess
import sys

from harness import common, cpu_quota

WORKER = os.path.join(common.WORKERS, "contention_worker.py")
LOOP = [sys.executable, "-c", """
import os
parent = os.getppid()
while os.getppid() == parent:  # a killed benchmark leaves no loop behind
    for _ in range(1_000_000):
        pass
"""]
QUOTA = 0.5  # of a core
CLOSE, LONGER = 0.8, 4  # from this ratio of two times to its inverse they are measured again, so many times as long
CORES = sorted(os.sched_getaffinity(0))


@contextlib.contextmanager
def alone():
    """Yield the function that a new process calls before its program: none."""
    yield None


@contextlib.contextmanager
def beside_loops():
    """Yield none, while one busy loop runs for each core."""
    loops = [subprocess.Popen(LOOP) for _ in CORES]
    try:
        yield None
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@contextlib.contextmanager
def on_one_core():
    """Yield a function that pins the process to one core."""
    yield lambda: os.sched_setaffinity(0, CORES[:1])


CONDITIONS = {"alone": alone, "beside busy loops": beside_loops, "on one core": on_one_core, "half a core": lambda: cpu_quota.quota(QUOTA)}


def step_names():
    """Return the names of the steps that the worker has."""
    sys.path.append(common.WORKERS)
    import contention_worker
    return list(contention_worker.STEPS)


def measure(python, condition, name, seconds):
    """Return the mean time of a step in a new process, in ms; None where it fails."""
    env = {key: value for key, value in os.environ.items() if key not in ("OMP_NUM_THREADS", "PYTHONPATH")}
    if python == sys.executable:
        env["PYTHONPATH"] = os.path.join(common.ROOT, "src")
    with CONDITIONS[condition]() as preexec:
        process = subprocess.run([python, "-W", "ignore", WORKER, name, str(seconds)], env=env, capture_output=True, text=True, timeout=900,
                              preexec_fn=preexec, check=False)
    if process.returncode:
        print(process.stderr[-2000:], file=sys.stderr)
        return None
    return float(process.stdout.split()[-1])


def _mean(values):
    present = [value for value in values if value]
    return f"{statistics.geometric_mean(present):.2f}" if present else ""


def table(results):
    """Return Markdown with both times of each step and condition, the ratio to MXNet, and the slow-down compared with running alone."""
    lines = ["| step | condition | Remex, ms | MXNet, ms | Remex / MXNet | Remex / alone |", "|---|---|---|---|---|---|"]
    to_mxnet, to_alone = {}, {}
    for (name, condition), (ours, theirs) in results.items():
        alone_ms = results.get((name, "alone"), (None, None))[0]
        ratios = ours / theirs if ours and theirs else None, ours / alone_ms if ours and alone_ms else None
        to_mxnet.setdefault(condition, []).append(ratios[0])
        to_alone.setdefault(condition, []).append(ratios[1])
        cells = [f"{v:.3g}" if v else "failed" for v in (ours, theirs)] + [f"{v:.2f}" if v else "" for v in ratios]
        lines.append(f"| {name} | {condition} | {' | '.join(cells)} |")
    lines += [f"| geometric mean | {condition} | | | {_mean(to_mxnet[condition])} | {_mean(to_alone[condition])} |" for condition in to_mxnet]
    lines.append(f"| geometric mean | all | | | {_mean(sum(to_mxnet.values(), []))} | |")
    return "\n".join(lines)


def _samples(pythons, condition, name, seconds, rounds):
    return common.interleave({p: (lambda p=p: measure(pythons[p], condition, name, seconds) if pythons[p] else None) for p in pythons}, rounds, list)


def collect(mxnet_python, seconds, rounds, only="", conditions=tuple(CONDITIONS)):
    """Return the milliseconds of a step of Remex and of MXNet, by step and condition: medians of the rounds; close ones are of longer processes."""
    results, pythons = {}, {"Remex": sys.executable, "MXNet": mxnet_python}
    for name in step_names():
        if only not in name:
            continue
        for condition in conditions:
            samples = _samples(pythons, condition, name, seconds, rounds)
            if all(samples.values()) and CLOSE <= statistics.median(samples["Remex"]) / statistics.median(samples["MXNet"]) <= 1 / CLOSE:
                samples = _samples(pythons, condition, name, LONGER * seconds, 2 * rounds)
            ours, theirs = results[name, condition] = [statistics.median(samples[p]) if samples[p] else None for p in ("Remex", "MXNet")]
            print(name, condition, ours, theirs, flush=True)
    return results


def write(results, mxnet_python, folder, command):
    """Write the table to a folder."""
    head = f"`{command}`\n\n{common.versions(mxnet_python)}; loops: one for each core"
    with open(os.path.join(folder, "cpu_contention.md"), "w") as file:
        file.write(f"# Steps under CPU contention, milliseconds\n\n{head}\n\n{table(results)}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_arguments(parser)
    parser.set_defaults(rounds=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="half of the time of each process")
    parser.add_argument("--only", default="", help="only steps whose name contains this")
    parser.add_argument("--conditions", default=",".join(CONDITIONS), help="by comma")
    parser.add_argument("--results", default=common.RESULTS, help="the folder for the table")
    args = parser.parse_args()
    results = collect(args.mxnet_python, args.seconds, args.rounds, args.only, args.conditions.split(","))
    write(results, args.mxnet_python, args.results, f"python benchmarks/cpu_contention.py {' '.join(sys.argv[1:])}")


if __name__ == "__main__":
    main()
