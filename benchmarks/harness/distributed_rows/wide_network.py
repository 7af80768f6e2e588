"""Rows about an MLP with sparse inputs and many classes (examples/wide_network.py), and about compressed gradients.

At full size a case takes up to 12 GB and three minutes on MXNet's side; `--quick` divides inputs and outputs by 10.
"""
import json
import os
import statistics
import subprocess
import sys

from harness import common
from harness.distributed_rows.registry import row

WORKER = os.path.join(common.WORKERS, "wide_network_worker.py")


def _run_json(python, command, **env):
    """Return the JSON in the last line of a program's output; a variable that is None is unset."""
    base = {**os.environ, "PYTHONPATH": os.path.join(common.ROOT, "src")} if python == sys.executable else common.foreign_env()
    env = {name: value for name, value in {**base, **env}.items() if value is not None}
    process = subprocess.run([python, "-W", "ignore", *command], capture_output=True, text=True, env=env)
    if process.returncode:
        raise SystemExit(f"{command} failed:\n{process.stderr[-2000:]}")
    return json.loads(process.stdout.strip().splitlines()[-1])


def _compare_with_mxnet(case, args, goal):
    if not args.mxnet_python:
        return "MXNet is not installed (no --mxnet-python)", False
    # The first of the short steps still allocates memory, which the median of five does not count.
    command = [WORKER, "--case", case, "--steps", "2" if case == "adamax" else "5", "--scale", "10" if args.quick else "1"]
    own, theirs = _run_json(sys.executable, command, OMP_NUM_THREADS=common.threads()), _run_json(args.mxnet_python, command)
    half = _run_json(args.mxnet_python, command, OMP_NUM_THREADS=os.environ.get("OMP_NUM_THREADS"))  # its default is half of the processors
    seconds = [statistics.median(result["seconds"]) for result in (own, theirs, half)]
    faster, memory = min(seconds[1:]) / seconds[0], own["peak"] / theirs["peak"]
    return (f"{faster:.2f} times as fast ({seconds[0]:.2f} s; {seconds[1]:.2f} s with all processors, {seconds[2]:.2f} s with its own choice), "
            f"{memory:.2f} of its memory ({own['peak'] / 1e9:.2f} GB, {theirs['peak'] / 1e9:.2f} GB)", faster >= goal and memory <= 0.9)


@row("wide network, dense batches of 128, Module and AdaMax", "MXNet 1.9.1", ">= 3 times as fast, <= 0.9 of its memory")
def adamax(args):
    return _compare_with_mxnet("adamax", args, 3)


@row("wide network, dense batches of 128, Module and SGD", "MXNet 1.9.1", ">= 1.5 times as fast, <= 0.9 of its memory")
def sgd(args):
    return _compare_with_mxnet("sgd", args, 1.5)


@row("wide network, CSR batches of 128, row_sparse first weight, Adam", "MXNet 1.9.1", ">= 2 times as fast, <= 0.9 of its memory")
def csr(args):
    return _compare_with_mxnet("csr", args, 2)


def _launch(workers, command):
    return _run_json(sys.executable, ["-m", "mxnet.tools.launch", "-n", str(workers), "-s", "0", "--launcher", "local", sys.executable, *command])


@row("wide network, CSR batches, sampled output, 2 and 4 ranks: bytes of a step", "dense all-reduce", "<= 1/10")
def sparse_traffic(args):
    shares = []
    for workers in (2, 4):  # narrow layers, for two cores: bytes of both are proportional to the width
        result = _launch(workers, [WORKER, "--case", "csr", "--sampled", "--hidden", "32,16", "--kv-store", "dist_sync", "--steps", "2"])
        shares.append(2 * (workers - 1) / workers * 4 * result["parameters"] / max(result["sent"]))
    return f"1/{shares[0]:.1f} and 1/{shares[1]:.1f}", min(shares) >= 10


_COMPRESSED = """
import json, numpy as np, mxnet as mx
kv = mx.kv.create("dist_sync")
kv.set_gradient_compression({"type": "2bit", "threshold": 0.5})
shape, sent = (1000, 1000), []
kv.init("w", mx.nd.zeros(shape))
for step in range(4):
    before = kv._group.sent
    kv.pushpull("w", mx.nd.array(np.random.RandomState(kv.rank + 10 * step).normal(0, 0.3, shape)), out=mx.nd.zeros(shape))
    sent.append(kv._group.sent - before)
if kv.rank == 0:
    print(json.dumps({"sent": sent}))
"""


@row("2-bit compression, 2, 3 and 4 workers: bytes (gradients of deviation 0.6 of the threshold)", "dense", "<= 1/15")
def compressed(args):
    shares = [2 * (n - 1) / n * 4e6 / max(_launch(n, ["-c", _COMPRESSED])["sent"]) for n in (2, 3, 4)]
    return ", ".join(f"1/{share:.1f}" for share in shares), min(shares) >= 15
