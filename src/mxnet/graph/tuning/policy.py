"""When a graph is worth compiling, and by whom.

A graph that nobody names a backend for starts on `native`, which needs no compiling. When it has spent about as much time there as
compiling would take (so that nobody ever waits more than twice as long as with the better choice), it is compiled. One call then runs it both
ways, to see whether the results agree; the next ones run what was compiled, and by their times it stays with the faster one. So no call runs
the graph more than twice. Changed weights start this anew. What draws random numbers, or calls the user's own code, is never run twice.

Who won is kept on disk (`cache`): where it is known, only the winner is compiled, and compared once.
"""
import functools
import logging
import operator
import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from ... import environment, processor
from ...kernels.runtime import tuning
from ...ndarray import writes
from ...ops import differentiation
from ...ops.grad_mode import no_grad
from ...ops.nn.convolution import convolution
from ..backends import registry
from ..backends.cpu import mlp_fusion
from ..backends.cpu.backend import Kernels, is_worth_compiling
from ..int8.quantize import is_quantized
from ..passes import recurrent_layers
from ..program import Function, Program, calls, is_stochastic, mutates_inputs
from .cache import NATIVE, CachedChoice, CacheEntry
from .comparison import LONG, Comparing
from .inference_states import FASTEST, Compiled, Native, Validating

_log = logging.getLogger(__name__)
# What compiling costs, in seconds: in any case, and for each operator. Measured on ResNet-50 and on networks of a few layers.
_COMPILE, _COMPILE_OPERATOR = 0.1, 0.004
_CANDIDATE_OPERATOR = 0.001  # of a rival, whose layers get ready beside later calls
# A comparison times each so often, or on until it took so many seconds (but at most so often): short runs vary more, and long ones hardly.
_TIMED_RUNS, _TIMED_SECONDS, _MOST_TIMED_RUNS = 3, 0.005, 50
_ENOUGH_SECONDS = 0.3  # seconds of which one measurement tells enough
_TURN = 2  # calls of a turn that count
_COARSE = 0.1  # how far results on integers may be apart, as a part of their size: each layer rounds to a 255th of its range
_forked = False

# The threads of a runtime that the parent started do not exist in its child. A hook written in Python could lose a Ctrl-C.
os.register_at_fork(after_in_child=functools.partial(operator.setitem, globals(), "_forked", True))


def forked() -> bool:
    """True in a child of the process that imported this."""
    return _forked


def budget(operators: int) -> float:
    """For how many seconds a graph of so many operators runs on `native` before it is compiled."""
    return _COMPILE + _COMPILE_OPERATOR * operators


def may_compile(device: torch.device) -> bool:
    """Whether there is a backend that could take over inference on this device."""
    return device.type == "cpu" and not _forked and environment.get_bool("MXNET_EXEC_BULK_EXEC_INFERENCE")


def candidate_backends(device: torch.device, all_backends: bool = False) -> list:
    """The backends that may take over a graph for inference on this device, the most promising first; with `all_backends` slow compilers too."""
    names = ("openvino", "inductor") if all_backends else ("openvino",)
    return [b for b in map(registry._backends.get, names) if b is not None and registry.can_run(b, device)]


def freeze(backend: Any, module: fx.GraphModule, inputs: Sequence[torch.Tensor], weights: Iterable[int], options: Mapping,
           exact: bool = False) -> Compiled:
    """Compile a graph with its weights built in."""
    fixed = [i for i in weights if writes.may_watch(inputs[i])]
    with no_grad():
        program = Program(module, inputs, fixed, exact)
        function = backend.compile(program, **options)
    return Compiled(function, inputs, fixed, program, backend.name)


def convolution_candidates(module: fx.GraphModule, device: torch.device, exact: bool) -> list:
    """Backends that may be ahead of all others on this graph: our own kernels, where these need fewer multiplications."""
    own = Kernels(demanding=True)
    if exact or not any(calls(n, convolution) for n in module.graph.nodes) or quantized(module) or not registry.can_run(own, device):
        return []
    return [own]


def mlp_candidates(module: fx.GraphModule, inputs: Sequence[torch.Tensor], weights: Iterable[int], device: torch.device) -> list:
    """Our own kernels, where a graph is nothing but small fully connected layers: of 20 microseconds OpenVINO spends 10 on being called."""
    if device.type != "cpu" or not mlp_fusion.may_suit(module) or quantized(module):
        return []
    with no_grad():
        program = Program(module, inputs, [i for i in weights if writes.may_watch(inputs[i])])
    return [Kernels()] if mlp_fusion.suits(program) else []


def from_cache(record: CacheEntry, module: fx.GraphModule, native: Callable[[], Function], inputs: Sequence[torch.Tensor], weights: Iterable[int],
               device: torch.device, exact: bool, promised: bool) -> CachedChoice | Compiled | Native | None:
    """The graph as it is known to run fastest; None where that is not known, or it fails.

    `native` makes what compares. With `promised` shapes OpenVINO is `trusted`, as where nothing is known.
    """
    name = record.choice
    if name == NATIVE:
        return Native(native(), f"{FASTEST} before, {record.origin}")
    backend = Kernels() if name == Kernels.name else next((b for b in candidate_backends(device) if b.name == name), None)
    if backend is None or not registry.can_run(backend, device):
        return None
    try:
        frozen = freeze(backend, module, inputs, weights, {}, exact)
    except Exception as error:  # whatever goes wrong inside a compiler, the graph still runs
        _log.info("graph: %s cannot compile it: %s", name, error)
        record.forget()
        return None
    frozen.program.note(f"{name} won before: {record.origin}")
    if promised and name != Kernels.name and _skips_validation(module):
        return frozen
    return CachedChoice(frozen, native(), functools.partial(_matches, quantized(module)), record)


def with_comparison(frozen: Compiled, module: fx.GraphModule, inputs: Sequence[torch.Tensor], device: torch.device, exact: bool,
               record: CacheEntry | None = None) -> Compiled | Comparing:
    """A compiled graph, with a rival where there may be a faster one."""
    if not tuning.allowed() or exact or registry.asks_for_exact() or quantized(module) or any(is_stochastic(n) or mutates_inputs(n) for n in module.graph.nodes):
        return frozen
    # What was compiled may have been divided: its convolutions are gone from its own program.
    program = Program(module, inputs, frozen.positions) if any(calls(n, convolution) for n in module.graph.nodes) else None
    if program is None or not is_worth_compiling(program):
        return frozen
    positions = frozen.positions  # and not the graph itself, which goes if it loses

    def compile(inputs: Sequence[torch.Tensor]) -> Compiled:
        backend = Kernels()
        if not registry.can_run(backend, device):  # asked late: it compiles kernels where none came with the package
            raise registry.Unavailable("there are no kernels for this machine")
        return freeze(backend, module, inputs, positions, {}, exact)
    operators = sum(n.op == "call_function" for n in module.graph.nodes)
    return Comparing(frozen, Kernels.name, _COMPILE + _CANDIDATE_OPERATOR * operators, compile, _agree,
                   record.store if record is not None else None)


def _skips_validation(module: fx.GraphModule) -> bool:
    """Whether OpenVINO is taken at its word: with convolutions it is right, and a comparison takes the memory of a run on torch."""
    return any(calls(n, convolution) for n in module.graph.nodes) or quantized(module)


def compile_without_validation(module: fx.GraphModule, inputs: Sequence[torch.Tensor], weights: Iterable[int], device: torch.device) -> Compiled | None:
    """The graph compiled without a comparison, where torch never wins: OpenVINO with convolutions. None where it isn't so, or if it fails."""
    backend = next(iter(candidate_backends(device)), None)
    if backend is None or not _skips_validation(module):
        return None
    try:
        return freeze(backend, module, inputs, weights, {})
    except Exception as error:  # whatever goes wrong inside a compiler, the graph still runs
        _log.info("graph: %s cannot compile it: %s", backend.name, error)
        return None


def start_validation(module: fx.GraphModule, native: Function, native_seconds: float, inputs: Sequence[torch.Tensor], weights: Iterable[int],
          device: torch.device) -> Validating | None:
    """The graph compiled by the most promising backend, which the next calls try; None if there is none, it fails, or nothing may run twice.

    `native_seconds` is what the fastest call took on `native` so far.
    """
    if any(is_stochastic(n) for n in module.graph.nodes):
        return None
    for backend in [*mlp_candidates(module, inputs, weights, device), *candidate_backends(device)]:
        try:
            frozen = freeze(backend, module, inputs, weights, {})
        except Exception as error:  # whatever goes wrong inside a compiler, the graph still runs
            _log.info("graph: %s cannot compile it: %s", backend.name, error)
            continue
        return Validating(frozen, backend.name, native, native_seconds, functools.partial(_validated, quantized(module)), measured)
    return None


def measured(seconds: Sequence[float]) -> bool:
    """Whether these times of a function are enough to judge it by."""
    if len(seconds) < _TIMED_RUNS:
        return sum(seconds) >= _ENOUGH_SECONDS
    return sum(seconds) >= _TIMED_SECONDS or len(seconds) >= _MOST_TIMED_RUNS


def quantized(module: fx.GraphModule) -> bool:
    """Whether a graph computes with 8-bit integers."""
    return any("node" in n.meta and is_quantized(n.meta["node"]) for n in module.graph.nodes)


def _validated(coarse: bool, name: str, function: Function, inputs: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> bool:
    """Whether a compiled function gives the results that `native` gave for these inputs; says so if not."""
    results = _run(name, function, inputs)
    if results is not None and not _agree(results, expected, coarse):
        _warn_of_difference(name)
        return False
    return results is not None


def _matches(coarse: bool, name: str, function: Function, inputs: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> bool:
    """The same, and nothing is said: somebody else will run the graph."""
    results = _run(name, function, inputs)
    return results is not None and _agree(results, expected, coarse)


def _run(name: str, function: Function, inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor] | None:
    try:
        with no_grad():
            return function(*inputs)
    except Exception as error:  # as when it does not compile
        _log.info("graph: %s cannot run it: %s", name, error)
        return None


def _warn_of_difference(name: str) -> None:
    warnings.warn(f"backend {name!r} gives other results than 'native' for this graph; it stays on 'native'", stacklevel=6)


def compare_backends(module: fx.GraphModule, native: Function, inputs: Sequence[torch.Tensor], weights: Iterable[int], device: torch.device,
            all_backends: bool = False, exact: bool = False, record: CacheEntry | None = None) -> tuple[Compiled | None, str]:
    """Compile with each backend that could run the graph, and keep the fastest; the record, if there is one, keeps who that was.

    Returns
    -------
    Compiled or None
        None if the function `native` is to stay.
    str
        Why that is; empty where nobody else could run the graph.
    """
    if any(is_stochastic(n) for n in module.graph.nodes):
        return None, "since it draws random numbers, which must not be drawn twice"
    best: Compiled | None = None
    lost = ""
    best_time = None
    start, waited = time.perf_counter(), processor.waited()
    own = [*mlp_candidates(module, inputs, weights, device), *(convolution_candidates(module, device, exact) if all_backends else ())]
    for backend in [*candidate_backends(device, all_backends), *own]:
        try:
            frozen = freeze(backend, module, inputs, weights, {}, exact)
        except Exception as error:  # whatever goes wrong inside a compiler, the graph still runs
            _log.info("graph: %s cannot compile it: %s", backend.name, error)
            continue
        with no_grad():
            expected = native(*inputs)
            if recurrent_layers.caches_weights(native):
                native(*inputs)  # weights that come again are brought into order, which takes longer than the call
            try:
                on_torch, compiled, results = _alternating_times(native, frozen.function, inputs)
            except Exception as error:
                _log.info("graph: %s cannot run it: %s", backend.name, error)
                continue
        if not _agree(results, expected, quantized(module)):
            _warn_of_difference(backend.name)
            lost = lost or f"since {backend.name} gives other results"
            continue
        lost = FASTEST
        _log.info("graph: native %.3f ms, %s %.3f ms", on_torch * 1e3, backend.name, compiled * 1e3)
        if compiled < (best_time if best_time is not None else on_torch):
            best, best_time = frozen, compiled
    if record is not None and lost == FASTEST:
        message = record.store(NATIVE if best is None else best.name, time.perf_counter() - start, max(processor.waited() - waited, 0.0))
        if best is not None:
            best.program.note(f"{best.name}: {message}")
    return best, lost


def compare_training(module: fx.GraphModule, native: Function, inputs: Sequence[torch.Tensor], device: torch.device) -> Function:
    """The faster of `native` and the backends that train, in a step forward and backward on copies of the inputs."""
    best, function = None, native
    for backend in [None, *(b for b in candidate_backends(device, all_backends=True) if b.trains)]:
        try:
            candidate = native if backend is None else backend.compile(Program(module, inputs))
            seconds = min(_timed(_step(candidate), [t.detach().clone().requires_grad_(t.requires_grad) for t in inputs])[0] for _ in range(_TIMED_RUNS))
        except Exception as error:  # whatever goes wrong inside a compiler, the graph still runs
            _log.info("graph: %s cannot train it: %s", backend.name if backend else "native", error)
            continue
        _log.info("graph: a step on %s takes %.3f ms", backend.name if backend else "native", seconds * 1e3)
        if best is None or seconds < best:
            best, function = seconds, candidate
    return function


def _step(function: Function) -> Callable:
    def run(*inputs: torch.Tensor) -> None:
        heads = [r for r in function(*inputs) if r.requires_grad]
        differentiation.backward(heads, [torch.ones_like(h) for h in heads])
    return run


def _alternating_times(first: Function, second: Function, inputs: Sequence[torch.Tensor]) -> tuple:
    """The shortest times of two functions, the first of which has run before, and the results of the second.

    They take turns, in each of which the first call does not count unless it is long: OpenVINO ends torch's threads, and the caches hold the other
    one's weights.
    """
    results = second(*inputs)
    times: tuple[list[float], list[float]] = [], []
    while not measured(times[0]):
        for seconds, function in zip(times, (first, second)):
            begins = _timed(function, inputs)[0]
            seconds += [begins] if begins > LONG else [_timed(function, inputs)[0] for _ in range(_TURN)]
    return min(times[0]), min(times[1]), results


def _timed(function: Callable, inputs: Iterable[torch.Tensor]) -> tuple:
    start = time.perf_counter()
    results = function(*inputs)
    return time.perf_counter() - start, results


def _agree(results: Iterable[torch.Tensor], expected: Iterable[torch.Tensor], coarse: bool = False) -> bool:
    """Whether results are the same but for rounding: to 8 bits, after each layer, where they are `coarse`."""
    for a, b in zip(results, expected):
        if coarse:
            if not (a.float() - b.float()).norm() <= _COARSE * b.float().norm():
                return False
        elif a.dtype.is_floating_point:
            finite = b.isfinite()
            if not finite.all():  # what is infinite or no number must be so in both, and tells nothing about the scale
                if not torch.allclose(a[~finite], b[~finite], rtol=0, atol=0, equal_nan=True):
                    return False
                a, b = a[finite], b[finite]
            scale = b.abs().max().item() if b.numel() else 0.0
            # Single precision through a hundred layers: ResNet-101 from one convolution to the other differs by more than 1e-4.
            if not torch.allclose(a, b, rtol=1e-3, atol=1e-3 * (scale or 1.0)):
                return False
        elif not torch.equal(a, b):
            return False
    return True
