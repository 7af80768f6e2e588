"""In-place optimizer updates in one pass over a weight, its gradient and its states, all float32 on a CPU."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch

from ..runtime.contract import Kernel
from ..runtime.parameters import UPDATED_TOGETHER, AdamaxParams, AdamParams, UpdatedTogetherParams

WORTHWHILE = 1 << 16  # elements from which on the kernel is called (and compiled)
_WEIGHT = "float32 (rows, width)"
_REST: dict[str, Any] = {"preconditions": ("width >= 1", "index or count == rows"), "work": "count * width",
                         "sizes": ("rows", "count", "width")}


def _arrays(first, second):
    return {"weight": _WEIGHT, "grad": "float32 (count, width)", first: _WEIGHT, second: _WEIGHT, "index": "int64 (count) optional"}


_adam = Kernel("nn/optimizer_update", "adam", _arrays("mean", "square"), numbers=AdamParams, **_REST)
_adamax = Kernel("nn/optimizer_update", "adamax", _arrays("mean", "largest"), numbers=AdamaxParams, **_REST)


_places = range(1, UPDATED_TOGETHER + 1)
_adam_together = Kernel("nn/optimizer_update", "adam_together", {f"{letter}{i}": f"float32 (n{i}) flat" + " optional" * (i > 1)
                                                                 for letter in "wgms" for i in _places},
                        integers=tuple(f"n{i}" for i in _places), numbers=AdamParams, parameters=UpdatedTogetherParams, limits_threads=True,
                        sizes={"sizes": f"({', '.join(f'n{i}' for i in _places)})"},
                        preconditions=("n1 >= 1", *[f"(n{i} > 0) == w{i} == g{i} == m{i} == s{i}" for i in _places],
                                       *[f"w{i} or not w{i + 1}" for i in _places[:-1]]))


def adam(weight: torch.Tensor, grad: torch.Tensor, mean: torch.Tensor, square: torch.Tensor, index: Any, lr: float, beta1: float, beta2: float,
         epsilon: float, wd: float, rescale: float, clip: float | None) -> Any:
    """Move `weight` by ``-lr * mean / (sqrt(square) + epsilon)``; False if there is no kernel for these tensors.

    Parameters
    ----------
    weight, mean, square : torch.Tensor
        Of one shape; the entries of axis 0 are the rows.
    grad : torch.Tensor
        Of the weight's shape, or with `index` of its rows only.
    index : torch.Tensor or None
        The numbers of the rows to move, each once.
    lr, beta1, beta2, epsilon, wd, rescale : float
    clip : float or None
    """
    numbers = lr, beta1, beta2, 1 - beta1, 1 - beta2, epsilon, wd, rescale, -1 if clip is None else clip
    return _run(_adam, (weight, grad, mean, square), index, numbers)


def adam_together(weights: Sequence[torch.Tensor], grads: Sequence[torch.Tensor], means: Sequence[torch.Tensor], squares: Sequence[torch.Tensor],
                  lr: float, beta1: float, beta2: float, epsilon: float, wd: float, rescale: float, clip: float | None) -> bool:
    """Do the same as `adam` for several weights; False, with none of them changed, if there is no kernel for these tensors."""
    numbers = lr, beta1, beta2, 1 - beta1, 1 - beta2, epsilon, wd, rescale, -1 if clip is None else clip
    calls = []
    for start in range(0, len(weights), UPDATED_TOGETHER):
        groups = [tensors[start:start + UPDATED_TOGETHER] for tensors in (weights, grads, means, squares)]
        missing = [None] * (UPDATED_TOGETHER - len(groups[0]))
        arrays = [tensor for group in groups for tensor in (*group, *missing)]
        plan = _adam_together.plan(arrays, [*map(torch.Tensor.numel, groups[0]), *[0] * len(missing)])
        if plan is None:
            return False
        calls.append((plan, arrays))
    for plan, arrays in calls:
        plan(arrays, numbers)
    return True


def adamax(weight: torch.Tensor, grad: torch.Tensor, mean: torch.Tensor, largest: torch.Tensor, index: Any, lr: float, beta1: float, beta2: float,
           epsilon: float, wd: float, rescale: float, clip: float | None) -> Any:
    """Move `weight` by ``-lr * mean / largest``; see `adam`."""
    numbers = lr, beta1, beta2, 1 - beta1, epsilon, wd, rescale, -1 if clip is None else clip
    return _run(_adamax, (weight, grad, mean, largest), index, numbers)


def _run(kernel: Kernel, tensors, index: Optional[torch.Tensor], numbers) -> bool:
    if tensors[0].numel() < WORTHWHILE or not tensors[0].is_cpu:
        return False
    arrays = (*(t.reshape(1 if index is None else len(t), -1) if t.is_contiguous() else t for t in tensors), index)
    plan = kernel.plan(arrays, (), WORTHWHILE)
    if plan is None:
        return False
    plan(arrays, numbers)
    return True
