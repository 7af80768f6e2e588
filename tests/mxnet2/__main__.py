"""MXNet 2.0's own tests, run on Remex after `mx.util.set_version("2.0")`.

    python -m tests.mxnet2 --git GIT_DIR [--python PYTHON] [--cases N] [-k EXPRESSION] [--jobs 1] [FILE ...]

from the root of the repository. GIT_DIR is a snapshot of apache/mxnet with its branch master; FILE is the name of a file of its folder
tests/python/unittest. PYTHON needs NumPy 1, pytest, pytest-timeout and scipy beside what Remex needs. The tests stay in a temporary folder.

`exceptions.txt` has what does not count, and what counts and is known to fail, each with the reason. A row of the printed table is one file: how
many of its tests pass, of how many that do not need MXNet's C library (skipped tests do not count), and their share. The exit status is 1 where a
test fails without a reason, or passes with one.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

from .selection import Exceptions

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FILES = ["test_numpy_op.py", "test_numpy_ndarray.py", "test_numpy_gluon.py", "test_gluon.py", "test_gluon_probability_v2.py",
         "test_optimizer.py", "test_loss.py", "test_numpy_loss.py", "test_metric.py"]


def extract(git, revision, folder):
    """Write the tests of a revision and what they import."""
    with tempfile.NamedTemporaryFile(suffix=".tar") as file:
        subprocess.run(["git", "--git-dir", git, "archive", revision, "conftest.py", "tests/python"], stdout=file, check=True)
        with tarfile.open(file.name) as tar:
            tar.extractall(folder, filter="data")


def run_file(options, folder, name, left_out):
    """Run one file in a process of its own; ``(its rows, pytest's status, the log)``."""
    tests = folder / "tests" / "python" / "unittest"
    report, log = options.out / f"{name}.jsonl", options.out / f"{name}.log"
    report.unlink(missing_ok=True)
    if not (tests / name).exists():
        return [], "no such file in this revision", log
    environment = dict(os.environ, MXNET2_REPORT=str(report), MXNET2_CASES=str(options.cases or ""), MXNET2_LEFT_OUT=str(left_out),
                       MXNET_MODULE_SEED=str(options.seed), MXNET_TEST_SEED=str(options.seed),
                       PYTHONPATH=os.pathsep.join([str(ROOT), str(ROOT / "src")]))
    command = [options.python, "-m", "pytest", "-q", "--tb=short", "-p", "tests.mxnet2.plugin", "-p", "no:cacheprovider",
               "--timeout", str(options.timeout), "--rootdir", str(folder), name]
    command += ["-k", options.k] if options.k else []
    with open(log, "w") as file:
        status = subprocess.run(command, cwd=tests, env=environment, stdout=file, stderr=subprocess.STDOUT).returncode
    return [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else [], status, log


def outcomes(rows):
    """Test -> its last row, or the one that failed, without those that were skipped."""
    found = {}
    for row in rows:
        if row["id"] not in found or found[row["id"]]["outcome"] != "failed":
            found[row["id"]] = row
    return {name: row for name, row in found.items() if row["outcome"] != "skipped"}


def judge(tests, exceptions):
    """``(how many pass, those that fail, lines about what differs from `exceptions`)``."""
    failed = {name: row for name, row in tests.items() if row["outcome"] != "passed"}
    lines = [f"  {name}: {row['outcome']} {row['error'][:160]}" for name, row in failed.items() if not exceptions.reason(name)]
    lines += [f"  {name}: passes, though exceptions.txt says: {exceptions.reason(name)}"
              for name in sorted(set(tests) - set(failed)) if exceptions.reason(name)]
    return len(tests) - len(failed), failed, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--git", required=True, help="a snapshot of apache/mxnet")
    parser.add_argument("--revision", default="master")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "mxnet2-tests", help="for logs and reports")
    parser.add_argument("--cases", type=int, help="run at most so many cases of each function")
    parser.add_argument("--jobs", type=int, default=1, help="how many files run at a time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=300, help="seconds for one test")
    parser.add_argument("-k", default="", help="pytest's expression for what to run")
    parser.add_argument("files", nargs="*", default=FILES)
    options = parser.parse_args()
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    exceptions = Exceptions.read(HERE / "exceptions.txt")
    left_out = options.out / "left_out.txt"
    left_out.write_text("".join(f"{pattern}\n" for pattern in exceptions.left_out))
    table, surprises, why = [], 0, collections.Counter()
    with tempfile.TemporaryDirectory(prefix="mxnet2-") as name, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        extract(options.git, options.revision, pathlib.Path(name))
        results = pool.map(lambda file: run_file(options, pathlib.Path(name), file, left_out), options.files)
        for file, (rows, status, log) in zip(options.files, results, strict=True):
            tests = outcomes(rows)
            passed, failed, lines = judge(tests, exceptions)
            if status not in (0, 1, 5):
                lines.append(f"  {file}: pytest ended with {status}; see {log}")
            print("\n".join([file, *lines]), flush=True)
            surprises += len(lines)
            why.update(exceptions.reason(t) for t in failed if exceptions.reason(t))
            table.append((file, passed, len(tests)))
    print("\n| file | passed | of | share |\n|---|---|---|---|")
    for file, passed, total in [*table, ("all", sum(p for _, p, _ in table), sum(n for _, _, n in table))]:
        print(f"| `{file}` | {passed} | {total} | {passed / max(total, 1):.1%} |")
    for reason, count in why.most_common():
        print(f"{count} fail: {reason}")
    return surprises > 0


if __name__ == "__main__":
    sys.exit(main())
