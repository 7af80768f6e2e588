"""Variational dropout and projected LSTM."""
from __future__ import annotations

from typing import Any

from ...parameter import Parameter, tensor_types
from ...rnn import BidirectionalCell, HybridRecurrentCell, ModifierCell, SequentialRNNCell
from ...rnn.sequences import _format_sequence, _get_begin_state, _mask_sequence_variable_length
from ...utils import UsageError

__all__ = ["VariationalDropoutCell", "LSTMPCell"]


def dynamic_unroll(cell: Any, inputs: Any, begin_state: Any, drop_inputs: float = 0, drop_outputs: float = 0, layout: str = "TNC",
                   valid_length: Any = None) -> tuple[Any, Any]:
    """Run a cell over a sequence with `foreach`: the graph holds one step, however long the sequence is.

    Parameters
    ----------
    cell : RecurrentCell
    inputs : array or Symbol, or list of these with one for each step
        Of shape (length, batch_size, ...) for the layout ``'TNC'``, which needs no transposing.
    begin_state : list of array or Symbol
    drop_inputs, drop_outputs : float
        The fractions of elements to drop, the same elements at every step.
    layout : str
        ``'TNC'`` or ``'NTC'``.
    valid_length : array or Symbol of shape (batch_size,), optional
        The length of each sequence; later outputs are 0, and later states are those of the last valid step.

    Returns
    -------
    outputs : array or Symbol
        In the order of `layout`.
    states : list of array or Symbol

    Example
    -------
    >>> import mxnet as mx
    >>> cell = mx.gluon.rnn.RNNCell(3, input_size=2)
    >>> cell.initialize(mx.init.One())
    >>> x = mx.nd.ones((4, 2, 2))
    >>> unroll = mx.gluon.contrib.rnn.rnn_cell.dynamic_unroll
    >>> outputs, states = unroll(cell, x, cell.begin_state(2), valid_length=mx.nd.array([4, 1]))
    >>> outputs.shape, outputs[:, 1, 0].asnumpy().round(2).tolist()
    ((4, 2, 3), [0.9599999785423279, 0.0, 0.0, 0.0])
    """
    inputs, axis, F, _ = _format_sequence(None, inputs, layout, True)
    if drop_inputs:
        inputs = F.Dropout(inputs, p=drop_inputs, axes=(axis,))
    if axis:
        inputs = F.swapaxes(inputs, dim1=0, dim2=axis)

    def masked_step(step_input, states):
        *before, number = states
        output, after = cell(step_input, before)
        goes_on = F.broadcast_greater(valid_length, number)
        return output, [*(F.where(goes_on, new, old) for new, old in zip(after, before)), number + 1]

    if valid_length is None:
        outputs, states = F.contrib.foreach(cell, inputs, begin_state)
    else:
        number = F.zeros_like(F.slice_axis(valid_length, axis=0, begin=0, end=1))  # on the same device
        outputs, states = F.contrib.foreach(masked_step, inputs, [*begin_state, number])
        states = states[:-1]
    if axis:
        outputs = F.swapaxes(outputs, dim1=0, dim2=axis)
    if drop_outputs:
        outputs = F.Dropout(outputs, p=drop_outputs, axes=(axis,))
    if valid_length is not None:
        outputs = F.SequenceMask(outputs, sequence_length=valid_length, use_sequence_length=True, axis=axis)
    return outputs, states


class VariationalDropoutCell(ModifierCell):
    """Dropout that drops the same elements at every step of a sequence (arXiv:1512.05287).

    Parameters
    ----------
    base_cell : RecurrentCell
    drop_inputs, drop_states, drop_outputs : float
        The fractions of elements to drop; of the states, in the first one only.

    Raises
    ------
    UsageError
        If states are to be dropped in a BidirectionalCell.
    """

    def __init__(self, base_cell: Any, drop_inputs: float = 0., drop_states: float = 0., drop_outputs: float = 0.):
        holds = isinstance(base_cell, SequentialRNNCell) and any(isinstance(c, BidirectionalCell) for c in base_cell._children.values())
        if drop_states and (holds or isinstance(base_cell, BidirectionalCell)):
            raise UsageError(f"VariationalDropoutCell: drop_states needs a cell that can step, received {type(base_cell).__name__}, which is or "
                             "has a "
                             "BidirectionalCell; wrap the two cells in it")
        super().__init__(base_cell)
        self.drop_inputs, self.drop_states, self.drop_outputs = drop_inputs, drop_states, drop_outputs
        self.drop_inputs_mask = self.drop_states_mask = self.drop_outputs_mask = None

    _between_steps = ("drop_inputs_mask", "drop_states_mask", "drop_outputs_mask")

    def _alias(self):
        return "vardrop"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p_out = {self.drop_outputs}, p_state = {self.drop_states})"

    def reset(self) -> None:
        """Reset the cell and discard the dropout masks."""
        super().reset()
        self.drop_inputs_mask = self.drop_states_mask = self.drop_outputs_mask = None

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """Return the output and the new states."""
        def mask(name, like):
            share = getattr(self, name)
            if getattr(self, name + "_mask") is None:
                setattr(self, name + "_mask", F.Dropout(F.ones_like(like), p=share))
            return getattr(self, name + "_mask")

        if self.drop_states:
            states = [states[0] * mask("drop_states", states[0]), *states[1:]]
        if self.drop_inputs:
            inputs = inputs * mask("drop_inputs", inputs)
        output, states = self.base_cell(inputs, states)
        if self.drop_outputs:
            output = output * mask("drop_outputs", output)
        return output, states

    def unroll(self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None,
               valid_length: Any = None) -> tuple[Any, Any]:
        """Run the cell over a sequence; see `RecurrentCell.unroll`."""
        if self.drop_states:
            return super().unroll(length, inputs, begin_state, layout, merge_outputs, valid_length=valid_length)
        # Without states to drop, inputs and outputs are dropped all at once, with one mask for all steps.
        self.reset()
        inputs, axis, F, batch_size = _format_sequence(length, inputs, layout, True)
        states = _get_begin_state(self, F, begin_state, inputs, batch_size)
        if self.drop_inputs:
            inputs = F.Dropout(inputs, p=self.drop_inputs, axes=(axis,))
        outputs, states = self.base_cell.unroll(length, inputs, states, layout, merge_outputs=True, valid_length=valid_length)
        if self.drop_outputs:
            outputs = F.Dropout(outputs, p=self.drop_outputs, axes=(axis,))
        merge_outputs = isinstance(outputs, tensor_types) if merge_outputs is None else merge_outputs
        outputs = _format_sequence(length, outputs, layout, merge_outputs)[0]
        if valid_length is not None:
            outputs = _mask_sequence_variable_length(F, outputs, length, valid_length, axis, merge_outputs)
        return outputs, states


class LSTMPCell(HybridRecurrentCell):
    """`LSTMCell` whose hidden state is projected (arXiv:1402.1128).

    Parameters
    ----------
    hidden_size : int
    projection_size : int
        The size of output and hidden state.
    i2h_weight_initializer, h2h_weight_initializer, h2r_weight_initializer, i2h_bias_initializer, h2h_bias_initializer \
: str or Initializer, optional
    input_size : int
        0 waits for the first batch.
    prefix, params
        As for `Block`.
    """

    def __init__(self, hidden_size: int, projection_size: int, i2h_weight_initializer: Any = None, h2h_weight_initializer: Any = None,
                 h2r_weight_initializer: Any = None, i2h_bias_initializer: Any = "zeros", h2h_bias_initializer: str = "zeros", input_size: int = 0,
                 prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)
        self._hidden_size, self._projection_size, self._input_size = hidden_size, projection_size, input_size
        rows = 4 * hidden_size
        for name, shape, init in (("i2h_weight", (rows, input_size), i2h_weight_initializer),
                                  ("h2h_weight", (rows, projection_size), h2h_weight_initializer),
                                  ("h2r_weight", (projection_size, hidden_size), h2r_weight_initializer),
                                  ("i2h_bias", (rows,), i2h_bias_initializer),
                                  ("h2h_bias", (rows,), h2h_bias_initializer)):
            setattr(self, name, self.params.get(name, shape=shape, init=init, allow_deferred_init=True))

    h2r_weight: Parameter

    def _alias(self):
        return "lstmp"

    def __repr__(self) -> str:
        rows, size = self.i2h_weight.shape
        return f"{type(self).__name__}({size or None} -> {rows} -> {self.h2r_weight.shape[0]})"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Return the shapes of the projected hidden state and of the cell state."""
        return [{"shape": (batch_size, size), "__layout__": "NC"} for size in (self._projection_size, self._hidden_size)]

    def hybrid_forward(self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, h2r_weight: Any, i2h_bias: Any,
                       h2h_bias: Any) -> Any:
        """Return the output and the new states."""
        prefix, rows = f"t{self._counter}_", 4 * self._hidden_size
        i2h = F.FullyConnected(data=inputs, weight=i2h_weight, bias=i2h_bias, num_hidden=rows, name=prefix + "i2h")
        h2h = F.FullyConnected(data=states[0], weight=h2h_weight, bias=h2h_bias, num_hidden=rows, name=prefix + "h2h")
        gates = F.SliceChannel(i2h + h2h, num_outputs=4, name=prefix + "slice")
        in_gate, forget_gate, memory, out_gate = (
            F.Activation(gates[i], act_type=kind, name=prefix + name)
            for i, (name, kind) in enumerate((("i", "sigmoid"), ("f", "sigmoid"), ("c", "tanh"), ("o", "sigmoid"))))
        next_c = F.elemwise_add(forget_gate * states[1], in_gate * memory, name=prefix + "state")
        hidden = F.elemwise_mul(out_gate, F.Activation(next_c, act_type="tanh"), name=prefix + "hidden")
        output = F.FullyConnected(data=hidden, weight=h2r_weight, no_bias=True, num_hidden=self._projection_size, name=prefix + "out")
        return output, [output, next_c]
