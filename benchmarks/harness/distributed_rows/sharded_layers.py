"""Rows of `distributed.py` about sharded layers: ``python benchmarks/distributed.py --rows split``; `--quick` divides features and classes by 10."""
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np

from harness import common, worker_processes
from harness.distributed_rows.registry import row
from harness.ranks import Link, Ranks

WORKER, CLASSES = (os.path.join(common.WORKERS, f"{name}_worker.py") for name in ("sharded", "classes"))
INPUTS, OUTPUTS, BATCH = 250_000, 200_000, 128
MANY = 3072  # rows: 24 ranks' batches, which each part of a split layer gets
WHOLE_MEMORY = 4.5e9  # bytes of a rank with whole weights and gradients


def _prepared(peer, ranks, args, link=None):
    """A job of so many ranks with the network; all batches together are the same for any number of them."""
    job = Ranks([sys.executable, "-W", "ignore", WORKER, peer], ranks, link)
    try:
        part = 10 if args.quick else 1
        job.ask(do="prepare", inputs=INPUTS // part, classes=OUTPUTS // part, batch=BATCH // ranks)
        job.ask(do="step", count=1)  # kernels are loaded
    except BaseException:
        job.close()
        raise
    return job


@row("split layers, 250k x 1024 x 512 x 200k on 2 and 4 ranks: memory a rank beyond the libraries'", "one rank", "<= 1.2 / n of it")
def memory(args):
    peak, libraries = {}, 0
    for ranks in 1, 2, 4:
        with _prepared("remex", ranks, args) as job:
            answers = job.ask(do="step", count=4)
            peak[ranks], libraries = max(answer["peak"] for answer in answers), answers[0]["libraries"]
    text = ", ".join(f"{peak[n] / peak[1] * n:.2f} / {n} ({peak[n] / 1e9:.2f} GB)" for n in (2, 4))
    with_libraries = ", ".join(f"{(peak[n] + libraries) / (peak[1] + libraries) * n:.2f} / {n}" for n in (2, 4))
    return (f"{text}; one rank {peak[1] / 1e9:.2f} GB; with the libraries' {libraries / 1e9:.2f} GB {with_libraries}",
            all(peak[n] <= 1.2 / n * peak[1] for n in (2, 4)))


@row("split layers on 2 and 4 ranks, `shard='full'` on 2: weights after 100 steps", "one process with the whole batch", "equal to 1e-5")
def weights(args):
    sizes = {"inputs": 2000, "classes": 1000, "learning_rate": 0.3}
    steps, saved = 10 if args.quick else 100, {}
    with tempfile.TemporaryDirectory() as folder:
        start = os.path.join(folder, "start")
        for peer, ranks in ("dense", 1), ("remex", 2), ("remex", 4), ("full", 2):
            name = f"{peer} {ranks}"
            with Ranks([sys.executable, "-W", "ignore", WORKER, peer], ranks) as job:
                job.ask(do="prepare", batch=64 // ranks, start=f"{start}-0" if saved else None, **sizes)
                if not saved:
                    job.ask(do="learn", steps=0, path=start)
                job.ask(do="learn", steps=steps, path=os.path.join(folder, name))
            saved[name] = _arrays(os.path.join(folder, f"{name}-{ranks - 1}"))
        first, reference = _arrays(f"{start}-0"), saved.pop("dense 1")
    def distances(arrays):
        return [float(np.abs(arrays[key] - reference[key]).max() / np.abs(reference[key]).max()) for key in reference]

    moved = min(distances(first))
    off = {name: max(distances(arrays)) for name, arrays in saved.items()}
    text = ", ".join(f"{name.replace('remex', 'split')}: {difference:.1e}" for name, difference in off.items())
    return f"{text} of the largest weight of each array, which all change by {moved:.2f} of it or more", max(off.values()) <= 1e-5


def _arrays(path):
    import mxnet as mx
    return {name: array.asnumpy() for name, array in mx.nd.load(path).items()}


@row("split layers, a step at 1 Gbit/s, 2 and 4 ranks", "the same by hand with torch and DTensor; DistributedDataParallel",
     ">= 0.95 x the first's speed, >= 10 x the second's")
def steps(args):
    reason = Link.missing()
    if reason:
        return reason, False
    results, reached = [], True
    for ranks in 2, 4:
        seconds = {peer: [] for peer in ("remex", "dtensor", "ddp")}
        with contextlib.ExitStack() as stack:
            jobs = {}
            for peer in ("remex", "dtensor"):  # these take turns; all three together need too much memory
                jobs[peer] = stack.enter_context(_prepared(peer, ranks, args, stack.enter_context(Link(1000, ranks))))
            for index in range(args.rounds + 1):
                for peer, job in jobs.items():
                    took = max(answer["seconds"] for answer in job.ask(do="step", count=2))
                    if index:
                        seconds[peer].append(took)
        missing = ""
        try:
            if not args.quick and common.available_memory() < WHOLE_MEMORY * ranks:
                raise worker_processes.Failed(f"{ranks} ranks need {WHOLE_MEMORY * ranks / 1e9:.0f} GB")
            with contextlib.ExitStack() as stack:
                job = stack.enter_context(_prepared("ddp", ranks, args, stack.enter_context(Link(1000, ranks))))
                seconds["ddp"].append(max(answer["seconds"] for answer in job.ask(do="step", count=1)))
        except worker_processes.Failed as error:
            missing = f"data parallel not measured ({str(error)[:120]})"
        medians = {peer: statistics.median(taken) for peer, taken in seconds.items() if taken}
        data_parallel = missing or f"data parallel {medians['ddp']:.2f} s ({medians['ddp'] / medians['remex']:.1f} x)"
        by_hand = f"by hand {medians['dtensor']:.2f} s ({medians['dtensor'] / medians['remex']:.2f} x)"
        results.append(f"{ranks} ranks {medians['remex']:.2f} s, {by_hand}, {data_parallel}")
        reached = reached and medians["dtensor"] >= 0.95 * medians["remex"] and medians.get("ddp", 0) >= 10 * medians["remex"]
    return "; ".join(results), reached


def _classes(count, fraction, number, batch=BATCH):
    env = {**worker_processes.environment(sys.executable), "OMP_NUM_THREADS": common.threads()}
    done = subprocess.run([sys.executable, "-W", "ignore", CLASSES, str(count), str(fraction), str(number), str(batch)], capture_output=True,
                          text=True, env=env)
    if done.returncode:
        raise SystemExit(f"{CLASSES} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


@row("split layers, 10 % of 1,000,000 classes, 512 features", "full softmax",
     f">= 4 x steps and accuracy within 0.5 % with {BATCH} rows, <= 0.25 x memory with {MANY:,}")
def sampled(args):
    count, number = (100_000, 60) if args.quick else (1_000_000, 60)
    full, part = _classes(count, 1, number), _classes(count, 0.1, number)
    faster, off = full["seconds"] / part["seconds"], full["accuracy"] - part["accuracy"]
    needed = 2 * full["weights"] + 4 * count * MANY
    if common.available_memory() < 1.1 * needed:
        return f"the memory of {MANY:,} rows was not measured: it takes {needed / 1e9:.0f} GB", False
    # Both have the weights, whatever the rows are: with as many as a large job has, the logits are most of the memory.
    all_many, part_many = _classes(count, 1, 2, MANY), _classes(count, 0.1, 2, MANY)
    few, many = (p["peak"] / f["peak"] for f, p in ((full, part), (all_many, part_many)))
    return (f"{faster:.1f} x ({full['seconds']:.2f} s, {part['seconds']:.2f} s), accuracy {full['accuracy']:.3f}, {part['accuracy']:.3f}; "
            f"{many:.2f} x the memory ({all_many['peak'] / 1e9:.1f} GB, {part_many['peak'] / 1e9:.1f} GB; with {BATCH} rows {few:.2f} x, "
            f"{full['peak'] / 1e9:.2f} GB, {part['peak'] / 1e9:.2f} GB, of which {part['weights'] / 1e9:.2f} GB are the weights of both)",
            faster >= 4 and many <= 0.25 and off <= 0.005)
