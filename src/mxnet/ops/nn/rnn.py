"""Recurrent layers over whole sequences, with MXNet's packed parameters."""
import functools
import warnings
from typing import Any, Literal, Optional

import torch

from ...base import MXNetError
from ...kernels.nn import recurrent
from ...suggestions import shortened
from .. import random_state
from ..dtypes import same_type
from ..quantization.form import SHIFTED, Uint8, quantized_form
from ..registry import op
from ..schema import Fraction, Training
from .common import assign
from .rnn_layout import layout_of

TORCH_FUNCTIONS: dict[str, Any] = {"rnn_relu": torch._VF.rnn_relu, "rnn_tanh": torch._VF.rnn_tanh, "lstm": torch._VF.lstm, "gru": torch._VF.gru}


class Parts(tuple):
    """An argument of `rnn` in place of the parameter vector: the separate arrays, and the cache of packed weights for constant ones, or None."""

    ordered: Optional[recurrent.Ordered]

    def __new__(cls, parts: Any, ordered: Any = None) -> Any:
        state = super().__new__(cls, parts)
        state.ordered = ordered
        return state


def _input_names(attributes):
    names = ["data", "parameters", "state"]
    if attributes["mode"] == "lstm":
        names.append("state_cell")
    if attributes["use_sequence_length"]:
        names.append("sequence_length")
    return names


def _num_outputs(attributes):
    return 1 if not attributes["state_outputs"] else 3 if attributes["mode"] == "lstm" else 2


def _unpack(parameters, mode, input_size, state_size, num_layers, directions, projection_size):
    """For each layer and direction what torch expects: two weights, two biases and perhaps the projection, as views."""
    layout = layout_of(mode, input_size, state_size, num_layers, directions, projection_size)
    parts = parameters
    if isinstance(parts, tuple) and tuple(part.numel() for part in parts) != layout.sizes:
        parts = parts[0].reshape(-1) if len(parts) == 1 else torch.cat([part.reshape(-1) for part in parts])
    if not isinstance(parts, tuple):
        if parts.numel() != layout.total:
            raise MXNetError(f"RNN: `parameters` must have {layout.total} elements for input size {input_size}, received {parts.numel()}")
        parts = parts.split(layout.sizes)
    views = [part.reshape(shape) for part, shape in zip(parts, layout.shapes)]
    return [[views[i] for i in cell] for cell in layout.cells]


def _dropout_factor(out, p):
    """Return a random factor for each element of a layer's result: 0, or ``1 / (1 - p)``."""
    bank = None if out.device.type == "meta" else random_state.source(out.device)
    if bank is None:
        return torch.empty_like(out).bernoulli_(1 - p, generator=random_state.generator(out.device)).mul_(1 / (1 - p))
    return (bank.numbers(out.numel()) >= p).to(out.dtype).mul_(1 / (1 - p)).view(out.shape)


def _run_fused(mode, data, states, cells, num_layers, directions, batch_sizes=None, ordered=None):
    """Layers as a whole, on our own kernel or torch's; returns the output and the tuple of last states."""
    if recurrent.suits(mode, data, states, cells, num_layers, directions, batch_sizes, ordered):
        return recurrent.run(mode, data, states, cells, num_layers, directions, batch_sizes, ordered)
    flat = [t for cell in cells for t in cell]
    hidden = states if mode == "lstm" else states[0]
    train = torch.is_grad_enabled() and not data.is_cpu  # cuDNN computes gradients only for calls in training mode
    if len(cells[0]) > 4:
        with warnings.catch_warnings():  # torch warns that oneDNN has no projections
            warnings.simplefilter("ignore")
            results = torch._VF.lstm(data, hidden, flat, True, num_layers, 0.0, train, directions == 2, False) if batch_sizes is None else \
                torch._VF.lstm(data, batch_sizes, hidden, flat, True, num_layers, 0.0, train, directions == 2)
        return results[0], results[1:]
    if batch_sizes is None:
        results = TORCH_FUNCTIONS[mode](data, hidden, flat, True, num_layers, 0.0, train, directions == 2, False)
    else:
        results = TORCH_FUNCTIONS[mode](data, batch_sizes, hidden, flat, True, num_layers, 0.0, train, directions == 2)
    return results[0], results[1:]


def _clipped_lstm_cell(data, hidden, carry, cell, clip, order):
    """One direction of one LSTM layer, step by step, with its cell state clipped after each step."""
    low, high, stop_nan = clip
    from_input = torch._C._nn.linear(data, cell[0], cell[2])
    outputs: list[Any] = [None] * data.shape[0]
    for t in order:
        gates = from_input[t] + torch._C._nn.linear(hidden, cell[1], cell[3])
        in_gate, forget, candidate, out_gate = gates.chunk(4, 1)
        carry = torch.sigmoid(forget) * carry + torch.sigmoid(in_gate) * torch.tanh(candidate)
        if stop_nan:
            carry = torch.where(carry.isnan(), low, carry)
        carry = carry.clamp(low, high)
        hidden = torch.sigmoid(out_gate) * torch.tanh(carry)
        if len(cell) > 4:
            hidden = torch._C._nn.linear(hidden, cell[4])
        outputs[t] = hidden
    return torch.stack(outputs), hidden, carry


def _run_clipped(data, states, cells, num_layers, directions, clip):
    """LSTM layers with clipped cell states, which no fused kernel has."""
    hiddens, carries = [], []
    for layer in range(num_layers):
        outputs = []
        for d in range(directions):
            i = layer * directions + d
            order = range(data.shape[0]) if d == 0 else range(data.shape[0] - 1, -1, -1)
            out, hidden, carry = _clipped_lstm_cell(data, states[0][i], states[1][i], cells[i], clip, order)
            outputs.append(out)
            hiddens.append(hidden)
            carries.append(carry)
        data = outputs[0] if directions == 1 else torch.cat(outputs, 2)
    return data, (torch.stack(hiddens), torch.stack(carries))


def _run_lengths(run, data, states, lengths):
    """Run over sequences of their own lengths: nothing behind a sequence's end is read, and the output there is zero."""
    lengths = lengths.to("cpu", torch.int64)
    if lengths.numel() != data.shape[1] or int(lengths.min()) < 0 or int(lengths.max()) > data.shape[0]:
        raise MXNetError(f"RNN: `sequence_length` must be {data.shape[1]} lengths from 0 to {data.shape[0]}, received {lengths.tolist()}")
    # A sequence needs a step to be packed; an empty one is put right afterwards.
    packed = torch.nn.utils.rnn.pack_padded_sequence(data, lengths.clamp(min=1), enforce_sorted=False)
    out, last = run(packed.data, tuple(s.index_select(1, packed.sorted_indices) for s in states), packed.batch_sizes)
    last = tuple(s.index_select(1, packed.unsorted_indices) for s in last)
    out, _ = torch.nn.utils.rnn.pad_packed_sequence(packed._replace(data=out), total_length=data.shape[0])
    empty = lengths == 0
    if bool(empty.any()):
        empty = empty.to(data.device).view(1, -1, 1)
        out = out.masked_fill(empty, 0)
        last = tuple(torch.where(empty, before, after) for before, after in zip(states, last))
    return out, last


def _reverse_sequences(data, lengths):
    """Each sequence reversed within its length, along axis 0."""
    steps = torch.arange(data.shape[0], device=data.device).unsqueeze(1)
    source = torch.where(steps < lengths, lengths - 1 - steps, steps)
    return data.gather(0, source.unsqueeze(2).expand_as(data))


def _run_clipped_lengths(data, states, cells, num_layers, directions, clip, lengths):
    """Clipped LSTM layers over sequences of their own lengths."""
    lengths = lengths.to(data.device, torch.int64).clamp(0, data.shape[0])
    valid = (torch.arange(data.shape[0], device=data.device).unsqueeze(1) < lengths).unsqueeze(2)
    last = (lengths - 1).clamp(min=0).view(1, -1, 1)
    hiddens: list[torch.Tensor] = []
    carries: list[torch.Tensor] = []
    for layer in range(num_layers):
        outputs = []
        for d in range(directions):
            i = layer * directions + d
            hidden, carry, rows = states[0][i], states[1][i], []
            inputs = _reverse_sequences(data, lengths) if d else data
            for t in range(data.shape[0]):
                _, hidden, carry = _clipped_lstm_cell(inputs[t:t + 1], hidden, carry, cells[i], clip, (0,))
                rows.append((hidden, carry))
            steps, states_of_steps = map(torch.stack, zip(*rows))
            empty = (lengths == 0).unsqueeze(1)
            for values, before, parts in ((steps, states[0][i], hiddens), (states_of_steps, states[1][i], carries)):
                parts.append(torch.where(empty, before, values.gather(0, last.expand(1, *values.shape[1:])).squeeze(0)))
            steps = steps.masked_fill(~valid, 0)
            outputs.append(_reverse_sequences(steps, lengths) if d else steps)
        data = outputs[0] if directions == 1 else torch.cat(outputs, 2)
    return data, (torch.stack(hiddens), torch.stack(carries))


def _check(mode, state_size, num_layers, p, projection_size, clip_min, clip_max):
    if state_size < 1 or num_layers < 1:
        raise MXNetError(f"RNN: `state_size` and `num_layers` must be positive, received {state_size} and {num_layers}")
    if p >= 1:
        raise MXNetError(f"RNN: `p` must be at least 0 and less than 1, received {p}")
    if mode != "lstm" and not (projection_size is None and clip_min is None and clip_max is None):
        raise MXNetError(f"RNN: `projection_size` and `lstm_state_clip_*` are for mode 'lstm', received mode {mode!r}")
    if (clip_min is None) != (clip_max is None) or clip_min is not None and clip_min > clip_max:
        raise MXNetError(f"RNN: `lstm_state_clip_min`={clip_min} and `lstm_state_clip_max`={clip_max} received; give both, the smaller first, or "
                         "neither")


@op("RNN", aliases=("_npx_rnn",), inputs_rule=_input_names, num_outputs=_num_outputs,
    output_names=("output", "state_output", "statecell_output"), stochastic=lambda a: a["p"] > 0 and a["training"], compute_bound=True,
    complete_rule=True, names_output=True, amp="low")
def rnn(data, parameters, state, state_cell=None, sequence_length=None, *, state_size: int, num_layers: int, bidirectional: bool = False,
        mode: Literal["gru", "lstm", "rnn_relu", "rnn_tanh"], p: Fraction = 0.0, state_outputs: bool = False,
        projection_size: Optional[int] = None, lstm_state_clip_min: Optional[float] = None, lstm_state_clip_max: Optional[float] = None,
        lstm_state_clip_nan: bool = False, use_sequence_length: bool = False, training: Training = False):
    """Recurrent layers over sequences: ``rnn_relu`` and ``rnn_tanh``, ``lstm`` (Hochreiter, Schmidhuber 1997), ``gru`` (Cho et al. 2014).

    Parameters
    ----------
    data : (T, N, C)
    parameters : (total,)
        All weights and biases in one vector, see `rnn_layout`: for each layer and direction the weights from the input and from the state (and
        the projection's), then for each the two biases. The gates are ordered input, forget, candidate, output (``lstm``) or reset,
        update, candidate (``gru``, which resets after the product with the state).
    state, state_cell : (num_layers * directions, N, size)
        The initial states; ``state_cell`` for ``lstm`` only. The size is `state_size`, and for a `state` with a projection that one's.
    sequence_length : (N,)
        With `use_sequence_length` each sequence ends after that many steps, where the backward direction starts and behind which the output
        is zero.
    bidirectional : bool
        Two directions, whose outputs stand side by side.
    p : float
        The fraction of what passes from layer to layer that is dropped while training.
    projection_size : int, optional
        Let each ``lstm`` layer hand on so many linear combinations of its state (Sak et al. 2014).
    lstm_state_clip_min, lstm_state_clip_max, lstm_state_clip_nan
        The range, if any, that the cell state is clipped to, and whether a NaN in it becomes the lower bound.

    Returns
    -------
    The output (T, N, directions * size); with `state_outputs` also the last states.

    Raises
    ------
    MXNetError
        If the parameters' size does not match the attributes, or the attributes contradict each other.

    Example
    -------
    >>> x, parameters, state = mx.nd.array([1, 1, 0]).reshape((3, 1, 1)), mx.nd.array([1, 0.5, 0, 0]), mx.nd.zeros((1, 1, 1))
    >>> mx.nd.RNN(x, parameters, state, state_size=1, num_layers=1, mode="rnn_relu").asnumpy().ravel()       # max(x + state / 2, 0)
    array([1.  , 1.5 , 0.75], dtype=float32)
    """
    _check(mode, state_size, num_layers, p, projection_size, lstm_state_clip_min, lstm_state_clip_max)
    expected, given = 3 + (mode == "lstm") + use_sequence_length, 3 + (state_cell is not None) + (sequence_length is not None)
    if given != expected:
        names = _input_names({"mode": mode, "use_sequence_length": use_sequence_length})
        raise MXNetError(f"RNN expects {expected} inputs ({', '.join(names)}) with mode={mode!r} and use_sequence_length={use_sequence_length}, "
                         f"received {given}")
    if use_sequence_length and sequence_length is None:
        sequence_length, state_cell = state_cell, None  # given as the fourth input where there is no cell state
    directions = 2 if bidirectional else 1
    rows = num_layers * directions
    if (data.dim() != 3 or state.shape != (rows, data.shape[1], projection_size or state_size)
            or mode == "lstm" and state_cell.shape != (rows, data.shape[1], state_size)):  # torch's kernels would read outside of them
        parameters = parameters if isinstance(parameters, torch.Tensor) else torch.cat([part.reshape(-1) for part in parameters])
        shapes = [tuple(t.shape) for t in (data, parameters, state, state_cell, sequence_length) if t is not None]
        _rnn_shape_rule(shapes, [None], state_size=state_size, num_layers=num_layers, bidirectional=bidirectional, mode=mode, p=p,
                        state_outputs=state_outputs, projection_size=projection_size, lstm_state_clip_min=lstm_state_clip_min,
                        lstm_state_clip_max=lstm_state_clip_max, use_sequence_length=use_sequence_length)
    states = (state, state_cell) if mode == "lstm" else (state,)
    ordered = parameters.ordered if type(parameters) is Parts else None
    unpack = functools.partial(_unpack, parameters, mode, data.shape[2], state_size, num_layers, directions, projection_size)
    cells = unpack() if ordered is None else ordered.cells(data.shape[2], unpack)
    clip = None if lstm_state_clip_min is None else (lstm_state_clip_min, lstm_state_clip_max, lstm_state_clip_nan)

    def run(data, states, cells, num_layers):
        if clip is not None:
            if use_sequence_length:
                return _run_clipped_lengths(data, states, cells, num_layers, directions, clip, sequence_length)
            return _run_clipped(data, states, cells, num_layers, directions, clip)
        if use_sequence_length:
            return _run_lengths(lambda d, s, sizes: _run_fused(mode, d, s, cells, num_layers, directions, sizes, ordered), data, states,
                                sequence_length)
        return _run_fused(mode, data, states, cells, num_layers, directions, None, ordered)

    if p > 0 and training and num_layers > 1:
        # Layer by layer, so that MXNet's generator draws the dropout masks.
        out, lasts, ordered = data, [], None
        for layer in range(num_layers):
            part = slice(layer * directions, (layer + 1) * directions)
            if layer:
                out = out * _dropout_factor(out.detach(), p)
            out, last = run(out, tuple(s[part] for s in states), cells[part], 1)
            lasts.append(last)
        last = tuple(torch.cat(parts) for parts in zip(*lasts))
    else:
        out, last = run(data, states, cells, num_layers)
    return (out, *last) if state_outputs else out


@rnn.shape_rule
def _rnn_shape_rule(in_shapes, out_shapes, *, state_size, num_layers, bidirectional, mode, p, state_outputs, projection_size,
                    lstm_state_clip_min, lstm_state_clip_max, use_sequence_length, **_):
    data = in_shapes[0]
    if data is None:
        return in_shapes, out_shapes
    _check(mode, state_size, num_layers, p, projection_size, lstm_state_clip_min, lstm_state_clip_max)
    if len(data) != 3:
        raise MXNetError(f"RNN: `data` must be (sequence length, batch size, input size), received shape {data}")
    directions = 2 if bidirectional else 1
    size = projection_size or state_size
    state, cell = (num_layers * directions, data[1], size), (num_layers * directions, data[1], state_size)
    total = layout_of(mode, data[2], state_size, num_layers, directions, projection_size).total if data[2] >= 0 else -1
    assign(in_shapes, 1, (total,), "RNN's parameters")
    assign(in_shapes, 2, state, "RNN's state")
    if mode == "lstm":
        assign(in_shapes, 3, cell, "RNN's state_cell")
    if use_sequence_length:
        assign(in_shapes, 4 if mode == "lstm" else 3, (data[1],), "RNN's sequence_length")
    for i, shape in enumerate(((*data[:2], directions * size), state, cell)[:len(out_shapes)]):
        assign(out_shapes, i, shape, "RNN's output")
    return in_shapes, out_shapes


@rnn.dtype_rule
def _rnn_dtype_rule(in_types, out_types, *, mode, use_sequence_length, **_):
    count = 4 if mode == "lstm" else 3
    types, out_types = same_type(in_types[:count], out_types)
    return [*types, *(t or types[0] for t in in_types[count:])], out_types


@quantized_form(rnn, "_contrib_quantized_rnn", ends=SHIFTED, result=torch.float32, real=lambda attributes: True, stochastic=rnn.stochastic,
                must=True, amp=None, when=lambda attributes: attributes["mode"] == "lstm" and not attributes["use_sequence_length"],
                adds={"quantized": "true"}, output_names=("output", "state_output", "statecell_ouput"),  # spelled as in MXNet's files
                inputs_rule=lambda attributes: ("data", "parameters", "state", "state_cell", "min_data", "max_data"))
def quantized_rnn(data: Uint8, parameters: torch.Tensor, state: torch.Tensor, state_cell: torch.Tensor, *, mode, use_sequence_length,
                  quantized: bool = True, training: Training = False, **attributes):
    """An LSTM over uint8 `data` (T, N, C), which `quantize_asym` made with `data_scale` and `data_shift`; all else is float32, see ``RNN``.

    Other modes, and sequences of their own lengths, are not supported. `quantized` occurs in files and is redundant with the operator's name.

    Example
    -------
    >>> q, scale, shift = mx.nd.contrib.quantize_asym(mx.nd.array([[[-1, 0, 1]]]))
    >>> parameters, state = mx.nd.zeros(200), mx.nd.zeros((1, 1, 5))
    >>> mx.nd.contrib.quantized_rnn(q, parameters, state, state, scale, shift, state_size=5, num_layers=1, mode='lstm').shape
    (1, 1, 5)
    """
    if mode != "lstm" or use_sequence_length:
        raise MXNetError(f"_contrib_quantized_rnn: `mode` must be 'lstm', received {shortened(mode)}" if mode != "lstm" else
                         "_contrib_quantized_rnn: `use_sequence_length` must be False, received True; use RNN")
    values, scale, shift = data
    return rnn.raw((values.to(torch.float32) - shift.reshape(1)) / scale.reshape(1), parameters, state, state_cell, mode=mode, training=training,
                   **attributes)
