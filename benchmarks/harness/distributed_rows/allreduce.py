"""Rows of `distributed.py` about dense gradients: Remex beside torch's DistributedDataParallel, over Gloo."""
import contextlib
import os
import statistics
import sys
import tempfile

import numpy as np
import rows
from jobs import Link, Ranks
from row_table import row
from run import written

WORKER = os.path.join(rows.HERE, "workers", "ranks_worker.py")
RANKS = 2
PEERS = {"remex": "Remex", "ddp": "DDP"}


def _ranks(peer, chosen, link=None):
    return Ranks([sys.executable, "-W", "ignore", WORKER, peer, chosen.folder], RANKS, link)


def _turns(jobs, chosen, count, rounds):
    """Medians of how long `count` steps take, by job: ``{name: (peer, what to prepare, link or None)}``.

    Jobs take turns; a turn is as long as its slowest rank's, and all ranks begin together.
    """
    running, samples = {}, {name: [] for name in jobs}
    try:
        for name, (peer, prepare, link) in jobs.items():
            running[name] = _ranks(peer, chosen, link)
            running[name].ask(do="prepare", **prepare)
        for index in range(rounds + 1):
            for name, ranks in running.items():
                took = max(answer["seconds"] for answer in ranks.ask(do="step", count=count))
                if index:  # the first round warms up
                    samples[name].append(took)
    finally:
        for ranks in running.values():
            ranks.close()
    return {name: statistics.median(taken) for name, taken in samples.items()}


@row("all-reduce step, ResNet-50 gradients, 2 processes", "DistributedDataParallel (Gloo)", "<= 1.05 of its time")
def all_reduce(chosen):
    written("resnet50", chosen.folder)
    found = _turns({peer: (peer, {"what": "reduce"}, None) for peer in PEERS}, chosen, 2 if chosen.quick else 5, chosen.rounds)
    return f"{found['remex'] / found['ddp']:.2f} ({1e3 * found['remex']:.0f} ms, {1e3 * found['ddp']:.0f} ms)", found["remex"] <= 1.05 * found["ddp"]


@row("share of communication hidden behind backward at 1 Gbit/s, 2 ranks, ResNet-50", "DistributedDataParallel (Gloo)", ">= its share")
def hidden(chosen):
    reason = Link.missing()
    if reason:
        return reason, False
    written("resnet50", chosen.folder)
    rounds = 1 if chosen.quick else min(chosen.rounds, 5)
    with contextlib.ExitStack() as stack:
        links = {peer: stack.enter_context(Link(1000)) for peer in PEERS}
        travel = _turns({peer: (peer, {"what": "reduce"}, links[peer]) for peer in PEERS}, chosen, 1, rounds)
        turns = _turns({(peer, together): (peer, {"what": "train", "batch": 4, "together": together}, links[peer] if together else None)
                        for peer in PEERS for together in (True, False)}, chosen, 1, rounds)
    shares, said = {}, []
    for peer, name in PEERS.items():
        step, alone = turns[peer, True], turns[peer, False]
        shares[peer] = 1 - (step - alone) / travel[peer]
        said.append(f"{name} {shares[peer]:.0%}: {step:.2f} s a step, {alone:.2f} s without communication, which alone takes {travel[peer]:.2f} s")
    return "; ".join(said), shares["remex"] >= shares["ddp"]


@row("`dist_sync`: weights after 100 steps", "one process with the whole batch", "equal to 1e-5")
def weights(chosen):
    with tempfile.TemporaryDirectory() as folder:
        for count in (1, RANKS):
            with Ranks([sys.executable, "-W", "ignore", WORKER, "remex", chosen.folder], count) as ranks:
                ranks.ask(do="prepare", what="learn", samples=32 // count)
                ranks.ask(do="learn", steps=10 if chosen.quick else 100, path=os.path.join(folder, f"{count}.npz"))
        whole, parts = (np.load(os.path.join(folder, f"{count}.npz")) for count in (1, RANKS))
        off = max(float(np.abs(whole[name] - parts[name]).max() / np.abs(whole[name]).max()) for name in whole.files)
    return f"{off:.1e} of the largest weight of each array", off <= 1e-5
