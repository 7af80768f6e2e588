"""Speed on one GPU: Remex as programs use it, and PyTorch, in turns in one process; images (sequences, steps, calls) a second.

    python benchmarks/gpu.py                                          # writes benchmarks/results/gpu/CARD.md and .json
    python benchmarks/gpu.py --parts training --compile --networks resnet50

Rows are measured in windows that take turns, after each engine has warmed up, and show medians. PyTorch computes with channels last and TF32, and
cuDNN chooses its algorithms, as with Remex; with `--compile` torch.compile is a peer, too, with and without CUDA graphs. It takes a minute for
a row: `--ahead` lets processes compile all rows beside one another before the first is measured. A small step has another peer, the whole of it
captured by hand as one CUDA graph.
"""
import argparse
import functools
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
import learners
import lessons
import networks
import numpy as np
import peers
import torch
import torchnet
from torch.nn import functional

import mxnet as mx
from mxnet import autograd, gluon

PARTS = ("calls", "steps", "recurrent", "scoring", "training")
DEFAULT = {"training": ("resnet50", "mobilenet", "transformer"), "scoring": ("resnet50", "alexnet", "inception-v3", "mobilenet", "transformer"),
           "recurrent": ("lstm4x1024", "gru4x512"), "calls": ("add", "dot", "sum"), "steps": ("mlp2x128", "lenet", "lm2x64", "deepar2x40")}
BATCHES = {"training": (64,), "scoring": (1, 32), "recurrent": (1, 32), "calls": (1,), "steps": (32,)}
STATIC = {"static_alloc": True, "static_shape": True}
LOW = {"training": (None, "bfloat16"), "scoring": (None, "float16"), "recurrent": (None,), "calls": (None,), "steps": (None,)}
EAGER, COMPILED, REPLAYED, BY_HAND = "PyTorch eager", "PyTorch compile", "PyTorch compile, CUDA graphs", "PyTorch, one CUDA graph"


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
    make = {"training": _training, "scoring": _scoring, "recurrent": _scoring, "calls": _calls, "steps": _learning}[row.part]
    yield from make(row, place, folder)
    if compile and row.part != "calls":
        for name, options in ((COMPILED, {}), (REPLAYED, {"mode": "reduce-overhead"})):
            yield from ((name, prepare) for found, prepare in make(row, place, folder, functools.partial(torch.compile, **options)) if found == EAGER)


def _write_values(row: Row, folder: str) -> None:
    """Write what all engines read, unless it is there."""
    if row.part != "calls" and not os.path.exists(os.path.join(folder, row.case + ".npz")):
        (learners if row.part == "steps" else networks).write(row.case, folder)


def _network(row: Row, place: Place, folder: str) -> Any:
    path = os.path.join(folder, row.case)
    _write_values(row, folder)
    net = networks.build(row.case)
    net.load_parameters(path + ".params", ctx=place.ctx)
    return net


def _torch_network(row: Row, place: Place, folder: str) -> Any:
    _network(row, place, folder)  # writes the files
    net = torchnet.load(row.case, folder).to(place.device)
    return net.to(memory_format=torch.channels_last) if len(inputs.shape(row.case, row.batch)) == 4 else net


def _training(row: Row, place: Place, folder: str, wrap: Callable = lambda f: f) -> Iterator[tuple[str, Callable[[], Callable]]]:
    data = inputs.example(row.case, row.batch)
    classifies = data.ndim == 4
    labels = np.arange(row.batch) % 10 if classifies else np.zeros_like(data)

    def remex() -> Callable:
        net = _network(row, place, folder)
        loss = gluon.loss.SoftmaxCrossEntropyLoss() if classifies else gluon.loss.L2Loss()
        x, y = mx.nd.array(data, ctx=place.ctx), mx.nd.array(labels, ctx=place.ctx)
        if row.low:
            net.cast(row.low)
            x, y = x.astype(row.low), y if classifies else y.astype(row.low)
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
            with torch.autocast(place.device.type, getattr(torch, row.low or "float16"), enabled=row.low is not None):
                loss = functional.cross_entropy(forward(x), y) if classifies else functional.mse_loss(forward(x), y) / 2
            loss.backward()
            optimizer.step()
        return step

    yield "Remex", remex
    yield EAGER, eager


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
    yield EAGER, eager


def _learning(row: Row, place: Place, folder: str, wrap: Callable = lambda f: f) -> Iterator[tuple[str, Callable[[], Callable]]]:
    """Small steps, whose kernels take less time than asking for them."""
    data, labels = lessons.batch(row.case, row.batch)
    options = lessons.settings(row.case, "sgd")

    def remex() -> Callable:
        with place.ctx:
            net, loss = learners.prepared(row.case, row.batch)
            for block in (net, loss):
                block.hybridize(**STATIC)
        trainer = gluon.Trainer(net.collect_params(), "sgd", options)
        x, y = mx.nd.array(data, ctx=place.ctx), mx.nd.array(labels, ctx=place.ctx)

        def step() -> None:
            with autograd.record():
                losses = loss(net(x), y)
            losses.backward()
            trainer.step(losses.size)
        return step

    def parts() -> tuple[Any, Callable[[Any], torch.Tensor]]:
        _write_values(row, folder)
        net = torchnet.load(row.case, folder).to(place.device).train()
        x, y = torch.from_numpy(data).to(place.device), torch.from_numpy(labels).to(place.device)

        def loss(forward: Callable) -> torch.Tensor:
            out = forward(x)
            if row.case.startswith("deepar"):
                mean, spread = out[..., 0], functional.softplus(out[..., 1]) + 0.01
                return (spread.log() + 0.5 * ((y - mean) / spread).square()).mean()
            return functional.cross_entropy(out.flatten(0, -2), y.flatten().long())
        return net, loss

    def optimizer_of(net: Any) -> torch.optim.Optimizer:
        return torch.optim.SGD([p for p in net.parameters() if p.requires_grad], options["learning_rate"], options["momentum"], fused=True)

    def eager() -> Callable:
        net, loss = parts()
        optimizer, forward = optimizer_of(net), wrap(net)

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            loss(forward).backward()
            optimizer.step()
        return step

    def by_hand() -> Callable:
        net, loss = parts()
        optimizer = optimizer_of(net)

        def step() -> None:
            loss(net).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        return graph.replay

    yield "Remex", remex
    yield EAGER, eager
    if place.device.type == "cuda":
        yield BY_HAND, by_hand


def _calls(row: Row, place: Place, folder: str, wrap: Callable = lambda f: f) -> Iterator[tuple[str, Callable[[], Callable]]]:
    a, b = torch.ones(4, 4, device=place.device), torch.ones(4, 4, device=place.device)
    x, y = mx.nd.ones((4, 4), ctx=place.ctx), mx.nd.ones((4, 4), ctx=place.ctx)
    ours, theirs = {"add": (lambda: x + y, lambda: a + b), "dot": (lambda: mx.nd.dot(x, y), lambda: a @ b),
                    "sum": (lambda: mx.nd.sum(x, axis=1), lambda: a.sum(1))}[row.case]
    yield "Remex", lambda: ours
    yield EAGER, lambda: theirs


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


def compiled_ahead(rows: list[Row], options: Any, folder: str) -> None:
    """Let processes, so many at once, run a step of each row by torch.compile, whose results torch keeps on disk."""
    waiting, running = list(rows), []
    until = time.perf_counter() + options.ahead_limit
    while (waiting or running) and time.perf_counter() < until:
        running = [process for process in running if process.poll() is None]
        if waiting and len(running) < options.ahead:
            row = json.dumps(waiting.pop(0))
            running.append(subprocess.Popen([sys.executable, __file__, "--only-compile", row, "--folder", folder, "--device", options.device],
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        time.sleep(0.1)
    for process in running:
        process.kill()
    print(f"compiled ahead: {len(rows) - len(waiting) - len(running)} of {len(rows)} rows", flush=True)


def compile_one(row: Row, place: Place, folder: str) -> None:
    """Two steps of a row on each engine that compiles."""
    for name, prepare in steps_of(row, place, folder, True):
        if name in (COMPILED, REPLAYED):
            step = prepare()
            step()
            step()
            torch._dynamo.reset()


def report(found: list[dict[str, Any]], head: str, command: str) -> str:
    """The table, as Markdown."""
    lines = ["# One GPU: Remex and PyTorch", "", f"`{command}`", "", head, "",
             "Images (sequences, calls) a second; the ratios are Remex's rate over that of the best other engine, and over that of "
             "a step captured by hand as one CUDA graph. Memory: the most in use, GiB.", "",
             f"| row | Remex | {EAGER} | {COMPILED} | {REPLAYED} | {BY_HAND} | ratio | by hand | first call, s (Remex / eager / compile) | "
             "memory (Remex / eager / compile) |", "|---|---|---|---|---|---|---|---|---|---|"]
    for entry in found:
        rates, first, peak = entry["rate"], entry["first_s"], entry["peak_gib"]
        others = [rate for name, rate in rates.items() if name not in ("Remex", BY_HAND)]
        ratio = f"{rates['Remex'] / max(others):.2f}" if "Remex" in rates and others else ""
        by_hand = f"{rates['Remex'] / rates[BY_HAND]:.2f}" if "Remex" in rates and BY_HAND in rates else ""
        row = Row(entry["part"], entry["case"], entry["batch"], entry["low"])
        cells = [f"{rates[name]:.4g}" if name in rates else entry["error"].get(name, "").replace("|", "/")[:120]
                 for name in ("Remex", EAGER, COMPILED, REPLAYED, BY_HAND)]
        pairs = [" / ".join(str(table.get(name, "")) for name in ("Remex", EAGER, COMPILED)) for table in (first, peak)]
        lines.append(f"| {row} | {' | '.join(cells)} | {ratio} | {by_hand} | {' | '.join(pairs)} |")
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
    parser.add_argument("--only-ahead", action="store_true", help="compile rows ahead, and measure none")
    parser.add_argument("--search", action="store_true", help="let cuDNN try which algorithms are fastest, for 10 s a network")
    parser.add_argument("--ahead", type=int, default=0, help="how many processes compile rows before the first is measured")
    parser.add_argument("--ahead-limit", type=float, default=150, help="for how many seconds at most")
    parser.add_argument("--only-compile", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help="where the networks' values lie, or will")
    options = parser.parse_args()
    device = torch.device(options.device)
    place = Place(mx.gpu(device.index or 0) if device.type == "cuda" else mx.cpu(), device)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.benchmark = options.search
    if options.only_compile:
        compile_one(Row(*json.loads(options.only_compile)), place, options.folder)
        return
    card = torch.cuda.get_device_name(device) if device.type == "cuda" else peers.processor()
    commit = subprocess.run(["git", "-C", peers.ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip() or "unknown"
    tests, passed = tested(options.tests) if options.tests else ("", True)
    head = f"{card}; Python {sys.version.split()[0]}, torch {torch.__version__}; commit {commit}; {time.strftime('%Y-%m-%d')}"
    begin, found = time.perf_counter(), []
    os.makedirs(options.results, exist_ok=True)
    path = os.path.join(options.results, "-".join(card.lower().split()[:4]).replace("(", "").replace(")", ""))
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or made
        rows = []
        for part in options.parts.split(","):
            cases = options.networks.split(",") if options.networks else DEFAULT[part]
            batches = [int(b) for b in options.batches.split(",")] if options.batches else BATCHES[part]
            rows += [Row(part, case, batch, low) for case in cases for low in LOW[part] for batch in batches]
        if options.compile and options.ahead:
            for row in rows:
                _write_values(row, folder)
            compiled_ahead([row for row in rows if row.part != "calls"], options, folder)
        if options.only_ahead:
            return
        for row in rows:
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
