"""`python -m tests.soak --steps N --epochs N --seed S [--only lstm]`, from the root of the repository."""
import argparse
import os
import subprocess
import sys
import time

from . import interrupts, loading, measure, training

EPOCHS = {**loading.LOOPS, **interrupts.LOOPS}
LOOPS = {**training.LOOPS, **EPOCHS}
_SAMPLES = 50


def _arguments():
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="Train and load data for long, and say what grows.")
    parser.add_argument("--steps", type=int, default=10000, help="of each loop of training")
    parser.add_argument("--epochs", type=int, default=100, help="of data loaders, and interrupts in them and in training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", choices=LOOPS, help="may be repeated")
    parser.add_argument("--child", choices=LOOPS, help=argparse.SUPPRESS)
    return parser.parse_args()


def _loop(name, steps, seed):
    """Run a loop in this process and report; what is wrong."""
    start = time.monotonic()
    record, counts = measure.run(LOOPS[name], steps, seed, _SAMPLES)
    found = record.judge()
    print(f"{name}: {steps} steps in {time.monotonic() - start:.0f} s")
    first = next(s for s in record.samples if s.step >= steps * measure.WARM_UP)
    for sample in (record.samples[0], first, record.samples[-1]):
        print("   ", ", ".join(f"{key} {value}" for key, value in sample._asdict().items()))
    print("   ", ", ".join(f"{key} {number}" for key, number in counts.items()))
    for text in found:
        print("    WRONG:", text)
    return found


def main():
    """Run each loop in a process of its own; exit with 1 if anything grew."""
    arguments = _arguments()
    number = arguments.epochs if arguments.child in EPOCHS else arguments.steps
    if arguments.child:
        sys.exit(bool(_loop(arguments.child, number, arguments.seed)))
    wrong = []
    for name in arguments.only or LOOPS:
        options = [f"--steps={arguments.steps}", f"--epochs={arguments.epochs}", f"--seed={arguments.seed}", f"--child={name}"]
        # With an arena for each thread, as glibc likes it, memory grows until all of them have held the largest batch.
        code = subprocess.run([sys.executable, "-m", __package__, *options], env={**os.environ, "MALLOC_ARENA_MAX": "1"}).returncode
        if code:
            wrong.append(f"{name} ({f'signal {-code}' if code < 0 else f'exit {code}'})")
    print("wrong: " + ", ".join(wrong) if wrong else "nothing grew, nothing was left")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
