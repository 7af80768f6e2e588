"""Rows about all-reduce of dense gradients: Remex and torch's DistributedDataParallel, over Gloo."""
import contextlib
import os
import statistics
import sys
import tempfile

import numpy as np

from harness import common, model_files
from harness.distributed_rows.registry import row
from harness.ranks import Link, Ranks

WORKER = os.path.join(common.WORKERS, "allreduce_worker.py")
RANKS = 2
PEERS = {"remex": "Remex", "ddp": "DDP"}
STARTS = 3  # of the ranks for the share hidden: where a process has its memory makes all its steps up to 3% faster or slower


def _start_ranks(peer, args, link=None):
    return Ranks([sys.executable, "-W", "ignore", WORKER, peer, args.folder], RANKS, link)


def _turns(jobs, args, count, rounds):
    """Return the seconds of a step in each turn of `count` steps, and of its part from backward on, by job.

    `jobs` is ``{name: (peer, request, link or None)}``. They take turns. All ranks begin a turn together, and the slowest determines its time.
    """
    running, samples, beside = {}, {name: [] for name in jobs}, {name: [] for name in jobs}
    try:
        for name, (peer, prepare, link) in jobs.items():
            running[name] = _start_ranks(peer, args, link)
            running[name].ask(do="prepare", **prepare)
        for index in range(rounds + 1):
            for name, ranks in running.items():
                answers = ranks.ask(do="step", count=count)
                if index:  # the first round warms up
                    samples[name].append(max(answer["seconds"] for answer in answers))
                    beside[name].append(max(answer["beside"] for answer in answers))
    finally:
        for ranks in running.values():
            ranks.close()
    return samples, beside


def _medians(samples):
    return {name: statistics.median(values) for name, values in samples.items()}


@row("all-reduce step, ResNet-50 gradients, 2 processes", "DistributedDataParallel (Gloo)", "<= 1.02 of its time")
def all_reduce(args):
    model_files.ensure_network("resnet50", args.folder)
    seconds = _medians(_turns({peer: (peer, {"what": "reduce"}, None) for peer in PEERS}, args, 2 if args.quick else 5, args.rounds)[0])
    remex, ddp = seconds["remex"], seconds["ddp"]
    return f"{remex / ddp:.2f} ({1e3 * remex:.0f} ms, {1e3 * ddp:.0f} ms)", remex <= 1.02 * ddp


@row("share of communication hidden behind backward at 1 Gbit/s, 2 ranks, ResNet-50, batch 16", "DistributedDataParallel (Gloo)", ">= its share")
def overlap(args):
    reason = Link.missing()
    if reason:
        return reason, False
    model_files.ensure_network("resnet50", args.folder)
    rounds = 1 if args.quick else args.rounds
    with contextlib.ExitStack() as stack:
        links = {peer: stack.enter_context(Link(1000)) for peer in PEERS}
        communication = _medians(_turns({peer: (peer, {"what": "reduce"}, links[peer]) for peer in PEERS}, args, 1, rounds)[0])
        # With fewer images Remex's backward is shorter than the communication, and the peers could not hide the same share of it.
        jobs = {(peer, together): (peer, {"what": "train", "batch": 16, "together": together}, links[peer] if together else None)
                for peer in PEERS for together in (True, False)}
        steps, beside = {job: [] for job in jobs}, {job: [] for job in jobs}
        for _ in range(1 if args.quick else STARTS):
            for total, part in zip((steps, beside), _turns(jobs, args, 1, rounds)):
                for job, seconds in part.items():
                    total[job] += seconds
    step_seconds, beside_seconds = _medians(steps), _medians(beside)
    shares, texts = {}, []
    for peer, name in PEERS.items():
        step, alone = step_seconds[peer, True], step_seconds[peer, False]
        # The median of the differences of neighbouring turns: the machine is not as fast in all of them.
        longer = statistics.median(a - b for a, b in zip(steps[peer, True], steps[peer, False]))
        shares[peer] = 1 - longer / communication[peer]
        possible = min(1, beside_seconds[peer, False] / communication[peer])
        texts.append(f"{name} {shares[peer]:.0%} of {possible:.0%} possible: {step:.2f} s a step, {alone:.2f} s without communication, of which "
                     f"{beside_seconds[peer, False]:.2f} s are backward and update; communication alone takes {communication[peer]:.2f} s")
    return "; ".join(texts), shares["remex"] >= shares["ddp"]


@row("`dist_sync`: weights after 100 steps", "one process with the whole batch", "equal to 1e-5")
def weights(args):
    with tempfile.TemporaryDirectory() as folder:
        for count in (1, RANKS):
            with Ranks([sys.executable, "-W", "ignore", WORKER, "remex", args.folder], count) as ranks:
                ranks.ask(do="prepare", what="learn", samples=32 // count)
                ranks.ask(do="learn", steps=10 if args.quick else 100, path=os.path.join(folder, f"{count}.npz"))
        single, split = (np.load(os.path.join(folder, f"{count}.npz")) for count in (1, RANKS))
        difference = max(float(np.abs(single[name] - split[name]).max() / np.abs(single[name]).max()) for name in single.files)
    return f"{difference:.1e} of the largest weight of each array", difference <= 1e-5
