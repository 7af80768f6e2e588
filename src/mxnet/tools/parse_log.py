"""Make a table from the log of a training program: ``python -m mxnet.tools.parse_log LOGFILE``.

It reads the lines of `Module.fit` and `FeedForward.fit` at the end of epochs (``Epoch[3] Train-accuracy=0.91``, ``Epoch[3] Time cost=12.3``,
``Epoch[3] Validation-accuracy=0.88``), and the estimator's ``[Epoch 3] Finished in 12.3s, training accuracy: 0.91, validation accuracy: 0.88``.
Several values of a number in one epoch are averaged.
"""
from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from .command import command, parser

if TYPE_CHECKING:
    import argparse

_NUMBER = r"([-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf))"


def parse(lines: Iterable[str], metrics: Sequence[str] = ("accuracy",)) -> dict[int, dict[str, float]]:
    """Return the numbers of each epoch.

    Parameters
    ----------
    lines : iterable of str
    metrics : sequence of str
        The metrics to extract; a name also matches metrics that begin with it.

    Returns
    -------
    dict
        From the number of the epoch, counted from 0 and in order, to a dict of means under ``train-<metric>``, ``val-<metric>`` and ``time``, as
        far as they were logged.

    Example
    -------
    >>> from mxnet.tools import parse_log
    >>> parse_log.parse(['INFO:root:Epoch[0] Train-accuracy=0.5', 'INFO:root:Epoch[0] Time cost=2.25'])
    {0: {'train-accuracy': 0.5, 'time': 2.25}}
    """
    patterns = [(f"{short}-{metric}", re.compile(rf"Epoch\[(\d{{1,9}})\] {logged}-{re.escape(metric)}[^=]*={_NUMBER}"))
                for logged, short in (("Train", "train"), ("Validation", "val")) for metric in metrics]
    patterns += [(f"{short}-{metric}", re.compile(rf"\[Epoch (\d{{1,9}})\] .*\b{word} {re.escape(metric)}[^:,]*: {_NUMBER}"))
                 for word, short in (("training", "train"), ("validation", "val")) for metric in metrics]
    patterns += [("time", re.compile(rf"Epoch\[(\d{{1,9}})\] Time[^=]*={_NUMBER}")),
                 ("time", re.compile(rf"\[Epoch (\d{{1,9}})\] Finished in {_NUMBER}s"))]
    values_of_epoch = {}
    for line in lines:
        for name, pattern in patterns:
            match = pattern.search(line)
            if match:
                values_of_epoch.setdefault(int(match[1]), {}).setdefault(name, []).append(float(match[2]))
    return {epoch: {name: sum(values) / len(values) for name, values in values_of_epoch[epoch].items()} for epoch in sorted(values_of_epoch)}


def table(epochs: Mapping[int, Mapping[str, float]], metrics: Sequence[str] = ("accuracy",), markdown: bool = True) -> str:
    """Format a result of `parse` as a Markdown or tab-separated table. Epochs count from 1 here; missing numbers are shown as ``-``."""
    columns = [f"{part}-{metric}" for part in ("train", "val") for metric in metrics]

    def cells(epoch, values):
        numbers = [f"{values[name]:f}" if name in values else "-" for name in columns]
        return [str(epoch + 1), *numbers, f"{values['time']:.1f}" if "time" in values else "-"]

    rows = [["epoch", *columns, "time"], *(cells(epoch, values) for epoch, values in epochs.items())]
    if not markdown:
        return "\n".join("\t".join(row) for row in rows)
    rows.insert(1, ["---"] * len(rows[0]))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    p = parser("parse-log")
    p.add_argument("logfile", help="path of the log")
    p.add_argument("--format", choices=["markdown", "none"], default="markdown", help="a Markdown table, or columns between tabs")
    p.add_argument("--metric-names", nargs="+", default=["accuracy"], help="metrics to look for")
    return p


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return the exit status."""
    args = build_parser().parse_args(argv)
    try:
        with open(args.logfile, encoding="utf-8", errors="replace") as log:
            epochs = parse(log, args.metric_names)
    except OSError as error:
        print(f"parse_log: cannot read {args.logfile}: {error.strerror or error}", file=sys.stderr)
        return 1
    if not epochs:
        print(f"parse_log: {args.logfile} has no line with one of {', '.join(args.metric_names)} of an epoch", file=sys.stderr)
        return 1
    print(table(epochs, args.metric_names, args.format == "markdown"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
