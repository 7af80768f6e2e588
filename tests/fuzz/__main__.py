"""`python -m tests.fuzz --minutes N --seed S [--only readers]`, from the root of the repository."""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

from . import campaign


def _arguments():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Try mutated files on every reader.")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", help="targets, or the beginnings of their names such as 'readers'; may be repeated")
    parser.add_argument("--keep", action="store_true", help="keep what fails under tests/fuzz/cases")
    parser.add_argument("--child", type=pathlib.Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _finish(failed, keep):
    for target, case, _ in failed:
        if keep:
            print("kept:", campaign.keep(target, case))


def _supervise(arguments):
    """Run children, and go on behind those that die."""
    end, seed, total, died = time.monotonic() + 60 * arguments.minutes, arguments.seed, 0, False
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        current = pathlib.Path(folder) / "current"
        while (left := end - time.monotonic()) > 1:
            options = [f"--minutes={min(left, 300) / 60}", f"--seed={seed}", f"--child={current}", *(f"--only={o}" for o in arguments.only or ()),
                       *["--keep"] * arguments.keep]
            done = subprocess.run([sys.executable, "-m", __package__, *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            print(done.stdout, end="", flush=True)
            if done.returncode < 0:
                name, case = current.read_bytes().split(b"\n", 1)
                target = campaign.targets()[name.decode()]
                print(f"{target.name}: killed by signal {-done.returncode}; kept: {campaign.keep(target, case)}")
                died = True
            failures += done.returncode > 0
            total += sum(int(line.split()[0]) for line in done.stdout.splitlines() if line.endswith("cases"))
            seed += 1
    print(f"{total} cases in all, seeds {arguments.seed} to {seed - 1}: {'failures, see above' if failures or died else 'no failure'}")
    return failures or died


def main():
    """Exit with 1 if anything failed."""
    arguments = _arguments()
    if arguments.child is None:
        sys.exit(bool(_supervise(arguments)))
    names = [n for n in campaign.targets() if not arguments.only or any(n.startswith(o) for o in arguments.only)]
    number, failed = campaign.run(names, arguments.seed, 60 * arguments.minutes, current=arguments.child)
    _finish(failed, arguments.keep)
    print(f"{number} cases")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
