"""Checkpoints of recurrent networks, saved with one array per gate, independent of the cells' packing."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..checkpoint import load_checkpoint, save_checkpoint
from .rnn_cell import BaseRNNCell

if TYPE_CHECKING:
    from ..ndarray import NDArray
    from ..symbol import Symbol

__all__ = ["do_rnn_checkpoint", "load_rnn_checkpoint", "rnn_unroll", "save_rnn_checkpoint"]


def _as_cells(cells: BaseRNNCell | Sequence[BaseRNNCell]) -> Sequence[BaseRNNCell]:
    return [cells] if isinstance(cells, BaseRNNCell) else cells


def rnn_unroll(cell: BaseRNNCell, length: int, inputs: Any = None, begin_state: Any = None, input_prefix: str = "",
               layout: str = "NTC") -> tuple[Any, Any]:
    """Call ``cell.unroll(length, inputs, begin_state, layout)``, its new name; `input_prefix` has no effect, since `inputs` are required."""
    warnings.warn("rnn_unroll is the old form; call cell.unroll", stacklevel=2)
    return cell.unroll(length=length, inputs=inputs, begin_state=begin_state, layout=layout)


def save_rnn_checkpoint(cells: BaseRNNCell | Sequence[BaseRNNCell], prefix: str, epoch: int, symbol: Symbol | None,
                        arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray]) -> None:
    """Save a checkpoint with the weights of the cells unpacked.

    Parameters
    ----------
    cells : BaseRNNCell or list of them
        The cells that the network is made of.
    prefix, epoch, symbol, arg_params, aux_params
        As for `mxnet.model.save_checkpoint`.
    """
    for cell in _as_cells(cells):
        arg_params = cell.unpack_weights(arg_params)
    save_checkpoint(prefix, epoch, symbol, arg_params, aux_params)


def load_rnn_checkpoint(cells: BaseRNNCell | Sequence[BaseRNNCell], prefix: str, epoch: int) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """Load a checkpoint of `save_rnn_checkpoint`, with the weights packed for `cells`.

    Returns
    -------
    symbol : Symbol
    arg_params, aux_params : dict of str to NDArray
    """
    symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
    for cell in _as_cells(cells):
        arg_params = cell.pack_weights(arg_params)
    return symbol, arg_params, aux_params


def do_rnn_checkpoint(cells: BaseRNNCell | Sequence[BaseRNNCell], prefix: str, period: int = 1) -> Callable[..., None]:
    """Return an epoch-end callback that calls `save_rnn_checkpoint` every `period` epochs."""
    period = max(1, int(period))

    def callback(iter_no: int, sym: Any = None, arg: Any = None, aux: Any = None) -> None:
        if (iter_no + 1) % period == 0:
            save_rnn_checkpoint(cells, prefix, iter_no + 1, sym, arg or {}, aux or {})

    return callback
