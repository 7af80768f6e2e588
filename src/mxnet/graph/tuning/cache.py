"""Who won a graph, kept on disk: the next process goes to the winner, without compiling others and without a race.

What is kept belongs to all that decides a race: what the graph computes (operators, attributes, shapes, types; not the values of its weights, and
no names), the number of threads, the processor, and the versions of those who take part. What came with the package was found with the versions of
its time, on another processor of this design: it serves where nothing is kept.
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
from ...libinfo import remex_version
from ...ndarray import writes
from ...ops import registry
from ..backends.registry import asks_for_exact
from ..passes import recurrent_layers
from ..program import Function, FxNode, is_stochastic, mutates_inputs, operator_of
from .inference_states import Compiled, run

NATIVE = "native"
_NOBODY = ""  # is kept where the winner that came with the package has failed
tuning_cache = tuning.Winners("graphs", "conv/convolution", "gemm/prepacked_skinny", "conv/prepacked_conv", "conv/winograd")


class CacheEntry:
    """What is kept of a graph with inputs of certain shapes.

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
        fixed = {i for i in weights if writes.may_watch(inputs[i])}
        text = _text(module, inputs, fixed)
        # Where no races are allowed, others win: who won there decides nothing elsewhere.
        settings = f"{exact or asks_for_exact()} {environment.get_bool('MXNET_USE_FUSION')} {tuning.allowed()}"
        self._graph = (f"{hashlib.sha256(f'{settings}{text}'.encode()).hexdigest()[:24]}, {len(module.graph.nodes)} nodes, "
                       f"{threads.usual()} threads")
        self._key = None if text is None else f"{self._graph}, remex {remex_version}, OpenVINO {_openvino()}"

    @property
    def choice(self) -> str | None:
        """The name of the backend that won, as a file says that anybody could have written; None where that is not known."""
        if self._key is None:
            return None
        name = tuning_cache.get(self._key)
        return tuning_cache.shipped(self._graph) if name is None else name or None

    @property
    def origin(self) -> str:
        """Where it is kept, for the user."""
        return f"kept in {tuning_cache.path}" if self._key is not None and tuning_cache.get(self._key) else "as the package knows"

    def store(self, name: str, seconds: float, waited: float, sure: bool = False) -> str:
        """Keep who won, unless other programs had a part in it: a race among them is not to be believed by processes that run without them.

        Parameters
        ----------
        name : str
        seconds, waited : float
            How long was measured, and for how long threads of this process waited for a processor meanwhile.
        sure : bool
            Whether the winner was so far ahead that other programs don't explain it.

        Returns
        -------
        str
            What became of it, for the user.
        """
        if not sure and not tuning.quiet(seconds, waited):
            return f"not kept, since other programs ran meanwhile: threads waited {waited * 1e3:.3g} of {seconds * 1e3:.3g} ms for a processor"
        if self._key is None:
            return "not kept, since it is not known whether another graph is the same"
        tuning_cache.keep(self._key, name)
        return f"kept in {tuning_cache.path}"

    def forget(self) -> None:
        """Let the next process find out anew, whatever the package knows."""
        if self._key is not None:
            tuning_cache.keep(self._key, None if tuning_cache.shipped(self._graph) is None else _NOBODY)


class CachedChoice:
    """The state of a graph whose winner was known: its first results are compared with those of `native`, which count. Nothing is timed.

    Attributes
    ----------
    winner : Compiled or None
        Who runs the graph from now on, once it has given the right results.

    Parameters
    ----------
    frozen : Compiled
    native : callable
    compare : callable
        ``compare(name, function, inputs, expected)`` tells whether a function gives these results.
    record : CacheEntry
        In which the winner is forgotten, if it does not.
    """

    self_instrumented = True  # `function` reports to the observer itself

    def __init__(self, frozen: Compiled, native: Function, compare: Callable, record: CacheEntry):
        self.choice: Compiled | None = None
        self._frozen, self._native, self._compare, self._record, self._failed = frozen, native, compare, record, False

    def function(self, *inputs: torch.Tensor) -> Sequence[torch.Tensor]:
        if self.choice is not None:  # as another thread has found meanwhile
            return run(self.choice.function, inputs)
        results = run(self._native, inputs)
        if self._compare(self._frozen.name, self._frozen.function, inputs, results):
            self.choice = self._frozen
        else:
            self._record.forget()
            self._failed = True
        return results

    def release(self) -> None:
        """Let what only the comparison needed go, now that the winner stands in this state's place."""
        recurrent_layers.release(self._native)
        memory.trim()

    def holds(self, inputs: Sequence[torch.Tensor]) -> bool:
        return self.choice is None and not self._failed and self._frozen.holds(inputs)

    def explain(self) -> list[str]:
        return [f"{self._frozen.name}, whose results are compared with those of native in the first call", *self._frozen.explain()]


@functools.cache
def _openvino() -> str:
    """Its version, without importing it."""
    try:
        return importlib.metadata.version("openvino")
    except importlib.metadata.PackageNotFoundError:
        return "is not installed"


def _text(module: fx.GraphModule, inputs: Sequence[torch.Tensor], fixed: set[int]) -> str | None:
    """All that a graph computes, as a text that only graphs which compute the same have in common; None where that cannot be told."""
    try:
        return "\n".join(_lines(module, inputs, fixed))
    except _Unknown:
        return None


class _Unknown(Exception):
    """What something computes cannot be told by a text."""


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
    """The name of what a node calls, if that says all about it: functions that were made for a graph, and the user's code, are not told by names."""
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
    # What else lowering calls are functions: no methods, which depend on their object, and none that were made in others.
    if not isinstance(node.target, types.FunctionType) or node.target.__closure__ or not _ours(node.target) or "<" in node.target.__qualname__:
        raise _Unknown
    return f"{node.target.__module__}.{node.target.__qualname__}"


def _ours(function: Any) -> bool:
    """Whether it is of this package, and the same wherever its version is."""
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
