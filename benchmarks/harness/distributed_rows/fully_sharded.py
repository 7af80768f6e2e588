"""The row of `distributed.py` about fully sharded weights: ``--rows "fully sharded"``; `--quick` takes a quarter of the layers."""
import os
import statistics
import sys

from harness import common
from harness.distributed_rows.registry import row
from harness.ranks import Ranks

WORKER = os.path.join(common.WORKERS, "fully_sharded_worker.py")


@row("fully sharded, 32 x 2048 x 2048 and Adam on 2 and 4 ranks: memory a rank", "one rank", "<= 1.2 / n of it")
def memory(args):
    layers = 8 if args.quick else 32
    peak, seconds = {}, {}
    for kind, ranks in ("whole", 1), ("whole", 2), ("full", 2), ("full", 4):
        with Ranks([sys.executable, "-W", "ignore", WORKER, kind], ranks) as job:
            job.ask(do="prepare", layers=layers)
            turns = [job.ask(do="step", count=2) for _ in range(max(2, args.rounds // 2))]
        peak[kind, ranks] = max(answer["peak"] for answer in turns[-1])
        seconds[kind, ranks] = statistics.median(max(answer["seconds"] for answer in turn) for turn in turns)
    one = peak["whole", 1]
    text = ", ".join(f"{peak['full', n] / one * n:.2f} / {n} ({peak['full', n] / 1e9:.2f} GB)" for n in (2, 4))
    return (f"{text}; one rank {one / 1e9:.2f} GB, data parallel on 2 ranks {peak['whole', 2] / 1e9:.2f} GB a rank; a step on 2 ranks "
            f"{seconds['full', 2]:.2f} s, data parallel {seconds['whole', 2]:.2f} s", all(peak["full", n] <= 1.2 / n * one for n in (2, 4)))
