"""Losses while training, Remex's beside MXNet 1.9.1's: same initial weights, same batches.

    python benchmarks/curves.py --mxnet-python /opt/oracle/bin/python

A row gives the largest relative difference of two losses in the same step, and that step. Rounding differs between two
libraries, and training may amplify it; how far shows MXNet beside itself, its initial weights moved by one unit in the last place.
"""
import argparse
import os
import sys

import peers
import processes
import rows

NETWORKS = ("lenet", "resnet8", "lm2x64", "resnet18-thin", "mlp2x128", "encoder2x64", "deepar2x40")
LIMIT = 1e-3


def worker(python):
    return processes.Process([python, "-W", "ignore", os.path.join(rows.HERE, "workers", "curves_worker.py"), "-"], cold=False)


def difference(losses, reference):
    """(largest relative difference, its step counted from 1, the first step beyond the limit or None)."""
    apart = [abs(a - b) / abs(b) if a == a and b == b else float("inf") for a, b in zip(losses, reference, strict=True)]
    worst = max(range(len(apart)), key=apart.__getitem__)
    return apart[worst], worst + 1, next((i + 1 for i, value in enumerate(apart) if value > LIMIT), None)


def shown(found):
    value, step, first = found
    return f"{value:.1e} (step {step}" + (f"; over {LIMIT:g} from step {first})" if first else ")")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mxnet-python", default=os.environ.get("MXNET_PYTHON", ""), help="the Python that has the real MXNet 1.9.1")
    parser.add_argument("--networks", default="lenet,resnet8,lm2x64", help=f"of {', '.join(NETWORKS)}")
    parser.add_argument("--optimizers", default="sgd,adam")
    parser.add_argument("--styles", default=",".join(rows.STYLES))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--nudges", type=int, default=2, help="how often MXNet is compared with itself")
    args = parser.parse_args()
    if not args.mxnet_python:
        parser.error("--mxnet-python is missing: this compares with the real MXNet 1.9.1")
    print(f"{peers.versions(args.mxnet_python)}; {args.steps} steps, batch {args.batch}\n")
    print("| network, optimizer, style | loss, first and last | Remex against MXNet | MXNet, weights moved, against MXNet |\n|---|---|---|---|")
    remex, mxnet = worker(sys.executable), worker(args.mxnet_python)
    missed = 0
    try:
        for network in args.networks.split(","):
            for optimizer in args.optimizers.split(","):
                itself = None
                for style in args.styles.split(","):
                    request = {"do": "curve", "network": network, "count": args.batch, "style": style, "optimizer": optimizer, "steps": args.steps}
                    reference = mxnet.ask(**request, nudges=None)["losses"]
                    found = difference(remex.ask(**request, nudges=None)["losses"], reference)
                    if itself is None:  # with the first style, for all
                        itself = [difference(mxnet.ask(**request, nudges=seed)["losses"], reference) for seed in range(args.nudges)]
                    missed += found[0] > LIMIT
                    print(f"| {network}, {optimizer}, {style} | {reference[0]:.4f}, {reference[-1]:.4f} | {shown(found)} "
                          f"| {shown(max(itself)) if itself else '-'} |", flush=True)
    finally:
        remex.close()
        mxnet.close()
    print(f"\n{missed} rows are further apart than {LIMIT:g}.")


if __name__ == "__main__":
    main()
