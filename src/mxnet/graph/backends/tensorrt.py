"""The `tensorrt` backend: inference on NVIDIA GPUs at fixed shapes, through the package torch_tensorrt where it is installed.

A graph becomes a `torch.export` program with its weights as constants, of which that package compiles what TensorRT knows.
"""
import importlib.util
import threading
import typing
from collections.abc import Callable, Mapping

import torch
from torch import fx

from ...base import MXNetError
from ...suggestions import shortened
from ...symbol import Symbol
from ..passes import partitioning
from ..program import Program, mutates_inputs
from .cuda.graph_capture import random_in_inference
from .registry import Unavailable, mark, tf32_allowed

# MXNet's names of the types, and torch's; None where nothing is rounded.
_PRECISIONS = {"float32": None, "fp32": None, "float16": torch.float16, "fp16": torch.float16, "bfloat16": torch.bfloat16,
               "bf16": torch.bfloat16}
_SMALLEST = {"workspace_size": 0, "min_block_size": 1, "optimization_level": 0}


class TensorRT:
    """Compiles for one set of shapes, with the weights built in. ``'TensorRT'``, as MXNet calls it, names this backend too.

    Options
    -------
    precision : {'float32', 'float16', 'bfloat16'}, or MXNet's 'fp32', 'fp16', or 'bf16'
        What is computed in where that is harmless, by torch_tensorrt's rules; inputs and outputs keep their types. Float32 is rounded to
        TF32 if torch may do so in convolutions.
    workspace_size : int
        The memory, in bytes, that TensorRT may use besides that of weights and arrays; 0 sets no limit.
    min_block_size : int
        How many operators in a row (torch's, after they were taken apart) are worth an engine; 5 where it is not given.
    optimization_level : int
        From 0 to 5: how long TensorRT may search; 3 where it is not given.
    """

    name = "tensorrt"
    specializes = True
    trains = False
    freezes = True
    devices = ("cuda",)

    def available(self) -> bool:
        """Whether torch_tensorrt is installed and there is a GPU."""
        return importlib.util.find_spec("torch_tensorrt") is not None and torch.cuda.is_available()

    def compile(self, program: Program, **options: typing.Any) -> Callable:
        """A function from the program's inputs to the tuple of its outputs.

        Raises
        ------
        MXNetError
            If an option is unknown or out of range, torch_tensorrt is missing (`Unavailable`), or it cannot compile.
        """
        settings = _settings(**options)
        package = _package()
        device = program.inputs[0].device if program.inputs else torch.device("cuda")
        refused = [n for n in program.graph.nodes if n.op == "call_function" and not _exportable(program, n)]
        for node in refused:
            program.note(f"native: {node.name}")
        if not refused:
            return _compiled(package, program, device, settings, program)
        for name, piece in partitioning.partition(program, lambda node: node not in refused, partitioning.worthwhile).items():
            partitioning.replace(program, name, piece, _compiled(package, piece, device, settings, program))
        program.module.recompile()
        return program.module.forward

    def require(self) -> None:
        """Raise `Unavailable` if torch_tensorrt is missing."""
        _package()

    def optimize(self, symbol: Symbol, args: typing.Any = None, aux: typing.Any = None, ctx: typing.Any = None, shape_dict: typing.Any = None,
                 type_dict: typing.Any = None, stype_dict: typing.Any = None, skip_infer: bool = False, **options: typing.Any) -> Symbol:
        """A copy of the Symbol that runs here when it is bound to a GPU. Engines are made at the first run, from the weights bound then:
        `args`, `aux`, shapes and types are not needed before.

        Raises
        ------
        MXNetError
            If an option is wrong, or torch_tensorrt is missing (`Unavailable`).
        """
        _settings(**options)
        _package()
        return mark(symbol, self.name, options)

    def partition(self, symbol: Symbol) -> Symbol:
        """As `optimize`, for ``get_backend_symbol``."""
        return self.optimize(symbol)


def _package() -> typing.Any:
    try:
        import torch_tensorrt
    except ImportError as error:
        raise Unavailable("backend 'tensorrt' needs the package torch_tensorrt in the version of torch "
                          f"({torch.__version__.partition('+')[0]}): pip install torch-tensorrt; it cannot be imported: {error}") from error
    return torch_tensorrt


def _settings(precision: object = "float32", **options: typing.Any) -> dict[str, typing.Any]:
    """What `torch_tensorrt.dynamo.compile` calls these options."""
    if str(precision) not in _PRECISIONS:
        raise MXNetError(f"backend 'tensorrt': `precision` must be one of {', '.join(_PRECISIONS)}, received {shortened(precision)}")
    settings: dict[str, typing.Any] = {"disable_tf32": not tf32_allowed()}
    if _PRECISIONS[str(precision)] is not None:
        settings.update(enable_autocast=True, autocast_low_precision_type=_PRECISIONS[str(precision)])
    for name, value in options.items():
        if name not in _SMALLEST:
            raise MXNetError(f"backend 'tensorrt' has no option {name!r}; it has {', '.join(sorted((*_SMALLEST, 'precision')))}")
        try:
            settings[name] = int(value)
        except (TypeError, ValueError):
            settings[name] = -1
        if settings[name] < _SMALLEST[name] or name == "optimization_level" and settings[name] > 5:
            raise MXNetError(f"backend 'tensorrt': `{name}` must be an integer from {_SMALLEST[name]} "
                             f"{'to 5' if name == 'optimization_level' else 'on'}, received {shortened(value)}")
    return settings


def _exportable(program: Program, node: fx.Node) -> bool:
    """Whether the node computes the same whenever it is run on the same values, with shapes that are known."""
    return node in program.values and not random_in_inference(node) and not mutates_inputs(node)


def _compiled(package: typing.Any, program: Program, device: torch.device, settings: Mapping[str, typing.Any], root: Program) -> Callable:
    """A function from the inputs of a program, or of a piece of the program `whole`, to the tuple of its outputs."""
    places = [i for i, n in enumerate(program.placeholders) if n not in program.constants]
    values = [program.values[program.placeholders[i]] for i in places]
    types = [program.values[n].dtype for n in program.outputs]
    if not places:
        root.note("native: what depends on weights alone")
        return program.module.forward
    examples = tuple(torch.zeros(v.shape, dtype=v.dtype, device=device) for v in values)
    _build_in(program)
    try:
        with torch.no_grad(), torch.cuda.device_of(examples[0]):
            exported = torch.export.export(program.module, examples, strict=False)
            engine = package.dynamo.compile(exported, arg_inputs=examples, device=device, **settings)
    except Exception as error:
        text = (str(error).splitlines() or [""])[0]
        raise MXNetError(f"backend 'tensorrt' cannot compile the graph: {type(error).__name__}: {text}") from error
    count = sum("_run_on_acc" in name for name, _ in engine.named_children())
    root.note(f"tensorrt: {count} engines for {sum(n.op == 'call_function' for n in program.graph.nodes)} operators" if count else
               "native: torch_tensorrt made no engine of it; its log says why, and min_block_size may be too large")

    lock = threading.Lock()

    def run(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        data = [inputs[i].contiguous() for i in places]
        with lock, torch.cuda.device_of(data[0]):  # an engine runs on the current device, and one run after another
            results = engine(*data)
        return tuple(t.to(dtype) for t, dtype in zip((results,) if isinstance(results, torch.Tensor) else results, types))

    return run


def _build_in(program: Program) -> None:
    """Make buffers of the weights, so that the module takes the other inputs only."""
    for i, node in enumerate(program.placeholders):
        if node in program.constants:
            program.module.register_buffer(f"weight{i}", program.constants[node])
            with program.graph.inserting_before(node):
                node.replace_all_uses_with(program.graph.get_attr(f"weight{i}"))
            program.graph.erase_node(node)
    program.module.recompile()
