"""A whole stack of recurrent layers in one operator."""
from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import initializer as init
from .. import ndarray, symbol
from ..base import MXNetError
from ..ops.nn.rnn_layout import GATES, Layout, layout_of, layout_of_vector
from .modifier_cell import BidirectionalCell, DropoutCell, SequentialRNNCell
from .rnn_cell import BaseRNNCell, GRUCell, LSTMCell, RNNCell, as_steps

if TYPE_CHECKING:
    from ..ndarray import NDArray
    from ..symbol import Symbol
    from .rnn_cell import RNNParams

__all__ = ["FusedRNNCell"]


class FusedRNNCell(BaseRNNCell):
    """Several recurrent layers in one operator, much faster than cells step by step.

    Parameters
    ----------
    num_hidden, num_layers : int
    mode : str
        ``'rnn_relu'``, ``'rnn_tanh'``, ``'lstm'`` or ``'gru'``.
    bidirectional : bool
    dropout : float
        The dropout rate of the outputs between layers.
    get_next_state : bool
        Let `unroll` return the last states.
    forget_bias : float
        The initial biases of an LSTM's forget gates.
    prefix : str, optional
        Default: the mode and an underscore.
    params : RNNParams, optional
    """

    _not_stepped = "a FusedRNNCell can't; call unfuse() on it"

    def __init__(self, num_hidden: int, num_layers: int = 1, mode: str = "lstm", bidirectional: bool = False, dropout: float = 0.0,
                 get_next_state: bool = False, forget_bias: float = 1.0, prefix: str | None = None, params: RNNParams | None = None):
        if mode not in GATES:
            raise MXNetError(f"FusedRNNCell: unknown mode {mode!r}; expected one of {sorted(GATES)}")
        super().__init__(prefix=f"{mode}_" if prefix is None else prefix, params=params)
        self._mode: Any = mode
        self._num_hidden, self._num_layers = num_hidden, num_layers
        self._bidirectional = bidirectional
        self._directions = ["l", "r"] if bidirectional else ["l"]
        self._dropout = dropout
        self._get_next_state = get_next_state
        self._parameter = self.params.get(
            "parameters", init=init.FusedRNN(None, num_hidden, num_layers, mode, bidirectional, forget_bias))

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """For each state its shape, (layers times directions, batch, hidden), and layout."""
        shape = (len(self._directions) * self._num_layers, 0, self._num_hidden)
        return [{"shape": shape, "__layout__": "LNC"} for _ in range(2 if self._mode == "lstm" else 1)]

    @property
    def _gate_names(self) -> Sequence[str]:
        return GATES[self._mode]

    @property
    def _num_gates(self) -> int:
        return len(self._gate_names)

    @property
    def _layers(self) -> tuple[int, int, int]:
        return self._num_hidden, self._num_layers, len(self._directions)

    def _views(self, vector: NDArray, layout: Layout) -> dict[str, NDArray]:
        """Return views of the packed parameters, by name: one for each gate."""
        return {self._prefix + part.name: vector[place].reshape(part.shape) for part, place in layout.by_gate()}

    def _slice_weights(self, arr: NDArray, li: int, lh: int) -> dict[str, NDArray]:
        """Return views of packed parameters, by name, of layers with `li` inputs and `lh` states."""
        layout = layout_of(self._mode, li, lh, self._num_layers, len(self._directions))
        if layout.total != arr.size:
            raise MXNetError(f"FusedRNNCell: {layout.total} packed parameters expected of layers with {li} inputs and {lh} states, "
                             f"received {arr.size}")
        return self._views(arr, layout)

    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return a copy of a parameter dict with an array per layer, direction and gate instead of the packed one."""
        args = dict(args)
        packed = args.pop(self._parameter.name)
        args.update((name, view.copy()) for name, view in self._views(packed, layout_of_vector(packed.size, self._mode, *self._layers)).items())
        return args

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return a copy of a parameter dict with the packed array again; the inverse of `unpack_weights`."""
        args = dict(args)
        first = args[f"{self._prefix}l0_i2h{self._gate_names[0]}_weight"]
        layout = layout_of(self._mode, first.shape[1], *self._layers)
        packed = ndarray.zeros((layout.total,), ctx=first.context, dtype=first.dtype)
        for name, view in self._views(packed, layout).items():
            view[:] = args.pop(name)
        args[self._parameter.name] = packed
        return args

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        raise NotImplementedError("a FusedRNNCell needs whole sequences: call unroll()")

    def unroll(self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None) -> tuple[Any, Any]:
        """Add the layers, for `length` steps, to the network; see `BaseRNNCell.unroll`. ``layout='TNC'`` is faster."""
        self.reset()
        inputs, axis = as_steps(length, inputs, layout, True)
        if axis == 1:
            warnings.warn("FusedRNNCell transposes NTC input; layout TNC is faster", stacklevel=2)
            inputs = symbol.swapaxes(inputs, dim1=0, dim2=1)
        elif axis != 0:
            raise MXNetError(f"Unsupported layout {layout}; expected NTC or TNC")
        begin = self.begin_state() if begin_state is None else begin_state
        inputs_of_states = dict(zip(("state", "state_cell"), begin if self._mode == "lstm" else begin[:1]))
        rnn = symbol.RNN(data=inputs, parameters=self._parameter, state_size=self._num_hidden, num_layers=self._num_layers,
                         bidirectional=self._bidirectional, p=self._dropout, state_outputs=self._get_next_state, mode=self._mode,
                         name=f"{self._prefix}rnn", **inputs_of_states)
        outputs: Any = rnn
        states: list[Symbol] = []
        if self._get_next_state:
            outputs, *states = [rnn[i] for i in range(3 if self._mode == "lstm" else 2)]
            for state in states:
                state._set_attr(__layout__="LNC")
        if axis == 1:
            outputs = symbol.swapaxes(outputs, dim1=0, dim2=1)
        return as_steps(length, outputs, layout, merge_outputs)[0], states

    def unfuse(self) -> SequentialRNNCell:
        """Return the same layers as single-step cells: a `SequentialRNNCell` with the same (unpacked) weights."""
        def cell(prefix: str) -> BaseRNNCell:
            if self._mode == "lstm":
                return LSTMCell(self._num_hidden, prefix=prefix)
            if self._mode == "gru":
                return GRUCell(self._num_hidden, prefix=prefix)
            return RNNCell(self._num_hidden, activation=self._mode[len("rnn_"):], prefix=prefix)

        stack = SequentialRNNCell()
        for i in range(self._num_layers):
            left = cell(f"{self._prefix}l{i}_")
            if self._bidirectional:
                stack.add(BidirectionalCell(left, cell(f"{self._prefix}r{i}_"), output_prefix=f"{self._prefix}bi_l{i}_"))
            else:
                stack.add(left)
            if self._dropout > 0 and i != self._num_layers - 1:
                stack.add(DropoutCell(self._dropout, prefix=f"{self._prefix}_dropout{i}_"))
        return stack
