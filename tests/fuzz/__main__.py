"""`python -m tests.fuzz`, from the root of the repository: see `--help`."""
import argparse
import base64
import json
import os
import pathlib
import sys


def _arguments():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Try what a stranger may hand over on everything that takes it.")
    parser.add_argument("--minutes", type=float, help="end after so many (default: 10, or none with --cases)")
    parser.add_argument("--cases", type=int, help="end after so many")
    parser.add_argument("--seed", type=int, default=0, help="of the first process; each further one takes the next")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--only", action="append", default=[], help="targets, or the beginnings of their names such as 'readers'; may be repeated")
    parser.add_argument("--keep", action="store_true", help="keep what fails under tests/fuzz/cases (what kills a process is kept anyway)")
    parser.add_argument("--kills", type=int, help="instead: kill each writer of files so many times; see tests/fuzz/kills.py")
    parser.add_argument("--sanitize", action="store_true", help="compile the kernels for AddressSanitizer and UndefinedBehaviorSanitizer")
    parser.add_argument("--child", type=pathlib.Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _child(arguments):
    import tempfile
    folder = arguments.child / "work"
    folder.mkdir()
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    from . import campaign
    from .progress import Progress

    def report(name, case, text):
        print(json.dumps({"target": name, "case": base64.b64encode(case).decode(), "text": text}), flush=True)

    campaign.child(Progress(arguments.child / "progress"), arguments.only, arguments.seed, 60 * arguments.minutes, arguments.cases,
                   arguments.child, report)


def main():
    """Exit with 1 if anything failed."""
    arguments = _arguments()
    if arguments.child is not None:
        return _child(arguments)
    if arguments.kills is not None:
        from .kills import run
        sys.exit(bool(run(arguments.kills, arguments.seed, arguments.only, "python -m tests.fuzz " + " ".join(sys.argv[1:]))))
    if arguments.sanitize:
        from .sanitizer import environment
        os.environ.update(environment())
    from .supervise import supervise
    minutes = arguments.minutes if arguments.minutes is not None else 10 if arguments.cases is None else 1e6
    sys.exit(bool(supervise(minutes, arguments.cases, arguments.seed, arguments.jobs, arguments.only, arguments.keep)))


if __name__ == "__main__":
    main()
