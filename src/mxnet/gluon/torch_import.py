"""`from_torch`: a module of torch's as a block."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .. import ndarray, symbol
from ..context import Context, cpu
from .symbol_block import SymbolBlock
from .utils import UsageError

if TYPE_CHECKING:
    import torch

    from ..ndarray import NDArray


def from_torch(module: torch.nn.Module, *examples: torch.Tensor | NDArray, kwargs: Mapping[str, Any] | None = None, dynamic_shapes: Any = None,
               ctx: Context | None = None) -> SymbolBlock:
    """Return a block that computes what a module of torch's computes, with the memory of its parameters.

    The module is exported by `torch.export`, and each of its operators becomes operators of MXNet's, so that the block trains, hybridizes, saves
    ``.params`` and exports Symbol JSON. Dropout and batch normalization follow MXNet's modes, whatever mode the module is in; what the module itself
    does only in training is taken over if it is in `train` mode.

    Parameters
    ----------
    module : torch.nn.Module
        Its parameters keep their names (``layer1.0.conv1.weight``), so that ``.params`` files of the block have the names of its ``state_dict()``.
    *examples : torch.Tensor or NDArray
        The positional arguments, of the shapes and types to come. The first size may vary later, if the module allows it.
    kwargs : dict, optional
        Further arguments, which the block takes after the positional ones.
    dynamic_shapes : optional
        Which other sizes may vary, as for `torch.export.export`.
    ctx : Context, optional
        Where the parameters are; by default where they are in torch. On another device they have memory of their own.

    Returns
    -------
    SymbolBlock
        Its results come in the order in which torch flattens those of the module. The input is called ``data``; of several, each has the name that
        `forward` gives it.

    Raises
    ------
    mxnet.interop.from_torch.values.NoCounterpart
        If an operator has no counterpart in MXNet: an MXNetError that names the operator, and where in the module it is.
    MXNetError
        If torch can't export the module.

    Example
    -------
    >>> import mxnet as mx, torch
    >>> module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
    >>> net = mx.gluon.from_torch(module, torch.ones(1, 3))
    >>> sorted(net.collect_params().keys())
    ['0.bias', '0.weight']
    >>> net(mx.nd.ones((5, 3))).shape
    (5, 2)
    """
    import torch

    from ..interop.from_torch import translate
    if not isinstance(module, torch.nn.Module):
        raise UsageError(f"from_torch: a torch.nn.Module expected, received {type(module).__name__}")
    translation = translate(module, examples, kwargs, dynamic_shapes)
    outputs = translation.outputs[0] if len(translation.outputs) == 1 else translation.outputs
    block = SymbolBlock(outputs, [symbol.var(name) for name in translation.inputs])
    block._reg_params = dict(block.params.items())  # with their whole names, whatever these have in common
    for name, parameter in block.params.items():
        tensor = translation.parameters[name].detach()
        array = ndarray.from_torch(tensor if tensor.dim() else tensor.reshape(1))  # the same memory: MXNet has no arrays without axes
        where = ctx or (array.ctx if array.ctx.device_type == "gpu" else cpu())
        if name not in translation.trained:
            parameter.grad_req = "null"
        parameter._load_init(array, where, cast_dtype=True, dtype_source="saved", own=True)
    return block
