"""The book Dive into Deep Learning, its tab for MXNet, run on Remex; after `mx.util.set_version("2.0")`, unless the book is for MXNet 1.

    python -m tests.d2l --git GIT_DIR [--python PYTHON] [--jobs 1] [--outputs] [SECTION ...]

from the root of the repository. GIT_DIR is a snapshot of d2l-ai/d2l-en or of smolix/d2l-neu; SECTION is the name of a file without its suffix
(chapter_preliminaries/ndarray). PYTHON needs matplotlib, pandas, ipython, regex and tiktoken beside what Remex needs. The book stays
in a temporary folder.

A cell counts if it needs no download. Synthetic data stand for some of the book's (`standins.py`); a cell that needs other data is left out, and
so are cells that need its names. Trainings are short (`session.py`). `exceptions.txt` has what does not count for another reason, and what counts
and is known to fail. A cell's name there is its section and the first digits of the SHA-256 hash of its text; SECTION::* is not run. With
twice, with two seeds: where both give the same text, and neither were data synthetic nor was a training shortened before it, that text is compared
with the text that the book has stored, if it has.
The exit status is 1 where a cell fails or prints something else without a reason, or runs with one.
"""
import argparse
import collections
import importlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from .book import Book

# This package is "d2l" to the project's tests, which find it in the folder tests, and "tests.d2l" to `python -m`.
selection = importlib.import_module(__package__.removesuffix("d2l") + "mxnet2.selection")
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def run_sections(options, version, folder, found, seed):
    """Run sections, name -> cells; yields ``(a section, cell's name -> row)`` as they end."""
    tasks = {}
    for section, cells in found.items():
        (folder / section).parent.mkdir(parents=True, exist_ok=True)
        report, log = (str(options.out / f"{section.replace('/', '+')}.{seed}{suffix}") for suffix in (".jsonl", ".log"))
        pathlib.Path(report).unlink(missing_ok=True)
        tasks[section] = {"section": section, "place": str((folder / section).parent), "report": report, "log": log,
                          "cells": [(cell.name, cell.source) for cell in cells]}
    (folder / "tasks.json").write_text(json.dumps(list(tasks.values())))
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT), str(ROOT / "src"), str(folder)]))
    command = [options.python, "-m", "tests.d2l.session", folder / "tasks.json", version, str(seed), str(options.timeout), str(options.jobs)]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            yield line.strip(), read_rows(tasks[line.strip()])
    if process.returncode:
        raise SystemExit(f"{options.python} -m tests.d2l.session ended with {process.returncode}")


def read_rows(task):
    report = pathlib.Path(task["report"])
    rows = {row["cell"]: row for row in map(json.loads, report.read_text().splitlines())} if report.exists() else {}
    ended = {"outcome": "failed", "why": f"the process ended before it; see {task['log']}", "output": "", "altered": True}
    return {name: rows.get(name, ended) for name, _ in task["cells"]}


# NumPy 2's scalars, classes without IPython's pretty printer, and the log of MXNet's native library.
_STYLES = re.compile(r"np\.float64\(([^()]*)\)|<class '([\w.]+)'>|^\[\d\d:\d\d:\d\d\] /.*$", re.MULTILINE)


def numbers_agree(text, other):
    """Return whether two outputs are the same but for spaces, the last digits of fractions, and `_STYLES`."""
    text, other = (re.sub(_STYLES, lambda found: found[1] or found[2] or "", t) for t in (text, other))
    number = r"-?\d+\.\d*(?:e[+-]?\d+)?"
    if re.sub(r"\s", "", re.sub(number, "#", text)) != re.sub(r"\s", "", re.sub(number, "#", other)):
        return False
    return all(abs(float(a) - float(b)) <= 1e-4 * max(1, abs(float(b)))
               for a, b in zip(re.findall(number, text), re.findall(number, other), strict=True))


def compare(cells, rows, again, stored):
    """Return ``(how many deterministic outputs are as stored, of how many, the cells that differ)``."""
    known = [cell for cell in cells if cell.label in stored and rows[cell.name]["outcome"] == "ran" and not rows[cell.name]["altered"]
             and rows[cell.name]["output"] == again[cell.name]["output"]]
    differ = [cell for cell in known if not numbers_agree(rows[cell.name]["output"], stored[cell.label])]
    return len(known) - len(differ), len(known), differ


def judge(rows, exceptions):
    """Return ``(counts by outcome, reasons of those left out, lines about what differs from `exceptions`)``."""
    counts, reasons, lines = collections.Counter(), collections.Counter(), []
    for name, row in rows.items():
        outcome, why, known = row["outcome"], row["why"], exceptions.reason(name)
        left_out = selection.reason_of(exceptions.left_out, name)
        if outcome == "failed" and left_out:
            outcome, why = "left out", left_out
        counts[outcome] += 1
        if outcome == "left out":
            reasons[why] += 1
        if outcome == "failed" and not known:
            lines.append(f"  {name}: {why}")
        elif outcome == "ran" and (known or left_out):
            lines.append(f"  {name}: runs, though exceptions.txt says: {known or left_out}")
    return counts, reasons, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--git", required=True, help="a snapshot of the book")
    parser.add_argument("--revision", default="HEAD")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "d2l-cells", help="for logs and reports")
    parser.add_argument("--jobs", type=int, default=1, help="how many sections run at a time")
    parser.add_argument("--timeout", type=int, default=180, help="seconds for one cell")
    parser.add_argument("--outputs", action="store_true", help="compare outputs with the book's")
    parser.add_argument("sections", nargs="*")
    options = parser.parse_args()
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    exceptions, book = selection.Exceptions.read(HERE / "exceptions.txt"), Book(options.git, options.revision)
    with tempfile.TemporaryDirectory(prefix="d2l-") as name:
        folder = pathlib.Path(name)
        book.write_package(folder)
        found = {section: cells for section in options.sections or book.sections
                 if f"{section}::*" not in exceptions.left_out and (cells := book.cells(section))}
        book.write_images(folder, [cell.source for cells in found.values() for cell in cells])
        total, surprises, rows = collections.Counter(), 0, {}
        for section, rows[section] in run_sections(options, book.version(), folder, found, seed=1):
            counts, reasons, lines = judge(rows[section], exceptions)
            surprises += len(lines)
            total.update(counts)
            print("\n".join([f"{section}: {counts['ran']} ran, {counts['failed']} failed, {counts['left out']} left out",
                             *(f"  {count} left out: {why}" for why, count in reasons.items()), *lines]), flush=True)
        needed = total["ran"] + total["failed"]
        print(f"\n{total['ran']} of {needed} cells run ({total['ran'] / max(needed, 1):.1%}); {total['left out']} are left out.", flush=True)
        if options.outputs:
            surprises += compare_all(options, folder, book, found, rows, exceptions.outputs)
    return surprises > 0


def compare_all(options, folder, book, found, rows, exceptions):
    """Run all sections with another seed, and print how many outputs are those that the book has stored; return how many differ without a reason."""
    same, known, reasons, surprises = 0, 0, collections.Counter(), 0
    stored = {section: cells for section, cells in found.items() if book.outputs(section)}
    for section, again in run_sections(options, book.version(), folder, stored, seed=2):
        equal, of, differ = compare(found[section], rows[section], again, book.outputs(section))
        same, known = same + equal, known + of
        for cell in differ:
            if reason := selection.reason_of(exceptions, cell.name):
                reasons[reason] += 1
                continue
            surprises += 1
            print(f"  {cell.name} ({cell.label}) prints {rows[section][cell.name]['output'][:600]!r} in the place of "
                  f"{book.outputs(section)[cell.label][:600]!r}", flush=True)
    print(f"{same} of {known} deterministic outputs are those that the book has stored.",
          *(f"  {count} differ: {reason}" for reason, count in reasons.items()), sep="\n")
    return surprises


if __name__ == "__main__":
    sys.exit(main())
