"""The `tensorrt` backend: inference on NVIDIA GPUs at fixed shapes, through the package torch_tensorrt where it is installed.

A graph becomes a `torch.export` program with constant weights; the package compiles the operators that TensorRT supports.
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
    """The backend that compiles for one set of shapes, with constant weights. It is also named ``'TensorRT'``, as in MXNet.

    Options
    -------
    precision : {'float32', 'float16', 'bfloat16'}, or MXNet's 'fp32', 'fp16', or 'bf16'
        The type of computations where torch_tensorrt considers it safe; inputs and outputs keep their types. Float32 is rounded to
        TF32 if torch may do so in convolutions.
    workspace_size : int
        The memory, in bytes, that TensorRT may use besides that of weights and arrays; 0 sets no limit.
    min_block_size : int
        The least number of consecutive operators (torch's, after decomposition) of an engine; 5 by default.
    optimization_level : int
        The extent of TensorRT's search, from 0 to 5; 3 by default.
    """

    name = "tensorrt"
    specializes = True
    trains = False
    freezes = True
    devices = ("cuda",)

    def available(self) -> bool:
        """Return True if torch_tensorrt is installed and there is a GPU."""
        return importlib.util.find_spec("torch_tensorrt") is not None and torch.cuda.is_available()

    def compile(self, program: Program, **options: typing.Any) -> Callable:
        """Return a function from the program's inputs to the tuple of its outputs.

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
        """Return a copy of the Symbol that runs on this backend when it is bound to a GPU. Engines are built at the first run, from the weights
        bound then: `args`, `aux`, shapes and types are not needed before.

        Raises
        ------
        MXNetError
            If an option is wrong, or torch_tensorrt is missing (`Unavailable`).
        """
        _settings(**options)
        _package()
        return mark(symbol, self.name, options)

    def partition(self, symbol: Symbol) -> Symbol:
        """Return the result of `optimize`, for ``get_backend_symbol``."""
        return self.optimize(symbol)


def _package() -> typing.Any:
    try:
        import torch_tensorrt
    except ImportError as error:
        raise Unavailable("backend 'tensorrt' needs the package torch_tensorrt in the version of torch "
                          f"({torch.__version__.partition('+')[0]}): pip install torch-tensorrt; it cannot be imported: {error}") from error
    return torch_tensorrt


def _settings(precision: object = "float32", **options: typing.Any) -> dict[str, typing.Any]:
    """Return the options as arguments of `torch_tensorrt.dynamo.compile`."""
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
    """Return True if the node is deterministic, writes to no input, and has a known shape."""
    return node in program.values and not random_in_inference(node) and not mutates_inputs(node)


def _compiled(package: typing.Any, program: Program, device: torch.device, settings: Mapping[str, typing.Any], root: Program) -> Callable:
    """Return a function from a program's inputs to the tuple of its outputs; the program is `root` or a partition of it."""
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
        with lock, torch.cuda.device_of(data[0]):  # an engine runs on the current device, and its runs must not overlap
            results = engine(*data)
        return tuple(t.to(dtype) for t, dtype in zip((results,) if isinstance(results, torch.Tensor) else results, types))

    return run


def _build_in(program: Program) -> None:
    """Replace the weight inputs by buffers of the module."""
    for i, node in enumerate(program.placeholders):
        if node in program.constants:
            program.module.register_buffer(f"weight{i}", program.constants[node])
            with program.graph.inserting_before(node):
                node.replace_all_uses_with(program.graph.get_attr(f"weight{i}"))
            program.graph.erase_node(node)
    program.module.recompile()
