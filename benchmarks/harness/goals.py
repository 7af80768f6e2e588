"""Tables of goals: rows that measure themselves, and what each gave last."""
import json
import os
from collections.abc import Callable
from typing import NamedTuple

from harness import common, worker_processes


class Row(NamedTuple):
    """A measurement with its baseline and goal; `measure` takes the options and returns ``(text of the result, True if it reaches the goal)``."""

    name: str
    baseline: str
    goal: str
    measure: Callable


class Table:
    """A table of rows in results/NAME.md. Earlier results stay in it, by results/NAME.json."""

    def __init__(self, title, name):
        self.title, self.name, self.rows = title, name, {}

    def row(self, name, baseline, goal):
        """Return a decorator that adds the row that the function measures."""
        def add(measure):
            self.rows[name] = Row(name, baseline, goal, measure)
            return measure
        return add

    @staticmethod
    def add_arguments(parser):
        """Add the options of `run`."""
        common.add_arguments(parser)
        parser.add_argument("--rows", default="", help="only rows whose names have one of these in them, separated by commas")
        parser.add_argument("--quick", action="store_true", help="few and short turns, to test the setup; nothing is written")
        parser.add_argument("--results", default=common.RESULTS, help="the folder for the results")

    def run(self, args):
        """Measure the rows that `args` asks for, and write the table after each."""
        path = os.path.join(args.results, f"{self.name}.json")
        results = {}
        if os.path.exists(path):
            with open(path) as file:
                results = json.load(file)
        where = common.versions(args.mxnet_python)
        wanted = common.comma_separated(args.rows)
        failed = []
        for row in self.rows.values():
            if wanted and not any(part in row.name for part in wanted):
                continue
            try:
                measured, reached = row.measure(args)
            except (SystemExit, worker_processes.Failed) as error:
                print(f"{row.name}: not measured. {error}", flush=True)
                failed.append(row.name)
                continue
            results[row.name] = {"measured": measured, "reached": bool(reached), "where": where}
            print(f"{row.name}: {measured} (goal: {row.goal}; {'reached' if reached else 'missed'})", flush=True)
            if not args.quick:
                with open(path, "w") as file:
                    json.dump(results, file, indent=1)
                with open(os.path.join(args.results, f"{self.name}.md"), "w") as file:
                    file.write(self._text(results))
        if failed:
            raise SystemExit(f"not measured: {'; '.join(failed)}")

    def _text(self, results):
        lines = [f"# {self.title}", "",
                 f"`python benchmarks/{self.name}.py`; the newest measurement of each row, with its date, machine and versions.",
                 "", "| | baseline | goal | result | reached | machine, versions, date |", "| --- | --- | --- | --- | --- | --- |"]
        for row in self.rows.values():
            if row.name in results:
                result = results[row.name]
                reached = "yes" if result["reached"] else "no"
                lines.append(f"| {row.name} | {row.baseline} | {row.goal} | {result['measured']} | {reached} | {result['where']} |")
        return "\n".join(lines) + "\n"
