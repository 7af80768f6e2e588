"""The `openvino` backend: inference on CPUs, at fixed shapes.

The nodes that OpenVINO supports run there, in as few partitions as possible; the rest stays on torch. See `conversion`.
"""
import ctypes
import functools
import importlib
import operator
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from .... import openmp, processor, threads
from ....base import MXNetError
from ....kernels.image.nchw_to_nhwc import Interleaver
from ....ndarray import dispatch
from ....ndarray.dispatch import Call
from ....suggestions import shortened
from ...passes import partitioning
from ...passes.conv_over_concat import split_convolutions
from ...program import Program
from ..registry import Unavailable

_OPTIONS = {"precision", "cache_dir", "num_threads"}
_PRECISIONS = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}
# Below this size (bytes) copying an array is cheaper than binding another one to OpenVINO.
_SMALL = 1 << 15
_AT_A_TIME, _AT_A_TIME_BYTES = 64, 1 << 18  # the most results, and the most bytes, that are allocated together
# Least duration of a run (in seconds) for which it pays to end torch's threads first, and to start them again afterwards.
_LONG = 5e-4
# A model is compiled for another number of threads after calls that took so many times the time of its compilation. Beside two busy loops on
# two cores a model for one thread needs 0.5 to 0.85 of the time of one for two.
PATIENCE = 3
_core_lock = threading.Lock()
_core = None


def core() -> Any:
    """Return OpenVINO's runtime, which is started at the first use."""
    global _core
    with _core_lock:
        if _core is None:
            _core = _imported().Core()
    return _core


def _imported() -> Any:
    """Return the package, imported with its telemetry disabled, since the user was not asked for consent."""
    before = {"openvino_telemetry": sys.modules["openvino_telemetry"]} if "openvino_telemetry" in sys.modules else {}
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]  # makes its import fail
    try:
        return importlib.import_module("openvino")
    except ImportError as error:
        raise Unavailable(f"backend 'openvino' needs the package openvino, which cannot be imported: {error}") from error
    finally:
        del sys.modules["openvino_telemetry"]
        sys.modules.update(before)


class OpenVINO:
    """The backend that compiles for one set of shapes by OpenVINO, with constant weights.

    Options
    -------
    precision : {'float32', 'bfloat16', 'float16'}
        The type of products. Only ``float32`` gives the results of `native`.
    cache_dir : str
        A folder that caches compiled models for later processes.
    num_threads : int
        By default that of `threads.policy`: as many as torch's operators have, and fewer while other programs are busy.
    """

    name = "openvino"
    specializes = True
    trains = False
    freezes = True
    devices = ("cpu",)

    def available(self) -> bool:
        """Return True if OpenVINO can be imported and supports this processor."""
        try:
            return "CPU" in core().available_devices
        except Unavailable:
            return False

    def require(self) -> None:
        """Raise `Unavailable` if the package is missing."""
        _imported()

    def compile(self, program: Program, **options: Any) -> Callable:
        """Return a function from the program's inputs to the tuple of its outputs.

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
        split_convolutions(program)
        built, refused = build(program)
        if not refused:
            program.note("openvino: the whole graph")
            return Compiled(built[0], built[1], program, config, "num_threads" not in options)
        for node, reason in refused.items():
            program.note(f"native: {node.name} ({reason})")
        pieces = partitioning.partition(program, lambda node: node not in refused, partitioning.worthwhile)
        for name, piece in pieces.items():
            built, missed = build(piece)
            if missed:
                raise MXNetError(f"openvino: {'; '.join(missed.values())}")
            compiled = Compiled(built[0], built[1], piece, config, "num_threads" not in options)
            partitioning.replace(program, name, piece, compiled)
            program.note(f"openvino: {name}, {sum(n.op == 'call_function' for n in piece.graph.nodes)} operators")
        program.module.recompile()
        return program.module.forward


def _config(precision: object = "float32", cache_dir: Any = None, num_threads: int | None = None) -> dict[str, Any]:
    if str(precision) not in _PRECISIONS:
        raise MXNetError(f"backend 'openvino': `precision` must be one of {', '.join(_PRECISIONS)}, received {shortened(precision)}")
    config = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": _PRECISIONS[str(precision)], **_threads(int(num_threads or threads.usual()))}
    if cache_dir is not None:
        config["CACHE_DIR"] = str(cache_dir)
    return config


def _threads(count: int) -> dict[str, Any]:
    """Return OpenVINO's options for a number of threads.

    It pins threads to the first cores, the same ones in each process: two processes of one thread each would share one core.
    """
    return {"INFERENCE_NUM_THREADS": count, "ENABLE_CPU_PINNING": count >= (processor.cores() or os.cpu_count() or 1)}


class _Model:
    """A model compiled for a number of threads, and the buffers of its runs."""

    def __init__(self, compiled: "Compiled", model: Any, config: Mapping[str, Any]):
        self.places, self.outputs = compiled.places, compiled.outputs
        self.threads = config["INFERENCE_NUM_THREADS"]
        start = time.perf_counter()
        self.model = core().compile_model(model, "CPU", config)
        self.seconds = time.perf_counter() - start
        self.idle: list[_Request] = []

    def run(self, tensors: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        try:
            request = self.idle.pop()
        except IndexError:
            request = _Request(self)
        try:
            return request.run(tensors)
        finally:
            self.idle.append(request)


class Compiled:
    """A compiled model, called with tensors like its graph. Several threads may call it at once.

    Parameters
    ----------
    model : openvino.Model
    handed_on : mapping of int to int
        Outputs that are inputs: the input's position by the output's.
    program : Program
    config : mapping
        OpenVINO's options.
    follows : bool
        If True, the number of threads follows `threads.policy`.

    Attributes
    ----------
    first_model : _Model
        The model as it was compiled first, for the number of threads of that moment.
    seconds_spent : float
        The time in calls since the last change of `threads.policy`.
    counting_model : Counting or None
        The same model, compiled with performance counters when a profiler first asked for them.
    """

    def __init__(self, model: Any, handed_on: Mapping[int, int], program: Program, config: Mapping[str, Any], follows: bool = False):
        inputs = [(i, n) for i, n in enumerate(program.placeholders) if n not in program.constants]
        self.places = [(k, i, _input_copy(program, n)) for k, (i, n) in enumerate(inputs)]
        self.handed_on = sorted(handed_on.items())
        outputs = [program.values[n] for k, n in enumerate(program.outputs) if k not in handed_on]
        self.outputs = [(k, tuple(v.shape), v.dtype, v.numel() * v.element_size() <= _SMALL) for k, v in enumerate(outputs)]
        self._source, self._config, self.program = model, config, program
        self.first_model = self._current = _Model(self, model, config)
        self._policy = threads.policy
        # None if the number of threads is fixed.
        self._adapted_to = self.first_model.threads if follows and self.first_model.threads == self._policy.full else None
        self.seconds_spent = 0.0
        self.counting_model: Any = None
        self._lock = threading.Lock()

    @property
    def model(self) -> Any:
        """OpenVINO's current model."""
        return self._current.model

    def __call__(self, *tensors: torch.Tensor) -> Sequence[torch.Tensor]:
        if self._adapted_to is not None and self._adapted_to != self._policy.count:
            return self._handed_on(self._adapt(tensors), tensors)
        return self._handed_on(self._current.run(tensors), tensors)

    def _adapt(self, tensors: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        """Run a model whose number of threads differs from the policy's; compile it for that number once this pays."""
        count = self._policy.count
        if count == self.first_model.threads:
            self._current, self._adapted_to, self.seconds_spent = self.first_model, count, 0.0
        elif self.seconds_spent >= PATIENCE * self.first_model.seconds:
            with self._lock:
                if self._adapted_to != count:
                    self._current = self.first_model  # releases the last one, since a third model would take too much memory
                    self._current = _Model(self, self._source, {**self._config, **_threads(count)})
                    self._adapted_to, self.seconds_spent = count, 0.0
        start = time.perf_counter()
        results = self._current.run(tensors)
        self.seconds_spent += time.perf_counter() - start
        return results

    def _handed_on(self, results: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        if self.handed_on:
            outputs = list(results)
            for position, i in self.handed_on:
                outputs.insert(position, tensors[i].clone())
            return outputs
        return results

    def instrumented(self, *tensors: torch.Tensor) -> Sequence[torch.Tensor]:
        """Run the model and report the call and its layers to the graph observer.

        Performance counters cost a few percent of small layers, and are enabled at compilation: the first such call compiles the model again, and
        calls without an observer keep their speed.
        """
        with self._lock:
            if self.counting_model is None:
                start = time.perf_counter_ns()
                self.counting_model = Counting(self, self._source, self._config)
                _report(Call("compile for the profiler", note="OpenVINO counts layer by layer only where it is told to beforehand", graph=True),
                      start, time.perf_counter_ns())
            request = self.counting_model.requests.pop() if self.counting_model.requests else _Request(self.counting_model)
        start, enclose = time.perf_counter_ns(), dispatch.enclose
        results = request.run(tensors) if enclose is None else enclose(_WHOLE.name, request.run, (tensors,), {})
        end = time.perf_counter_ns()
        with self._lock:
            inside = self.counting_model.layers(request, end - start)
            self.counting_model.requests.append(request)
        _report(_WHOLE, start, end, results, inside)
        return self._handed_on(results, tensors)


_WHOLE = Call("openvino", note="its layers follow one another here, and share this run's time as in the last runs: OpenVINO keeps their average, "
              "and not when they began", graph=True)


def _report(call: Call, start: int, end: int, results: Sequence[torch.Tensor] = (), inside: Sequence[tuple[Call, int]] = ()) -> None:
    observer = dispatch.graph_observer
    if observer is not None:
        observer(call, start, end, (), list(results), inside)


class Counting:
    """A model compiled with performance counters, with the same attributes for its requests as a `_Model`."""

    def __init__(self, compiled: Compiled, model: Any, config: Mapping[str, Any]):
        from .layers import Averages, names
        self.places, self.outputs = compiled.places, compiled.outputs
        self.model = core().compile_model(model, "CPU", {**config, "PERF_COUNT": True})
        self.requests: list[_Request] = []
        self._names = names(self.model, compiled.program)
        self._averages = Averages()

    def layers(self, request: "_Request", total: int) -> list[tuple[Call, int]]:
        """Return the layers of the last run, in order, with their shares of its `total` ns."""
        layers = [layer for layer in request.request.get_profiling_info() if layer.real_time]
        shares = self._averages.shares([int(layer.real_time.total_seconds() * 1e9) for layer in layers], total)
        return [(self._names.get(layer.node_name) or Call(layer.node_type), share) for layer, share in zip(layers, shares)]


def _input_copy(program: Program, node: fx.Node) -> Callable | None:
    """Return what makes, from the model's buffer, the function that copies an input into it; None if OpenVINO reads the input in place."""
    from .model import images
    if images(program, node):
        return functools.partial(Interleaver, tuple(program.values[node].shape))
    value = program.values[node]
    return operator.attrgetter("copy_") if value.numel() * value.element_size() <= _SMALL else None


class _Copies:
    """Copies of a small result; tensors are allocated in groups, since allocating one directly after a run takes 0.1 ms with cold caches."""

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype):
        self._shape, self._dtype = shape, dtype
        self._spare: list[tuple[torch.Tensor, int]] = []
        self.source: Any = torch.empty(shape, dtype=dtype).numpy()
        self._address, self._bytes = self.source.ctypes.data, self.source.nbytes
        self._count = max(1, min(_AT_A_TIME, _AT_A_TIME_BYTES // max(1, self._bytes)))

    def take(self) -> torch.Tensor:
        """Return a new tensor with the current content of `source`."""
        if not self._spare:
            with torch.inference_mode(False):  # a later call need not be in it
                tensors = [torch.empty(self._shape, dtype=self._dtype) for _ in range(self._count)]
            self._spare = [(t, t.data_ptr()) for t in tensors]
        tensor, address = self._spare.pop()
        ctypes.memmove(address, self._address, self._bytes)  # a call of torch or NumPy takes 20 us with cold caches
        return tensor


class _Request:
    """The buffers of one run. Small arrays and images are copied to bound buffers; larger arrays are read and written in place."""

    def __init__(self, compiled: _Model | Counting):
        import openvino
        self.tensor_of = openvino.Tensor
        self.request: Any = compiled.model.create_infer_request()
        self.copied, self.outputs, self.long = [], [], False
        self.read: dict[int, tuple[int, torch.Tensor | None]] = {}  # by the model's input: the position of the tensor, and the bound tensor
        for k, i, copy_input in compiled.places:
            if copy_input is None:
                self.read[k] = i, None
            else:
                with torch.inference_mode(False):  # as in `_Copies`
                    buffer = torch.from_numpy(self.request.get_input_tensor(k).data)
                self.copied.append((i, copy_input(buffer)))
        for k, shape, dtype, small in compiled.outputs:
            copies = None
            if small:
                copies = _Copies(shape, dtype)
                self.request.set_output_tensor(k, self.tensor_of(copies.source, shared_memory=True))
            self.outputs.append((k, shape, dtype, copies))

    def run(self, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        request = self.request
        for i, copy_input in self.copied:
            copy_input(tensors[i])
        for k, (i, bound) in self.read.items():
            t = tensors[i]
            if bound is None or t.data_ptr() != bound.data_ptr() or not t.is_contiguous():  # other memory than in the last run
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
        request.infer(share_outputs=True)  # by default it copies them once more
        self.long = time.perf_counter() - start > _LONG
        if len(results) == len(self.outputs):
            return tuple(results)
        large = iter(results)
        return tuple([next(large) if copies is None else copies.take() for *_, copies in self.outputs])
