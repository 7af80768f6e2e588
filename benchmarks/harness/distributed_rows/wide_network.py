"""Rows of `distributed.py` about the forum's network (examples/wide_network.py), and what compressed gradients send.

At full size a case takes up to 12 GB and three minutes on MXNet's side; `--quick` divides inputs and outputs by 10.
"""
import json
import os
import statistics
import subprocess
import sys

import peers
import rows
from row_table import row

WORKER = os.path.join(rows.HERE, "workers", "forum_worker.py")


def _asked(python, command, **env):
    """What the last line that a program prints says; a variable that is None is unset."""
    base = {**os.environ, "PYTHONPATH": os.path.join(peers.ROOT, "src")} if python == sys.executable else peers.foreign_env()
    env = {name: value for name, value in {**base, **env}.items() if value is not None}
    done = subprocess.run([python, "-W", "ignore", *command], capture_output=True, text=True, env=env)
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def _beside_mxnet(case, chosen, goal):
    if not chosen.mxnet_python:
        return "MXNet is not installed (no --mxnet-python)", False
    # Short steps: the first one still finds memory, and the median of five is past that.
    command = [WORKER, "--case", case, "--steps", "2" if case == "adamax" else "5", "--scale", "10" if chosen.quick else "1"]
    own, theirs = _asked(sys.executable, command, OMP_NUM_THREADS=peers.threads()), _asked(chosen.mxnet_python, command)
    half = _asked(chosen.mxnet_python, command, OMP_NUM_THREADS=os.environ.get("OMP_NUM_THREADS"))  # as it comes it takes half of the processors
    seconds = [statistics.median(found["seconds"]) for found in (own, theirs, half)]
    faster, memory = min(seconds[1:]) / seconds[0], own["peak"] / theirs["peak"]
    return (f"{faster:.2f} times as fast ({seconds[0]:.2f} s; {seconds[1]:.2f} s with all processors, {seconds[2]:.2f} s with its own choice), "
            f"{memory:.2f} of its memory ({own['peak'] / 1e9:.2f} GB, {theirs['peak'] / 1e9:.2f} GB)", faster >= goal and memory <= 0.9)


@row("the forum's network, dense batches of 128, Module and AdaMax", "MXNet 1.9.1", ">= 3 times as fast, <= 0.9 of its memory")
def adamax(chosen):
    return _beside_mxnet("adamax", chosen, 3)


@row("the forum's network, dense batches of 128, Module and SGD", "MXNet 1.9.1", ">= 1.5 times as fast, <= 0.9 of its memory")
def sgd(chosen):
    return _beside_mxnet("sgd", chosen, 1.5)


@row("the forum's network, CSR batches of 128, row_sparse first weight, Adam", "MXNet 1.9.1", ">= 2 times as fast, <= 0.9 of its memory")
def csr(chosen):
    return _beside_mxnet("csr", chosen, 2)


def _launched(workers, command):
    return _asked(sys.executable, ["-m", "mxnet.tools.launch", "-n", str(workers), "-s", "0", "--launcher", "local", sys.executable, *command])


@row("the forum's network, CSR batches, sampled output, 2 and 4 ranks: bytes of a step", "dense all-reduce", "<= 1/10")
def travels(chosen):
    shares = []
    for workers in (2, 4):  # layers are narrow, for two cores: bytes of both are in proportion to the width
        found = _launched(workers, [WORKER, "--case", "csr", "--sampled", "--hidden", "32,16", "--kv-store", "dist_sync", "--steps", "2"])
        shares.append(2 * (workers - 1) / workers * 4 * found["parameters"] / max(found["sent"]))
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
def compressed(chosen):
    shares = [2 * (n - 1) / n * 4e6 / max(_launched(n, ["-c", _COMPRESSED])["sent"]) for n in (2, 3, 4)]
    return ", ".join(f"1/{share:.1f}" for share in shares), min(shares) >= 15
