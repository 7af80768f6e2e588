"""Consecutive small fully connected layers in training: one kernel call forward and one backward.

Torch makes about seven calls for a layer with a ReLU, of 5 to 10 microseconds each, and shares none of these small products among threads.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Optional

import torch

from ..runtime.contract import Kernel, Plan
from ..runtime.parameters import TRAINED_LAYERS, MlpTrainingParams

MOST = TRAINED_LAYERS
ACTIVATIONS = {"": 0, "relu": 1, "sigmoid": 2, "tanh": 3}
WEIGHT = 1 << 18  # most elements of a weight: larger ones do not stay in a core's cache
ROWS = 512  # most rows
_numbers = range(1, MOST + 1)
_before = ["c", *[f"k{i}" for i in _numbers]]
_widths = [f"k{i}" for i in _numbers]
_common: dict[str, Any] = {
    "integers": (*_widths, "activations"),
    "preconditions": ("min(n, c, k1) >= 1", f"n <= {ROWS}", f"0 <= activations < {4 ** MOST}", *[f"w{i} == (k{i} > 0)" for i in _numbers],
                      *[f"{before} * k{i} <= {WEIGHT}" for i, before in zip(_numbers, _before)],
                      *[f"w{i} or not w{i + 1}" for i in _numbers[:-1]]),
    "parameters": MlpTrainingParams, "limits_threads": True,
    "multiplies": f"n * ({' + '.join(f'{before} * k{i}' for i, before in zip(_numbers, _before))})",
    "sizes": {"widths": f"(c, {', '.join(_widths)})"}}
_weights = {f"w{i}": f"float32 (k{i}, {before})" + " optional" * (i > 1) for i, before in zip(_numbers, _before)}
forward_kernel = Kernel("gemm/mlp_training", "forward_float32",
                        {"rows": "float32 (n, c)", **_weights, **{f"b{i}": f"float32 (k{i}) optional" for i in _numbers}},
                        {f"y{i}": f"float32 (n, k{i}) if w{i}" for i in _numbers}, **_common)
# The gradients are arguments: they may have memory already.
backward_kernel = Kernel("gemm/mlp_training", "backward_float32",
                         {"dout": "float32 (n, last)", "rows": "float32 (n, c)",
                          **{f"y{i}": f"float32 (n, k{i})" + " optional" * (i > 1) for i in _numbers}, **_weights,
                          **{f"dw{i}": f"float32 (k{i}, {before}) optional" for i, before in zip(_numbers, _before)},
                          **{f"db{i}": f"float32 (k{i}) optional" for i in _numbers}, "dx": "float32 (n, c) optional"},
                         **{**_common, "preconditions": (*_common["preconditions"], *[f"y{i} == w{i}" for i in _numbers],
                                                         *[f"w{i} or not (dw{i} or db{i})" for i in _numbers])},
                         where={"last": " or ".join(reversed(_widths))})


class Layers(NamedTuple):
    """The layers of a chain.

    Attributes
    ----------
    activations : int
        Two bits for each layer, see `ACTIVATIONS`.
    otherwise : callable
        Computes the same with differentiable operators, from the rows (N, C) and the tuples of weights and biases.
    """

    activations: int
    otherwise: Callable[..., torch.Tensor]


class Call(NamedTuple):
    """A call forward, for the call backward."""

    integers: tuple[int, ...]
    rows: torch.Tensor
    weights: Sequence[torch.Tensor]
    results: Sequence[torch.Tensor]  # of each layer


def forward(layers: Layers, rows: torch.Tensor, weights: tuple[torch.Tensor, ...], biases: tuple[Optional[torch.Tensor], ...]) -> torch.Tensor:
    """Return the result (N, K) of at most `MOST` layers on `rows` (N, C), by the kernel where it takes them.

    Parameters
    ----------
    layers : Layers
    rows : torch.Tensor
    weights : tuple of torch.Tensor
        (K, C) each.
    biases : tuple of torch.Tensor and None
        (K,) each.
    """
    if torch.compiler.is_compiling():
        return layers.otherwise(rows, weights, biases)
    if torch.is_grad_enabled():
        found = _plan(layers, rows, weights, biases)
        return layers.otherwise(rows, weights, biases) if found is None else _Chain.apply(layers, found, rows, *weights, *biases)
    call = saving(layers, rows, weights, biases)
    return layers.otherwise(rows, weights, biases) if call is None else call.results[-1]


def saving(layers: Layers, rows: torch.Tensor, weights: Sequence[torch.Tensor], biases: Sequence[Optional[torch.Tensor]]) -> Optional[Call]:
    """Call the kernel forward, recording nothing; return None if it does not take these arrays."""
    found = _plan(layers, rows, weights, biases)
    if found is None:
        return None
    plan, arrays, integers = found
    return Call(integers, rows, weights, plan(arrays)[:len(weights)])


def gradients(call: Call, dout: torch.Tensor, wanted: Sequence[bool],
              memory: Optional[Sequence[Optional[torch.Tensor]]] = None) -> Optional[list[Optional[torch.Tensor]]]:
    """Return the gradients of rows, weights and biases, None where not wanted, recording nothing; None if the kernel does not take `dout`.

    They are written to the tensors in `memory`, as long as the list, where there is one of their shape.
    """
    count = len(call.weights)
    out: list[Optional[torch.Tensor]] = list(memory or (None,) * len(wanted))
    for i, want in enumerate(wanted):
        if not want:
            out[i] = None
            continue
        shape = call.rows.shape if not i else call.weights[i - 1].shape if i <= count else call.weights[i - 1 - count].shape[:1]
        place = out[i]
        if place is None or place.shape != shape:
            out[i] = call.rows.new_empty(shape)
    missing = (None,) * (MOST - count)
    arrays = (dout.contiguous(), call.rows, *call.results, *missing, *call.weights, *missing, *out[1:1 + count], *missing, *out[1 + count:], *missing,
              out[0])
    plan = backward_kernel.plan(arrays, call.integers)
    if plan is None:
        return None
    plan(arrays)
    return out


def _plan(layers: Layers, rows: torch.Tensor, weights: Sequence[torch.Tensor],
          biases: Sequence[Optional[torch.Tensor]]) -> Optional[tuple[Plan, tuple[Any, ...], tuple[int, ...]]]:
    missing = (None,) * (MOST - len(weights))
    arrays, integers = (rows, *weights, *missing, *biases, *missing), (*map(len, weights), *(0,) * len(missing), layers.activations)
    plan = forward_kernel.plan(arrays, integers)
    return None if plan is None else (plan, arrays, integers)


class _Chain(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, layers: Layers, found: tuple[Plan, tuple[Any, ...], tuple[int, ...]], *inputs: Any) -> torch.Tensor:
        plan, arrays, ctx.integers = found
        results = plan(arrays)[:len(inputs) // 2]
        ctx.save_for_backward(*inputs, *results)
        ctx.layers = layers
        return results[-1]

    @staticmethod
    def backward(ctx: Any, dout: torch.Tensor) -> Any:
        rows, *saved = ctx.saved_tensors
        count = len(saved) // 3
        weights, biases, results = saved[:count], saved[count:2 * count], saved[2 * count:]
        wanted, found = ctx.needs_input_grad[2:], None
        if not torch.is_grad_enabled():
            found = gradients(Call(ctx.integers, rows, weights, results), dout, wanted)
        return None, None, *(_differentiable(ctx.layers, dout, rows, weights, biases, wanted) if found is None else found)


def _differentiable(layers: Layers, dout: torch.Tensor, rows: torch.Tensor, weights: Sequence[torch.Tensor], biases: Sequence[Any],
                    needed: Sequence[bool]) -> list[Any]:
    """Return the gradients of rows, weights and biases, None where not needed, recorded if this call is."""
    recorded = torch.is_grad_enabled()
    inputs = (rows, *weights, *biases)
    with torch.enable_grad():
        given = inputs if recorded else tuple(t if t is None else t.detach().requires_grad_(need) for t, need in zip(inputs, needed))
        out = layers.otherwise(given[0], given[1:1 + len(weights)], given[1 + len(weights):])
        found = iter(torch.autograd.grad(out, [t for t, need in zip(given, needed) if need and t is not None], dout, create_graph=recorded))
    return [next(found) if need else None for need in needed]
