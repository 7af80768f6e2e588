"""Write an HTML page about a profile, and print its main numbers.

``python -m mxnet.tools.profile profile.json`` writes ``profile.html`` beside it; a second trace is compared with the first. It reads traces of
``mx.profiler``, also those of killed processes, and MXNet's own traces.
"""
from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..base import MXNetError
from ..profiler.analysis import Analysis
from ..profiler.report import report
from ..profiler.trace import read
from .command import command, parser

if TYPE_CHECKING:
    import argparse


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    p = parser("profile")
    p.add_argument("trace", help="a file of mx.profiler.dump()")
    p.add_argument("other", nargs="?", help="a second trace to compare with")
    p.add_argument("--output", help="the page to write; by default the trace's name with .html at the end")
    p.add_argument("--lines", type=int, default=15, help="the number of operators to print")
    return p


def summary(analysis: Any, lines: int = 15) -> Iterator[str]:
    """Yield the lines of a summary of a profile's main numbers.

    Example
    -------
    >>> from mxnet.profiler.analysis import Analysis
    >>> from mxnet.tools.profile import summary
    >>> events = [{"ph": "X", "name": "exp", "cat": "operator", "ts": 0, "dur": 2000, "pid": 0, "tid": 1}]
    >>> print(*summary(Analysis(events)), sep="\\n")
    2.0 ms in all: operators 100%
       ms (own)    ms (all)    count  operator
            2.0         2.0        1  exp
    """
    wall = analysis.wall
    shares = ", ".join(f"{name} {value / wall:.0%}" for name, value in analysis.shares().items() if wall and value / wall >= 0.005)
    yield f"{wall:.1f} ms in all: {shares}"
    yield f"{'ms (own)':>11} {'ms (all)':>11} {'count':>8}  operator"
    for row in analysis.operators()[:lines]:
        yield f"{row.own:11.1f} {row.total:11.1f} {row.calls:8d}  {row.name}"
    for advice in analysis.advice():
        yield f"- {advice.text} ({advice.number})"


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return the exit status."""
    args = build_parser().parse_args(argv)
    output = args.output or f"{os.path.splitext(args.trace)[0]}.html"
    try:
        for line in summary(Analysis(read(args.trace)), args.lines):
            print(line)
        print(report(output, args.trace, args.other))
    except MXNetError as error:
        print(f"profile: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
