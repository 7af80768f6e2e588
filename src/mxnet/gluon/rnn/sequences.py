"""Sequences as one array or as a list of steps, of arrays or of Symbols."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import ndarray, symbol
from ...base import _as_list
from ..parameter import tensor_types
from ..utils import UsageError

if TYPE_CHECKING:
    from .rnn_cell import RecurrentCell


def _get_begin_state(cell: RecurrentCell, F: Any, begin_state: Any, inputs: Any, batch_size: int):
    """Return `begin_state`, or the cell's own zeros on the device of `inputs`."""
    if begin_state is not None:
        return begin_state
    if F is not ndarray:
        return cell.begin_state(func=F.zeros, batch_size=batch_size)
    first: Any = inputs if isinstance(inputs, tensor_types) else inputs[0]
    with first.ctx:
        return cell.begin_state(func=F.zeros, batch_size=batch_size)


def _format_sequence(length: int | None, inputs: Any, layout: str, merge: bool | None, in_layout: str | None = None):
    """Convert a sequence between one array and a list of steps.

    Parameters
    ----------
    length : int or None
    inputs : array, Symbol, or list of these with one for each step
    layout : str
        Of the result, such as ``'NTC'``.
    merge : bool or None
        True for one array, False for a list of steps, None to keep the form.
    in_layout : str, optional
        Of `inputs`, if it is another one.

    Returns
    -------
    inputs, the axis of time, ``mx.nd`` or ``mx.sym``, and the batch size (0 for Symbols)
    """
    if inputs is None:
        raise UsageError("unroll: inputs expected, received None; make variables with mx.sym.var and pass them")
    F: Any
    axis, batch_axis, batch_size = layout.find("T"), layout.find("N"), 0
    in_axis = in_layout.find("T") if in_layout is not None else axis
    if isinstance(inputs, symbol.Symbol):
        F = symbol
        if merge is False:
            if len(inputs.list_outputs()) != 1:
                raise UsageError("unroll: a Symbol with one output expected, received one with "
                                 f"{len(inputs.list_outputs())}; pass list(inputs) for a step each")
            inputs = list(F.split(inputs, axis=in_axis, num_outputs=length, squeeze_axis=1))
    elif isinstance(inputs, ndarray.NDArray):
        F, batch_size = ndarray, inputs.shape[batch_axis]
        if merge is False:
            steps = inputs.shape[in_axis]
            if length is not None and length != steps:
                raise UsageError(f"a sequence of length {length} is expected, received {steps} steps in an array of shape {inputs.shape}")
            inputs = _as_list(F.split(inputs, axis=in_axis, num_outputs=steps, squeeze_axis=1))
    else:
        if length is not None and len(inputs) != length:
            raise UsageError(f"a sequence of length {length} is expected, received a list of {len(inputs)} steps")
        F = symbol if isinstance(inputs[0], symbol.Symbol) else ndarray
        if F is ndarray:
            batch_size = inputs[0].shape[0]
        if merge is True:
            inputs, in_axis = F.stack(*inputs, axis=axis), axis
    if isinstance(inputs, tensor_types) and axis != in_axis:
        inputs = F.swapaxes(inputs, dim1=axis, dim2=in_axis)
    return inputs, axis, F, batch_size


def _mask_sequence_variable_length(F: Any, data: Any, length: int, valid_length: Any, time_axis, merge):
    """Return the sequence with zeros from `valid_length` on."""
    if not isinstance(data, tensor_types):
        data = F.stack(*data, axis=time_axis)
    outputs = F.SequenceMask(data, sequence_length=valid_length, use_sequence_length=True, axis=time_axis)
    return outputs if merge else _as_list(F.split(outputs, num_outputs=length, axis=time_axis, squeeze_axis=True))


def _reverse_sequences(sequences, unroll_step, valid_length: Any = None):
    """Return a list of steps in reverse order; of each sample, the first `valid_length` steps if given."""
    if valid_length is None:
        return list(reversed(sequences))
    F = symbol if isinstance(sequences[0], symbol.Symbol) else ndarray
    turned = F.SequenceReverse(F.stack(*sequences, axis=0), sequence_length=valid_length, use_sequence_length=True)
    if unroll_step > 1 or F is symbol:
        return list(F.split(turned, axis=0, num_outputs=unroll_step, squeeze_axis=True))
    return [turned[0]]
