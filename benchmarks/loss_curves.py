"""Compare the loss curves of training in Remex and in MXNet 1.9.1, from the same initial weights on the same batches.

    python benchmarks/loss_curves.py --mxnet-python /opt/oracle/bin/python

A row gives the largest relative difference of two losses in the same step, and that step. Rounding differs between two libraries, and training may
amplify it; the last column shows how much, by MXNet with its initial weights perturbed by one unit in the last place (ULP).
"""
import argparse
import os
import sys

from harness import common, tasks, worker_processes

NETWORKS = ("lenet", "resnet8", "lm2x64", "resnet18-thin", "mlp2x128", "encoder2x64", "deepar2x40")
LIMIT = 1e-3


def start_worker(python):
    return worker_processes.Process([python, "-W", "ignore", os.path.join(common.WORKERS, "loss_curve_worker.py"), "-"], cold=False)


def difference(losses, reference):
    """Return (largest relative difference, its step counted from 1, the first step beyond the limit or None)."""
    differences = [abs(a - b) / abs(b) if a == a and b == b else float("inf") for a, b in zip(losses, reference, strict=True)]
    worst = max(range(len(differences)), key=differences.__getitem__)
    return differences[worst], worst + 1, next((i + 1 for i, value in enumerate(differences) if value > LIMIT), None)


def as_text(value, step, first):
    """Return a difference as text."""
    return f"{value:.1e} (step {step}" + (f"; over {LIMIT:g} from step {first})" if first else ")")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mxnet-python", default=os.environ.get("MXNET_PYTHON", ""), help="the Python that has the real MXNet 1.9.1")
    parser.add_argument("--networks", default="lenet,resnet8,lm2x64", help=f"of {', '.join(NETWORKS)}")
    parser.add_argument("--optimizers", default="sgd,adam", help="by comma")
    parser.add_argument("--styles", default=",".join(tasks.STYLES), help="by comma")
    parser.add_argument("--steps", type=int, default=200, help="training steps, each on another batch")
    parser.add_argument("--batch", type=int, default=32, help="batch size")
    parser.add_argument("--perturbed", type=int, default=2, help="runs of MXNet with perturbed weights")
    args = parser.parse_args()
    if not args.mxnet_python:
        parser.error("--mxnet-python is missing: this compares with the real MXNet 1.9.1")
    print(f"{common.versions(args.mxnet_python)}; {args.steps} steps, batch {args.batch}\n")
    print("| network, optimizer, style | loss, first and last | Remex and MXNet | MXNet with perturbed weights and MXNet |\n|---|---|---|---|")
    remex, mxnet = start_worker(sys.executable), start_worker(args.mxnet_python)
    missed = 0
    try:
        for network in args.networks.split(","):
            for optimizer in args.optimizers.split(","):
                perturbed = None
                for style in args.styles.split(","):
                    request = {"do": "curve", "network": network, "count": args.batch, "style": style, "optimizer": optimizer, "steps": args.steps}
                    reference = mxnet.ask(**request, ulp_seed=None)["losses"]
                    result = difference(remex.ask(**request, ulp_seed=None)["losses"], reference)
                    if perturbed is None:  # with the first style, for all
                        perturbed = [difference(mxnet.ask(**request, ulp_seed=seed)["losses"], reference) for seed in range(args.perturbed)]
                    missed += result[0] > LIMIT
                    print(f"| {network}, {optimizer}, {style} | {reference[0]:.4f}, {reference[-1]:.4f} | {as_text(*result)} "
                          f"| {as_text(*max(perturbed)) if perturbed else '-'} |", flush=True)
    finally:
        remex.close()
        mxnet.close()
    print(f"\n{missed} rows differ by more than {LIMIT:g}.")


if __name__ == "__main__":
    main()
