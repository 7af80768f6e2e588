"""Run ONNX's own tests, of single operators and whole models, on the importer. They are part of the package onnx.

    python benchmarks/onnx_import.py [--kinds node simple ...] [--match 'test_resize*'] [--show]
    python benchmarks/onnx_import.py --zoo [--match 'resnet*']

Tolerances are those of ONNX's own runner. Known failures are counted by reason (`tests/onnx_cases.py`).
`--zoo` exports the networks of Gluon's model zoo, imports them, and compares their outputs and operators.
"""
import argparse
import collections
import fnmatch
import logging
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

import onnx  # noqa: E402

from mxnet.onnx.mx2onnx._export_onnx import OPSET  # noqa: E402
from onnx_cases import KINDS, cases, failure, known_failure, networks, round_trip  # noqa: E402
from onnx_checks import NEWEST  # noqa: E402


def run_cases(kind, pattern):
    """Return {name of a test: reason of its failure or None}, and the processor seconds."""
    selected = [case for case in cases(kind) if fnmatch.fnmatchcase(case.name, pattern)]
    start = time.process_time()
    return {case.name: failure(case) for case in selected}, time.process_time() - start


def zoo(pattern):
    """Print the difference of each network after export and import, and a comparison of the graphs."""
    print("| network | opset | largest difference, relative to the largest output | in ONNX Runtime "
          "| same operators | same graph after another export |\n"
          "|---|---|---|---|---|---|")
    for name in fnmatch.filter(networks(), pattern):
        for opset in (OPSET, NEWEST):
            with tempfile.TemporaryDirectory() as folder:
                trip = round_trip(name, pathlib.Path(folder), opset)
            written, read = trip.operators
            operators, graph = "yes" if written == read else f"no: {written} and {read}", "yes" if trip.changed is None else f"no: {trip.changed}"
            print(f"| {name} | {opset} | {trip.difference:.1e} | {trip.by_runtime:.1e} | {operators} | {graph} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="kinds of tests")
    parser.add_argument("--match", default="*", help="names of tests, with wildcards")
    parser.add_argument("--show", action="store_true", help="print the message of each test that fails")
    parser.add_argument("--zoo", action="store_true", help="export and import the networks of the model zoo instead")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    if args.zoo:
        return zoo(args.match)
    print(f"onnx {onnx.__version__}, opset {onnx.defs.onnx_opset_version()}\n\n| kind | tests | pass | % | seconds |\n|---|---|---|---|---|")
    failed = {}
    for kind in args.kinds:
        results, seconds = run_cases(kind, args.match)
        bad = {name: reason for name, reason in results.items() if reason is not None}
        failed.update(bad)
        passed = len(results) - len(bad)
        print(f"| {kind} | {len(results)} | {passed} | {100 * passed / max(len(results), 1):.1f} | {seconds:.1f} |")
    reasons = collections.defaultdict(list)
    for name in failed:
        reasons[known_failure(name) or "unknown"].append(name)
    print("\n| reason of failure | tests |\n|---|---|")
    for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"| {reason} | {len(names)}: {', '.join(names[:6])}{', ...' if len(names) > 6 else ''} |")
    if args.show:
        print(*(f"{name}: {reason}" for name, reason in failed.items()), sep="\n")


if __name__ == "__main__":
    main()
