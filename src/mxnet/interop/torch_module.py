"""`TorchModule`: an MXNet graph as a `torch.nn.Module`, on the memory of the parameters that MXNet has."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from ..base import MXNetError
from ..graph.backends.registry import wants_channels_last
from ..graph.ownership import owned
from ..graph.passes import layout
from ..graph.runtime.runner import GraphRunner
from ..graph.runtime.session import Session
from ..ndarray import NDArray, memory_format, mutation_tracking
from ..ndarray.ndarray import context_of
from ..symbol import Symbol, inference
from .portable import NotPortable, portable

_PLAIN = (torch.Tensor, torch.nn.Parameter)


class SharedParameter(NamedTuple):
    """A parameter whose memory a torch parameter is to use.

    Attributes
    ----------
    name : str
        The variable of the graph.
    place : str
        The name in the module, with a dot before each level: ``features.0.weight``.
    array : callable
        Returns the NDArray that holds the values now.
    adopt : callable
        Takes a tensor whose memory the NDArray is to use from now on; its type and device may be others.
    trains : bool
        Whether it has a gradient.
    is_state : bool
        Whether the network itself writes to it, such as a moving average: it becomes a buffer.
    """

    name: str
    place: str
    array: Callable[[], NDArray]
    adopt: Callable[[torch.Tensor], None]
    trains: bool
    is_state: bool


class _Links:
    """Keeps torch's tensors and MXNet's arrays on one memory. A copy of the module has its own memory, and no links."""

    def __init__(self, pairs: Sequence[tuple[torch.nn.Module, str, SharedParameter]] = ()) -> None:
        self._pairs = list(pairs)
        self._tensors: list[torch.Tensor] = [getattr(owner, leaf) for owner, leaf, _ in pairs]

    def __deepcopy__(self, memo: dict[int, Any]) -> _Links:
        return _Links()

    def __reduce__(self) -> Any:
        return _Links, ()

    def align(self) -> None:
        """Let torch's tensors follow arrays that were replaced, such as by `load_parameters` into another type or by `reset_ctx`."""
        for tensor, (_, _, shared) in zip(self._tensors, self._pairs):
            data = shared.array()._data
            if tensor.data_ptr() != data.data_ptr():
                mutation_tracking.share(data)
                tensor.data = data.detach()

    def follow(self) -> None:
        """Let the arrays follow tensors that were replaced, such as by ``module.to(...)``."""
        self._tensors = [getattr(owner, leaf) for owner, leaf, _ in self._pairs]
        if any(t.device.type not in ("cpu", "cuda") for t in self._tensors):
            self._pairs, self._tensors = [], []  # without memory there is nothing to share
        for tensor, (_, _, shared) in zip(self._tensors, self._pairs):
            data = shared.array()._data
            if tensor.data_ptr() != data.data_ptr():
                shared.adopt(tensor.detach())
                mutation_tracking.share(tensor.detach())


class TorchModule(torch.nn.Module):
    """A graph of MXNet's as a module of torch's; `HybridBlock.as_torch` and `Module.as_torch` make them.

    The parameters use the memory of MXNet's arrays: whoever trains them, both see it. Weights of convolutions have their channels last in memory
    (``module.to(memory_format=torch.contiguous_format)`` changes that, on both sides). The module follows `train` and `eval`, and runs on the same
    kernels and backends as the block. For `torch.export`, `torch.compile`, `torch.autocast`, `torch.func` and tensors of other classes it is a
    graph of torch's own operators.

    Parameters
    ----------
    symbol : Symbol
    inputs : list of str
        The variables that the module is called with, in order.
    parameters : list of SharedParameter
        All others.
    in_format, out_format
        The structure of arguments and results: 0 for a tensor, -1 for None, a list of these for a list.
    exact : bool
        As for `HybridBlock.hybridize`.
    default : callable, optional
        ``default(name, tensors)`` returns the tensor for an input that is not given.
    examples : dict of str to shape, optional
        Shapes of inputs, for graphs whose sources leave sizes open.
    """

    def __init__(self, symbol: Symbol, inputs: Sequence[str], parameters: Sequence[SharedParameter], in_format: Any, out_format: Any, *,
                 exact: bool = False, default: Callable[[str, Mapping[str, torch.Tensor]], torch.Tensor] | None = None,
                 examples: Mapping[str, tuple[int, ...]] | None = None) -> None:
        super().__init__()
        self._symbol, self._exact, self._default = symbol, exact, default
        self._in_format, self._out_format, self._inputs = in_format, out_format, list(inputs)
        self._examples = dict(examples or {})
        arrays = {p.name: p.array() for p in parameters}
        devices = {a._data.device for a in arrays.values()}
        if len(devices) > 1:
            raise MXNetError(f"as_torch: the parameters are on {', '.join(sorted(map(str, devices)))}; name one context: as_torch(ctx=...)")
        self._prepare(next(iter(devices), torch.device("cpu")), arrays)
        pairs, self._places = [], {}
        registered: dict[int, Any] = {}
        for shared in parameters:
            owner, leaf = self._owner(shared.place)
            array = arrays[shared.name]
            tensor = registered.get(id(array))
            if tensor is None:
                mutation_tracking.share(array._data)
                tensor = registered[id(array)] = _tensor_of(array, shared)
            if isinstance(tensor, torch.nn.Parameter):
                owner.register_parameter(leaf, tensor)
            else:
                owner.register_buffer(leaf, tensor)
            self._places[shared.name] = owner, leaf
            pairs.append((owner, leaf, shared))
        self._links = _Links(pairs)

    # -- making it -------------------------------------------------------------------------------------------------------

    def _prepare(self, device: torch.device, arrays: Mapping[str, NDArray]) -> None:
        """Make what runs the graph, and what is traced of it in each mode."""
        given = set(self._inputs)
        names = self._symbol.list_inputs()
        self._order = names
        self._runner = GraphRunner(self._symbol, weights=[i for i, name in enumerate(names) if name not in given], exact=self._exact)
        self._session = Session(self._runner)
        self._traceable: dict[bool, torch.fx.GraphModule] = {}
        self._untraceable: dict[bool, str] = {}
        for is_train in (False, True):
            try:
                # Not as a child: it has no parameters of its own.
                self._traceable[is_train] = portable(self._symbol, is_train, device, self._source_shapes(arrays))
            except MXNetError as error:
                self._untraceable[is_train] = str(error)
        for i in layout.weights(self._traceable[True]) if True in self._traceable else ():
            array = arrays.get(names[i])
            if array is not None and device.type == "cpu" and wants_channels_last(array._data):
                memory_format.channels_last(array)

    def _source_shapes(self, arrays: Mapping[str, NDArray]) -> Mapping[int, Any] | None:
        """The shapes of sources that leave them open."""
        nodes = [node for node in self._symbol._nodes() if inference.open_shape(node)]
        if not nodes:
            return None
        missing = [name for name in self._inputs if name not in self._examples]
        if missing:
            raise NotPortable(f"the size of {nodes[0].name} follows from the inputs' shapes, which are not known; call as_torch(*examples) with "
                              "tensors of the shapes to come")
        shapes = {**{name: tuple(array.shape) for name, array in arrays.items()}, **self._examples}
        inferred, _ = inference.infer_shapes(self._symbol._outputs, shapes)
        return {id(node): inferred[id(node), 0] for node in nodes}

    def _owner(self, place: str) -> tuple[torch.nn.Module, str]:
        """The module, made where there is none, and the name in it for a place such as ``features.0.weight``."""
        owner: torch.nn.Module = self
        *path, leaf = place.split(".")
        for step in path:
            step = _free_name(owner, step, owner._modules)
            if step not in owner._modules:
                owner.add_module(step, torch.nn.Module())
            owner = owner._modules[step]  # type: ignore[assignment]  # never None here
        return owner, _free_name(owner, leaf, {})

    # -- running ---------------------------------------------------------------------------------------------------------

    def forward(self, *inputs: Any) -> Any:
        """Compute the outputs: a tensor, or a list in the structure of the block's.

        Parameters
        ----------
        *inputs : torch.Tensor, None, or lists of these
            In the structure in which the block takes its arguments.

        Raises
        ------
        MXNetError
            If the structure differs, or an operator fails.
        """
        if torch.compiler.is_compiling():
            return _regrouped(self._traced(self._gathered(inputs)), self._out_format)
        if torch.jit.is_tracing():
            raise MXNetError("torch.jit.trace can't look into a module made by as_torch(); take torch.export.export, or torch.onnx.export with "
                             "dynamo=True")
        self._links.align()
        tensors = self._gathered(inputs)
        if torch.is_autocast_enabled(tensors[0].device.type if tensors else "cpu") or not _are_plain(tensors):
            return _regrouped(self._traced(tensors), self._out_format)
        results = self._run(tensors)
        return _regrouped(results, self._out_format)

    def _run(self, tensors: list[Any]) -> list[torch.Tensor]:
        """The outputs, as a hybridized block computes them."""
        session, training, recorded = self._session, self.training, torch.is_grad_enabled()
        for i in session.written if training or session.always_writes else ():
            mutation_tracking.written(tensors[i])
            tensors[i] = tensors[i].data  # MXNet's writes pass torch's version counter by
        ctx = context_of(tensors[0]) if tensors else context_of(torch.empty(0))
        single_threaded = recorded and session.runs_single_threaded(tensors, ctx)
        results = session.run(tensors, ctx, training, recorded, single_threaded=single_threaded)
        for i, (node, _) in enumerate(self._symbol._outputs):
            if node.op is None:  # what is only handed on, torch's callers get as a tensor of their own, too
                results[i] = owned(results[i])
        return results

    def _traced(self, tensors: list[Any]) -> Sequence[torch.Tensor]:
        """The outputs in torch's own operators."""
        if self.training in self._untraceable:
            raise NotPortable(self._untraceable[self.training])
        return self._traceable[self.training](*tensors)

    def _gathered(self, inputs: Sequence[Any]) -> list[Any]:
        """Tensors in the order of the graph's variables."""
        flat: list[Any] = []
        # A block of one argument has the format of a list, too.
        _flatten(inputs, self._in_format, flat)
        tensors = dict(zip(self._inputs, flat))
        for name in self._inputs:
            if name not in tensors:
                tensors[name] = self._missing(name, tensors)
        return [tensors[name] if name in tensors else getattr(*self._places[name]) for name in self._order]

    def _missing(self, name: str, tensors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        if self._default is None:
            raise MXNetError(f"TorchModule: the input `{name}` was not given; the module takes {', '.join(self._inputs)}")
        return self._default(name, tensors)

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> TorchModule:
        super()._apply(fn, recurse)
        self._links.follow()
        return self

    def extra_repr(self) -> str:
        """Return the inputs and the number of operators, which `print` shows."""
        count = sum(node.op is not None for node in self._symbol._nodes())
        return f"{', '.join(self._inputs)}; {count} operators, {len(self._places)} parameters and buffers"

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__() if hasattr(super(), "__getstate__") else self.__dict__)  # type: ignore[misc]
        for name in ("_runner", "_session", "_traceable", "_untraceable"):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        tensors = {name: getattr(*place) for name, place in self._places.items()}
        device = next((t.device for t in tensors.values()), torch.device("cpu"))
        self._prepare(device, {name: NDArray._new(t.detach(), context_of(t)) for name, t in tensors.items()})


def _tensor_of(array: NDArray, shared: SharedParameter) -> torch.Tensor:
    """A tensor on the array's memory, whose version counter the array's shares."""
    data = array._data.detach()
    if shared.is_state:
        return data
    return torch.nn.Parameter(data, requires_grad=shared.trains and data.dtype.is_floating_point)


def _free_name(owner: torch.nn.Module, name: str, known: Mapping[str, Any]) -> str:
    """The name, with an underscore behind it where torch's modules have an attribute of that name."""
    while not name or hasattr(owner, name) and name not in known:
        name += "_"
    return name


def _are_plain(tensors: Sequence[Any]) -> bool:
    """Return True if kernels can read all tensors: none is of a subclass, or wrapped by `torch.func`."""
    return all(type(t) in _PLAIN for t in tensors) and torch._C._functorch.peek_interpreter_stack() is None


def _flatten(args: Any, form: Any, flat: list[Any]) -> None:
    """Add the tensors among `args` to `flat`; arguments at the end may be missing."""
    if isinstance(form, int):
        if form == -1:
            if args is not None:
                raise MXNetError("TorchModule: None expected where the block was traced with None, received a value")
        elif not isinstance(args, torch.Tensor):
            hint = "; an NDArray's is x.as_torch()" if isinstance(args, NDArray) else ""
            raise MXNetError(f"TorchModule: a torch tensor expected, received {type(args).__name__}{hint}")
        else:
            flat.append(args)
        return
    if not isinstance(args, (list, tuple)) or len(args) > len(form):
        received = len(args) if isinstance(args, (list, tuple)) else type(args).__name__
        raise MXNetError(f"TorchModule: a list of {len(form)} expected, received {received}")
    for arg, part in zip(args, form):
        _flatten(arg, part, flat)


def _regrouped(results: Sequence[torch.Tensor], form: Any) -> Any:
    """The structure in which the block returns its results."""
    if form == 0:
        return results[0]
    return _grouped(results, 0, form)[0]


def _grouped(results: Sequence[torch.Tensor], position: int, form: Any) -> tuple[Any, int]:
    if isinstance(form, int):
        if form == 0:
            return results[position], position + 1
        if form == -1:
            return None, position
        return list(results[position:position + form]), position + form
    group = []
    for part in form:
        value, position = _grouped(results, position, part)
        group.append(value)
    return group, position
