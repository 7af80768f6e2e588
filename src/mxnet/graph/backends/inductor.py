"""The `inductor` backend: ``torch.compile``, if a compiler is available."""
import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...base import MXNetError
from ...kernels.gemm.tensor_cores import suits, switched
from ...ndarray import dispatch
from ...ndarray.dispatch import Call
from ...suggestions import shortened
from ..program import Program, is_stochastic
from .registry import Unavailable, prepare


class Inductor:
    """The backend that compiles for one set of shapes by ``torch.compile``, for inference and for training.

    Options
    -------
    mode : {'default', 'reduce-overhead', 'max-autotune', 'max-autotune-no-cudagraphs'}
        The extent of the search of ``torch.compile``.
    """

    name = "inductor"
    specializes = True
    trains = True

    def available(self) -> bool:
        """Return True if there is a C++ compiler, or a GPU to compile for with Triton."""
        return torch.cuda.is_available() or (os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")) is not None

    def require(self) -> None:
        """Raise `Unavailable` if there is no compiler."""
        if not self.available():
            raise Unavailable("backend 'inductor' needs a C++ compiler (g++ or clang++, or its path in CXX)")

    def compile(self, program: Program, mode: str = "default") -> Callable:
        """Return the compiled module.

        Raises
        ------
        MXNetError
            If there is no compiler, or `mode` is unknown.
        """
        modes = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
        if mode not in modes:
            raise MXNetError(f"backend 'inductor': `mode` must be one of {', '.join(modes)}, received {shortened(mode)}")
        self.require()
        device = program.inputs[0].device if program.inputs else torch.device("cpu")
        program.report += prepare(program.module, device, fuse=False)
        program.note(f"inductor: the whole graph, mode {mode}")
        for node in program.graph.nodes:
            if node.op == "call_function":
                # An operator is one call for torch.compile's front end; its implementation is traced with its gradient. Operators that depend on
                # values (loops, operators of the user's) or draw random numbers split the graph.
                node.target = torch.compiler.disable(node.target) if is_stochastic(node) else torch.compiler.allow_in_graph(node.target)
        program.module.recompile()
        from torch._inductor import list_mode_options  # the import takes a second
        options = {**list_mode_options(mode), _KERNEL_EVENTS: sys.platform == "linux"}
        return Compiled(torch.compile(program.module, dynamic=False, options=options))


class Compiled:
    """A compiled graph, called like its module. Instrumented calls report the kernels and their times, as recorded by torch."""

    def __init__(self, function: Callable):
        self._function = function
        self._ran = self._warned = False

    def __call__(self, *tensors: torch.Tensor) -> Sequence[torch.Tensor]:
        self._ran = True
        return self._run(*tensors)

    def _run(self, *tensors: torch.Tensor) -> Any:
        if any(map(suits, tensors)):
            return switched(self._function, *tensors)
        if self._warned:
            return self._function(*tensors)
        with warnings.catch_warnings():  # torch's advice on TF32, which does not apply with full precision
            warnings.filterwarnings("ignore", "TensorFloat32 tensor cores")
            self._warned = True
            return self._function(*tensors)

    def instrumented(self, *tensors: torch.Tensor) -> Sequence[torch.Tensor]:
        """Run the graph and report the call and its kernels to the graph observer. On a GPU torch's profiler reports the kernels."""
        compiles, self._ran = not self._ran, True
        listens = not compiles and not any(t.is_cuda for t in tensors) and _listen()
        start = time.perf_counter_ns()
        try:
            enclose = dispatch.enclose
            results = self._run(*tensors) if enclose is None else enclose("inductor", self._run, tensors, {})
        finally:
            end = time.perf_counter_ns()
            recorded = torch._C._autograd._disable_profiler_legacy() if listens else ()
        observer = dispatch.graph_observer
        if observer is not None:
            note = _FOLLOW if listens else "compiles in its first call" if compiles else _UNHEARD
            observer(Call("inductor", note=note, graph=True), start, end, tensors, results, kernels(recorded) if recorded else ())
        return results


_KERNEL_EVENTS = "cpp.enable_kernel_profile"  # kernels record events, some ns for each, if a profiler runs
_FOLLOW = "its kernels follow one another here; how long each took is what torch recorded"
_UNHEARD = "torch's profiler tells of its kernels"
_KERNELS = ("aten::", "mkl::", "mkldnn::", "mkldnn_")


def _listen() -> bool:
    """Start torch's recorder for this thread; return False if the program's own profiler runs, or this torch has no such recorder."""
    try:
        state, details = torch.autograd.ProfilerState.CPU, torch._C._profiler._ExperimentalConfig()
        torch._C._autograd._enable_profiler_legacy(torch.autograd.ProfilerConfig(state, False, False, False, False, False, details))
    except (AttributeError, RuntimeError):
        return False
    return True


def kernels(recorded: Sequence[Sequence[Any]]) -> list[tuple[Call, int]]:
    """Return the kernels among torch's events, by thread: inductor's own and the torch operators that it calls, in order, with their ns."""
    calls = []
    for events in recorded:
        stack: list[tuple[Any, bool]] = []  # open events, and True for kernels and events within kernels
        for event in events:
            if event.kind() == "push":
                name, within = event.name(), bool(stack) and stack[-1][1]
                stack.append((event, within or "_fused_" in name or name.startswith(_KERNELS)))
            elif event.kind() == "pop" and stack:
                begun, is_kernel = stack.pop()
                if is_kernel and not (stack and stack[-1][1]):
                    calls.append((Call(begun.name(), note="by inductor"), int(begun.cpu_elapsed_us(event) * 1000)))
    return calls

