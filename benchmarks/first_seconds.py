"""Measure the warm-up of scoring: images a second in the first four seconds of the first process and of the second one, and in the steady state.

    python benchmarks/first_seconds.py --mxnet-python /opt/oracle/bin/python          # writes benchmarks/results/first_seconds.md

The first process has an empty tuning cache (its MXNET_HOME has compiled kernels only, as in a wheel), the second one has the cache of the first.
Seconds count from the end of the first call, whose time has a column. The other libraries run in processes of their own, in turns with Remex; where
the steady state is close to the best of them, figures are medians of thrice as many rounds.
"""
import argparse
import math
import os
import shutil
import statistics
import tempfile

from harness import common, model_files, tasks, worker_processes

FIRST, LAST = 4.0, 3.0  # seconds at the beginning of a run, and at its end, in the steady state
CLOSE = 1.1  # rows with a steady state of at most so many times the best of the others are measured again: processes alone differ by a tenth
PEERS = (tasks.OPENVINO, tasks.RUNTIME, tasks.MXNET, tasks.MKLDNN)


def run_worker(peer, row, seconds, args):
    """Return the times of the first call and of those in the next seconds, in a new process; None where it fails."""
    worker = worker_processes.Process(tasks.command(peer, args.mxnet_python, args.folder), False)
    try:
        return worker.ask(do="begin", row=row, seconds=seconds)
    except worker_processes.Failed as error:
        print(f"  {peer.name}: {error}", flush=True)
        return None
    finally:
        worker.close()


def rate(answer, begin, end, batch):
    """Return images a second between two times."""
    inside = [t for t in answer["ends"] if begin < t <= end]
    before = max((t for t in answer["ends"] if t <= begin), default=0.0)
    return batch * len(inside) / (inside[-1] - before) if inside else 0.0


def measure(row, args):
    """Return the rates (images a second) and times (seconds) of a row, the other libraries' by name; None where Remex or all others fail."""
    from mxnet.kernels.runtime import libraries
    batch, others = row["batch"], {}
    with tempfile.TemporaryDirectory() as home:
        shutil.copytree(libraries.folder(), os.path.join(home, "kernels"), ignore=shutil.ignore_patterns("*.json"))
        os.environ["MXNET_HOME"] = home
        first = run_worker(tasks.REMEX, row, args.seconds, args)
        second = run_worker(tasks.REMEX, row, FIRST, args)
        del os.environ["MXNET_HOME"]
    for peer in PEERS:
        if not worker_processes.missing(peer, args.mxnet_python) and (answer := run_worker(peer, row, FIRST, args)):
            others[peer.name] = rate(answer, 0.0, FIRST, batch)
    return {"first": rate(first, 0.0, FIRST, batch), "second": rate(second, 0.0, FIRST, batch),
            "settled": rate(first, args.seconds - LAST, args.seconds, batch), "call": first["first"], "again": second["first"],
            "after": math.inf if first["settled"] is None else first["settled"], **others} if first and second and others else None


def medians(samples):
    """Return the medians of what `measure` gave, and as ``"best"`` the name and the rate of the fastest of the others; None without samples."""
    samples = [sample for sample in samples if sample]
    if not samples:
        return None
    values = {key: statistics.median(s[key] for s in samples if key in s) for key in samples[0]}
    best = max(((peer.name, values[peer.name]) for peer in PEERS if peer.name in values), key=lambda item: item[1])
    return {**values, "best": best}


def mean(results, kind):
    """Return the geometric mean of Remex's rates of one kind divided by the best of the others."""
    return math.exp(statistics.mean(math.log(max(v[kind], 1e-9) / v["best"][1]) for v in results.values()))


def table(results):
    """Return Markdown, with the geometric means of the rates divided by the best of the others."""
    lines = ["| network, batch | best of the others, images/s | first 4 s | second process | steady state | tuned after, s | first call, s "
             "| in the second process |",
             "|---|---|---|---|---|---|---|---|"]
    kinds = "first", "second", "settled"
    for name, values in results.items():
        peer, best = values["best"]
        cells = [f"{values[k] / best:.2f}" for k in kinds]
        lines.append(f"| {name} | {best:.4g}, {peer} | {' | '.join(cells)} | {values['after']:.1f} | {values['call']:.2f} | {values['again']:.2f} |")
    return "\n".join([*lines, f"| geometric mean | | {' | '.join(f'{mean(results, k):.2f}' for k in kinds)} | | | |"])


def collect(networks, batches, args):
    """Return what `medians` gives, by row; `args` has the options ``mxnet_python``, ``rounds``, ``seconds`` and ``folder``."""
    results = {}
    for name in networks:
        model_files.ensure_network(name, args.folder)
        for batch in batches:
            row = {"task": "scoring", "network": name, "batch": batch, "dtype": "float32"}
            model_files.export_onnx(row, args.folder)
            samples = [measure(row, args) for _ in range(args.rounds)]
            values = medians(samples)
            if values and values["settled"] <= CLOSE * values["best"][1]:
                values = medians(samples + [measure(row, args) for _ in range(2 * args.rounds)])
            print(tasks.label(row), values, flush=True)
            if values:
                results[tasks.label(row)] = values
    return results


def write(results, mxnet_python, folder):
    """Write the table to a folder."""
    head = f"{common.versions(mxnet_python)}\n\nRemex's images a second divided by those of the best of the others; higher is better"
    with open(os.path.join(folder, "first_seconds.md"), "w") as file:
        file.write(f"# The first seconds of scoring\n\n{head}\n\n{table(results)}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_arguments(parser)
    parser.set_defaults(rounds=1)
    parser.add_argument("--networks", default=",".join(tasks.NETWORKS), help="by comma")
    parser.add_argument("--batches", default="1,16", help="by comma")
    parser.add_argument("--seconds", type=float, default=14.0, help="length of the first process")
    parser.add_argument("--results", default=common.RESULTS, help="the folder for the table")
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "remex-benchmarks"), help="the folder for the networks' files")
    args = parser.parse_args()
    results = collect(common.comma_separated(args.networks), [int(b) for b in common.comma_separated(args.batches)], args)
    write(results, args.mxnet_python, args.results)


if __name__ == "__main__":
    main()
