"""Training on GPUs as captured CUDA graphs: one of a graph's forward pass, one of its backward pass.

The program calls, differentiates and updates as usual; between the calls it may read every value. Weights are read in place, so that an
update needs no new capture. Data is copied into the capture's buffers; gradients are computed in the capture's memory, which
the arrays of gradients take over (`ndarray.memory_format.lent`): as in MXNet the next backward pass writes there.

The results that a forward pass saves for the backward pass lie in memory that captures share as a stack: a pass that begins while another one
waits for its gradients (a loss after its network, or one network twice) takes the next `_Level`, to which its capture belongs.
"""
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from .... import environment
from ....kernels.runtime import channel_kernels
from ....ndarray import dispatch, memory_format
from ....ops import differentiation, random_state, sparse_input_linear
from ....ops.grad_mode import enable_grad
from ...instrumentation import instrumented
from ...program import Function, Program, attributes_of, mutates_inputs, operator_of
from . import graph_capture

_WARM_UPS = 2  # steps in which cuDNN and cuBLAS select algorithms and allocate memory
_MOST_LEVELS = 4  # passes that may wait for their gradients at the same time
_MOST_CAPTURES = 4  # of one graph and level, after which its weights are assumed to move at every call
PATIENCE = 5  # steps with the same shapes before a capture, if shapes are not promised to be fixed


def wanted(fixed_shape: bool) -> int | None:
    """Return the number of steps before a capture; None for no capture, by ``MXNET_ENABLE_CUDA_GRAPHS`` or ``MXNET_EXEC_BULK_EXEC_TRAIN``."""
    if not environment.get_bool("MXNET_EXEC_BULK_EXEC_TRAIN"):
        return None
    asked = graph_capture.asked()
    return None if asked is False else 1 if asked or fixed_shape else PATIENCE


def obstacle(module: fx.GraphModule, inputs: Sequence[torch.Tensor], device: torch.device) -> str | None:
    """Return the reason why a training graph cannot be captured, as text; None if there is none."""
    program = Program(module, inputs)
    for node, label, reason in graph_capture.operators_of(program, device):
        if reason is not None:
            return reason
        if mutates_inputs(node):
            if any(source.op != "placeholder" for source in written(node)):
                return f"{label} writes to what others compute"
        elif node not in program.values and all(source in program.values for source in node.all_input_nodes):
            return f"the shape of {label} is not known before it runs"
    return None


def written(node: fx.Node) -> list[fx.Node]:
    """Return the nodes whose values a node writes to."""
    op = operator_of(node)
    if op is None or not mutates_inputs(node):
        return []
    names = list(op.inputs)
    return [source for name, source in zip(names, node.args) if name in op.mutates and isinstance(source, fx.Node)]


class _Level:
    """The memory of the captures of one level in the stack of passes that wait for their gradients."""

    def __init__(self) -> None:
        self.pool = graph_capture.Pool()
        self._waiting: weakref.ref | None = None  # the pass whose gradients may still be computed
        self._stream: Any = None

    @property
    def free(self) -> bool:
        return self._waiting is None or self._waiting() is None

    def take(self, run: "_Pass") -> None:
        self._waiting = weakref.ref(run)

    def follow(self, stream: Any) -> None:
        """Let the next run, on this stream, wait for the last run on another stream."""
        if self._stream is not None and self._stream != stream:
            stream.wait_stream(self._stream)
        self._stream = stream


_levels: dict[torch.device, list[_Level]] = {}
_lock = threading.RLock()  # of all levels; a process has one capture at a time, and replays only launch work


def levels(device: torch.device) -> list[_Level]:
    """Return the stack of memory levels of a device, which grows with the forward passes that wait for their gradients."""
    return _levels.setdefault(device, [])


class _Pass:
    """One forward pass. It lives as long as its gradients may be computed.

    Attributes
    ----------
    instance : _Instance
    values : sequence of torch.Tensor
        The inputs.
    """

    def __init__(self, owner: "Captured", instance: "_Instance", values: Sequence[torch.Tensor]):
        self.owner, self.instance, self.values = owner, instance, values
        self.random = random_state.get_state(owner.device) if owner.is_stochastic else None


class Captured:
    """The captured training of a graph with data of one set of shapes. Several threads may call it at once.

    Its first runs are recorded by torch. Once it is `ready` it also has the methods of a graph that computes its gradients without torch's autograd
    (`runtime.explicit_gradients.ExplicitGraph`), whose functions and threads take longer than the replays of a small network.

    Attributes
    ----------
    obstacle : str or None
        The reason why `native` runs the graph instead.
    captures : int
        The number of captures.
    recorded : list of bool
        For each output, True if a gradient goes through it; empty before the first capture.
    inputs : int
        The number of inputs.

    Parameters
    ----------
    native : callable
        Runs the graph on torch, recorded by autograd: the captured function.
    module : torch.fx.GraphModule
        The graph as it was lowered.
    inputs : list of torch.Tensor
        Arguments of `function`.
    weights : sequence of int
        Positions of the inputs that are read in place.
    differentiated : sequence of int
        Positions of the inputs with gradients.
    device : torch.device
    patience : int
        The number of calls that `native` runs first.
    """

    self_instrumented = True  # `function` reports to the observer itself

    def __init__(self, native: Function, module: fx.GraphModule, inputs: Sequence[torch.Tensor], weights: Sequence[int],
                 differentiated: Sequence[int], device: torch.device, patience: int):
        self.device, self.captures, self.obstacle = device, 0, obstacle(module, inputs, device)
        self.differentiated, self.recorded, self.inputs = differentiated, list[bool](), len(inputs)
        self._native, self._patience = native, patience
        placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
        changed = {source for node in module.graph.nodes for source in written(node)}
        self.written = [i for i, n in enumerate(placeholders) if n in changed]
        in_place = {*weights, *self.written}
        self.in_place = sorted(in_place)
        self.data = [i for i in range(len(inputs)) if i not in in_place]
        self.is_stochastic = any(operator_of(n) is not None and operator_of(n).holds("stochastic", attributes_of(n)) for n in module.graph.nodes
                         if n.op == "call_function")
        self._instances: dict[int, _Instance] = {}  # by level

    def function(self, *inputs: torch.Tensor) -> Sequence[torch.Tensor]:
        """Return the outputs, a tuple of tensors."""
        if dispatch.graph_observer is not None:
            return instrumented(self._native)(*inputs)
        if self._patience > 0:
            self._patience -= 1
        elif self.obstacle is None and not graph_capture.cuda.is_current_stream_capturing():
            with _lock:
                now = self._begun(inputs)
                if now is not None:
                    outputs = _Replay.apply(now, *map(inputs.__getitem__, self.differentiated))
                    return outputs if isinstance(outputs, tuple) else (outputs,)
        return self._native(*inputs)

    @property
    def ready(self) -> bool:
        """True if it was captured, and runs may be replays."""
        return bool(self.recorded) and self.obstacle is None and not graph_capture.cuda.is_current_stream_capturing()

    @property
    def has_own_results(self) -> bool:
        """True if a gradient goes through an output; all are copies."""
        return any(self.recorded)

    def forward(self, inputs: Sequence[torch.Tensor], dtype: torch.dtype | None = None) -> tuple[list[torch.Tensor], _Pass] | None:
        """Return the outputs and what `backward` needs; None if no replay is possible. The outputs may have any type, whatever `dtype` is."""
        with _lock:
            now = self._begun(inputs)
            return None if now is None else (list(now.instance.forward(inputs)), now)

    def backward(self, now: _Pass, seeds: Sequence[torch.Tensor | None], receive: Callable[[int, torch.Tensor], object],
                 lend: Callable[[int], torch.Tensor | None] = lambda place: None, keep: bool = False) -> None:
        """Compute the gradients of a pass, given those of the outputs, and call ``receive(position, gradient)`` for each.

        They lie in the memory of the capture, which is not lent, and can be computed again.
        """
        gradients = now.instance.backward([seed for seed, recorded in zip(seeds, self.recorded) if recorded])
        for place, gradient in zip(self.differentiated, gradients):
            if gradient is not None:
                receive(place, gradient)

    def again(self, now: _Pass, run: Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]) -> Sequence[torch.Tensor]:
        """Return the outputs of another run of a pass, recorded by torch for a second derivative: from now on `native` runs at each call."""
        self.obstacle = "its gradients are differentiated"
        self._instances.clear()
        before = {i: now.values[i].detach().clone() for i in self.written}
        state = random_state.get_state(self.device) if self.is_stochastic else None
        if self.is_stochastic:
            random_state.set_state(self.device, now.random)
        try:
            return run(now.values)
        finally:
            if self.is_stochastic:
                random_state.set_state(self.device, state)
            for i, value in before.items():
                now.values[i].detach().copy_(value)

    def _begun(self, inputs: Sequence[torch.Tensor]) -> _Pass | None:
        """Return a pass on these inputs, to which a level of memory belongs from now on; None if there is no replay for them."""
        instance = self._instance(inputs)
        if instance is None:
            return None
        now = _Pass(self, instance, inputs)
        instance.level.take(now)
        return now

    def _instance(self, inputs: Sequence[torch.Tensor]) -> "_Instance | None":
        """Return a capture for these inputs on a free level; None if all are in use, kernels are being compiled for it, or capturing fails."""
        stack = levels(self.device)
        number = next((i for i, level in enumerate(stack) if level.free), len(stack))
        if number == _MOST_LEVELS:
            return None
        instance = self._instances.get(number)
        places = _places(map(inputs.__getitem__, self.in_place))
        if instance is not None and instance.places == places:
            return instance
        if channel_kernels.compiling():
            return None
        if self.captures >= _MOST_CAPTURES * (number + 1):
            self.obstacle = f"the weights moved after each of {self.captures} captures"
            return None
        if number == len(stack):
            stack.append(_Level())
        try:  # an earlier capture is released afterwards: capturing waits until nothing runs
            instance = self._instances[number] = _Instance(self, self._native, inputs, places, stack[number])
        except Exception as error:  # a failed capture must not prevent the run
            # Torch's error at the end of a failed capture hides the original one.
            cause = error.__context__ or error
            self.obstacle = f"capturing failed: {(str(cause).splitlines() or [type(cause).__name__])[0]}"
            self._instances.pop(number, None)
            return None
        self.captures += 1
        return instance

    def recorded_gradients(self, now: _Pass, gradients: Sequence[torch.Tensor | None]) -> Sequence[torch.Tensor | None]:
        """Return the gradients of a pass, recorded for a second derivative, which captured graphs do not have."""
        with enable_grad():
            outputs = self.again(now, lambda values: self._native(*values))
        heads = [(o, g) for o, g in zip((o for o in outputs if o.requires_grad), gradients) if g is not None]
        return differentiation.gradients([o for o, _ in heads], [now.values[i] for i in self.differentiated], [g for _, g in heads],
                                         retain_graph=True, create_graph=True)

    def explain(self) -> list[str]:
        if self.obstacle is not None:
            return [f"native, not as CUDA graphs: {self.obstacle}"]
        if not self._instances:
            return ["native, to be captured as CUDA graphs"]
        return [f"native, captured as CUDA graphs of the forward and the backward pass ({self.captures} x)"]


def _warm_up(owner: Captured, native: Function, arguments: Sequence[torch.Tensor], generator: Any) -> None:
    """Run some steps, then restore written inputs and the random state."""
    before = {i: arguments[i].clone() for i in owner.written}
    state = None if generator is None else generator.get_state()
    try:
        for _ in range(_WARM_UPS):
            heads = [o for o in native(*arguments) if o.requires_grad]
            differentiation.gradients(heads, [arguments[i] for i in owner.differentiated], [torch.ones_like(h) for h in heads])
    finally:
        for i, value in before.items():
            arguments[i].copy_(value)
        if generator is not None:
            generator.set_state(state)


def _places(tensors: Any) -> list[tuple]:
    """Return the addresses and strides of tensors."""
    return [(t.data_ptr(), t.stride()) for t in tensors]


class _Instance:
    """The two captured graphs with their memory."""

    def __init__(self, owner: Captured, native: Function, inputs: Sequence[torch.Tensor], places: list[tuple], level: _Level):
        cuda = graph_capture.cuda
        self.level, self._device, self.places = level, owner.device, places
        arguments = [t.detach() for t in inputs]
        for i in owner.data:
            arguments[i] = torch.empty(inputs[i].shape, dtype=inputs[i].dtype, device=inputs[i].device).copy_(arguments[i])
        self._buffers = [(i, arguments[i]) for i in owner.data]
        for i in owner.differentiated:
            arguments[i] = arguments[i].detach().requires_grad_()
        generator = random_state.generator(owner.device) if owner.is_stochastic else None
        stream, pool = graph_capture.stream(owner.device), level.pool.take()
        with graph_capture.capture_lock, cuda.device(owner.device), enable_grad():
            stream.wait_stream(cuda.current_stream())
            with cuda.stream(stream):
                _warm_up(owner, native, arguments, generator)
                # Outside of the memory that captures share, since the program may read gradients until the next backward pass.
                leaves = [arguments[i] for i in owner.differentiated]
                places_of_gradients = [torch.empty_like(t) for t in leaves]
                for leaf, place in zip(leaves, places_of_gradients):
                    if leaf.numel() >= sparse_input_linear.LARGE:  # a fully connected layer may compute its gradient there
                        sparse_input_linear.lend_memory(leaf, place)
                self._forward, self._backward = cuda.CUDAGraph(), cuda.CUDAGraph()
                if generator is not None:
                    self._forward.register_generator_state(generator)
                # Other threads, such as those that load data, may go on allocating meanwhile.
                with cuda.graph(self._forward, stream=stream, pool=pool, capture_error_mode="thread_local"):
                    outputs = native(*arguments)
                owner.recorded = [o.requires_grad for o in outputs]
                heads = [o for o in outputs if o.requires_grad]
                self._heads, self._heads_are_ones = [torch.empty_like(h) for h in heads], [False] * len(heads)
                with cuda.graph(self._backward, stream=stream, pool=pool, capture_error_mode="thread_local"):
                    gradients = differentiation.gradients(heads, leaves, self._heads)
                    if any(g is not None and g.is_sparse for g in gradients):
                        raise NotImplementedError("a gradient has only some rows")
                    elsewhere = [(t, g) for t, g in zip(places_of_gradients, gradients) if g is not None and g.data_ptr() != t.data_ptr()]
                    if elsewhere:
                        torch._foreach_copy_([t for t, _ in elsewhere], [g for _, g in elsewhere])
            cuda.current_stream().wait_stream(stream)
        level.pool.give(pool, self._forward, self._backward)
        self._outputs = [o.detach() for o in outputs]
        self._gradients = [t.detach() if g is not None else None for t, g in zip(places_of_gradients, gradients)]
        # Those of weights only: each array of data has a gradient of its own.
        self._lent = memory_format.lend([t for i, t in zip(owner.differentiated, self._gradients) if t is not None and i in owner.in_place], self)

    def forward(self, inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        with _lock:
            self.level.follow(graph_capture.cuda.current_stream(self._device))
            for i, buffer in self._buffers:
                buffer.copy_(inputs[i])
            self._forward.replay()
            return tuple([o.clone() for o in self._outputs])

    def backward(self, gradients: Sequence[torch.Tensor | None]) -> tuple[torch.Tensor | None, ...]:
        with _lock:
            self.level.follow(graph_capture.cuda.current_stream(self._device))
            for i, (buffer, gradient) in enumerate(zip(self._heads, gradients)):
                are_ones = gradient is not None and differentiation.are_ones(gradient)
                if gradient is None:
                    buffer.zero_()
                elif not (are_ones and self._heads_are_ones[i]):
                    buffer.copy_(gradient)
                self._heads_are_ones[i] = are_ones
            self._backward.replay()
            # Separate tensor objects, which torch uses as the leaves' gradients without a copy.
            return tuple([None if t is None else t.detach() for t in self._gradients])


class _Replay(torch.autograd.Function):
    """A captured forward pass and its backward pass, as torch records them."""

    @staticmethod
    def forward(ctx: Any, now: _Pass, *leaves: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.now = now
        ctx.set_materialize_grads(False)
        outputs = now.instance.forward(now.values)
        ctx.mark_non_differentiable(*[o for o, recorded in zip(outputs, now.owner.recorded) if not recorded])
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        now = ctx.now
        wanted = [g for g, recorded in zip(gradients, now.owner.recorded) if recorded]
        if torch.is_grad_enabled():
            return (None, *now.owner.recorded_gradients(now, wanted))
        return (None, *now.instance.backward(wanted))
