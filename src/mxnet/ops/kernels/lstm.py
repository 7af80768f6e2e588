"""LSTM layers in single precision on a CPU, with their gradients: large products for the whole sequence, and `lstm.cpp` from step to step."""
import ctypes
from typing import Any

import torch

from . import dense, function

_UNITS = 32  # what the state's size must be a multiple of
_WORTHWHILE = 1 << 20  # multiplications in a layer's steps from which on the kernel is called (and compiled)


def suits(data, states, cells):
    """Whether the layers can run here; `cells` has two weights and two biases (and no projection) for each layer and direction."""
    size = states[0].shape[2]
    tensors = [data, *states, *(t for cell in cells for t in cell)]
    return (len(cells[0]) == 4 and size % _UNITS == 0 and data.numel() > 0 and data.shape[0] * data.shape[1] * 4 * size * size >= _WORTHWHILE
            and all(type(t) in (torch.Tensor, torch.nn.Parameter) and t.dtype is torch.float32 and t.device.type == "cpu" for t in tensors)
            and not torch.compiler.is_compiling() and _kernel("forward") is not None)


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


def _kernel(entry):
    return function("lstm", entry, {"forward": "pppppppi", "backward": "pppppppppppi"}[entry])


def _forward(data, w_input, w_state, b_input, b_state, hidden, cell, reverse, keep=False):
    """Output, last hidden and cell state; and what the backward pass needs: the gates, all hidden states with the first one, all cell states."""
    (length, batch), size = data.shape[:2], hidden.shape[1]
    rows, bias = data.reshape(length * batch, -1), b_input + b_state
    gates = dense.forward(rows, w_input, bias)
    w_state, cell = w_state.contiguous(), cell.contiguous()
    states = torch.empty(length + 1, batch, size)
    out, first, end = (states[:-1], states[-1], 0) if reverse else (states[1:], states[0], -1)
    first.copy_(hidden)
    cells = torch.empty((length, batch, size) if keep else (1, batch, size))
    sizes = (ctypes.c_int64 * 6)(length, batch, size, size, reverse, keep)
    _kernel("forward")(gates.data_ptr(), w_state.data_ptr(), first.data_ptr(), cell.data_ptr(), out.data_ptr(), cells.data_ptr(), sizes,
                       torch.get_num_threads())
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
        length, batch, size = cells.shape
        heads = [torch.zeros_like(cells) if dout is None else dout.contiguous(), *(None if t is None else t.contiguous() for t in (dhidden, dcell))]
        dgates, dh, dc = torch.empty_like(gates), torch.empty(batch, size), torch.empty(batch, size)
        sizes = (ctypes.c_int64 * 5)(length, batch, size, size, ctx.reverse)
        pointers = [None if t is None else t.data_ptr() for t in (*heads, w_state.contiguous(), gates, cells, cell.contiguous(), dgates, dh, dc)]
        _kernel("backward")(*pointers, sizes, torch.get_num_threads())
        wanted = ctx.needs_input_grad
        bias = dgates.sum(0) if wanted[3] or wanted[4] else None
        before = states[1:] if ctx.reverse else states[:-1]
        dx = dense.backward_data(dgates, w_input).view_as(data) if wanted[0] else None
        dw = [dense.backward_weight(dgates, t.reshape(length * batch, -1)) if w else None for t, w in ((data, wanted[1]), (before, wanted[2]))]
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
