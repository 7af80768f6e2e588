"""Jobs with `Progress(rescue=True)` whose workers are killed at random moments: they end with the weights of an undisturbed one.

    python -m tests.rescues --kills 100 [--workers 4] [--jobs 1] [--seed 0]

from the root of the repository. A job trains for some hundred steps and is killed ten times, each time another worker, at another moment. Steps that
were done twice, weights that differ, and the seconds until the next step are reported. The killed worker alone may do a step twice: if it had the
sums when the others did not, the step has not happened for them.
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

LIMIT = 30  # seconds until the next step, on a machine that does nothing else

PROGRAM = """
import ctypes, os, random, signal, sys, threading, time
ctypes.CDLL(None).prctl(1, 9)
import numpy as np
import mxnet as mx
seed, steps, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
kv = mx.kv.create('dist_sync')
rank, workers, attempt = kv.rank, kv.num_workers, int(os.environ['TORCHELASTIC_RUN_ID'].split('.')[1])
numbers = np.random.RandomState(5)
x, y = numbers.rand(32 * workers, 6).astype('float32')[rank::workers], numbers.randint(0, 3, 32 * workers).astype('float32')[rank::workers]
np.random.seed(rank)
mx.random.seed(11 + rank)
net = mx.gluon.nn.HybridSequential()
net.add(mx.gluon.nn.Dense(64), mx.gluon.nn.Dropout(0.5), mx.gluon.nn.BatchNorm(), mx.gluon.nn.Dense(3))
net.initialize(mx.init.Xavier())
trainer = mx.gluon.Trainer(net.collect_params(), 'adam', {'learning_rate': 0.05}, kvstore=kv)
loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
data = mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(x, y), 4, shuffle=True)
progress = mx.gluon.Progress('saves', net, trainer, data, rescue=True)
draw = random.Random(seed * 1000 + attempt)
killed, moment = draw.randrange(workers), draw.random() * 0.5
kills = int(sys.argv[4])
log = open(f'{out}{rank}', 'a', buffering=1)
for _ in progress.epochs(steps // 8):
    for a, b in progress.batches():
        with mx.autograd.record():
            lost = loss(net(a), b)
        lost.backward()
        trainer.step(4 * workers)
        print(time.time(), attempt, progress.epoch, progress.batch, file=log)
        if moment and rank == killed and attempt < kills:
            threading.Thread(target=lambda seconds=moment: (time.sleep(seconds), os.kill(os.getpid(), 9)), daemon=True).start()
            moment = None
    if attempt < kills and progress.epoch == steps // 8 - 1:
        time.sleep(30)  # it was too fast: the kill comes here
np.savez(f'{out}{rank}.npz', **{str(i): p.data().asnumpy() for i, p in enumerate(net.collect_params().values())})
kv._barrier()
"""


def once(seed, kills, workers, steps=400):
    """Run a job that is killed so many times; return its weights, the log of each worker, and the errors."""
    import mxnet as mx
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "program.py").write_text(PROGRAM)
        env = {**os.environ, "PYTHONPATH": str(pathlib.Path(mx.__file__).parent.parent), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "mxnet.tools.launch", "-n", str(workers), "-s", "0", "--launcher", "local", "--max-restarts", str(kills),
                   sys.executable, "-W", "ignore", "program.py", str(seed), str(steps), "out", str(kills)]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        if done.returncode:
            return None, [], done.stderr[-3000:]
        logs = [pathlib.Path(folder, f"out{rank}").read_text().splitlines() for rank in range(workers)]
        import numpy as np
        return [dict(np.load(pathlib.Path(folder, f"out{rank}.npz"))) for rank in range(workers)], logs, ""


def _killed(seed, attempt, workers):
    """Return the worker that is killed in an attempt, as PROGRAM draws it."""
    return random.Random(seed * 1000 + attempt).randrange(workers)


def _wrong(seed, kills, workers, whole):
    weights, logs, error = once(seed, kills, workers)
    if weights is None:
        return f"seed {seed}: it failed: {error}", []
    if any((a[name] != b[name]).any() for a, b in zip(whole, weights) for name in a):
        return f"seed {seed}: other weights", []
    pauses = []
    for rank, log in enumerate(logs):
        entries = [line.split() for line in log]
        done = [(epoch, batch) for _, _, epoch, batch in entries]
        again = [(int(attempt), *step) for i, (_, attempt, *step) in enumerate(entries) if tuple(step) in done[:i]]
        lost = [entry for entry in again if _killed(seed, entry[0] - 1, workers) != rank]
        if lost:
            return f"seed {seed}: {len(lost)} steps done twice by worker {rank}, which lived; first (attempt, epoch, batch) {lost[0]}", []
        pauses += [float(b[0]) - float(a[0]) for a, b in zip(entries, entries[1:]) if a[1] != b[1]]
    return "", pauses


def main(argv=None):
    """Do it many times; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.rescues", description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=1, help="at a time")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(argv)
    whole, _, error = once(0, 0, chosen.workers)
    if whole is None:
        print(error)
        return 1
    each, start = 10, time.time()
    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        seeds = range(chosen.seed + 1, chosen.seed + 1 + -(-chosen.kills // each))
        found = list(pool.map(lambda seed: _wrong(seed, each, chosen.workers, whole), seeds))
    wrong = [text for text, _ in found if text]
    pauses = sorted(pause for _, some in found for pause in some) or [float("nan")]
    print(f"{each * len(found)} kills of {chosen.workers} workers: {len(wrong)} jobs of {len(found)} wrong; the next step after "
          f"{pauses[len(pauses) // 2]:.1f} s (median), {pauses[-1]:.1f} s at most; {time.time() - start:.0f} s in all")
    late = sum(pause > LIMIT for pause in pauses)
    print(f"{late} of {len(pauses)} pauses of workers longer than {LIMIT} s")
    for text in wrong[:5]:
        print("   ", text)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
