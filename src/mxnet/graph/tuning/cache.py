"""The tuning cache of graphs: the fastest backend of each graph, kept on disk, so that later processes compile that backend only.

A key holds everything that decides a comparison: what the graph computes (operators, attributes, shapes, types; not the values of
weights, and no names), the number of threads, the processor, and the versions of the backends. Entries that are shipped with the package
were measured with earlier versions, on another processor of the same design. They are used if the user's cache has no entry.
"""
import functools
import hashlib
import importlib.metadata
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from ... import environment, memory, threads
from ...kernels.runtime import tuning
from ...kernels.runtime.measurement import is_quiet
from ...libinfo import remex_version
from ...ndarray import mutation_tracking
from ...ops import registry
from ..backends.registry import asks_for_exact
from ..passes import recurrent_layers
from ..program import Function, FxNode, is_stochastic, mutates_inputs, operator_of
from .inference_states import Compiled, run

NATIVE = "native"
_NOBODY = ""  # is stored if the shipped choice has failed
tuning_cache = tuning.TuningCache("graphs", "conv/convolution", "gemm/prepacked_skinny", "conv/prepacked_conv", "conv/winograd")


class CacheEntry:
    """The entry of the tuning cache for a graph with inputs of certain shapes.

    Parameters
    ----------
    module : torch.fx.GraphModule
        As it was lowered.
    inputs : list of torch.Tensor
    weights : sequence of int
        Positions of the inputs that are built in.
    exact : bool
    """

    def __init__(self, module: fx.GraphModule, inputs: Sequence[torch.Tensor], weights: Sequence[int], exact: bool):
        fixed = {i for i in weights if mutation_tracking.may_watch(inputs[i])}
        text = _text(module, inputs, fixed)
        # Without permission to time algorithms other backends are the fastest, so those choices are stored under another key.
        settings = f"{exact or asks_for_exact()} {environment.get_bool('MXNET_USE_FUSION')} {tuning.allowed()}"
        self._graph = (f"{hashlib.sha256(f'{settings}{text}'.encode()).hexdigest()[:24]}, {len(module.graph.nodes)} nodes, "
                       f"{threads.usual()} threads")
        self._key = None if text is None else f"{self._graph}, remex {remex_version}, OpenVINO {_openvino()}"

    @property
    def choice(self) -> str | None:
        """The cached backend's name, read from a file that is not trusted; None if there is no entry."""
        if self._key is None:
            return None
        name = tuning_cache.get(self._key)
        return tuning_cache.shipped(self._graph) if name is None else name or None

    @property
    def origin(self) -> str:
        """The place of the entry, as text for `explain`."""
        return f"kept in {tuning_cache.path}" if self._key is not None and tuning_cache.get(self._key) else "as the package knows"

    def store(self, name: str, seconds: float, waited: float, sure: bool = False) -> str:
        """Store the fastest backend, unless other programs disturbed the measurement.

        Parameters
        ----------
        name : str
        seconds, waited : float
            The duration of the measurement, and the time in it that threads of this process waited for a processor.
        sure : bool
            True if the difference is too large to be explained by other programs.

        Returns
        -------
        str
            The outcome, as text for `explain`.
        """
        if not sure and not is_quiet(seconds, waited):
            return f"not kept, since other programs ran meanwhile: threads waited {waited * 1e3:.3g} of {seconds * 1e3:.3g} ms for a processor"
        if self._key is None:
            return "not kept, since it is not known whether another graph is the same"
        tuning_cache.keep(self._key, name)
        return f"kept in {tuning_cache.path}"

    def forget(self) -> None:
        """Remove the entry, so that the next process compares anew; a shipped entry is masked."""
        if self._key is not None:
            tuning_cache.keep(self._key, None if tuning_cache.shipped(self._graph) is None else _NOBODY)


class CachedChoice:
    """The state of a graph with a cached choice: its first results are validated against those of `native`, which are returned; nothing is timed.

    Attributes
    ----------
    choice : Compiled or None
        The compiled graph for all further calls, once its results were right.

    Parameters
    ----------
    frozen : Compiled
    native : callable
    compare : callable
        ``compare(name, function, inputs, expected)`` returns True if the function gives the expected results.
    entry : CacheEntry
        The entry, which is removed if the results are wrong.
    """

    self_instrumented = True  # `function` reports to the observer itself

    def __init__(self, frozen: Compiled, native: Function, compare: Callable, entry: CacheEntry):
        self.choice: Compiled | None = None
        self._frozen, self._native, self._compare, self._entry, self._failed = frozen, native, compare, entry, False

    def function(self, *inputs: torch.Tensor) -> Sequence[torch.Tensor]:
        if self.choice is not None:  # set by another thread meanwhile
            return run(self.choice.function, inputs)
        with tuning.paused():  # `native` runs this once: to choose its algorithms would take longer than the run
            results = run(self._native, inputs)
        if self._compare(self._frozen.name, self._frozen.function, inputs, results):
            self.choice = self._frozen
        else:
            self._entry.forget()
            self._failed = True
        return results

    def release(self) -> None:
        """Release what only the validation needed, after the choice has replaced this state."""
        recurrent_layers.release(self._native)
        memory.trim()

    def holds(self, inputs: Sequence[torch.Tensor]) -> bool:
        return self.choice is None and not self._failed and self._frozen.holds(inputs)

    def explain(self) -> list[str]:
        return [f"{self._frozen.name}, whose results are compared with those of native in the first call", *self._frozen.explain()]


@functools.cache
def _openvino() -> str:
    """Return OpenVINO's version without importing the package."""
    try:
        return importlib.metadata.version("openvino")
    except importlib.metadata.PackageNotFoundError:
        return "is not installed"


def _text(module: fx.GraphModule, inputs: Sequence[torch.Tensor], fixed: set[int]) -> str | None:
    """Return a text that only graphs with the same computation share; None if no text describes the graph completely."""
    try:
        return "\n".join(_lines(module, inputs, fixed))
    except _Unknown:
        return None


class _Unknown(Exception):
    """Raised if no text describes a computation completely."""


def _lines(module: fx.GraphModule, inputs: Sequence[torch.Tensor], fixed: set[int]) -> Iterator[str]:
    numbers: dict[FxNode, int] = {}
    given = iter(enumerate(inputs))
    for node in module.graph.nodes:
        numbers[node] = len(numbers)
        if node.op == "placeholder":
            i, tensor = next(given)
            yield f"{tensor.dtype} {tuple(tensor.shape)}{' fixed' if i in fixed else ''}"
        else:
            yield f"{_called(node)} {_plain(node.args, numbers)} {_plain(node.kwargs, numbers)}"


def _called(node: FxNode) -> str:
    """Return the name of a node's function, if the name identifies it: raises `_Unknown` for closures, random operators and user code."""
    if node.op == "output":
        return "output"
    op = operator_of(node)
    if node.op != "call_function" or is_stochastic(node) or mutates_inputs(node):
        raise _Unknown
    if op is not None and node.target is op.in_graph:
        name: str = op.name
        if not _ours(op.raw) or registry.OPERATORS.get(name) is not op:
            raise _Unknown
        return name
    # The other functions of lowered graphs: plain functions of this package; methods depend on their object, nested functions on their closure.
    if not isinstance(node.target, types.FunctionType) or node.target.__closure__ or not _ours(node.target) or "<" in node.target.__qualname__:
        raise _Unknown
    return f"{node.target.__module__}.{node.target.__qualname__}"


def _ours(function: Any) -> bool:
    """Return True if the function belongs to this package, whose version then determines it."""
    return str(function.__module__).startswith("mxnet.")


def _plain(value: Any, numbers: Mapping[FxNode, int]) -> str:
    if isinstance(value, fx.Node):
        return f"%{numbers[value]}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(_plain(v, numbers) for v in value)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k}: {_plain(v, numbers)}' for k, v in sorted(value.items()))}}}"
    if value is None or isinstance(value, (bool, int, float, str, torch.dtype, torch.device)):
        return repr(value)
    raise _Unknown
