"""Scoring from the first call on: images a second in the first four seconds of the first process and of the second one, and when it has settled.

    python benchmarks/first_seconds.py --mxnet-python /opt/oracle/bin/python          # writes benchmarks/results/first_seconds.md

The first process finds nothing that an earlier one has learned (its MXNET_HOME holds compiled kernels only, as a wheel brings them), the second one
finds what the first one left. Seconds count from the end of the first call, whose length has a column of its own. Peers take turns with Remex, each
in a process of its own.
"""
import argparse
import math
import os
import shutil
import statistics
import tempfile

import peers
import processes
import rows
import run

from mxnet.kernels.runtime import libraries

SOON, LATE = 4.0, 3.0  # seconds: what is called first, and the end of a run, in which it has settled
PEERS = (rows.OPENVINO, rows.RUNTIME, rows.MXNET, rows.MKLDNN)


def begun(peer, row, seconds, chosen):
    """What a new process says about its first call and the next seconds; None where it fails."""
    worker = processes.Process(rows.command(peer, chosen.mxnet_python, chosen.folder), False)
    try:
        return worker.ask(do="begin", row=row, seconds=seconds)
    except processes.Failed as error:
        print(f"  {peer.name}: {error}", flush=True)
        return None
    finally:
        worker.close()


def rate(found, begin, end, batch):
    """Images a second between two moments."""
    inside = [t for t in found["ends"] if begin < t <= end]
    before = max((t for t in found["ends"] if t <= begin), default=0.0)
    return batch * len(inside) / (inside[-1] - before) if inside else 0.0


def measure(row, chosen):
    """Figures of a row: images a second, and seconds."""
    batch, found = row["batch"], {}
    with tempfile.TemporaryDirectory() as home:
        shutil.copytree(libraries.folder(), os.path.join(home, "kernels"), ignore=shutil.ignore_patterns("*.json"))
        os.environ["MXNET_HOME"] = home
        first = begun(rows.REMEX, row, chosen.seconds, chosen)
        second = begun(rows.REMEX, row, SOON, chosen)
        del os.environ["MXNET_HOME"]
    for peer in PEERS:
        if not processes.missing(peer, chosen.mxnet_python) and (answer := begun(peer, row, SOON, chosen)):
            found[peer.name] = rate(answer, 0.0, SOON, batch)
    return {"first": rate(first, 0.0, SOON, batch), "second": rate(second, 0.0, SOON, batch),
            "settled": rate(first, chosen.seconds - LATE, chosen.seconds, batch), "after": first["settled"], "call": first["first"],
            "again": second["first"], "best": max(found.items(), key=lambda item: item[1])} if first and second and found else None


def table(found):
    """Markdown, with the geometric means of what is divided by the best peer."""
    lines = ["| network, batch | the best peer, images/s | first 4 s | second process | settled | settled after, s | first call, s | the second's |",
             "|---|---|---|---|---|---|---|---|"]
    kinds = "first", "second", "settled"
    for name, values in found.items():
        peer, best = values["best"]
        cells = [f"{values[k] / best:.2f}" for k in kinds]
        after = f"{values['after']:.1f}" if values["after"] is not None else "not"
        lines.append(f"| {name} | {best:.4g}, {peer} | {' | '.join(cells)} | {after} | {values['call']:.2f} | {values['again']:.2f} |")
    means = [math.exp(statistics.mean(math.log(max(v[k], 1e-9) / v["best"][1]) for v in found.values())) for k in kinds]
    return "\n".join([*lines, f"| geometric mean | | {' | '.join(f'{m:.2f}' for m in means)} | | | |"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    peers.add_arguments(parser)
    parser.add_argument("--networks", default=",".join(rows.NETWORKS))
    parser.add_argument("--batches", default="1,16")
    parser.add_argument("--seconds", type=float, default=14.0, help="how long the first process scores")
    parser.add_argument("--results", default=os.path.join(rows.HERE, "results"))
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "remex-benchmarks"), help="where networks lie meanwhile")
    chosen = parser.parse_args()
    found = {}
    for name in chosen.networks.split(","):
        run.written(name, chosen.folder)
        for batch in map(int, chosen.batches.split(",")):
            row = {"task": "scoring", "network": name, "batch": batch, "dtype": "float32"}
            run.with_onnx(row, chosen.folder)
            values = measure(row, chosen)
            print(rows.label(row), values, flush=True)
            if values:
                found[rows.label(row)] = values
    head = f"{peers.versions(chosen.mxnet_python)}\n\nRemex's images a second divided by those of the best peer"
    with open(os.path.join(chosen.results, "first_seconds.md"), "w") as file:
        file.write(f"# The first seconds of scoring\n\n{head}\n\n{table(found)}\n")


if __name__ == "__main__":
    main()
