"""Speed on one GPU: Remex as programs use it, and PyTorch, in turns; images (sequences, steps, calls) a second.

    python benchmarks/gpu.py                                                       # writes benchmarks/results/gpu/CARD.md and .json
    python benchmarks/gpu.py --parts training --compile default,reduce-overhead --networks resnet50
    python benchmarks/gpu.py --parts first                                         # first calls of new processes

Each row is prepared by a separate process, `--together` of them at a time: engines warm up and torch.compile compiles, which takes up to a minute.
Then rows are measured one after another, alone, in windows in which engines take turns; the table has medians. PyTorch computes with channels last
and TF32; with `--search` cuDNN benchmarks its algorithms for PyTorch. A small step is also compared with PyTorch's step as one CUDA graph.
"""
import argparse
import contextlib
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree

import torch

import mxnet as mx
from harness import common, gpu_rows
from harness.gpu_rows import COMPILED, EAGER, ONE_GRAPH, REMEX, Place, Row

FIRST_CALLS = """
import sys, time
start = time.perf_counter()
import mxnet as mx
ready = time.perf_counter()
net = mx.gluon.model_zoo.vision.resnet50_v1()
net.initialize(mx.init.Xavier(), ctx=mx.gpu(0))
net.hybridize(static_alloc=True, static_shape=True)
x = mx.nd.ones((32, 3, 224, 224), ctx=mx.gpu(0))
mx.nd.waitall()
begin = time.perf_counter()
net(x).asnumpy()
first = time.perf_counter() - begin
rates = []
while time.perf_counter() - begin < float(sys.argv[1]):
    since = time.perf_counter()
    for _ in range(10):
        out = net(x)
    out.asnumpy()
    rates.append((time.perf_counter() - begin, 320 / (time.perf_counter() - since)))
best = max(rate for _, rate in rates)
print(first, next(at for at, rate in rates if rate > 0.95 * best), best)
"""


def prepared(row: Row, place: Place, folder: str, options: Any) -> tuple[dict[str, Callable], dict[str, Any]]:
    """Return the steps of all engines, warmed up, and for the table the times of their first steps, peaks of memory, and errors."""
    steps: dict[str, Callable] = {}
    result: dict[str, Any] = {**row._asdict(), "rate": {}, "first_s": {}, "peak_gib": {}, "error": {}}
    for name, prepare in gpu_rows.steps_of(row, place, folder, options.compile):
        torch.backends.cudnn.benchmark = options.search and name != REMEX
        peak = place.memory()
        try:
            step = prepare()
            place.wait()
            ready = time.perf_counter()
            step()
            place.wait()
            result["first_s"][name] = round(time.perf_counter() - ready, 3)
            until = time.perf_counter() + options.warm
            for i in range(10_000):
                step()
                if i >= 8 and time.perf_counter() > until:
                    break
            place.wait()
            steps[name] = step
            result["peak_gib"][name] = round(peak(), 3)
        except Exception as error:  # it goes into the table; other engines are measured
            last = traceback.extract_tb(error.__traceback__)[-1]
            result["error"][name] = f"{type(error).__name__}: {str(error)[:300]} ({os.path.basename(last.filename)}:{last.lineno})"
        if place.device.type == "cuda":
            torch.cuda.empty_cache()
    return steps, result


def measure_row(row: Row, place: Place, folder: str, options: Any) -> None:
    """Prepare a row, print that it is ready, wait for a line, measure, print the result as JSON."""
    steps, result = prepared(row, place, folder, options)
    print("ready", flush=True)
    sys.stdin.readline()
    rates: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(options.rounds):
        for name, step in steps.items():
            torch.backends.cudnn.benchmark = options.search and name != REMEX
            rates[name].append(_rate(step, place, options.seconds) * row.batch)
    result["rate"] = {name: statistics.median(values) for name, values in rates.items()}
    print(json.dumps(result), flush=True)


def _rate(step: Callable, place: Place, seconds: float) -> float:
    """Return steps a second in a window of about so many seconds."""
    step()
    place.wait()
    start = time.perf_counter()
    step()
    place.wait()
    count = max(1, min(5000, int(seconds / max(time.perf_counter() - start, 1e-6))))
    start = time.perf_counter()
    for _ in range(count):
        step()
    place.wait()
    return count / (time.perf_counter() - start)


class Worker:
    """The process of one row."""

    def __init__(self, row: Row, folder: str, options: Any) -> None:
        self.row, self.log = row, tempfile.TemporaryFile("w+")
        threads = max(1, (os.cpu_count() or 1) // options.together)
        command = [sys.executable, __file__, *sys.argv[1:], "--row", json.dumps(row), "--folder", folder]
        env = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": str(threads)}
        if row.part != "wide-network":  # whose batches come from the host, by as many threads as a program has
            env["OMP_NUM_THREADS"] = str(threads)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=env)

    def line(self, patience: float) -> str:
        """Return the next line of its output, or '' where it has ended, or prints none for so many seconds."""
        out: Any = self.process.stdout
        return out.readline() if select.select([out], [], [], max(patience, 0))[0] else ""

    def measured(self) -> dict[str, Any]:
        with contextlib.suppress(BrokenPipeError):
            print("go", file=self.process.stdin, flush=True)
        with contextlib.suppress(ValueError):  # it has ended without a result
            return json.loads(self.line(120))
        self.log.seek(0)
        last = (self.log.read().strip().splitlines() or ["no output"])[-1]
        return {**self.row._asdict(), "rate": {}, "first_s": {}, "peak_gib": {}, "error": {REMEX: f"status {self.process.poll()}: {last[:300]}"}}

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.log.close()


def measured(rows: list[Row], folder: str, options: Any) -> Iterator[dict[str, Any]]:
    """Yield the measurements of each row; groups of rows are prepared beside one another, and measured one by one."""
    for start in range(0, len(rows), options.together):
        with contextlib.ExitStack() as running:
            workers = [Worker(row, folder, options) for row in rows[start:start + options.together]]
            for worker in workers:
                running.callback(worker.close)
            until = time.monotonic() + options.patience
            ready = [worker.line(until - time.monotonic()) for worker in workers]
            for worker, line in zip(workers, ready):
                if not line:  # it would disturb the others' measurements
                    worker.process.kill()
            for worker in workers:
                yield worker.measured()
                worker.close()


def first_calls(seconds: float) -> Iterator[str]:
    """Yield lines about the first calls of ResNet-50 in new processes: with empty caches, and with those that the first process filled."""
    with tempfile.TemporaryDirectory() as caches:
        env = {**os.environ, "PYTHONPATH": os.path.join(common.ROOT, "src") + os.pathsep + os.environ.get("PYTHONPATH", ""),
               **{name: os.path.join(caches, name) for name in ("MXNET_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "XDG_CACHE_HOME")}}
        for cache in ("empty caches", "caches of the first process"):
            process = subprocess.run([sys.executable, "-c", FIRST_CALLS, str(seconds)], capture_output=True, text=True, env=env)
            if process.returncode:
                yield f"{cache}: {process.stderr.strip().splitlines()[-1][:200]}"
                continue
            first, settled, best = map(float, process.stdout.split())
            yield f"{cache}: the first result after {first:.2f} s, the best speed ({best:.0f} images/s) after {settled:.1f} s"


def report(results: list[dict[str, Any]], first: list[str], head: str, command: str) -> str:
    """Return the tables as Markdown."""
    names = {name for entry in results for name in (*entry["rate"], *entry["error"])}
    engines = [name for name in (REMEX, EAGER, *COMPILED.values(), ONE_GRAPH) if name in names]
    kinds = " / ".join(name.removeprefix("PyTorch ") for name in engines if name != ONE_GRAPH)
    lines = ["# One GPU: Remex and PyTorch", "", f"`{command}`", "", head, "",
             "Images (sequences, steps × batch, calls) a second; the ratios are Remex's rate over that of the best other engine, and over that of a "
             "step captured as one CUDA graph. Memory: the peak of an engine alone, GiB. First calls ran concurrently.",
             "", f"| row | {' | '.join(engines)} | ratio | one graph | first call, s ({kinds}) | memory ({kinds}) |",
             "|---" * (len(engines) + 5) + "|"]
    ratios: dict[str, list[float]] = {}
    for entry in results:
        rates = entry["rate"]
        others = [rate for name, rate in rates.items() if name not in (REMEX, ONE_GRAPH)]
        ratio = rates[REMEX] / max(others) if REMEX in rates and others else None
        if ratio:
            ratios.setdefault(entry["part"], []).append(ratio)
        one_graph = f"{rates[REMEX] / rates[ONE_GRAPH]:.2f}" if REMEX in rates and ONE_GRAPH in rates else ""
        cells = [f"{rates[name]:.4g}" if name in rates else entry["error"].get(name, "").replace("|", "/")[:120] for name in engines]
        pairs = [" / ".join(str(entry[table].get(name, "")) for name in engines if name != ONE_GRAPH) for table in ("first_s", "peak_gib")]
        row = Row(entry["part"], entry["case"], entry["batch"], entry["low"])
        lines.append(f"| {row} | {' | '.join(cells)} | {f'{ratio:.2f}' if ratio else ''} | {one_graph} | {' | '.join(pairs)} |")
    if ratios:
        means = (f"{part} {statistics.geometric_mean(values):.2f}" for part, values in ratios.items())
        lines += ["", "Geometric means of the ratios: " + "; ".join(means)]
    return "\n".join(lines + [""] * bool(first) + [f"- ResNet-50, scoring batches of 32, {line}" for line in first]) + "\n"


def write(path: str, results: list[dict[str, Any]], first: list[str], head: str, tests: str) -> None:
    """Write the rows measured so far to ``path.json`` and ``path.md``."""
    with open(path + ".json", "w") as file:
        json.dump({"head": head, "tests": tests, "rows": results, "first": first}, file, indent=1)
    head += f"\n\nTests of `tests/gpu`: {tests}" if tests else ""
    with open(path + ".md", "w") as file:
        file.write(report(results, first, head, "python benchmarks/gpu.py " + " ".join(sys.argv[1:])))


def test_summary(path: str) -> tuple[str, bool]:
    """Return a line about pytest's report, and True if nothing failed."""
    suite = next(iter(ElementTree.parse(path).getroot().iter("testsuite"))).attrib
    failed = int(suite["failures"]) + int(suite["errors"])
    ran = int(suite["tests"]) - int(suite["skipped"])
    return f"{ran - failed} of {ran} passed, {suite['skipped']} skipped, {float(suite['time']):.0f} s", not failed


def parse_options() -> Any:
    def listed(kind: Callable = str) -> Callable:
        return lambda text: [kind(word) for word in text.split(",") if word]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=listed(), default=gpu_rows.PARTS, help=f"of {', '.join(gpu_rows.PARTS)}, first")
    parser.add_argument("--networks", type=listed(), help="instead of each part's own, by comma")
    parser.add_argument("--batches", type=listed(int), help="instead of each part's own, by comma")
    parser.add_argument("--types", type=listed(lambda word: None if word == "float32" else word), help="float32, float16, bfloat16; by comma")
    parser.add_argument("--compile", type=listed(), default=[], help=f"compare with torch.compile as well, in these modes: {', '.join(COMPILED)}")
    parser.add_argument("--together", type=int, default=6, help="how many rows are prepared beside one another")
    parser.add_argument("--rounds", type=int, default=3, help="windows of each engine")
    parser.add_argument("--seconds", type=float, default=0.4, help="length of a window")
    parser.add_argument("--warm", type=float, default=2, help="seconds for which an engine warms up")
    parser.add_argument("--limit", type=float, default=420, help="seconds after which no further row is measured")
    parser.add_argument("--patience", type=float, default=300, help="seconds after which rows that are not ready are given up")
    parser.add_argument("--device", default="cuda:0", help="cpu only tests this program")
    parser.add_argument("--tests", help="pytest's report (--junitxml), which the table summarizes; after a failed test the exit status is 1")
    parser.add_argument("--results", default=os.path.join(common.RESULTS, "gpu"), help="the folder for the results")
    parser.add_argument("--search", action="store_true", help="let cuDNN benchmark its algorithms for PyTorch, for 10 s a network")
    parser.add_argument("--row", type=lambda text: Row(*json.loads(text)), help=argparse.SUPPRESS)
    parser.add_argument("--folder", help="the folder of the networks' parameters, by default a temporary one")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    device = torch.device(options.device)
    place = Place(mx.gpu(device.index or 0) if device.type == "cuda" else mx.cpu(), device)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
    if options.row:
        measure_row(options.row, place, options.folder, options)
        return
    card = torch.cuda.get_device_name(device) if device.type == "cuda" else common.processor()
    tests, passed = test_summary(options.tests) if options.tests else ("", True)
    head = f"{card}; Python {sys.version.split()[0]}, torch {torch.__version__}; commit {common.commit()}; {time.strftime('%Y-%m-%d')}"
    os.makedirs(options.results, exist_ok=True)
    path = os.path.join(options.results, "-".join(card.lower().split()[:4]).replace("(", "").replace(")", ""))
    begin, results = time.perf_counter(), []
    first = list(first_calls(20)) if "first" in options.parts else []
    rows = [row for part in options.parts if part != "first" for row in gpu_rows.rows_of(part, options.networks, options.batches, options.types)]
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or made
        gpu_rows.write_parameters(rows, folder)
        write(path, results, first, head, tests)
        for entry in measured(rows, folder, options):
            results.append(entry)
            row = Row(entry["part"], entry["case"], entry["batch"], entry["low"])
            print(row, entry["rate"], entry["first_s"], entry["error"] or "", f"{time.perf_counter() - begin:.0f} s", flush=True)
            write(path, results, first, head, tests)  # the machine may be gone before the last row
            if time.perf_counter() - begin > options.limit:
                print(f"{len(rows) - len(results)} rows left out, {options.limit:g} s are over", flush=True)
                break
    print(tests, *first, sep="\n")
    sys.exit(not passed)


if __name__ == "__main__":
    main()
