"""Compare Remex with other libraries on this machine: the same networks and numbers, in turns.

    python benchmarks/run.py --mxnet-python /opt/oracle/bin/python --tasks scoring --networks resnet50 --batches 1,8

The libraries of a row are measured in rounds, one at a time; the tables have medians of those whose outputs agree. Rows that are already in
`benchmarks/results/TASK.json` are skipped, so that an interrupted run can be continued.
"""
import argparse
import concurrent.futures
import itertools
import os
import statistics
import sys
import tempfile
import time

import numpy as np

from harness import common, isa_limit, model_files, report, tasks
from harness.worker_processes import Failed, Pool, missing

TOLERANCE = {"float32": 1e-3, "bfloat16": 0.1, "int8": 0.5}
# Losses after a step: ResNet-50's gradients in float32 differ by 2 % (Remex) and 3 % (PyTorch) from those in float64.
TRAINING_TOLERANCE = 0.03


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mxnet-python", default=os.environ.get("MXNET_PYTHON", ""), help="the Python that has the real MXNet 1.9.1")
    parser.add_argument("--nncf-python", default=os.environ.get("NNCF_PYTHON", ""), help="the Python that has nncf and OpenVINO, for INT8")
    parser.add_argument("--plain-python", default=os.environ.get("PLAIN_PYTHON", ""), help="the Python that has MXNet 1.5.1, without MKL-DNN")
    parser.add_argument("--tasks", default=",".join(tasks.GOALS), help=f"of {', '.join(tasks.GOALS)}")
    parser.add_argument("--networks", default="", help="only these networks")
    parser.add_argument("--batches", default="", help="only these batch sizes")
    parser.add_argument("--mode", choices=("scoring", "training"), help="only these rows")
    parser.add_argument("--peers", default="", help="only these columns beside Remex's, such as 'OpenVINO,PyTorch tuned'")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each peer")
    parser.add_argument("--seconds", type=float, default=0.7, help="length of one peer's turn")
    parser.add_argument("--clock", default="wall", choices=("wall", "cpu"), help="`cpu` measures processor time, which other programs affect less")
    parser.add_argument("--drop", type=float, default=2.0, help="a peer that is so many times slower than the best stops after its second turn")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no row after that time")
    parser.add_argument("--quick", action="store_true", help="3 short rounds, to test the setup")
    parser.add_argument("--alone", action="store_true", help="a process for each turn, where the peers of a row do not fit into memory together")
    parser.add_argument("--again", action="store_true", help="measure rows that are already in the results again")
    parser.add_argument("--report", action="store_true", help="only write the tables, from the result files")
    parser.add_argument("--avx2", action="store_true", help="limit every peer to AVX2 (by variables, where the processor is not Intel's)")
    parser.add_argument("--results", default=common.RESULTS, help="the folder for the results")
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "remex-benchmarks"), help="the folder for the networks' files")
    args = parser.parse_args()
    os.environ.update(NNCF_PYTHON=args.nncf_python, PLAIN_PYTHON=args.plain_python)
    if args.avx2:
        isa_limit.to_avx2()
    if args.quick:
        args.rounds, args.seconds = 3, 0.2
    return args


class Row:
    """The measurement of one row: values by peer (seconds, or bytes for memory), and the reasons of peers without values."""

    def __init__(self, row, pool, args):
        self.row, self.pool, self.args = row, pool, args
        self.values, self.failures, self.reference = {}, {}, None
        self.dropped = set()  # peers that are far behind; their processes are closed
        self.cold = row["task"] in tasks.COLD

    def measure(self):
        only = common.comma_separated(self.args.peers)
        peers = [p for p in tasks.peers(self.row) if not only or p.name in only or p.name.startswith("Remex")]
        for peer in peers:
            self.failures[peer.name] = missing(peer, self.args.mxnet_python)
        peers = [p for p in peers if not self.failures[p.name]]
        if not self.args.alone:
            peers = self._prepare_all(peers)
        for number in range(self.args.rounds - (1 if self.cold else 0)):
            for peer in peers if number % 2 else peers[::-1]:  # both orders, so that no peer always follows the same one
                if not self.failures[peer.name] and not (number >= 2 and self._is_far_behind(peer)):
                    self._try(self._prepare if self.cold else self._round, peer)
        return {"values": self.values, "failures": {k: v for k, v in self.failures.items() if v}}

    def _prepare_all(self, peers):
        """Return the peers that are ready. Those that compile do so concurrently: it is mostly Python, on one core."""
        compiling = [p for p in peers if "compile" in p.options and not self.cold]
        ready = {p for p in peers if p not in compiling and self._try(self._prepare, p)}
        with concurrent.futures.ThreadPoolExecutor(max(len(compiling), 1)) as threads:
            ready.update(itertools.compress(compiling, threads.map(lambda p: self._try(self._prepare, p), compiling)))
        return [p for p in peers if p in ready]

    def _try(self, action, peer):
        try:
            action(peer)
        except Failed as failure:
            self.failures[peer.name] = str(failure)
            self.values.pop(peer.name, None)
            self.pool.close(peer)
        return not self.failures[peer.name]

    def _prepare(self, peer):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "result.npy")
            first = not self.cold
            answer = self.pool.get(peer, self.row).ask(do="prepare", row=self.row, seconds=self.args.seconds, result_path=path if first else "")
            if first:
                self._compare(np.load(path))
        if self.cold:
            self.values.setdefault(peer.name, []).append(answer["value"])
            self.pool.close(peer)

    def _compare(self, result):
        if self.row.get("mode") == "training" and self.row["network"] in ("alexnet", "inception-v3", "vgg16"):
            result = np.isfinite(result).astype(float)  # dropout: losses are random
        if self.reference is None:
            self.reference = result
        difference = float(np.abs(result - self.reference).max() / np.abs(self.reference).max())
        training_tolerance = TRAINING_TOLERANCE if self.row.get("mode") == "training" else 0
        if not difference < max(TOLERANCE[self.row["dtype"]], training_tolerance):
            raise Failed(f"its result differs by {difference:.2g}")

    def _round(self, peer):
        if self.args.alone:
            self._prepare(peer)
        self.values.setdefault(peer.name, []).append(self.pool.get(peer, self.row).ask(do="round")[self.args.clock])
        if self.args.alone:
            self.pool.close(peer)

    def _is_far_behind(self, peer):
        """Return True if the peer takes no more turns; later medians do not reverse that."""
        medians = {name: statistics.median(values) for name, values in self.values.items()}
        if medians[peer.name] > self.args.drop * min(medians.values()) and not peer.name.startswith("Remex") \
                and peer.name not in tasks.BASELINES.get(self.row["task"], ()):
            self.pool.close(peer)
            self.dropped.add(peer)
        return peer in self.dropped


def main():
    args = arguments()
    os.makedirs(args.results, exist_ok=True)
    listed = common.comma_separated
    names, started = listed(args.tasks), time.monotonic()
    todo = tasks.rows(names, listed(args.networks), [int(b) for b in listed(args.batches)], args.mode)
    if args.report:
        todo = []
    pool = Pool(args.mxnet_python, args.folder)
    int8_files, int8_key = [], None  # those of the current network by NNCF
    try:
        for number, row in enumerate(todo, 1):
            stored = report.load(args.results, row["task"])
            if tasks.label(row) in stored["rows"] and not args.again:
                continue
            if time.monotonic() - started > args.minutes * 60:
                print(f"--minutes is over: {len(todo) - number + 1} rows are left")
                break
            row_started, others = time.monotonic(), common.other_load()
            print(f"[{number}/{len(todo)}] {row['task']}: {tasks.label(row)} (load of other programs {others or 0:.0%}) ...", flush=True)
            model_files.ensure_network(row["network"], args.folder, "train_models" if row["task"] == "steps" else "networks")
            workers = {p.worker for p in tasks.peers(row)}
            # The first batch size is quantized: OpenVINO reshapes convolutional networks to the others.
            needs_int8 = row["dtype"] == "int8" and "onnx_worker.py" in workers
            key = (row["network"], 0 if row["task"] == "int8" else row["batch"]) if needs_int8 else None
            reused = key is not None and key == int8_key
            path = model_files.export_onnx(row, args.folder) if workers & {"onnx_worker.py", "nncf_worker.py"} and not reused else None
            if needs_int8 and not reused:
                for file in int8_files:
                    os.remove(file)
                int8_files, int8_key = model_files.quantize_onnx(row, path, args.nncf_python or sys.executable) if path else [], key
            result = {**row, **Row(row, pool, args).measure(), "others": others, "clock": args.clock,
                      "machine": report.machine(args.mxnet_python)}
            if path:
                os.remove(path)
            stored["rows"][tasks.label(row)] = result
            report.save(args.results, row["task"], stored)
            print("  " + report.one_line(result), f"({time.monotonic() - row_started:.0f} s)", flush=True)
    finally:
        pool.close()
        for file in int8_files:
            os.remove(file)
    for task in names:
        report.write(args.results, task)
    report.speedups(args.results)
    report.summarize(args.results)


if __name__ == "__main__":
    main()
