"""Measure the growth of memory over many training steps: small networks of run.py's task `steps`, in three styles.

    python benchmarks/memory_growth.py --steps 10000 --mxnet-python /opt/oracle/bin/python

Resident MiB after a tenth of the steps, after half of them and at the end. Without --mxnet-python Remex is measured alone.
"""
import argparse
import os
import sys

from harness import common, tasks, worker_processes

NETWORKS = ("mlp2x128", "lenet", "resnet18-thin", "lm2x64", "encoder2x64", "deepar2x40")
LIMIT = 2 * 2 ** 20  # bytes that the last nine tenths of the steps may add


def measure(python, row, steps):
    """Yield the resident bytes after each tenth of the steps."""
    command = [python, "-W", "ignore", os.path.join(common.WORKERS, "mxnet_worker.py"), "-"]
    worker = worker_processes.Process(command, cold=False)
    try:
        worker.ask(do="prepare", row=row, seconds=0.1, result_path=None)
        for _ in range(10):  # in parts, because a request has a time limit
            yield worker.ask(do="many", calls=steps // 10)["value"]
    finally:
        worker.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mxnet-python", default=os.environ.get("MXNET_PYTHON", ""), help="the Python that has the real MXNet 1.9.1")
    parser.add_argument("--networks", default=",".join(NETWORKS), help="by comma")
    parser.add_argument("--styles", default=",".join(tasks.STYLES), help="by comma")
    parser.add_argument("--steps", type=int, default=10_000, help="training steps of each row")
    args = parser.parse_args()
    print(f"{common.versions(args.mxnet_python)}; {args.steps} steps; MiB\n")
    pythons = {"Remex": sys.executable, **({"MXNet": args.mxnet_python} if args.mxnet_python else {})}
    print(f"| network, style | {' | '.join(f'{name}: after a tenth, after half, at the end' for name in pythons)} |\n{'|---' * (1 + len(pythons))}|")
    grown = []
    for network in args.networks.split(","):
        for style in args.styles.split(","):
            cells = []
            row = {"task": "steps", "network": network, "batch": tasks.STEP_BATCHES[network], "dtype": "float32", "mode": "training", "style": style}
            for name, python in pythons.items():
                sizes = list(measure(python, row, args.steps))
                cells.append(", ".join(f"{sizes[i] / 2 ** 20:.1f}" for i in (0, 4, 9)))
                if name == "Remex" and sizes[-1] - sizes[0] > LIMIT:
                    grown.append(f"{network}, {style}")
            print(f"| {network}, {style} | {' | '.join(cells)} |", flush=True)
    print("\nRemex grew by more than 2 MiB: " + ("; ".join(grown) if grown else "nowhere") + ".")


if __name__ == "__main__":
    main()
