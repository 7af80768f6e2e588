"""Measure the first bind of each operator in a process: its excess over later ones, in milliseconds of thread time.

    python benchmarks/first_calls.py              # prints those over a limit, and the slowest

Each operator runs in a fork of a process that has imported the package and bound one Symbol of `mx.nd` and one of `mx.np`. These two load the
modules of the engine, and are measured separately. Inputs are those of the operators' tests.
"""
import argparse
import json
import os
import pathlib
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[1] / "tests" / "ops"
sys.path[:0] = [str(TESTS), str(TESTS.parent)]
from records import IMPERATIVE, RECORDS  # noqa: E402  # of the operators' tests
from test_first_calls import infer_and_bind  # noqa: E402

from mxnet.ops import get  # noqa: E402


def first_bind_excess(name):
    """Return the milliseconds of the first bind in excess of the fastest of five more, in a child process; None where it fails."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        times = []
        try:
            for _ in range(6):
                start = time.thread_time()
                infer_and_bind(get(name), RECORDS[name][0])
                times.append(time.thread_time() - start)
            os.write(write, json.dumps((times[0] - min(times[1:])) * 1e3).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return float(text) if text else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=50.0, help="milliseconds above which an operator is listed")
    limit = parser.parse_args().limit
    for name in ("_copy", "_np_copy"):
        start = time.thread_time()
        infer_and_bind(get(name), RECORDS[name][0])
        print(f"the first bind {'' if name == '_copy' else 'of mx.np '}({name}): {(time.thread_time() - start) * 1e3:.1f} ms")
    names = [name for name in RECORDS if name not in IMPERATIVE and get(name).num_outputs != 0]
    excess = {name: first_bind_excess(name) for name in names}
    measured = {name: ms for name, ms in excess.items() if ms is not None}
    for name, ms in sorted(measured.items(), key=lambda item: -item[1])[:10]:
        print(f"{name}: {ms:.1f} ms")
    over = [name for name, ms in measured.items() if ms > limit]
    print(f"{len(over)} of {len(measured)} operators over {limit:g} ms: {', '.join(over) or 'none'}")
    if len(measured) < len(excess):
        print("failed:", ", ".join(sorted(set(excess) - set(measured))))


if __name__ == "__main__":
    main()
