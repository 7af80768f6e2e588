"""How many of ONNX's own tests the importer passes: single operators and whole models, with tensors of numbers. They come with the package onnx.

    python benchmarks/onnx_import.py [--kinds node simple ...] [--match 'test_resize*'] [--show]
    python benchmarks/onnx_import.py --zoo [--match 'resnet*']

Tolerances are those of ONNX's own runner. Tests that are known not to pass are counted by their reasons (`tests/onnx_cases.py`).
`--zoo` writes the networks of Gluon's zoo, reads them back, and compares their scores and operators.
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


def measured(kind, pattern):
    """The names of a kind's tests with why each fails (None if it passes), and the seconds of one core."""
    chosen = [case for case in cases(kind) if fnmatch.fnmatchcase(case.name, pattern)]
    start = time.process_time()
    return {case.name: failure(case) for case in chosen}, time.process_time() - start


def zoo(pattern):
    """Print how far each network is from what was written and read back, and whether it is the same graph."""
    print("| network | opset | largest difference here, in parts of the largest output | in ONNX Runtime "
          "| the same operators | written again: the same graph |\n"
          "|---|---|---|---|---|---|")
    for name in fnmatch.filter(networks(), pattern):
        for opset in (OPSET, NEWEST):
            with tempfile.TemporaryDirectory() as folder:
                trip = round_trip(name, pathlib.Path(folder), opset)
            lost, new = (sorted(set(a) - set(b)) for a, b in (trip.operators, trip.operators[::-1]))
            operators = "yes" if not lost and not new else f"{', '.join(lost) or 'none'} as {', '.join(new) or 'others'}"
            print(f"| {name} | {opset} | {trip.difference:.1e} | {trip.by_runtime:.1e} | {operators} "
                  f"| {'yes' if trip.changed is None else f'no: {trip.changed}'} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--match", default="*", help="names of tests, with wildcards")
    parser.add_argument("--show", action="store_true", help="print the message of each test that fails")
    parser.add_argument("--zoo", action="store_true", help="the networks of the zoo, there and back, instead")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    if args.zoo:
        return zoo(args.match)
    print(f"onnx {onnx.__version__}, opset {onnx.defs.onnx_opset_version()}\n\n| kind | tests | pass | % | seconds |\n|---|---|---|---|---|")
    failed = {}
    for kind in args.kinds:
        found, seconds = measured(kind, args.match)
        bad = {name: reason for name, reason in found.items() if reason is not None}
        failed.update(bad)
        passed = len(found) - len(bad)
        print(f"| {kind} | {len(found)} | {passed} | {100 * passed / max(len(found), 1):.1f} | {seconds:.1f} |")
    reasons = collections.defaultdict(list)
    for name in failed:
        reasons[known_failure(name) or "not known"].append(name)
    print("\n| why not | tests |\n|---|---|")
    for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"| {reason} | {len(names)}: {', '.join(names[:6])}{', ...' if len(names) > 6 else ''} |")
    if args.show:
        print(*(f"{name}: {reason}" for name, reason in failed.items()), sep="\n")


if __name__ == "__main__":
    main()
