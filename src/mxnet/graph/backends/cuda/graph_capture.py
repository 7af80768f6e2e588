"""Inference on GPUs as captured CUDA graphs, which launch the kernels of a whole run at once.

A captured graph knows addresses, not values. It reads the data from buffers of its own, filled before each run, and the weights where they
are: new values need no new capture, another address, shape, order in memory or type does. What it computes stays in its memory until
the next run, so callers get copies.
"""
import os
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import fx

from .... import environment
from ...program import Function, Program, attributes_of, by_values, changes, operator_of

_cuda: Any = torch.cuda  # tests put another in its place
_WARM_UPS = 3  # runs that let cuDNN and cuBLAS choose algorithms and take their memory; as many as torch's own captures do
_MOST = 4  # captures of one graph, after which its weights are taken to move all the time
_one_at_a_time = threading.Lock()  # torch allows one capture in a process


def asked() -> bool | None:
    """What ``MXNET_ENABLE_CUDA_GRAPHS`` says; None where it says nothing."""
    return environment.get_bool("MXNET_ENABLE_CUDA_GRAPHS") if os.environ.get("MXNET_ENABLE_CUDA_GRAPHS") else None


def wanted(fixed_shape: bool) -> bool:
    """Whether a graph is to be captured: ``MXNET_ENABLE_CUDA_GRAPHS`` decides; where it is unset, the promise of fixed shapes."""
    found = asked()
    return fixed_shape if found is None else found


def random_in_inference(node: fx.Node) -> bool:
    """Whether a node draws random numbers outside of training, too."""
    op = operator_of(node)
    return op is not None and (op.holds("draws", {**attributes_of(node), "training": False}) or by_values(node))


def obstacle(module: fx.GraphModule, inputs: Sequence[torch.Tensor], device: torch.device) -> str | None:
    """Why the graph of a lowered module cannot be captured, as text; None if nothing is known to be in the way."""
    program = Program(module, inputs)
    for node in program.graph.nodes:
        op = operator_of(node)
        if node.op != "call_function" or op is None:
            continue
        what = f"{node.meta['node'].name} ({op.name})"
        if by_values(node):
            return f"{what} may depend on values"
        if random_in_inference(node):
            return f"{what} draws random numbers"
        if changes(node):
            return f"{what} writes to its inputs"
        if any(isinstance(value, torch.device) and value != device for value in node.kwargs.values()):
            return f"{what} is on another device"
        if node not in program.values:
            return f"the shape of {what} is not known before it runs"
    return None


class Captured:
    """A captured graph runs, with data of one set of shapes; `native`, where it cannot be captured. Several threads may call it at once.

    Attributes
    ----------
    obstacle : str or None
        Why `native` runs the graph instead.
    captures : int
        How often the graph was captured: once, and again after weights moved.

    Parameters
    ----------
    native : callable
        Runs the graph on torch: what gets captured.
    module : torch.fx.GraphModule
        The graph as it was lowered.
    inputs : list of torch.Tensor
        As they come to `function`.
    weights : sequence of int
        Positions of the inputs that are read where they are.
    device : torch.device
    """

    def __init__(self, native: Function, module: fx.GraphModule, inputs: Sequence[torch.Tensor], weights: Iterable[int], device: torch.device):
        self.device, self.captures, self.obstacle = device, 0, obstacle(module, inputs, device)
        self._native, self._weights = native, tuple(weights)
        self._data = [i for i in range(len(inputs)) if i not in set(self._weights)]
        self._lock = threading.Lock()
        self._graph: Any = None
        self._done: Any = None  # the event behind the last run, which a run on another stream waits for
        self._places: list[tuple] | None = None
        self._buffers: list[torch.Tensor] = []
        self._outputs: tuple[torch.Tensor, ...] = ()

    def function(self, *inputs: torch.Tensor) -> Sequence[torch.Tensor]:
        """The outputs, a tuple of tensors."""
        if self.obstacle is None and not _cuda.is_current_stream_capturing():
            with self._lock:
                places = [(t.data_ptr(), t.stride(), t.shape, t.dtype) for t in map(inputs.__getitem__, self._weights)]
                if places != self._places and self.obstacle is None:
                    self._capture(inputs, places)
                if self._graph is not None:
                    return self._replay(inputs)
        return self._native(*inputs)

    def holds(self, inputs: Sequence[torch.Tensor]) -> bool:
        return True

    def _replay(self, inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        stream = _cuda.current_stream(self.device)
        stream.wait_event(self._done)
        for i, buffer in zip(self._data, self._buffers):
            buffer.copy_(inputs[i])
        self._graph.replay()
        found = tuple(t.clone() for t in self._outputs)
        self._done.record(stream)
        return found

    def _capture(self, inputs: Sequence[torch.Tensor], places: list[tuple]) -> None:
        if self._done is not None:
            self._done.synchronize()  # the last run of the capture that goes may still read its memory
        self._graph, self._places, self._buffers, self._outputs = None, None, [], ()
        if self.captures == _MOST:
            self.obstacle = f"the weights moved after each of {_MOST} captures"
            return
        arguments = list(inputs)
        for i in self._data:
            arguments[i] = torch.empty(inputs[i].shape, dtype=inputs[i].dtype, device=inputs[i].device).copy_(inputs[i])
        try:
            graph, outputs = _captured(self._native, arguments, self.device)
        except Exception as error:  # whatever an operator does that cannot be captured, the graph still runs
            # Where the capture broke, torch's complaint about ending it hides what went wrong.
            cause = error.__context__ or error
            self.obstacle = f"capturing failed: {(str(cause).splitlines() or [type(cause).__name__])[0]}"
            return
        self._graph, self._outputs, self._places = graph, outputs, places
        self._buffers, self._done = [arguments[i] for i in self._data], _cuda.Event()
        self.captures += 1

    def explain(self) -> list[str]:
        if self.obstacle is not None:
            return [f"native, not as a CUDA graph: {self.obstacle}"]
        return [f"native, captured as a CUDA graph ({self.captures} x)" if self._graph is not None else "native, to be captured as a CUDA graph"]


def _captured(function: Function, inputs: Sequence[torch.Tensor], device: torch.device) -> tuple:
    """A CUDA graph of ``function(*inputs)``, and the tensors that hold the outputs of its last replay."""
    with _one_at_a_time, _cuda.device(device):
        stream = _cuda.Stream()
        stream.wait_stream(_cuda.current_stream())
        # One stream for all, because libraries keep their state for each. Leaving it also leaves a capture that did not end.
        with _cuda.stream(stream):
            for _ in range(_WARM_UPS):
                function(*inputs)
            graph = _cuda.CUDAGraph()
            # Other threads, such as those that load data, may go on allocating meanwhile.
            with _cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
                outputs = function(*inputs)
        _cuda.current_stream().wait_stream(stream)
        return graph, tuple(outputs)
