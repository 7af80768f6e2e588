"""Recurrent layers on a CPU, with their gradients: one large product for the inputs of all steps, and `recurrent.cpp` for the recurrence.

The layers are LSTM (optionally with a projection), GRU and vanilla RNN, over sequences of equal or different lengths, in float32, and in bfloat16 on
processors with instructions for it. In float32, and without a projection, the number of units is any; else it is a multiple of 32.
"""
from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from ..gemm import conv_gemm
from ..runtime.contract import Contract, Kernel
from ..runtime.libraries import load
from ..runtime.parameters import RnnPackingParams, RnnParams

_WORTHWHILE = 1 << 20  # multiplications in a layer's steps from which on the kernel is called (and compiled); see also `_gain`
_FEW = 3  # rows up to which a step is bound by reading the weights, which have half the bytes in bfloat16; as in `recurrent_cells.h`
_MANY = 256  # rows from which on a product converts bfloat16 to float32, where that is faster
_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
_PRECONDITIONS = ("min(t, n, b, u) >= 1", "counts or n == t * b")


def _kernels(mode):
    """Return the kernels of a mode: forward pass, backward pass, and packing of weights for the forward pass.

    Arguments that a mode does not use must be None. There are `n` rows in `t` steps, each of `b` rows or of the numbers in `counts`; the state of `u`
    units is passed on unchanged, or projected to `d` numbers.
    """
    count, lstm, gru = f"{_GATES[mode]} * u", mode == "lstm", mode == "gru"
    d, kept = "d" if lstm else "u", "n if keep else b" if lstm or gru else "b"
    gates, weights, state, rows = f"T (n, {count})", f"T ({count}, {d})", f"(b, {d})", f"T (n, {d})"
    without, carry, counts = "float32 (0) optional", "float32 (b, u)", "int64 (t) optional"
    project = "T (d, u) optional" if lstm else "T (0, 0) optional"
    whole = f"u % 32 == {d} % 32 == 0 or T == 'float32' and not project"  # whole numbers of vectors, or the last one has fewer units
    own = (whole, *(("d >= 1", "project or d == u") if lstm else ()))
    demands = (*_PRECONDITIONS, *own)
    multiplies = f"n * {count} * {d}"
    projection = " + (d * u if project else 0)" if lstm else ""
    panels = f"((u + 15) // 16 * 16 * {_GATES[mode]} * {d}{projection}) // (1 if wide or T == 'float32' else 2)"  # a cell holds two bfloat16
    forward = Kernel("nn/recurrent", f"forward_{mode}_{{T}}",
                     {"gates": gates, "weights": weights, "bias": "float32 (u)" if gru else without, "project": project,
                      "packed": "float32 (cells) optional", "hidden": f"T {state}", "cell": carry if lstm else without, "out": rows,
                      "counts": counts},
                     {"kept": "float32 (kept, u)", "middle": "T (between, u) if project"}, integers=("t", "reverse", "keep", "wide"),
                     where={"kept": kept, "between": "n if keep else b", "cells": panels}, preconditions=demands,
                     parameters=RnnParams, sizes={"d": d}, multiplies=multiplies)
    backward = Kernel("nn/recurrent", f"backward_{mode}_{{T}}",
                      {"dout": rows, "dhidden": f"float32 {state} optional", "dcell": f"{carry} optional", "weights": weights,
                       "project": project, "gates": gates, "kept": f"float32 ({'n' if lstm or gru else 'b'}, u)", "cell": carry if lstm else without,
                       "states": rows if gru else "T (0) optional", "counts": counts},
                      {"dgates": gates, "dproduct": f"{gates} if states", "dhanded": f"{rows} if project", "dh": f"float32 {state}", "dc": carry},
                      integers=("t", "b", "reverse", "wide"), preconditions=demands, parameters=RnnParams,
                      sizes={"d": d, "keep": "1"}, multiplies=multiplies)
    pack = Kernel("nn/recurrent", f"pack_{mode}_{{T}}", {"weights": weights, "project": project}, {"packed": "float32 (cells)"},
                  integers=("u", "wide"), where={"cells": panels}, preconditions=("u >= 1", *own),
                  parameters=RnnPackingParams, sizes={"d": d})
    return forward, backward, pack


_KERNELS = {mode: _kernels(mode) for mode in _GATES}


def suits(mode: str, data: torch.Tensor, states: Sequence[Any], cells: Sequence[Any], num_layers: int, directions: int,
          counts: torch.Tensor | None = None, ordered: Ordered | None = None) -> Any:
    """Return True if the kernels fit the layers; `cells` has two weights, two biases and optionally a projection for each layer and direction."""
    if ordered is not None and ordered.matches(data, states, counts):
        return True
    tensors = (data, *states, *(t for cell in cells for t in cell))
    each = len(cells[0])
    found = (len(tensors) == 1 + len(states) + each * num_layers * directions and not torch.compiler.is_compiling()
             and (counts is None or counts.dtype is torch.int64 and counts.is_cpu)
             and _layers(mode, num_layers, directions, each > 4, counts is not None).check(tensors, (), _WORTHWHILE) is not None
             and _KERNELS[mode][0].available(T=str(data.dtype).removeprefix("torch.")))
    if found and ordered is not None:
        ordered.remember(data, states, counts)
    return found


@functools.cache
def _layers(mode, num_layers, directions, projects, packed):
    """Return the contract of all layers together; it accepts any strides, as arrays are copied where a kernel needs them contiguous."""
    rows, gates, handed = num_layers * directions, _GATES[mode], "d" if projects else "u"
    takes = {"data": "T (n, c) strided" if packed else "T (t, b, c) strided", "hidden": f"T ({rows}, b, {handed}) strided"}
    if mode == "lstm":
        takes["cell"] = f"T ({rows}, b, u) strided"
    for i in range(rows):
        takes |= {f"w_input{i}": f"T ({gates} * u, {'c' if i < directions else f'{directions} * {handed}'}) strided",
                  f"w_state{i}": f"T ({gates} * u, {handed}) strided", f"b_input{i}": f"T ({gates} * u) strided",
                  f"b_state{i}": f"T ({gates} * u) strided"}
        if projects:
            takes[f"project{i}"] = "T (d, u) strided"
    total = "n" if packed else "t * b"
    whole = f"u % 32 == {handed} % 32 == 0" + ("" if projects else " or T == 'float32'")
    return Contract(mode, takes, preconditions=(whole, f"min({total}, b, c, u) >= 1"),
                    work=f"{total} * {gates} * u * {handed} {_gain(mode, packed)}")


def _gain(mode, packed):
    """Return the factor of the work, as the end of an expression, by what torch has instead: steps one by one, or oneDNN.

    With GRU and vanilla RNN of 40 units and 32 rows, torch takes 3 to 4 times as long as the kernel. With LSTM of a ragged number of units, where
    the last vector is partly empty, oneDNN is as fast up to about 150 units and faster without gradients.
    """
    return "* 8" if mode != "lstm" or packed else "// (64 if u % 32 else 1)"


@functools.cache
def _in_float32(dtype):
    """Return True if products of many rows of `dtype` run in float32: bfloat16 on processors that multiply its pairs more slowly."""
    slow = getattr(load("nn/recurrent"), "pairs_are_slow", None)
    return dtype is torch.bfloat16 and slow is not None and bool(slow())


class _Steps(NamedTuple):
    """The numbers of rows of the steps of one direction, and the order of the steps.

    Attributes
    ----------
    length : int
        The length of the longest sequence.
    counts : torch.Tensor or None
        The number of rows of each step (length,), not increasing; the steps' rows are consecutive. None where all steps have the same number.
    reverse : bool
    """

    length: int
    counts: torch.Tensor | None
    reverse: bool

    def last(self, rows, batch):
        """Return the row of each sequence's last processed step."""
        if self.reverse:
            return rows[:batch]
        if self.counts is None:
            return rows[-batch:]
        sequences = torch.arange(batch)
        return rows[_starts(self.counts)[(self.counts.unsqueeze(1) > sequences).sum(0) - 1] + sequences]

    def before(self, hidden, out):
        """Return the state before each row's step."""
        batch = hidden.shape[0]
        if self.counts is None:
            return torch.cat((out[batch:], hidden) if self.reverse else (hidden, out[:-batch]))
        starts, step = _starts(self.counts), torch.repeat_interleave(self.counts)
        row = torch.arange(len(step)) - starts[step]
        if self.reverse:
            after, starts = (torch.cat((t[1:], t.new_zeros(1))) for t in (self.counts, starts))
            source = torch.where(row < after[step], batch + starts[step] + row, row)
        else:
            source = torch.where(step > 0, batch + starts[step - 1] + row, row)
        return torch.cat((hidden, out)).index_select(0, source)


def _starts(counts):
    """Return the index of the first row of each step."""
    return counts.cumsum(0) - counts


def _kinds(*tensors):
    return tuple((t.shape, t.dtype, t.is_cpu, type(t)) for t in tensors)


class Ordered:
    """Packed copies of constant weights for inference, each made at its first use.

    The object also caches the shapes and types of the data that `suits` accepted last: a check with all weights takes longer.
    """

    def __init__(self) -> None:
        self._made: dict[tuple, Any] = {}
        self._known: tuple = ()
        self._lock = threading.Lock()

    def matches(self, data: torch.Tensor, states: Sequence[torch.Tensor], counts: torch.Tensor | None) -> bool:
        """Return True if these have the shapes and types that were accepted last."""
        return counts is None and self._known == _kinds(data, *states)

    def remember(self, data: torch.Tensor, states: Sequence[torch.Tensor], counts: torch.Tensor | None) -> Any:
        """Record the shapes and types of accepted data."""
        self._known = () if counts is not None else _kinds(data, *states)

    def cells(self, channels: int, make: Callable[[], Any]) -> Any:
        """Return the cached result of `make`: the weights of the layers for data with this number of channels."""
        return self._get(("cells", channels), make)

    def biases(self, place: Any, mode: str, b_input: Any, b_state: Any) -> Any:
        """Return the cached result of `_biases`."""
        return self._get((place, "biases"), lambda: _biases(mode, b_input, b_state))

    def product(self, place: Any, weight: torch.Tensor, wide: bool) -> Any:
        """Return the product with the input `weight` of the layer and direction at `place`, as a function; in float32 if `wide`."""
        return self._get((place, "input", wide), lambda: conv_gemm.prepacked(weight.float() if wide else weight))

    def panels(self, place: Any, mode: str, weight: torch.Tensor, project: Any, wide: bool) -> Any:
        """Return the state weights packed into the kernel's panels."""
        units = len(weight) // _GATES[mode]
        return self._get((place, "state", wide), lambda: _KERNELS[mode][2]((weight.contiguous(), project), (units, wide))[0])

    def _get(self, key, make):
        found = self._made.get(key)
        if found is None:
            with self._lock:
                found = self._made.get(key)
                if found is None:
                    found = self._made[key] = make()
        return found


def run(mode: str, data: torch.Tensor, states: Sequence[Any], cells: Sequence[Any], num_layers: int, directions: int,
        counts: torch.Tensor | None = None, ordered: Ordered | None = None) -> tuple[torch.Tensor, Any]:
    """Return the output (T, N, directions * size) of the layers over `data` (T, N, C), and the last states.

    `counts`, the rows of each step, describes sequences of different lengths, each of at least one step. They are sorted, the longest first, and the
    rows of all steps are consecutive: (sum, C) and (sum, directions * size). `ordered` holds the packed weights of constant `cells`, or is None.
    """
    length, batch = (len(counts), states[0].shape[1]) if counts is not None else data.shape[:2]
    rows = data if counts is not None else data.reshape(length * batch, -1)
    last: tuple[list[torch.Tensor], ...] = tuple([] for _ in states)
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            i = layer * directions + direction
            *weights, project = (*cells[i], None)[:5]
            out, *found = _run_layer(ordered and (ordered, i), mode, rows, *weights, project, states[0][i], states[1][i] if len(states) > 1 else None,
                                     _Steps(length, counts, bool(direction)))
            outputs.append(out)
            for values, value in zip(last, found):
                values.append(value)
        rows = outputs[0] if directions == 1 else torch.cat(outputs, 1)
    return rows if counts is not None else rows.view(length, batch, -1), tuple(map(torch.stack, last))


def _run_layer(ordered, *inputs):
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in inputs[1:-1]):
        return _Layer.apply(*inputs)
    return _forward(ordered, *inputs)[0]


def _multiply(product, rows, *others):
    """Call a product of `conv_gemm`, in float32 where that is faster for the type (`_in_float32`)."""
    if not _many_in_float32(rows):
        return product(rows, *others)
    return product(rows.float(), *(t.float() for t in others)).to(rows.dtype)


def _many_in_float32(rows):
    return len(rows) >= _MANY and _in_float32(rows.dtype)


def _biases(mode, b_input, b_state):
    """Return the bias of the input product, and for GRU the bias inside the reset gate (of the candidate's state product), else None."""
    if mode != "gru":
        return b_input + b_state, None
    size = len(b_state) // 3
    return b_input + torch.nn.functional.pad(b_state[:2 * size], (0, size)), b_state[2 * size:].float()


def _forward(ordered, mode, data, w_input, w_state, b_input, b_state, project, hidden, cell, steps, keep=False):
    """Return a tuple of output, last hidden and last cell state, and the tensors for the backward pass: gates and the kernel's saved values.

    `ordered` is a pair of an `Ordered` and the number of the layer and direction, or None.
    """
    wide = _in_float32(data.dtype) and len(hidden) > _FEW
    project = None if project is None else project.contiguous()
    if ordered:
        layers, place = ordered
        packed, (bias, inside) = layers.panels(place, mode, w_state, project, wide), layers.biases(place, mode, b_input, b_state)
        gates = _multiply(layers.product(place, w_input, _many_in_float32(data)), data, bias)
    else:
        bias, inside = _biases(mode, b_input, b_state)
        packed, gates = None, _multiply(conv_gemm.forward, data, w_input, bias)
    out = torch.empty(data.shape[0], hidden.shape[1], dtype=data.dtype)
    carry = None if cell is None else cell.float().contiguous()
    kept, middle = _KERNELS[mode][0]((gates, w_state.contiguous(), inside, project, packed, hidden.contiguous(), carry, out, steps.counts),
                                     (steps.length, steps.reverse, keep, wide))
    last = [steps.last(out, len(hidden))]
    if cell is not None:
        last.append((steps.last(kept, len(hidden)) if keep else kept).to(cell.dtype))
    if keep:  # a result of an autograd Function must not be a view of another
        last = [t.clone() for t in last]
    return (out, *last), gates, kept, middle


class _Layer(torch.autograd.Function):
    """One direction of one layer."""

    @staticmethod
    def forward(ctx, mode, data, w_input, w_state, b_input, b_state, project, hidden, cell, steps):
        results, *kept = _forward(None, mode, data, w_input, w_state, b_input, b_state, project, hidden, cell, steps, keep=True)
        ctx.mode, ctx.steps = mode, steps
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(data, w_input, w_state, b_input, b_state, project, hidden, cell, results[0], *kept)
        return results

    @staticmethod
    def backward(ctx, dout, dhidden, dcell=None):
        *inputs, out, gates, kept, middle = ctx.saved_tensors
        mode, steps, wanted = ctx.mode, ctx.steps, ctx.needs_input_grad[1:]
        if torch.is_grad_enabled():
            return (None, *_differentiable(mode, inputs, steps, (dout, dhidden, dcell), wanted))
        data, w_input, w_state, _, _, project, hidden, cell = inputs
        before = steps.before(hidden, out) if mode == "gru" or wanted[2] else None
        heads = [torch.zeros_like(out) if dout is None else dout.contiguous(),
                 *(None if t is None else t.float().contiguous() for t in (dhidden, dcell))]
        dgates, dproduct, dhanded, dh, dc = _KERNELS[mode][1](
            (*heads, w_state.contiguous(), None if project is None else project.contiguous(), gates, kept,
             None if cell is None else cell.float().contiguous(), before if mode == "gru" else None, steps.counts),
            (steps.length, hidden.shape[0], steps.reverse, _in_float32(data.dtype)))
        dproduct = dgates if dproduct is None else dproduct
        dx = _multiply(conv_gemm.backward_data, dgates, w_input) if wanted[0] else None
        dw = [_multiply(conv_gemm.backward_weight, d, t) if w else None for d, t, w in ((dgates, data, wanted[1]), (dproduct, before, wanted[2]))]
        biases = [dgates.sum(0) if wanted[3] else None, dproduct.sum(0) if wanted[4] else None]
        dproject = _multiply(conv_gemm.backward_weight, dhanded, middle) if wanted[5] else None
        found = dx, *dw, *biases, dproject, dh.to(hidden.dtype), dc if cell is None else dc.to(cell.dtype)
        return (None, *(t if w else None for t, w in zip(found, wanted)), None)


def _differentiable(mode, inputs, steps, heads, wanted):
    """Return differentiable gradients, by autograd through the same layer made of torch's operators."""
    data, w_input, w_state, b_input, b_state, project, hidden, cell = inputs
    with torch.enable_grad():
        counts = [hidden.shape[0]] * steps.length if steps.counts is None else steps.counts.tolist()
        rows, out = data.split(counts), list[Any](counts)
        for t in (reversed(range(len(rows))) if steps.reverse else range(len(rows))):
            now, rest = hidden[:counts[t]], hidden[counts[t]:]
            of_input, of_state = torch._C._nn.linear(rows[t], w_input, b_input), torch._C._nn.linear(now, w_state, b_state)
            now, carry = _step(mode, of_input, of_state, now, None if cell is None else cell[:counts[t]])
            out[t] = now if project is None else torch._C._nn.linear(now, project)
            hidden, cell = torch.cat((out[t], rest)), None if cell is None else torch.cat((carry, cell[counts[t]:]))
        results = [(r, h) for r, h in zip((torch.cat(out), hidden, cell), heads) if h is not None]
        chosen = [t for t, w in zip(inputs, wanted) if w]
        found = iter(torch.autograd.grad([r for r, _ in results], chosen, [h for _, h in results], create_graph=True, allow_unused=True))
    return (*(next(found) if w else None for w in wanted[:8]), None)


def _step(mode, of_input, of_state, hidden, cell):
    """Compute one step of a layer with torch's operators; return the hidden and the cell state."""
    if mode == "lstm":
        enters, forgets, candidate, leaves = (of_input + of_state).chunk(4, 1)
        cell = forgets.sigmoid() * cell + enters.sigmoid() * candidate.tanh()
        return leaves.sigmoid() * cell.tanh(), cell
    if mode == "gru":
        (reset, update, candidate), (of_reset, of_update, inside) = of_input.chunk(3, 1), of_state.chunk(3, 1)
        candidate = (candidate + (reset + of_reset).sigmoid() * inside).tanh()
        return candidate + (update + of_update).sigmoid() * (hidden - candidate), cell
    return (of_input + of_state).tanh() if mode == "rnn_tanh" else (of_input + of_state).relu(), cell
