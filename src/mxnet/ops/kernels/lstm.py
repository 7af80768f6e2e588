"""LSTM layers in single precision on a CPU, with their gradients: large products for the whole sequence, and `lstm.cpp` from step to step."""
import functools
from typing import Any

import torch

from . import dense
from .gate import Gate, Kernel

_WORTHWHILE = 1 << 20  # multiplications in a layer's steps from which on the kernel is called (and compiled)
_GATES, _WEIGHTS, _STATE, _STEPS = "float32 (t, b, 4 * u)", "float32 (4 * u, u)", "float32 (b, u)", "float32 (t, b, u)"
_DEMANDS = ("u % 32 == 0", "min(t, b, u) >= 1")

_forward_steps = Kernel("lstm", "forward", {"gates": _GATES, "weights": _WEIGHTS, "hidden": _STATE, "cell": _STATE, "out": _STEPS},
                        {"cells": "float32 (kept, b, u)"}, integers=("reverse", "keep"), where={"kept": "t if keep else 1"}, demands=_DEMANDS,
                        sizes=("t", "b", "u", "u", "reverse", "keep"), packed=True)
_backward_steps = Kernel("lstm", "backward", {"dout": _STEPS, "dhidden": f"{_STATE} optional", "dcell": f"{_STATE} optional", "weights": _WEIGHTS,
                                              "gates": _GATES, "cells": _STEPS, "cell": _STATE},
                         {"dgates": _GATES, "dh": _STATE, "dc": _STATE}, integers=("reverse",), demands=_DEMANDS,
                         sizes=("t", "b", "u", "u", "reverse"), packed=True)


def suits(data, states, cells, num_layers, directions):
    """Whether the layers can run here; `cells` has two weights and two biases (and no projection) for each layer and direction."""
    tensors = (data, *states, *(t for cell in cells for t in cell))
    return (len(tensors) == 3 + 4 * num_layers * directions and not torch.compiler.is_compiling()
            and _layers(num_layers, directions).verdict(tensors, (), _WORTHWHILE) is not None and _forward_steps.available())


@functools.cache
def _layers(num_layers, directions):
    """What all layers demand; strides are no matter, copies are made where a kernel needs them."""
    rows = num_layers * directions
    takes = {"data": "float32 (t, b, c) strided", "hidden": f"float32 ({rows}, b, u) strided", "cell": f"float32 ({rows}, b, u) strided"}
    for i in range(rows):
        takes |= {f"w_input{i}": f"float32 (4 * u, {'c' if i < directions else f'{directions} * u'}) strided", f"w_state{i}": f"{_WEIGHTS} strided",
                  f"b_input{i}": "float32 (4 * u) strided", f"b_state{i}": "float32 (4 * u) strided"}
    return Gate("lstm", takes, demands=("u % 32 == 0", "min(t, b, c, u) >= 1"), work="t * b * 4 * u * u")


def run(data, states, cells, num_layers, directions):
    """The output (T, N, directions * size) of the layers over `data` (T, N, C), and the last states."""
    last: tuple[list[torch.Tensor], list[torch.Tensor]] = [], []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            i = layer * directions + direction
            out, hidden, cell = _run_layer(data, *cells[i], states[0][i], states[1][i], bool(direction))
            outputs.append(out)
            last[0].append(hidden)
            last[1].append(cell)
        data = outputs[0] if directions == 1 else torch.cat(outputs, 2)
    return data, tuple(map(torch.stack, last))


def _run_layer(*arguments):
    if torch.is_grad_enabled() and any(t.requires_grad for t in arguments[:-1]):
        return _Layer.apply(*arguments)
    return _forward(*arguments)[0]


def _forward(data, w_input, w_state, b_input, b_state, hidden, cell, reverse, keep=False):
    """Output, last hidden and cell state; and what the backward pass needs: the gates, all hidden states with the first one, all cell states."""
    (length, batch), size = data.shape[:2], hidden.shape[1]
    gates = dense.forward(data.reshape(length * batch, -1), w_input, b_input + b_state).view(length, batch, -1)
    states = torch.empty(length + 1, batch, size)
    out, first, end = (states[:-1], states[-1], 0) if reverse else (states[1:], states[0], -1)
    first.copy_(hidden)
    cells, = _forward_steps((gates, w_state.contiguous(), first, cell.contiguous(), out), (reverse, keep))
    return (out, out[end].clone(), cells[end].clone()), gates, states, cells


class _Layer(torch.autograd.Function):
    """One direction of one layer."""

    @staticmethod
    def forward(ctx, data, w_input, w_state, b_input, b_state, hidden, cell, reverse):
        results, *kept = _forward(data, w_input, w_state, b_input, b_state, hidden, cell, reverse, keep=True)
        ctx.reverse = reverse
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(data, w_input, w_state, b_input, b_state, hidden, cell, *kept)
        return results

    @staticmethod
    def backward(ctx, dout, dhidden, dcell):
        *inputs, gates, states, cells = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _differentiable(inputs, ctx.reverse, (dout, dhidden, dcell), ctx.needs_input_grad)
        data, w_input, w_state, _, _, _, cell = inputs
        rows = len(cells) * cells.shape[1]
        heads = [torch.zeros_like(cells) if dout is None else dout.contiguous(), *(None if t is None else t.contiguous() for t in (dhidden, dcell))]
        dgates, dh, dc = _backward_steps((*heads, w_state.contiguous(), gates, cells, cell.contiguous()), (ctx.reverse,))
        dgates, wanted = dgates.view(rows, -1), ctx.needs_input_grad
        bias = dgates.sum(0) if wanted[3] or wanted[4] else None
        before = states[1:] if ctx.reverse else states[:-1]
        dx = dense.backward_data(dgates, w_input).view_as(data) if wanted[0] else None
        dw = [dense.backward_weight(dgates, t.reshape(rows, -1)) if w else None for t, w in ((data, wanted[1]), (before, wanted[2]))]
        found = dx, *dw, bias, None if bias is None else bias.clone(), dh, dc, None
        return tuple(t if w else None for t, w in zip(found, wanted))


def _differentiable(inputs, reverse, heads, wanted):
    """The gradients as what can be differentiated again: those of the same layer made of torch's operators."""
    data, w_input, w_state, b_input, b_state, hidden, cell = inputs
    with torch.enable_grad():
        out: list[Any] = [None] * len(data)
        for t in (reversed(range(len(data))) if reverse else range(len(data))):
            gates = torch._C._nn.linear(data[t], w_input, b_input) + torch._C._nn.linear(hidden, w_state, b_state)
            enters, forgets, candidate, leaves = gates.chunk(4, 1)
            cell = forgets.sigmoid() * cell + enters.sigmoid() * candidate.tanh()
            out[t] = hidden = leaves.sigmoid() * cell.tanh()
        given = [(r, h) for r, h in zip((torch.stack(out), hidden, cell), heads) if h is not None]
        chosen = [t for t, w in zip(inputs, wanted) if w]
        found = iter(torch.autograd.grad([r for r, _ in given], chosen, [h for _, h in given], create_graph=True, allow_unused=True))
    return (*(next(found) if w else None for w in wanted[:7]), None)
