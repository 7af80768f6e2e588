"""The first bind of each operator in a process: how much longer it takes than the second one, in milliseconds of the thread's time.

    python benchmarks/first_calls.py              # prints those over a limit, and the longest

For each operator a process is forked off that has imported the package and bound one Symbol of `mx.nd` and one of `mx.np`: these load the modules
that run graphs, and are measured by themselves. Inputs are those of the operators' tests.
"""
import argparse
import json
import os
import pathlib
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[1] / "tests" / "ops"
sys.path[:0] = [str(TESTS), str(TESTS.parent)]
from records import IMPERATIVE, RECORDS  # noqa: E402  # they lie there
from test_first_calls import infer_and_bind  # noqa: E402

from mxnet.ops import get  # noqa: E402


def longer(name):
    """Milliseconds of the first bind without those of the fastest of five more, in a child process; None where it fails."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        taken = []
        try:
            for _ in range(6):
                start = time.thread_time()
                infer_and_bind(get(name), RECORDS[name][0])
                taken.append(time.thread_time() - start)
            os.write(write, json.dumps((taken[0] - min(taken[1:])) * 1e3).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return float(text) if text else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=50.0)
    limit = parser.parse_args().limit
    for name in ("_copy", "_np_copy"):
        start = time.thread_time()
        infer_and_bind(get(name), RECORDS[name][0])
        print(f"the first bind {'' if name == '_copy' else 'of mx.np '}({name}): {(time.thread_time() - start) * 1e3:.1f} ms")
    names = [name for name in RECORDS if name not in IMPERATIVE and get(name).num_outputs != 0]
    found = {name: longer(name) for name in names}
    known = {name: ms for name, ms in found.items() if ms is not None}
    for name, ms in sorted(known.items(), key=lambda item: -item[1])[:10]:
        print(f"{name}: {ms:.1f} ms")
    over = [name for name, ms in known.items() if ms > limit]
    print(f"{len(over)} of {len(known)} operators over {limit:g} ms: {', '.join(over) or 'none'}")
    if len(known) < len(found):
        print("failed:", ", ".join(sorted(set(found) - set(known))))


if __name__ == "__main__":
    main()
