"""The `openvino` backend: inference on CPUs, at fixed shapes.

What OpenVINO can express of a graph runs there, in as few pieces as possible; the rest stays on torch. See `conversion`.
"""
import importlib
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from ... import openmp, threads
from ...base import MXNetError
from ...ndarray import dispatch
from ...ndarray.dispatch import Call
from ...ops.kernels.interleave import interleave
from ...suggestions import shortened
from .. import division
from ..backends import Unavailable
from ..distribution import distribute
from ..program import Program

_OPTIONS = {"precision", "cache_dir", "num_threads"}
_PRECISIONS = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}
# Below this size (bytes) copying an array is cheaper than making OpenVINO look at another one.
_SMALL = 1 << 15
_AT_A_TIME = 16
# A run (in seconds) from which on it is worth to end torch's threads first, and to start them again afterwards.
_LONG = 5e-4
_core_lock = threading.Lock()
_core = None


def core() -> Any:
    """OpenVINO's runtime, started at the first use."""
    global _core
    with _core_lock:
        if _core is None:
            _core = _imported().Core()
    return _core


def _imported() -> Any:
    """The package. It tells its makers over the network that it was imported, unless it finds nothing to tell it with: nobody asked the user here."""
    before = {"openvino_telemetry": sys.modules["openvino_telemetry"]} if "openvino_telemetry" in sys.modules else {}
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]  # the way to say that there is no such module
    try:
        return importlib.import_module("openvino")
    except ImportError as error:
        raise Unavailable(f"backend 'openvino' needs the package openvino, which cannot be imported: {error}") from error
    finally:
        del sys.modules["openvino_telemetry"]
        sys.modules.update(before)


class OpenVINO:
    """Compiles for one set of shapes, with the weights built in.

    Options
    -------
    precision : {'float32', 'bfloat16', 'float16'}
        What products are computed in. Only ``float32`` gives the results of `native`.
    cache_dir : str
        A folder that keeps compiled models from one process to the next.
    num_threads : int
        By default torch's number.
    """

    name = "openvino"
    specializes = True
    trains = False
    freezes = True
    devices = ("cpu",)

    def available(self) -> bool:
        """Whether OpenVINO can be imported and knows this processor."""
        try:
            return "CPU" in core().available_devices
        except Unavailable:
            return False

    def require(self) -> None:
        """Raise `Unavailable` if the package is missing."""
        _imported()

    def compile(self, program: Program, **options: Any) -> Callable:
        """A function from the program's inputs to the tuple of its outputs.

        Raises
        ------
        MXNetError
            If an option is unknown.
        """
        unknown = set(options) - _OPTIONS
        if unknown:
            raise MXNetError(f"backend 'openvino' has no option {sorted(unknown)[0]!r}; it has {', '.join(sorted(_OPTIONS))}")
        config = _config(**options)
        from .model import build
        distribute(program)
        built, refused = build(program)
        if not refused:
            program.note("openvino: the whole graph")
            return Compiled(built[0], built[1], program, config)
        for node, reason in refused.items():
            program.note(f"native: {node.name} ({reason})")
        pieces = division.divide(program, lambda node: node not in refused, division.worthwhile)
        for name, piece in pieces.items():
            built, missed = build(piece)
            if missed:
                raise MXNetError(f"openvino: {'; '.join(missed.values())}")
            compiled = Compiled(built[0], built[1], piece, config)
            division.replace(program, name, piece, compiled)
            program.note(f"openvino: {name}, {sum(n.op == 'call_function' for n in piece.graph.nodes)} operators")
        program.module.recompile()
        return program.module.forward


def _config(precision: object = "float32", cache_dir: Any = None, num_threads: int | None = None) -> dict[str, Any]:
    if str(precision) not in _PRECISIONS:
        raise MXNetError(f"backend 'openvino': `precision` must be one of {', '.join(_PRECISIONS)}, received {shortened(precision)}")
    config = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": _PRECISIONS[str(precision)],
              "INFERENCE_NUM_THREADS": int(num_threads or threads.usual())}
    if cache_dir is not None:
        config["CACHE_DIR"] = str(cache_dir)
    return config


class Compiled:
    """A compiled model, called with tensors like the graph it came from. Several threads may call it at once."""

    def __init__(self, model: Any, handed_on: Mapping[int, int], program: Program, config: Mapping[str, Any]):
        inputs = [(i, n) for i, n in enumerate(program.placeholders) if n not in program.constants]
        self.places = [(k, i, _way(program, n)) for k, (i, n) in enumerate(inputs)]
        self.handed_on = sorted(handed_on.items())
        outputs = [program.values[n] for k, n in enumerate(program.outputs) if k not in handed_on]
        self.outputs = [(k, tuple(v.shape), v.dtype, v.numel() * v.element_size() <= _SMALL) for k, v in enumerate(outputs)]
        self.model = core().compile_model(model, "CPU", config)
        self._source, self._config, self.program = model, config, program
        self._counting: Any = None  # the same model, compiled once more to tell how long its layers take
        self._lock = threading.Lock()
        self._idle: list[_Request] = []

    def __call__(self, *tensors: torch.Tensor) -> Sequence[torch.Tensor]:
        try:
            request = self._idle.pop()
        except IndexError:
            request = _Request(self)
        try:
            results = request.run(tensors)
        finally:
            self._idle.append(request)
        return self._handed_on(results, tensors)

    def _handed_on(self, results: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        if self.handed_on:
            found = list(results)
            for position, i in self.handed_on:
                found.insert(position, tensors[i].clone())
            return found
        return results

    def observed(self, *tensors: torch.Tensor) -> Sequence[torch.Tensor]:
        """A call that tells the observer of graphs of the whole and of its layers.

        Counters cost a few percent of small layers, and are chosen when a model is compiled: so the first such call compiles it anew, and
        calls that nobody observes stay as fast as they are.
        """
        with self._lock:
            if self._counting is None:
                start = time.perf_counter_ns()
                self._counting = Counting(self, self._source, self._config)
                _tell(Call("compile for the profiler", note="OpenVINO counts layer by layer only where it is told to beforehand", graph=True),
                      start, time.perf_counter_ns())
            request = self._counting.requests.pop() if self._counting.requests else _Request(self._counting)
        start, enclose = time.perf_counter_ns(), dispatch.enclose
        results = request.run(tensors) if enclose is None else enclose(_WHOLE.name, request.run, (tensors,), {})
        end = time.perf_counter_ns()
        with self._lock:
            inside = self._counting.layers(request, end - start)
            self._counting.requests.append(request)
        _tell(_WHOLE, start, end, results, inside)
        return self._handed_on(results, tensors)


_WHOLE = Call("openvino", note="its layers follow one another here, and share this run's time as in the last runs: OpenVINO keeps their average, "
              "and not when they began", graph=True)


def _tell(call: Call, start: int, end: int, results: Sequence[torch.Tensor] = (), inside: Sequence[tuple[Call, int]] = ()) -> None:
    observer = dispatch.graph_observer
    if observer is not None:
        observer(call, start, end, (), list(results), inside)


class Counting:
    """A model compiled with counters: the memory of its runs is described as that of a `Compiled`."""

    def __init__(self, compiled: Compiled, model: Any, config: Mapping[str, Any]):
        from .layers import Averages, names
        self.places, self.outputs = compiled.places, compiled.outputs
        self.model = core().compile_model(model, "CPU", {**config, "PERF_COUNT": True})
        self.requests: list[_Request] = []
        self._names = names(self.model, compiled.program)
        self._averages = Averages()

    def layers(self, request: "_Request", whole: int) -> list[tuple[Call, int]]:
        """What the last run computed, in order, and for how many of its `whole` ns."""
        layers = [layer for layer in request.request.get_profiling_info() if layer.real_time]
        shares = self._averages.shares([int(layer.real_time.total_seconds() * 1e9) for layer in layers], whole)
        return [(self._names.get(layer.node_name) or Call(layer.node_type), share) for layer, share in zip(layers, shares)]


def _copy(source: torch.Tensor, buffer: torch.Tensor) -> None:
    buffer.copy_(source)


def _way(program: Program, node: fx.Node) -> Callable | None:
    """How an input gets into the model's buffer; None if OpenVINO reads it where it is."""
    from .model import images
    if images(program, node):
        return interleave
    value = program.values[node]
    return _copy if value.numel() * value.element_size() <= _SMALL else None


class _Copies:
    """Copies of a small result, whose tensors are made some at a time: after a run torch's code is in no cache, and making one then takes 0.1 ms."""

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype):
        self._shape, self._dtype = shape, dtype
        self._made: list[tuple[torch.Tensor, Any]] = []
        self.source: Any = torch.empty(shape, dtype=dtype).numpy()

    def take(self) -> torch.Tensor:
        """A tensor of its own with what is in `source` now."""
        if not self._made:
            tensors = [torch.empty(self._shape, dtype=self._dtype) for _ in range(_AT_A_TIME)]
            self._made = [(t, t.numpy()) for t in tensors]
        tensor, array = self._made.pop()
        array[...] = self.source
        return tensor


class _Request:
    """The memory of one run. Small arrays, and images, go through buffers that stay bound; larger arrays are read and written in place."""

    def __init__(self, compiled: Compiled | Counting):
        import openvino
        self.tensor_of = openvino.Tensor
        self.request: Any = compiled.model.create_infer_request()
        self.copied, self.outputs, self.long = [], [], False
        self.read: dict[int, tuple[int, torch.Tensor | None]] = {}  # by the model's number: which of the tensors, and what is bound
        for k, i, way in compiled.places:
            if way is None:
                self.read[k] = i, None
            else:
                self.copied.append((i, way, torch.from_numpy(self.request.get_input_tensor(k).data)))
        for k, shape, dtype, small in compiled.outputs:
            copies = None
            if small:
                copies = _Copies(shape, dtype)
                self.request.set_output_tensor(k, self.tensor_of(copies.source, shared_memory=True))
            self.outputs.append((k, shape, dtype, copies))

    def run(self, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        request = self.request
        for i, way, buffer in self.copied:
            way(tensors[i], buffer)
        for k, (i, bound) in self.read.items():
            t = tensors[i]
            if bound is None or t.data_ptr() != bound.data_ptr() or not t.is_contiguous():  # whose memory is not the last run's
                bound = t.detach().contiguous()
                self.read[k] = i, bound
                request.set_input_tensor(k, self.tensor_of(bound.numpy(), shared_memory=True))
        results = []
        for k, shape, dtype, copies in self.outputs:
            if copies is None:
                result = torch.empty(shape, dtype=dtype)
                request.set_output_tensor(k, self.tensor_of(result.numpy(), shared_memory=True))
                results.append(result)
        if self.long:
            openmp.rest()
        start = time.perf_counter()
        request.infer()
        self.long = time.perf_counter() - start > _LONG
        if len(results) == len(self.outputs):
            return tuple(results)
        large = iter(results)
        return tuple([next(large) if copies is None else copies.take() for *_, copies in self.outputs])
