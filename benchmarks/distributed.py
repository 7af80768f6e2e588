"""Compare distributed training with DistributedDataParallel and MXNet 1.9.1.

    python benchmarks/distributed.py [--mxnet-python /opt/oracle/bin/python] [--rows all-reduce,hidden] [--kills 100] [--quick]

Ranks are processes of one machine; where bandwidth matters they run in network namespaces with a shaped link between them (root only). The libraries
take turns; the table has medians. Earlier results stay in the table, by `results/distributed.json`.

A row is a function with `@row(...)` in one of `MODULES`, which returns the text of the result, and True if the goal is reached.
"""
import argparse
import importlib
import json
import os
import tempfile

from harness import common, worker_processes
from harness.distributed_rows.registry import ROWS

MODULES = ("allreduce", "launch", "wide_network", "sharded_layers", "checkpoints", "fully_sharded", "rescues")  # of harness/distributed_rows


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    common.add_arguments(parser)
    parser.add_argument("--rows", default="", help="only rows whose names have one of these in them, separated by commas")
    parser.add_argument("--quick", action="store_true", help="few and short turns, to test the setup")
    parser.add_argument("--kills", type=int, default=1000, help="how many workers the row about killed ones kills; 1,000 take hours")
    parser.add_argument("--results", default=common.RESULTS, help="the folder for the results")
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "remex-benchmarks"), help="the folder for the networks' files")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.kills = 2, min(args.kills, 10)
    return args


def table(results):
    """Return the results as Markdown."""
    lines = ["# Distributed training", "", "`python benchmarks/distributed.py`; the newest measurement of each row, with its date, "
             "machine and versions.", "", "| | baseline | goal | result | reached | machine, versions, date |",
             "| --- | --- | --- | --- | --- | --- |"]
    for r in ROWS.values():
        if r.name in results:
            result = results[r.name]
            reached = "yes" if result["reached"] else "no"
            lines.append(f"| {r.name} | {r.baseline} | {r.goal} | {result['measured']} | {reached} | {result['where']} |")
    return "\n".join(lines) + "\n"


def main():
    args = arguments()
    for module in MODULES:
        importlib.import_module(f"harness.distributed_rows.{module}")
    path = os.path.join(args.results, "distributed.json")
    results = {}
    if os.path.exists(path):
        with open(path) as file:
            results = json.load(file)
    where = common.versions(args.mxnet_python)
    wanted = common.comma_separated(args.rows)
    failed = []
    for r in ROWS.values():
        if wanted and not any(part in r.name for part in wanted):
            continue
        try:
            measured, reached = r.measure(args)
        except (SystemExit, worker_processes.Failed) as error:
            print(f"{r.name}: not measured. {error}", flush=True)
            failed.append(r.name)
            continue
        results[r.name] = {"measured": measured, "reached": bool(reached), "where": where}
        print(f"{r.name}: {measured} (goal: {r.goal}; {'reached' if reached else 'missed'})", flush=True)
        if not args.quick:
            with open(path, "w") as file:
                json.dump(results, file, indent=1)
            with open(os.path.join(args.results, "distributed.md"), "w") as file:
                file.write(table(results))
    if failed:
        raise SystemExit(f"not measured: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
