"""Execution of a Symbol on arrays: the common part of a bound `Executor` and a `CachedOp`."""
from collections.abc import Sequence
from typing import Any

import torch

from ... import openmp, threads
from ...context import Context
from ...ndarray import NDArray, memory_format
from ...ndarray.dispatch import mode
from ...symbol.node import auxiliary, topological
from ..tuning.inference_states import State
from . import sparse_run
from .explicit_gradients import TrainingGraph
from .monitoring import Watcher
from .runner import GraphRunner


class Session:
    """The session of a graph: it prepares inputs, and runs the graph in a mode: training or not, recorded or not.

    Attributes
    ----------
    runner : GraphRunner
    written : list of int
        Positions of the inputs, in the runner's order, that the graph writes to, such as moving averages.
    always_writes : bool
        If True, it also writes in inference, as an optimizer's update in a graph does; BatchNorm and its kind write in training only.
    runs_sparse : bool
        If True, the operators can be called one by one, on arrays that stay sparse.

    A session holds no values: several threads may use it at once.
    """

    def __init__(self, runner: GraphRunner):
        nodes = runner.symbol._nodes()
        states = auxiliary(nodes)
        self.runner = runner
        self.written = [i for i, node in enumerate(n for n in nodes if n.op is None) if id(node) in states]
        self.always_writes = any(n.op is not None and n.op.writes(False) for n in nodes)
        self.runs_sparse = sparse_run.suits(nodes)
        self._order = topological(runner.outputs)

    def prepare(self, arrays: Sequence[NDArray], tensors: list[torch.Tensor], training: bool, recorded: bool) -> None:
        """Convert weights to the memory format of training, and announce the writes to come.

        Needed in training, and if the graph always writes. It has to precede every other access to the tensors' memory, and
        replaces the tensors to be written in `tensors`, which are the arrays' own.
        """
        if training and recorded:
            for i in self.runner.channels_last:
                memory_format.channels_last(arrays[i])
        if training or self.always_writes:
            for i in self.written:
                tensors[i] = arrays[i]._writable()

    def runs_single_threaded(self, tensors: Sequence[torch.Tensor], ctx: Context) -> bool:
        """Return True if training on tensors of these shapes should use one thread; see `threading_policy`."""
        return ctx.device_type == "cpu" and self.runner.runs_single_threaded(tensors)

    def run(self, tensors: Sequence[torch.Tensor], ctx: Context, training: bool, recorded: bool,
            observe: Watcher | None = None, single_threaded: bool = False) -> list[torch.Tensor]:
        """Return the outputs on dense tensors, in the order of the runner's inputs; with `single_threaded` by this thread alone.

        Torch's default is to record; here gradients are recorded if and only if `recorded`.
        """
        threads.poll()
        before, switched = mode.training, torch.is_grad_enabled() is not recorded
        try:  # Ctrl-C may interrupt any call: all are inside, and the last one needs no cleanup
            if before is not training:
                mode.training = training
            if switched:
                torch._C._set_grad_enabled(recorded)
            if single_threaded:
                return openmp.alone(self.runner, tensors, training, ctx, observe)
            return self.runner(tensors, training, ctx, observe)
        finally:
            if before is not training:
                mode.training = before
            if switched:
                torch._C._set_grad_enabled(not recorded)

    def run_explicit(self, tensors: Sequence[torch.Tensor], ctx: Context, wanted: Sequence[int], single_threaded: bool,
                     own_results: bool = False, graph: TrainingGraph | None = None) -> tuple[TrainingGraph, list[torch.Tensor], Any] | None:
        """Train without torch's autograd: return the graph, the outputs, and what its `backward` needs; None where that is not possible.

        The gradients are those of the inputs in the places `wanted`. With `own_results` no graph runs of which a result is an input, or none has a
        gradient, and on a CPU all results are float32.
        `graph` is that of an earlier call on tensors of these shapes and types. Where this call fails, `run` raises the error.
        """
        threads.poll()
        before, switched = mode.training, torch.is_grad_enabled()
        try:  # as in `run`
            mode.training = True
            if switched:
                torch._C._set_grad_enabled(False)
            if graph is None:
                graph = self.runner.explicit(tensors, ctx.torch_device, wanted)
            elif not graph.ready or not self.runner.same_weights(tensors):
                return None
            if graph is None or own_results and not graph.has_own_results:
                return None
            dtype = torch.float32 if own_results else None
            run = openmp.alone(graph.forward, tensors, dtype) if single_threaded else graph.forward(tensors, dtype)
            return None if run is None else (graph, *run)
        except Exception:
            return None
        finally:
            mode.training = before
            if switched:
                torch._C._set_grad_enabled(True)

    def decided(self, tensors: Sequence[torch.Tensor], ctx: Context) -> State | None:
        """Return the final state of inference on tensors like these; None if it is not decided, or the graph writes to its inputs."""
        return None if self.always_writes else self.runner.decided(tensors, ctx.torch_device)

    def run_decided(self, state: State, tensors: Sequence[torch.Tensor], same: bool) -> Sequence[torch.Tensor] | None:
        """Return the outputs in inference by a state of `decided`; None if the state does not hold any more, or the run fails.

        `same`: the caller knows that the weights are the very tensors of an earlier successful call, so that they need not be compared one by one.
        """
        switched = torch.is_grad_enabled()
        try:  # as in `run`
            if switched:
                torch._C._set_grad_enabled(False)
            return self.runner.run_decided(state, tensors, same)
        except Exception:  # `run` raises the error
            return None
        finally:
            if switched:
                torch._C._set_grad_enabled(True)

    def run_sparse(self, arrays: Sequence[NDArray], ctx: Context, training: bool, recorded: bool,
                   observe: Watcher | None = None) -> list[NDArray]:
        """Return the outputs, computed operator by operator on arrays in their storage types."""
        threads.poll()
        before, mode.training = mode.training, training
        try:
            return sparse_run.recorded(lambda: sparse_run.run(self.runner.outputs, arrays, ctx, observe, self._order), recorded)
        finally:
            mode.training = before
