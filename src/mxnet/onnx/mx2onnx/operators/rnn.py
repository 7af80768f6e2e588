"""Recurrent layers."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....ops.nn.rnn_layout import layout_of
from ..builder import Unsupported
from ..registry import exports

if TYPE_CHECKING:
    from ..builder import Builder, Value

# ONNX's order of the gates, as positions in MXNet's: i o f c instead of i f c o, and z r h instead of r z h.
_ORDER = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn_tanh": (0,), "rnn_relu": (0,)}


@exports("RNN", ignores=("p", "state_outputs", "lstm_state_clip_nan"))
def rnn(on: Builder, x: Value, parameters: Value, state: Value, cell: Value | None = None, lengths: Value | None = None, *, state_size: int,
        num_layers: int, bidirectional: bool, mode: str, projection_size: int | None, lstm_state_clip_min: Any, lstm_state_clip_max: Any,
        use_sequence_length: bool) -> list[Value]:
    """One ONNX node for each layer, whose weights are slices of the vector of parameters, computed during the export if that is known."""
    if projection_size is not None or lstm_state_clip_min is not None or lstm_state_clip_max is not None:
        raise Unsupported("ONNX's LSTM has neither a projection nor a range for its cell state")
    if use_sequence_length and mode != "lstm":
        cell, lengths = None, cell
    directions = 2 if bidirectional else 1
    if x.shape[2] is None:
        raise Unsupported("the size of the last axis must not vary")
    layout = layout_of(mode, x.shape[2], state_size, num_layers, directions, None)
    starts = np.cumsum([0, *layout.sizes]).tolist()

    def part(i):
        """Return a weight or bias, with its gates in ONNX's order."""
        block = on.reshape(on.slice(parameters, starts[i], starts[i + 1]), list(layout.shapes[i]))
        rows = [on.slice(block, g * state_size, (g + 1) * state_size) for g in _ORDER[mode]]
        return on.unsqueeze(on.concat(rows, 0), 0)

    hidden, carried = [], []
    options = {"hidden_size": state_size, "direction": "bidirectional" if bidirectional else "forward"}
    if mode == "gru":
        options["linear_before_reset"] = 1
    elif mode != "lstm":
        options["activations"] = ["Relu" if mode == "rnn_relu" else "Tanh"] * directions
    lengths = None if lengths is None else on.cast(lengths, np.int32)
    for layer in range(num_layers):
        cells = layout.cells[layer * directions:(layer + 1) * directions]
        weights = on.concat([part(c[0]) for c in cells], 0)
        recurrent = on.concat([part(c[1]) for c in cells], 0)
        biases = on.concat([on.concat([part(c[2]), part(c[3])], 1) for c in cells], 0)
        begin = [on.slice(s, layer * directions, (layer + 1) * directions) if num_layers > 1 else s for s in (state, cell) if s is not None]
        kind = {"lstm": on.LSTM, "gru": on.GRU}.get(mode, on.RNN)
        out, *last = kind(x, weights, recurrent, biases, lengths, *begin, outputs=2 + (mode == "lstm"), **options)
        hidden.append(last[0])
        carried += last[1:]
        # (time, direction, batch, size) becomes (time, batch, directions * size).
        x = on.squeeze(out, 1) if directions == 1 else on.reshape(on.Transpose(out, perm=[0, 2, 1, 3]), [0, 0, directions * state_size])
    results = [x, on.concat(hidden, 0)]
    return results + [on.concat(carried, 0)] if carried else results
