"""Training steps where other programs are busy: Remex and MXNet 1.9.1, both as they come, alone, beside loops that never wait, and on one core.

    python benchmarks/busy.py --mxnet-python /opt/oracle/bin/python          # writes benchmarks/results/busy.md

Each figure is the median step of a process of its own, which runs for some seconds; engines and conditions take turns.
"""
import argparse
import math
import os
import statistics
import subprocess
import sys
import time

import peers

ROWS = {"mlp2x128": 32, "lenet": 32, "lm2x64": 16, "resnet18-thin": 16, "mlp3x1024": 128}
STYLES = ("hybridized", "Module")
CONDITIONS = ("alone", "beside busy loops", "on one core")
LOOP = [sys.executable, "-c", "while True: pass"]


def child(name, style, seconds):
    """The median step in ms, after some seconds in which a program finds its pace."""
    import learners
    import lessons

    import mxnet as mx
    step = learners.stepper(name, ROWS[name], style, "adam")
    x, y = (mx.nd.array(a) for a in lessons.batch(name, ROWS[name]))
    found, end = [], time.perf_counter() + 2 * seconds
    while time.perf_counter() < end or len(found) < 4:
        start = time.perf_counter()
        step(x, y)
        found.append(time.perf_counter() - start)
    print(statistics.median(found[len(found) // 2:]) * 1e3)


def measure(python, condition, name, style, seconds):
    """The median step of a new process, in ms; None where it fails."""
    env = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    if python == sys.executable:
        env["PYTHONPATH"] = os.path.join(peers.ROOT, "src")
    cores = sorted(os.sched_getaffinity(0))
    loops = [subprocess.Popen(LOOP) for _ in cores] if condition == "beside busy loops" else []
    try:
        command = [python, os.path.abspath(__file__), "--child", name, style, str(seconds)]
        ties = (lambda: os.sched_setaffinity(0, cores[:1])) if condition == "on one core" else None
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900, preexec_fn=ties)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    return float(done.stdout.split()[-1]) if done.returncode == 0 else None


def table(found):
    """Markdown, with the ratio of MXNet's time to Remex's in each row."""
    lines = ["| network, style | condition | Remex, ms | MXNet, ms | MXNet / Remex |", "|---|---|---|---|---|"]
    ratios = {}
    for (name, style, condition), (ours, theirs) in found.items():
        ratio = theirs / ours if ours and theirs else None
        ratios.setdefault(condition, []).append(ratio)
        cells = (f"{v:.3g}" if v else "failed" for v in (ours, theirs))
        lines.append(f"| {name}, {style} | {condition} | {' | '.join(cells)} | {f'{ratio:.2f}' if ratio else ''} |")
    for condition, values in ratios.items():
        known = [v for v in values if v]
        if known:
            lines.append(f"| geometric mean | {condition} | | | {math.exp(statistics.mean(map(math.log, known))):.2f} |")
    return "\n".join(lines)


def main():
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3], float(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    peers.add_arguments(parser)
    parser.add_argument("--seconds", type=float, default=2.0, help="half of how long each process trains")
    parser.add_argument("--networks", default=",".join(ROWS))
    parser.add_argument("--results", default=os.path.join(peers.ROOT, "benchmarks", "results"))
    args = parser.parse_args()
    found = {}
    for name in args.networks.split(","):
        for style in STYLES:
            for condition in CONDITIONS:
                engines = {"Remex": sys.executable, "MXNet": args.mxnet_python}
                tasks = {e: (lambda p=p, row=(condition, name, style): measure(p, *row, args.seconds) if p else None) for e, p in engines.items()}
                values = peers.interleave(tasks, args.rounds)
                found[name, style, condition] = values["Remex"], values["MXNet"]
                print(name, style, condition, values, flush=True)
    head = f"`python benchmarks/busy.py {' '.join(sys.argv[1:])}`\n\n{peers.versions(args.mxnet_python)}; loops: one for each core"
    with open(os.path.join(args.results, "busy.md"), "w") as file:
        file.write(f"# Where other programs are busy: milliseconds a step\n\n{head}\n\n{table(found)}\n")


if __name__ == "__main__":
    main()
