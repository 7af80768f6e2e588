"""Inference on GPUs as captured CUDA graphs, which launch the kernels of a whole run at once.

A captured graph has fixed addresses, not values. It reads the data from buffers of its own, filled before each run, and the weights where they
are: new values need no new capture; another address, shape, memory format or type does. Derived weights (`prepared_weights`) lie in
buffers, too, which are filled again after a change. The graph's outputs stay in its memory until the next run, so callers get copies.

All captures of a device share one memory pool: intermediate results of one are overwritten by the others. Outputs are not, since
their tensors are referenced; and no two captures run at once, because each run waits for the one before it.
"""
import logging
import os
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import fx

from .... import environment
from ....ndarray import dispatch
from ....ops.grad_mode import no_grad
from ...instrumentation import instrumented
from ...program import Function, Program, attributes_of, is_data_dependent, mutates_inputs, operator_of
from ..registry import wants_channels_last
from . import prepared_weights

_log = logging.getLogger(__name__)
cuda: Any = torch.cuda  # replaced in tests
_WARM_UPS = 3  # runs in which cuDNN and cuBLAS select algorithms and allocate memory; as many as in torch's own captures
_MOST = 4  # captures of one graph, after which its weights are assumed to move at every call
capture_lock = threading.Lock()  # torch allows one capture in a process
_devices: dict[torch.device, "_Device"] = {}


def asked() -> bool | None:
    """Return the value of ``MXNET_ENABLE_CUDA_GRAPHS``; None if it is not set."""
    return environment.get_bool("MXNET_ENABLE_CUDA_GRAPHS") if os.environ.get("MXNET_ENABLE_CUDA_GRAPHS") else None


def allowed() -> bool:
    """Return True if graphs may be captured."""
    return asked() is not False


def at_once(fixed_shape: bool) -> bool:
    """Return True if a graph is captured at its first call: ``MXNET_ENABLE_CUDA_GRAPHS`` is set, or shapes are promised to be fixed."""
    return fixed_shape or bool(asked())


def random_in_inference(node: fx.Node) -> bool:
    """Return True if a node draws random numbers outside of training, too."""
    op = operator_of(node)
    return op is not None and (op.holds("stochastic", {**attributes_of(node), "training": False}) or is_data_dependent(node))


def operators_of(program: Program, device: torch.device) -> Iterator[tuple[fx.Node, str, str | None]]:
    """Yield each operator's node, its name for the user, and the reason why any graph with it cannot be captured, or None."""
    for node in program.graph.nodes:
        op = operator_of(node)
        if node.op != "call_function" or op is None:
            continue
        label, reason = f"{node.meta['node'].name} ({op.name})", None
        if is_data_dependent(node):
            reason = f"{label} may depend on values"
        elif any(isinstance(value, torch.device) and value != device for value in node.kwargs.values()):
            reason = f"{label} is on another device"
        yield node, label, reason


def obstacle(module: fx.GraphModule, inputs: Sequence[torch.Tensor], device: torch.device) -> str | None:
    """Return the reason why a lowered graph cannot be captured, as text; None if there is none."""
    program = Program(module, inputs)
    for node, label, reason in operators_of(program, device):
        if reason is not None:
            return reason
        if random_in_inference(node):
            return f"{label} draws random numbers"
        if mutates_inputs(node):
            return f"{label} writes to its inputs"
        if node not in program.values:
            return f"the shape of {label} is not known before it runs"
    return None


class Pool:
    """The memory pool that captured graphs share."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._graphs: weakref.WeakSet = weakref.WeakSet()  # the graphs in its memory

    def take(self) -> Any:
        """Return the handle for the next capture; after a success `give` returns it: a failed capture may leave the handle in use."""
        handle = self._handle if self._graphs else None  # torch frees a pool with its last graph
        self._handle = None
        return cuda.graph_pool_handle() if handle is None else handle

    def give(self, handle: Any, *graphs: Any) -> None:
        self._handle = handle
        self._graphs.update(graphs)


class _Device:
    """The memory, the stream and the order of runs that all captures of a device share.

    Attributes
    ----------
    lock : threading.Lock
        Held while a run is launched.
    done : torch.cuda.Event
        Recorded behind the last run; the next run waits for it.
    stream : torch.cuda.Stream
        The stream of all captures: libraries keep their state for each stream.
    """

    def __init__(self, device: torch.device):
        with cuda.device(device):
            self.lock, self.done, self._device, self.stream = threading.Lock(), cuda.Event(), device, cuda.Stream()
        self._pool = Pool()

    def captured(self, function: Function, inputs: Sequence[torch.Tensor]) -> tuple:
        """Return a CUDA graph of ``function(*inputs)``, and the tensors that hold the outputs of its last replay."""
        with capture_lock, cuda.device(self._device):
            stream = self.stream
            stream.wait_stream(cuda.current_stream())
            stream.wait_event(self.done)
            # One stream for all, because libraries keep their state for each. Leaving it also leaves a capture that failed.
            with cuda.stream(stream):
                try:
                    for _ in range(_WARM_UPS):
                        function(*inputs)
                finally:
                    self.done.record(stream)
                graph, pool = cuda.CUDAGraph(), self._pool.take()
                # Other threads, such as those that load data, may go on allocating meanwhile.
                with cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
                    outputs = function(*inputs)
            self._pool.give(pool, graph)
            cuda.current_stream().wait_stream(stream)
            return graph, tuple(outputs)


def _shared(device: torch.device) -> _Device:
    shared = _devices.get(device)
    if shared is None:
        with capture_lock:
            shared = _devices.get(device)
            if shared is None:
                shared = _devices[device] = _Device(device)
    return shared


def stream(device: torch.device) -> Any:
    """Return the stream of all captures on a device."""
    return _shared(device).stream


class Captured:
    """The state of a captured graph, with data of one set of shapes; without a capture its operators run. Several threads may call it at once.

    Attributes
    ----------
    obstacle : str or None
        The reason why operators run instead.
    captures : int
        The number of captures: one, and one after each move of weights.
    prepared : Prepared or None
        The rewritten graph for GPUs, if there is one.

    Parameters
    ----------
    native : callable
        Runs the graph on torch; it is captured if the graph was not rewritten.
    module : torch.fx.GraphModule
        The graph as it was lowered.
    inputs : list of torch.Tensor
        Arguments of `function`.
    weights : sequence of int
        Positions of the inputs that are read in place.
    device : torch.device
    exact : bool
        If True, the graph is not rewritten.
    captures : bool
        If False, the rewritten graph runs without a capture.

    Attributes
    ----------
    buffers, outputs : sequence of torch.Tensor
        The arrays that the captured graph reads the data from, and those that it writes to.
    derived_weights : sequence of torch.Tensor
        What the captured graph reads in place of weights, and `weight_guard` detects changes of these.
    """

    self_instrumented = True  # `function` reports to the observer itself

    def __init__(self, native: Function, module: fx.GraphModule, inputs: Sequence[torch.Tensor], weights: Iterable[int], device: torch.device,
                 exact: bool = False, captures: bool = True):
        self.device, self.captures, self.obstacle = device, 0, obstacle(module, inputs, device)
        self._native, self._weights = native, tuple(weights)
        self._data = [i for i in range(len(inputs)) if i not in set(self._weights)]
        self.prepared = prepared_weights.prepared(module, inputs, self._weights, device, exact) if self.obstacle is None else None
        self._direct = [i for i in self._weights if self.prepared is not None and i in self.prepared.direct]
        if self.obstacle is None and not captures:
            self.obstacle = "MXNET_ENABLE_CUDA_GRAPHS is 0"
        self._graph: Any = None
        self._places: list[tuple] | None = None
        self.buffers: list[torch.Tensor] = []
        self.outputs: tuple[torch.Tensor, ...] = ()
        self.derived_weights: Sequence[torch.Tensor] = ()
        self.weight_guard: prepared_weights.Unchanged | None = None

    def function(self, *inputs: torch.Tensor) -> Sequence[torch.Tensor]:
        """Return the outputs, a tuple of tensors."""
        if dispatch.graph_observer is not None:
            return instrumented(self._native)(*inputs)
        if cuda.is_current_stream_capturing():  # weights derived within another capture would be stale when that runs
            return self._native(*inputs)
        shared = self._shared() if self.obstacle is None else None
        if shared is not None:
            with shared.lock:
                if not self._holds(shared, inputs):
                    self._capture(shared, inputs)
                if self._graph is not None:
                    return self._replay(shared, inputs)
        prepared = self.prepared
        return (self._native if prepared is None else prepared.function)(*inputs)

    def _shared(self) -> _Device | None:
        try:
            return _shared(self.device)
        except RuntimeError as error:  # no memory is left for a stream, as for a capture that fails
            self.obstacle = f"capturing failed: {(str(error).splitlines() or [type(error).__name__])[0]}"
            return None

    def holds(self, inputs: Sequence[torch.Tensor]) -> bool:
        return True

    def _holds(self, shared: _Device, inputs: Sequence[torch.Tensor]) -> bool:
        """Return True if the capture is valid for these inputs; derived weights are updated in place if one has changed."""
        if self.obstacle is not None:
            return True
        if self._graph is None or self._where(inputs) != self._places:
            return False
        prepared = self.prepared
        if prepared is None:
            return True
        weights = prepared.weights(inputs)
        if self.weight_guard is not None and self.weight_guard.holds(weights):
            return True
        unchanged = prepared_weights.Unchanged(weights)  # before they are read, so that no write is missed
        with no_grad():
            fresh = prepared.prepare(*inputs)
            if any(t.shape != m.shape or t.dtype is not m.dtype for t, m in zip(self.derived_weights, fresh)):
                return False
            cuda.current_stream(self.device).wait_event(shared.done)
            for target, source in zip(self.derived_weights, fresh):
                target.copy_(source)
        self.weight_guard = unchanged
        return True

    def _where(self, inputs: Sequence[torch.Tensor]) -> list[tuple]:
        """Return the places of the weights that the graph reads in place."""
        return [prepared_weights.place(inputs[i]) for i in (self._weights if self.prepared is None else self._direct)]

    def _replay(self, shared: _Device, inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        stream = cuda.current_stream(self.device)
        stream.wait_event(shared.done)
        for i, buffer in zip(self._data, self.buffers):
            buffer.copy_(inputs[i])
        self._graph.replay()
        outputs = tuple(t.clone() for t in self.outputs)
        shared.done.record(stream)
        return outputs

    def _capture(self, shared: _Device, inputs: Sequence[torch.Tensor]) -> None:
        if self._graph is not None:
            shared.done.synchronize()  # the last run of the old capture may still read its memory
        self._graph, self._places, self.buffers, self.outputs, self.derived_weights, self.weight_guard = None, None, [], (), (), None
        if self.captures == _MOST:
            self.obstacle, self.prepared = f"the weights moved after each of {_MOST} captures", None
            return
        arguments = list(inputs)
        for i in self._data:
            arguments[i] = self._buffer(i, inputs[i])
        try:
            if self.prepared is not None:
                self._capture_prepared(shared, self.prepared, arguments)
        except Exception as error:  # the original operators may be capturable even if the rewritten graph is not
            _log.info("graph: not captured as it was rewritten for GPUs: %s", error)
            self.prepared, self.derived_weights, self.weight_guard = None, (), None
        try:
            if self.prepared is None:
                self._graph, self.outputs = shared.captured(self._native, arguments)
        except Exception as error:  # a failed capture must not prevent the run
            # Torch's error at the end of a failed capture hides the original one.
            cause = error.__context__ or error
            self.obstacle = f"capturing failed: {(str(cause).splitlines() or [type(cause).__name__])[0]}"
            return
        self._places, self.buffers = self._where(inputs), [arguments[i] for i in self._data]
        self.captures += 1

    def _buffer(self, number: int, data: torch.Tensor) -> torch.Tensor:
        """Return a copy of an input for the graph, in the memory format in which it is read there."""
        last = self.prepared is not None and number in self.prepared.reordered and wants_channels_last(data)
        order = torch.channels_last if last else torch.contiguous_format
        return torch.empty(data.shape, dtype=data.dtype, device=data.device, memory_format=order).copy_(data)

    def _capture_prepared(self, shared: _Device, prepared: prepared_weights.Prepared, arguments: Sequence[torch.Tensor]) -> None:
        self.weight_guard = prepared_weights.Unchanged(prepared.weights(arguments))
        with no_grad():
            self.derived_weights = prepared.prepare(*arguments)
            self._graph, self.outputs = shared.captured(prepared.run, [*arguments, *self.derived_weights])

    def explain(self) -> list[str]:
        lines, prefix = ([], "native, ") if self.prepared is None else (self.prepared.explain(), "")
        if self.obstacle is not None:
            return [*lines, f"{prefix}not as a CUDA graph: {self.obstacle}"]
        captured = f"captured as a CUDA graph ({self.captures} x)" if self._graph is not None else "to be captured as a CUDA graph"
        return [*lines, prefix + captured]
