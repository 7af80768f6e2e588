"""`as_torch`: a block as a `torch.nn.Module` on the memory of its parameters."""
from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from .. import symbol
from ..base import MXNetError
from ..context import Context, cpu, ctx_or_device
from ..ndarray import NDArray, from_torch
from ..ops.dtypes import name_of
from ..util import ByArgument, np_shape
from .parameter import Parameter
from .utils import UsageError

if TYPE_CHECKING:
    from ..interop import SharedParameter, TorchModule


class SharesWithTorch:
    """The method `as_torch` of blocks that can be traced."""

    _cached_graph: Any
    _cached_op_args: list[tuple[bool, Any]]
    _constants: dict[str, Parameter]
    _flags: list[tuple[str, Any]]

    def as_torch(self, *examples: torch.Tensor | NDArray, ctx: Context | None = None, device: Context | None = None) -> TorchModule:
        """Return the block as a `torch.nn.Module` whose parameters share memory with the block's: training one trains both.

        Parameters
        ----------
        *examples : torch.Tensor or NDArray
            Arguments of the shapes to come. They may be left out if the block takes one argument, or was hybridized and called before, and
            all parameters are initialized.
        ctx : Context, optional
            Which copy of the parameters, where there are several. `device` is its name in MXNet 2.

        Returns
        -------
        mxnet.interop.TorchModule
            Its ``state_dict()`` has the names of `save_parameters`: ``features.0.weight``. It takes and returns torch tensors, runs on the kernels
            and backends that the block runs on, and follows `train` and `eval`; `torch.export.export`, `torch.compile` and
            `torch.onnx.export` take it.

        Raises
        ------
        UsageError
            If there is no graph of the block, or parameters are not initialized or sparse.

        Example
        -------
        >>> import mxnet as mx, torch
        >>> net = mx.gluon.nn.Dense(1, in_units=2)
        >>> net.initialize(mx.init.One())
        >>> module = net.as_torch()
        >>> module(torch.ones(1, 2)).backward()
        >>> torch.optim.SGD(module.parameters(), lr=0.5).step()
        >>> net.weight.data().asnumpy()
        array([[0.5, 0.5]], dtype=float32)
        """
        from ..interop import TorchModule
        ctx = ctx_or_device(ctx, device)
        variables, out = self._graph_for_torch(examples, ctx)
        block: Any = self
        inputs = [variable.name for variable in variables]
        parameters = {p.name: p for _, p in self._cached_op_args if isinstance(p, Parameter)} or dict(block._by_name().items())
        parameters.update(self._constants)
        places = {id(parameter): place for place, parameter in block._collect_params_with_prefix().items()}
        states, needed, shared = set(out.list_auxiliary_states()), out.list_inputs(), []
        for name in needed:
            if name not in inputs:
                if name not in parameters:
                    raise UsageError(f"as_torch: the graph of {block.name} has an input {name} that is neither an argument nor a parameter")
                parameter = parameters[name]
                shared.append(_shared(parameter, name, places.get(id(parameter)) or name, ctx, name in states))
        shapes = {name: tuple(x.shape) for name, x in zip(inputs, _arrays(examples))}
        return TorchModule(out, inputs, shared, block._in_format, block._out_format, exact=bool(dict(self._flags).get("exact")), examples=shapes)

    def _graph_for_torch(self, examples: Any, ctx: Context | None) -> Any:
        """Return the variables and outputs of the graph; the examples determine deferred shapes of parameters."""
        block: Any = self
        plain = has_plain(block)
        if plain and not examples and not self._cached_graph:
            raise UsageError(f"as_torch: the `forward` of {block.name} is traced by running it; pass arguments of the shapes to come: "
                             "as_torch(*examples)")
        if plain and examples:
            with np_shape(True), ByArgument():
                return block._get_graph(*_converted(examples, ctx, True))
        arguments = _converted(examples, ctx, False) if examples else [symbol.var("data")]
        graph = self._cached_graph or block._get_graph(*arguments)
        if examples and any(p._deferred_init for p in block._by_name().values()):
            block._deferred_infer_shape(*arguments)
            for parameter in block._by_name().values():
                parameter._finish_deferred_init()
        return graph


def has_plain(block: Any) -> bool:
    """Return True if `_is_plain` is true of the block or one inside of it."""
    return block._is_plain() or any(map(has_plain, block._children.values()))


def _arrays(examples: Any) -> list[Any]:
    """Return the arrays of nested arguments, in order."""
    flat: list[Any] = []
    for x in examples:
        if isinstance(x, (list, tuple)):
            flat += _arrays(x)
        elif x is not None:
            flat.append(x)
    return flat


def _converted(examples: Any, ctx: Context | None, numpy: bool) -> list[Any]:
    """Convert the arguments to arrays of ``mx.nd`` or ``mx.np``."""
    arrays: list[Any] = []
    for x in examples:
        if isinstance(x, (list, tuple)):
            arrays.append(_converted(x, ctx, numpy))
        elif isinstance(x, (torch.Tensor, NDArray)):
            array = from_torch(x, ctx if x.device.type == "cpu" else None) if isinstance(x, torch.Tensor) else x
            arrays.append(array.as_np_ndarray() if numpy else array.as_nd_ndarray())
        elif x is None:
            arrays.append(None)
        else:
            raise UsageError(f"as_torch: examples are torch tensors, NDArrays and lists of these, received {type(x).__name__}")
    return arrays


def _shared(parameter: Parameter, name: str, place: str, ctx: Context | None, is_state: bool) -> SharedParameter:
    from ..interop import SharedParameter
    if parameter._stype != "default":
        raise UsageError(f"as_torch: Parameter '{name}' is stored as {parameter._stype}, which torch has no parameters for; make it with "
                         "stype='default'")
    if parameter._data is not None and len(parameter._data) > 1 and ctx is None:
        raise UsageError(f"as_torch: Parameter '{name}' has copies on {parameter.list_ctx()}; name one: as_torch(ctx=...)")
    try:
        parameter.data(ctx)
    except (RuntimeError, MXNetError) as error:
        raise UsageError(f"as_torch: {error} Or pass arguments of the shapes to come: as_torch(*examples)") from None
    return SharedParameter(name, place, functools.partial(_current, parameter, ctx), functools.partial(_adopt, parameter),
                           parameter.grad_req != "null", is_state)


def _current(parameter: Parameter, ctx: Context | None) -> NDArray:
    arrays = parameter._data
    return arrays[0] if len(arrays) == 1 else parameter.data(ctx)


def _adopt(parameter: Parameter, tensor: torch.Tensor) -> None:
    """Replace a parameter's array by the memory of a tensor, and its device by the tensor's."""
    array = from_torch(tensor, cpu() if tensor.device.type == "cpu" else None)
    parameter._dtype = name_of(tensor.dtype)
    parameter._var = None
    parameter._deferred_init = ()
    parameter._init_impl(array, [array.ctx], own=True)
