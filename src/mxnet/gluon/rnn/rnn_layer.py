"""Recurrent layers: all steps of all layers in one operator."""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ... import ndarray, symbol
from ...ops.nn.rnn_layout import GATES, layout_of
from ..hybrid_block import HybridBlock
from ..parameter import tensor_types
from ..utils import UsageError
from .container_cells import BidirectionalCell, HybridSequentialRNNCell
from .modifier_cells import DropoutCell
from .rnn_cell import GRUCell, LSTMCell, RNNCell

if TYPE_CHECKING:
    from ...initializer import Initializer
    from ..parameter import Parameter

__all__ = ["RNN", "LSTM", "GRU"]

_PARAMETER_NAME = re.compile(r"(l|r)(\d+)_(i2h|h2h|h2r)_(weight|bias)\Z")


class _RNNLayer(HybridBlock):
    """The base of the recurrent layers; its parameters are those of the equivalent cells."""

    def __init__(self, hidden_size, num_layers, layout: str, dropout: float, bidirectional, input_size, i2h_weight_initializer,
                 h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer, mode, projection_size, h2r_weight_initializer,
                 lstm_state_clip_min, lstm_state_clip_max, lstm_state_clip_nan, dtype: Any, use_sequence_length: bool = False,
                 **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if layout not in ("TNC", "NTC"):
            raise UsageError(f"Invalid layout {layout}; must be one of ['TNC' or 'NTC']")
        if mode not in GATES:
            raise UsageError(f"unknown kind of recurrent layer {mode!r}; expected one of {', '.join(GATES)}")
        self._hidden_size, self._num_layers, self._mode, self._layout, self._dropout = hidden_size, num_layers, mode, layout, dropout
        self._projection_size, self._gates = projection_size or None, len(GATES[mode])
        self._dir = 2 if bidirectional else 1
        self._input_size, self._dtype, self._use_sequence_length = input_size, dtype, use_sequence_length
        self._i2h_weight_initializer, self._h2h_weight_initializer = i2h_weight_initializer, h2h_weight_initializer
        self._i2h_bias_initializer, self._h2h_bias_initializer = i2h_bias_initializer, h2h_bias_initializer
        self._h2r_weight_initializer = h2r_weight_initializer
        self._lstm_state_clip_min, self._lstm_state_clip_max = lstm_state_clip_min, lstm_state_clip_max
        self._lstm_state_clip_nan = lstm_state_clip_nan
        self.skip_states: bool | None = None  # True until a caller requests the states: they are outputs of the graph only from then on
        initializers = {"i2h_weight": i2h_weight_initializer, "h2h_weight": h2h_weight_initializer, "i2h_bias": i2h_bias_initializer,
                        "h2h_bias": h2h_bias_initializer, "h2r_weight": h2r_weight_initializer}
        packed = layout_of(mode, input_size, hidden_size, num_layers, self._dir, self._projection_size)
        self._packed_names = [part.name for part in packed.parts]
        for cell in packed.cells:
            for part in (packed.parts[i] for i in cell):
                self._register_param(part.name, part.shape, initializers[f"{part.group}_{part.kind}"], dtype)

    l0_i2h_weight: Parameter

    def _register_param(self, name: str, shape: Any, init: Any, dtype: Any) -> Parameter:
        parameter = self.params.get(name, shape=shape, init=init, allow_deferred_init=True, dtype=dtype)
        setattr(self, name, parameter)
        return parameter

    def _directions(self) -> tuple[str, ...]:
        return ("l", "r")[:self._dir]

    def __repr__(self) -> str:
        rows, size = self.l0_i2h_weight.shape
        parts = [f"{size or None} -> {rows // self._gates}", self._layout]
        if self._num_layers != 1:
            parts.append(f"num_layers={self._num_layers}")
        if self._dropout != 0:
            parts.append(f"dropout={self._dropout}")
        if self._dir == 2:
            parts.append("bidirectional")
        return f"{type(self).__name__}({', '.join(parts)})"

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        # Files name the parameters as those of the unfused cells, which may load them.
        prefix = prefix + "." if prefix else ""
        parameters = {}
        for name, parameter in self._reg_params.items():
            d, layer, part, kind = _PARAMETER_NAME.match(name).groups()  # type: ignore[union-attr]  # all names are of this form
            cell = f"{d}_cell." if self._dir == 2 else ""
            parameters[f"{prefix}_unfused.{layer}.{cell}{part}_{kind}"] = parameter
        for name, child in self._children.items():
            parameters.update(child._collect_params_with_prefix(prefix + name))
        return parameters

    def _unfuse(self):
        """Return cells that compute the same and share the parameters."""
        if self._projection_size:
            raise UsageError(f"_unfuse: there are no cells with a projection, received projection_size={self._projection_size}")
        if self._lstm_state_clip_min or self._lstm_state_clip_max:
            raise UsageError(f"_unfuse: there are no cells that clip their states, received limits {self._lstm_state_clip_min} and "
                             f"{self._lstm_state_clip_max}")

        def cell(prefix: str | None, size: Any) -> Any:
            make = {"lstm": LSTMCell, "gru": GRUCell}.get(self._mode, RNNCell)
            extra = {"activation": self._mode[len("rnn_"):]} if make is RNNCell else {}
            return make(self._hidden_size, input_size=size, prefix=prefix, i2h_weight_initializer=self._i2h_weight_initializer,
                        h2h_weight_initializer=self._h2h_weight_initializer, i2h_bias_initializer=self._i2h_bias_initializer,
                        h2h_bias_initializer=self._h2h_bias_initializer, **extra)

        stack = HybridSequentialRNNCell(prefix=self.prefix, params=self.params)
        with stack.name_scope():
            size = self._input_size
            for i in range(self._num_layers):
                cells = [cell(f"{d}{i}_", size) for d in self._directions()]
                stack.add(cells[0] if self._dir == 1 else BidirectionalCell(*cells))
                if self._dropout > 0 and i != self._num_layers - 1:
                    stack.add(DropoutCell(self._dropout))
                size = self._hidden_size * self._dir
        return stack

    def cast(self, dtype: Any) -> None:
        """Convert all parameters, and later states, to another type."""
        super().cast(dtype)
        self._dtype = dtype

    def _state_info(self, batch_size: int, size: Any):
        return {"shape": (self._num_layers * self._dir, batch_size, size), "__layout__": "LNC", "dtype": self._dtype}

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """For each state a dictionary with its ``shape``, ``__layout__`` and ``dtype``."""
        return [self._state_info(batch_size, self._hidden_size)]

    def begin_state(self, batch_size: int = 0, func: Callable[..., Any] = ndarray.zeros, **kwargs: Any) -> list[Any]:
        """Return the states to start with.

        Parameters
        ----------
        batch_size : int
        func : callable
            Makes each: ``mx.nd.zeros``, ``mx.sym.zeros``, ....
        **kwargs
            For `func`.
        """
        return [func(name=f"{self.prefix}h0_{i}", **{**info, **kwargs}) for i, info in enumerate(self.state_info(batch_size))]

    def __call__(self, inputs: Any, states: Any = None, sequence_length: Any = None, **kwargs: Any) -> Any:  # type: ignore[override]  # named inputs
        skip = states is None
        if self.skip_states is None:
            self.skip_states = skip
        elif self.skip_states and not skip:
            self.skip_states = False
            self._clear_cached_op()
        if skip:
            if isinstance(inputs, ndarray.NDArray):
                states = self.begin_state(inputs.shape[self._layout.find("N")], ctx=inputs.ctx, dtype=inputs.dtype)
            else:
                states = self.begin_state(0, func=symbol.zeros)
        if isinstance(states, tensor_types):
            states = [states]
        args = (inputs, states, sequence_length) if self._use_sequence_length else (inputs, states)
        out = super().__call__(*args, **kwargs)
        return out[0] if skip and not self.skip_states else out

    def hybrid_forward(self, F: Any, inputs: Any, states: Any, sequence_length: Any = None,  # type: ignore[override]  # more inputs
                       **kwargs: Any) -> Any:
        """Return the outputs of the last layer, and a list of the last states if they are requested."""
        if F is ndarray:
            for state, info in zip(states, self.state_info(inputs.shape[self._layout.find("N")])):
                if state.shape != info["shape"]:
                    raise ValueError(f"Invalid recurrent state shape. Expecting {info['shape']}, got {state.shape}.")
        outputs = self._forward_kernel(F, inputs, states, sequence_length, **kwargs)
        return outputs[0] if self.skip_states else outputs

    def _forward_kernel(self, F: Any, inputs: Any, states: Any, sequence_length: Any, **kwargs: Any):
        if self._layout == "NTC":
            inputs = F.swapaxes(inputs, dim1=0, dim2=1)
        packed = F._internal._rnn_param_concat(*[kwargs[name].reshape(-1) for name in self._packed_names], dim=0)
        optional = {"state_cell": states[1]} if self._mode == "lstm" else {}
        if self._use_sequence_length:
            optional["sequence_length"] = sequence_length
        outputs, *states = F.RNN(data=inputs, parameters=packed, state=states[0], use_sequence_length=self._use_sequence_length,
                                 state_size=self._hidden_size, projection_size=self._projection_size, num_layers=self._num_layers,
                                 bidirectional=self._dir == 2, p=self._dropout, state_outputs=True, mode=self._mode,
                                 lstm_state_clip_min=self._lstm_state_clip_min, lstm_state_clip_max=self._lstm_state_clip_max,
                                 lstm_state_clip_nan=self._lstm_state_clip_nan, **optional)
        if self._layout == "NTC":
            outputs = F.swapaxes(outputs, dim1=0, dim2=1)
        return outputs, states


class RNN(_RNNLayer):
    """Layers of plain recurrent units: h' = activation(W x + b + R h + c).

    Parameters
    ----------
    hidden_size : int
    num_layers : int
    activation : {'relu', 'tanh'}
    layout : {'TNC', 'NTC'}
        The axes of inputs and outputs: time, batch, channels.
    dropout : float
        The fraction of elements to drop between layers.
    bidirectional : bool
        Run over the reversed sequence too; outputs stand side by side.
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer : str or Initializer, optional
    input_size : int
        0 waits for the first batch.
    dtype : str or numpy type
    prefix, params
        As for `Block`.
    use_sequence_length : bool
        Calls pass the lengths of the sequences as a third argument, of shape (batch,).

    Example
    -------
    >>> import mxnet as mx
    >>> layer = mx.gluon.rnn.RNN(4, num_layers=2)
    >>> layer.initialize()
    >>> x = mx.nd.ones((5, 3, 10))
    >>> layer(x).shape
    (5, 3, 4)
    >>> output, states = layer(x, layer.begin_state(batch_size=3))
    >>> states[0].shape
    (2, 3, 4)
    """

    def __init__(self, hidden_size: int, num_layers: int = 1, activation: str = "relu", layout: str = "TNC", dropout: float = 0,
                 bidirectional: bool = False, i2h_weight_initializer: str | Initializer | None = None,
                 h2h_weight_initializer: str | Initializer | None = None, i2h_bias_initializer: str | Initializer | None = "zeros",
                 h2h_bias_initializer: str | Initializer | None = "zeros", input_size: int = 0, dtype: str | type = "float32",
                 **kwargs: Any) -> None:
        super().__init__(hidden_size, num_layers, layout, dropout, bidirectional, input_size, i2h_weight_initializer,
                         h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer, "rnn_" + activation, None, None, None, None,
                         False, dtype, **kwargs)


class LSTM(_RNNLayer):
    """Layers of long short-term memory.

    Parameters
    ----------
    hidden_size : int
    num_layers : int
    layout : {'TNC', 'NTC'}
        The axes of inputs and outputs: time, batch, channels.
    dropout : float
        The fraction of elements to drop between layers.
    bidirectional : bool
        Run over the reversed sequence too; outputs stand side by side.
    input_size : int
        0 waits for the first batch.
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer : str or Initializer, optional
    projection_size : int, optional
        Project the hidden state to this size.
    h2r_weight_initializer : str or Initializer, optional
        Of the projection.
    state_clip_min, state_clip_max : float, optional
        Limits of the cell state.
    state_clip_nan : bool
        True to apply those to NaN, too.
    dtype : str or numpy type
    prefix, params
        As for `Block`.
    use_sequence_length : bool
        Calls pass the lengths of the sequences as a third argument, of shape (batch,).
    """

    def __init__(self, hidden_size: int, num_layers: int = 1, layout: str = "TNC", dropout: float = 0, bidirectional: bool = False,
                 input_size: int = 0, i2h_weight_initializer: str | Initializer | None = None,
                 h2h_weight_initializer: str | Initializer | None = None, i2h_bias_initializer: str | Initializer | None = "zeros",
                 h2h_bias_initializer: str | Initializer | None = "zeros", projection_size: int | None = None,
                 h2r_weight_initializer: str | Initializer | None = None, state_clip_min: float | None = None, state_clip_max: float | None = None,
                 state_clip_nan: bool = False, dtype: str | type = "float32", **kwargs: Any) -> None:
        super().__init__(hidden_size, num_layers, layout, dropout, bidirectional, input_size, i2h_weight_initializer,
                         h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer, "lstm", projection_size,
                         h2r_weight_initializer, state_clip_min, state_clip_max, state_clip_nan, dtype, **kwargs)

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """For the hidden state and the cell state a dictionary with their ``shape``, ``__layout__`` and ``dtype``."""
        return [self._state_info(batch_size, self._projection_size or self._hidden_size), self._state_info(batch_size, self._hidden_size)]


class GRU(_RNNLayer):
    """Layers of gated recurrent units.

    Parameters
    ----------
    hidden_size : int
    num_layers : int
    layout : {'TNC', 'NTC'}
        The axes of inputs and outputs: time, batch, channels.
    dropout : float
        The fraction of elements to drop between layers.
    bidirectional : bool
        Run over the reversed sequence too; outputs stand side by side.
    input_size : int
        0 waits for the first batch.
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer : str or Initializer, optional
    dtype : str or numpy type
    prefix, params
        As for `Block`.
    use_sequence_length : bool
        Calls pass the lengths of the sequences as a third argument, of shape (batch,).
    """

    def __init__(self, hidden_size: int, num_layers: int = 1, layout: str = "TNC", dropout: float = 0, bidirectional: bool = False,
                 input_size: int = 0, i2h_weight_initializer: str | Initializer | None = None,
                 h2h_weight_initializer: str | Initializer | None = None, i2h_bias_initializer: str | Initializer | None = "zeros",
                 h2h_bias_initializer: str | Initializer | None = "zeros", dtype: str | type = "float32", **kwargs: Any) -> None:
        super().__init__(hidden_size, num_layers, layout, dropout, bidirectional, input_size, i2h_weight_initializer,
                         h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer, "gru", None, None, None, None, False, dtype,
                         **kwargs)
