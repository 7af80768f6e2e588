"""The rows of `gpu.py`, with the step of each engine."""
import functools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import mxnet as mx
from harness import common, inputs, networks, torch_models, train_models, workloads
from mxnet import autograd, gluon

sys.path.append(os.path.join(common.ROOT, "examples"))
import wide_network  # noqa: E402

DEFAULT = {"calls": ("add", "dot", "sum"), "steps": ("mlp2x128", "lenet", "lm2x64", "deepar2x40"), "recurrent": ("lstm4x1024", "gru4x512"),
           "wide-network": ("dense", "csr"),
           "scoring": ("alexnet", "vgg16", "inception-bn", "inception-v3", "resnet50", "resnet152", "mobilenet", "transformer"),
           "training": ("resnet18", "resnet50", "resnet152", "mobilenet", "inception-v3", "vgg16", "alexnet", "iresnet100", "transformer")}
PARTS = tuple(DEFAULT)
BATCHES = {"training": (64,), "scoring": (1, 32), "recurrent": (1, 32), "calls": (1,), "steps": (32,), "wide-network": (128,)}
LOW = {"training": (None, "bfloat16"), "scoring": (None, "float16")}
STATIC = {"static_alloc": True, "static_shape": True}
REMEX, EAGER, ONE_GRAPH = "Remex", "PyTorch eager", "PyTorch, one CUDA graph"
COMPILED = {"default": "PyTorch compile", "reduce-overhead": "PyTorch compile, CUDA graphs", "max-autotune": "PyTorch compile, max-autotune"}


class Row(NamedTuple):
    """A row of the table: a network or call, its batch, and its 16-bit type if it has one."""

    part: str
    case: str
    batch: int
    low: str | None

    def __str__(self) -> str:
        return f"{self.part}: {self.case}, batch {self.batch}, {self.low or 'float32 (TF32)'}"


class Place(NamedTuple):
    """The measured device, as MXNet's context and torch's device."""

    ctx: Any
    device: torch.device

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def memory(self) -> Callable[[], float]:
        """Return a function that returns the peak of memory since this call in excess of the memory in use now, in GiB."""
        if self.device.type != "cuda":
            return lambda: 0.0
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        return lambda: (torch.cuda.max_memory_allocated() - before) / 2 ** 30


def rows_of(part: str, cases: list[str] | None = None, batches: list[int] | None = None, low: list[str | None] | None = None) -> list[Row]:
    """Return the rows of a part: its default cases, batches and types, or the given ones."""
    return [Row(part, case, batch, kind) for case in cases or DEFAULT[part] for kind in low or LOW.get(part, (None,))
            for batch in batches or BATCHES[part]]


def steps_of(row: Row, place: Place, folder: str, modes: list[str]) -> Iterator[tuple[str, Callable[[], Callable]]]:
    """Yield (engine, a function that prepares it and returns its step); torch.compile in each of `modes`."""
    make = {"training": _training, "scoring": _scoring, "recurrent": _scoring, "calls": _calls, "steps": _small_training,
            "wide-network": _wide_network}[row.part]
    yield from make(row, place, folder)
    if row.part not in ("calls", "wide-network"):
        for mode in modes:
            wrap = functools.partial(torch.compile, **({} if mode == "default" else {"mode": mode}))
            yield from ((COMPILED[mode], prepare) for engine, prepare in make(row, place, folder, wrap) if engine == EAGER)


def write_parameters(rows: list[Row], folder: str) -> None:
    """Write the parameters that all engines read, by a process for each network."""
    modules = {row.case: "train_models" if row.part == "steps" else "networks" for row in rows if row.part not in ("calls", "wide-network")}
    program = os.path.join(common.WORKERS, "write_network.py")
    running = [subprocess.Popen([sys.executable, program, module, case, folder]) for case, module in modules.items()]
    if any([process.wait() for process in running]):
        raise SystemExit("the parameters of a network could not be written")


def _network(row: Row, place: Place, folder: str) -> Any:
    path = os.path.join(folder, row.case)
    net = networks.build(row.case)
    net.load_parameters(path + ".params", ctx=place.ctx)
    return net


def _torch_network(row: Row, place: Place, folder: str) -> Any:
    net = torch_models.load(row.case, folder).to(place.device)
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

    yield REMEX, remex
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

    yield REMEX, remex
    yield EAGER, eager


def _small_training(row: Row, place: Place, folder: str, wrap: Callable = lambda f: f) -> Iterator[tuple[str, Callable[[], Callable]]]:
    """Steps of small networks, bound by the launches of kernels."""
    data, labels = workloads.batch(row.case, row.batch)
    options = workloads.settings(row.case, "sgd")

    def remex() -> Callable:
        with place.ctx:
            net, loss = train_models.initialized(row.case, row.batch)
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

    def torch_network_and_loss() -> tuple[Any, Callable[[Any], torch.Tensor]]:
        net = torch_models.load(row.case, folder).to(place.device).train()
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
        net, loss = torch_network_and_loss()
        optimizer, forward = optimizer_of(net), wrap(net)

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            loss(forward).backward()
            optimizer.step()
        return step

    def one_graph() -> Callable:
        net, loss = torch_network_and_loss()
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
        graph.owners = net, loss, optimizer  # of the memory that it reads
        return graph.replay

    yield REMEX, remex
    yield EAGER, eager
    if place.device.type == "cuda":
        yield ONE_GRAPH, one_graph


def _calls(row: Row, place: Place, folder: str, wrap: Callable = lambda f: f) -> Iterator[tuple[str, Callable[[], Callable]]]:
    a, b = torch.ones(4, 4, device=place.device), torch.ones(4, 4, device=place.device)
    x, y = mx.nd.ones((4, 4), ctx=place.ctx), mx.nd.ones((4, 4), ctx=place.ctx)
    remex, eager = {"add": (lambda: x + y, lambda: a + b), "dot": (lambda: mx.nd.dot(x, y), lambda: a @ b),
                    "sum": (lambda: mx.nd.sum(x, axis=1), lambda: a.sum(1))}[row.case]
    yield REMEX, lambda: remex
    yield EAGER, lambda: eager


def _wide_network(row: Row, place: Place, folder: str, wrap: Callable = lambda f: f) -> Iterator[tuple[str, Callable[[], Callable]]]:
    """The network of examples/wide_network.py with a batch from the host; torch's is dense, and comes from pinned memory."""
    optimizer = {"dense": "adamax", "csr": "adam"}[row.case]
    columns, classes = wide_network.samples(np.random.RandomState(0), row.batch)
    inputs_, outputs, (wide, narrow) = wide_network.INPUTS, wide_network.OUTPUTS, wide_network.HIDDEN

    def remex() -> Callable:
        stype = "csr" if row.case == "csr" else "default"
        module = wide_network.module(stype, row.batch, optimizer=optimizer, optimizer_params=(("learning_rate", 0.002),), kv_store="device",
                                     devices=[place.ctx], split=False)
        batch = wide_network.batch(stype, columns, classes)

        return lambda: wide_network.step(module, batch)

    def eager() -> Callable:
        net = nn.Sequential(nn.Linear(inputs_, wide), nn.ReLU(), nn.Linear(wide, narrow), nn.ReLU(), nn.Linear(narrow, outputs)).to(place.device)
        kind = {"adamax": torch.optim.Adamax, "adam": torch.optim.Adam}[optimizer]
        update = kind(net.parameters(), 0.002, foreach=True)
        rows = torch.zeros(row.batch, inputs_).scatter_(1, torch.from_numpy(columns), 1.0).pin_memory()
        labels = torch.from_numpy(classes).to(place.device)

        def step() -> None:
            data = rows.to(place.device, non_blocking=True)
            update.zero_grad(set_to_none=True)
            functional.cross_entropy(net(data), labels).backward()
            update.step()
        return step

    yield REMEX, remex
    yield EAGER, eager
