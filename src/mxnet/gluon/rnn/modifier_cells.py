"""Cells that wrap another cell and modify its outputs."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ... import symbol
from ...base import numeric_types
from ...suggestions import shortened
from ..parameter import tensor_types
from ..utils import UsageError
from .container_cells import BidirectionalCell, SequentialRNNCell
from .rnn_cell import HybridRecurrentCell
from .sequences import _format_sequence, _mask_sequence_variable_length

if TYPE_CHECKING:
    from ..parameter_dict import ParameterDict
    from .rnn_cell import RecurrentCell


class DropoutCell(HybridRecurrentCell):
    """Dropout between cells; has no state.

    Parameters
    ----------
    rate : float
        The fraction of elements to drop.
    axes : tuple of int
        Axes along which all elements share one fate.
    prefix, params
        As for `Block`.

    Raises
    ------
    UsageError
        If `rate` is no number.
    """

    def __init__(self, rate: float, axes: tuple[int, ...] = (), prefix: str | None = None, params: ParameterDict | None = None) -> None:
        super().__init__(prefix, params)
        if not isinstance(rate, numeric_types):
            raise UsageError(f"rate must be a number, received {shortened(rate)}")
        self._rate, self._axes = rate, axes

    def _alias(self) -> str:
        return "dropout"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(rate={self._rate}, axes={self._axes})"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """There is no state."""
        return []

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """Return the inputs with elements dropped, and the states as they are."""
        if self._rate > 0:
            inputs = F.Dropout(data=inputs, p=self._rate, axes=self._axes, name=f"t{self._counter}_fwd")
        return inputs, states

    def unroll(self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None,
               valid_length: Any = None) -> tuple[Any, list[Any]]:
        """Drop elements of a sequence, all at once if it is one array; see `RecurrentCell.unroll`."""
        self.reset()
        inputs, _, F, _ = _format_sequence(length, inputs, layout, merge_outputs)
        if isinstance(inputs, tensor_types):
            return self.hybrid_forward(F, inputs, begin_state or [])
        return super().unroll(length, inputs, begin_state=begin_state, layout=layout, merge_outputs=merge_outputs, valid_length=None)


class ModifierCell(HybridRecurrentCell):
    """The base of cells that wrap another one, which must not be used directly any more.

    Parameters
    ----------
    base_cell : RecurrentCell

    Raises
    ------
    UsageError
        If `base_cell` is wrapped already.
    """

    def __init__(self, base_cell: RecurrentCell) -> None:
        if base_cell._modified:
            raise UsageError(f"{type(self).__name__}: {base_cell.name} is inside of another modifier cell already; wrap that one")
        base_cell._modified = True
        super().__init__(prefix=base_cell.prefix + self._alias(), params=None)
        self.base_cell = base_cell

    @property
    def params(self) -> ParameterDict:
        """The parameters of the cell that is wrapped."""
        return self.base_cell.params

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_cell})"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Return the shapes of the states of the cell that is wrapped."""
        return self.base_cell.state_info(batch_size)

    def begin_state(self, func: Callable[..., Any] = symbol.zeros, **kwargs: Any) -> list[Any]:  # type: ignore[override]  # MXNet's own order
        """Return the states to start with; see `RecurrentCell.begin_state`."""
        self._refuse_if_modified()
        self.base_cell._modified = False
        try:
            return self.base_cell.begin_state(func=func, **kwargs)
        finally:
            self.base_cell._modified = True

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """Return the output and the new states of one step; a subclass must define this."""
        raise NotImplementedError(f"{type(self).__name__} must define hybrid_forward(self, F, inputs, states)")


class ZoneoutCell(ModifierCell):
    """Keeps elements of output and states from the step before, at random (arXiv:1606.01305).

    Parameters
    ----------
    base_cell : RecurrentCell
    zoneout_outputs, zoneout_states : float
        The fractions of elements to keep.

    Raises
    ------
    UsageError
        If `base_cell` is, or holds, a BidirectionalCell.
    """

    def __init__(self, base_cell: RecurrentCell, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0) -> None:
        holds = isinstance(base_cell, SequentialRNNCell) and any(isinstance(c, BidirectionalCell) for c in base_cell._children.values())
        if holds or isinstance(base_cell, BidirectionalCell):
            raise UsageError(f"ZoneoutCell needs a cell that can step, received {type(base_cell).__name__}, which is or has a BidirectionalCell; "
                             "wrap the two cells in it")
        super().__init__(base_cell)
        self.zoneout_outputs, self.zoneout_states = zoneout_outputs, zoneout_states
        self._prev_output = None

    _between_steps = ("_prev_output",)

    def _alias(self) -> str:
        return "zoneout"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p_out={self.zoneout_outputs}, p_state={self.zoneout_states}, {self.base_cell})"

    def reset(self) -> None:
        """Reset the cell and discard the last output."""
        super().reset()
        self._prev_output = None

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """Return the output and the new states."""
        def mix(share, new, old):
            return F.where(F.Dropout(F.ones_like(new), p=share), new, old) if share else new

        output, next_states = self.base_cell(inputs, states)
        previous = F.zeros_like(output) if self._prev_output is None else self._prev_output
        self._prev_output = output = mix(self.zoneout_outputs, output, previous)
        return output, [mix(self.zoneout_states, new, old) for new, old in zip(next_states, states)]


class ResidualCell(ModifierCell):
    """Adds the input to the output.

    Parameters
    ----------
    base_cell : RecurrentCell
    """

    def __init__(self, base_cell: RecurrentCell) -> None:
        super().__init__(base_cell)

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """Return the output and the new states."""
        output, states = self.base_cell(inputs, states)
        return F.elemwise_add(output, inputs, name=f"t{self._counter}_fwd"), states

    def unroll(self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None,
               valid_length: Any = None) -> tuple[Any, list[Any]]:
        """Run the cell over a sequence and add the inputs; see `RecurrentCell.unroll`."""
        self.reset()
        self.base_cell._modified = False
        try:
            outputs, states = self.base_cell.unroll(length, inputs=inputs, begin_state=begin_state, layout=layout,
                                                    merge_outputs=merge_outputs, valid_length=valid_length)
        finally:
            self.base_cell._modified = True
        merge_outputs = isinstance(outputs, tensor_types) if merge_outputs is None else merge_outputs
        inputs, axis, F, _ = _format_sequence(length, inputs, layout, merge_outputs)
        if valid_length is not None:
            inputs = _mask_sequence_variable_length(F, inputs, length, valid_length, axis, merge_outputs)
        if merge_outputs:
            return F.elemwise_add(outputs, inputs), states
        return [F.elemwise_add(out, x) for out, x in zip(outputs, inputs)], states
