"""Cells composed of other cells: stacks, bidirectional cells, dropout, zoneout, residual connections."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from .. import symbol
from ..base import MXNetError, numeric_types
from ..suggestions import shortened
from .rnn_cell import BaseRNNCell, as_steps

if TYPE_CHECKING:
    from ..ndarray import NDArray
    from ..symbol import Symbol
    from .rnn_cell import RNNParams

__all__ = ["BidirectionalCell", "DropoutCell", "ModifierCell", "ResidualCell", "SequentialRNNCell", "ZoneoutCell"]


class _Container(BaseRNNCell):
    """The base class of cells that contain cells."""

    def __init__(self, params: RNNParams | None):
        super().__init__("", params=params)
        self._override_cell_params = params is not None
        self._cells: list[BaseRNNCell] = []

    def _adopt(self, cell: BaseRNNCell) -> None:
        """Share the parameters with an added cell."""
        if self._override_cell_params:
            if not cell._own_params:
                raise MXNetError(f"Either specify params for {type(self).__name__} or child cells, not both.")
            cell.params._params.update(self.params._params)
        self.params._params.update(cell.params._params)
        self._cells.append(cell)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """The states of all cells, one after the other."""
        return [info for cell in self._cells for info in cell.state_info]

    def begin_state(self, **kwargs: Any) -> list[Symbol]:  # type: ignore[override]  # as in MXNet
        """Return the initial states of all cells, one after the other; see `BaseRNNCell.begin_state`."""
        self._refuse_modified()
        return [state for cell in self._cells for state in cell.begin_state(**kwargs)]

    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Unpack the weights of all cells; see `BaseRNNCell.unpack_weights`."""
        unpacked = dict(args)
        for cell in self._cells:
            unpacked = cell.unpack_weights(unpacked)
        return unpacked

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Invert `unpack_weights`."""
        packed = dict(args)
        for cell in self._cells:
            packed = cell.pack_weights(packed)
        return packed

    def _states_of_each(self, states: Sequence[Any]) -> Iterator[tuple[BaseRNNCell, Sequence[Any]]]:
        """Yield ``(cell, its part of the states)`` for each cell."""
        start = 0
        for cell in self._cells:
            count = len(cell.state_info)
            yield cell, states[start:start + count]
            start += count


class SequentialRNNCell(_Container):
    """A stack of cells, each of which has the previous cell's output as its input.

    Parameters
    ----------
    params : RNNParams, optional

    Example
    -------
    >>> import mxnet as mx
    >>> stack = mx.rnn.SequentialRNNCell()
    >>> stack.add(mx.rnn.LSTMCell(4, prefix='l0_'))
    >>> stack.add(mx.rnn.LSTMCell(4, prefix='l1_'))
    >>> outputs, states = stack.unroll(3, mx.sym.var('data'), merge_outputs=True)
    >>> outputs.infer_shape(data=(2, 3, 5))[1]
    [(2, 3, 4)]
    """

    def __init__(self, params: RNNParams | None = None):
        super().__init__(params)

    def add(self, cell: BaseRNNCell) -> None:
        """Add a cell on top."""
        self._adopt(cell)

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        self._counter += 1
        next_states = []
        for cell, mine in self._states_of_each(states):
            if isinstance(cell, BidirectionalCell):
                raise MXNetError(f"a stack with a {type(cell).__name__} needs whole sequences: call unroll()")
            inputs, mine = cell(inputs, mine)
            next_states.extend(mine)
        return inputs, next_states

    def unroll(self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None) -> tuple[Any, Any]:
        """Add `length` steps of all cells to the network, cell by cell; see `BaseRNNCell.unroll`."""
        self.reset()
        states = self.begin_state() if begin_state is None else begin_state
        next_states = []
        last = len(self._cells) - 1
        for i, (cell, mine) in enumerate(self._states_of_each(states)):
            inputs, mine = cell.unroll(length, inputs=inputs, begin_state=mine, layout=layout,
                                       merge_outputs=merge_outputs if i == last else None)
            next_states.extend(mine)
        return inputs, next_states


class BidirectionalCell(_Container):
    """Two cells, one of which runs over the reversed sequence; the outputs are joined along the features.

    Parameters
    ----------
    l_cell, r_cell : BaseRNNCell
    params : RNNParams, optional
    output_prefix : str
        The prefix of the names of the outputs.
    """

    _not_stepped = "a BidirectionalCell can't; wrap the two cells in it"

    def __init__(self, l_cell: BaseRNNCell, r_cell: BaseRNNCell, params: RNNParams | None = None, output_prefix: str = "bi_"):
        super().__init__(params)
        self._output_prefix = output_prefix
        self._adopt(l_cell)
        self._adopt(r_cell)

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        raise NotImplementedError("a BidirectionalCell needs whole sequences: call unroll()")

    def unroll(self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None) -> tuple[Any, Any]:
        """Add `length` steps in both directions to the network; see `BaseRNNCell.unroll`."""
        self.reset()
        inputs, axis = as_steps(length, inputs, layout, False)
        begin = self.begin_state() if begin_state is None else begin_state
        (left, left_begin), (right, right_begin) = self._states_of_each(begin)
        forward, left_states = left.unroll(length, inputs=inputs, begin_state=left_begin, layout=layout, merge_outputs=merge_outputs)
        backward, right_states = right.unroll(length, inputs=list(reversed(inputs)), begin_state=right_begin, layout=layout,
                                              merge_outputs=merge_outputs)
        if merge_outputs is None:
            merge_outputs = isinstance(forward, symbol.Symbol) and isinstance(backward, symbol.Symbol)
            if not merge_outputs:
                forward, backward = (as_steps(length, half, layout, False)[0] for half in (forward, backward))
        if merge_outputs:
            outputs: Any = symbol.Concat(forward, symbol.reverse(backward, axis=axis), dim=2, name=f"{self._output_prefix}out")
        else:
            outputs = [symbol.Concat(f, b, dim=1, name=f"{self._output_prefix}t{i}")
                       for i, (f, b) in enumerate(zip(forward, reversed(backward)))]
        return outputs, [left_states, right_states]


class DropoutCell(BaseRNNCell):
    """Applies dropout to its inputs; has no states.

    Parameters
    ----------
    dropout : float
        The dropout rate, from 0 to 1.
    prefix : str
    params : RNNParams, optional
    """

    def __init__(self, dropout: float, prefix: str = "dropout_", params: RNNParams | None = None):
        super().__init__(prefix, params)
        if not isinstance(dropout, numeric_types):
            raise MXNetError(f"dropout probability must be a number, received {shortened(dropout)}")
        self.dropout = dropout

    state_info = property(lambda self: [], doc="Empty: there are no states.")

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        return (symbol.Dropout(data=inputs, p=self.dropout) if self.dropout > 0 else inputs), list(states)

    def unroll(self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None) -> tuple[Any, Any]:
        """Apply dropout to a whole sequence, in one call if it is one symbol. See `BaseRNNCell.unroll`."""
        self.reset()
        inputs, _ = as_steps(length, inputs, layout, merge_outputs)
        if isinstance(inputs, symbol.Symbol):
            return self(inputs, [])
        return super().unroll(length, inputs, begin_state=begin_state, layout=layout, merge_outputs=merge_outputs)


class ModifierCell(BaseRNNCell):
    """The base class of cells that modify another cell's computation, with its parameters and states.

    Parameters
    ----------
    base_cell : BaseRNNCell
        The modified cell, which must not be called directly any more.
    """

    def __init__(self, base_cell: BaseRNNCell):
        super().__init__()
        self.base_cell = base_cell
        base_cell._modified = True

    state_info = property(attrgetter("base_cell.state_info"), doc="The states of the base cell.")

    @property
    def params(self) -> RNNParams:
        """The variables of the base cell."""
        self._own_params = False
        return self.base_cell.params

    def begin_state(self, init_sym: Callable[..., Any] = symbol.zeros, **kwargs: Any) -> list[Symbol]:  # type: ignore[override]  # as in MXNet
        """Return the initial states of the base cell; `init_sym` is `func` of `BaseRNNCell.begin_state`."""
        self._refuse_modified()
        self.base_cell._modified = False
        try:
            return self.base_cell.begin_state(**{"func": init_sym, **kwargs})
        finally:
            self.base_cell._modified = True

    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Unpack the weights of the base cell; see `BaseRNNCell.unpack_weights`."""
        return self.base_cell.unpack_weights(args)

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Invert `unpack_weights`."""
        return self.base_cell.pack_weights(args)


class ZoneoutCell(ModifierCell):
    """Zoneout: randomly keeps elements of outputs and states from the previous step.

    Parameters
    ----------
    base_cell : BaseRNNCell
    zoneout_outputs, zoneout_states : float
        The fractions of kept elements, from 0 to 1.
    """

    def __init__(self, base_cell: BaseRNNCell, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0):
        for cell in base_cell._cells if isinstance(base_cell, SequentialRNNCell) else [base_cell]:
            if cell._not_stepped is not None:
                raise MXNetError(f"ZoneoutCell needs a cell that can step, which {cell._not_stepped}")
        super().__init__(base_cell)
        self.zoneout_outputs = zoneout_outputs
        self.zoneout_states = zoneout_states
        self.prev_output: Symbol | None = None

    def reset(self) -> None:
        """Reset the count of steps, before another network is made with the cell."""
        super().reset()
        self.prev_output = None

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        next_output, next_states = self.base_cell(inputs, states)
        before = symbol.zeros((0, 0)) if self.prev_output is None else self.prev_output
        output = _keep(self.zoneout_outputs, next_output, before)
        self.prev_output = output
        return output, [_keep(self.zoneout_states, new, old) for new, old in zip(next_states, states)]


def _keep(part: float, new: Symbol, old: Symbol) -> Symbol:
    """Return `new` with random elements replaced by those of `old`."""
    if part == 0.0:
        return new
    return symbol.where(symbol.Dropout(symbol.ones_like(new), p=part), new, old)


class ResidualCell(ModifierCell):
    """Adds the inputs to the outputs of another cell.

    Parameters
    ----------
    base_cell : BaseRNNCell
    """

    def __init__(self, base_cell: BaseRNNCell):
        super().__init__(base_cell)

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        output, states = self.base_cell(inputs, states)
        return _add_residual(output, inputs), states

    def unroll(self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None) -> tuple[Any, Any]:
        """Add `length` steps to the network; see `BaseRNNCell.unroll`."""
        self.reset()
        self.base_cell._modified = False
        try:
            outputs, states = self.base_cell.unroll(length, inputs=inputs, begin_state=begin_state, layout=layout,
                                                    merge_outputs=merge_outputs)
        finally:
            self.base_cell._modified = True
        merged = isinstance(outputs, symbol.Symbol) if merge_outputs is None else merge_outputs
        inputs, _ = as_steps(length, inputs, layout, merged)
        if merged:
            return _add_residual(outputs, inputs), states
        return [_add_residual(output, step) for output, step in zip(outputs, inputs)], states


def _add_residual(output: Symbol, inputs: Symbol) -> Symbol:
    return symbol.elemwise_add(output, inputs, name=f"{output.name}_plus_residual")
