"""The compile policy: when a graph is compiled, and by which backend.

A graph without a named backend starts on `native`, which needs no compilation. When it has spent about as much time there as
compilation would take (so that the total time is at most twice that of the better choice), it is compiled. One call then runs both,
and the results are compared; the next calls run and time the compiled graph, and the faster one is kept. So no call runs
the graph more than twice. Changed weights restart this. Graphs with random numbers or user code are never run twice.

The choice is cached on disk (`cache`): with a cached choice only that backend is compiled, and its results are compared once.
"""
import functools
import logging
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from ... import environment
from ...kernels.runtime import tuning
from ...kernels.runtime.measurement import GRAPH, STEP, benchmark, timed
from ...ndarray import mutation_tracking
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
# The cost of compilation in seconds: a constant part, and a part for each operator. Measured on ResNet-50 and on networks of a few layers.
_COMPILE, _COMPILE_OPERATOR = 0.1, 0.004
_CANDIDATE_OPERATOR = 0.001  # of a `Comparing` candidate, whose layers are prepared beside later calls
_TURN = 2  # timed calls of a turn
_COARSE = 0.1  # largest relative difference of results on integers: each layer rounds to a 255th of its range


class _Process:
    """The process: `forked` is True in a forked child of the one that imported this module."""

    forked = False


process = _Process()
# The threads of a runtime that the parent started do not exist in its child. A hook written in Python could lose a Ctrl-C.
os.register_at_fork(after_in_child=functools.partial(setattr, process, "forked", True))


def budget(operators: int) -> float:
    """Return the seconds that a graph of so many operators runs on `native` before it is compiled."""
    return _COMPILE + _COMPILE_OPERATOR * operators


def may_compile(device: torch.device) -> bool:
    """Return True if inference on this device may be compiled."""
    return device.type == "cpu" and not process.forked and environment.get_bool("MXNET_EXEC_BULK_EXEC_INFERENCE")


def candidate_backends(device: torch.device, all_backends: bool = False) -> list:
    """Return the backends that may compile a graph for inference on this device, the most promising first.

    With `all_backends` slow compilers are included.
    """
    names = ("openvino", "inductor") if all_backends else ("openvino",)
    return [b for b in map(registry.BACKENDS.get, names) if b is not None and registry.can_run(b, device)]


def freeze(backend: Any, module: fx.GraphModule, inputs: Sequence[torch.Tensor], weights: Iterable[int], options: Mapping,
           exact: bool = False) -> Compiled:
    """Compile a graph with its weights as constants."""
    fixed = [i for i in weights if mutation_tracking.may_watch(inputs[i])]
    with no_grad():
        program = Program(module, inputs, fixed, exact)
        function = backend.compile(program, **options)
    return Compiled(function, inputs, fixed, program, backend.name)


def convolution_candidates(module: fx.GraphModule, device: torch.device, exact: bool) -> list:
    """Return the backend `kernels` for graphs with convolutions that it computes with fewer multiplications; else an empty list."""
    own = Kernels(only_if_worthwhile=True)
    if exact or not any(calls(n, convolution) for n in module.graph.nodes) or quantized(module) or not registry.can_run(own, device):
        return []
    return [own]


def mlp_candidates(module: fx.GraphModule, inputs: Sequence[torch.Tensor], weights: Iterable[int], device: torch.device) -> list:
    """Return the backend `kernels` for graphs of small fully connected layers only: a call of OpenVINO takes 10 microseconds of their 20."""
    if device.type != "cpu" or not mlp_fusion.may_suit(module) or quantized(module):
        return []
    with no_grad():
        program = Program(module, inputs, [i for i in weights if mutation_tracking.may_watch(inputs[i])])
    return [Kernels()] if mlp_fusion.suits(program) else []


def from_cache(entry: CacheEntry, module: fx.GraphModule, native: Callable[[], Function], inputs: Sequence[torch.Tensor], weights: Iterable[int],
               device: torch.device, exact: bool, promised: bool) -> CachedChoice | Compiled | Native | None:
    """Return the state of a graph by its cached choice; None if there is none, or it cannot be compiled.

    `native` returns the reference function. With `promised` shapes OpenVINO's convolutions are not validated, as without a cached choice.
    """
    name = entry.choice
    if name == NATIVE:
        return Native(native(), f"{FASTEST} before, {entry.origin}")
    backend = Kernels() if name == Kernels.name else next((b for b in candidate_backends(device) if b.name == name), None)
    if backend is None or not registry.can_run(backend, device):
        return None
    try:
        frozen = freeze(backend, module, inputs, weights, {}, exact)
    except Exception as error:  # a compiler's failure must not prevent the run
        _log.info("graph: %s cannot compile it: %s", name, error)
        entry.forget()
        return None
    frozen.program.note(f"{name} won before: {entry.origin}")
    if promised and name != Kernels.name and _skips_validation(module):
        return frozen
    return CachedChoice(frozen, native(), functools.partial(_matches, quantized(module)), entry)


def with_comparison(frozen: Compiled, module: fx.GraphModule, inputs: Sequence[torch.Tensor], device: torch.device, exact: bool,
                    entry: CacheEntry | None = None) -> Compiled | Comparing:
    """Return the state of a compiled graph: a comparison with `kernels` if that may be faster, else the graph itself."""
    if not tuning.allowed() or exact or registry.asks_for_exact() or quantized(module):
        return frozen
    if any(is_stochastic(n) or mutates_inputs(n) for n in module.graph.nodes):
        return frozen
    # A partitioned program has lost its convolutions to submodules, so the lowered module is inspected.
    program = Program(module, inputs, frozen.positions) if any(calls(n, convolution) for n in module.graph.nodes) else None
    if program is None or not is_worth_compiling(program):
        return frozen
    positions = frozen.positions  # without a reference to the graph, which is released if it is the slower one

    def compile(inputs: Sequence[torch.Tensor]) -> Compiled:
        backend = Kernels()
        if not registry.can_run(backend, device):  # checked only here: it may compile kernels
            raise registry.Unavailable("there are no kernels for this machine")
        return freeze(backend, module, inputs, positions, {}, exact)
    operators = sum(n.op == "call_function" for n in module.graph.nodes)
    return Comparing(frozen, Kernels.name, _COMPILE + _CANDIDATE_OPERATOR * operators, compile, _agree,
                   entry.store if entry is not None else None)


def _skips_validation(module: fx.GraphModule) -> bool:
    """Return True if OpenVINO's results are not validated: its convolutions are right, and validation needs the memory of a run on torch."""
    return any(calls(n, convolution) for n in module.graph.nodes) or quantized(module)


def compile_without_validation(module: fx.GraphModule, inputs: Sequence[torch.Tensor], weights: Iterable[int],
                               device: torch.device) -> Compiled | None:
    """Return the graph compiled by OpenVINO without validation, if it has convolutions, where torch is never faster; else, or on failure, None."""
    backend = next(iter(candidate_backends(device)), None)
    if backend is None or not _skips_validation(module):
        return None
    try:
        return freeze(backend, module, inputs, weights, {})
    except Exception as error:  # a compiler's failure must not prevent the run
        _log.info("graph: %s cannot compile it: %s", backend.name, error)
        return None


def start_validation(module: fx.GraphModule, native: Function, native_seconds: float, inputs: Sequence[torch.Tensor], weights: Iterable[int],
                     device: torch.device) -> Validating | None:
    """Return the validation state of the graph compiled by the most promising backend.

    None if there is no backend, compilation fails, or the graph draws random numbers and so may not run twice.

    `native_seconds` is the time of the fastest call on `native` so far.
    """
    if any(is_stochastic(n) for n in module.graph.nodes):
        return None
    for backend in [*mlp_candidates(module, inputs, weights, device), *candidate_backends(device)]:
        try:
            frozen = freeze(backend, module, inputs, weights, {})
        except Exception as error:  # a compiler's failure must not prevent the run
            _log.info("graph: %s cannot compile it: %s", backend.name, error)
            continue
        return Validating(frozen, backend.name, native, native_seconds, functools.partial(_validated, quantized(module)), GRAPH.suffices)
    return None


def quantized(module: fx.GraphModule) -> bool:
    """Return True if a graph computes with 8-bit integers."""
    return any("node" in n.meta and is_quantized(n.meta["node"]) for n in module.graph.nodes)


def _validated(coarse: bool, name: str, function: Function, inputs: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> bool:
    """Return True if a compiled function gives the results of `native` for these inputs; warn if they differ."""
    results = _run(name, function, inputs)
    if results is not None and not _agree(results, expected, coarse):
        _warn_of_difference(name)
        return False
    return results is not None


def _matches(coarse: bool, name: str, function: Function, inputs: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> bool:
    """Return the same as `_validated`, without a warning: another backend will run the graph."""
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
                     all_backends: bool = False, exact: bool = False, entry: CacheEntry | None = None) -> tuple[Compiled | None, str]:
    """Compile the graph with each suitable backend, and return the fastest; the choice is stored in `entry`, if there is one.

    Returns
    -------
    Compiled or None
        None if `native` is the fastest.
    str
        The reason for `native`; empty if no other backend could run the graph.
    """
    if any(is_stochastic(n) for n in module.graph.nodes):
        return None, "since it draws random numbers, which must not be drawn twice"
    best: Compiled | None = None
    lost = ""
    best_time = None
    seconds = waited = 0.0
    own = [*mlp_candidates(module, inputs, weights, device), *(convolution_candidates(module, device, exact) if all_backends else ())]
    for backend in [*candidate_backends(device, all_backends), *own]:
        try:
            frozen = freeze(backend, module, inputs, weights, {}, exact)
        except Exception as error:  # a compiler's failure must not prevent the run
            _log.info("graph: %s cannot compile it: %s", backend.name, error)
            continue
        with no_grad():
            expected = native(*inputs)
            if recurrent_layers.caches_weights(native):
                native(*inputs)  # at the second call with the same weights they are reordered, which takes longer than the call
            try:
                results = frozen.function(*inputs)
                outcome = benchmark({NATIVE: native, backend.name: frozen.function}, lambda function: _timed_calls(function, inputs), GRAPH)
            except Exception as error:
                _log.info("graph: %s cannot run it: %s", backend.name, error)
                continue
        if not _agree(results, expected, quantized(module)):
            _warn_of_difference(backend.name)
            lost = lost or f"since {backend.name} gives other results"
            continue
        lost, times = FASTEST, outcome.times
        seconds, waited = seconds + outcome.seconds, waited + outcome.waited
        _log.info("graph: native %.3f ms, %s %.3f ms", times[NATIVE] * 1e3, backend.name, times[backend.name] * 1e3)
        if times[backend.name] < (best_time if best_time is not None else times[NATIVE]):
            best, best_time = frozen, times[backend.name]
    if entry is not None and lost == FASTEST:
        message = entry.store(NATIVE if best is None else best.name, seconds, waited)
        if best is not None:
            best.program.note(f"{best.name}: {message}")
    return best, lost


def compare_training(module: fx.GraphModule, native: Function, inputs: Sequence[torch.Tensor], device: torch.device) -> Function:
    """Return the fastest of `native` and the backends that train, by a forward and backward step on copies of the inputs."""
    functions: dict[str, Function] = {}
    for backend in [None, *(b for b in candidate_backends(device, all_backends=True) if b.trains)]:
        name = NATIVE if backend is None else backend.name
        try:
            function = native if backend is None else backend.compile(Program(module, inputs))
            _step(function, inputs)  # which compiles
        except Exception as error:  # a compiler's failure must not prevent the run
            _log.info("graph: %s cannot train it: %s", name, error)
            continue
        functions[name] = function
    if len(functions) < 2:
        return next(iter(functions.values()), native)
    times = benchmark(functions, lambda function: [_step(function, inputs)], STEP).times
    for name, seconds in times.items():
        _log.info("graph: a step on %s takes %.3f ms", name, seconds * 1e3)
    return functions[STEP.fastest(times)]


def _step(function: Function, inputs: Sequence[torch.Tensor]) -> float:
    """Return the seconds of a forward and backward step on copies of the inputs."""
    def run(*inputs: torch.Tensor) -> None:
        heads = [r for r in function(*inputs) if r.requires_grad]
        differentiation.backward(heads, [torch.ones_like(h) for h in heads])
    return timed(run, [t.detach().clone().requires_grad_(t.requires_grad) for t in inputs])[0]


def _timed_calls(function: Function, inputs: Sequence[torch.Tensor]) -> list[float]:
    """Return the seconds of each call of a turn, without the first one unless it is long.

    OpenVINO ends torch's threads, and the caches hold the other function's weights.
    """
    first = timed(function, inputs)[0]
    return [first] if first > LONG else [timed(function, inputs)[0] for _ in range(_TURN)]


def _agree(results: Iterable[torch.Tensor], expected: Iterable[torch.Tensor], coarse: bool = False) -> bool:
    """Return True if results agree up to rounding: to 8 bits, after each layer, if they are `coarse`."""
    for a, b in zip(results, expected):
        if coarse:
            if not (a.float() - b.float()).norm() <= _COARSE * b.float().norm():
                return False
        elif a.dtype.is_floating_point:
            finite = b.isfinite()
            if not finite.all():  # infinities and NaN must be at the same places, and are excluded from the scale
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
