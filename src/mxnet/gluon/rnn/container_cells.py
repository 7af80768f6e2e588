"""Cells made of cells: one behind the other, or one in each direction."""
from collections.abc import Iterator
from typing import Any

from ..parameter import tensor_types
from ..utils import UsageError, _indent
from .rnn_cell import HybridRecurrentCell, RecurrentCell
from .sequences import _format_sequence, _get_begin_state, _mask_sequence_variable_length, _reverse_sequences


def _cells_state_info(cells: Any, batch_size: int):
    return [info for cell in cells for info in cell.state_info(batch_size)]


def _cells_begin_state(cells: Any, **kwargs: Any):
    return [state for cell in cells for state in cell.begin_state(**kwargs)]


class _CellStack(RecurrentCell):
    """The base of `SequentialRNNCell` and `HybridSequentialRNNCell`."""

    def __repr__(self) -> str:
        rows = "\n".join(f"({name}): {_indent(repr(cell), 2)}" for name, cell in self._children.items())
        return f"{type(self).__name__}(\n{rows}\n)"

    def add(self, cell: RecurrentCell) -> None:
        """Append a cell."""
        self.register_child(cell)

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Return the shapes of the states of all cells."""
        return _cells_state_info(self._children.values(), batch_size)

    def begin_state(self, **kwargs: Any) -> list[Any]:  # type: ignore[override]  # all by name, as in MXNet
        """Return the states of all cells to start with; see `RecurrentCell.begin_state`."""
        self._refuse_if_modified()
        return _cells_begin_state(self._children.values(), **kwargs)

    def _split_states(self, states: Any) -> Iterator[Any]:
        """Iterate over pairs of cell and its part of the states."""
        position = 0
        for cell in self._children.values():
            count = len(cell.state_info())
            yield cell, states[position:position + count]
            position += count

    def __call__(self, inputs: Any, states: Any) -> Any:
        self._counter += 1
        if any(isinstance(cell, BidirectionalCell) for cell in self._children.values()):
            raise UsageError(f"{type(self).__name__} cannot be stepped with a BidirectionalCell inside: use unroll")
        next_states = []
        for cell, own in self._split_states(states):
            inputs, own = cell(inputs, own)
            next_states += own
        return inputs, next_states

    def unroll(self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None,
               valid_length: Any = None) -> tuple[Any, list[Any]]:
        """Run each cell over the outputs of the one before; see `RecurrentCell.unroll`."""
        self.reset()
        inputs, _, F, batch_size = _format_sequence(length, inputs, layout, None)
        begin_state = _get_begin_state(self, F, begin_state, inputs, batch_size)
        next_states, last = [], len(self._children) - 1
        for i, (cell, own) in enumerate(self._split_states(begin_state)):
            inputs, own = cell.unroll(length, inputs=inputs, begin_state=own, layout=layout,
                                      merge_outputs=merge_outputs if i == last else None, valid_length=valid_length)
            next_states += own
        return inputs, next_states

    def __getitem__(self, i: int) -> Any:
        return self._children[str(i)]

    def __len__(self) -> int:
        return len(self._children)


class SequentialRNNCell(_CellStack, RecurrentCell):
    """Cells one behind the other, of any kind.

    Parameters
    ----------
    prefix, params
        As for `Block`.

    Example
    -------
    >>> cell = mx.gluon.rnn.SequentialRNNCell()
    >>> cell.add(mx.gluon.rnn.LSTMCell(4))
    >>> cell.add(mx.gluon.rnn.GRUCell(3))
    >>> cell.initialize()
    >>> outputs, states = cell.unroll(3, mx.nd.ones((2, 3, 5)), merge_outputs=True)
    >>> outputs.shape, len(states)
    ((2, 3, 3), 3)
    """

    def hybrid_forward(self, *args: Any, **kwargs: Any) -> Any:
        """Not used: the cells are called one by one."""
        raise NotImplementedError("a SequentialRNNCell cannot be hybridized; use HybridSequentialRNNCell")


class HybridSequentialRNNCell(_CellStack, HybridRecurrentCell):
    """Cells one behind the other that can be hybridized.

    Parameters
    ----------
    prefix, params
        As for `Block`.

    Example
    -------
    >>> cell = mx.gluon.rnn.HybridSequentialRNNCell()
    >>> cell.add(mx.gluon.rnn.LSTMCell(4))
    >>> cell.add(mx.gluon.rnn.GRUCell(3))
    >>> cell.initialize()
    >>> outputs, states = cell.unroll(3, mx.nd.ones((2, 3, 5)), merge_outputs=True)
    >>> outputs.shape, len(states)
    ((2, 3, 3), 3)
    """

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """Return the output of the last cell and the new states of all."""
        return self(inputs, states)


class BidirectionalCell(HybridRecurrentCell):
    """One cell over the sequence and one over its reverse; their outputs are concatenated.

    Parameters
    ----------
    l_cell, r_cell : RecurrentCell
        Forward and backward.
    output_prefix : str
        Begins the names of the outputs.

    Example
    -------
    >>> cell = mx.gluon.rnn.BidirectionalCell(mx.gluon.rnn.LSTMCell(4), mx.gluon.rnn.LSTMCell(4))
    >>> cell.initialize()
    >>> outputs, states = cell.unroll(3, mx.nd.ones((2, 3, 5)), merge_outputs=True)
    >>> outputs.shape, len(states)
    ((2, 3, 8), 4)
    """

    def __init__(self, l_cell: RecurrentCell, r_cell: RecurrentCell, output_prefix: str = "bi_") -> None:
        super().__init__(prefix="", params=None)
        self.register_child(l_cell, "l_cell")
        self.register_child(r_cell, "r_cell")
        self._output_prefix = output_prefix

    def __call__(self, inputs: Any, states: Any) -> Any:
        raise NotImplementedError("a BidirectionalCell needs whole sequences: call unroll()")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(forward={self._children['l_cell']}, backward={self._children['r_cell']})"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Return the shapes of the states of both cells."""
        return _cells_state_info(self._children.values(), batch_size)

    def begin_state(self, **kwargs: Any) -> list[Any]:  # type: ignore[override]  # all by name, as in MXNet
        """Return the states of both cells to start with; see `RecurrentCell.begin_state`."""
        self._refuse_if_modified()
        return _cells_begin_state(self._children.values(), **kwargs)

    def unroll(self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None,
               valid_length: Any = None) -> tuple[Any, list[Any]]:
        """Run both cells over a sequence; see `RecurrentCell.unroll`."""
        self.reset()
        inputs, axis, F, batch_size = _format_sequence(length, inputs, layout, False)
        states = _get_begin_state(self, F, begin_state, inputs, batch_size)
        left, right = self._children.values()
        cut = len(left.state_info(batch_size))
        l_outputs, l_states = left.unroll(length, inputs=inputs, begin_state=states[:cut], layout=layout, merge_outputs=merge_outputs,
                                          valid_length=valid_length)
        r_outputs, r_states = right.unroll(length, inputs=list(_reverse_sequences(inputs, length, valid_length)),
                                           begin_state=states[cut:], layout=layout, merge_outputs=False, valid_length=valid_length)
        r_outputs = _reverse_sequences(r_outputs, length, valid_length)
        if merge_outputs is None:
            merge_outputs = isinstance(l_outputs, tensor_types)
            l_outputs = _format_sequence(None, l_outputs, layout, merge_outputs)[0]
            r_outputs = _format_sequence(None, r_outputs, layout, merge_outputs)[0]
        if merge_outputs:
            if not isinstance(r_outputs, tensor_types):
                r_outputs = F.stack(*r_outputs, axis=axis)
            outputs = F.concat(l_outputs, r_outputs, dim=2, name=f"{self._output_prefix}out")
        else:
            outputs = [F.concat(l_out, r_out, dim=1, name=f"{self._output_prefix}t{i}")
                       for i, (l_out, r_out) in enumerate(zip(l_outputs, r_outputs))]
        if valid_length is not None:
            outputs = _mask_sequence_variable_length(F, outputs, length, valid_length, axis, merge_outputs)
        return outputs, l_states + r_states
