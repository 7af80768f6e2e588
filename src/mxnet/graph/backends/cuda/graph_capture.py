"""Inference on GPUs as captured CUDA graphs, which launch the kernels of a whole run at once.

A captured graph knows addresses, not values. It reads the data from buffers of its own, filled before each run, and the weights where they
are: new values need no new capture, another address, shape, order in memory or type does. Weights that were prepared (`prepared_weights`) lie in
buffers, too, which are filled again when one has changed. What a graph computes stays in its memory until the next run, so callers get copies.

All captures of a device take their memory from one pool: what one has computed on the way is overwritten by the others. Their outputs are not, since
these are held; and no two run at once, because each run waits for the one before it.
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
_cuda: Any = torch.cuda  # tests put another in its place
_WARM_UPS = 3  # runs that let cuDNN and cuBLAS choose algorithms and take their memory; as many as torch's own captures do
_MOST = 4  # captures of one graph, after which its weights are taken to move all the time
_one_at_a_time = threading.Lock()  # torch allows one capture in a process
_devices: dict[torch.device, "_Device"] = {}


def asked() -> bool | None:
    """Return what ``MXNET_ENABLE_CUDA_GRAPHS`` says; None where it says nothing."""
    return environment.get_bool("MXNET_ENABLE_CUDA_GRAPHS") if os.environ.get("MXNET_ENABLE_CUDA_GRAPHS") else None


def allowed() -> bool:
    """Return whether graphs may be captured."""
    return asked() is not False


def at_once(fixed_shape: bool) -> bool:
    """Return whether a graph is to be captured at its first call: where ``MXNET_ENABLE_CUDA_GRAPHS`` asks for it, or fixed shapes are promised."""
    return fixed_shape or bool(asked())


def random_in_inference(node: fx.Node) -> bool:
    """Return whether a node draws random numbers outside of training, too."""
    op = operator_of(node)
    return op is not None and (op.holds("draws", {**attributes_of(node), "training": False}) or is_data_dependent(node))


def operators_of(program: Program, device: torch.device) -> Iterator[tuple[fx.Node, str, str | None]]:
    """Yield each operator's node, how a user knows it, and what keeps any graph with it from being captured, None if nothing is known."""
    for node in program.graph.nodes:
        op = operator_of(node)
        if node.op != "call_function" or op is None:
            continue
        what, reason = f"{node.meta['node'].name} ({op.name})", None
        if is_data_dependent(node):
            reason = f"{what} may depend on values"
        elif any(isinstance(value, torch.device) and value != device for value in node.kwargs.values()):
            reason = f"{what} is on another device"
        yield node, what, reason


def obstacle(module: fx.GraphModule, inputs: Sequence[torch.Tensor], device: torch.device) -> str | None:
    """Return why the graph of a lowered module cannot be captured, as text; None if nothing is known to be in the way."""
    program = Program(module, inputs)
    for node, what, reason in operators_of(program, device):
        if reason is not None:
            return reason
        if random_in_inference(node):
            return f"{what} draws random numbers"
        if mutates_inputs(node):
            return f"{what} writes to its inputs"
        if node not in program.values:
            return f"the shape of {what} is not known before it runs"
    return None


class Pool:
    """Memory that captured graphs share."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._graphs: weakref.WeakSet = weakref.WeakSet()  # those that have its memory

    def take(self) -> Any:
        """The handle for the next capture, which `give` gets back where it succeeds: one that fails may leave it in use."""
        handle = self._handle if self._graphs else None  # torch gives up a pool with its last graph
        self._handle = None
        return _cuda.graph_pool_handle() if handle is None else handle

    def give(self, handle: Any, *graphs: Any) -> None:
        self._handle = handle
        self._graphs.update(graphs)


class _Device:
    """The memory, the stream and the order of runs that all captures of a device share.

    Attributes
    ----------
    lock : threading.Lock
        Held while a run is asked for.
    done : torch.cuda.Event
        Behind the last run, which the next one waits for.
    stream : torch.cuda.Stream
        What is captured is captured on it: libraries keep their state for each stream.
    """

    def __init__(self, device: torch.device):
        with _cuda.device(device):
            self.lock, self.done, self._device, self.stream = threading.Lock(), _cuda.Event(), device, _cuda.Stream()
        self._pool = Pool()

    def captured(self, function: Function, inputs: Sequence[torch.Tensor]) -> tuple:
        """A CUDA graph of ``function(*inputs)``, and the tensors that hold the outputs of its last replay."""
        with _one_at_a_time, _cuda.device(self._device):
            stream = self.stream
            stream.wait_stream(_cuda.current_stream())
            stream.wait_event(self.done)
            # One stream for all, because libraries keep their state for each. Leaving it also leaves a capture that did not end.
            with _cuda.stream(stream):
                try:
                    for _ in range(_WARM_UPS):
                        function(*inputs)
                finally:
                    self.done.record(stream)
                graph, pool = _cuda.CUDAGraph(), self._pool.take()
                # Other threads, such as those that load data, may go on allocating meanwhile.
                with _cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
                    outputs = function(*inputs)
            self._pool.give(pool, graph)
            _cuda.current_stream().wait_stream(stream)
            return graph, tuple(outputs)


def _shared(device: torch.device) -> _Device:
    shared = _devices.get(device)
    if shared is None:
        with _one_at_a_time:
            shared = _devices.get(device)
            if shared is None:
                shared = _devices[device] = _Device(device)
    return shared


def stream(device: torch.device) -> Any:
    """The stream of all captures on a device."""
    return _shared(device).stream


class Captured:
    """A captured graph runs, with data of one set of shapes; where it cannot be captured, its operators do. Several threads may call it at once.

    Attributes
    ----------
    obstacle : str or None
        Why operators run instead.
    captures : int
        How often the graph was captured: once, and again after weights moved.
    prepared : Prepared or None
        The graph as it was rewritten for GPUs, if it was.

    Parameters
    ----------
    native : callable
        Runs the graph on torch: what gets captured where nothing could be rewritten.
    module : torch.fx.GraphModule
        The graph as it was lowered.
    inputs : list of torch.Tensor
        As they come to `function`.
    weights : sequence of int
        Positions of the inputs that are read where they are.
    device : torch.device
    exact : bool
        Whether nothing may be rewritten.
    captures : bool
        Whether it may be captured; else what was rewritten runs without.
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
        self._buffers: list[torch.Tensor] = []
        self._outputs: tuple[torch.Tensor, ...] = ()
        self._prepared: Sequence[torch.Tensor] = ()  # weights
        self._unchanged: prepared_weights.Unchanged | None = None

    def function(self, *inputs: torch.Tensor) -> Sequence[torch.Tensor]:
        """The outputs, a tuple of tensors."""
        if dispatch.graph_observer is not None:
            return instrumented(self._native)(*inputs)
        if _cuda.is_current_stream_capturing():  # weights that were prepared in there would not be before it runs
            return self._native(*inputs)
        if self.obstacle is None:
            shared = _shared(self.device)
            with shared.lock:
                if not self._holds(shared, inputs):
                    self._capture(shared, inputs)
                if self._graph is not None:
                    return self._replay(shared, inputs)
        prepared = self.prepared
        return (self._native if prepared is None else prepared.function)(*inputs)

    def holds(self, inputs: Sequence[torch.Tensor]) -> bool:
        return True

    def _holds(self, shared: _Device, inputs: Sequence[torch.Tensor]) -> bool:
        """Return whether the capture is right for these inputs; prepared weights are made again, where the graph reads them, if one has changed."""
        if self.obstacle is not None:
            return True
        if self._graph is None or self._where(inputs) != self._places:
            return False
        prepared = self.prepared
        if prepared is None:
            return True
        weights = prepared.weights(inputs)
        if self._unchanged is not None and self._unchanged.holds(weights):
            return True
        unchanged = prepared_weights.Unchanged(weights)  # before they are read, so that no write is missed
        with no_grad():
            fresh = prepared.prepare(*inputs)
            if any(t.shape != m.shape or t.dtype is not m.dtype for t, m in zip(self._prepared, fresh)):
                return False
            _cuda.current_stream(self.device).wait_event(shared.done)
            for target, source in zip(self._prepared, fresh):
                target.copy_(source)
        self._unchanged = unchanged
        return True

    def _where(self, inputs: Sequence[torch.Tensor]) -> list[tuple]:
        """The places of the weights that the graph reads where they are."""
        return [prepared_weights.place(inputs[i]) for i in (self._weights if self.prepared is None else self._direct)]

    def _replay(self, shared: _Device, inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        stream = _cuda.current_stream(self.device)
        stream.wait_event(shared.done)
        for i, buffer in zip(self._data, self._buffers):
            buffer.copy_(inputs[i])
        self._graph.replay()
        outputs = tuple(t.clone() for t in self._outputs)
        shared.done.record(stream)
        return outputs

    def _capture(self, shared: _Device, inputs: Sequence[torch.Tensor]) -> None:
        if self._graph is not None:
            shared.done.synchronize()  # the last run of the capture that goes may still read its memory
        self._graph, self._places, self._buffers, self._outputs, self._prepared, self._unchanged = None, None, [], (), (), None
        if self.captures == _MOST:
            self.obstacle, self.prepared = f"the weights moved after each of {_MOST} captures", None
            return
        arguments = list(inputs)
        for i in self._data:
            arguments[i] = self._buffer(i, inputs[i])
        try:
            if self.prepared is not None:
                self._capture_prepared(shared, self.prepared, arguments)
        except Exception as error:  # whatever cannot be captured of what was rewritten, the operators may be
            _log.info("graph: not captured as it was rewritten for GPUs: %s", error)
            self.prepared, self._prepared, self._unchanged = None, (), None
        try:
            if self.prepared is None:
                self._graph, self._outputs = shared.captured(self._native, arguments)
        except Exception as error:  # whatever an operator does that cannot be captured, the graph still runs
            # Where the capture broke, torch's complaint about ending it hides what went wrong.
            cause = error.__context__ or error
            self.obstacle = f"capturing failed: {(str(cause).splitlines() or [type(cause).__name__])[0]}"
            return
        self._places, self._buffers = self._where(inputs), [arguments[i] for i in self._data]
        self.captures += 1

    def _buffer(self, number: int, data: torch.Tensor) -> torch.Tensor:
        """A copy of an input for the graph, in the order in memory in which it is read there."""
        last = self.prepared is not None and number in self.prepared.reordered and wants_channels_last(data)
        order = torch.channels_last if last else torch.contiguous_format
        return torch.empty(data.shape, dtype=data.dtype, device=data.device, memory_format=order).copy_(data)

    def _capture_prepared(self, shared: _Device, prepared: prepared_weights.Prepared, arguments: Sequence[torch.Tensor]) -> None:
        self._unchanged = prepared_weights.Unchanged(prepared.weights(arguments))
        with no_grad():
            self._prepared = prepared.prepare(*arguments)
            self._graph, self._outputs = shared.captured(prepared.run, [*arguments, *self._prepared])

    def explain(self) -> list[str]:
        lines, prefix = ([], "native, ") if self.prepared is None else (self.prepared.explain(), "")
        if self.obstacle is not None:
            return [*lines, f"{prefix}not as a CUDA graph: {self.obstacle}"]
        return [*lines, f"{prefix}captured as a CUDA graph ({self.captures} x)" if self._graph is not None else f"{prefix}to be captured as a CUDA graph"]
