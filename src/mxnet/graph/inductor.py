"""The `inductor` backend: ``torch.compile``, where there is a compiler for it."""
import os
import shutil
from collections.abc import Callable

import torch

from ..base import MXNetError
from .backends import Unavailable, prepare
from .program import Program, draws


class Inductor:
    """Compiles for one set of shapes, for inference and for training.

    Options
    -------
    mode : {'default', 'reduce-overhead', 'max-autotune', 'max-autotune-no-cudagraphs'}
        How long ``torch.compile`` may search.
    """

    name = "inductor"
    specializes = True
    trains = True

    def available(self) -> bool:
        """Whether there is a C++ compiler, or a GPU to compile for with Triton."""
        return torch.cuda.is_available() or (os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")) is not None

    def compile(self, program: Program, mode: str = "default") -> Callable:
        """The compiled module.

        Raises
        ------
        MXNetError
            If there is no compiler, or `mode` is unknown.
        """
        modes = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
        if mode not in modes:
            raise MXNetError(f"backend 'inductor': `mode` must be one of {', '.join(modes)}, received {mode!r}")
        if not self.available():
            raise Unavailable("backend 'inductor' needs a C++ compiler (g++ or clang++, or its path in CXX)")
        device = program.inputs[0].device if program.inputs else torch.device("cpu")
        program.report += prepare(program.module, device, fuse=False)
        program.note(f"inductor: the whole graph, mode {mode}")
        for node in program.graph.nodes:
            if node.op == "call_function":
                # An operator is one call for torch.compile's front end; what is inside is traced with its gradient. What
                # depends on values (loops, operators of the user's) or draws random numbers cuts the graph.
                node.target = torch.compiler.disable(node.target) if draws(node) else torch.compiler.allow_in_graph(node.target)
        program.module.recompile()
        return torch.compile(program.module, dynamic=False, mode=None if mode == "default" else mode)
