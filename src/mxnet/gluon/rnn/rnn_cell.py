"""Recurrent cells: one step of a recurrent network each, and the loop over a sequence."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ... import ndarray
from ...base import string_types
from ...ndarray import NDArray
from ...ndarray.dispatch import mode
from ...ops.nn.rnn_layout import GATES
from ..block import Block
from ..hybrid_block import HybridBlock
from ..nn import LeakyReLU
from ..utils import UsageError
from .sequences import _format_sequence, _get_begin_state, _mask_sequence_variable_length

if TYPE_CHECKING:
    from ...initializer import Initializer
    from ...symbol import Symbol
    from ..parameter import Parameter
    from ..parameter_dict import ParameterDict

if TYPE_CHECKING:
    # Stand above this module; programs find them here too: `compat.table` leads to them.
    from .container_cells import BidirectionalCell, HybridSequentialRNNCell, SequentialRNNCell
    from .modifier_cells import DropoutCell, ModifierCell, ResidualCell, ZoneoutCell

__all__ = ["RecurrentCell", "HybridRecurrentCell", "RNNCell", "LSTMCell", "GRUCell", "SequentialRNNCell", "HybridSequentialRNNCell",
           "DropoutCell", "ModifierCell", "ZoneoutCell", "ResidualCell", "BidirectionalCell"]

_PLAIN_ACTIVATIONS = ("tanh", "relu", "sigmoid", "softsign")


class RecurrentCell(Block):
    """The base of recurrent cells.

    A cell is called with the input of one step and a list of states, and returns the output and the new states.

    Parameters
    ----------
    prefix, params
        As for `Block`.
    """

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self._modified = False
        self.reset()

    i2h_weight: Parameter

    def __repr__(self) -> str:
        out_size, in_size = self.i2h_weight.shape
        return f"{type(self).__name__}({in_size or None} -> {out_size})"

    def reset(self) -> None:
        """Reset the count of steps, which only serves to number names."""
        self._init_counter = self._counter = -1
        for cell in self._children.values():
            cell.reset()

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """For each state a dictionary with its ``shape`` and ``__layout__``; a subclass must define this."""
        raise NotImplementedError(f"{type(self).__name__} must define state_info(self, batch_size)")

    def begin_state(self, batch_size: int = 0, func: Callable[..., Any] = ndarray.zeros, **kwargs: Any) -> list[Any]:
        """Return the states to start with.

        Parameters
        ----------
        batch_size : int
        func : callable
            Makes each: ``mx.nd.zeros``, ``mx.sym.zeros``, ``mx.sym.var``, ....
        **kwargs
            For `func`.

        Raises
        ------
        UsageError
            If a modifier cell has taken over this cell.
        """
        self._refuse_if_modified()
        states = []
        for info in self.state_info(batch_size):
            self._init_counter += 1
            states.append(func(name=f"{self._prefix}begin_state_{self._init_counter}", **{**(info or {}), **kwargs}))
        return states

    def _refuse_if_modified(self) -> None:
        if self._modified:
            raise UsageError(f"{self.name} is inside of a modifier cell (ZoneoutCell, ResidualCell, ...): call that one")

    def unroll(self, length: int, inputs: Any, begin_state: list[Any] | None = None, layout: str = "NTC", merge_outputs: bool | None = None,
               valid_length: NDArray | Symbol | None = None) -> tuple[Any, list[Any]]:
        """Run the cell over a sequence.

        Parameters
        ----------
        length : int
            The number of steps.
        inputs : NDArray or Symbol, or list of these
            One for all steps, in `layout`, or one for each step, of shape (batch, ...).
        begin_state : list, optional
            Zeros by default.
        layout : str
            The axes: T is time, N the batch.
        merge_outputs : bool, optional
            True for outputs as one array, False for a list; by default the form that is cheapest for the cell.
        valid_length : NDArray or Symbol, optional
            The lengths of the sequences, of shape (batch,). Outputs behind them are 0; the states are those at the last valid step.

        Returns
        -------
        outputs : NDArray or Symbol, or list
        states : list
        """
        self.reset()
        inputs, axis, F, batch_size = _format_sequence(length, inputs, layout, False)
        states = _get_begin_state(self, F, begin_state, inputs, batch_size)
        outputs, history = [], []
        for i in range(length):
            output, states = self(inputs[i], states)
            outputs.append(output)
            history.append(states)
        if valid_length is not None:
            states = [F.SequenceLast(F.stack(*steps, axis=0), sequence_length=valid_length, use_sequence_length=True, axis=0)
                      for steps in zip(*history)]
            outputs = _mask_sequence_variable_length(F, outputs, length, valid_length, axis, True)
        return _format_sequence(length, outputs, layout, merge_outputs)[0], states

    def _get_activation(self, F: Any, inputs: Any, activation: Any, **kwargs: Any) -> Any:
        """Apply an activation, which is a name, a block or a function."""
        if isinstance(activation, string_types):
            if activation in _PLAIN_ACTIVATIONS:
                return getattr(F, activation)(inputs, **kwargs)
            return F.Activation(inputs, act_type=activation, **kwargs)
        if isinstance(activation, LeakyReLU):
            return F.LeakyReLU(inputs, act_type="leaky", slope=activation._alpha, **kwargs)
        return activation(inputs, **kwargs)

    def forward(self, inputs: Any, states: Any) -> Any:
        """Return the output and the new states of one step."""
        self._counter += 1
        return super().forward(inputs, states)


class HybridRecurrentCell(RecurrentCell, HybridBlock):
    """The base of recurrent cells that can be hybridized.

    Parameters
    ----------
    prefix, params
        As for `Block`.
    """

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        super().__init__(prefix=prefix, params=params)

    # The attributes in which a cell keeps data between training steps, such as dropout masks.
    _between_steps: tuple[str, ...] = ()

    def _cells_with_memory(self) -> list[HybridRecurrentCell]:
        """Return this cell and those inside of it that keep data between steps."""
        inner = [owner for cell in self._children.values() if isinstance(cell, HybridRecurrentCell) for owner in cell._cells_with_memory()]
        return [self, *inner] if self._between_steps else inner

    def forward(self, inputs: Any, states: Any) -> Any:
        """Return the output and the new states of one step."""
        cells = self._cells_with_memory() if self._active and mode.tracing is None and isinstance(inputs, NDArray) else None
        if not cells:
            return super().forward(inputs, states)
        if mode.training:  # a trace of one step would miss the kept data; cells inside without any are traced
            self._counter += 1
            with inputs.context:
                return self._call_eagerly(inputs.context, inputs, states)
        saved = [(cell, name, getattr(cell, name)) for cell in cells for name in cell._between_steps]
        for cell, name, _ in saved:
            setattr(cell, name, None)
        try:
            return super().forward(inputs, states)
        finally:  # a trace leaves Symbols there
            for cell, name, value in saved:
                setattr(cell, name, value)

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the output and the new states of one step; a subclass must define this."""
        raise NotImplementedError(f"{type(self).__name__} must define hybrid_forward(self, F, inputs, states, **parameters)")


class _GatedCell(HybridRecurrentCell):
    """The base of the three basic cells: two weights and biases with `_gates` rows for each hidden unit."""

    _gates = 1

    def _make_parameters(self, hidden_size, input_size, i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer,
                         h2h_bias_initializer) -> None:
        self._hidden_size, self._input_size = hidden_size, input_size
        rows = self._gates * hidden_size
        for name, shape, init in (("i2h_weight", (rows, input_size), i2h_weight_initializer),
                                  ("h2h_weight", (rows, hidden_size), h2h_weight_initializer),
                                  ("i2h_bias", (rows,), i2h_bias_initializer),
                                  ("h2h_bias", (rows,), h2h_bias_initializer)):
            setattr(self, name, self.params.get(name, shape=shape, init=init, allow_deferred_init=True))

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Return the shape of the hidden state."""
        return [{"shape": (batch_size, self._hidden_size), "__layout__": "NC"}]

    def _project(self, F: Any, prefix: str, inputs: Any, state: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any):
        """Return the projections of the input and of the hidden state to the gates."""
        rows = self._gates * self._hidden_size
        return (F.FullyConnected(data=inputs, weight=i2h_weight, bias=i2h_bias, num_hidden=rows, name=prefix + "i2h"),
                F.FullyConnected(data=state, weight=h2h_weight, bias=h2h_bias, num_hidden=rows, name=prefix + "h2h"))


class RNNCell(_GatedCell):
    """h' = activation(W x + b + R h + c).

    Parameters
    ----------
    hidden_size : int
    activation : str, block or callable
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer : str or Initializer, optional
        For W, R, b and c.
    input_size : int
        0 waits for the first batch.
    prefix, params
        As for `Block`.

    Example
    -------
    >>> import mxnet as mx
    >>> cell = mx.gluon.rnn.RNNCell(4)
    >>> cell.initialize()
    >>> outputs, states = cell.unroll(3, mx.nd.ones((2, 3, 5)), merge_outputs=True)
    >>> outputs.shape, states[0].shape
    ((2, 3, 4), (2, 4))
    """

    def __init__(self, hidden_size: int, activation: Any = "tanh", i2h_weight_initializer: str | Initializer | None = None,
                 h2h_weight_initializer: str | Initializer | None = None, i2h_bias_initializer: str | Initializer | None = "zeros",
                 h2h_bias_initializer: str | Initializer | None = "zeros", input_size: int = 0, prefix: str | None = None,
                 params: ParameterDict | None = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self._activation = activation
        self._make_parameters(hidden_size, input_size, i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer,
                              h2h_bias_initializer)

    def _alias(self) -> str:
        return "rnn"

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self._activation})"

    def hybrid_forward(self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any) -> Any:
        """Return the output and the new state."""
        prefix = f"t{self._counter}_"
        i2h, h2h = self._project(F, prefix, inputs, states[0], i2h_weight, h2h_weight, i2h_bias, h2h_bias)
        output = self._get_activation(F, F.elemwise_add(i2h, h2h, name=prefix + "plus0"), self._activation, name=prefix + "out")
        return output, [output]


class LSTMCell(_GatedCell):
    """Long short-term memory. The rows of the weights are those of the input gate, forget gate, cell candidate and output gate.

    Parameters
    ----------
    hidden_size : int
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer : str or Initializer, optional
    input_size : int
        0 waits for the first batch.
    prefix, params
        As for `Block`.
    activation, recurrent_activation : str, block or callable
        Of the cell state, and of the gates.
    """

    _gates = len(GATES["lstm"])

    def __init__(self, hidden_size: int, i2h_weight_initializer: str | Initializer | None = None,
                 h2h_weight_initializer: str | Initializer | None = None, i2h_bias_initializer: str | Initializer | None = "zeros",
                 h2h_bias_initializer: str | Initializer | None = "zeros", input_size: int = 0, prefix: str | None = None,
                 params: ParameterDict | None = None, activation: Any = "tanh", recurrent_activation: Any = "sigmoid") -> None:
        super().__init__(prefix=prefix, params=params)
        self._activation, self._recurrent_activation = activation, recurrent_activation
        self._make_parameters(hidden_size, input_size, i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer,
                              h2h_bias_initializer)

    def _alias(self) -> str:
        return "lstm"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Return the shapes of the hidden state and of the cell state."""
        return super().state_info(batch_size) + super().state_info(batch_size)

    def hybrid_forward(self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any) -> Any:
        """Return the output and the new states."""
        prefix = f"t{self._counter}_"
        i2h, h2h = self._project(F, prefix, inputs, states[0], i2h_weight, h2h_weight, i2h_bias, h2h_bias)
        gates = F.SliceChannel(F.elemwise_add(i2h, h2h, name=prefix + "plus0"), num_outputs=4, name=prefix + "slice")
        in_gate, forget_gate, memory, out_gate = (
            self._get_activation(F, gates[i], activation, name=prefix + name)
            for i, (name, activation) in enumerate((("i", self._recurrent_activation), ("f", self._recurrent_activation),
                                                    ("c", self._activation), ("o", self._recurrent_activation))))
        next_c = F.elemwise_add(F.elemwise_mul(forget_gate, states[1], name=prefix + "mul0"),
                                F.elemwise_mul(in_gate, memory, name=prefix + "mul1"), name=prefix + "state")
        if isinstance(self._activation, string_types):
            shown = F.Activation(next_c, act_type=self._activation, name=prefix + "activation0")
        else:
            shown = self._get_activation(F, next_c, self._activation, name=prefix + "activation0")
        next_h = F.elemwise_mul(out_gate, shown, name=prefix + "out")
        return next_h, [next_h, next_c]


class GRUCell(_GatedCell):
    """Gated recurrent unit. The rows of the weights are those of the reset gate, update gate and new state.

    Parameters
    ----------
    hidden_size : int
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer : str or Initializer, optional
    input_size : int
        0 waits for the first batch.
    prefix, params
        As for `Block`.
    """

    _gates = len(GATES["gru"])

    def __init__(self, hidden_size: int, i2h_weight_initializer: str | Initializer | None = None,
                 h2h_weight_initializer: str | Initializer | None = None, i2h_bias_initializer: str | Initializer | None = "zeros",
                 h2h_bias_initializer: str | Initializer | None = "zeros", input_size: int = 0, prefix: str | None = None,
                 params: ParameterDict | None = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self._make_parameters(hidden_size, input_size, i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer,
                              h2h_bias_initializer)

    def _alias(self) -> str:
        return "gru"

    def hybrid_forward(self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any) -> Any:
        """Return the output and the new state."""
        prefix, state = f"t{self._counter}_", states[0]
        i2h, h2h = self._project(F, prefix, inputs, state, i2h_weight, h2h_weight, i2h_bias, h2h_bias)
        i2h_r, i2h_z, i2h_h = F.SliceChannel(i2h, num_outputs=3, name=prefix + "i2h_slice")
        h2h_r, h2h_z, h2h_h = F.SliceChannel(h2h, num_outputs=3, name=prefix + "h2h_slice")
        reset = F.Activation(F.elemwise_add(i2h_r, h2h_r, name=prefix + "plus0"), act_type="sigmoid", name=prefix + "r_act")
        update = F.Activation(F.elemwise_add(i2h_z, h2h_z, name=prefix + "plus1"), act_type="sigmoid", name=prefix + "z_act")
        new = F.Activation(F.elemwise_add(i2h_h, F.elemwise_mul(reset, h2h_h, name=prefix + "mul0"), name=prefix + "plus2"),
                           act_type="tanh", name=prefix + "h_act")
        remainder = F.elemwise_sub(F.ones_like(update, name=prefix + "ones_like0"), update, name=prefix + "minus0")
        output = F.elemwise_add(F.elemwise_mul(remainder, new, name=prefix + "mul1"),
                                F.elemwise_mul(update, state, name=prefix + "mul20"), name=prefix + "out")
        return output, [output]
