"""Rows of `distributed.py` about whole jobs: how soon they train, and how well what they have trained is."""
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import peers
import rows
from row_table import row

WORKERS = 4
WORKER = os.path.join(rows.HERE, "workers", "start_worker.py")
EXAMPLES = os.path.join(peers.ROOT, "examples", "image_classification")
LAUNCH = [sys.executable, "-W", "ignore", "-m", "mxnet.tools.launch", "-s", "0", "--launcher", "local", "-n"]
TORCHRUN = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(WORKERS)]


def _run(command):
    done = subprocess.run(command, capture_output=True, text=True, env={**peers.python_env(), "GLOO_SOCKET_IFNAME": "lo"})
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def _until_first_step(launcher, peer):
    """Seconds from the launcher's start until the last worker has done a step."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.time()
        _run([*launcher, WORKER, peer, folder])
        ends = [float(open(os.path.join(folder, name)).read()) for name in os.listdir(folder)]
    if len(ends) != WORKERS:
        raise SystemExit(f"{peer}: {len(ends)} of {WORKERS} workers did a step")
    return max(ends) - start


@row("start of 4 ranks to the first step", "torchrun + DistributedDataParallel", "<= 1.2 of its time")
def start(chosen):
    launchers = {"remex": [*LAUNCH, str(WORKERS), sys.executable], "ddp": TORCHRUN}
    samples = {peer: [] for peer in launchers}
    for index in range(min(chosen.rounds, 5) + 1):
        for peer, launcher in launchers.items():
            took = _until_first_step(launcher, peer)
            if index:  # the first time files are read from the disk
                samples[peer].append(took)
    own, theirs = (statistics.median(samples[peer]) for peer in ("remex", "ddp"))
    return f"{own / theirs:.2f} ({own:.2f} s, {theirs:.2f} s)", own <= 1.2 * theirs


def _accuracy(folder, prefix, launcher, options):
    """What the network that `make demo` trains, trained so, recognizes of the validation images."""
    epochs, records, shape = 14, os.path.join(folder, "digits"), ["--image-shape", "1,28,28"]
    _run([*launcher, sys.executable, "-W", "ignore", os.path.join(EXAMPLES, "train_mnist.py"), "--network", "lenet",
          "--data-train", f"{records}_train.rec", "--data-val", f"{records}_val.rec", *shape, "--num-classes", "10", "--num-examples", "1437",
          "--num-epochs", str(epochs), "--lr", "0.05", "--lr-step-epochs", "10", "--initializer", "xavier", "--model-prefix", prefix, *options])
    said = _run([sys.executable, "-W", "ignore", os.path.join(EXAMPLES, "score.py"), "--model", prefix, "--load-epoch", str(epochs),
                 "--data-val", f"{records}_val.rec", *shape, "--rgb-std", "255,255,255"])
    return float(re.search(r"\('accuracy', ([\d.]+)\)", said).group(1))


@row("`make demo`'s training by `launch -n 2 --kv-store dist_sync`: accuracy; and with 2-bit compression", "one process",
     "the same to 0.01; 2-bit to 0.02, the median of three runs")
def demo(chosen):
    with tempfile.TemporaryDirectory() as folder:
        images, records = os.path.join(folder, "images"), os.path.join(folder, "digits")
        tool = [sys.executable, "-W", "ignore", "-m", "mxnet.tools.im2rec", records, images]
        _run([sys.executable, "-W", "ignore", os.path.join(peers.ROOT, "examples", "digits.py"), images])
        _run([*tool, "--list", "--recursive", "--train-ratio", "0.8"])
        _run([*tool, "--color", "0", "--encoding", ".png"])
        two, in_step = [*LAUNCH, "2"], ["--kv-store", "dist_sync"]
        one = _accuracy(folder, os.path.join(folder, "one"), [], ["--batch-size", "32"])
        same = _accuracy(folder, os.path.join(folder, "same"), two, ["--batch-size", "32", *in_step])
        half = _accuracy(folder, os.path.join(folder, "half"), two, ["--batch-size", "16", *in_step])
        # On some machines its figures differ by two pictures in a hundred from run to run; it has to converge, not to be the same.
        coarse = sorted(_accuracy(folder, os.path.join(folder, f"coarse{i}"), two, ["--batch-size", "32", "--gc-type", "2bit", *in_step])
                        for i in range(1 if chosen.quick else 3))
    return (f"{same:.4f} with batches of 32 for each, {half:.4f} with the same batches in halves, {', '.join(f'{a:.4f}' for a in coarse)} "
            f"with 2-bit; one process {one:.4f}", min(same, half) >= one - 0.01 and coarse[len(coarse) // 2] >= one - 0.02)
