"""Gradients of recorded computations, by direct calls of torch's autograd engine.

`torch.autograd.backward` and `grad` check incoming gradients with torch's symbolic shapes, whose first use imports sympy (a second of processor
time); with the root logger at DEBUG they add hooks to every node of the graph at each call. Callers of this module have checked the gradients
before, and the engine checks their sizes again.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

_engine = torch.autograd.Variable._execution_engine
_ones: dict[tuple[torch.dtype, torch.device], torch.Tensor] = {}


def ones(like: torch.Tensor) -> torch.Tensor:
    """Return ones of the shape and type of a tensor, expanded from one number: where a gradient is only read, and `are_ones` may spare its copy."""
    key = like.dtype, like.device
    one = _ones.get(key)
    if one is None:
        one = _ones[key] = torch.ones((), dtype=like.dtype, device=like.device)
    return one.expand(like.shape)


def are_ones(tensor: torch.Tensor) -> bool:
    """Return True for results of `ones`."""
    one = _ones.get((tensor.dtype, tensor.device))
    return one is not None and one.data_ptr() == tensor.data_ptr()


def backward(heads: Sequence[torch.Tensor], head_gradients: Sequence[torch.Tensor], retain_graph: bool = False,
             inputs: Sequence[torch.Tensor] = ()) -> None:
    """Add the gradients of the leaves that `heads` were computed from, or of `inputs` alone, to their ``.grad``.

    Raises
    ------
    RuntimeError
        If a head was not recorded or is freed, or a gradient has another size than its head.
    """
    _engine.run_backward(tuple(heads), tuple(head_gradients), retain_graph, False, tuple(inputs), allow_unreachable=True, accumulate_grad=True)


def gradients(heads: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], head_gradients: Sequence[torch.Tensor], retain_graph: bool = False,
              create_graph: bool = False) -> tuple[Any, ...]:
    """The gradients of `heads` with respect to `inputs`, None for those that they don't depend on.

    Raises
    ------
    RuntimeError
        As `backward`.
    """
    return _engine.run_backward(tuple(heads), tuple(head_gradients), retain_graph, create_graph, tuple(inputs), allow_unreachable=True,
                                accumulate_grad=False)
