"""The row of `distributed.py` about checkpoints: ``python benchmarks/distributed.py --rows checkpoint``; `--quick` takes a tenth of the weights."""
import os
import shutil
import statistics
import sys
import tempfile

from harness import common
from harness.distributed_rows.registry import row
from harness.ranks import Ranks

WORKER = os.path.join(common.WORKERS, "checkpoint_worker.py")
INTERVAL = 60  # seconds of training between two checkpoints


@row("checkpoint of 2 GB while 2 ranks train, one a minute; resumed on 3 ranks", "the same steps without", "<= 3 % of the steps' time; equal weights")
def checkpoint(args):
    layers, steps = (1, 6) if args.quick else (10, 12)  # 16.8 million weights each, with two states: 0.2 GB
    folder = tempfile.mkdtemp(prefix="checkpoint-", dir=os.makedirs(args.folder, exist_ok=True) or args.folder)
    command = [sys.executable, "-W", "ignore", WORKER, folder]
    try:
        seconds, used, blocked, sums = {False: [], True: []}, {False: [], True: []}, [], None
        with Ranks(command, 2) as job:
            job.ask(do="prepare", layers=layers)
            job.ask(do="step", count=2, save=True)  # imports, and the memory of the copies
            job.ask(do="wait")
            for _ in range(max(2, args.rounds // 2)):
                for save in False, True:
                    answers = job.ask(do="step", count=steps, save=save)
                    seconds[save].append(max(answer["seconds"] for answer in answers))
                    used[save].append(sum(answer["used"] for answer in answers))
                blocked.append(max(answer["blocked"] for answer in answers))
                sums = answers[0]["sums"]
                job.ask(do="wait")
        newest = sorted(os.listdir(folder))[-1]
        size = sum(os.path.getsize(os.path.join(folder, newest, name)) for name in os.listdir(os.path.join(folder, newest)))
        with Ranks(command, 3) as job:
            job.ask(do="prepare", layers=layers)
            answers = job.ask(do="resume")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    equal = all(answer["sums"] == sums and answer["batch"] == 1 for answer in answers)
    lost = statistics.median(seconds[True]) - statistics.median(seconds[False])
    processors = min(used[True]) - min(used[False])
    text = (f"{lost / INTERVAL:.1%}: {lost:.2f} s by a checkpoint of {size / 1e9:.2f} GB, of which {min(blocked):.2f} s before the next step "
            f"({processors:.2f} s of processor time); a step takes {statistics.median(seconds[False]) / steps:.2f} s; read by 3 ranks in "
            f"{max(answer['seconds'] for answer in answers):.1f} s, weights {'equal' if equal else 'NOT equal'}")
    return text, equal and lost <= 0.03 * INTERVAL
