"""Recurrent layers in OpenVINO."""
from collections.abc import Sequence

import numpy as np
from openvino import opset15 as ops

from .....ops.nn.rnn_layout import GATES, layout_of
from ..conversion import Call, Value, converts, ints
from ..integers import Shifted

# The order of the gates in OpenVINO's cells, as positions in MXNet's: forget, input, candidate, output; update, reset, candidate.
_ORDER = {"lstm": ("_f", "_i", "_c", "_o"), "gru": ("_z", "_r", "_o")}
_GATES = {mode: tuple(map(gates.index, _ORDER.get(mode, gates))) for mode, gates in GATES.items()}


@converts("RNN")
def rnn(call: Call, data: Value, parameters: Value, state: Value, cell: Value = None) -> Value:
    if call.projection_size or call.lstm_state_clip_min is not None or call.use_sequence_length:
        call.refuse("projection, clipping or lengths")
    length, batch, width = call.shape
    size, directions = call.state_size, 2 if call.bidirectional else 1
    gates = _GATES[call.attributes["mode"]]
    values = call.known(1)
    if values is None:
        call.refuse("its parameters are not known ahead")
    layout = layout_of(call.attributes["mode"], width, size, call.num_layers, directions)
    parts = [part.reshape(shape) for part, shape in zip(np.split(values, np.cumsum(layout.sizes)[:-1]), layout.shapes)]
    x = data
    lengths = ops.constant(np.full(batch, length, np.int32))
    hiddens, cells = [], []
    for layer in range(call.num_layers):
        of_layer = slice(layer * directions, (layer + 1) * directions)
        owned = [[parts[i] for i in positions] for positions in layout.cells[of_layer]]
        w, r = (np.stack([_ordered(of_cell[k], gates, size) for of_cell in owned]) for k in (0, 1))
        b = np.stack([_bias(call, of_cell[2], of_cell[3], gates, size) for of_cell in owned])
        initial = [call.transpose(ops.strided_slice(s, ints([of_layer.start]), ints([of_layer.stop]), ints([1]), [0], [0]).output(0), (1, 0, 2))
                   for s in ((state, cell) if cell is not None else (state,))]
        # OpenVINO's sequences have the batch first; between two transposes like these they run in the order of time, without any.
        by_batch = call.transpose(x, (1, 0, 2))
        out = _sequence(call, by_batch, initial, lengths, w, r, b, size, "bidirectional" if directions == 2 else "forward").outputs()
        x = call.transpose(out[0], (2, 1, 0, 3))  # (length, directions, batch, size)
        if directions == 2:
            x = call.transpose(x, (0, 2, 1, 3))
        x = call.reshape(x, (length, batch, directions * size))
        hiddens.append(call.transpose(out[1], (1, 0, 2)))
        if cell is not None:
            cells.append(call.transpose(out[2], (1, 0, 2)))
    outputs = [x]
    if call.state_outputs:
        outputs += [ops.concat(h, 0).output(0) for h in (hiddens, cells) if h]
    return outputs


@converts("_contrib_quantized_rnn", integers=True)
def quantized_rnn(call: Call, data: Value | Shifted, parameters: Value, state: Value, cell: Value, *ends: Value) -> Value:
    """Convert a quantized RNN as one on real numbers, as on torch: for OpenVINO's INT8 cells the ranges of the states are unknown."""
    if not isinstance(data, Shifted):
        return call.refuse("integers whose range is not known ahead")
    return rnn(call, data.value, parameters, state, cell)


def _sequence(call: Call, x: Value, initial: Sequence[Value], lengths: Value, w: np.ndarray, r: np.ndarray, b: np.ndarray, size: int,
              direction: str) -> Value:
    w, r, b = (ops.constant(a) for a in (w, r, b))
    mode = call.attributes["mode"]
    if mode == "lstm":
        return ops.lstm_sequence(x, *initial, lengths, w, r, b, size, direction)
    if mode == "gru":
        return ops.gru_sequence(x, *initial, lengths, w, r, b, size, direction, linear_before_reset=True)
    return ops.rnn_sequence(x, *initial, lengths, w, r, b, size, direction, [mode.removeprefix("rnn_")] * (2 if direction != "forward" else 1))


def _ordered(matrix: np.ndarray, gates: Sequence[int], size: int) -> np.ndarray:
    return matrix.reshape(len(gates), size, -1)[list(gates)].reshape(len(gates) * size, -1)


def _bias(call: Call, from_input: np.ndarray, from_state: np.ndarray, gates: Sequence[int], size: int) -> np.ndarray:
    i, h = (v.reshape(len(gates), size)[list(gates)] for v in (from_input, from_state))
    if call.attributes["mode"] == "gru":  # the candidate's two biases act apart, before and after the reset
        return np.concatenate([(i + h)[:2].ravel(), i[2], h[2]])
    return (i + h).ravel()
