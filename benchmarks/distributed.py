"""Compare distributed training with DistributedDataParallel and MXNet 1.9.1.

    python benchmarks/distributed.py [--mxnet-python /opt/oracle/bin/python] [--rows all-reduce,hidden] [--kills 100] [--quick]

Ranks are processes of one machine; where bandwidth matters they run in network namespaces with a shaped link between them (root only). The libraries
take turns; the table has medians. Earlier results stay in the table, by `results/distributed.json`.

A row is a function with `@row(...)` in one of `MODULES`, which returns the text of the result, and True if the goal is reached.
"""
import argparse
import importlib
import os
import tempfile

from harness.distributed_rows.registry import TABLE

MODULES = ("allreduce", "launch", "wide_network", "sharded_layers", "checkpoints", "fully_sharded", "rescues")  # of harness/distributed_rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    TABLE.add_arguments(parser)
    parser.add_argument("--kills", type=int, default=1000, help="how many workers the row about killed ones kills; 1,000 take up to an hour")
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "remex-benchmarks"), help="the folder for the networks' files")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.kills = 2, min(args.kills, 10)
    for module in MODULES:
        importlib.import_module(f"harness.distributed_rows.{module}")
    TABLE.run(args)


if __name__ == "__main__":
    main()
