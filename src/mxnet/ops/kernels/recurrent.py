"""Recurrent layers on a CPU, with their gradients: large products for the whole sequence, and `recurrent.cpp` from step to step.

LSTM, GRU and plain layers, in single precision, and in bfloat16 on processors with instructions for it.
"""
import functools
from typing import Any

import torch

from . import dense, load
from .gate import Gate, Kernel

_WORTHWHILE = 1 << 20  # multiplications in a layer's steps from which on the kernel is called (and compiled)
_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
_STATE, _CARRY, _STEPS = "T (b, u)", "float32 (b, u)", "T (t, b, u)"
_DEMANDS = ("u % 32 == 0", "min(t, b, u) >= 1")


def _kernels(mode):
    """The forward and the backward pass of a mode; what only others need may not come."""
    count, lstm, gru = f"{_GATES[mode]} * u", mode == "lstm", mode == "gru"
    gates, weights, without = f"T (t, b, {count})", f"T ({count}, u)", "float32 (0) optional"
    kept = "t if keep else 1" if lstm or gru else "1"
    forward = Kernel("recurrent", f"forward_{mode}_{{T}}",
                     {"gates": gates, "weights": weights, "bias": "float32 (u)" if gru else without, "hidden": _STATE,
                      "cell": _CARRY if lstm else without, "out": _STEPS},
                     {"kept": "float32 (kept, b, u)"}, integers=("reverse", "keep", "wide"), where={"kept": kept}, demands=_DEMANDS,
                     sizes=("t", "b", "u", "reverse", "keep", "wide"), packed=True)
    backward = Kernel("recurrent", f"backward_{mode}_{{T}}",
                      {"dout": _STEPS, "dhidden": f"{_CARRY} optional", "dcell": f"{_CARRY} optional", "weights": weights, "gates": gates,
                       "kept": f"float32 ({'t' if lstm or gru else 1}, b, u)", "cell": _CARRY if lstm else without,
                       "states": _STEPS if gru else "T (0) optional"},
                      {"dgates": gates, "dproduct": f"{gates} if states", "dh": _CARRY, "dc": _CARRY}, integers=("reverse", "wide"), demands=_DEMANDS,
                      sizes=("t", "b", "u", "reverse", "wide"), packed=True)
    return forward, backward


_KERNELS = {mode: _kernels(mode) for mode in _GATES}


def suits(mode, data, states, cells, num_layers, directions):
    """Whether the layers can run here; `cells` has two weights and two biases (and no projection) for each layer and direction."""
    tensors = (data, *states, *(t for cell in cells for t in cell))
    return (len(tensors) == 1 + len(states) + 4 * num_layers * directions and not torch.compiler.is_compiling()
            and _layers(mode, num_layers, directions).verdict(tensors, (), _WORTHWHILE) is not None
            and _KERNELS[mode][0].available(T=str(data.dtype).removeprefix("torch.")))


@functools.cache
def _layers(mode, num_layers, directions):
    """What all layers demand; strides are no matter, copies are made where a kernel needs them."""
    rows, gates = num_layers * directions, _GATES[mode]
    takes = {"data": "T (t, b, c) strided", "hidden": f"T ({rows}, b, u) strided"}
    if mode == "lstm":
        takes["cell"] = f"T ({rows}, b, u) strided"
    for i in range(rows):
        takes |= {f"w_input{i}": f"T ({gates} * u, {'c' if i < directions else f'{directions} * u'}) strided",
                  f"w_state{i}": f"T ({gates} * u, u) strided", f"b_input{i}": f"T ({gates} * u) strided", f"b_state{i}": f"T ({gates} * u) strided"}
    return Gate(mode, takes, demands=("u % 32 == 0", "min(t, b, c, u) >= 1"), work=f"t * b * {gates} * u * u")


@functools.cache
def _wide(dtype):
    """Whether many rows of this type are multiplied as floats: bfloat16, on processors that multiply its pairs slower than that."""
    slow = getattr(load("recurrent"), "pairs_are_slow", None)
    return dtype is torch.bfloat16 and slow is not None and bool(slow())


def run(mode, data, states, cells, num_layers, directions):
    """The output (T, N, directions * size) of the layers over `data` (T, N, C), and the last states."""
    last: tuple[list[torch.Tensor], ...] = tuple([] for _ in states)
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            i = layer * directions + direction
            out, *found = _run_layer(mode, data, *cells[i], states[0][i], states[1][i] if len(states) > 1 else None, bool(direction))
            outputs.append(out)
            for values, value in zip(last, found):
                values.append(value)
        data = outputs[0] if directions == 1 else torch.cat(outputs, 2)
    return data, tuple(map(torch.stack, last))


def _run_layer(*arguments):
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in arguments[1:-1]):
        return _Layer.apply(*arguments)
    return _forward(*arguments)[0]


def _forward(mode, data, w_input, w_state, b_input, b_state, hidden, cell, reverse, keep=False):
    """Output, last hidden and cell state; and what the backward pass needs: the gates, all hidden states with the first one, what the kernel kept."""
    (length, batch), size = data.shape[:2], hidden.shape[1]
    inside = None
    if mode == "gru":  # the bias of the candidate's product is reset with it
        inside, b_state = b_state[2 * size:].float(), torch.nn.functional.pad(b_state[:2 * size], (0, size))
    gates = dense.forward(data.reshape(length * batch, -1), w_input, b_input + b_state).view(length, batch, -1)
    states = torch.empty(length + 1, batch, size, dtype=data.dtype)
    out, first, end = (states[:-1], states[-1], 0) if reverse else (states[1:], states[0], -1)
    first.copy_(hidden)
    carry = None if cell is None else cell.float().contiguous()
    kept, = _KERNELS[mode][0]((gates, w_state.contiguous(), inside, first, carry, out), (reverse, keep, _wide(data.dtype)))
    last = (out[end].clone(),) if cell is None else (out[end].clone(), kept[end].to(cell.dtype, copy=True))
    return (out, *last), gates, states, kept


class _Layer(torch.autograd.Function):
    """One direction of one layer."""

    @staticmethod
    def forward(ctx, mode, data, w_input, w_state, b_input, b_state, hidden, cell, reverse):
        results, *kept = _forward(mode, data, w_input, w_state, b_input, b_state, hidden, cell, reverse, keep=True)
        ctx.mode, ctx.reverse = mode, reverse
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(data, w_input, w_state, b_input, b_state, hidden, cell, *kept)
        return results

    @staticmethod
    def backward(ctx, dout, dhidden, dcell=None):
        *inputs, gates, states, kept = ctx.saved_tensors
        mode, wanted = ctx.mode, ctx.needs_input_grad[1:]
        if torch.is_grad_enabled():
            return (None, *_differentiable(mode, inputs, ctx.reverse, (dout, dhidden, dcell), wanted))
        data, w_input, w_state, _, _, hidden, cell = inputs
        (length, batch), out = data.shape[:2], states[:-1] if ctx.reverse else states[1:]
        before = states[1:] if ctx.reverse else states[:-1]
        heads = [torch.zeros_like(out) if dout is None else dout.contiguous(),
                 *(None if t is None else t.float().contiguous() for t in (dhidden, dcell))]
        dgates, dproduct, dh, dc = _KERNELS[mode][1]((*heads, w_state.contiguous(), gates, kept, None if cell is None else cell.float().contiguous(),
                                                      before if mode == "gru" else None), (ctx.reverse, _wide(data.dtype)))
        rows = length * batch
        dgates = dgates.view(rows, -1)
        dproduct = dgates if dproduct is None else dproduct.view(rows, -1)
        dx = dense.backward_data(dgates, w_input).view_as(data) if wanted[0] else None
        dw = [dense.backward_weight(d, t.reshape(rows, -1)) if w else None for d, t, w in ((dgates, data, wanted[1]), (dproduct, before, wanted[2]))]
        biases = [dgates.sum(0) if wanted[3] else None, dproduct.sum(0) if wanted[4] else None]
        found = dx, *dw, *biases, dh.to(hidden.dtype), dc if cell is None else dc.to(cell.dtype)
        return (None, *(t if w else None for t, w in zip(found, wanted)), None)


def _differentiable(mode, inputs, reverse, heads, wanted):
    """The gradients as what can be differentiated again: those of the same layer made of torch's operators."""
    data, w_input, w_state, b_input, b_state, hidden, cell = inputs
    with torch.enable_grad():
        out: list[Any] = [None] * len(data)
        for t in (reversed(range(len(data))) if reverse else range(len(data))):
            of_input, of_state = torch._C._nn.linear(data[t], w_input, b_input), torch._C._nn.linear(hidden, w_state, b_state)
            hidden, cell = _step(mode, of_input, of_state, hidden, cell)
            out[t] = hidden
        results = [(r, h) for r, h in zip((torch.stack(out), hidden, cell), heads) if h is not None]
        chosen = [t for t, w in zip(inputs, wanted) if w]
        found = iter(torch.autograd.grad([r for r, _ in results], chosen, [h for _, h in results], create_graph=True, allow_unused=True))
    return (*(next(found) if w else None for w in wanted[:7]), None)


def _step(mode, of_input, of_state, hidden, cell):
    """One step of a layer, made of torch's operators."""
    if mode == "lstm":
        enters, forgets, candidate, leaves = (of_input + of_state).chunk(4, 1)
        cell = forgets.sigmoid() * cell + enters.sigmoid() * candidate.tanh()
        return leaves.sigmoid() * cell.tanh(), cell
    if mode == "gru":
        (reset, update, candidate), (of_reset, of_update, inside) = of_input.chunk(3, 1), of_state.chunk(3, 1)
        candidate = (candidate + (reset + of_reset).sigmoid() * inside).tanh()
        return candidate + (update + of_update).sigmoid() * (hidden - candidate), cell
    return (of_input + of_state).tanh() if mode == "rnn_tanh" else (of_input + of_state).relu(), cell
