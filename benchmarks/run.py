"""Remex beside its peers on this machine: the same networks, the same numbers, in turns.

    python benchmarks/run.py --mxnet-python /opt/oracle/bin/python --tasks scoring --networks resnet50 --batches 1,8

Each row's peers answer in rounds, one computing at a time; medians count, and only of peers whose outputs agree. Rows that
are in `benchmarks/results/TASK.json` already are skipped, so a run can be cut off and taken up again.
"""
import argparse
import concurrent.futures
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time

import held
import numpy as np
import report
import rows
from processes import Failed, Pool, environment, missing

TOLERANCE = {"float32": 1e-3, "bfloat16": 0.1, "int8": 0.5}
# Losses after a step: ResNet-50's gradients in float32 are 2 % (Remex) and 3 % (PyTorch) off those in float64.
TRAINED_TOLERANCE = 0.03


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mxnet-python", default=os.environ.get("MXNET_PYTHON", ""), help="the Python that has the real MXNet 1.9.1")
    parser.add_argument("--nncf-python", default=os.environ.get("NNCF_PYTHON", ""), help="the Python that has nncf and OpenVINO, for INT8")
    parser.add_argument("--plain-python", default=os.environ.get("PLAIN_PYTHON", ""), help="the Python that has MXNet 1.5.1, without MKL-DNN")
    parser.add_argument("--tasks", default=",".join(rows.GOALS), help=f"of {', '.join(rows.GOALS)}")
    parser.add_argument("--networks", default="", help="only these")
    parser.add_argument("--batches", default="", help="only these")
    parser.add_argument("--mode", choices=("scoring", "training"), help="only these rows")
    parser.add_argument("--peers", default="", help="only these columns beside Remex's, such as 'OpenVINO,PyTorch tuned'")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.7, help="length of one peer's turn")
    parser.add_argument("--clock", default="wall", choices=("wall", "cpu"), help="which time counts: `cpu`, the processor's, if others work too")
    parser.add_argument("--drop", type=float, default=2.0, help="a peer that takes so many times the best's time ends after its second turn")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no row after that time")
    parser.add_argument("--quick", action="store_true", help="3 short rounds: to see that all works")
    parser.add_argument("--alone", action="store_true", help="a process for each turn, where the peers of a row do not fit into the memory together")
    parser.add_argument("--again", action="store_true", help="measure rows anew that are in the results")
    parser.add_argument("--report", action="store_true", help="only write the tables anew")
    parser.add_argument("--picture", action="store_true", help="draw results/TASK.png too (matplotlib)")
    parser.add_argument("--avx2", action="store_true", help="hold every peer to AVX2 (by variables, where the processor is not Intel's)")
    parser.add_argument("--results", default=os.path.join(rows.HERE, "results"))
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "remex-benchmarks"), help="where networks lie meanwhile")
    chosen = parser.parse_args()
    os.environ.update(NNCF_PYTHON=chosen.nncf_python, PLAIN_PYTHON=chosen.plain_python)
    if chosen.avx2:
        held.to_avx2()
    if chosen.quick:
        chosen.rounds, chosen.seconds = 3, 0.2
    return chosen


def listed(text):
    return [part.strip() for part in text.split(",") if part.strip()]


def written(name, folder, program="networks.py"):
    """Make sure that the network's files are there, and no older than what says how networks are made."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name + ".npz")
    sources = (os.path.join(rows.HERE, source) for source in ("learners.py", "lessons.py", "networks.py"))
    if not os.path.exists(path) or os.path.getmtime(path) < max(map(os.path.getmtime, sources)):
        _python(program, name, folder)


def with_onnx(row, folder):
    """The path of the row's ONNX file, made now; None where that fails (then those peers say so)."""
    path = os.path.join(folder, f"{row['network']}-{row['batch']}.onnx")
    if not os.path.exists(path):
        try:
            _python(os.path.join("workers", "torch_worker.py"), folder, "onnx", row["network"], str(row["batch"]), path + ".new")
            os.replace(path + ".new", path)  # a run that is cut off leaves no half file under the real name
        except subprocess.CalledProcessError as error:
            print("  no ONNX file:", error.stderr.strip().splitlines()[-1], file=sys.stderr)
            return None
    return path


def with_integers(row, path, python):
    """Write what NNCF makes of an ONNX file beside it, for OpenVINO, as NETWORK.xml; returns the files, none where there is no NNCF."""
    made = os.path.join(os.path.dirname(path), row["network"] + ".xml")
    command = [python, "-W", "ignore", os.path.join(rows.HERE, "workers", "nncf_worker.py"), row["network"], str(row["batch"]), path, made]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print("  no NNCF:", (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1], file=sys.stderr)
        return []
    return [made, made.removesuffix(".xml") + ".bin"]


def _python(program, *args):
    subprocess.run([sys.executable, "-W", "ignore", os.path.join(rows.HERE, program), *args], check=True, capture_output=True, text=True,
                   env=environment(sys.executable))


def load_of_others():
    """The share of the processors' time that others use now, while all workers wait."""
    def reading():
        with open("/proc/stat") as file:
            numbers = [int(n) for n in file.readline().split()[1:]]
        return sum(numbers), numbers[3] + numbers[4]
    if not os.path.exists("/proc/stat"):
        return None
    before = reading()
    time.sleep(0.5)
    total, idle = (after - start for after, start in zip(reading(), before, strict=True))
    return round(1 - idle / max(total, 1), 2)


class Row:
    """The measuring of one row: values by peer (seconds, or bytes for memory), and why peers have none."""

    def __init__(self, row, pool, chosen):
        self.row, self.pool, self.chosen = row, pool, chosen
        self.values, self.failures, self.reference = {}, {}, None
        self.ended = set()  # peers far behind: their processes are gone
        self.cold = row["task"] in rows.COLD

    def measure(self):
        only = listed(self.chosen.peers)
        peers = [p for p in rows.peers(self.row) if not only or p.name in only or p.name.startswith("Remex")]
        for peer in peers:
            self.failures[peer.name] = missing(peer, self.chosen.mxnet_python)
        peers = [p for p in peers if not self.failures[p.name]]
        if not self.chosen.alone:
            peers = self._all_prepared(peers)
        for number in range(self.chosen.rounds - (1 if self.cold else 0)):
            for peer in peers if number % 2 else peers[::-1]:  # both orders, so that no peer always follows the same one
                if not self.failures[peer.name] and not (number >= 2 and self._is_far_behind(peer)):
                    self._try(self._prepare if self.cold else self._round, peer)
        return {"values": self.values, "failures": {k: v for k, v in self.failures.items() if v}}

    def _all_prepared(self, peers):
        """Those of the peers that are ready; who compiles does it beside the others that do: mostly Python, on one core."""
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
            answer = self.pool.get(peer, self.row).ask(do="prepare", row=self.row, seconds=self.chosen.seconds, result_path=path if first else "")
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
        trains = TRAINED_TOLERANCE if self.row.get("mode") == "training" else 0
        if not difference < max(TOLERANCE[self.row["dtype"]], trains):
            raise Failed(f"its result differs by {difference:.2g}")

    def _round(self, peer):
        if self.chosen.alone:
            self._prepare(peer)
        self.values.setdefault(peer.name, []).append(self.pool.get(peer, self.row).ask(do="round")[self.chosen.clock])
        if self.chosen.alone:
            self.pool.close(peer)

    def _is_far_behind(self, peer):
        """Whether the peer takes no more turns: medians that change later do not bring it back."""
        medians = {name: statistics.median(values) for name, values in self.values.items()}
        if medians[peer.name] > self.chosen.drop * min(medians.values()) and not peer.name.startswith("Remex") \
                and peer.name not in rows.RIVALS.get(self.row["task"], ()):
            self.pool.close(peer)
            self.ended.add(peer)
        return peer in self.ended


def main():
    chosen = arguments()
    os.makedirs(chosen.results, exist_ok=True)
    tasks, started = listed(chosen.tasks), time.monotonic()
    todo = rows.rows(tasks, listed(chosen.networks), [int(b) for b in listed(chosen.batches)], chosen.mode)
    if chosen.report:
        todo = []
    pool = Pool(chosen.mxnet_python, chosen.folder)
    integers, integers_of = [], None
    try:
        for number, row in enumerate(todo, 1):
            stored = report.load(chosen.results, row["task"])
            if rows.label(row) in stored["rows"] and not chosen.again:
                continue
            if time.monotonic() - started > chosen.minutes * 60:
                print(f"--minutes is over: {len(todo) - number + 1} rows are left")
                break
            begun, others = time.monotonic(), load_of_others()
            print(f"[{number}/{len(todo)}] {row['task']}: {rows.label(row)} (others use {others or 0:.0%} of the machine) ...", flush=True)
            written(row["network"], chosen.folder, "learners.py" if row["task"] == "steps" else "networks.py")
            workers = {p.worker for p in rows.peers(row)}
            # Integers are made of the first batch: OpenVINO gives convolutional networks the other sizes itself.
            scored = row["dtype"] == "int8" and "onnx_worker.py" in workers
            wanted = (row["network"], 0 if row["task"] == "int8" else row["batch"]) if scored else None
            made_before = wanted is not None and wanted == integers_of
            path = with_onnx(row, chosen.folder) if workers & {"onnx_worker.py", "nncf_worker.py"} and not made_before else None
            if scored and not made_before:
                for file in integers:
                    os.remove(file)
                integers, integers_of = with_integers(row, path, chosen.nncf_python or sys.executable) if path else [], wanted
            result = {**row, **Row(row, pool, chosen).measure(), "others": others, "clock": chosen.clock,
                      "machine": report.machine(chosen.mxnet_python)}
            if path:
                os.remove(path)
            stored["rows"][rows.label(row)] = result
            report.save(chosen.results, row["task"], stored)
            print("  " + report.one_line(result), f"({time.monotonic() - begun:.0f} s)", flush=True)
    finally:
        pool.close()
        for file in integers:
            os.remove(file)
    for task in tasks:
        report.write(chosen.results, task, chosen.picture)
    report.speedups(chosen.results)
    report.summarize(chosen.results)


if __name__ == "__main__":
    main()
