"""Training on several processes beside its peers; one command fills the table.

    python benchmarks/distributed.py [--mxnet-python /opt/oracle/bin/python] [--rows all-reduce,hidden] [--quick]

Processes of one machine stand for machines; where the network matters they run in network namespaces with a shaped link between them (root
only). Peers take turns, and medians count. What was measured before stays in the table: `results/distributed.json` has it.

A row is a function with `@row(...)` in one of `MODULES`: it measures, and returns what the table says and whether the goal is reached.
"""
import argparse
import importlib
import json
import os
import tempfile

import peers
import processes
from row_table import ROWS

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = ("gradients", "launched", "wide", "sharded")  # where rows are


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    peers.add_arguments(parser)
    parser.add_argument("--rows", default="", help="only rows whose names have one of these in them, separated by commas")
    parser.add_argument("--quick", action="store_true", help="few and short turns: to see that all works")
    parser.add_argument("--results", default=os.path.join(HERE, "results"))
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "remex-benchmarks"), help="where networks lie meanwhile")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds = 2
    return chosen


def table(found):
    """The results as Markdown."""
    lines = ["# Distributed training beside its peers", "", "`python benchmarks/distributed.py`; the newest measurement of each row, with its date, "
             "machine and versions.", "", "| | against | goal | measured | reached | when and where |", "| --- | --- | --- | --- | --- | --- |"]
    for r in ROWS.values():
        if r.name in found:
            one = found[r.name]
            lines.append(f"| {r.name} | {r.against} | {r.goal} | {one['measured']} | {'yes' if one['reached'] else 'no'} | {one['where']} |")
    return "\n".join(lines) + "\n"


def main():
    chosen = arguments()
    for module in MODULES:
        importlib.import_module(module)
    path = os.path.join(chosen.results, "distributed.json")
    found = {}
    if os.path.exists(path):
        with open(path) as file:
            found = json.load(file)
    where = peers.versions(chosen.mxnet_python)
    wanted = [part.strip() for part in chosen.rows.split(",") if part.strip()]
    failed = []
    for r in ROWS.values():
        if wanted and not any(part in r.name for part in wanted):
            continue
        try:
            measured, reached = r.measure(chosen)
        except (SystemExit, processes.Failed) as error:
            print(f"{r.name}: not measured. {error}", flush=True)
            failed.append(r.name)
            continue
        found[r.name] = {"measured": measured, "reached": bool(reached), "where": where}
        print(f"{r.name}: {measured} (goal: {r.goal}; {'reached' if reached else 'missed'})", flush=True)
        if not chosen.quick:
            with open(path, "w") as file:
                json.dump(found, file, indent=1)
            with open(os.path.join(chosen.results, "distributed.md"), "w") as file:
                file.write(table(found))
    if failed:
        raise SystemExit(f"not measured: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
