"""Recurrent layers."""
import numpy as np

from .....base import MXNetError
from .....suggestions import shortened
from ..reading import UnsupportedFeature
from ..registry import translates
from .elemwise import binary, cast_to, with_number

# Where the rows of our gates stand among ONNX's.
_ROWS = {"rnn": (0,), "gru": (1, 0, 2), "lstm": (0, 2, 3, 1)}
_USUAL = {"gru": ("sigmoid", "tanh"), "lstm": ("sigmoid", "tanh", "tanh")}
_LONGEST = 4096  # steps that are written out one by one
_FUNCTIONS = {"sigmoid": "sigmoid", "tanh": "tanh", "relu": "relu", "softsign": "softsign"}


@translates("RNN")
def rnn(g, X, W, R, B=None, sequence_lens=None, initial_h=None, *, hidden_size=None, direction="forward", layout=0, activations=None,
        activation_alpha=None, activation_beta=None, clip=None, output_sequence=0):
    """A layer of plain cells."""
    named = tuple(name.lower() for name in activations or ())
    layer = _Layer(g, "rnn", X, W, R, B, sequence_lens, (initial_h,), hidden_size, direction, layout, clip)
    names = named or ("tanh",) * layer.directions
    if len(set(names)) == 1 and names[0] in ("tanh", "relu") and clip is None:
        return layer.fused(f"rnn_{names[0]}")
    return layer.written_out(names, 1)


@translates("GRU")
def gru(g, X, W, R, B=None, sequence_lens=None, initial_h=None, *, hidden_size=None, direction="forward", layout=0, activations=None,
        activation_alpha=None, activation_beta=None, clip=None, linear_before_reset=0, output_sequence=0):
    """A layer of gated recurrent units."""
    layer = _Layer(g, "gru", X, W, R, B, sequence_lens, (initial_h,), hidden_size, direction, layout, clip)
    names = tuple(name.lower() for name in activations or ()) or _USUAL["gru"] * layer.directions
    layer.reset_after = bool(linear_before_reset)
    if layer.reset_after and names == _USUAL["gru"] * layer.directions and clip is None:
        return layer.fused("gru")
    return layer.written_out(names, 2)


@translates("LSTM")
def lstm(g, X, W, R, B=None, sequence_lens=None, initial_h=None, initial_c=None, P=None, *, hidden_size=None, direction="forward", layout=0,
         activations=None, activation_alpha=None, activation_beta=None, clip=None, input_forget=0, output_sequence=0):
    """A layer of long short-term memory."""
    layer = _Layer(g, "lstm", X, W, R, B, sequence_lens, (initial_h, initial_c), hidden_size, direction, layout, clip)
    names = tuple(name.lower() for name in activations or ()) or _USUAL["lstm"] * layer.directions
    layer.peepholes, layer.input_forget = P, bool(input_forget)
    if names == _USUAL["lstm"] * layer.directions and clip is None and P is None and not input_forget:
        return layer.fused("lstm")
    return layer.written_out(names, 3)


class _Layer:
    """One layer with its inputs, time first."""

    peepholes, input_forget, reset_after = None, False, False

    def __init__(self, g, kind, data, weight, recurrent, bias, lengths, states, hidden_size, direction, layout, clip):
        if direction not in ("forward", "reverse", "bidirectional"):
            raise MXNetError(f"`direction` must be forward, reverse or bidirectional, received {shortened(direction)}")
        self.g, self.kind, self.clip, self.batch_first = g, kind, clip, bool(layout)
        self.weight, self.recurrent, self.bias, self.lengths = weight, recurrent, bias, lengths
        g.entry(data)
        self.data = g.op("transpose", data, axes=(1, 0, 2)) if layout else data
        self.directions = 2 if direction == "bidirectional" else 1
        self.reverse = direction == "reverse"
        sizes = g.sizes(recurrent)
        gates = len(_ROWS[kind])
        if len(sizes) != 3 or None in sizes or sizes[0] != self.directions or sizes[1] != gates * sizes[2] or hidden_size not in (None, sizes[2]):
            raise MXNetError(f"R has the shape {sizes}; expected ({self.directions}, {gates} * units, units), with {hidden_size} units")
        self.units = sizes[2]
        self.states = [self._start(state) for state in states]

    def _start(self, state):
        """The state before the first step, (directions, batch, units): zeros if it is not given."""
        g = self.g
        if state is not None:
            g.entry(state)
            return g.op("transpose", state, axes=(1, 0, 2)) if self.batch_first else state
        one = g.op("slice", self.data, begin=(0, None, 0), end=(1, None, 1))
        return g.op("broadcast_axis", g.op("zeros_like", one), axis=(0, 2), size=(self.directions, self.units))

    def _part(self, value, direction, rows=None, size=None):
        """The rows of some gates of an array of all directions, as an array or a `Value` of one axis less."""
        gates = range(len(_ROWS[self.kind])) if rows is None else rows
        n = size or self.units
        if value.array is not None:
            return np.concatenate([value.array[direction, row * n:(row + 1) * n] for row in gates])
        g = self.g
        own = g.op("squeeze", g.op("slice_axis", value, axis=0, begin=direction, end=direction + 1), axis=0)
        parts = [g.op("slice_axis", own, axis=0, begin=row * n, end=(row + 1) * n) for row in gates]
        return parts[0] if len(parts) == 1 else g.op("Concat", *parts, dim=0)

    def _parameters(self):
        """Return all weights, then all biases, in the one vector of the operator `RNN`."""
        g, rows = self.g, _ROWS[self.kind]
        weights, biases = [], []
        for direction in range(self.directions):
            weights += [self._part(value, direction, rows) for value in (self.weight, self.recurrent)]
            if self.bias is None:
                biases.append(np.zeros(2 * len(rows) * self.units, self.recurrent.array.dtype if self.recurrent.array is not None else "float32"))
            else:
                biases += [self._part(self.bias, direction, rows), self._part(self.bias, direction, [len(rows) + row for row in rows])]
        parts = weights + biases
        if all(isinstance(part, np.ndarray) for part in parts):
            return g.array(np.concatenate([part.reshape(-1) for part in parts]), f"{self.weight.name}_parameters")
        return g.op("Concat", *(g.array(part.reshape(-1)) if isinstance(part, np.ndarray) else g.op("Reshape", part, shape=(-1,)) for part in parts),
                    dim=0)

    def fused(self, mode):
        """Build the layer as one operator."""
        g, lengths, data = self.g, self.lengths, self.data
        given = {} if lengths is None else {"use_sequence_length": True}
        ends = [] if lengths is None else [lengths]

        def turned(value):
            return g.op("SequenceReverse", value, *ends, use_sequence_length=lengths is not None)

        data = turned(data) if self.reverse else data
        made = g.op("RNN", data, self._parameters(), *self.states, *ends, state_size=self.units, num_layers=1, bidirectional=self.directions == 2,
                    mode=mode, state_outputs=True, **given)
        out = turned(made[0]) if self.reverse else made[0]
        if self.directions == 1 and not self.batch_first:
            return [g.op("expand_dims", out, axis=1), *made[1:]]
        return self._results(g.op("Reshape", out, shape=(0, 0, -4, self.directions, -1)), made[1:])

    def _results(self, out, states):
        """All steps (time, batch, directions, units) and the last states in ONNX's order of axes."""
        g = self.g
        out = out if self.batch_first else g.op("transpose", out, axes=(0, 2, 1, 3))
        if self.batch_first:
            out, states = g.op("transpose", out, axes=(1, 0, 2, 3)), [g.op("transpose", state, axes=(1, 0, 2)) for state in states]
        return [out, *states]

    # -- step by step --------------------------------------------------------------------------------------------------

    def written_out(self, names, each):
        """Build the layer from single operators, for features that the operator `RNN` lacks."""
        g = self.g
        steps = g.size(self.data, 0, "a layer that is written out step by step")
        if steps > _LONGEST or len(names) != each * self.directions or any(name not in _FUNCTIONS for name in names):
            raise UnsupportedFeature(f"activations {names} over {steps} steps; expected {each} for each direction, of {sorted(_FUNCTIONS)}, and at "
                                     f"most {_LONGEST} steps")
        outputs, lasts = [], []
        for direction in range(self.directions):
            output, last = self._direction(direction, names[each * direction:each * (direction + 1)], steps)
            outputs.append(output)
            lasts.append(last)
        out = g.op("stack", *outputs, axis=2)
        states = [g.op("stack", *(last[i] for last in lasts), axis=0) for i in range(len(self.states))]
        return self._results(out, states)

    def _value(self, part):
        return self.g.array(np.ascontiguousarray(part)) if isinstance(part, np.ndarray) else part

    def _linear(self, data, value, direction, row):
        return self.g.op("FullyConnected", data, self._value(self._part(value, direction, [row])), num_hidden=self.units, no_bias=True, flatten=False)

    def _direction(self, direction, names, steps):
        g, gates = self.g, len(_ROWS[self.kind])
        states = [g.op("squeeze", g.op("slice_axis", state, axis=0, begin=direction, end=direction + 1), axis=0) for state in self.states]
        bias = [None] * 2 * gates if self.bias is None else [self._value(self._part(self.bias, direction, [row])) for row in range(2 * gates)]
        inputs = [self._linear(self.data, self.weight, direction, row) for row in range(gates)]
        inputs = [made if b is None else binary(g, "broadcast_add", made, b) for made, b in zip(inputs, bias)]
        backward = self.reverse or direction == 1
        outputs = []
        for t in range(steps)[::-1] if backward else range(steps):
            now = [g.op("squeeze", g.op("slice_axis", made, axis=0, begin=t, end=t + 1), axis=0) for made in inputs]
            states, output = self._step(t, getattr(self, f"_{self.kind}")(now, states, direction, bias[gates:], names), states)
            outputs.append(output)
        return g.op("stack", *(outputs[::-1] if backward else outputs), axis=0), states

    def _step(self, t, new, old):
        """The states after a step, and its output: those before, and zeros, in sequences that do not have the step."""
        if self.lengths is None:
            return new, new[0]
        g = self.g
        goes_on = g.op("expand_dims", with_number(g, "_greater_scalar", cast_to(g, self.lengths, "float32"), float(t)), axis=1)
        ended = with_number(g, "_rminus_scalar", goes_on, 1.0)
        states = [binary(g, "broadcast_add", self._times(a, goes_on), self._times(b, ended)) for a, b in zip(new, old)]
        return states, self._times(new[0], goes_on)

    def _gate(self, name, *terms):
        g, total = self.g, None
        for term in terms:
            if term is not None:
                total = term if total is None else binary(g, "broadcast_add", total, term)
        if self.clip is not None:
            total = g.op("clip", total, a_min=-self.clip, a_max=self.clip)
        return g.op(_FUNCTIONS[name], total)

    def _times(self, a, b):
        return binary(self.g, "broadcast_mul", a, b)

    def _rnn(self, now, states, direction, bias, names):
        return [self._gate(names[0], now[0], self._linear(states[0], self.recurrent, direction, 0), bias[0])]

    def _gru(self, now, states, direction, bias, names):
        g, (hidden,) = self.g, states
        update, reset = (self._gate(names[0], now[row], self._linear(hidden, self.recurrent, direction, row), bias[row]) for row in (0, 1))
        if self.reset_after:
            inner = self._linear(hidden, self.recurrent, direction, 2)
            inner = self._times(reset, inner if bias[2] is None else binary(g, "broadcast_add", inner, bias[2]))
            new = self._gate(names[1], now[2], inner)
        else:
            new = self._gate(names[1], now[2], self._linear(self._times(reset, hidden), self.recurrent, direction, 2), bias[2])
        return [binary(g, "broadcast_add", self._times(with_number(g, "_rminus_scalar", update, 1.0), new), self._times(update, hidden))]

    def _lstm(self, now, states, direction, bias, names):
        g, (hidden, cell) = self.g, states
        terms = [(now[row], self._linear(hidden, self.recurrent, direction, row), bias[row]) for row in range(4)]

        def peep(row, state):
            return None if self.peepholes is None else self._times(state, self._value(self._part(self.peepholes, direction, [row])))

        enter = self._gate(names[0], *terms[0], peep(0, cell))
        keep = with_number(g, "_rminus_scalar", enter, 1.0) if self.input_forget else self._gate(names[0], *terms[2], peep(2, cell))
        new = binary(g, "broadcast_add", self._times(keep, cell), self._times(enter, self._gate(names[1], *terms[3])))
        leave = self._gate(names[0], *terms[1], peep(1, new))
        return [self._times(leave, g.op(_FUNCTIONS[names[2]], new)), new]


