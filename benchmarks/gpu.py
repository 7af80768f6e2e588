"""Speed on one GPU: Remex as programs use it, and PyTorch, in turns in one process; images (sequences, steps, calls) a second.

    python benchmarks/gpu.py                                          # writes benchmarks/results/gpu/CARD.md and .json
    python benchmarks/gpu.py --parts training --compile --networks resnet50

Rows are measured in windows that take turns, after each engine has warmed up, and show medians. PyTorch computes with channels last, TF32 and
cuDNN's own choice of algorithms, as Remex does; with `--compile` torch.compile is a peer, too, which takes a minute for a row.
"""
import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from xml.etree import ElementTree

import inputs
import networks
import numpy as np
import peers
import torch
import torchnet
from torch.nn import functional

import mxnet as mx
from mxnet import autograd, gluon

PARTS = ("calls", "steps", "recurrent", "scoring", "training")
DEFAULT = {"training": ("resnet50", "mobilenet"), "scoring": ("resnet50", "alexnet", "inception-v3", "mobilenet"),
           "recurrent": ("lstm4x1024", "gru4x512"), "calls": ("add", "dot", "sum"), "steps": ("mlp",)}
BATCHES = {"training": (64,), "scoring": (1, 32), "recurrent": (1, 32), "calls": (1,), "steps": (64,)}
STATIC = {"static_alloc": True, "static_shape": True}
LOW = {"training": (None, "float16"), "scoring": (None, "float16"), "recurrent": (None,), "calls": (None,), "steps": (None,)}


class Row(NamedTuple):
    part: str
    case: str
    batch: int
    low: str | None

    def __str__(self) -> str:
        return f"{self.part}: {self.case}, batch {self.batch}, {self.low or 'float32 (TF32)'}"


class Place(NamedTuple):
    """Where is measured: MXNet's context and torch's device."""

    ctx: Any
    device: torch.device

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def peak(self) -> float:
        """GiB that were in use at most since the last call."""
        if self.device.type != "cuda":
            return 0.0
        most = torch.cuda.max_memory_allocated() / 2 ** 30
        torch.cuda.reset_peak_memory_stats()
        return most


def steps_of(row: Row, place: Place, folder: str, compile: bool) -> Iterator[tuple[str, Callable[[], Callable]]]:
    """Engines by name, each as a function that prepares it and returns a step."""
    make = {"training": _training, "scoring": _scoring, "recurrent": _scoring, "calls": _calls, "steps": _training}[row.part]
    yield from make(row, place, folder)
    if compile and row.part != "calls":
        yield from ((name.replace("eager", "compile"), prepare) for name, prepare in make(row, place, folder, torch.compile) if "eager" in name)


def _network(row: Row, place: Place, folder: str) -> Any:
    path = os.path.join(folder, row.case)
    if not os.path.exists(path + ".npz"):
        networks.write(row.case, folder)
    net = networks.build(row.case)
    net.load_parameters(path + ".params", ctx=place.ctx)
    return net


def _torch_network(row: Row, place: Place, folder: str) -> Any:
    _network(row, place, folder)  # writes the files
    net = torchnet.load(row.case, folder).to(place.device)
    return net.to(memory_format=torch.channels_last) if len(inputs.shape(row.case, row.batch)) == 4 else net


def _training(row: Row, place: Place, folder: str, wrap: Callable = lambda f: f) -> Iterator[tuple[str, Callable[[], Callable]]]:
    data = inputs.example(row.case, row.batch)
    labels = np.arange(row.batch) % 10

    def remex() -> Callable:
        net, loss = _network(row, place, folder), gluon.loss.SoftmaxCrossEntropyLoss()
        x, y = mx.nd.array(data, ctx=place.ctx), mx.nd.array(labels, ctx=place.ctx)
        if row.low:
            net.cast(row.low)
            x = x.astype(row.low)
        for block in (net, loss):
            block.hybridize(**STATIC)
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1e-3, "momentum": 0.9, "wd": 1e-4, "multi_precision": bool(row.low)})

        def step() -> None:
            with autograd.record():
                losses = loss(net(x), y)
            losses.backward()
            trainer.step(row.batch)
        return step

    def eager() -> Callable:
        net = _torch_network(row, place, folder).train()
        optimizer = torch.optim.SGD(net.parameters(), 1e-3, momentum=0.9, weight_decay=1e-4, fused=True)
        x, y = torch.from_numpy(data).to(place.device), torch.from_numpy(labels).to(place.device)
        x = x.to(memory_format=torch.channels_last) if x.dim() == 4 else x
        forward = wrap(net)

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(place.device.type, torch.float16, enabled=row.low is not None):
                loss = functional.cross_entropy(forward(x), y)
            loss.backward()
            optimizer.step()
        return step

    yield "Remex", remex
    yield "PyTorch eager", eager


def _scoring(row: Row, place: Place, folder: str, wrap: Callable = lambda f: f) -> Iterator[tuple[str, Callable[[], Callable]]]:
    data = inputs.example(row.case, row.batch)

    def remex() -> Callable:
        net = _network(row, place, folder)
        x = mx.nd.array(data, ctx=place.ctx)
        if row.low:
            net.cast(row.low)
            x = x.astype(row.low)
        net.hybridize(**STATIC)
        return lambda: net(x)

    def eager() -> Callable:
        dtype = torch.float16 if row.low else torch.float32
        net = _torch_network(row, place, folder).eval().to(dtype)
        x = torch.from_numpy(data).to(place.device, dtype)
        x = x.to(memory_format=torch.channels_last) if x.dim() == 4 else x
        forward = wrap(net)

        def step() -> None:
            with torch.inference_mode():
                forward(x)
        return step

    yield "Remex", remex
    yield "PyTorch eager", eager


def _calls(row: Row, place: Place, folder: str, wrap: Callable = lambda f: f) -> Iterator[tuple[str, Callable[[], Callable]]]:
    a, b = torch.ones(4, 4, device=place.device), torch.ones(4, 4, device=place.device)
    x, y = mx.nd.ones((4, 4), ctx=place.ctx), mx.nd.ones((4, 4), ctx=place.ctx)
    ours, theirs = {"add": (lambda: x + y, lambda: a + b), "dot": (lambda: mx.nd.dot(x, y), lambda: a @ b),
                    "sum": (lambda: mx.nd.sum(x, axis=1), lambda: a.sum(1))}[row.case]
    yield "Remex", lambda: ours
    yield "PyTorch eager", lambda: theirs


def measured(row: Row, place: Place, folder: str, options: Any) -> dict[str, Any]:
    """Rates and memory of each engine; where one fails, what it said."""
    steps: dict[str, Callable] = {}
    found: dict[str, Any] = {**row._asdict(), "rate": {}, "first_s": {}, "peak_gib": {}, "error": {}}
    for name, prepare in steps_of(row, place, folder, options.compile):
        place.peak()
        start = time.perf_counter()
        try:
            step = prepare()
            place.wait()
            ready = time.perf_counter()
            step()
            place.wait()
            found["first_s"][name] = round(time.perf_counter() - ready, 3)
            until = time.perf_counter() + options.seconds
            for i in range(10_000):
                step()
                if i >= 8 and time.perf_counter() > until:
                    break
            place.wait()
            steps[name] = step
            found["peak_gib"][name] = round(place.peak(), 3)
        except Exception as error:  # a row of the table, not the end of it
            last = traceback.extract_tb(error.__traceback__)[-1]
            found["error"][name] = f"{type(error).__name__}: {str(error)[:300]} ({os.path.basename(last.filename)}:{last.lineno})"
        found.setdefault("prepared_s", {})[name] = round(time.perf_counter() - start, 1)
    rates: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(options.rounds):
        for name, step in steps.items():
            rates[name].append(_rate(step, place, options.seconds) * row.batch)
    found["rate"] = {name: statistics.median(values) for name, values in rates.items()}
    steps.clear()
    gc.collect()
    if place.device.type == "cuda":
        torch.cuda.empty_cache()
    torch._dynamo.reset()
    return found


def _rate(step: Callable, place: Place, seconds: float) -> float:
    """Steps a second in a window of about so many seconds."""
    start = time.perf_counter()
    step()
    place.wait()
    count = max(1, min(5000, int(seconds / max(time.perf_counter() - start, 1e-6))))
    start = time.perf_counter()
    for _ in range(count):
        step()
    place.wait()
    return count / (time.perf_counter() - start)


def report(found: list[dict[str, Any]], head: str, command: str) -> str:
    """The table, as Markdown."""
    lines = ["# One GPU: Remex and PyTorch", "", f"`{command}`", "", head, "",
             "Images (sequences, calls) a second; the ratio is Remex's rate over that of the best other engine. Memory: the most in use, GiB.", "",
             "| row | Remex | PyTorch eager | PyTorch compile | ratio | first call, s (Remex / eager) | memory (Remex / eager) |",
             "|---|---|---|---|---|---|---|"]
    for entry in found:
        rates, first, peak = entry["rate"], entry["first_s"], entry["peak_gib"]
        others = [rate for name, rate in rates.items() if name != "Remex"]
        ratio = f"{rates['Remex'] / max(others):.2f}" if "Remex" in rates and others else ""
        row = Row(entry["part"], entry["case"], entry["batch"], entry["low"])
        cells = [f"{rates[name]:.4g}" if name in rates else entry["error"].get(name, "").replace("|", "/")[:120]
                 for name in ("Remex", "PyTorch eager", "PyTorch compile")]
        pairs = [" / ".join(str(table.get(name, "")) for name in ("Remex", "PyTorch eager")) for table in (first, peak)]
        lines.append(f"| {row} | {' | '.join(cells)} | {ratio} | {' | '.join(pairs)} |")
    return "\n".join(lines) + "\n"


def write(path: str, found: list[dict[str, Any]], head: str, tests: str) -> None:
    """Put the rows that there are into ``path.json`` and ``path.md``."""
    with open(path + ".json", "w") as file:
        json.dump({"head": head, "tests": tests, "rows": found}, file, indent=1)
    head += f"\n\nTests of `tests/gpu`: {tests}" if tests else ""
    with open(path + ".md", "w") as file:
        file.write(report(found, head, "python benchmarks/gpu.py " + " ".join(sys.argv[1:])))


def tested(path: str) -> tuple[str, bool]:
    """Return a line about a report of pytest's, and True if nothing failed."""
    suite = next(iter(ElementTree.parse(path).getroot().iter("testsuite"))).attrib
    failed = int(suite["failures"]) + int(suite["errors"])
    ran = int(suite["tests"]) - int(suite["skipped"])
    return f"{ran - failed} of {ran} passed, {suite['skipped']} skipped, {float(suite['time']):.0f} s", not failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--networks", help="instead of each part's own, by comma")
    parser.add_argument("--batches", help="instead of each part's own, by comma")
    parser.add_argument("--compile", action="store_true", help="compare with torch.compile as well")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.4, help="length of a window")
    parser.add_argument("--limit", type=float, default=240, help="seconds after which no further row begins")
    parser.add_argument("--device", default="cuda:0", help="cpu only shows that this program works")
    parser.add_argument("--tests", help="the report of pytest's (--junitxml) that the table begins with; where a test failed the exit status is 1")
    parser.add_argument("--results", default=os.path.join(peers.ROOT, "benchmarks", "results", "gpu"))
    options = parser.parse_args()
    device = torch.device(options.device)
    place = Place(mx.gpu(device.index or 0) if device.type == "cuda" else mx.cpu(), device)
    card = torch.cuda.get_device_name(device) if device.type == "cuda" else peers.processor()
    commit = subprocess.run(["git", "-C", peers.ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip() or "unknown"
    tests, passed = tested(options.tests) if options.tests else ("", True)
    head = f"{card}; Python {sys.version.split()[0]}, torch {torch.__version__}; commit {commit}; {time.strftime('%Y-%m-%d')}"
    begin, found = time.perf_counter(), []
    os.makedirs(options.results, exist_ok=True)
    path = os.path.join(options.results, "-".join(card.lower().split()[:4]).replace("(", "").replace(")", ""))
    torch.backends.cudnn.benchmark = torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
    with tempfile.TemporaryDirectory() as folder:
        for part in options.parts.split(","):
            cases = options.networks.split(",") if options.networks else DEFAULT[part]
            batches = [int(b) for b in options.batches.split(",")] if options.batches else BATCHES[part]
            for row in (Row(part, case, batch, low) for case in cases for low in LOW[part] for batch in batches):
                if time.perf_counter() - begin > options.limit:
                    print(f"{row}: left out, {options.limit:g} s are over", flush=True)
                    continue
                found.append(measured(row, place, folder, options))
                print(row, found[-1]["rate"], found[-1]["first_s"], found[-1]["error"] or "", flush=True)
                write(path, found, head, tests)  # a machine on loan may be gone before the last row
    print(tests)
    sys.exit(not passed)


if __name__ == "__main__":
    main()
