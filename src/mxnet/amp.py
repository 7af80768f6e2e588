"""Mixed precision under MXNet 2's name and signatures: ``mx.amp``; those of MXNet 1 are in `mxnet.contrib.amp`.

Training is the same in both. A conversion names the types of data and parameters, and a block comes with examples of its inputs instead of being
called before.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .context import ctx_or_device, current_context
from .contrib import amp as _amp
from .contrib.amp import (
    init,
    init_trainer,
    list_conditional_fp32_ops,
    list_fp32_ops,
    list_loss_output_functions,
    list_lp16_fp32_ops,
    list_lp16_ops,
    list_lp16_use_fp32_params,
    list_widest_type_cast,
    scale_loss,
    unscale,
)
from .gluon import HybridBlock
from .gluon.utils import UsageError
from .ndarray import NDArray
from .suggestions import shortened
from .symbol import Symbol

if TYPE_CHECKING:
    from .context import Context
    from .gluon import SymbolBlock

__all__ = ["convert_hybrid_block", "convert_model", "convert_symbol", "init", "init_trainer", "list_conditional_fp32_ops", "list_fp32_ops",
           "list_loss_output_functions", "list_lp16_fp32_ops", "list_lp16_ops", "list_lp16_use_fp32_params", "list_widest_type_cast", "scale_loss",
           "unscale"]


def convert_symbol(sym: Symbol, input_dtypes: dict[str, Any], param_dtypes: dict[str, Any], target_dtype: Any,
                   target_dtype_ops: list[str] | None = None, fp32_ops: list[str] | None = None, conditional_fp32_ops: list[Any] | None = None,
                   excluded_sym_names: list[str] | None = None, cast_params_offline: bool = False) -> Symbol:
    """Put casts into a float32 network, so that the operators of the lists run in low precision.

    Parameters
    ----------
    sym : Symbol
    input_dtypes : dict of str to type
        The network's data; a type may be float32 or `target_dtype`.
    param_dtypes : dict of str to type
        All other variables.
    target_dtype : {'float16', 'bfloat16'}
    target_dtype_ops, fp32_ops, conditional_fp32_ops, excluded_sym_names
        As in `mxnet.contrib.amp.convert_symbol`.
    cast_params_offline : bool
        If True, parameters that only low-precision operators use are stored in that type, instead of being cast in each run.

    Returns
    -------
    Symbol

    Raises
    ------
    UsageError
        If a variable of the network is in neither of the two dicts; else as in `mxnet.contrib.amp.convert_symbol`.
    """
    for argument, types in (("input_dtypes", input_dtypes), ("param_dtypes", param_dtypes)):
        if not isinstance(types, dict):
            raise UsageError(f"convert_symbol: a dict of types expected as {argument}, received {shortened(types)}")
    if isinstance(sym, Symbol):  # else the conversion raises the error
        missing = [name for name in sym.list_inputs() if name not in input_dtypes and name not in param_dtypes]
        if missing:
            raise UsageError(f"convert_symbol: input_dtypes or param_dtypes must name all variables of the network, missing: {', '.join(missing)}")
    return _amp.convert_symbol(sym, target_dtype, target_dtype_ops, fp32_ops, conditional_fp32_ops, excluded_sym_names, list(input_dtypes),
                               cast_params_offline)


def convert_model(sym: Symbol, arg_params: dict[str, NDArray], aux_params: dict[str, NDArray], input_dtypes: dict[str, Any], target_dtype: Any,
                  target_dtype_ops: list[str] | None = None, fp32_ops: list[str] | None = None, conditional_fp32_ops: list[Any] | None = None,
                  excluded_sym_names: list[str] | None = None, cast_params_offline: bool = False
                  ) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """Convert a float32 network and its parameters for low precision.

    Parameters
    ----------
    arg_params, aux_params : dict of str to NDArray
    input_dtypes : dict of str to type
        The types of the network's data.
    sym, target_dtype, ...
        As in `convert_symbol`.

    Returns
    -------
    sym : Symbol
    arg_params, aux_params : dict of str to NDArray
        New dicts.

    Raises
    ------
    UsageError
        If `input_dtypes` does not name the network's data; else as in `mxnet.contrib.amp.convert_model`.
    """
    if isinstance(sym, Symbol) and isinstance(arg_params, dict) and isinstance(aux_params, dict):  # else the conversion raises the error
        data = {name for name in sym.list_inputs() if name not in arg_params and name not in aux_params}
        if not isinstance(input_dtypes, dict) or set(input_dtypes) != data:
            raise UsageError(f"convert_model: types of the inputs {', '.join(sorted(data))} expected as input_dtypes, received "
                             f"{shortened(input_dtypes)}")
    return _amp.convert_model(sym, arg_params, aux_params, target_dtype, target_dtype_ops, fp32_ops, conditional_fp32_ops, excluded_sym_names,
                              cast_params_offline)


def convert_hybrid_block(block: HybridBlock, data_example: Any, target_dtype: Any, target_dtype_ops: list[str] | None = None,
                         fp32_ops: list[str] | None = None, conditional_fp32_ops: list[Any] | None = None,
                         excluded_sym_names: list[str] | None = None, device: Context | None = None, cast_params_offline: bool = False, *,
                         ctx: Context | None = None) -> SymbolBlock:
    """Convert a float32 block for low precision.

    Parameters
    ----------
    block : HybridBlock
        It is hybridized if it was not.
    data_example : NDArray, or list of NDArray
        Inputs with the shapes and types of later ones; the block is called with them.
    device : Context, optional
        The device of the new block's parameters; the current one by default. `ctx` is its older name.
    target_dtype, ...
        As in `convert_symbol`.

    Returns
    -------
    SymbolBlock

    Raises
    ------
    UsageError
        If `block` is no HybridBlock or `data_example` holds something else than arrays; else as in `convert_symbol`.

    Example
    -------
    >>> import mxnet as mx
    >>> net = mx.gluon.nn.Dense(2, in_units=3)
    >>> net.initialize()
    >>> x = mx.nd.ones((1, 3))
    >>> mx.amp.convert_hybrid_block(net, x, 'bfloat16')(x).dtype
    <class 'numpy.float32'>
    """
    if not isinstance(block, HybridBlock):
        raise UsageError(f"convert_hybrid_block: a HybridBlock expected, received {type(block)}")
    examples = data_example if isinstance(data_example, (list, tuple)) else [data_example]
    if not examples or not all(isinstance(example, NDArray) for example in examples):
        raise UsageError(f"convert_hybrid_block: an array, or several, expected as data_example, received {shortened(data_example)}")
    if not block._active:
        block.hybridize()
    block(*examples)
    return _amp.convert_hybrid_block(block, target_dtype, target_dtype_ops, fp32_ops, conditional_fp32_ops, excluded_sym_names,
                                     ctx_or_device(ctx, device) or current_context(), cast_params_offline)
