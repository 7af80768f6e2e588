"""Jobs with `Progress(rescue=True)` whose workers are killed at random moments: they end with the weights of an undisturbed one.

    python -m tests.rescues --kills 100 [--workers 4] [--seed 0] [--results FILE]

from the root of the repository. The launcher starts a job again 25 times (`ATTEMPTS`). Each time it kills a worker in the first half second of its
steps, or while it joins the others, or two workers at nearly the same time. Reported are weights that differ, steps that were done twice or by
nobody, and the seconds from each kill until all workers have done a step. A killed worker alone may do a step twice: if it had the sums when the
others did not, the step has not happened for them. A pause during which this program was stopped (SIGSTOP, SIGCONT) is not measured. With
`--results`, the jobs of earlier calls count, and are not run again.
"""
import argparse
import hashlib
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

LIMIT = 30  # seconds until the next step, on a machine that does nothing else
ATTEMPTS = 25  # with a kill, of a job
STEPS = 400  # a multiple of the 8 of an epoch

PROGRAM = """
import json, os, sys, threading, time
steps, plan, out, attempt = int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3], int(os.environ['TORCHELASTIC_RUN_ID'].split('.')[1])
def die(seconds):
    def kill():
        time.sleep(seconds)
        print(time.time(), attempt, file=open(f'{out}-kills-{rank}', 'a'), flush=True)
        os.kill(os.getpid(), 9)
    threading.Thread(target=kill, daemon=True).start()
rank, workers = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
killed = plan[attempt].get(str(rank)) if attempt < len(plan) else None
if killed and killed[0] == 'start':
    die(killed[1])
import numpy as np
import mxnet as mx
kv = mx.kv.create('dist_sync')
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
log = open(f'{out}{rank}', 'a', buffering=1)
for _ in progress.epochs(steps // 8):
    for a, b in progress.batches():
        with mx.autograd.record():
            lost = loss(net(a), b)
        lost.backward()
        trainer.step(4 * workers)
        print(time.time(), attempt, progress.epoch, progress.batch, file=log)
        if killed and killed[0] == 'step':
            die(killed[1])
            killed = None
        if attempt < len(plan) and progress.epoch == steps // 8 - 1:
            time.sleep(0.5)  # the kill must come before the end
np.savez(f'{out}{rank}.npz', **{str(i): p.data().asnumpy() for i, p in enumerate(net.collect_params().values())})
kv._barrier()
"""


def plan_kills(seed, workers):
    """Return, for each attempt of a job, the workers to kill: ("start" or "step", seconds after that) by rank."""
    draw, plan = random.Random(seed), []
    for _ in range(ATTEMPTS):
        first, second = draw.sample(range(workers), 2)
        kind, seconds = draw.choices(["step", "start", "two"], [6, 2, 2])[0], draw.random()
        # Two: the second one before, while, and after the others notice that the first one is lost.
        plan.append({first: ("start", 1.5 * seconds)} if kind == "start" else {first: ("step", 0.5 * seconds)} if kind == "step" else
                    {first: ("step", 0.5 * seconds), second: ("step", 0.5 * seconds + 0.1 * draw.random())})
    return plan


def _read(path):
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def once(plan, workers):
    """Run a job; return a digest of all weights, each worker's log (time, attempt, epoch, batch) and kills (time, attempt), and stderr."""
    import numpy as np

    import mxnet as mx
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "program.py").write_text(PROGRAM)
        env = {**os.environ, "PYTHONPATH": str(pathlib.Path(mx.__file__).parent.parent), "OMP_NUM_THREADS": "1"}
        launcher = [sys.executable, "-m", "mxnet.tools.launch", "-n", str(workers), "-s", "0", "--launcher", "local"]
        command = [*launcher, "--max-restarts", str(len(plan) + 5), sys.executable, "-W", "ignore", "program.py", str(STEPS), json.dumps(plan), "out"]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        if done.returncode:
            return None, [], [], done.stderr
        digest = hashlib.sha256()
        for rank in range(workers):
            weights = np.load(pathlib.Path(folder, f"out{rank}.npz"))
            for name in sorted(weights.files):
                digest.update(weights[name].tobytes())
        logs, kills = ([_read(pathlib.Path(folder, f"out{kind}{rank}")) for rank in range(workers)] for kind in ("", "-kills-"))
        return digest.hexdigest(), logs, kills, done.stderr


def judge(plan, undisturbed, digest, logs):
    """Return what is wrong with a job, or an empty string."""
    if digest != undisturbed:
        return "other weights"
    for rank, log in enumerate(logs):
        done = {}  # step -> the attempt in which the worker did it last
        for _, attempt, *step in log:
            before = done.get(tuple(step))
            # In the attempts between, others may have been killed before they did a step.
            killed = sorted(plan[before]) if before is not None and before < len(plan) else []
            if before is not None and rank not in killed:
                return f"epoch and batch {step} done by worker {rank} in attempts {before} and {attempt}; killed in the first: {killed}"
            done[tuple(step)] = int(attempt)
    count = len({tuple(step) for log in logs for _, _, *step in log})
    return "" if count == STEPS else f"{count} steps instead of {STEPS}"


def pauses_of(logs, kills, continued):
    """Return the seconds from each kill until all workers have done a step in a later attempt; None if this program was stopped meanwhile."""
    pauses = []
    for start, attempt in (kill for of_worker in kills for kill in of_worker):
        end = max(next(float(at) for at, later, *_ in log if int(later) > int(attempt)) for log in logs)
        pauses.append(None if any(float(start) < moment < end for moment in continued) else end - float(start))
    return pauses


def run_job(seed, workers, undisturbed):
    """Run the job of a seed; return its record for the results."""
    plan, continued = plan_kills(seed, workers), []
    signal.signal(signal.SIGCONT, lambda *_: continued.append(time.time()))
    digest, logs, kills, errors = once(plan, workers)
    wrong = f"it failed: {errors[-3000:]}" if digest is None else judge(plan, undisturbed, digest, logs)
    return {"seed": seed, "workers": workers, "wrong": wrong, "pauses": [] if digest is None else pauses_of(logs, kills, continued),
            "forced": errors.count("Unable to shutdown process")}


def report(jobs, workers):
    """Print the numbers; return 1 if anything was wrong."""
    kills = [pause for job in jobs for pause in job["pauses"]]
    pauses = sorted(pause for pause in kills if pause is not None) or [float("nan")]
    wrong = [f"seed {job['seed']}: {job['wrong']}" for job in jobs if job["wrong"]]
    print(f"{len(kills)} kills of {workers} workers: {len(wrong)} jobs of {len(jobs)} wrong; the next step of all after "
          f"{statistics.median(pauses):.1f} s (median), {pauses[-1]:.1f} s at most")
    print(f"{sum(pause > LIMIT for pause in pauses)} of {len(kills)} pauses longer than {LIMIT} s; {kills.count(None)} not measured; "
          f"{sum(job['forced'] for job in jobs)} workers did not end by themselves within the launcher's 30 s")
    for text in wrong[:5]:
        print("   ", text)
    return int(bool(wrong))


def main(argv=None):
    """Kill so many workers; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.rescues", description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=pathlib.Path, help="a file of JSON lines to go on from, and to add each job to")
    chosen = parser.parse_args(argv)
    jobs = [json.loads(line) for line in chosen.results.read_text().splitlines()] if chosen.results and chosen.results.exists() else []
    jobs = [job for job in jobs if job["workers"] == chosen.workers]
    undisturbed, _, _, errors = once([], chosen.workers)
    if undisturbed is None:
        print(errors[-3000:])
        return 1
    seeds, done = iter(range(chosen.seed, sys.maxsize)), {job["seed"] for job in jobs}
    while sum(len(job["pauses"]) for job in jobs) < chosen.kills and not any(job["wrong"].startswith("it failed") for job in jobs):
        job = run_job(next(seed for seed in seeds if seed not in done), chosen.workers, undisturbed)
        jobs.append(job)
        if chosen.results:
            with chosen.results.open("a") as file:
                print(json.dumps(job), file=file)
    return report(jobs, chosen.workers)


if __name__ == "__main__":
    sys.exit(main())
